"""What sources may not do: keep others waiting, and lead inward.

Two parts of four sources each, six of which never answer: when the first section is shown, when the answer is there,
and how many of the six it names. And addresses that lead to private places, in every spelling and behind names, given
to both classes of egress: how many connections were tried. They are refused before a socket is opened, and a watch on
the interpreter's own events counts those that are.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from apps.sources.asked import ask_plan, scripted
from net.loopback import WATCH, Names, client_for
from net.test_net_egress import DISGUISED, PRIVATE
from net.test_net_public import spelled
from turnout.apps.event import Section
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.desk import Desk
from turnout.apps.sources.plan import Plan, PlannedPart, PlannedSource
from turnout.core.errors import NetError
from turnout.net.client import Request
from turnout.net.deadline import Deadline
from turnout.net.public import PublicWeb, place_of
from turnout.testing.scripted_source import HANG

# The specification's bound on a caller's wait.
BOUND_S = 15.0
SOURCES = [f"s{number}" for number in range(8)]
HUNG = frozenset(("s0", "s1", "s3", "s4", "s6", "s7"))
# Where names lead that the payloads hold.
INWARD = ["10.0.0.1", "169.254.169.254"]


class Waited(NamedTuple):
    first_s: float
    whole_s: float
    named: int
    """Of the six."""


class Tried(NamedTuple):
    addresses: int
    opened: int
    """Connections, in both classes."""


def wait_for_hung() -> Waited:
    """In real time."""

    async def main() -> Waited:
        loop = asyncio.get_running_loop()
        sources = scripted(**{name: HANG if name in HUNG else f"{name} speaks." for name in SOURCES})
        parts = [
            PlannedPart("part", f"q{at}", tuple(map(PlannedSource, names)))
            for at, names in enumerate((SOURCES[:4], SOURCES[4:]))
        ]
        shown: list[float] = []
        began = loop.time()

        def noted(event: object) -> None:
            if isinstance(event, Section):
                shown.append(loop.time() - began)

        desk = Desk(sources, Cache("result", 500))
        found = await ask_plan(Plan("?", tuple(parts)), desk, bound_s=BOUND_S, noted=noted)
        named = sum(f"{name} did not answer in time" in found.result.result for name in HUNG)
        return Waited(min(shown, default=BOUND_S), loop.time() - began, named)

    return asyncio.run(main())


def try_inward(data: Path) -> Tried:
    """The payloads of the data folder, and our own spellings."""
    payloads = (json.loads(line)["payload"] for line in (data / "payloads" / "ssrf.jsonl").open(encoding="utf-8"))
    addresses = [*payloads, *(url for host in (*DISGUISED, *PRIVATE) for url in spelled(host))]
    names, resolver = Names(), socket.getaddrinfo
    # What both classes end in; the type checker knows one signature of it.
    socket.getaddrinfo = names.getaddrinfo  # type: ignore[assignment]
    WATCH.tried.clear()
    WATCH.on = True
    try:
        answered = asyncio.run(_open_all(addresses, names))
    finally:
        WATCH.on = False
        socket.getaddrinfo = resolver
    return Tried(len(addresses), len(WATCH.tried) + answered)


async def _open_all(addresses: Iterable[str], names: Names) -> int:
    answered = 0
    for address in addresses:
        try:
            origin, path = place_of(address)
        except NetError:
            origin = None
        if origin is not None:
            names.say(origin.host, INWARD)
        web = PublicWeb()
        try:
            await web.get(address, Deadline.after(2.0), 1 << 20)
            answered += 1
        except NetError:
            pass
        finally:
            await web.close()
        if origin is not None:
            async with client_for(origin._replace(private=False)) as client:
                try:
                    await client.open(Request(origin, path, method="GET"), 1.0)
                    answered += 1
                except NetError:
                    pass
    return answered
