"""The explanation of a decision that was just made: its layers can still be asked for more."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from turnout.core.decision import Decision
from turnout.core.router import Router

from .explanation import Explanation, complete, facts_of, give_reasons
from .question import question_of

_form = msgspec.json.Decoder(Explanation)


def explain(decision: Decision) -> Explanation:
    """What there is to see of it, counterfactuals included."""
    return _explain(decision, _form.decode(decision.json()))


def _explain(decision: Decision, form: Explanation) -> Explanation:
    profile = decision.profile
    facts = facts_of(profile.resolved, profile.patterns, [place.id for place in profile.layers])
    words = profile.read(decision.query).words
    question = question_of(words, earlier_turns=max(len(decision.query.turns) - 1, 0))
    if decision.parts:
        parts = tuple(map(_explain, decision.parts, form.parts))
        return replace(complete(form, facts, question), parts=parts)
    form = give_reasons(form)
    trace = tuple(replace(step, details=was.details) for step, was in zip(form.trace, decision.steps, strict=True))
    others = tuple(Router(profile).counterfactuals(decision))
    return complete(replace(form, trace=trace, counterfactuals=others), facts, question)
