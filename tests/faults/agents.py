"""Coding agents as people run them, against a gateway: Claude Code, Codex and opencode, each with a call of a tool.

Each is the one its page names, from npm, with the settings of its page, an empty home and a made-up key. Its model is
scripted: it asks for a file to be read, and then repeats the word that only this file has, if the agent sent it. The
network is loopback alone where the system can take the rest away (Linux), and everywhere what an agent wants of
another host goes to a proxy that writes it down and refuses.

    PYTHONPATH=tests python -m faults.soak --only agents
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from faults.tap import Call, DeadEnd, Tap
from faults.test_gateway_stop import running
from toml_router import LOCAL
from turnout.models.provider import WIRES
from turnout.testing import Received, Reply, ScriptedProvider, ToolCall

ROOT = Path(__file__).parent.parent.parent
PINNED = ROOT / "tests" / "agents"
PAGES = ROOT / "docs" / "how-to"
# What an agent may take; on two idle cores the slowest needs twelve seconds.
LONGEST_S = 120.0
# Hundreds of megabytes each, over whatever line there is.
INSTALL_S = 1800.0
# `simple` answers this, by what it says; what says nothing to the profile would be answered by `medium`.
QUESTION = "What is in note.txt?"
FILE = "note.txt"
WORD = re.compile(r"word-[0-9a-f]{16}")
GATEWAY = "http://127.0.0.1:8401"
BLOCK = re.compile(r"^<!-- agent -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPORT = re.compile(r"^export (\w+)=(\S+)", re.MULTILINE)
TIERS = ("simple", "medium", "complex", "reasoning")
SLOT = """
[models.{name}]
model = "scripted/{name}"
base_url = "{{url}}"
wires = {wires}
prices = {{{{ input_usd = 1.0, output_usd = 5.0 }}}}
{more}
"""


class Agent(NamedTuple):
    """How one is run without anybody at the keyboard."""

    name: str
    package: str
    page: str
    key: str
    """The variable its key is in."""
    path: str
    """Where it asks."""
    command: tuple[str, ...]
    tool: str
    arguments: Mapping[str, str]
    """Of the tool; `{file}` is the file it is to read."""
    settings: str = ""
    """Where it reads its settings, below its home."""

    @property
    def version(self) -> str:
        return str(json.loads((PINNED / "package.json").read_text(encoding="utf-8"))["dependencies"][self.package])


CLAUDE_CODE = Agent(
    "Claude Code",
    "@anthropic-ai/claude-code",
    "use-claude-code.md",
    "ANTHROPIC_AUTH_TOKEN",
    "/v1/messages",
    ("claude", "-p", "--allowedTools=Read"),
    "Read",
    {"file_path": "{file}"},
)
CODEX = Agent(
    "Codex",
    "@openai/codex",
    "use-codex.md",
    "TURNOUT_KEY",
    "/v1/responses",
    ("codex", "exec", "--skip-git-repo-check", "--sandbox=danger-full-access"),
    "exec_command",
    {"cmd": "cat {file}"},
    ".codex/config.toml",
)
OPENCODE = Agent(
    "opencode",
    "opencode-ai",
    "use-opencode.md",
    "TURNOUT_KEY",
    "/v1/chat/completions",
    ("opencode", "run"),
    "read",
    {"filePath": "{file}"},
    ".config/opencode/opencode.json",
)
AGENTS = (CLAUDE_CODE, CODEX, OPENCODE)


class Round(NamedTuple):
    """One run of an agent."""

    agent: Agent
    name: str = "no key"
    budget: bool = False
    slot: str = ""
    """More of every slot."""
    edit: tuple[str, str] = ("", "")
    """What the settings of its page have, and what they have instead."""
    refused: str = ""
    """It is not to be answered, and says this."""


WITH_ANTHROPIC = OPENCODE._replace(path="/v1/messages")
WITH_RESPONSES = OPENCODE._replace(path="/v1/responses")
NO_SEARCH = ('model = "auto"\n', 'model = "auto"\nweb_search = "disabled"\n')
ROUNDS = (
    Round(CLAUDE_CODE),
    Round(CLAUDE_CODE, "a key with a budget", budget=True),
    Round(CODEX),
    Round(CODEX, "a key with a budget", budget=True, refused="hosted_tools_usd"),
    Round(CODEX, "a key with a budget, no web search", budget=True, edit=NO_SEARCH),
    Round(CODEX, "a key with a budget, web search allowed for", budget=True, slot="hosted_tools_usd = 0.05"),
    Round(OPENCODE),
    Round(OPENCODE, "a key with a budget", budget=True),
    Round(WITH_ANTHROPIC, "Anthropic's format", edit=("@ai-sdk/openai-compatible", "@ai-sdk/anthropic")),
    Round(WITH_RESPONSES, "OpenAI's responses", edit=("@ai-sdk/openai-compatible", "@ai-sdk/openai")),
)


class Row(NamedTuple):
    """A decision, and how it ended."""

    session: str
    route: str
    by: str
    reasons: tuple[str, ...]
    ended: str | None
    slot: str | None
    pinned: str | None
    cost_usd: float | None


class AgentRun(NamedTuple):
    """What an agent did."""

    code: int
    said: str
    """Its standard output: the answer."""
    told: str
    """Everything else it wrote."""
    seconds: float


# --- on this machine


def missing() -> str:
    """Why the agents cannot be run, and what to do about it; empty if they can."""
    absent = [name for name in ("node", "npm") if shutil.which(name) is None]
    if not absent:
        return ""
    told = "apt install nodejs npm, or brew install node, or https://nodejs.org"
    return f"agents skipped: {' and '.join(absent)} not found; install Node.js 20 or newer with npm ({told})"


def install() -> Path:
    """The folder with the agents, made once for each lock file, outside of the tree."""
    lock = (PINNED / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "turnout" / f"agents-{hashlib.sha256(lock).hexdigest()[:16]}"
    done = folder / "installed"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINNED / name, folder / name)
    command = ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error"]
    ran = run(command, os.environ, folder, folder, INSTALL_S)
    if ran.code != 0:
        raise AssertionError(f"{' '.join(command)} in {folder} ended with {ran.code}:\n{ran.said}{ran.told}")
    done.touch()
    return folder


def loopback_only() -> list[str]:
    """What a command is begun with so that it has no network but loopback, and so that what it leaves behind ends with
    it, were it in a session of its own; as much of that as can be had here."""
    network = ["unshare", "--map-root-user", "--net"]
    with suppress(FileNotFoundError):
        for command in ([*network, "--pid", "--fork", "--kill-child", "--mount-proc"], network):
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
    return []


def raise_loopback() -> None:
    """A new network has it, and has it down."""
    up_and_running = 0x1 | 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", up_and_running))  # SIOCSIFFLAGS


# --- one agent


def run(command: list[str], env: Mapping[str, str], cwd: Path, folder: Path, longest_s: float = LONGEST_S) -> AgentRun:
    """A program to its end, or to its time's; whatever it has started is gone afterwards."""
    began = time.monotonic()
    outputs = [folder / "stdout", folder / "stderr"]
    with outputs[0].open("wb") as said, outputs[1].open("wb") as told:
        process = subprocess.Popen(
            command, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=said, stderr=told, start_new_session=True
        )
        late = ""
        try:
            process.wait(longest_s)
        except subprocess.TimeoutExpired:
            late = f"\nkilled: still running after {longest_s:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said_text, told_text = (file.read_text(encoding="utf-8", errors="replace") for file in outputs)
    return AgentRun(process.returncode, said_text, told_text + late, time.monotonic() - began)


def settings_of(agent: Agent, url: str) -> tuple[dict[str, str], str]:
    """The variables and the settings its page names, for this server."""
    page = (PAGES / agent.page).read_text(encoding="utf-8")
    variables: dict[str, str] = {}
    file = ""
    for language, body in BLOCK.findall(page):
        told = body.replace(GATEWAY, url)
        if language == "sh":
            variables |= dict(EXPORT.findall(told))
        else:
            file += told
    return variables, file


def model_of(agent: Agent, file: Path) -> Any:
    """A model that has the file read, and repeats the word in it if it is shown one."""
    arguments = {name: value.format(file=file) for name, value in agent.arguments.items()}

    def answer(request: Received) -> Reply:
        found = WORD.search(request.raw.decode("utf-8", "replace"))
        if found is not None:
            return Reply(f"It says {found[0]}.", usage=(900, 20))
        offered = request.body.get("tools") or ()
        names = [tool.get("name") or tool.get("function", {}).get("name") for tool in offered]
        if agent.tool in names:
            return Reply(tools=[ToolCall(agent.tool, arguments)], usage=(800, 20))
        return Reply("A note", usage=(100, 5))

    return answer


def play(installed: Path, played: Round, folder: Path) -> str:
    """Run it and hold it to what it must do; a sentence about it."""
    agent, word = played.agent, f"word-{secrets.token_hex(8)}"
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    (work / FILE).write_text(f"The word is {word}.\n", encoding="utf-8")
    slots = "".join(SLOT.format(name=tier, wires=json.dumps(list(WIRES)), more=played.slot) for tier in TIERS)
    server = f'[server]\nprofile = "{LOCAL}"\ndrain_s = {{drain_s}}\nlag_s = 60.0\n{slots}'
    key = made_key(folder) if played.budget else "none"
    with (
        ScriptedProvider.in_thread(model_of(agent, work / FILE)) as provider,
        running(folder, provider, settings=server) as served,
        Tap(served.url) as tap,
        DeadEnd() as outside,
    ):
        variables, file = settings_of(agent, tap.url)
        if agent.settings:
            assert not played.edit[0] or played.edit[0] in file, f"{agent.page} does not have {played.edit[0]!r}"
            target = home / agent.settings
            target.parent.mkdir(parents=True)
            target.write_text(file.replace(*played.edit) if played.edit[0] else file, encoding="utf-8")
        if agent.package == OPENCODE.package:
            without_plugins(home)
        path = f"{installed / 'node_modules' / '.bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        env = {"PATH": path, "HOME": str(home), "TMPDIR": str(folder), "TERM": "dumb", "LANG": "C.UTF-8"}
        env |= outside.variables() | variables | {agent.key: key}
        ran = run([*agent.command, QUESTION], env, work, folder)
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(30)
        rows = rows_of(folder / "turnout.db")
        try:
            return hold(played, ran, word, tap.calls(), provider.requests, outside.wanted, rows)
        except AssertionError as error:
            output = f"--- stdout\n{ran.said}\n--- stderr\n{ran.told}"
            raise AssertionError(f"{error}\n{rows}\n{tap.calls()}\n{output}") from None


def hold(
    played: Round,
    ran: AgentRun,
    word: str,
    calls: list[Call],
    upstream: list[Received],
    outside: list[str],
    rows: list[Row],
) -> str:
    """Every promise, one after the other; raises AssertionError for the first that is broken."""
    agent = played.agent
    asked = [call for call in calls if (call.method, call.path.partition("?")[0]) == ("POST", agent.path)]
    others = Counter(f"{call.method} {call.path}" for call in calls if call not in asked)
    assert not outside, f"it wanted of other hosts: {outside}"
    assert {call.body.get("model") for call in asked} == {"auto"}, "it did not ask for `auto`"
    also = f"; also {', '.join(f'{what} x{count}' for what, count in others.items())}" if others else ""
    took = f"{len(asked)} x POST {agent.path}{also}, {ran.seconds:.1f} s"
    if played.refused:
        assert ran.code != 0, "it did not notice that it was refused"
        assert played.refused in ran.said + ran.told, f"it does not say {played.refused!r}"
        assert not upstream, "a provider was asked"
        assert {row.ended for row in rows} == {"refused"}, "not every request was written down as refused"
        return f"refused, and it says why ({played.refused}); {took}"
    assert ran.code == 0, f"it ended with {ran.code}"
    assert word in ran.said, "its answer does not have the word of the file"
    assert len(rows) == len(asked) == len(upstream), "not one decision and one call of a provider for each request"
    assert {row.ended for row in rows} == {"answered"}, "not every request was answered"
    conversation = next((row.session for row in rows if row.pinned), None)
    turns = [row for row in rows if row.session == conversation]
    decided = [(row.by, row.pinned) for row in turns]
    assert decided == [("signals", None), ("pin", "turn")], f"not one decision and one pin, but {decided}"
    assert turns[1].reasons == ("pin.turn",), "the tool's result was decided about"
    assert {row.slot for row in turns} == {"simple"}, f"another slot than `simple` answered {QUESTION!r}"
    assert [one.body["model"] for one in upstream].count("simple") >= 2, "the slot's model was not asked"
    assert not played.budget or all(row.cost_usd for row in rows), "what it cost was not written down"
    return f"{agent.tool} run, {turns[0].route} by {turns[0].by}, then pinned; {turns[1].slot} answered; {took}"


def without_plugins(home: Path) -> None:
    """opencode fetches the package plugins are written with, unless it is there; nothing here is a plugin."""
    folder = home / Path(OPENCODE.settings).parent
    (folder / "node_modules").mkdir()
    there = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (folder / "package-lock.json").write_text(json.dumps(there), encoding="utf-8")


def made_key(folder: Path) -> str:
    """A key with a budget that may ask for nothing but `auto`."""
    command = [sys.executable, "-m", "turnout.cli", "keys", "create", "agent", "--no-force", "--budget-usd", "5"]
    made = subprocess.run([*command, "--db", str(folder / "turnout.db")], capture_output=True, text=True, check=False)
    found = re.search(r"\btno_\S+", made.stdout)
    assert found is not None, made.stdout + made.stderr
    return found[0]


def rows_of(database: Path) -> list[Row]:
    query = """select d.session, d.route, d.decided_by, d.body, o.ended, o.slot, o.extra, o.cost_usd
               from decisions d left join outcomes o on o.decision_id = d.id order by d.id"""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found = connection.execute(query).fetchall()
    return [
        Row(
            session,
            route,
            by,
            tuple(reason["code"] for reason in json.loads(body)["reasons"]),
            ended,
            slot,
            json.loads(extra or "{}").get("pinned"),
            cost_usd,
        )
        for session, route, by, body, ended, slot, extra, cost_usd in found
    ]


# --- all of them


def agents(alone: list[str]) -> Iterator[str]:
    """Every round in a process that has loopback alone; its lines as they come."""
    yield "agents: the network is loopback alone" if alone else "agents: no network of their own; a proxy refuses"
    installed = install()
    command = [*alone, sys.executable, "-m", "faults.agents", str(installed), *(["--alone"] if alone else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT / "tests") as process:
        assert process.stdout is not None
        yield from (line.rstrip("\n") for line in process.stdout)
    if process.returncode not in (0, 1):
        yield f"FAILED: agents: their process ended with {process.returncode}"


@contextmanager
def surroundings() -> Iterator[Path]:
    """A folder for everything, and none of the runner's settings."""
    with tempfile.TemporaryDirectory(prefix="turnout-agents-", ignore_cleanup_errors=True) as folder:
        os.environ["XDG_DATA_HOME"] = f"{folder}/share"
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        for name in ("TURNOUT_CONFIG", "TURNOUT_DB", "TURNOUT_PEPPER"):
            os.environ.pop(name, None)
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("installed", type=Path, help="where npm has installed them")
    parser.add_argument("--alone", action="store_true", help="in a network of its own")
    parser.add_argument("--only", default="", help="rounds whose names have this in them")
    told = parser.parse_args()
    if told.alone:
        raise_loopback()
    failed = 0
    for number, played in enumerate(ROUNDS):
        name = f"{played.agent.name} {played.agent.version}, {played.name}"
        if told.only not in name:
            continue
        with surroundings() as folder:
            place = folder / str(number)
            place.mkdir()
            try:
                print(f"agents, {name}: {play(told.installed, played, place)}", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"FAILED: agents, {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
