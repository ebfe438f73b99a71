"""The contract monitor's report, rule by rule: how much was checked, the breaches, and the evidence.

Rules that were never broken are listed, and so are broken rules that a profile no longer has.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any

import msgspec
from msgspec import Struct

from turnout.core.contract import Rule
from turnout.core.errors import UnknownDecision

from .contract import Phase, phases
from .records import Checked, Logged, Records, RuleCount
from .row import BreachRow
from .stats import ALWAYS, TimeSpan

EXAMPLES = 3


class BreachExample(Struct, frozen=True):
    """One time a rule was broken."""

    decision_id: str
    question: str | None
    """None if the text was not kept."""
    routes: tuple[str, ...]
    fact: str
    found: Any
    explanation: str
    phase: str
    created_ms: int


class RuleReport(Struct, frozen=True):
    """How often one rule of a profile was checked and broken."""

    profile: str
    rule: str
    says: str
    phases: tuple[Phase, ...]
    """When it can be checked. Empty: it is about policies alone, which are checked when a profile loads."""
    decisions: int
    """Decisions of profiles that have the rule; 0 if a decision alone cannot break it."""
    outcomes: int
    violations: int
    last_ms: int | None
    examples: tuple[BreachExample, ...]


def report(
    records: Records, *, span: TimeSpan = ALWAYS, profile: str | None = None, checked: list[Checked] | None = None
) -> list[RuleReport]:
    """Every rule of every profile that has decided something in the span, profile by profile; `checked` has the counts
    of decisions and outcomes if they are known already."""
    rules: dict[tuple[str, str], Rule] = {}
    decisions: defaultdict[tuple[str, str], int] = defaultdict(int)
    outcomes: defaultdict[tuple[str, str], int] = defaultdict(int)
    if checked is None:
        checked = records.checked(span=span, profile=profile)
    # The version that decided most comes last, so that its words are shown where versions differ.
    for seen in sorted(checked, key=lambda one: (one.profile, one.decisions)):
        for rule in records.contract(seen.profile_hash):
            key = (seen.profile, rule.id)
            rules[key] = rule
            decisions[key] += seen.decisions if "decision" in phases(rule) else 0
            outcomes[key] += seen.outcomes if "outcome" in phases(rule) else 0
    broken: defaultdict[tuple[str, str], list[RuleCount]] = defaultdict(list)
    for count in records.rule_counts(span=span, profile=profile):
        broken[count.profile, count.rule].append(count)
    found = []
    for key in sorted({*rules, *broken}):
        rows = records.breaches(span=span, profile=key[0], rule=key[1], most=EXAMPLES) if key in broken else []
        cases = [(row, _logged(records, row.decision_id)) for row in rows]
        rule = rules.get(key) or _rule_of(records, key[1], [logged for _, logged in cases if logged is not None])
        found.append(
            RuleReport(
                *key,
                _text_of(rule),
                phases(rule),
                decisions[key],
                outcomes[key],
                sum(count.count for count in broken[key]),
                max((count.last_ms for count in broken[key]), default=None),
                tuple(_example(row, logged) for row, logged in cases),
            )
        )
    return found


def _logged(records: Records, ident: str) -> Logged | None:
    """A decision; None if it waits in another worker's spool."""
    with contextlib.suppress(UnknownDecision):
        return records.get(ident)
    return None


def _rule_of(records: Records, ident: str, decisions: list[Logged]) -> Rule:
    """The rule that old decisions broke, from the profile they were made with."""
    known = (rule for one in decisions for rule in records.contract(one.profile_hash))
    return next((rule for rule in known if rule.id == ident), Rule(ident))


def _text_of(rule: Rule) -> str:
    if rule.text:
        return rule.text
    clauses = [f"never {name}" for name in rule.forbidden]
    clauses += [f"{name} must be {value}" for name, value in rule.must.items()]
    clauses += [f"{name} at most {limit:g}" for name, limit in rule.at_most.items()]
    return ", ".join(clauses)


def _example(row: BreachRow, logged: Logged | None) -> BreachExample:
    question, routes = (logged.question, logged.routes) if logged is not None else (None, ())
    found = msgspec.json.decode(row.found)
    return BreachExample(row.decision_id, question, routes, row.fact, found, row.explanation, row.phase, row.created_ms)
