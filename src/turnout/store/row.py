"""What is written down, row by row: the shapes that go through the spool into the tables.

A row is encoded once, by whoever routes, and its bytes are all that survives a crash: so it holds plain values only.
Its order of fields is the order of the table's columns, but for `LoggedRow`, which is made shorter for the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct, json

NOTHING = Raw(b"null")
"""For JSON that is not there: the decoder has no optional raw field."""

Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0.0)]


class DecisionRow(Struct, array_like=True, frozen=True, gc=False, tag="d"):
    """A decision; `parent_id` is set on the parts of a compound question."""

    id: str
    parent_id: str | None
    tenant: str
    session: str | None
    profile: str
    profile_hash: str
    route: str
    routes: str
    """All of them, as JSON: a multi-label decision has several."""
    confidence: float
    decided_by: str
    outcome: str
    teacher: str | None
    """What a model said, whether or not its verdict was used: a label for training, never a human's."""
    elapsed_us: float
    created_ms: int
    question: str | None
    """The user's text as far as the redaction level keeps it."""
    digest: str | None
    """A keyed hash of tenant and text, where the text itself is not kept whole."""
    kept: str
    """The redaction level this row was written with."""
    asked: Raw
    """The whole query, where it says more than its text; else `NOTHING`."""
    body: Raw
    """The decision's documented JSON form."""
    key_id: str = ""
    """The key that asked; empty where none did."""


class LoggedRow(Struct, array_like=True, frozen=True, gc=False, tag="l"):
    """A decision on its way through the spool: its JSON form is the only copy of what it says."""

    parent_id: str | None
    tenant: str
    session: str | None
    teacher: str | None
    created_ms: int
    question: str | None
    digest: str | None
    kept: str
    asked: Raw
    body: Raw
    key_id: str = ""

    def whole(self) -> DecisionRow:
        """The table's row; raises DecodeError where the body is not a decision's."""
        columns = _body.decode(self.body)
        return DecisionRow(
            columns.id,
            self.parent_id,
            self.tenant,
            self.session,
            columns.profile,
            columns.profile_hash,
            columns.route,
            str(columns.routes, "utf-8"),
            columns.confidence,
            columns.by,
            columns.outcome,
            self.teacher,
            columns.elapsed_us,
            self.created_ms,
            self.question,
            self.digest,
            self.kept,
            self.asked,
            self.body,
            self.key_id,
        )


class DecisionColumns(Struct, gc=False):
    """What of a decision's JSON form has columns of its own."""

    id: str
    profile: str
    profile_hash: str
    route: str
    routes: Raw
    confidence: float
    by: str
    outcome: str
    elapsed_us: float


_body = json.Decoder(DecisionColumns)


class OutcomeRow(Struct, array_like=True, frozen=True, gc=False, tag="o"):
    """What happened after a decision, as columns; see `Outcome`."""

    decision_id: str
    tenant: str
    ended: str
    slot: str | None
    model: str | None
    attempts: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    baseline_usd: float | None
    classifier_usd: float | None
    retrieval: bool | None
    fallback: str | None
    cap_reached: str | None
    elapsed_ms: float | None
    sources: Raw
    extra: Raw
    created_ms: int


class ProfileRow(Struct, array_like=True, frozen=True, gc=False, tag="p"):
    """A profile that has decided something: old rows explain themselves with the profile of their day."""

    hash: str
    name: str
    resolved: Raw
    created_ms: int
    patterns: Raw = NOTHING
    """What it looks for, in the order of a decision's hits."""


class BreachRow(Struct, array_like=True, frozen=True, gc=False, tag="v"):
    """A contract rule that was broken, with the evidence."""

    decision_id: str
    tenant: str
    profile: str
    rule: str
    fact: str
    found: str
    """The value, as JSON."""
    explanation: str
    phase: str
    """`decision`, `outcome` or `replay`: when it was noticed."""
    created_ms: int


class ReplyRow(Struct, array_like=True, frozen=True, gc=False, tag="r"):
    """What was answered in a session."""

    id: str
    tenant: str
    session: str
    decision_id: str | None
    role: str
    text: str | None
    kept: str
    created_ms: int


class SpendRow(Struct, array_like=True, frozen=True, gc=False, tag="s"):
    """What a key spent on one decision."""

    decision_id: str
    key_id: str
    amount_usd: float
    created_ms: int


Row = SpendRow | DecisionRow | OutcomeRow | ProfileRow | BreachRow | ReplyRow


class Outcome(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happened after a decision. A field nobody can vouch for stays `None`: unknown is not zero."""

    ended: Literal["answered", "refused", "failed", "cancelled"] = "answered"
    slot: str | None = None
    """The model slot that answered, in the profile's own words."""
    model: str | None = None
    """The model that answered, as its provider names it."""
    attempts: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None
    """What the answer cost, without the classifier."""
    baseline_usd: Amount | None = None
    """What it would have cost with the most expensive slot."""
    classifier_usd: Amount | None = None
    """What deciding cost."""
    retrieval: bool | None = None
    """Whether retrieval ran."""
    fallback: str | None = None
    """Why something else answered than was decided; None if nothing else did."""
    cap_reached: str | None = None
    """The cap that ended the answer: `sentences`, `tokens`."""
    elapsed_ms: Amount | None = None
    sources: tuple[str, ...] | None = None
    """The sources that really were used."""
    extra: Mapping[str, Any] = {}
    """What an application wants to remember beside it, as JSON."""
