"""Golden cases: questions with the decision they must, or should, get.

A failing `must` row fails a build, a reload and `turnout check --cases`; the other rows measure accuracy. Each profile
has one JSONL file beside its TOML; a row lists only the fields to compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as File
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.core.decision import Decision
from turnout.core.errors import ConfigError, Problem
from turnout.core.profile import Profile
from turnout.core.query import Query, Turn
from turnout.core.router import Router
from turnout.text.json import UNREADABLE

from .document import read_source

# Far below any difference that matters, and above floating-point noise: people compute expected numbers by hand.
TOLERANCE = 1e-9
# Every case is decided before a profile is served: 80,000 cases of 200 bytes take ten seconds.
MOST_BYTES = 16 * 1024 * 1024


class ExpectedPart(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One part that a compound or conditional question must have."""

    text: str
    routes: tuple[str, ...]
    role: str = "part"
    then: str = ""


class Case(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    id: str
    route: str
    """The first route."""
    routes: tuple[str, ...] = ()
    """All routes, in order; if left out, only the first is compared."""
    parts: tuple[ExpectedPart, ...] | None = None
    """Exactly these parts, in order; an empty list: the question is not split."""
    text: str = ""
    turns: tuple[Turn, ...] = ()
    declared: str | None = None
    ceiling: str | None = None
    without: tuple[str, ...] = ()
    """Layers to leave out, such as a classifier that may be trained differently."""
    must: bool = True
    by: str | None = None
    outcome: str | None = None
    confidence: float | None = None
    margin: float | None = None
    scores: Mapping[str, float] = {}
    reasons: tuple[str, ...] = ()
    """Codes that the decision's reasons must include."""
    tolerance: float = TOLERANCE
    why: str = ""

    def query(self) -> Query:
        return Query(self.text, self.turns, declared=self.declared, ceiling=self.ceiling)


class Result(NamedTuple):
    case: Case
    decision: Decision
    misses: tuple[str, ...]
    """What differs, in words; empty if the case passes."""


def read_cases(path: File) -> list[Case]:
    """The cases of a file; raises a ConfigError with every bad line."""
    cases: list[Case] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    # Not `splitlines`: a text may have other characters at which that would split.
    for number, line in enumerate(read_source(path, MOST_BYTES).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        try:
            case = msgspec.json.decode(line, type=Case)
        except UNREADABLE as error:
            problems.append(Problem(where, str(error)))
            continue
        if case.id in seen:
            problems.append(Problem(where, f"the id {case.id!r} is used twice"))
        if case.routes and case.routes[0] != case.route:
            problems.append(Problem(where, f"route is {case.route!r}, but the first of routes {case.routes[0]!r}"))
        seen.add(case.id)
        cases.append(case)
    if problems:
        raise ConfigError(problems)
    return cases


def run_cases(router: Router, cases: Iterable[Case]) -> Iterator[Result]:
    routers: dict[tuple[str, ...], Router] = {(): router}
    for case in cases:
        if case.without not in routers:
            layers = tuple(place for place in router.profile.layers if place.id not in case.without)
            routers[case.without] = Router(replace(router.profile, layers=layers))
        decision = routers[case.without].route_sync(case.query())
        yield Result(case, decision, tuple(_misses(case, decision)))


def codes_of(profile: Profile) -> list[str]:
    """The reason code of every signal, rule and override of a profile, with or without a pattern."""
    named = (("signals", "signals"), ("rules", "rule"), ("overrides", "override"))
    codes = [
        f"{prefix}.{entry['id']}"
        for layer in profile.resolved.get("layers", ())
        for key, prefix in named
        for entry in layer.get(key, ())
        if isinstance(entry, dict) and "id" in entry
    ]
    return list(dict.fromkeys((*codes, *(pattern.code for pattern in profile.patterns))))


def _misses(case: Case, decision: Decision) -> Iterator[str]:
    if decision.route != case.route:
        yield f"route is {decision.route}, expected {case.route}"
    if case.routes and decision.routes != case.routes:
        yield f"routes are {', '.join(decision.routes)}, expected {', '.join(case.routes)}"
    if case.parts is not None:
        yield from _part_misses(case.parts, decision.parts)
    for name in ("by", "outcome"):
        expected, found = getattr(case, name), getattr(decision, name)
        if expected is not None and found != expected:
            yield f"{name} is {found}, expected {expected}"
    numbers = {"confidence": case.confidence, "margin": case.margin, **case.scores}
    found_numbers = {"confidence": decision.confidence, "margin": decision.margin, **decision.scores}
    for name, number in numbers.items():
        if number is not None and not abs(found_numbers.get(name, float("nan")) - number) <= case.tolerance:
            yield f"{name} is {found_numbers.get(name)}, expected {number}"
    codes = {reason.code for reason in decision.reasons}
    for code in case.reasons:
        if code not in codes:
            yield f"reason {code} is missing"


def _part_misses(expected: tuple[ExpectedPart, ...], decided: tuple[Decision, ...]) -> Iterator[str]:
    found = tuple(ExpectedPart(part.query.text, part.routes, part.role, part.then) for part in decided)
    if len(found) != len(expected):
        texts = " | ".join(part.text for part in found)
        yield f"{len(found)} parts, expected {len(expected)}" + (f": {texts}" if texts else "")
        return
    for number, pair in enumerate(zip(found, expected, strict=True), 1):
        for name in ExpectedPart.__struct_fields__:
            value, wanted = (getattr(part, name) for part in pair)
            if value != wanted:
                yield f"part {number}: {name} is {_show(value)}, expected {_show(wanted)}"


def _show(value: str | tuple[str, ...]) -> str:
    return repr(value) if isinstance(value, str) else ", ".join(value)
