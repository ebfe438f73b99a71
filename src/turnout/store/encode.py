"""From a decision to the lines of the spool: what is kept is settled here, once, before anything is written.

This is the part of logging that a caller waits for, a few microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, to_builtins
from msgspec.structs import astuple

from turnout.core.contract import Rule, Violation
from turnout.core.decision import Decision
from turnout.core.ident import new_id
from turnout.core.profile import Profile
from turnout.core.query import Query

from .contract import check_decision, check_outcome, decided_rules
from .redact import Level, digest, keep, redact_body, redact_extra
from .row import NOTHING, BreachRow, LoggedRow, Outcome, OutcomeRow, ProfileRow, ReplyRow, Row
from .spool import line
from .storable import encode, name, writable, writable_json

_encode = msgspec.json.Encoder().encode
_rows: msgspec.json.Decoder[Row | LoggedRow] = msgspec.json.Decoder(Row | LoggedRow)


class Subject(NamedTuple):
    """What an outcome is an outcome of."""

    decision_id: str
    tenant: str
    profile: str
    rules: Sequence[Rule]
    routes: Sequence[str]
    by: str


class RowEncoder:
    """Writes rows for one store, at one redaction level."""

    def __init__(self, level: Level, key: bytes) -> None:
        self.level = level
        self.key = key
        self._rules: dict[tuple[str, tuple[str, ...], str], tuple[Rule, ...]] = {}

    def decision(self, decision: Decision, parent: str | None = None, *, key_id: str = "") -> bytes:
        """The lines of a decision and its parts; `key_id` is the key that asked for it."""
        query, level = decision.query, self.level
        text = query.text or asked_text(query)
        tenant = name(query.tenant) if query.tenant else ""
        session = None if query.session is None else name(query.session)
        asked, body, hashed = NOTHING, NOTHING, None
        if level == "full":
            kept: str | None = writable(text)
            if query.turns or query.attachments or query.declared is not None or query.ceiling is not None:
                asked = Raw(encode(query))
            # Encoded with its row: a form of its own would be copied once more.
            body = decision.form()  # type: ignore[assignment]
        else:
            kept, hashed = keep(text, level), None if level == "off" else digest(text, tenant, self.key)
            body = Raw(redact_body(decision.json(), level))
        teacher, now = _teacher(decision), time.time_ns() // 1_000_000
        row = LoggedRow(parent, tenant, session, teacher, now, kept, hashed, level, asked, body, key_id)
        lines = line(writable_json(_encode(row)))
        rules = self._rules_for(decision)
        if rules and (broken := check_decision(rules, decision)):
            lines += breaches(decision.id, tenant, decision.profile.name, broken, "decision")
        for part in decision.parts:
            lines += self.decision(part, decision.id, key_id=key_id)
        return lines

    def profile(self, profile: Profile) -> bytes:
        """The line of a profile."""
        resolved = Raw(encode(profile.resolved))
        now = time.time_ns() // 1_000_000
        return encode_row(ProfileRow(profile.hash, profile.name, resolved, now, Raw(encode(profile.patterns))))

    def _rules_for(self, decision: Decision) -> tuple[Rule, ...]:
        """The rules that this decision alone could break; worked out when the first like it comes."""
        profile = decision.profile
        key = (profile.hash, decision.routes, decision.by)
        rules = self._rules.get(key)
        if rules is None:
            could = (rule for rule in decided_rules(profile.contract) if rule.applies(decision.routes, decision.by))
            rules = self._rules[key] = tuple(could)
        return rules

    def outcome(self, subject: Subject, outcome: Outcome) -> bytes:
        """The lines of an outcome, and of what in it breaks the contract."""
        sources = NOTHING if outcome.sources is None else Raw(encode(outcome.sources))
        extra = self._extra(outcome.extra) if outcome.extra else NOTHING
        now = time.time_ns() // 1_000_000
        # An outcome's fields are the columns of its row, in their order.
        row = OutcomeRow(*(subject.decision_id, subject.tenant, *astuple(outcome)[:-2], sources, extra, now))
        broken = check_outcome(subject.rules, subject.routes, subject.by, outcome)
        return encode_row(row) + breaches(subject.decision_id, subject.tenant, subject.profile, broken, "outcome")

    def _extra(self, extra: Mapping[str, Any]) -> Raw:
        return Raw(encode(extra if self.level == "full" else redact_extra(to_builtins(extra), self.level)))

    def reply(self, tenant: str, session: str, decision_id: str | None, role: str, text: str) -> bytes:
        now, kept = time.time_ns() // 1_000_000, keep(text, self.level)
        return encode_row(ReplyRow(new_id(), name(tenant), name(session), decision_id, role, kept, self.level, now))


def breaches(decision_id: str, tenant: str, profile: str, broken: Iterable[Violation], phase: str) -> bytes:
    now = time.time_ns() // 1_000_000
    lines = b""
    for one in broken:
        found = encode(one.found).decode()
        lines += encode_row(BreachRow(decision_id, tenant, profile, one.rule, one.fact, found, one.text, phase, now))
    return lines


def encode_row(row: Row) -> bytes:
    """The line of a row; what a provider or an application calls things may be any text."""
    try:
        content = _encode(row)
    except UnicodeEncodeError:
        content = b""
    if not content or b"\\u0000" in content:
        kind: Any = type(row)
        content = _encode(kind(*(writable(field) if type(field) is str else field for field in astuple(row))))
    return line(content)


def decode_row(content: bytes) -> Row:
    """The row of a line's content; raises DecodeError for what is none."""
    row = _rows.decode(content)
    return row.whole() if isinstance(row, LoggedRow) else row


def asked_text(query: Query) -> str:
    """The question: the query's own text, else what the user said last."""
    if query.text or not query.turns:
        return query.text
    return next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")


def _teacher(decision: Decision) -> str | None:
    """What a model said, used or not. Asked of the steps: profiles of one hash differ in which models are there."""
    for step in decision.steps:
        if step.verdict is not None and step.place.cost == "network":
            return step.verdict.routes[0]
    return None
