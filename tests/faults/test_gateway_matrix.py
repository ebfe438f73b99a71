"""Every way a provider fails, at every moment of its answer, streaming or not, against a running server.

Each cell is asked twice: by way of a chain whose second slot works, and of the faulty slot alone. What cannot happen is
not in the table: nothing has been said before the headers, so neither half an event nor an error event can come there;
a content type is a header, and a port that refuses or a status precedes everything; an end comes after the deltas.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from faults.asking import ERROR, LAST, PATHS, HttpResponse, LoggedOutcome, Wire, ask, outcomes, request
from serving import RunningServer, serving
from turnout.net.circuit import Breaker, BreakerSettings
from turnout.testing import Fault, Reply, ScriptedProvider
from turnout.testing.fault import FaultKind, Window
from turnout.testing.reply import Received

GOOD = "A complete answer."
BAD = "One two three four."
# Time for a client that has the last byte to be told so, on two busy cores.
SLACK_S = 2.5
TOTAL_S = 2.0
SLOT = 'wires = ["openai-chat", "anthropic-messages", "openai-responses"]\nfirst_token_s = 1.0\nidle_s = 1.0\n'
SETTINGS = f"""
[server]
lag_s = 60.0
[models.simple]
model = "bad/one"
base_url = "%s"
total_s = {TOTAL_S}
{SLOT}
[models.medium]
model = "good/two"
base_url = "%s"
wires = ["openai-chat", "anthropic-messages", "openai-responses"]
"""


class Cell(NamedTuple):
    """What becomes of a request.

    - `next`: nothing has reached the client; the second slot answers, and alone the client gets this status.
    - `cut`: the client has a part, then an error in its own format, and no end.
    - `whole`: the answer is complete and clean.
    """

    outcome: Literal["next", "cut", "whole"]
    status: int = 502
    tries: int = 1
    """Of the faulty slot: a connection that breaks before it answers is tried again."""


class Row(NamedTuple):
    fault: FaultKind | Literal["refuse", "status"]
    at: Window
    reply: Reply
    plain: Cell
    stream: Cell

    @property
    def id(self) -> str:
        return f"{self.fault}{self.reply.status if self.fault == 'status' else ''}-{self.at}"


BEFORE, EARLY, LATE = "before_headers", "before_delta", "after_delta"
NEXT, CUT, WHOLE = Cell("next"), Cell("cut"), Cell("whole")
AGAIN = Cell("next", tries=2)
SLOW = Cell("next", 504)


def row(fault: FaultKind, at: Window, plain: Cell, stream: Cell, *, seconds: float | None = None) -> Row:
    # Two deltas, and time for the first to be passed on: until it is, the next slot can still answer.
    return Row(
        fault, at, Reply(BAD, fault=Fault(fault, at, after=2, seconds=seconds), chunk_delay_s=0.05), plain, stream
    )


ROWS = (
    Row("refuse", BEFORE, Reply(), AGAIN, AGAIN),
    Row("status", BEFORE, Reply("busy", status=429), Cell("next", 429), Cell("next", 429)),
    Row("status", BEFORE, Reply("broken", status=500), NEXT, NEXT),
    Row("status", BEFORE, Reply("overloaded", status=503), NEXT, NEXT),
    row("reset", BEFORE, AGAIN, AGAIN),
    row("reset", EARLY, NEXT, NEXT),
    row("reset", LATE, NEXT, CUT),
    row("wrong_type", BEFORE, NEXT, NEXT),
    row("half_json", EARLY, NEXT, NEXT),
    row("half_json", LATE, NEXT, CUT),
    row("error_event", EARLY, NEXT, NEXT),
    row("error_event", LATE, NEXT, CUT),
    row("cut", BEFORE, AGAIN, AGAIN),
    row("cut", EARLY, NEXT, NEXT),
    row("cut", LATE, NEXT, CUT),
    row("stall", BEFORE, SLOW, SLOW),
    row("stall", EARLY, SLOW, SLOW),
    row("stall", LATE, SLOW, CUT),
    row("drip", BEFORE, SLOW, SLOW, seconds=0.05),
    row("drip", EARLY, SLOW, SLOW, seconds=0.05),
    row("drip", LATE, SLOW, CUT, seconds=0.05),
    # A header block as fast as it can; then blanks, comments and deltas until time is up, too few to be too many.
    row("endless", BEFORE, NEXT, NEXT),
    row("endless", EARLY, SLOW, SLOW, seconds=0.001),
    row("endless", LATE, SLOW, CUT, seconds=0.001),
    row("duplicate_done", LATE, NEXT, WHOLE),
    row("big_event", BEFORE, NEXT, NEXT),
    # Ten megabytes are too much for an event, and not for a whole answer.
    row("big_event", EARLY, WHOLE, NEXT),
    row("big_event", LATE, WHOLE, CUT),
)


class Bench:
    """A server with a faulty slot and one that works; which fault it is, each question says itself."""

    def __init__(self, served: RunningServer, folder: Path, bad: ScriptedProvider, good: ScriptedProvider) -> None:
        self.served, self.folder, self.bad, self.good = served, folder, bad, good
        self.replies: dict[int, Reply] = {}
        self.number = itertools.count(1)
        bad.default = self._reply

    def _reply(self, received: Received) -> Reply:
        found = re.search(rb"cell (\d+)", received.raw)
        assert found is not None
        return self.replies[int(found[1])]

    async def ask(self, reply: Reply, wire: Wire, model: str, *, stream: bool) -> HttpResponse:
        number = next(self.number)
        self.replies[number] = reply
        return await ask(self.served.url, request(wire, f"This is cell {number}.", model=model, stream=stream))

    def written(self, got: HttpResponse) -> LoggedOutcome:
        return outcomes(self.served, self.folder)[got.headers["x-turnout-decision"]]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("matrix")
    with (
        ScriptedProvider.in_thread() as bad,
        ScriptedProvider.in_thread(Reply(GOOD)) as good,
        serving(folder, SETTINGS % (bad.base_url, good.base_url)) as served,
    ):
        # Dozens of failures are the point here, and that every one of them is tried again which may be.
        models = served.server.runtime.models
        lasting = Breaker(BreakerSettings(in_a_row=10**6, at_least=10**6))
        models.breakers[models.slots.slots["simple"].endpoint] = lasting
        served.server.runtime.models.retries.floor = 100
        yield Bench(served, folder, bad, good)


def ends(got: HttpResponse, wire: Wire) -> int:
    return got.body.count(LAST[wire])


def hold(bench: Bench, cell: Cell, wire: Wire, stream: bool, chained: HttpResponse, alone: HttpResponse) -> None:
    """What the table promises of one cell."""
    for got in (chained, alone):
        assert got.whole, "an answer that is cut is ended all the same"
        for place in (b"127.0.0.1", f":{bench.bad.port}".encode(), f":{bench.good.port}".encode()):
            assert place not in got.body, "where a provider is is the operator's to know"
            assert place not in repr(got.headers).encode()
        assert got.seconds < TOTAL_S + SLACK_S
    if cell.outcome == "next":
        assert chained.status == 200
        assert GOOD.rsplit(maxsplit=1)[-1].encode() in chained.body
        assert b"three" not in chained.body
        assert ERROR[wire] not in chained.body
        assert ends(chained, wire) == stream
        assert chained.headers["x-turnout-model"] == "good/two"
        assert chained.headers["x-turnout-attempts"] == str(cell.tries + 1)
        told = bench.written(chained)
        assert (told.ended, told.model, told.attempts) == ("answered", "good/two", cell.tries + 1)
        assert told.fallback == "bad/one did not answer"
        assert alone.status == cell.status
        kind = alone.json
        said = kind["error"]["message"]
        assert "bad/one" in said
        assert wire != "anthropic-messages" or kind["type"] == "error"
        told = bench.written(alone)
        assert (told.ended, told.model, told.attempts, told.fallback) == ("failed", None, cell.tries, None)
        return
    for got in (chained, alone):
        assert got.status == 200
        assert got.headers["x-turnout-model"] == "bad/one"
        told = bench.written(got)
        if cell.outcome == "whole":
            assert (told.ended, told.model, told.attempts) == ("answered", "bad/one", 1)
            assert b"four." in got.body
            assert ERROR[wire] not in got.body
            assert ends(got, wire) == stream
            assert not stream or got.body.rstrip().rpartition(b"\n\n")[2].startswith(LAST[wire])
        else:
            assert (told.ended, told.model, told.fallback) == ("failed", "bad/one", None)
            assert b"One" in got.body
            assert b"two" in got.body
            assert ends(got, wire) == 0
            last = got.body.rstrip(b"\n").rpartition(b"\n\n")[2] + b"\n"
            assert last.startswith(ERROR[wire]), last[:200]


@pytest.mark.alike(4)
@pytest.mark.parametrize("one", ROWS, ids=lambda one: one.id)
def test_a_failing_provider_is_replaced_or_reported(bench: Bench, one: Row) -> None:
    columns: list[tuple[Wire, bool]] = [("openai-chat", False)] + [(wire, True) for wire in PATHS]

    # Ten megabytes at a time are enough for what a first token may take here.
    room = asyncio.Semaphore(1 if one.fault == "big_event" else 8)

    async def cell(wire: Wire, stream: bool, model: str) -> HttpResponse:
        async with room:
            return await bench.ask(one.reply, wire, model, stream=stream)

    async def cells() -> list[HttpResponse]:
        return await asyncio.gather(*(cell(*column, model) for column in columns for model in ("SIMPLE", "bad/one")))

    if one.fault == "refuse":
        bench.bad.refuse()
    try:
        found = asyncio.run(cells())
    finally:
        if one.fault == "refuse":
            bench.bad.accept()
    for (wire, stream), chained, alone in zip(columns, found[::2], found[1::2], strict=True):
        hold(bench, one.stream if stream else one.plain, wire, stream, chained, alone)
    assert bench.served.server.admission.active == 0
    assert not bench.served.server.runtime.models.live
