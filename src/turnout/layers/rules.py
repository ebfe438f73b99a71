"""`rules.v1`: hard rules, first match wins.

A rule states which phrases must, or must not, be there. Its verdict is decisive: no gate, no later layer and no
learned one can leave it. Conditions are phrases, ordered phrases and RE2 patterns, all found in the profile's one
scan.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from turnout.core.errors import suggest
from turnout.core.policy import Name
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict
from turnout.text.match import Ordered, Pattern, Phrase, Regex, Whole


class Condition(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Every field that is given must hold."""

    any: tuple[str, ...] = ()
    """At least one of these phrases."""
    all: tuple[tuple[str, ...], ...] = ()
    """At least one phrase of each group."""
    none: tuple[str, ...] = ()
    """None of these phrases."""
    ordered: tuple[tuple[str, str], ...] = ()
    """At least one pair, in this order on one line."""
    whole: tuple[str, ...] = ()
    """The message is nothing but these phrases."""
    patterns: tuple[str, ...] = ()
    """At least one of these RE2 patterns."""
    none_patterns: tuple[str, ...] = ()
    note: str | None = None
    """A note the reading carries, such as `extract.packed_empty`."""


class Rule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    id: Name
    route: str | tuple[str, ...]
    when: Condition
    confidence: float = 1.0
    text: str = ""


class RulesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[Rule, ...]

    def faults(self, routes: tuple[str, ...]) -> list[tuple[str, str]]:
        found = []
        seen: dict[str, int] = {}
        for i, rule in enumerate(self.rules):
            found += [
                (f"rules[{i}].route", f"{route!r} is not a route{suggest(route, routes)}")
                for route in _routes(rule)
                if route not in routes
            ]
            if not 0.0 <= rule.confidence <= 1.0:
                found.append((f"rules[{i}].confidence", f"{rule.confidence} is not between 0 and 1"))
            if not _routes(rule):
                found.append((f"rules[{i}].route", "is empty: name at least one route"))
            found += [
                (f"rules[{i}].when", f"{word!r} is an empty phrase") for word in _words(rule.when) if _is_empty(word)
            ]
            if rule.when == Condition():
                found.append((f"rules[{i}].when", "is empty: the rule would match every question"))
            if rule.id in seen:
                found.append((f"rules[{i}].id", f"{rule.id!r} is the id of rules[{seen[rule.id]}] already"))
            seen.setdefault(rule.id, i)
            for j, earlier in enumerate(self.rules[:i]):
                if _covers(earlier.when, rule.when):
                    found.append((f"rules[{i}]", f"unreachable: rules[{j}] ({earlier.id}) matches whenever it does"))
                    break
        return found

    def produces(self) -> set[str]:
        return {route for rule in self.rules for route in _routes(rule)}


def _words(when: Condition) -> list[str]:
    pairs = [word for pair in when.ordered for word in pair]
    return [*when.any, *(word for group in when.all for word in group), *when.none, *when.whole, *pairs]


def _is_empty(word: str) -> bool:
    return not all(form.strip() for form in word.split("|"))


def _routes(rule: Rule) -> tuple[str, ...]:
    return (rule.route,) if isinstance(rule.route, str) else rule.route


def _covers(earlier: Condition, later: Condition) -> bool:
    """Whether the earlier condition certainly holds wherever the later one does; only the plain cases are judged."""
    if earlier == later:
        return True
    plain = Condition(any=earlier.any) == earlier
    needed: list[tuple[str, ...]] = [later.any] if later.any else []
    needed += later.all
    return plain and any(group and set(group) <= set(earlier.any) for group in needed)


Test = Callable[[Reading], bool]


class Rules:
    def __init__(self, config: RulesConfig, supplies: Supplies) -> None:
        self.rules = [
            (
                _tests(rule, supplies),
                f"rule.{rule.id}",
                Verdict(_routes(rule), rule.confidence, evidence=(i,), decisive=True),
            )
            for i, rule in enumerate(config.rules)
        ]
        self.texts = [rule.text or f"rule {rule.id} applies" for rule in config.rules]
        self.judges_by = "notes" if all(rule.when.note is not None for rule in config.rules) else None

    def __call__(self, reading: Reading) -> Verdict | None:
        for tests, code, verdict in self.rules:
            for test in tests:
                if not test(reading):
                    break
            else:
                if code not in reading.muted:
                    return verdict
        return None

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        number: int = verdict.evidence[0]  # type: ignore[assignment]
        return (Reason(self.rules[number][1], self.texts[number]),)


def _tests(rule: Rule, supplies: Supplies) -> list[Test]:
    code = f"rule.{rule.id}"

    def ids(patterns: list[Pattern]) -> frozenset[int]:
        return frozenset(supplies.phrases.add(pattern, code) for pattern in patterns)

    def phrases(words: tuple[str, ...]) -> list[Pattern]:
        return [Phrase(tuple(word.split("|"))) for word in words]

    when = rule.when
    tests: list[Test] = []
    if when.note is not None:
        tests.append(lambda reading: when.note in reading.notes)
    groups: list[list[Pattern]] = [
        phrases(when.any),
        *map(phrases, when.all),
        [Ordered(first, then) for first, then in when.ordered],
        [Whole(when.whole)] if when.whole else [],
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
