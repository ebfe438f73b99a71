"""Golden cases: questions with the decision they must, or should, get.

A `must` row breaks a build, a reload and `turnout check --cases`; the others are measured and feed accuracy. One
JSONL file per profile, beside its TOML; a row says only what it cares about.
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
from turnout.text.file import read_bytes, reason_of

# Cases give numbers as a person computes them from a formula; this is far below any that matter and above float noise.
TOLERANCE = 1e-9
# Every case is decided before a profile is served: at some 200 bytes each, these are 80,000, and take ten seconds.
MOST_BYTES = 16 * 1024 * 1024


class ExpectedPart(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one part of a compound or conditional question must be."""

    text: str
    routes: tuple[str, ...]
    role: str = "part"
    then: str = ""


class Case(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    id: str
    route: str
    """The first route."""
    routes: tuple[str, ...] = ()
    """All of them, in order; left out, only the first is looked at."""
    parts: tuple[ExpectedPart, ...] | None = None
    """Exactly these, in order; an empty list says that the question stays whole."""
    text: str = ""
    turns: tuple[Turn, ...] = ()
    declared: str | None = None
    ceiling: str | None = None
    without: tuple[str, ...] = ()
    """Layers that are left out: what must hold whichever classifier is trained, or configured, is said without it."""
    must: bool = True
    by: str | None = None
    outcome: str | None = None
    confidence: float | None = None
    margin: float | None = None
    scores: Mapping[str, float] = {}
    reasons: tuple[str, ...] = ()
    """Codes that must be among the decision's reasons."""
    tolerance: float = TOLERANCE
    why: str = ""

    def query(self) -> Query:
        return Query(self.text, self.turns, declared=self.declared, ceiling=self.ceiling)


class Result(NamedTuple):
    case: Case
    decision: Decision
    misses: tuple[str, ...]
    """What differs, in words; empty when the case holds."""


def read_cases(path: File) -> list[Case]:
    """The cases of a file; every bad line is reported at once."""
    cases: list[Case] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    try:
        # By line ends alone: a text may hold other characters that Python would split at.
        lines = read_bytes(path, MOST_BYTES).decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    except UnicodeDecodeError as error:
        said = f"cannot be read: not UTF-8 text (byte {error.start}): golden cases are JSONL"
        raise ConfigError([Problem(str(path), said)]) from None
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be read: {reason_of(error)}")]) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = msgspec.json.decode(line, type=Case)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problems.append(Problem(f"{path.name}:{number}", str(error)))
            continue
        if case.id in seen:
            problems.append(Problem(f"{path.name}:{number}", f"the id {case.id!r} is used twice"))
        if case.routes and case.routes[0] != case.route:
            problems.append(
                Problem(f"{path.name}:{number}", f"route is {case.route!r}, but the first of routes {case.routes[0]!r}")
            )
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
    """The reason code of every signal, rule and override of a profile, whether it looks for words or measures."""
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
        wanted, found = getattr(case, name), getattr(decision, name)
        if wanted is not None and found != wanted:
            yield f"{name} is {found}, expected {wanted}"
    numbers = {"confidence": case.confidence, "margin": case.margin, **case.scores}
    found_numbers = {"confidence": decision.confidence, "margin": decision.margin, **decision.scores}
    for name, number in numbers.items():
        if number is not None and not abs(found_numbers.get(name, float("nan")) - number) <= case.tolerance:
            yield f"{name} is {found_numbers.get(name)}, expected {number}"
    codes = {reason.code for reason in decision.reasons}
    for code in case.reasons:
        if code not in codes:
            yield f"reason {code} is missing"


def _part_misses(wanted: tuple[ExpectedPart, ...], found: tuple[Decision, ...]) -> Iterator[str]:
    pieces = tuple(ExpectedPart(part.query.text, part.routes, part.role, part.then) for part in found)
    if len(pieces) != len(wanted):
        texts = " | ".join(piece.text for piece in pieces)
        yield f"{len(pieces)} parts, expected {len(wanted)}" + (f": {texts}" if texts else "")
        return
    for number, (piece, want) in enumerate(zip(pieces, wanted, strict=True), 1):
        for name in ExpectedPart.__struct_fields__:
            got, expected = getattr(piece, name), getattr(want, name)
            if got != expected:
                yield f"part {number}: {name} is {_shown(got)}, expected {_shown(expected)}"


def _shown(value: str | tuple[str, ...]) -> str:
    return repr(value) if isinstance(value, str) else ", ".join(value)
