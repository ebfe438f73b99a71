"""The explanation of a logged decision: what its row says, and nothing that would have to be decided again.

A row says which reasons are whose, what each adds and which patterns were found. One of an earlier version does not: it
is shown with what it has, and whether a layer gave a reason is told by its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from turnout.core.errors import StoreError
from turnout.core.profile import PatternSource
from turnout.core.query import Query
from turnout.core.verdict import Reason
from turnout.store.records import Logged
from turnout.text.extract import extract
from turnout.text.read import own_words

from .explanation import HELD, Explanation, ProfileFacts, complete, facts_of, give_reasons
from .question import Question, question_of

# The loop's own reasons and those of the adjustments that ship: what a decision says beside its layers.
_REMARKS = ("adjust.", "clamp.", "extract.", "fallback.", "framing.", "held.", "router.", "scan.", "split.")

_form = msgspec.json.Decoder(Explanation)


def explain_logged(
    row: Logged, resolved: Mapping[str, Any] | None = None, patterns: Iterable[PatternSource] = ()
) -> Explanation:
    """What there is to see of a row; with its profile, what only that knows, too."""
    try:
        form = _form.decode(row.body)
    except msgspec.DecodeError as error:
        raise StoreError(f"decision {row.id} was written by another version of Turnout: {error}") from None
    asked = row.asked or Query(row.question or "")
    return _explain(form, asked, facts_of(resolved or {}, patterns), kept=row.question is not None)


def _explain(form: Explanation, asked: Query, facts: ProfileFacts, *, kept: bool) -> Explanation:
    form = _worded(form)
    if form.remark_count is None:
        form = replace(form, remark_count=_count_remarks(form))
    form = give_reasons(form)
    parts = tuple(_explain(part, Query(part.text), facts, kept=kept) for part in form.parts)
    question = Question("", kept=False)
    if kept:
        question = question_of(_words(asked, form), earlier_turns=max(len(asked.turns) - 1, 0))
    return complete(replace(form, parts=parts), facts, question)


def _words(asked: Query, form: Explanation) -> str:
    """The user's own words, as they were read."""
    if asked.text or not asked.turns:
        return asked.text
    words, system = own_words(asked)
    unwrapped = any(remark.code.startswith("extract.") for remark in form.remarks)
    return extract(words, system)[0] if unwrapped else words


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
