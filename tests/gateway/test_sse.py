"""A stream is read as the standard reads it, line by line, however its lines end and wherever it is cut."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from timing import is_linear
from turnout.core.errors import Broken
from turnout.models.wire.sse import EVENT_BYTES, Events


def plainly(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The events of a stream that is all here, read as the standard says it: one line after the other.

    A stream that ends within an event has no such event. What has neither name nor data is no event.
    """
    lines = re.split(rb"\r\n|\n|\r", stream)
    found: list[tuple[bytes, bytes]] = []
    name, data = b"", []
    for line in lines[:-1]:
        if not line:
            if name or data:
                found.append((name, b"\n".join(data)))
            name, data = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data":
            data.append(value)
    return found


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(stream)) for place in places} | {0, len(stream)})
    return [stream[start:end] for start, end in itertools.pairwise(ends)]


LINES = some.one_of(
    some.sampled_from([b"", b"", b"data: x", b"data: {}", b"data:y", b"data", b"event: ping", b": comment", b"id: 1"]),
    some.binary(max_size=5).map(lambda raw: b"data: " + raw.replace(b"\r", b"").replace(b"\n", b"")),
)
ENDS = some.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = some.lists(some.tuples(LINES, ENDS), max_size=14).map(lambda rows: b"".join(line + end for line, end in rows))
CUTS = some.lists(some.integers(0, 80), max_size=20)


@given(STREAMS, CUTS)
@example(b"data: a\n\r\ndata: b\r\n\n", [])
@example(b"data: a\n\r\n", [9])
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [10])
@example(b"data: a\rdata: b\n\n", [])
@example(b"data: a\r\rdata: b\r\r", [8, 9])
def test_any_line_ends_cut_anywhere_are_the_same_events(stream: bytes, places: list[int]) -> None:
    events = Events()
    found = [event for chunk in cut(stream, places) for event in events.feed(chunk)]
    assert [(event.name, event.data) for event in found if event.name or event.data] == [
        (name, data) for name, data in plainly(stream) if name or data
    ]
    read = b"".join(event.raw for event in found)
    assert stream == read + bytes(events._rest), "byte for byte, and nothing twice"


@pytest.mark.parametrize("ends", [b"\n\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"\r\n\n", b"\n\r", b"\r\n\r"])
def test_a_blank_line_ends_an_event_at_once(ends: bytes) -> None:
    """The next byte may not come for minutes."""
    events = Events()
    (found,) = events.feed(b"data: here" + ends)
    assert (found.data, found.raw) == (b"here", b"data: here" + ends)


@pytest.mark.parametrize("piece", [b"\r\n", b"\r", b"\n", b"x\r\n"], ids=repr)
def test_a_long_event_takes_linear_time(piece: bytes) -> None:
    def feed(size: int) -> None:
        events = Events()
        for _ in range(size):
            events.feed(b"data: 0123456789" + piece)

    assert is_linear(lambda: feed(2_000), lambda: feed(16_000), most=24.0, grain=0.002)


def test_an_event_without_end_is_refused() -> None:
    events = Events()
    assert events.feed(b"x" * EVENT_BYTES) == []
    with pytest.raises(Broken, match="longer than"):
        events.feed(b"x")
