"""Rules that a profile keeps whatever its classifier decides, declared as data.

A rule applies to some routes (`when`) and says which facts must, or must never, be true. The same check is used when a
profile is loaded (on its policies) and after a decision (on what happened).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

Fact = str | int | float | bool | None

OBSERVED = (
    "attempts",
    "by",
    "classifier_called",
    "classifier_history",
    "cost_usd",
    "fallback",
    "flipped_by_history",
    "tokens",
)
"""Facts that a rule may name besides the fields of a policy: what happened around and after a decision."""


class When(Struct, frozen=True, forbid_unknown_fields=True):
    route: tuple[str, ...] = ()
    """Empty: every route."""
    by: tuple[str, ...] = ()
    """Empty: any layer."""


class Rule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    id: str
    when: When = When()
    never: str | tuple[str, ...] = ()
    """Facts that must not be true, by name."""
    must: Mapping[str, str | int | float | bool | tuple[str, ...]] = {}
    """Facts that must have this value, or one of these values."""
    at_most: Mapping[str, float] = {}
    """Facts that must not exceed this number."""
    text: str = ""

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The facts that `never` names."""
        return (self.never,) if isinstance(self.never, str) else self.never

    def applies(self, routes: Iterable[str], by: Fact = None) -> bool:
        """Whether the rule is about these routes; a rule about a layer applies only if it is known who decided."""
        if self.when.by and by not in self.when.by:
            return False
        return not self.when.route or any(route in self.when.route for route in routes)


class Violation(NamedTuple):
    rule: str
    fact: str
    found: Fact
    text: str


def violations(rules: Iterable[Rule], routes: tuple[str, ...], facts: Mapping[str, Fact]) -> Iterator[Violation]:
    """Every way in which these facts break these rules. A missing fact breaks none."""
    for rule in rules:
        if not rule.applies(routes, facts.get("by")):
            continue
        for name in rule.forbidden:
            if facts.get(name):
                yield Violation(rule.id, name, facts[name], f"{name} must never be true for {', '.join(routes)}")
        for name, wanted in rule.must.items():
            found = facts.get(name)
            allowed = wanted if isinstance(wanted, tuple) else (wanted,)
            if found is not None and found not in allowed:
                one_of = " or ".join(map(repr, allowed))
                yield Violation(rule.id, name, found, f"{name} must be {one_of} for {', '.join(routes)}")
        for name, limit in rule.at_most.items():
            found = facts.get(name)
            if isinstance(found, int | float) and found > limit:
                yield Violation(rule.id, name, found, f"{name} must be at most {limit:g} for {', '.join(routes)}")
