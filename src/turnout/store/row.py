"""The rows of the log: their fields, their lines in the spool, and how decisions and outcomes become lines.

Each line is the CRC-32 of its content in hex, a space, the content, a newline. A line torn by a full disk or a power
cut does not match its checksum and is counted as torn.

The redaction level is applied here, before anything is written, by the thread that routes. A row holds plain values
only, because nothing but its bytes survives a crash. Its fields are in the order of the table's columns; `LoggedRow`
alone is shorter.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Annotated, Any, Literal, NamedTuple
from zlib import crc32

from msgspec import Meta, Raw, Struct, json, to_builtins
from msgspec.structs import astuple

from turnout.core.contract import Rule, Violation
from turnout.core.decision import Decision, new_id
from turnout.core.profile import Profile
from turnout.core.query import Query

from .contract import check_decision, check_outcome, decided_rules
from .redact import NAME_CHARACTERS, Level, each_text, keep, name, redact_body, redact_extra, writable, writable_json

NOTHING = Raw(b"null")
"""For JSON that is not there: the decoder has no optional raw field."""

# 128 bits: no two of a billion questions collide by chance.
DIGEST_BYTES = 16
BACKSLASH = ord("\\")

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
    """The route a model gave, whether or not it was used: a label for training, never a human's."""
    elapsed_us: float
    created_ms: int
    question: str | None
    """The user's text as far as the redaction level keeps it."""
    digest: str | None
    """A keyed hash of tenant and text, where the text itself is not kept whole."""
    kept: str
    """The redaction level this row was written with."""
    asked: Raw
    """The whole query if it has more than its text; else `NOTHING`."""
    body: Raw
    """The decision's documented JSON form."""
    key_id: str = ""
    """The key that asked; empty where none did."""


class LoggedRow(Struct, array_like=True, frozen=True, gc=False, tag="l"):
    """A decision in the spool: fields that its JSON form has are not repeated."""

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
        """The table's row; raises DecodeError if the body is not a decision's."""
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
    """The fields of a decision's JSON form that are also columns."""

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
    """An `Outcome` as columns."""

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
    """A profile that has decided something, kept to explain its decisions later."""

    hash: str
    name: str
    resolved: Raw
    created_ms: int
    patterns: Raw = NOTHING
    """Its patterns, in the order that a decision's hits refer to."""


class BreachRow(Struct, array_like=True, frozen=True, gc=False, tag="v"):
    """A broken contract rule, with the evidence."""

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
    """An answer in a session."""

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
    """What happened after a decision. An unknown field stays `None`: unknown is not zero."""

    ended: Literal["answered", "refused", "failed", "cancelled"] = "answered"
    slot: str | None = None
    """The model slot that answered."""
    model: str | None = None
    """The model that answered, by its provider's name for it."""
    attempts: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None
    """The cost of the answer, without the classifier."""
    baseline_usd: Amount | None = None
    """What the answer would have cost with the most expensive slot."""
    classifier_usd: Amount | None = None
    """The cost of deciding."""
    retrieval: bool | None = None
    """Whether retrieval ran."""
    fallback: str | None = None
    """Why something other than the chosen route answered; None if the chosen one did."""
    cap_reached: str | None = None
    """The cap that ended the answer: `sentences`, `tokens`."""
    elapsed_ms: Amount | None = None
    sources: tuple[str, ...] | None = None
    """The sources that were used."""
    extra: Mapping[str, Any] = {}
    """Anything else an application keeps with the outcome, as JSON."""


_rows: json.Decoder[Row | LoggedRow] = json.Decoder(Row | LoggedRow)


class Subject(NamedTuple):
    """The decision that an outcome belongs to."""

    decision_id: str
    tenant: str
    profile: str
    rules: Sequence[Rule]
    routes: Sequence[str]
    by: str

    @classmethod
    def of(cls, decision: Decision) -> Subject:
        profile, whose = decision.profile, _cut(decision.query.tenant or "")
        return cls(decision.id, whose, profile.name, profile.contract, decision.routes, decision.by)


class RowEncoder:
    """Encodes rows for one store, at one redaction level."""

    def __init__(self, level: Level, key: bytes) -> None:
        self.level = level
        self.key = key
        self._rules: dict[tuple[str, tuple[str, ...], str], tuple[Rule, ...]] = {}

    def decision(self, decision: Decision, parent: str | None = None, *, key_id: str = "") -> bytes:
        """The lines of a decision and its parts; `key_id` is the key that asked for it."""
        query, level = decision.query, self.level
        text, teacher = asked_text(query), _teacher(decision)
        tenant, session = _cut(query.tenant or ""), None if query.session is None else _cut(query.session)
        kept: str | None = text
        hashed: str | None = None
        asked: Any = NOTHING
        body: Any
        if level == "full":
            # JSON columns are encoded together with the row, which saves a copy of each.
            if query.turns or query.attachments or query.declared is not None or query.ceiling is not None:
                asked = query
            body = decision.form()
        else:
            kept, hashed = keep(text, level), None if level == "off" else digest(text, name(tenant), self.key)
            body = Raw(redact_body(decision.json(), level))
        now = now_ms()
        lines = encode_row(LoggedRow(parent, tenant, session, teacher, now, kept, hashed, level, asked, body, key_id))
        rules = self._rules_for(decision)
        if rules and (broken := check_decision(rules, decision)):
            lines += breaches(decision.id, tenant, decision.profile.name, broken, "decision")
        for part in decision.parts:
            lines += self.decision(part, decision.id, key_id=key_id)
        return lines

    def profile(self, profile: Profile) -> bytes:
        """The line of a profile."""
        resolved = Raw(encode(profile.resolved))
        now = now_ms()
        return encode_row(ProfileRow(profile.hash, profile.name, resolved, now, Raw(encode(profile.patterns))))

    def _rules_for(self, decision: Decision) -> tuple[Rule, ...]:
        """The rules that this decision alone could break; cached by routes and layer."""
        profile = decision.profile
        key = (profile.hash, decision.routes, decision.by)
        rules = self._rules.get(key)
        if rules is None:
            could = (rule for rule in decided_rules(profile.contract) if rule.applies(decision.routes, decision.by))
            rules = self._rules[key] = tuple(could)
        return rules

    def outcome(self, subject: Subject, outcome: Outcome) -> bytes:
        """The lines of an outcome and of the contract rules it breaks."""
        extra: Any = outcome.extra or NOTHING
        if outcome.extra and self.level != "full":
            extra = redact_extra(to_builtins(outcome.extra), self.level)
        now = now_ms()
        # An outcome's fields are the columns of its row, in their order.
        row = OutcomeRow(*(subject.decision_id, subject.tenant, *astuple(outcome)[:-1], extra, now))
        lines = encode_row(row)
        if subject.rules and (broken := check_outcome(subject.rules, subject.routes, subject.by, outcome)):
            lines += breaches(subject.decision_id, subject.tenant, subject.profile, broken, "outcome")
        return lines

    def account(
        self,
        decision: Decision,
        outcome: Outcome,
        parts: Iterable[tuple[Decision, Outcome]],
        key_id: str,
        usd: float,
        *,
        decided: bool,
    ) -> bytes:
        """The lines of a decision (unless it is `decided` already), of its outcome and its parts' outcomes, and of what
        a key spent on it."""
        lines = b"" if decided else self.decision(decision, key_id=key_id)
        lines += self.outcome(Subject.of(decision), outcome)
        for part, ended in parts:
            lines += self.outcome(Subject.of(part), ended)
        return lines + spending(decision.id, key_id, usd)

    def reply(self, tenant: str, session: str, decision_id: str | None, role: str, text: str) -> bytes:
        now, kept = now_ms(), keep(text, self.level)
        return encode_row(ReplyRow(new_id(), _cut(tenant), _cut(session), decision_id, role, kept, self.level, now))


def now_ms() -> int:
    """The time as the log counts it: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def spending(ident: str, key_id: str, spent_usd: float) -> bytes:
    """The line of what a key spent, if there is a key and it spent anything."""
    if not key_id or not spent_usd:
        return b""
    return encode_row(SpendRow(ident, key_id, spent_usd, now_ms()))


def breaches(decision_id: str, tenant: str, profile: str, broken: Iterable[Violation], phase: str) -> bytes:
    now = now_ms()
    lines = b""
    for one in broken:
        found = encode(one.found).decode()
        lines += encode_row(BreachRow(decision_id, tenant, profile, one.rule, one.fact, found, one.text, phase, now))
    return lines


def encode(value: object) -> bytes:
    """The value as JSON that both databases can store."""
    try:
        form = json.encode(value)
    except UnicodeEncodeError:
        form = b""
    # A byte is found much faster than six, and faster by its number than as bytes of one.
    if form and (BACKSLASH not in form or b"\\u0000" not in form):
        return form
    # NULs and surrogates are replaced much faster in the texts than in their JSON form.
    plain = to_builtins(value, builtin_types=(Raw,))
    return writable_json(json.encode(each_text(plain, writable)))


def _cut(text: str) -> str:
    """A name short enough for an index. Characters a database refuses are replaced when the row is encoded."""
    return text if len(text) <= NAME_CHARACTERS else name(text)


def line(content: bytes) -> bytes:
    return b"%08x %b\n" % (crc32(content), content)


def contents(lines: bytes) -> Iterator[bytes | None]:
    """The content of each line; None for one that is torn. A power cut may have left zeros before a line."""
    for whole in BytesIO(lines):
        kept = whole.lstrip(b"\0") if whole[:1] == b"\0" else whole
        content = kept[9:].removesuffix(b"\n")
        yield content if kept.startswith(b"%08x " % crc32(content)) else None


def encode_row(row: Row | LoggedRow) -> bytes:
    """The line of a row."""
    return line(encode(row))


def decode_row(content: bytes) -> Row:
    """The row in a line's content; raises DecodeError if there is none."""
    row = _rows.decode(content)
    return row.whole() if isinstance(row, LoggedRow) else row


def asked_text(query: Query) -> str:
    """The question: the query's own text, else the user's last turn."""
    return query.text or next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")


def digest(text: str, tenant: str, key: bytes) -> str:
    """A keyed hash: shows whether two questions of one tenant are the same, and nothing else without the key."""
    hashed = hashlib.blake2b(key=key, digest_size=DIGEST_BYTES)
    hashed.update(tenant.encode("utf-8", "replace") + b"\0")
    hashed.update(text.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def _teacher(decision: Decision) -> str | None:
    """The route a model gave, used or not. Read from the steps: profiles of one hash differ in their models."""
    for step in decision.steps:
        if step.verdict is not None and step.place.cost == "network":
            return step.verdict.routes[0]
    return None
