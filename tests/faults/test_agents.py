"""What runs the coding agents can be relied on: it notices what it must, kills what hangs, and says what it skips. The
agents themselves run in `soak.py`; a stand-in with their ways runs here."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from faults import agents, soak
from faults.agents import AGENTS, CLAUDE_CODE, PAGES, PINNED, ROUNDS, Round, play, run, settings_of
from faults.asking import ask, request
from faults.tap import DeadEnd, Tap, calls_in
from turnout.testing import Reply, ScriptedProvider

# Asks, does what it is told, says what it is told: an agent in thirty lines.
STAND_IN = """
import json, os, sys, time, urllib.request
way = "{way}"
base, key = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_AUTH_TOKEN"]
messages = [dict(role="user", content=sys.argv[-1])]
tools = [dict(name="Read", input_schema=dict(type="object"))]

def ask():
    model = "SIMPLE" if way == "names a tier" else os.environ["ANTHROPIC_MODEL"]
    body = dict(model=model, max_tokens=100, messages=messages, tools=tools)
    headers = {{"content-type": "application/json", "authorization": f"Bearer {{key}}"}}
    request = urllib.request.Request(f"{{base}}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["content"]

if way == "calls home":
    try:
        urllib.request.urlopen("http://telemetry.example/")
    except OSError:
        pass
said = ask()
call = next(block for block in said if block["type"] == "tool_use")
content = open(call["input"]["file_path"]).read()
result = dict(type="tool_result", tool_use_id=call["id"], content=content)
given = [result] + ([dict(type="text", text="and prove it step by step")] if way == "adds words" else [])
messages += [dict(role="assistant", content=said), dict(role="user", content=given)]
text = ask()[0]["text"]
print("I do not know" if way == "forgets" else text)
sys.exit(3 if way == "fails" else 0)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    folder = tmp_path / "round"
    folder.mkdir()
    return folder


def stand_in(folder: Path, way: str) -> Round:
    script = folder.parent / "agent.py"
    script.write_text(STAND_IN.format(way=way), encoding="utf-8")
    return Round(CLAUDE_CODE._replace(command=(sys.executable, str(script))), budget=way == "has a budget")


@pytest.mark.parametrize("way", ["as it should", "has a budget"])
def test_an_agent_that_does_as_it_should(place: Path, way: str) -> None:
    told = play(place, stand_in(place, way), place)
    assert told.startswith("Read run, SIMPLE by signals, then pinned; simple answered; 2 x POST /v1/messages, ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "noticed"),
    [
        ("calls home", "it wanted of other hosts: ['GET http://telemetry.example/ HTTP/1.1']"),
        ("names a tier", "it did not ask for `auto`"),
        ("adds words", "not one decision and one pin"),
        ("forgets", "its answer does not have the word of the file"),
        ("fails", "it ended with 3"),
    ],
)
def test_what_an_agent_must_not_do_is_noticed(place: Path, way: str, noticed: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(noticed)) as raised:
        play(place, stand_in(place, way), place)
    if way == "forgets":
        assert "--- stdout\nI do not know" in str(raised.value), "its output is shown"


def test_what_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    child = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    began = time.monotonic()
    ran = run([sys.executable, "-c", child], os.environ, tmp_path, tmp_path, longest_s=2.0)
    assert time.monotonic() - began < 30
    assert ran.code == -9
    assert ran.told.endswith("killed: still running after 2 s")
    until = time.monotonic() + 10
    while is_alive(int(ran.said)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_alive(int(ran.said)), "what it started lives on"


def is_alive(pid: int) -> bool:
    try:
        # A process that has ended and that nobody has asked about is still listed.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not agents.loopback_only(), reason="no namespaces here")
def test_in_a_network_of_its_own_only_loopback_answers() -> None:
    code = (
        "import socket; from faults.agents import raise_loopback; raise_loopback();"
        "s = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(s.getsockname()); print('inside');"
        "socket.create_connection(('192.0.2.1', 9), timeout=5)"
    )
    command = [*agents.loopback_only(), sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=PINNED.parent, check=False)
    assert ran.stdout == "inside\n", ran.stderr
    assert "Network is unreachable" in ran.stderr


def test_without_npm_the_agents_are_skipped_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["soak", "--only", "agents"])
    assert soak.main() == 0
    told = capsys.readouterr().out
    assert told.count("agents skipped: node and npm not found; install Node.js") == 2, "as it happens, and at the end"
    assert "apt install nodejs npm" in told
    assert "0 failures, 1 skipped" in told


def test_an_installation_that_fails_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("npm", "node"):
        (tmp_path / name).write_text("#!/bin/sh\necho the registry is away >&2\nexit 7\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["soak", "--only", "agents"])
    assert soak.main() == 1
    told = capsys.readouterr().out
    assert "npm install --no-fund --no-audit" in told
    assert "ended with 7" in told
    assert "the registry is away" in told


# --- what is pinned, and what the pages say


def test_versions_are_exact_and_no_host_is_named() -> None:
    wanted = json.loads((PINNED / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert set(wanted) == {agent.package for agent in AGENTS}
    lock = (PINNED / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock
    assert "://" not in lock
    packages = json.loads(lock)["packages"]
    assert packages.pop("")["dependencies"] == wanted
    for name, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        assert packages[f"node_modules/{name}"]["version"] == version
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_page_names_the_version_and_the_settings_that_are_run(agent: agents.Agent) -> None:
    page = (PAGES / agent.page).read_text(encoding="utf-8")
    assert f"`make soak` tests this page: it installs version {agent.version} from npm" in " ".join(page.split())
    variables, file = settings_of(agent, "http://127.0.0.1:1")
    assert agent.key in variables
    assert "http://127.0.0.1:1" in f"{variables}{file}"
    assert "8401" not in f"{variables}{file}"
    assert bool(agent.settings) is bool(file)


def test_every_agent_runs_with_and_without_a_budget() -> None:
    answered = {(one.agent.name, one.budget) for one in ROUNDS if not one.refused}
    assert answered == {(agent.name, budget) for agent in AGENTS for budget in (False, True)}


# --- the tap


def test_a_tap_passes_everything_on_and_keeps_what_was_sent() -> None:
    with ScriptedProvider.in_thread(Reply("hello")) as provider, Tap(provider.origin) as tap:
        assert b"hello" in asyncio.run(ask(tap.url, request("openai-chat", "hi", model="auto"))).body
    (call,) = tap.calls()
    assert (call.method, call.path, call.body["model"]) == ("POST", "/v1/chat/completions", "auto")


def test_requests_of_one_connection_are_told_apart() -> None:
    first, second = b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", b"HEAD /b HTTP/1.1\r\nhost: x\r\n\r\n"
    found = [(one.method, one.path, one.body) for one in calls_in(first + second)]
    assert found == [("POST", "/a", {}), ("HEAD", "/b", None)]
    chunked = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    for bad in (first[:-1], b"POST /a HTTP/1.1\r\n", chunked):
        with pytest.raises(AssertionError):
            calls_in(bad)


def test_a_dead_end_refuses_and_writes_down() -> None:
    with DeadEnd() as outside:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": outside.variables()["HTTP_PROXY"]}))
        with pytest.raises(urllib.error.HTTPError, match="403"):
            opener.open("http://example.org/x")
    assert outside.wanted == ["GET http://example.org/x HTTP/1.1"]
