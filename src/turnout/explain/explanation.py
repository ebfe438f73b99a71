"""What there is to see of a decision: its question and what matched in it, each layer, what follows, what would differ.

An explanation is the decision's JSON form read back, with what only its question and its profile add. So a decision
that was just made and one out of the log are the same thing to look at, and nothing is decided to look at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.config.check import layer_id
from turnout.core.decision import Ended
from turnout.core.policy import Policy
from turnout.core.profile import PatternSource, Profile
from turnout.core.router import Counterfactual
from turnout.core.verdict import Gate, Reason, Verdict
from turnout.layers.signals_config import Bands

from .question import Question, find_spans

HELD = "gate.held"


class LayerExplanation(Struct, frozen=True):
    """What one layer said, and how it ended."""

    layer: str
    ended: Ended | Literal["not asked"]
    elapsed_us: float = 0.0
    gate: Gate = Gate()
    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    """Why it judged as it did, or what kept it from judging."""
    details: tuple[Reason, ...] = ()
    """What else it can say; only of a decision that was just made."""
    bands: Bands | None = None
    """The bands its score falls into, where it has some."""
    held_text: str = ""
    """The profile's own words for a verdict that its gate held back."""

    @property
    def fired(self) -> tuple[Reason, ...]:
        """All it says of its verdict, but for the gate's word."""
        said = (*self.reasons, *self.details) if self.verdict is not None else ()
        return tuple(reason for reason in said if reason.code != HELD)

    @property
    def fault(self) -> str:
        """What kept it from judging."""
        return self.reasons[0].text if self.verdict is None and self.reasons else ""

    @property
    def score(self) -> float:
        """The score that stands for its verdict: its route's, or the only one there is."""
        if self.verdict is None:
            return 0.0
        scores = self.verdict.scores
        return scores.get(self.verdict.routes[0], next(iter(scores.values()), 0.0))


class Explanation(Struct, frozen=True):
    id: str
    profile: str
    profile_hash: str
    routes: tuple[str, ...]
    confidence: float
    calibrated: bool
    margin: float
    by: str
    outcome: str
    reasons: tuple[Reason, ...]
    policy: Policy
    trace: tuple[LayerExplanation, ...]
    """Each layer of the profile, those that were not asked too."""
    parts: tuple[Explanation, ...]
    elapsed_us: float
    role: str = ""
    text: str = ""
    then: str = ""
    remark_count: int | None = None
    """How many of the reasons are no layer's; None in rows of earlier versions."""
    hits: tuple[int, ...] = ()
    question: Question = Question("")
    counterfactuals: tuple[Counterfactual, ...] | None = None
    """What would change it; None of a logged one: finding out takes deciding again."""

    @property
    def decider(self) -> LayerExplanation | None:
        """The layer whose verdict was used: the one its gate let through, else the held one that decided anyway."""
        spoke = [step for step in self.trace if step.verdict is not None]
        if spoke and spoke[-1].ended == "accepted":
            return spoke[-1]
        return None if self.outcome[0] == "F" else next((step for step in spoke if step.layer == self.by), None)

    @property
    def remarks(self) -> tuple[Reason, ...]:
        """Reasons that are no layer's: fallback, default, adjustments, what reading the text took."""
        count = self.remark_count or 0
        return self.reasons[:count] if self.decider is None else self.reasons[len(self.reasons) - count :]

    @property
    def was_accepted(self) -> bool:
        return self.decider is not None and self.decider.ended == "accepted"


def give_reasons(form: Explanation) -> Explanation:
    """The JSON form with each layer's reasons beside it: it has those of the layer that decided, and where none did
    those of every layer, among the decision's own."""
    decider, remarks = form.decider, form.remarks
    if decider is not None:
        told = {decider.layer: form.reasons[: len(form.reasons) - len(remarks)]}
    else:
        rest = iter(form.reasons[len(remarks) :])
        told = {step.layer: tuple(_until_held(rest)) for step in form.trace if step.verdict is not None}
    trace = (replace(step, reasons=told[step.layer]) if step.layer in told else step for step in form.trace)
    return replace(form, trace=tuple(trace))


def _until_held(reasons: Iterator[Reason]) -> Iterator[Reason]:
    """The next layer's: the gate's word is the last that is said of a layer it held back."""
    for reason in reasons:
        yield reason
        if reason.code == HELD:
            return


class ProfileFacts(NamedTuple):
    """What a decision does not say and its profile does."""

    layers: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = {}
    """What each layer was configured with, by its id."""
    patterns: tuple[PatternSource, ...] = ()
    fold: str = "unicode"


def facts_of(
    resolved: Mapping[str, Any], patterns: Iterable[PatternSource], layers: Iterable[str] = ()
) -> ProfileFacts:
    """The facts in a resolved profile; `layers` where it was built in code, and has no tables."""
    tables = {layer_id(entry): entry for entry in resolved.get("layers", ())}
    fold = resolved.get("text", {}).get("fold", "unicode")
    return ProfileFacts(tuple(layers) or tuple(tables), tables, tuple(patterns), fold)


def complete(form: Explanation, facts: ProfileFacts, question: Question) -> Explanation:
    """The explanation with what its question and its profile add."""
    if form.parts:
        return replace(form, question=question)
    trace = tuple(_with_table(step, facts.tables.get(step.layer, {})) for step in form.trace)
    rest = tuple(LayerExplanation(layer, "not asked") for layer in facts.layers[len(trace) :])
    fired = {reason.code for step in trace for reason in step.fired}
    wanted = [facts.patterns[hit] for hit in form.hits if hit < len(facts.patterns)]
    spans = find_spans(question.excerpt, [one for one in wanted if one.code in fired], facts.fold)
    return replace(form, trace=trace + rest, question=replace(question, spans=spans))


def _with_table(step: LayerExplanation, table: Mapping[str, Any]) -> LayerExplanation:
    bands = msgspec.convert(table["bands"], Bands) if "bands" in table else None
    own_words = [reason.text for reason in step.reasons if reason.code == HELD] if "held_text" in table else []
    return replace(step, bands=bands, held_text=own_words[0] if own_words else "")


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
