"""Reads outcome rows: how well several models answered the same question.

    {"text": "…", "outcomes": {"SIMPLE": 0, "COMPLEX": 1}, "costs": {"SIMPLE": 0.0002, "COMPLEX": 0.004}}

A key is a route of the profile or the model slot of its policy; a number is from 0 (useless) to 1 (right). A row needs
at least two routes, not all of them; missing outcomes are never guessed. Every mistake of a file is reported at once,
with its line.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any, NamedTuple

import msgspec
import numpy as np

from turnout.core.errors import BadExamples, TooFewExamples, suggest
from turnout.core.profile import Profile

from .metric import Flags, Floats, or_none
from .rows import SHOWN, BadRow, quote, read_file

# The prefix of the columns of a CSV file that hold the cost of a route's answer.
COST = "cost."


class Outcomes(NamedTuple):
    """The outcome rows as arrays."""

    texts: tuple[str, ...]
    tiers: tuple[str, ...]
    """The routes with an outcome, cheapest first."""
    quality: Floats
    """A row for each text, a column for each tier; NaN if it was not tried."""
    costs: Floats
    """The same shape; NaN if unknown."""
    remarks: tuple[str, ...] = ()

    @property
    def complete(self) -> Flags:
        """The rows that have an outcome for every tier."""
        return np.asarray(~np.isnan(self.quality).any(axis=1))

    def counts(self) -> dict[str, int]:
        """How many outcomes each tier has."""
        return {tier: int((~np.isnan(self.quality[:, at])).sum()) for at, tier in enumerate(self.tiers)}

    def digest(self) -> str:
        """A hash of the rows; their order does not matter."""
        each = sorted(
            hashlib.sha256(msgspec.json.encode((text, list(map(or_none, scores)), list(map(or_none, costs))))).digest()
            for text, scores, costs in zip(self.texts, self.quality.tolist(), self.costs.tolist(), strict=True)
        )
        return hashlib.sha256(b"".join([msgspec.json.encode(self.tiers), *each])).hexdigest()


def read_outcomes(path: str | os.PathLike[str], profile: Profile) -> Outcomes:
    """The outcome rows of a JSONL or CSV file; raises BadExamples with every mistake in it."""
    names = name_tiers(profile)
    rows: list[OutcomeExample] = []
    is_table = File(path).suffix.lower() in (".csv", ".tsv")

    def take(_: str, row: Mapping[str, Any]) -> None:
        rows.append(_read(_from_cells(row) if is_table else row, names, profile.routes))

    form = '{"text": "…", "outcomes": {"' + '": 0, "'.join(profile.routes[:2]) + '": 1}}'
    if problems := read_file(File(path), ("text",), take, form):
        raise BadExamples(problems, SHOWN)
    return arrange(rows, profile)


class OutcomeExample(NamedTuple):
    text: str
    outcomes: dict[str, float]
    costs: dict[str, float]


def arrange(rows: Sequence[OutcomeExample], profile: Profile) -> Outcomes:
    """The rows as arrays, the tiers from the cheapest to the most expensive."""
    tried = {tier for row in rows for tier in row.outcomes}
    priced = {
        tier: float(np.mean(found))
        for tier in tried
        if (found := [row.costs[tier] for row in rows if tier in row.costs])
    }
    tiers = tuple(tier for tier in profile.routes if tier in tried)
    remarks: list[str] = []
    if not profile.ordered:
        if set(priced) != tried:
            unpriced = ", ".join(tier for tier in tiers if tier not in priced)
            raise TooFewExamples(
                f"profile {profile.name!r} does not say which route costs more (ordered = true), and no row says what "
                f"{unpriced} cost: add costs to the rows"
            )
        tiers = tuple(sorted(tiers, key=lambda tier: (priced[tier], tiers.index(tier))))
    for lower, upper in itertools.pairwise(tiers):
        if lower in priced and upper in priced and priced[upper] < priced[lower]:
            remarks.append(f"{upper} cost {priced[upper]:.4g} on average, less than {lower} with {priced[lower]:.4g}")

    def table(of: Sequence[Mapping[str, float]]) -> Floats:
        return np.array([[row.get(tier, math.nan) for tier in tiers] for row in of], dtype=np.float64)

    quality, costs = table([row.outcomes for row in rows]), table([row.costs for row in rows])
    partial = int(np.isnan(quality).any(axis=1).sum())
    if partial:
        remarks.append(f"{partial:,} of {len(rows):,} rows lack some tier: they teach, thresholds come from the others")
    return Outcomes(tuple(row.text for row in rows), tiers, quality, costs, tuple(remarks))


def name_tiers(profile: Profile) -> dict[str, str]:
    """The keys allowed in a row, routes and model slots, and the route of each."""
    slots: dict[str, list[str]] = {}
    for route in profile.routes:
        if slot := profile.policies[route].model:
            slots.setdefault(slot, []).append(route)
    # A slot that two routes share would be ambiguous.
    return {slot: routes[0] for slot, routes in slots.items() if len(routes) == 1} | {r: r for r in profile.routes}


def _read(row: Mapping[str, Any], names: Mapping[str, str], routes: Sequence[str]) -> OutcomeExample:
    text = row.get("text")
    if not isinstance(text, str):
        missing = "text" not in row
        raise BadRow(
            f"no field 'text'{suggest('text', row)}" if missing else f"'text': must be text, found {quote(text)}"
        )
    if not text.strip():
        raise BadRow("the text is empty")
    if not isinstance(row.get("outcomes"), dict):
        near = suggest("outcomes", row) if "outcomes" not in row else ""
        example = ", ".join(f'"{route}": 1' for route in routes[:2])
        raise BadRow(f"needs 'outcomes', a score for each route{near}: {{{example}}}")
    outcomes = _numbers("outcomes", row["outcomes"], names, most=1.0)
    if len(outcomes) < 2:
        raise BadRow(f"{len(outcomes)} outcome: to learn which is better, at least two routes must have answered")
    costs = row.get("costs")
    if not isinstance(costs, dict | None):
        raise BadRow(f"'costs' must be a number for each route, found {quote(costs)}")
    return OutcomeExample(text, outcomes, _numbers("costs", costs or {}, names, most=math.inf))


def _numbers(field: str, given: Mapping[str, Any], names: Mapping[str, str], *, most: float) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for key, value in given.items():
        if key not in names:
            near = suggest(key, names) or f" ({', '.join(names)})"
            raise BadRow(f"{field}: {quote(key)} is not a route{near}")
        if value is None:
            continue
        if not isinstance(value, int | float) or not 0.0 <= value <= most or math.isinf(value):
            limit = "from 0 to 1" if most == 1.0 else "from 0 up"
            raise BadRow(f"{field}.{key} is {quote(value)}: it must be a number {limit}")
        if numbers.setdefault(names[key], float(value)) != float(value):
            raise BadRow(f"{field}.{key}: {names[key]} has another number already, under its other name")
    return numbers


def _from_cells(cells: Mapping[str, str | None]) -> dict[str, Any]:
    """A CSV row as a JSON row: a column for each route, `cost.ROUTE` for its cost; empty cells are skipped."""
    numbers: dict[str, float] = {}
    for name, cell in cells.items():
        if name != "text" and cell is not None and cell.strip():
            try:
                numbers[name] = float(cell)
            except ValueError:
                raise BadRow(f"column {name!r}: {quote(cell)} is not a number") from None
    outcomes = {name: value for name, value in numbers.items() if not name.startswith(COST)}
    costs = {name.removeprefix(COST): value for name, value in numbers.items() if name.startswith(COST)}
    return {"text": cells["text"], "outcomes": outcomes, "costs": costs}
