"""`import turnout` is quick, pulls in little, and touches nothing."""

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import turnout

# A third of a second is what a command line may take before it feels slow; importing is a part of that.
SECONDS = 0.3
HEAVY = (
    "rich",
    "cyclopts",
    "numpy",
    "scipy",
    "sklearn",
    "torch",
    "onnxruntime",
    "pandas",
    "aiohttp",
    "httpx",
    "httpcore",
    "anyio",
    "starlette",
    "granian",
    "uvicorn",
    "fastapi",
    "pydantic",
    "pydantic_ai",
    "openai",
    "anthropic",
    "requests",
    "sqlalchemy",
    "psycopg",
    "dbos",
    "nicegui",
    "prometheus_client",
    "opentelemetry",
    "hypothesis",
    "pytest",
    "attrs",
)


def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_import_takes_less_than_a_third_of_a_second() -> None:
    """Of the processor's time, at its best in several fresh processes: others use the machine, too."""
    code = "import time; began = time.process_time(); import turnout; print(time.process_time() - began)"
    assert any(float(run(code).stdout) < SECONDS for _ in range(6))


def loaded_by(code: str) -> set[str]:
    return set(json.loads(run(f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))").stdout))


def test_import_pulls_in_nothing_heavy() -> None:
    loaded = {name.split(".")[0] for name in loaded_by("import turnout")}
    assert loaded.isdisjoint(HEAVY)
    assert "turnout" in loaded


def test_nor_does_deciding() -> None:
    code = "import turnout; turnout.load('study', config='').route_sync('Define entropy').json()"
    assert {name.split(".")[0] for name in loaded_by(code)}.isdisjoint(HEAVY)


def test_import_leaves_the_other_rooms_alone() -> None:
    rooms = {name.split(".")[1] for name in loaded_by("import turnout") if name.startswith("turnout.")}
    assert rooms <= {"core", "text", "layers", "config"}


# Events of the interpreter's own audit hook; paths of code are what importing is.
WATCH = """
import sys
seen = []
def watch(event, args):
    if event == "open" and not isinstance(args[0], int):  # by its number: what was opened is being compiled
        path = str(args[0])
        if not path.endswith((".py", ".pyc", ".so", ".pyd", ".pth")) and "__pycache__" not in path:
            seen.append(f"open {path}")
    elif event.split(".")[0] in ("socket", "subprocess", "urllib", "sqlite3", "shutil") or event == "os.system":
        seen.append(event)
import msgspec, re2, asyncio, importlib.resources, importlib.metadata, tomllib, ast, inspect, typing
%s
sys.addaudithook(watch)
%s
print("\\n".join(seen))
"""


def modules(under: str = "") -> list[str]:
    root = Path(turnout.__file__).parent
    found = [module.name for module in pkgutil.walk_packages([str(root)], "turnout.")]
    return [name for name in found if name.startswith(f"turnout.{under}") and not name.endswith("__main__")]


def test_importing_any_module_opens_no_file_and_no_socket() -> None:
    ours = "\n".join(f"import {name}" for name in modules() if not name.startswith(("turnout.cli", "turnout.console")))
    others = "\n".join(f"import {name}" for name in modules("cli"))
    warm = "import rich.console, rich.table, rich.text, rich.panel, rich.tree, cyclopts"
    # What others do when they are imported is theirs; what is asked here is that we add nothing to it.
    theirs = (
        "import psycopg, psycopg_pool, aiohttp.web, starlette.routing, granian.server.embed, prometheus_client\n"
        "import numpy, scipy.special, mcp.server.stdio"
    )
    assert run(WATCH % (theirs, ours)).stdout.split("\n")[0] == ""
    assert run(WATCH % (warm, others)).stdout.split("\n")[0] == ""


def test_the_watch_sees_what_it_should() -> None:
    assert "open " in run(WATCH % ("", "open(__import__('os').devnull)")).stdout
    assert "socket" in run(WATCH % ("", "import socket; socket.socket()")).stdout


def test_importing_warns_about_nothing() -> None:
    done = run("import turnout, turnout.testing", "-W", "error")
    assert (done.stdout, done.stderr) == ("", "")
