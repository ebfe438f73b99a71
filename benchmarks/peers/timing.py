"""The one stopwatch: every contender is timed by this file, in its own interpreter, on the same core.

A contender reads one JSON job a line, `{"router": name, "warm": [text], "texts": [text], "label": false}`, and answers
each with one line, `{"ns": [int], "cpu_ns": [int]}`, or `{"labels": [str]}` where the routes themselves are asked for;
its first line says who it is. Invariants: standard library only, since it runs in any environment; nothing but the
routing call is inside the clock; no connection leaves the process.
"""

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from time import perf_counter_ns, process_time_ns
from typing import Any, NamedTuple, NoReturn

# In characters.
LONG = 4_000


class Contender(NamedTuple):
    route: Callable[[str], Any]  # timed: text in, whatever the router calls a whole decision out
    label: Callable[[Any], str]  # not timed: the decision's route, for accuracy


class Crew(NamedTuple):
    version: str
    contenders: Mapping[str, Contender]


def serve(assemble: Callable[[], Crew]) -> None:
    """Answer jobs until stdin closes. `assemble` imports the library: only after the guards are up."""
    # Libraries print; their words must not end up between our lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    stay_on_one_core()
    refuse_network()
    crew = assemble()
    say(answers, {"version": crew.version, "python": sys.version.split()[0]})
    for line in sys.stdin:
        job = json.loads(line)
        contender = crew.contenders[job["router"]]
        clock(contender, job["warm"])
        if job["label"]:
            say(answers, {"labels": [contender.label(contender.route(text)) for text in job["texts"]]})
        else:
            say(answers, clock(contender, job["texts"]))


def clock(contender: Contender, texts: list[str]) -> dict[str, Any]:
    route = contender.route
    wall: list[int] = []
    processor: list[int] = []
    # A call of milliseconds may be interrupted by a neighbour, so it is timed by the processor's clock too. That is a
    # system call: around a call of microseconds it would disturb more than it tells, and interruptions are rare there.
    long = bool(texts) and len(texts[0]) > LONG
    # The garbage collector stays on: an application pays for what its router leaves behind.
    for text in texts:
        busy = process_time_ns() if long else 0
        start = perf_counter_ns()
        decision = route(text)
        wall.append(perf_counter_ns() - start)
        if long:
            processor.append(process_time_ns() - busy)
        # Let go of, as an application does once it has answered.
        del decision
    return {"ns": wall, "cpu_ns": processor}


def stay_on_one_core() -> None:
    """All contenders take the same core, so that a busy neighbour slows every one of them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def refuse_network() -> None:
    """A library that wants to fetch something fails at once instead of timing the network."""

    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise OSError("the benchmark runs without a network")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse  # type: ignore[assignment]


def say(stream: Any, message: dict[str, Any]) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()
