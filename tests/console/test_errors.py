"""What goes wrong, in a real browser: each is a sentence in its place, and what can go on does."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from clean_environment import clear_environment
from console.browsing import PATIENCE_S, BrowsedPage, browsing
from console.conftest import OWN
from console.test_frame import FORM
from secured_server import PEPPER, RawResponse, call, forget, make_key
from serving import RunningServer, serving
from turnout.console.console import Console
from turnout.testing import ScriptedProvider
from turnout.testing.reply import ScriptedReply
from turnout.web.auth import SCOPES

# No file of the server's may be larger: a disk that is full, for one process.
ROOM = 1_500_000
SERVE = """import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
from turnout.cli import main
sys.exit(main(["serve", "--port", "{port}", "--admin-port", "0"]))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    yield page
    context.close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def process(folder: Path, port: int, room: int = 2**40) -> Iterator[str]:
    """`turnout serve`, with so much room for each file."""
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", SERVE.format(room=room, port=port)]
    with (folder / "said.txt").open("w") as said:
        running = subprocess.Popen(command, stdout=said, stderr=said, cwd=folder)
        try:
            until = time.monotonic() + 60
            while "listens" not in (folder / "said.txt").read_text():
                assert running.poll() is None, (folder / "said.txt").read_text()
                assert time.monotonic() < until
                time.sleep(0.1)
            yield url
        finally:
            running.terminate()
            running.wait(30)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    clear_environment(monkeypatch, tmp_path)
    (tmp_path / "turnout.toml").write_text("[server]\nlag_s = 60.0\ndrain_s = 1.0\n")
    monkeypatch.setenv("TURNOUT_CONFIG", str(tmp_path / "turnout.toml"))
    monkeypatch.setenv("TURNOUT_DB", str(tmp_path / "turnout.db"))
    return tmp_path


@pytest.mark.long
def test_a_server_that_is_gone_and_comes_back(tab: Any, home: Path) -> None:
    port = free_port()
    with process(home, port) as url:
        tab.goto(f"{url}/decisions")
        seen = BrowsedPage(tab, url, "wide")
        seen.follows()
        call(url, "POST", "/v1/route", {"text": "before it went"})
        seen.says("before it went", "#rows")
    seen.says("The server does not answer: the list is not live.", "#told")
    seen.keep("error-server-down")
    # What is asked of it is said, too.
    tab.get_by_role("searchbox").fill("anything")
    seen.says("The server does not answer. Is it still running?", "#told")
    tab.get_by_role("searchbox").fill("")
    with process(home, port) as url:
        call(url, "POST", "/v1/route", {"text": "after it came back"})
        seen.says("after it came back", "#rows")
        tab.locator("#told:empty").wait_for(state="attached")
        assert tab.get_by_text("before it went").count() == 1


@pytest.fixture
def served(home: Path) -> Iterator[RunningServer]:
    with serving(home, "[server]\nlag_s = 60.0\n", pages=Console) as served:
        yield served


@pytest.mark.long
def test_a_session_that_ends_while_one_looks(tab: Any, served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.console.live.LIFE_S", 1.0)
    key = make_key(served.store, scopes=SCOPES)
    forget(served)
    got = call(served.url, "POST", "/login", urlencode({"key": key}).encode(), headers={**FORM, **OWN})
    cookie = got.headers["set-cookie"].partition(";")[0]
    name, _, value = cookie.partition("=")
    tab.context.add_cookies([{"name": name, "value": value, "url": served.url}])
    seen = BrowsedPage(tab, served.url, "wide")
    tab.goto(f"{served.url}/decisions")
    seen.follows()
    assert call(served.url, "POST", "/logout", b"", headers={**FORM, **OWN, "cookie": cookie}).status == 303
    # The list says so by itself, and where to go.
    seen.says("sign in with a key of this server", "#told")
    seen.keep("error-session-ended")
    tab.goto(f"{served.url}/playground")
    tab.wait_for_url(f"{served.url}/login")
    tab.keyboard.type(key)
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"{served.url}/")
    tab.goto(f"{served.url}/ask")
    served.store.keys.revoke(key[4:16])
    forget(served)
    tab.locator("#q").fill("when?")
    tab.keyboard.press("Enter")
    seen.says("no longer valid", "#told-here")
    tab.get_by_role("link", name="Sign in").press("Enter")
    tab.wait_for_url(f"{served.url}/login")


def test_a_model_that_takes_too_long(tab: Any, home: Path) -> None:
    docs = home / "docs"
    docs.mkdir()
    (docs / "client.md").write_text("# Client\n\nA request is retried three times.\n")
    with ScriptedProvider.in_thread() as provider:
        provider.default = ScriptedReply("too late", delay_s=20.0)
        text = "[server]\nlag_s = 60.0\ndrain_s = 0.2\n"
        for slot in ("main", "classifier", "conversational"):
            text += f'[models.{slot}]\nmodel = "fake/{slot}"\nbase_url = "{provider.base_url}"\nprivate = true\n'
            text += "first_token_s = 0.3\ntotal_s = 0.5\n"
        with serving(home, text, pages=Console) as served:
            seen = BrowsedPage(tab, served.url, "wide")
            tab.goto(f"{served.url}/study")
            tab.locator("#question").fill("Define osmosis")
            tab.keyboard.press("Enter")
            tab.locator("#told-here .error").wait_for()
            assert re.search(r"time|late|answer", tab.locator("#told-here").inner_text())
            assert tab.locator("[aria-busy]").count() == 0
            seen.keep("error-model-timeout")


def test_a_profile_that_is_not_one(tab: Any, served: RunningServer) -> None:
    seen = BrowsedPage(tab, served.url, "wide")
    tab.goto(f"{served.url}/profiles")
    tab.locator("#source").fill('extends = "tiers"\nroutess = ["A"]\n')
    tab.get_by_role("button", name="Validate").press("Enter")
    seen.says("did you mean", "#problems")
    seen.keep("error-invalid-profile")
    tab.locator("#source").fill('extends = "tiers"\n')
    tab.get_by_role("button", name="Validate").press("Enter")
    seen.says("Valid: tiers", "#problems")
    seen.check()


def _judge(url: str, ident: str) -> RawResponse:
    return call(url, "POST", f"/decisions/{ident}/correct", b"word=verdict%3Aright", headers={**FORM, **OWN})


@pytest.mark.long
def test_a_disk_that_is_full(tab: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNOUT_PEPPER", PEPPER)
    with process(home, free_port(), ROOM) as url:
        seen = BrowsedPage(tab, url, "wide")
        ident = call(url, "POST", "/v1/route", {"text": "the first"}).json["id"]
        tab.goto(f"{url}/decisions")
        seen.says("the first", "#rows")
        tab.goto(f"{url}/decisions/{ident}")
        # Routing goes on while the files fill up; then what cannot be written down is said.
        for number in range(200):
            assert call(url, "POST", "/v1/route", {"text": f"{number} " + "long words " * 8000}).status == 200
            if number % 10 == 0 and _judge(url, ident).status == 503:
                break
        tab.get_by_role("button", name="Right", exact=True).press("Enter")
        seen.says("the decision log cannot be used now", "#told")
        assert str(home) not in tab.locator("#told").inner_text()
        seen.keep("error-disk-full")
        for path in ("/", "/decisions", "/playground?text=hello", "/traffic?span=hour"):
            tab.goto(f"{url}{path}")
            assert tab.locator("h1").count() == 1
