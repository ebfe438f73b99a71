"""What there is to see of a decision: its question and what matched in it, each layer, what follows, what would differ.

An explanation is the decision's JSON form read back, with what only its question and its profile add. So a decision
that was just made and one out of the log are the same thing to look at, and nothing is decided to look at it. Of one
that was just made, its layers can still be asked for more. A row of the log says which reasons are whose, what each
adds and which patterns were found; one of an earlier version does not: it is shown with what it has, and whether a
layer gave a reason is told by its code.
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
# How much of a long question is shown: about four lines of its beginning and one of its end.
HEAD, TAIL = 300, 80
DOTS = "…"
# The loop's own reasons and those of the adjustments that ship: what a decision says beside its layers.
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
    """Where in the excerpt something matched."""

    start: int
    end: int
    code: str


class Question(Struct, frozen=True):
    excerpt: str
    """The user's own words; of long ones the beginning and the end."""
    cut: int = 0
    """Where in the excerpt dots stand for what was left out; 0: nothing was."""
    length: int = 0
    """Characters of all the words."""
    earlier_turns: int = 0
    kept: bool = True
    """False where the decision log did not keep the text."""
    spans: tuple[Span, ...] = ()

    def matched(self, code: str) -> str:
        """The first words that a signal or rule matched, as they were written."""
        return next((self.excerpt[span.start : span.end].strip() for span in self.spans if span.code == code), "")


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


_form = msgspec.json.Decoder(Explanation)


# --- the two ways to one


def explain(decision: Decision) -> Explanation:
    """What there is to see of a decision that was just made, counterfactuals included."""
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
    trace = tuple(replace(step, details=was.details) for step, was in zip(form.trace, decision.steps, strict=True))
    others = tuple(Router(profile).counterfactuals(decision))
    return complete(replace(form, trace=trace, counterfactuals=others), facts, question)


def explain_logged(
    row: Logged, resolved: Mapping[str, Any] | None = None, patterns: Iterable[PatternSource] = ()
) -> Explanation:
    """What there is to see of a row; with its profile, what only that knows, too."""
    try:
        form = _form.decode(row.body)
    except msgspec.DecodeError as error:
        raise StoreError(f"decision {row.id} was written by another version of Turnout: {error}") from None
    asked = row.asked or Query(row.question or "")
    return _explain_logged(form, asked, facts_of(resolved or {}, patterns), kept=row.question is not None)


def _explain_logged(form: Explanation, asked: Query, facts: ProfileFacts, *, kept: bool) -> Explanation:
    form = _worded(form)
    if form.remark_count is None:
        form = replace(form, remark_count=_count_remarks(form))
    form = give_reasons(form)
    parts = tuple(_explain_logged(part, Query(part.text), facts, kept=kept) for part in form.parts)
    question = Question("", kept=False)
    if kept:
        question = question_of(_words(asked, form), earlier_turns=max(len(asked.turns) - 1, 0))
    return complete(replace(form, parts=parts), facts, question)


def _words(asked: Query, form: Explanation) -> str:
    """The user's own words, as they were read."""
    codes = {remark.code for remark in form.remarks if remark.code.startswith("extract.")}
    words = asked.text
    if asked.turns and not words:
        words, system = own_words(asked)
        words = extract(words, system)[0] if codes - {INHERITED} else words
    task = find_task(asked, words) if INHERITED in codes else ""
    return f"{task}\n{words}" if task else words


def _worded(form: Explanation) -> Explanation:
    """Reasons whose text was not kept are read by their codes."""

    def worded(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
        return tuple(Reason(reason.code, reason.text or reason.code) for reason in reasons)

    trace = tuple(replace(step, reasons=worded(step.reasons)) for step in form.trace)
    return replace(form, reasons=worded(form.reasons), trace=trace)


def _count_remarks(form: Explanation) -> int:
    """How many reasons of an earlier version's row are no layer's, as far as their codes tell."""
    codes = [reason.code for reason in form.reasons]
    decider = form.decider
    if decider is None:
        return next((at for at, code in enumerate(codes) if not code.startswith(_REMARKS)), len(codes))
    if decider.ended == "held" and HELD in codes:
        return len(codes) - codes.index(HELD) - 1
    return next((len(codes) - at for at, code in enumerate(codes) if code.startswith(_REMARKS)), 0)


# --- what both take


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


# --- the question


def question_of(words: str, *, earlier_turns: int = 0) -> Question:
    """The question that these words are."""
    words = words.strip()
    if len(words) <= HEAD + TAIL + 20:
        return Question(words, length=len(words), earlier_turns=earlier_turns)
    excerpt = f"{words[:HEAD]} {DOTS} {words[-TAIL:]}"
    return Question(excerpt, HEAD + 1, len(words), earlier_turns)


def find_spans(excerpt: str, patterns: Iterable[PatternSource], fold: str) -> tuple[Span, ...]:
    """Where the patterns match, in the order of the patterns."""
    return tuple(_spans(excerpt, list(patterns), fold))


def _spans(excerpt: str, patterns: list[PatternSource], fold: str) -> Iterator[Span]:
    view, origin = _view(excerpt, fold) if patterns else ("", [])
    for pattern in patterns:
        for match in re2.finditer(pattern.source, view):
            start, end = match.span()
            if start < end:
                yield Span(origin[start], origin[end - 1] + 1, pattern.code)


def _view(text: str, fold: str) -> tuple[str, list[int]]:
    """The text as patterns see it, and for each of its characters the place in the text it stands for."""
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
