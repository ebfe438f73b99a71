"""From a decision to the lines of the spool: what is kept is settled here, once, before anything is written.

This is the part of logging that a caller waits for, a few microseconds. Whatever depends on the profile alone is
worked out when its first decision comes and kept.
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
from turnout.core.query import Query

from .contract import check_decision, check_outcome, decided_rules
from .mask import writable
from .redact import Level, digest, encode, keep, name, redact_body, redact_extra, writable_json
from .row import NOTHING, BreachRow, DecisionRow, Outcome, OutcomeRow, ProfileRow, ReplyRow, Row
from .spool import line

_encode = msgspec.json.Encoder().encode
_rows: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)
_many: msgspec.json.Decoder[list[Row]] = msgspec.json.Decoder(list[Row])


class Known(NamedTuple):
    """What is worth knowing of a profile before its next decision."""

    rules: tuple[Rule, ...]
    taught: bool
    """It has layers that ask a model."""
    routes: dict[tuple[str, ...], str]
    """The JSON of the routes seen so far."""


class Subject(NamedTuple):
    """What an outcome is an outcome of."""

    decision_id: str
    tenant: str
    profile: str
    rules: Sequence[Rule]
    routes: Sequence[str]
    by: str


class Scribe:
    """Writes rows for one store, at one redaction level."""

    def __init__(self, level: Level, key: bytes) -> None:
        self.level = level
        self.key = key
        self.spooled: set[str] = set()
        """Profiles that are in the spool already, by hash; the journal adds to it once an append has succeeded."""
        self._known: dict[str, Known] = {}

    def decision(self, decision: Decision) -> bytes:
        """The lines of a decision and its parts, after those of a profile that is new here."""
        profile = decision.profile
        known = self._known.get(profile.hash)
        if known is None:
            taught = any(place.cost == "network" for place in profile.layers)
            known = self._known[profile.hash] = Known(decided_rules(profile.contract), taught, {})
        now = time.time_ns() // 1_000_000
        lines = self._lines(decision, None, known, now)
        if profile.hash not in self.spooled:
            lines = entry(ProfileRow(profile.hash, profile.name, Raw(encode(profile.resolved)), now)) + lines
        return lines

    def _lines(self, decision: Decision, parent: str | None, known: Known, now: int) -> bytes:
        query, profile, level = decision.query, decision.profile, self.level
        text = asked_text(query)
        tenant = name(query.tenant) if query.tenant else ""
        body = writable_json(decision.json())
        routes = known.routes.get(decision.routes)
        if routes is None:
            routes = known.routes[decision.routes] = _encode(decision.routes).decode()
        full = level == "full"
        row = DecisionRow(
            decision.id,
            parent,
            tenant,
            None if query.session is None else name(query.session),
            profile.name,
            profile.hash,
            decision.routes[0],
            routes,
            decision.confidence,
            decision.by,
            decision.outcome,
            _teacher(decision) if known.taught else None,
            decision.elapsed_ns / 1000,
            now,
            writable(text) if full else keep(text, level),
            None if full or level == "off" else digest(text, tenant, self.key),
            level,
            _asked(query) if full else NOTHING,
            Raw(body if full else redact_body(body, level)),
        )
        lines = line(_encode(row))
        if known.rules:
            broken = check_decision(known.rules, decision)
            if broken:
                lines += breaches(decision.id, tenant, profile.name, broken, "decision")
        for part in decision.parts:
            lines += self._lines(part, decision.id, known, now)
        return lines

    def outcome(self, subject: Subject, told: Outcome) -> bytes:
        """The lines of an outcome, and of what in it breaks the contract."""
        row = OutcomeRow(
            subject.decision_id,
            subject.tenant,
            told.ended,
            told.slot,
            told.model,
            told.attempts,
            told.input_tokens,
            told.output_tokens,
            told.cost_usd,
            told.baseline_usd,
            told.classifier_usd,
            told.retrieval,
            told.fallback,
            told.cap_reached,
            told.elapsed_ms,
            NOTHING if told.sources is None else Raw(encode(told.sources)),
            self._extra(told.extra) if told.extra else NOTHING,
            time.time_ns() // 1_000_000,
        )
        broken = check_outcome(subject.rules, subject.routes, subject.by, told)
        return entry(row) + breaches(subject.decision_id, subject.tenant, subject.profile, broken, "outcome")

    def _extra(self, extra: Mapping[str, Any]) -> Raw:
        return Raw(encode(extra if self.level == "full" else redact_extra(to_builtins(extra), self.level)))

    def reply(self, tenant: str, session: str, decision_id: str | None, role: str, text: str) -> bytes:
        now, kept = time.time_ns() // 1_000_000, keep(text, self.level)
        return entry(ReplyRow(new_id(), name(tenant), name(session), decision_id, role, kept, self.level, now))


def breaches(decision_id: str, tenant: str, profile: str, broken: Iterable[Violation], phase: str) -> bytes:
    now = time.time_ns() // 1_000_000
    return b"".join(
        entry(
            BreachRow(
                decision_id, tenant, profile, one.rule, one.fact, encode(one.found).decode(), one.text, phase, now
            )
        )
        for one in broken
    )


def entry(row: Row) -> bytes:
    """The line of a row; what a provider or an application calls things may be any text."""
    try:
        content = _encode(row)
    except UnicodeEncodeError:
        content = b""
    if not content or b"\\u0000" in content:
        kind: Any = type(row)
        content = _encode(kind(*(writable(field) if type(field) is str else field for field in astuple(row))))
    return line(content)


def read_entry(content: bytes) -> Row:
    """The row of a line's content; raises DecodeError for what is none."""
    return _rows.decode(content)


def read_entries(contents: Sequence[bytes]) -> list[Row]:
    """The rows of many lines, read in one go; raises DecodeError if one of them is none."""
    rows = _many.decode(b"[" + b",".join(contents) + b"]")
    if len(rows) != len(contents):
        raise msgspec.DecodeError("a line of more than one row")
    return rows


def asked_text(query: Query) -> str:
    """The question: the query's own text, else what the user said last."""
    if query.text or not query.turns:
        return query.text
    return next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")


def _asked(query: Query) -> Raw:
    """The whole query, where its text is not all of it."""
    if query.turns or query.attachments or query.declared is not None or query.ceiling is not None:
        return Raw(encode(query))
    return NOTHING


def _teacher(decision: Decision) -> str | None:
    """What a model said, used or not."""
    for step in decision.steps:
        if step.place.cost == "network" and step.verdict is not None:
            return step.verdict.routes[0]
    return None
