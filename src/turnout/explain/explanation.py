"""The explanation of a decision: its question and what matched in it, each layer, the policy, the counterfactuals.

An explanation is the decision's JSON form, completed from its question and its profile. So new and logged decisions are
explained in the same way, and nothing is decided again. Only for a new decision, its layers are asked for details. A
row of the log says which reasons belong to which layer and which patterns were found. Rows of earlier versions do not;
there, the code of a reason tells whether it is a layer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import re2
from msgspec import Struct
from msgspec.structs import replace

from turnout.config.check import layer_id
from turnout.core.decision import Decision, Ended
from turnout.core.errors import StoreError
from turnout.core.policy import Policy
from turnout.core.profile import PatternSource
from turnout.core.query import Query
from turnout.core.router import Counterfactual, Router
from turnout.core.verdict import Gate, Reason, Verdict
from turnout.layers.signals_config import Bands
from turnout.text.match import wrap_text
from turnout.text.read import FOLDS, INHERITED, extract, find_task, own_words

if TYPE_CHECKING:
    from turnout.store.records import Logged

# The two letters of an outcome, spelled out (`turnout.core.verdict.Who` and `How`).
WHO: dict[str, str] = {
    "D": "declared by the caller",
    "R": "a hard rule",
    "S": "signals",
    "K": "keywords",
    "E": "a trained student",
    "L": "a language model",
    "A": "an agent",
    "C": "the cache",
    "F": "the fallback",
    "N": "no layer was asked",
}

HOW: dict[str, str] = {
    "-": "clean",
    "l": "every verdict was below its gate",
    "t": "a layer ran out of time",
    "e": "a layer failed",
    "i": "a layer gave an unusable verdict",
    "x": "a layer's breaker was open",
    "k": "clamped to the caller's ceiling",
    "h": "the best held verdict was used",
}

HELD = "gate.held"
# How many characters of a long question are shown: about four lines of its beginning and one of its end.
HEAD, TAIL = 300, 80
DOTS = "…"
# The reasons that are no layer's: those of the router and of the shipped adjustments.
_REMARKS = (
    "adjust.",
    "clamp.",
    "extract.",
    "fallback.",
    "followup.",
    "framing.",
    "held.",
    "router.",
    "scan.",
    "split.",
)


def spell(outcome: str) -> tuple[str, str]:
    """`Fl`: (`the fallback`, `every verdict was below its gate`)"""
    return WHO[outcome[0]], HOW[outcome[1]]


class Span(NamedTuple):
    """A match in the excerpt."""

    start: int
    end: int
    code: str


class Question(Struct, frozen=True):
    excerpt: str
    """The user's own words; only the beginning and the end if they are long."""
    cut: int = 0
    """The position in the excerpt of the dots for omitted words; 0 if nothing was omitted."""
    length: int = 0
    """The number of characters of all words."""
    earlier_turns: int = 0
    kept: bool = True
    """False if the decision log did not keep the text."""
    spans: tuple[Span, ...] = ()

    def matched(self, code: str) -> str:
        """The first words that a signal or rule matched, as written."""
        return next((self.excerpt[span.start : span.end].strip() for span in self.spans if span.code == code), "")


class LayerExplanation(Struct, frozen=True):
    """The verdict of one layer, and how it ended."""

    layer: str
    ended: Ended | Literal["not asked"]
    elapsed_us: float = 0.0
    gate: Gate = Gate()
    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    """The reasons of its verdict, or why it has none."""
    details: tuple[Reason, ...] = ()
    """Further reasons; only for a new decision."""
    bands: Bands | None = None
    """The bands that its score falls into, if it has bands."""
    held_text: str = ""
    """The profile's own text for a verdict that its gate held back."""

    @property
    def fired(self) -> tuple[Reason, ...]:
        """All reasons of its verdict except the gate's."""
        reasons = (*self.reasons, *self.details) if self.verdict is not None else ()
        return tuple(reason for reason in reasons if reason.code != HELD)

    @property
    def fault(self) -> str:
        """Why it has no verdict."""
        return self.reasons[0].text if self.verdict is None and self.reasons else ""

    @property
    def score(self) -> float:
        """The score of its route, or its only score."""
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
    """Every layer of the profile, including those that were not asked."""
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
    """Changes that would change the decision; None for a logged one, because computing them means deciding again."""

    @property
    def decider(self) -> LayerExplanation | None:
        """The layer whose verdict was used: an accepted one, else a held one that decided anyway."""
        judged = [step for step in self.trace if step.verdict is not None]
        if judged and judged[-1].ended == "accepted":
            return judged[-1]
        return None if self.outcome[0] == "F" else next((step for step in judged if step.layer == self.by), None)

    @property
    def remarks(self) -> tuple[Reason, ...]:
        """The reasons that are no layer's: fallback, default, adjustments, how the text was read."""
        count = self.remark_count or 0
        return self.reasons[:count] if self.decider is None else self.reasons[len(self.reasons) - count :]

    @property
    def was_accepted(self) -> bool:
        return self.decider is not None and self.decider.ended == "accepted"


_form = msgspec.json.Decoder(Explanation)


# --- explaining new and logged decisions


def explain(decision: Decision) -> Explanation:
    """Explain a new decision, including its counterfactuals."""
    return _explain_live(decision, _form.decode(decision.json()))


def _explain_live(decision: Decision, form: Explanation) -> Explanation:
    profile = decision.profile
    facts = facts_of(profile.resolved, profile.patterns, [place.id for place in profile.layers])
    words = profile.read(decision.query).words
    question = question_of(words, earlier_turns=max(len(decision.query.turns) - 1, 0))
    if decision.parts:
        parts = tuple(map(_explain_live, decision.parts, form.parts))
        return replace(complete(form, facts, question), parts=parts)
    form = give_reasons(form)
    trace = tuple(replace(step, details=made.details) for step, made in zip(form.trace, decision.steps, strict=True))
    others = tuple(Router(profile).counterfactuals(decision))
    return complete(replace(form, trace=trace, counterfactuals=others), facts, question)


def explain_logged(
    row: Logged, resolved: Mapping[str, Any] | None = None, patterns: Iterable[PatternSource] = ()
) -> Explanation:
    """Explain a row of the log, completed from its profile if it is given."""
    try:
        form = _form.decode(row.body)
    except msgspec.DecodeError as error:
        raise StoreError(f"decision {row.id} was written by another version of Turnout: {error}") from None
    asked = row.asked or Query(row.question or "")
    return _explain_logged(form, asked, facts_of(resolved or {}, patterns), kept=row.question is not None)


def _explain_logged(form: Explanation, asked: Query, facts: ProfileFacts, *, kept: bool) -> Explanation:
    form = _fill_reasons(form)
    if form.remark_count is None:
        form = replace(form, remark_count=_count_remarks(form))
    form = give_reasons(form)
    parts = tuple(_explain_logged(part, Query(part.text), facts, kept=kept) for part in form.parts)
    question = Question("", kept=False)
    if kept:
        question = question_of(_words(asked, form), earlier_turns=max(len(asked.turns) - 1, 0))
    return complete(replace(form, parts=parts), facts, question)


def _words(asked: Query, form: Explanation) -> str:
    """The user's own words, as the decision read them."""
    codes = {remark.code for remark in form.remarks if remark.code.startswith("extract.")}
    words = asked.text
    if asked.turns and not words:
        words, system = own_words(asked)
        words = extract(words, system)[0] if codes - {INHERITED} else words
    task = find_task(asked, words) if INHERITED in codes else ""
    return f"{task}\n{words}" if task else words


def _fill_reasons(form: Explanation) -> Explanation:
    """Use the code of a reason whose text was not kept."""

    def fill(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
        return tuple(Reason(reason.code, reason.text or reason.code) for reason in reasons)

    trace = tuple(replace(step, reasons=fill(step.reasons)) for step in form.trace)
    return replace(form, reasons=fill(form.reasons), trace=trace)


def _count_remarks(form: Explanation) -> int:
    """How many reasons in a row of an earlier version are no layer's, judged by their codes."""
    codes = [reason.code for reason in form.reasons]
    decider = form.decider
    if decider is None:
        return next((at for at, code in enumerate(codes) if not code.startswith(_REMARKS)), len(codes))
    if decider.ended == "held" and HELD in codes:
        return len(codes) - codes.index(HELD) - 1
    return next((len(codes) - at for at, code in enumerate(codes) if code.startswith(_REMARKS)), 0)


# --- completing an explanation


def give_reasons(form: Explanation) -> Explanation:
    """Give each layer its reasons. The JSON form has them among the decision's own: those of the layer that decided,
    or of every layer if none did."""
    decider, remarks = form.decider, form.remarks
    if decider is not None:
        reasons = {decider.layer: form.reasons[: len(form.reasons) - len(remarks)]}
    else:
        rest = iter(form.reasons[len(remarks) :])
        reasons = {step.layer: tuple(_until_held(rest)) for step in form.trace if step.verdict is not None}
    trace = (replace(step, reasons=reasons.get(step.layer, step.reasons)) for step in form.trace)
    return replace(form, trace=tuple(trace))


def _until_held(reasons: Iterator[Reason]) -> Iterator[Reason]:
    """The reasons of the next layer; the last reason of a held verdict is the gate's."""
    for reason in reasons:
        yield reason
        if reason.code == HELD:
            return


class ProfileFacts(NamedTuple):
    """Facts that only the profile of a decision has."""

    layers: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = {}
    """The configuration of each layer, by its id."""
    patterns: tuple[PatternSource, ...] = ()
    fold: str = "unicode"


def facts_of(
    resolved: Mapping[str, Any], patterns: Iterable[PatternSource], layers: Iterable[str] = ()
) -> ProfileFacts:
    """The facts in a resolved profile; `layers` are needed for a profile built in code, which has no tables."""
    tables = {layer_id(entry): entry for entry in resolved.get("layers", ())}
    fold = resolved.get("text", {}).get("fold", "unicode")
    return ProfileFacts(tuple(layers) or tuple(tables), tables, tuple(patterns), fold)


def complete(form: Explanation, facts: ProfileFacts, question: Question) -> Explanation:
    """The explanation completed from its question and its profile."""
    if form.parts:
        return replace(form, question=question)
    trace = tuple(_with_table(step, facts.tables.get(step.layer, {})) for step in form.trace)
    rest = tuple(LayerExplanation(layer, "not asked") for layer in facts.layers[len(trace) :])
    fired = {reason.code for step in trace for reason in step.fired}
    wanted = [facts.patterns[hit] for hit in form.hits if hit < len(facts.patterns)]
    spans = tuple(_find_spans(question.excerpt, [one for one in wanted if one.code in fired], facts.fold))
    return replace(form, trace=trace + rest, question=replace(question, spans=spans))


def _with_table(step: LayerExplanation, table: Mapping[str, Any]) -> LayerExplanation:
    bands = msgspec.convert(table["bands"], Bands) if "bands" in table else None
    held = (reason.text for reason in step.reasons if reason.code == HELD and "held_text" in table)
    return replace(step, bands=bands, held_text=next(held, ""))


# --- the question


def question_of(words: str, *, earlier_turns: int = 0) -> Question:
    """The question with these words."""
    words = words.strip()
    if len(words) <= HEAD + TAIL + 20:
        return Question(words, length=len(words), earlier_turns=earlier_turns)
    excerpt = f"{words[:HEAD]} {DOTS} {words[-TAIL:]}"
    return Question(excerpt, HEAD + 1, len(words), earlier_turns)


def _find_spans(excerpt: str, patterns: list[PatternSource], fold: str) -> Iterator[Span]:
    """The matches of the patterns, in the order of the patterns."""
    view, origin = _view(excerpt, fold) if patterns else ("", [])
    for pattern in patterns:
        for match in re2.finditer(pattern.source, view):
            start, end = match.span()
            if start < end:
                yield Span(origin[start], origin[end - 1] + 1, pattern.code)


def _view(text: str, fold: str) -> tuple[str, list[int]]:
    """The text as patterns see it, and the position in the original text of each of its characters."""
    folded: dict[str, str] = {}
    view: list[str] = []
    origin: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            seen = "\n" if character == "\n" else "" if view[-1:] == [" "] else " "
        else:
            if character not in folded:
                folded[character] = _spell(character, fold)
            seen = folded[character]
        view.extend(seen)
        origin.extend([place] * len(seen))
    return "".join(view).encode("utf-8", "replace").decode(), origin


def _spell(character: str, fold: str) -> str:
    """One character as patterns see it."""
    if character.isascii() and character.isprintable():
        return character.lower()
    spelled = FOLDS[fold](character).text
    return wrap_text(spelled) if fold == "unicode" else spelled
