"""An application of another package: its routes, its events, its account and its command, with no change to ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from secured_server import call
from serving import RunningServer, serving
from turnout import Decision, Query
from turnout.apps import app as app_module
from turnout.apps.app import ActingApp, Answer, AppCommand, Call, Route
from turnout.apps.caller import Caller
from turnout.apps.event import Done, Event, Failed, Token, write_events
from turnout.apps.ledger import Ledger
from turnout.cli import main
from turnout.runtime.runtime import Runtime


def spell(text: str) -> int:
    """Spell a word."""
    print("-".join(text))
    return 0


class Spelling:
    """What the test is about: the whole of an application."""

    name = "spelling"
    commands: ClassVar = (AppCommand("spell", spell),)

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.routes = (Route("POST", "/v1/spell", "ask", self.ask, asks=True),)

    async def ask(self, call: Call) -> Answer:
        """Spell a word."""
        query = Query(call.body.decode())
        decision = await call.decide(query, "study")
        events = write_events(self.act(decision, query, call.caller))
        return Answer(200, [(b"content-type", b"text/event-stream")], events)

    async def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncIterator[Event]:
        with Ledger(self.runtime.store, self.runtime.models.slots).open(decision, caller) as account:
            for letter in query.text:
                if letter == "!":
                    account.ended = "failed"
                    yield Failed("that is no letter")
                    return
                await asyncio.sleep(0)
                yield Token(letter)
            account.ended = "answered"
            yield Done(decision.route)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("spelling", f"{__name__}:Spelling", app_module.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Spelling)
    monkeypatch.setattr(app_module, "entry_points", lambda *, group: [entry] if group == app_module.GROUP else [])


@pytest.fixture
def served(tmp_path: Path, installed: None) -> Iterator[RunningServer]:
    with serving(tmp_path, "") as found:
        yield found


def ended(served: RunningServer) -> list[tuple[str, str]]:
    """How the decisions of the log ended."""
    assert served.store.flush(10.0)
    records = served.store.records("")
    found = [(one.route, records.outcome(one.id)) for one in records.decisions()]
    return [(route, outcome.ended) for route, outcome in found if outcome is not None]


def test_it_is_one() -> None:
    made: ActingApp = Spelling(Runtime(config=""))
    assert made.name == "spelling"


@pytest.mark.parametrize(("text", "last", "how"), [("ab", "done", "answered"), ("a!", "failed", "failed")])
def test_it_is_served(served: RunningServer, text: str, last: str, how: str) -> None:
    got = call(served.url, "POST", "/v1/spell", text.encode())
    events = [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: ")]
    assert (got.status, events[0], events[-1]["event"]) == (200, {"event": "token", "text": "a"}, last)
    assert [one for _, one in ended(served)] == [how]


def test_it_is_in_the_document(served: RunningServer) -> None:
    document: Any = json.loads(call(served.url, "GET", "/openapi.json", None).body)
    assert document["paths"]["/v1/spell"]["post"]["summary"] == "Spell a word."


def test_its_command_runs(installed: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spell", "abc"]) == 0
    assert capsys.readouterr().out == "a-b-c\n"
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert "Applications" in told
    assert "Spell a word." in told
