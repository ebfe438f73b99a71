"""The house keeps its shape: who may import whom, where sockets, SQL and broad excepts live, how long a file may be.

Each rule is a function from a parsed file to what is wrong with it, so that a row of planted sources at the end can
show that every one of them is able to fail.
"""

import ast
import re
import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

import turnout

SOURCE = Path(turnout.__file__).parent
LONGEST = 600
MEDIAN = 160

# What each room may import of ours. `turnout` is the package itself, whose names come from core and config; what
# loads a profile comes from runtime, when it is called.
_LOW = {"core"}
_TEXT = _LOW | {"text"}
_CONFIG = _TEXT | {"layers", "config", "turnout"}
_STORE = _CONFIG | {"store", "net"}
_MODELS = _STORE | {"search", "models", "learn", "explain"}
_RUNTIME = _MODELS | {"runtime"}
_APPS = _RUNTIME | {"apps"}
_WEB = _APPS | {"web"}
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "text": _LOW,
    "layers": _TEXT,
    # Loading a profile registers the kinds that ship with Turnout: config sits on layers, never the other way round.
    "config": _TEXT | {"layers"},
    "profiles": set(),
    "turnout": {"core", "config", "runtime"},
    "net": _CONFIG,
    "store": _CONFIG,
    "search": _STORE,
    "models": _STORE,
    "learn": _STORE,
    "explain": _STORE,
    "runtime": _MODELS,
    "apps": _RUNTIME,
    "testing": _APPS,
    "web": _APPS,
    "console": _WEB,
    "cli": _WEB | {"console"},
}

# Modules that open connections, or exist to. `urllib.parse` and `http.HTTPStatus` are names and numbers.
SOCKETS = ("socket", "ssl", "http", "urllib", "aiohttp", "httpx", "requests", "urllib3", "websockets", "socketserver")
SOCKETS_BUT = ("urllib.parse", "http.HTTPStatus")
SOCKET_ROOMS = {"net", "testing"}  # testing, because its doubles are servers
SQL_ROOMS = {"store", "search"}
SQL_MODULES = ("sqlite3", "psycopg", "sqlalchemy")
SQL = re.compile(
    r"\s*(?:select\s[\s\S]+\sfrom\s|insert\s+(?:or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|pragma\s+\w"
    r"|(?:create|alter|drop)\s+(?:unique\s+|virtual\s+|temp\s+)?(?:table|index|view|trigger|extension)\s)",
    re.IGNORECASE,
)
FORBIDDEN_MODULES = ("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "subprocess", "pty", "ctypes")
FORBIDDEN_CALLS = (
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "os.execv",
    "os.execvp",
    "os.spawnv",
)
# Where an error of any kind may be caught, and why. A number is how often.
BROAD_EXCEPTS = {
    "core/verdict.py": 2,  # what a plug-in does, and the message of its error
    "web/app.py": 1,  # the outermost ASGI wrapper: an unexpected error is a sentence for the client
    "store/journal.py": 1,  # the background writer: its thread must live to try again
    "core/router.py": 1,  # the layer driver: a layer may fail in any way, routing may not
    "cli/app.py": 1,  # main, the command line's outermost call: a bug of ours is named as one
}
BAD_NAME = re.compile(r"\A_?(?:(?:Base|Abstract)[A-Z]\w*|\w*(?:Manager|Handler|Helper|Util|Utils|Data|Info))\Z")
# A class is named after what it is, not after what happened to it: `RoutedQuestion`, not `Routed`.
IRREGULAR = "Done|Drawn|Found|Given|Gone|Got|Held|Kept|Known|Left|Made|Ran|Read|Said|Seen|Sent|Shown|Taken|Told|Written"
PARTICIPLE = re.compile(rf"\A_?(?:[A-Z][a-z]+ed|{IRREGULAR})\Z")
PARTICIPLES_BUT = {
    *("Feed", "Seed"),
    *("Decided", "Done", "Failed", "Retrieved"),  # events
    *("Gone", "Refused", "Supported", "Unsupported"),  # two errors, and the two results of one check
    *("Checked", "Logged", "Received", "Reloaded"),  # public since the first version
}
# Reading, writing, connecting, asking the environment: what a module may not do while it is imported.
IMPORT_TIME_CALLS = re.compile(
    r"\A(?:open|input|print)\Z"
    r"|\.(?:read_text|read_bytes|write_text|write_bytes|open|iterdir|glob|rglob|exists|is_file|is_dir|mkdir|unlink"
    r"|urlopen|connect|getenv|listdir|scandir|joinpath|entry_points|getaddrinfo)\Z"
    r"|\A(?:requests|httpx|urllib|socket|shutil|subprocess|tempfile)\."
)


@cache
def parse(source: str) -> ast.Module:
    """Read once, for all rules."""
    return ast.parse(source)


class File(NamedTuple):
    path: str
    """Relative to the package: `core/router.py`."""
    source: str

    @property
    def room(self) -> str:
        return self.path.split("/")[0] if "/" in self.path else "turnout"

    @property
    def package(self) -> tuple[str, ...]:
        return ("turnout", *self.path.split("/")[:-1])

    def tree(self) -> ast.Module:
        return parse(self.source)


Rule = Callable[[File], Iterator[str]]


def imported(file: File) -> Iterator[tuple[int, str]]:
    """Every name a file imports, absolute and with its last part: `turnout.core.router.Router`, `http.HTTPStatus`."""
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = file.package[: len(file.package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *(node.module.split(".") if node.module else ())))
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def rooms_imported(file: File) -> Iterator[tuple[int, str, str]]:
    for line, name in imported(file):
        parts = name.split(".")
        if parts[0] == "turnout":
            yield line, parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "turnout", name


def keeps_the_import_table(file: File) -> Iterator[str]:
    if file.room not in MAY_IMPORT:
        yield f"{file.path}: the house has no room {file.room!r}"
        return
    for line, room, name in rooms_imported(file):
        if room not in MAY_IMPORT[file.room] | {file.room}:
            yield f"{file.path}:{line} {file.room} may not import {name}"
        app, other = file.path.split("/")[1:2], name.split(".")[2:3]
        # What stands in apps/ itself (what an application is, who is asking, what it costs) belongs to all of them.
        if other and (SOURCE / "apps" / f"{other[0]}.py").is_file():
            continue
        if file.room == room == "apps" and len(file.path.split("/")) > 2 and other and app != other:
            yield f"{file.path}:{line} one app may not import another: {name}"


def opens_sockets_only_in_net(file: File) -> Iterator[str]:
    if file.room in SOCKET_ROOMS:
        return
    for line, name in imported(file):
        if name.split(".")[0] in SOCKETS and not name.startswith(SOCKETS_BUT):
            yield f"{file.path}:{line} {name} opens sockets: that is net's business"
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Attribute) and node.attr in ("open_connection", "create_connection", "start_server"):
            yield f"{file.path}:{node.lineno} {node.attr} opens sockets: that is net's business"


def docstrings(tree: ast.Module) -> set[int]:
    """Strings that stand alone: documentation of modules, classes, functions and fields."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def writes_sql_only_in_store_and_search(file: File) -> Iterator[str]:
    if file.room in SQL_ROOMS:
        return
    for line, name in imported(file):
        if name.split(".")[0] in SQL_MODULES:
            yield f"{file.path}:{line} {name}: databases are store's and search's business"
    tree = file.tree()
    documentation = docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in documentation:
            continue
        if isinstance(node.value, str) and SQL.match(node.value):
            yield f"{file.path}:{node.lineno} SQL: {node.value[:40]!r}"


def spelled(node: ast.expr) -> str:
    """`a.b.c` of a name or attribute; what is neither, a call say, is left out: `x().read_text` is `.read_text`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{spelled(node.value)}.{node.attr}"
    return ""


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node that runs when the module is imported: not the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*child.decorator_list, *child.args.defaults, *filter(None, child.args.kw_defaults)):
                yield part
                yield from run_at_import(part)
        elif isinstance(child, ast.Lambda) or (
            isinstance(child, ast.If) and spelled(getattr(child.test, "left", child.test)) == "__name__"
        ):
            continue
        else:
            yield child
            yield from run_at_import(child)


def does_nothing_when_imported(file: File) -> Iterator[str]:
    for node in run_at_import(file.tree()):
        if isinstance(node, ast.Call) and IMPORT_TIME_CALLS.search(spelled(node.func)):
            yield f"{file.path}:{node.lineno} {spelled(node.func)}() runs when the module is imported"
        if isinstance(node, ast.Attribute) and spelled(node) == "os.environ":
            yield f"{file.path}:{node.lineno} os.environ is read when the module is imported"


def is_broad(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(map(is_broad, node.elts))
    return node is None or spelled(node).split(".")[-1] in ("Exception", "BaseException")


def catches_only_what_it_means(file: File) -> Iterator[str]:
    found = []
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.ExceptHandler) and is_broad(node.type):
            found.append(node.lineno)
        if (
            isinstance(node, ast.Call)
            and spelled(node.func).split(".")[-1] == "suppress"
            and any(map(is_broad, node.args))
        ):
            found.append(node.lineno)
    for line in sorted(found)[BROAD_EXCEPTS.get(file.path, 0) :]:
        yield f"{file.path}:{line} catches everything: name what can happen"


def runs_no_foreign_code(file: File) -> Iterator[str]:
    for line, name in imported(file):
        if name.split(".")[0] in FORBIDDEN_MODULES:
            yield f"{file.path}:{line} {name} is not used here"
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Call) and spelled(node.func) in FORBIDDEN_CALLS:
            yield f"{file.path}:{node.lineno} {spelled(node.func)}() is not used here"


def names_things_after_what_they_are(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree()):
        if not isinstance(node, ast.ClassDef):
            continue
        if BAD_NAME.match(node.name) or (PARTICIPLE.match(node.name) and node.name not in PARTICIPLES_BUT):
            yield f"{file.path}:{node.lineno} {node.name}: what is it?"


def says_what_it_is_for(file: File) -> Iterator[str]:
    if not ast.get_docstring(file.tree()):
        yield f"{file.path}: no docstring"


def prints_only_in_the_cli(file: File) -> Iterator[str]:
    if file.room == "cli":
        return
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.Call) and spelled(node.func) in (
            "print",
            "pprint",
            "sys.stdout.write",
            "sys.stderr.write",
        ):
            yield f"{file.path}:{node.lineno} {spelled(node.func)}: only the command line prints"


# Where a frozen value may be written to, and where it is found out what a plug-in has.
THE_CACHE = "core/verdict.py"
ADAPTERS = ("core/layer.py", "core/registry.py")


def changes_no_value(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree()):
        named = spelled(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if named.endswith(("force_setattr", "object.__setattr__")) and file.path != THE_CACHE:
            yield f"{file.path}:{node.lineno} {named}: a frozen value is written to by `keep` of {THE_CACHE} alone"


def asks_no_layer_what_it_has(file: File) -> Iterator[str]:
    """A layer has all of the protocol: whatever is adapted is adapted where it is made."""
    if file.path in ADAPTERS:
        return
    for node in ast.walk(file.tree()):
        if not isinstance(node, ast.Call) or spelled(node.func) not in ("getattr", "hasattr") or not node.args:
            continue
        asked = spelled(node.args[0])
        if asked.endswith(".call") or asked in ("layer", "place", "placed"):
            yield f"{file.path}:{node.lineno} {spelled(node.func)}({asked}, …): adapt it in {ADAPTERS[0]}"


def is_short(file: File) -> Iterator[str]:
    lines = len(file.source.splitlines())
    if lines > LONGEST:
        yield f"{file.path}: {lines} lines, at most {LONGEST}"


RULES: list[Rule] = [
    keeps_the_import_table,
    opens_sockets_only_in_net,
    writes_sql_only_in_store_and_search,
    does_nothing_when_imported,
    catches_only_what_it_means,
    runs_no_foreign_code,
    names_things_after_what_they_are,
    says_what_it_is_for,
    prints_only_in_the_cli,
    changes_no_value,
    asks_no_layer_what_it_has,
    is_short,
]


def files() -> list[File]:
    found = sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)
    return [File(path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")) for path in found]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house(rule: Rule) -> None:
    broken = [problem for file in files() for problem in rule(file)]
    assert broken == []


def test_files_are_short_in_the_middle_too() -> None:
    lengths = [len(file.source.splitlines()) for file in files()]
    assert statistics.median(lengths) <= MEDIAN


def classes_of(file: File) -> list[str]:
    """Those that another module may import."""
    found = [node.name for node in ast.walk(ast.parse(file.source)) if isinstance(node, ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def twice(found: Iterable[File]) -> dict[str, list[str]]:
    """Each class name that stands in more than one place, and where."""
    places: dict[str, list[str]] = {}
    for file in found:
        for name in classes_of(file):
            places.setdefault(name, []).append(file.path)
    return {name: where for name, where in places.items() if len(where) > 1}


def test_the_tests_name_classes_after_what_they_are_too() -> None:
    files = sorted(Path(__file__).parent.rglob("*.py"))
    found = [names_things_after_what_they_are(File(path.name, path.read_text(encoding="utf-8"))) for path in files]
    assert not list(chain.from_iterable(found))


def test_no_two_classes_have_one_name() -> None:
    """Who reads a name knows which class it is, without looking where it was imported from."""
    assert twice(files()) == {}
    planted = [File("core/x.py", "class Thing: ..."), File("net/y.py", "class Thing: ...\nclass _Own: ...")]
    assert twice([*planted, File("text/z.py", "class _Own: ...")]) == {"Thing": ["core/x.py", "net/y.py"]}


# The package's version is used everywhere; its own imports of runtime wait until they are needed.
TOP = ({"turnout", "config"}, {"turnout", "runtime"})


def test_the_table_has_no_way_back_up() -> None:
    """If a may import b, b may not import a: the rooms are storeys."""
    for room, below in MAY_IMPORT.items():
        for other in below - {room}:
            assert room not in MAY_IMPORT[other] or {room, other} in TOP, (room, other)


def test_every_room_of_the_design_is_in_the_table() -> None:
    designed = (
        "core text layers config profiles net models search store learn explain runtime apps web console cli testing"
    )
    assert set(MAY_IMPORT) == {*designed.split(), "turnout"}
    assert {file.room for file in files()} <= set(MAY_IMPORT)


class PlantedCase(NamedTuple):
    id: str
    rule: Rule
    path: str
    source: str
    found: int


IMPORTS, SOCKET, SQLS = keeps_the_import_table, opens_sockets_only_in_net, writes_sql_only_in_store_and_search
TIME, EXCEPT, FOREIGN = does_nothing_when_imported, catches_only_what_it_means, runs_no_foreign_code
NAMES, DOC, PRINT = names_things_after_what_they_are, says_what_it_is_for, prints_only_in_the_cli
PLANTED = [
    PlantedCase("core imports text", IMPORTS, "core/x.py", "from turnout.text import fold", 1),
    PlantedCase("core imports text, relatively", IMPORTS, "core/x.py", "from ..text.fold import fold", 1),
    PlantedCase(
        "core imports config, deep inside", IMPORTS, "core/x.py", "def f():\n    import turnout.config.load", 1
    ),
    PlantedCase("core imports the package", IMPORTS, "core/x.py", "import turnout", 1),
    PlantedCase(
        "core imports itself", IMPORTS, "core/x.py", "from .query import Query\nfrom turnout.core import errors", 0
    ),
    PlantedCase("text imports core", IMPORTS, "text/x.py", "from turnout.core.query import Query", 0),
    PlantedCase("layers import config", IMPORTS, "layers/x.py", "from turnout.config import load", 1),
    PlantedCase("config imports layers", IMPORTS, "config/x.py", "from turnout import layers", 0),
    PlantedCase("config imports the package", IMPORTS, "config/x.py", "from turnout import Router", 1),
    PlantedCase("net imports store", IMPORTS, "net/x.py", "import turnout.store.sqlite", 1),
    PlantedCase("models import net", IMPORTS, "models/x.py", "from turnout.net import client", 0),
    PlantedCase("models import learn", IMPORTS, "models/x.py", "from turnout.learn import fit", 1),
    PlantedCase("apps import server", IMPORTS, "apps/study/x.py", "from turnout.web import auth", 1),
    PlantedCase("apps import one another", IMPORTS, "apps/study/x.py", "from turnout.apps.gateway import chain", 1),
    PlantedCase("apps import one another, relatively", IMPORTS, "apps/study/x.py", "from ..gateway import chain", 1),
    PlantedCase(
        "an app imports itself",
        IMPORTS,
        "apps/study/x.py",
        "from .ask import ask\nfrom turnout.apps.study import ask",
        0,
    ),
    PlantedCase("the web imports the console", IMPORTS, "web/x.py", "from turnout.console import page", 1),
    PlantedCase("cli imports the server", IMPORTS, "cli/x.py", "from turnout.web import app", 0),
    PlantedCase("cli serves the console", IMPORTS, "cli/x.py", "from turnout.console import page", 0),
    PlantedCase("the console imports cli", IMPORTS, "console/x.py", "from turnout.cli import draw", 1),
    PlantedCase("anything imports testing", IMPORTS, "cli/x.py", "from turnout.testing import make_router", 1),
    PlantedCase("testing imports the server", IMPORTS, "testing/x.py", "from turnout.web import app", 1),
    PlantedCase("testing imports apps", IMPORTS, "testing/x.py", "from turnout.apps.study import ask", 0),
    PlantedCase("the package imports layers", IMPORTS, "__init__.py", "from .layers import rules", 1),
    PlantedCase("the package imports core", IMPORTS, "__init__.py", "from .core.query import Query", 0),
    PlantedCase("a new room", IMPORTS, "utils/x.py", "", 1),
    PlantedCase("others are not ours", IMPORTS, "core/x.py", "import turnout_extra\nimport msgspec", 0),
    PlantedCase("socket", SOCKET, "models/x.py", "import socket", 1),
    PlantedCase("urllib.request", SOCKET, "config/x.py", "from urllib.request import urlopen", 1),
    PlantedCase("urllib", SOCKET, "config/x.py", "from urllib import request", 1),
    PlantedCase("urllib.parse", SOCKET, "config/x.py", "from urllib.parse import urlsplit\nimport urllib.parse", 0),
    PlantedCase("http.client", SOCKET, "web/x.py", "import http.client", 1),
    PlantedCase("http.HTTPStatus", SOCKET, "web/x.py", "from http import HTTPStatus", 0),
    PlantedCase("httpx, inside a function", SOCKET, "layers/x.py", "def f():\n    import httpx", 1),
    PlantedCase(
        "asyncio's own", SOCKET, "apps/x.py", "import asyncio\nasync def f(): await asyncio.open_connection('x', 1)", 1
    ),
    PlantedCase("net may", SOCKET, "net/x.py", "import socket, ssl, aiohttp", 0),
    PlantedCase("select", SQLS, "apps/x.py", "q = 'SELECT id FROM decisions'", 1),
    PlantedCase("select, lower case, over lines", SQLS, "apps/x.py", 'q = """\n  select *\n  from x where 1"""', 1),
    PlantedCase("insert", SQLS, "web/x.py", "db.execute('insert or ignore into x values (?)')", 1),
    PlantedCase("in an f-string", SQLS, "web/x.py", "q = f'DELETE FROM {table}'", 1),
    PlantedCase("create", SQLS, "learn/x.py", "q = 'create virtual table x using fts5'", 1),
    PlantedCase("pragma", SQLS, "learn/x.py", "q = 'PRAGMA optimize'", 1),
    PlantedCase("sqlite3", SQLS, "core/x.py", "import sqlite3", 1),
    PlantedCase("documentation may", SQLS, "core/x.py", '"""select x from y"""\nx = 1\n"""delete from z"""', 0),
    PlantedCase(
        "prose may", SQLS, "core/x.py", "t = 'choose one from the list'; u = 'updates the set'; v = 'select a route'", 0
    ),
    PlantedCase("store may", SQLS, "store/x.py", "import sqlite3\nq = 'SELECT 1 FROM x'", 0),
    PlantedCase("open", TIME, "core/x.py", "x = open('f').read()", 1),
    PlantedCase("read_text", TIME, "core/x.py", "from pathlib import Path\nx = Path('f').read_text()", 1),
    PlantedCase("in a class", TIME, "core/x.py", "class A:\n    x = open('f')", 1),
    PlantedCase("in a default", TIME, "core/x.py", "def f(x=open('f')): pass", 1),
    PlantedCase("in a decorator", TIME, "core/x.py", "@g(open('f'))\ndef f(): pass", 1),
    PlantedCase("in a condition", TIME, "core/x.py", "import os\nif os.getenv('X'):\n    y = 1", 1),
    PlantedCase("the environment", TIME, "core/x.py", "import os\nx = os.environ['X']", 1),
    PlantedCase("requests", TIME, "core/x.py", "import requests\nrequests.get('x')", 1),
    PlantedCase("in a function", TIME, "core/x.py", "import os\ndef f():\n    return open(os.environ['X'])", 0),
    PlantedCase("in a lambda", TIME, "core/x.py", "f = lambda: open('f')", 0),
    PlantedCase("in a method", TIME, "core/x.py", "class A:\n    def f(self): open('f')", 0),
    PlantedCase("when run as a program", TIME, "cli/x.py", "if __name__ == '__main__':\n    open('f')", 0),
    PlantedCase("bare", EXCEPT, "core/x.py", "try: f()\nexcept: pass", 1),
    PlantedCase("Exception", EXCEPT, "net/x.py", "try: f()\nexcept Exception as e: pass", 1),
    PlantedCase("in a tuple", EXCEPT, "net/x.py", "try: f()\nexcept (ValueError, BaseException): pass", 1),
    PlantedCase("suppressed", EXCEPT, "net/x.py", "import contextlib\nwith contextlib.suppress(Exception): f()", 1),
    PlantedCase("builtins", EXCEPT, "net/x.py", "import builtins\ntry: f()\nexcept builtins.Exception: pass", 1),
    PlantedCase("named", EXCEPT, "net/x.py", "try: f()\nexcept (OSError, ValueError): pass", 0),
    PlantedCase("the driver may, once", EXCEPT, "core/router.py", "try: f()\nexcept Exception: pass", 0),
    PlantedCase(
        "but not twice", EXCEPT, "core/router.py", "try: f()\nexcept Exception: pass\ntry: f()\nexcept: pass", 1
    ),
    PlantedCase("pickle", FOREIGN, "learn/x.py", "import pickle", 1),
    PlantedCase("pickle, renamed", FOREIGN, "learn/x.py", "from pickle import loads as read", 1),
    PlantedCase("subprocess", FOREIGN, "cli/x.py", "def f():\n    import subprocess", 1),
    PlantedCase("eval", FOREIGN, "config/x.py", "eval('1')", 1),
    PlantedCase("exec", FOREIGN, "config/x.py", "exec('1')", 1),
    PlantedCase("os.system", FOREIGN, "config/x.py", "import os\nos.system('ls')", 1),
    PlantedCase("compile", FOREIGN, "config/x.py", "compile('1', '', 'eval')", 1),
    PlantedCase("re.compile may", FOREIGN, "config/x.py", "import re\nre.compile('x')", 0),
    PlantedCase("manager", NAMES, "net/x.py", "class PoolManager: pass", 1),
    PlantedCase("base", NAMES, "net/x.py", "class BaseLayer: pass", 1),
    PlantedCase(
        "participle", NAMES, "net/x.py", "class Routed: pass\nclass _Asked: pass\nclass RoutedQuestion: pass", 2
    ),
    PlantedCase("abstract, private", NAMES, "net/x.py", "class _AbstractThing: pass", 1),
    PlantedCase("info, inside", NAMES, "net/x.py", "def f():\n    class RouteInfo: pass", 1),
    PlantedCase(
        "basement and database", NAMES, "net/x.py", "class Basement: pass\nclass Database: pass\nclass Feed: pass", 0
    ),
    PlantedCase("no docstring", DOC, "net/x.py", "# a comment\nx = 1", 1),
    PlantedCase("empty docstring", DOC, "net/x.py", '""" """', 1),
    PlantedCase("docstring", DOC, "net/x.py", '"""What it is."""', 0),
    PlantedCase("force", changes_no_value, "models/x.py", "def f(x):\n    force_setattr(x, 'y', 1)", 1),
    PlantedCase("force, by hand", changes_no_value, "core/x.py", "def f(x):\n    object.__setattr__(x, 'y', 1)", 1),
    PlantedCase("the one cache", changes_no_value, "core/verdict.py", "def f(x):\n    force_setattr(x, 'y', 1)", 0),
    PlantedCase("asks a layer", asks_no_layer_what_it_has, "cli/x.py", "def f(p):\n    getattr(p.call, 'x', None)", 1),
    PlantedCase("asks whether", asks_no_layer_what_it_has, "core/x.py", "def f(layer):\n    hasattr(layer, 'x')", 1),
    PlantedCase("adapts", asks_no_layer_what_it_has, "core/layer.py", "def f(layer):\n    hasattr(layer, 'x')", 0),
    PlantedCase("print", PRINT, "core/x.py", "def f():\n    print('x')", 1),
    PlantedCase("stderr", PRINT, "core/x.py", "import sys\nsys.stderr.write('x')", 1),
    PlantedCase("cli may print", PRINT, "cli/x.py", "print('x')", 0),
    PlantedCase("too long", is_short, "core/x.py", "x = 1\n" * 601, 1),
    PlantedCase("just short enough", is_short, "core/x.py", "x = 1\n" * 600, 0),
]


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: f"{case.rule.__name__}-{case.id}")
def test_every_rule_can_fail(case: PlantedCase) -> None:
    found = list(case.rule(File(case.path, case.source)))
    assert len(found) == case.found, found
    assert all(case.path in problem for problem in found)


def test_every_rule_has_planted_mistakes() -> None:
    assert {case.rule for case in PLANTED if case.found} == set(RULES)
