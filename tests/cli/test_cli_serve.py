"""`turnout serve` as a user starts it: a real process, real sockets, signals; and every way in which it cannot."""

import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clean_environment import clear_environment

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clear_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TURNOUT_DB", str(tmp_path / "turnout.db"))


class Serving:
    """A started server, and what it has printed to invite people."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.welcome = ""
        assert process.stdout is not None
        for line in process.stdout:
            self.welcome += line
            if line.startswith("Ctrl+C"):
                return
        raise AssertionError(f"it did not start: {self.welcome}{process.communicate()[1]}")

    @property
    def url(self) -> str:
        found = re.search(r"listens on (\S+)", self.welcome)
        assert found is not None, self.welcome
        return found[1]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(20)


@contextlib.contextmanager
def started(*argv: str) -> Iterator[Serving]:
    command = [sys.executable, "-W", "error", "-m", "turnout.cli", "serve", "--admin-port", "0", *argv]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        try:
            yield Serving(process)
        finally:
            process.kill()


def test_what_it_says_to_try_works(run: Run) -> None:
    with started("--port", "0") as served:
        lines = served.welcome.splitlines()
        for wanted in ("profile  tiers", "demonstration model", "questions: full", "none is needed", "/metrics"):
            assert wanted in served.welcome
        commands = [shlex.split(line) for line in lines if line.strip().startswith("curl")]
        assert len(commands) == 2
        answers = [ask(words) for words in commands]
        assert "demonstration model" in answers[0]["choices"][0]["message"]["content"]
        assert answers[1]["route"] == "REASONING"
        assert f"OPENAI_BASE_URL={served.url}/v1" in served.welcome
        assert f"ANTHROPIC_BASE_URL={served.url} " in served.welcome
        assert served.stop() == 0
        assert served.process.stderr is not None
        assert served.process.stderr.read() == ""
    logged = run("log")
    assert "What is 2+2?" in logged.out
    assert "Prove it step by step" in logged.out


def ask(words: list[str]) -> Any:
    """What a curl line asks for, without curl."""
    url = next(word for word in words if word.startswith("http"))
    given = dict(word.split(": ", 1) for before, word in itertools.pairwise(words) if before == "-H")
    body = words[words.index("-d") + 1].encode()
    request = urllib.request.Request(url, body, given)  # noqa: S310 - loopback
    until = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - loopback
                return json.load(answer)
        except urllib.error.HTTPError as error:
            # A machine that is busy with other tests makes a server late, which then asks for a moment.
            if error.code != 503 or time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_a_port_that_is_taken_is_named_with_its_option(run: Run) -> None:
    with started("--port", "0") as served:
        taken = run("serve", "--port", str(served.port), "--admin-port", "0")
        assert (taken.code, taken.out) == (2, "")
        assert f"port {served.port} is taken on 127.0.0.1" in taken.err
        assert "--port N" in taken.err
        admin = run("serve", "--port", "0", "--admin-port", str(served.port))
        assert "--admin-port N" in admin.err


def test_one_port_cannot_be_both(run: Run) -> None:
    with started("--port", "0") as served:
        port = str(served.port)
        served.stop()
        ran = run("serve", "--port", port, "--admin-port", port)
    assert ran.code == 2
    assert "choose another --admin-port" in ran.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--port", "70000"), "Must be <= 65535"),
        (("--port", "x"), "--port"),
        (("--host", "0.0.0.0"), "turnout keys create NAME"),
        (("--profile", "teirs"), "did you mean 'tiers'?"),
        (("--config", "/no/such"), "/no/such: cannot be read"),
    ],
)
def test_what_it_cannot_do_is_a_sentence(run: Run, argv: tuple[str, ...], said: str) -> None:
    ran = run("serve", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_an_address_that_is_not_ours(run: Run) -> None:
    assert run("keys", "create", "somebody").code == 0
    ran = run("serve", "--host", "192.0.2.1", "--port", "0")
    assert ran.code == 2
    assert "192.0.2.1 is not an address of this machine: correct --host" in ran.err


def test_without_the_extra_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "granian"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "granian", None)
    monkeypatch.delitem(sys.modules, "turnout.web.serve", raising=False)
    ran = run("serve")
    assert ran.code == 2
    assert "the server needs granian: " in ran.err
    assert "pip install 'turnout[serve]'" in run("doctor").out


def test_with_a_key_the_line_to_try_has_its_place(run: Run) -> None:
    key = json.loads(run("keys", "create", "somebody", "--json").out)["key"]
    with started("--port", "0", "--host", "0.0.0.0") as served:
        assert "questions: hash" in served.welcome
        assert "one is needed" in served.welcome
        assert "list others as hosts" in served.welcome
        line = next(line for line in served.welcome.splitlines() if "curl" in line and "/v1/chat" in line)
        assert "//127.0.0.1:" in line
        answer = ask(shlex.split(line.replace("tno_…", key)))
        assert answer["model"] == "demo/demo"
        assert served.stop() == 0
