"""`rules.v1`: hard rules; the first that matches decides.

A rule states which phrases must or must not occur. Its verdict is decisive: no gate and no later layer can change it.
Conditions are phrases, ordered phrases and RE2 patterns, all found in the profile's single scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from turnout.core.layer import Layer
from turnout.core.policy import Name
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict
from turnout.text.match import OrderedPhrases, Pattern, Phrase, Regex, WholePhrase

from .check import unknown


class Condition(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """All fields that are given must hold."""

    any: tuple[str, ...] = ()
    """At least one of these phrases."""
    all: tuple[tuple[str, ...], ...] = ()
    """At least one phrase of each group."""
    none: tuple[str, ...] = ()
    """None of these phrases."""
    ordered: tuple[tuple[str, str], ...] = ()
    """At least one pair, in this order on one line."""
    whole: tuple[str, ...] = ()
    """The message consists of these phrases only."""
    patterns: tuple[str, ...] = ()
    """At least one of these RE2 patterns."""
    none_patterns: tuple[str, ...] = ()
    """None of these RE2 patterns."""
    note: str | None = None
    """A note of the reading, such as `extract.packed_empty`."""


class RoutingRule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    id: Name
    route: str | tuple[str, ...]
    when: Condition | tuple[Condition, ...]
    """One of several conditions is enough."""
    unless: Condition | None = None
    """Keeps the rule from applying."""
    confidence: float = 1.0
    text: str = ""

    @property
    def routes(self) -> tuple[str, ...]:
        return (self.route,) if isinstance(self.route, str) else self.route

    @property
    def alternatives(self) -> tuple[Condition, ...]:
        return (self.when,) if isinstance(self.when, Condition) else self.when

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        yield from unknown(".route", self.routes, routes)
        if not self.routes:
            yield ".route", "is empty: name at least one route"
        if not 0.0 <= self.confidence <= 1.0:
            yield ".confidence", f"{self.confidence} is not between 0 and 1"
        if not self.alternatives:
            yield ".when", "is empty: the rule would never apply"
        several = not isinstance(self.when, Condition)
        placed = [(f".when[{i}]" if several else ".when", when) for i, when in enumerate(self.alternatives)]
        for where, when in placed if self.unless is None else [*placed, (".unless", self.unless)]:
            if when == Condition():
                yield where, "is empty: it would hold for every question"
            for word in _words(when):
                if not all(form.strip() for form in word.split("|")):
                    yield where, f"{word!r} is an empty phrase"


class RulesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[RoutingRule, ...]

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        seen: dict[str, int] = {}
        for i, rule in enumerate(self.rules):
            yield from ((f"rules[{i}]{where}", message) for where, message in rule.faults(routes))
            if rule.id in seen:
                yield f"rules[{i}].id", f"{rule.id!r} is the id of rules[{seen[rule.id]}] already"
            seen.setdefault(rule.id, i)
            cover = next((j for j, earlier in enumerate(self.rules[:i]) if _covers(earlier, rule)), None)
            if cover is not None:
                yield f"rules[{i}]", f"unreachable: rules[{cover}] ({self.rules[cover].id}) applies whenever it does"

    def produces(self) -> set[str]:
        return {route for rule in self.rules for route in rule.routes}


def _words(when: Condition) -> list[str]:
    pairs = [word for pair in when.ordered for word in pair]
    return [*when.any, *(word for group in when.all for word in group), *when.none, *when.whole, *pairs]


def _covers(earlier: RoutingRule, later: RoutingRule) -> bool:
    """Whether the earlier rule certainly applies wherever the later one does; only simple cases are recognised."""
    if earlier.unless is not None:
        return False
    return all(any(_implies(then, when) for when in earlier.alternatives) for then in later.alternatives)


def _implies(later: Condition, earlier: Condition) -> bool:
    if earlier == later:
        return True
    plain = Condition(any=earlier.any) == earlier
    needed: list[tuple[str, ...]] = [later.any] if later.any else []
    needed += later.all
    return plain and any(group and set(group) <= set(earlier.any) for group in needed)


Test = Callable[[Reading], bool]


class Rules(Layer):
    def __init__(self, config: RulesConfig, supplies: Supplies) -> None:
        self.rules = [
            (
                f"rule.{rule.id}",
                [_tests(when, f"rule.{rule.id}", supplies) for when in rule.alternatives],
                None if rule.unless is None else _tests(rule.unless, f"rule.{rule.id}", supplies),
                Verdict(rule.routes, rule.confidence, evidence=(i,), decisive=True),
            )
            for i, rule in enumerate(config.rules)
        ]
        self.texts = [rule.text or f"rule {rule.id} applies" for rule in config.rules]
        by_notes = all(when.note is not None for rule in config.rules for when in rule.alternatives)
        self.judges_by = "notes" if by_notes else None

    def __call__(self, reading: Reading) -> Verdict | None:
        for code, alternatives, unless, verdict in self.rules:
            applies = any(_hold(tests, reading) for tests in alternatives)
            if applies and not (unless is not None and _hold(unless, reading)) and code not in reading.muted:
                return verdict
        return None

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        number: int = verdict.evidence[0]  # type: ignore[assignment]
        return (Reason(self.rules[number][0], self.texts[number]),)


def _hold(tests: list[Test], reading: Reading) -> bool:
    return all(test(reading) for test in tests)


def _tests(when: Condition, code: str, supplies: Supplies) -> list[Test]:
    def ids(patterns: list[Pattern]) -> frozenset[int]:
        return frozenset(supplies.phrases.add(pattern, code) for pattern in patterns)

    def phrases(words: tuple[str, ...]) -> list[Pattern]:
        return [Phrase(tuple(word.split("|"))) for word in words]

    tests: list[Test] = []
    if when.note is not None:
        tests.append(lambda reading: when.note in reading.notes)
    groups: list[list[Pattern]] = [
        phrases(when.any),
        *map(phrases, when.all),
        [OrderedPhrases(first, then) for first, then in when.ordered],
        [WholePhrase(when.whole)] if when.whole else [],
        [Regex(source) for source in when.patterns],
    ]
    tests += [_found(ids(group)) for group in groups if group]
    if unwanted := ids(phrases(when.none) + [Regex(source) for source in when.none_patterns]):
        tests.append(lambda reading: unwanted.isdisjoint(reading.hits))
    return tests


def _found(wanted: frozenset[int]) -> Test:
    return lambda reading: not wanted.isdisjoint(reading.hits)


@kind("rules.v1", cost="free", who="R")
def rules(config: RulesConfig, supplies: Supplies) -> Rules:
    return Rules(config, supplies)
