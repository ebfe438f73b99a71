"""The contract monitor: compares what happened with the rules of the profile.

The rules are data and `core.contract.violations` checks them; this file derives the facts of a decision and of its
outcome. An unknown fact is absent, and an absent fact breaks no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from turnout.core.contract import OBSERVED, Fact, Rule, Violation, violations
from turnout.core.decision import Decision, Step

if TYPE_CHECKING:
    from .row import Outcome

# Facts of a decision. Other facts are about policies, which are checked when a profile is loaded, or about what happens
# after the decision.
DECIDED = frozenset(("by", "classifier_called", "fallback"))
# Facts of an outcome, some of them only from an application's extra fields.
SETTLED = frozenset(
    ("attempts", "classifier_called", "classifier_history", "cost_usd", "fallback", "model", "retrieval", "tokens")
)
REPLAYED = frozenset(("flipped_by_history",))

Phase = Literal["decision", "outcome", "replay"]
PHASES: tuple[tuple[Phase, frozenset[str]], ...] = (("decision", DECIDED), ("outcome", SETTLED), ("replay", REPLAYED))


def phases(rule: Rule) -> tuple[Phase, ...]:
    """When a rule can be checked; empty for one about policies alone, which is checked at load."""
    facts = {*rule.forbidden, *rule.must, *rule.at_most}
    return tuple(phase for phase, known in PHASES if facts & known)


def decided_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that a decision alone can break."""
    return tuple(rule for rule in rules if "decision" in phases(rule))


def was_called(step: Step) -> bool:
    """Whether a model was asked: not if the layer was skipped or its breaker was open."""
    if step.place.cost != "network":
        return False
    if step.fault is not None:
        return step.fault.kind not in ("skipped", "breaker")
    return step.verdict is not None or step.elapsed_ns > 0


def decision_facts(decision: Decision) -> dict[str, Fact]:
    return {
        "by": decision.by,
        "classifier_called": any(was_called(step) for step in decision.steps),
        "fallback": decision.outcome[0] == "F",
    }


def outcome_facts(by: str, outcome: Outcome) -> dict[str, Fact]:
    """The facts known after the answer. `model` is the slot, because contracts name slots."""
    known = (outcome.input_tokens, outcome.output_tokens)
    facts: dict[str, Fact] = {
        "by": by,
        "retrieval": outcome.retrieval,
        "model": outcome.slot,
        "attempts": outcome.attempts,
        "cost_usd": outcome.cost_usd,
        "fallback": None if outcome.fallback is None else True,
        "tokens": None if known == (None, None) else sum(count or 0 for count in known),
    }
    # An application may report more, such as what it sends to a classifier.
    facts |= {name: fact for name, fact in outcome.extra.items() if name in OBSERVED and name not in facts}
    return facts


def check_decision(rules: Sequence[Rule], decision: Decision) -> list[Violation]:
    return list(violations(rules, decision.routes, decision_facts(decision)))


def check_outcome(rules: Sequence[Rule], routes: Sequence[str], by: str, outcome: Outcome) -> list[Violation]:
    return list(violations(rules, tuple(routes), outcome_facts(by, outcome)))
