"""The reading half of the store: the records of one tenant, and of all tenants for the operator.

Every reading method is here and passes the tenant on, so a forgotten filter cannot reach another tenant's rows. Reading
across tenants needs another class, which a separate method makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct

from turnout.core.contract import Rule
from turnout.core.decision import first_id, new_id
from turnout.core.errors import StoreError, TextNotKept, UnknownDecision, suggest
from turnout.core.profile import PatternSource
from turnout.core.query import Query, Turn

from . import sql
from .backend import Backend, Record, Value
from .listing import FIRST, LAST, read_page, text_pattern
from .redact import SNIPPET_CHARACTERS, name, writable
from .row import BreachRow, Outcome, OutcomeRow, now_ms
from .stats import ALWAYS, FOREVER_MS, Stats, TimeSpan, gather, names_of
from .traffic import Traffic, read_traffic

# RC-06: the most entries of a session that a classifier gets.
INTENTS = 6
# Rows fetched at a time.
PAGE = 500
# The most kinds of decisions that are listed: keys times routes times layers of a log with many keys.
KINDS = 5_000
# An id has the time of the decision, its row the time of writing, which is some milliseconds later on a busy machine.
DRIFT_MS = 60_000

_letters = re.compile(r"[A-Za-z?-]{0,2}").fullmatch

Judgement = Literal["right", "wrong"]
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)


class Logged(Struct, frozen=True):
    """A decision as it was logged."""

    id: str
    parent_id: str | None
    tenant: str
    session: str | None
    profile: str
    profile_hash: str
    route: str
    routes: tuple[str, ...]
    confidence: float
    by: str
    outcome: str
    teacher: str | None
    """The route a model gave, whether or not it was used."""
    elapsed_us: float
    created_ms: int
    question: str | None
    digest: str | None
    kept: str
    """The redaction level it was written with."""
    asked: Query | None
    """The whole query, if the text is kept in full."""
    body: str
    """The decision's JSON form, unchanged."""
    key_id: str = ""
    """The key that asked; empty where none did."""

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form of the decision."""
        form: dict[str, Any] = msgspec.json.decode(self.body)
        return form


class LogFilter(NamedTuple):
    """Which decisions are wanted."""

    span: TimeSpan = ALWAYS
    profile: str | None = None
    by: str | None = None
    route: str | None = None
    outcome: str | None = None
    """Two letters with `?` for any: `L?`, `?t`."""
    session: str | None = None
    contains: str | None = None
    """Text, found without regard to case."""
    key: str | None = None
    verdict: Judgement | None = None
    """The latest feedback."""

    def values(self, below: str, above: str) -> dict[str, Value] | None:
        """The filter as values of a statement; None if nothing can match."""
        span, outcome = self.span, self.outcome
        route = None if self.route is None else self.route.encode("utf-8", "replace").decode()
        if outcome is not None and not _letters(outcome):
            return None
        if span.until_ms < FOREVER_MS:
            below = min(below, first_id(span.until_ms + DRIFT_MS))
        if span.since_ms > DRIFT_MS:
            above = max(above, first_id(span.since_ms - DRIFT_MS))
        return {
            **span.values(),
            "profile": self.profile,
            "decided_by": self.by,
            "key_id": self.key,
            "session": None if self.session is None else name(self.session),
            "verdict": self.verdict,
            "routed": None if route is None else msgspec.json.encode(route).decode(),
            "outcome": None if outcome is None else f"{outcome:?<2}".replace("?", "_"),
            "needle": text_pattern(self.contains) if self.contains else None,
            "below": below,
            "above": above,
        }

    def admits(self, row: Logged) -> bool:
        """Whether a decision that was just logged is wanted; it has no feedback yet."""
        outcome = zip(self.outcome or "", row.outcome, strict=False)
        names = names_of(self.profile).values()
        return (
            self.span.since_ms <= row.created_ms < self.span.until_ms
            and (self.profile is None or row.profile in names)
            and (self.by is None or row.by == self.by)
            and all(want in ("?", letter) for want, letter in outcome)
            and (self.session is None or row.session == name(self.session))
            and (self.key is None or row.key_id == self.key)
            and self.verdict is None
            and self.finds(row)
        )

    def finds(self, row: Logged) -> bool:
        """The part that the database cannot check: text with all letters folded, and a route as one of a list."""
        text = (self.contains or "").casefold()
        return (self.route is None or self.route in row.routes) and text in (row.question or "").casefold()


class LogPage(Struct, frozen=True):
    """A page of decisions, the newest first."""

    rows: tuple[Logged, ...]
    below: str
    """Where the next page begins; empty if there is none."""


class DecisionKind(Struct, frozen=True):
    """What a group of decisions has in common."""

    profile: str
    routes: tuple[str, ...]
    by: str
    outcome: str
    key_id: str


class Feedback(Struct, frozen=True):
    """A person's verdict on a decision."""

    id: str
    decision_id: str
    verdict: Judgement
    should_be: str | None
    """The route it should have been, if one was given."""
    by: str
    note: str
    created_ms: int


class Intent(Struct, frozen=True):
    """One entry of a session's intent history."""

    route: str
    topic: str
    """The first 60 characters of the question."""
    decision_id: str

    def __str__(self) -> str:
        return f'[{self.route}] "{self.topic}"'


class Session(Struct, frozen=True):
    id: str
    decisions: int
    first_ms: int
    last_ms: int


class Label(Struct, frozen=True):
    """A decision as a training example, with the labels of a model and of people apart."""

    id: str
    session: str | None
    profile: str
    profile_hash: str
    text: str | None
    kept: str
    route: str
    """The decision's route."""
    confidence: float
    by: str
    outcome: str
    teacher: str | None
    human: str | None
    human_by: str | None
    ended: str | None
    slot: str | None
    model: str | None
    cost_usd: float | None
    created_ms: int

    @property
    def label(self) -> str | None:
        """The best label: a human's before the teacher's. None if a human only said that the teacher's is wrong."""
        if self.human is None and self.human_by is not None and self.teacher == self.route:
            return None
        return self.human or self.teacher


class JudgedQuestion(Struct, frozen=True):
    """A question, as far as it was kept, and a person's verdict on its route."""

    text: str
    route: str
    """The decision's route."""
    right: str | None
    """The right route; None if a person only said that it was wrong."""


class Search(Struct, frozen=True):
    """A question to sources, or a part of one, with its outcome."""

    id: str
    parent_id: str | None
    question: str | None
    digest: str | None
    routes: tuple[str, ...]
    created_ms: int
    ended: str
    fallback: str | None
    elapsed_ms: float | None
    sources: tuple[str, ...] | None
    extra: dict[str, Any]


class RuleCount(Struct, frozen=True):
    """How often one rule of a profile was broken."""

    profile: str
    rule: str
    phase: str
    count: int
    first_ms: int
    last_ms: int


class Checked(Struct, frozen=True):
    """How much traffic of a profile the monitor has checked."""

    profile: str
    profile_hash: str
    decisions: int
    outcomes: int


class Records:
    """Reads the records of one tenant."""

    def __init__(self, backend: Backend, tenant: str, settle: Callable[[float], bool]) -> None:
        self.tenant = name(tenant)
        self._backend = backend
        self._settle = settle

    def _read(self, statement: str, **values: Value) -> list[Record]:
        # So that a caller reads its own writes; after a second the database is read as it is.
        self._settle(1.0)
        if "profile" in values:
            values |= names_of(values["profile"])
        safe = {key: writable(value) if isinstance(value, str) else value for key, value in values.items()}
        return self._backend.read(statement, safe | {"tenant": self.tenant})

    def _read_all(self, statement: str, bound: str, values: dict[str, Value]) -> Iterator[Record]:
        """All rows, a page at a time; `bound` names the value that is set to the last id of each page."""
        while True:
            page = self._read(statement, **values, most=PAGE)
            yield from page
            if len(page) < PAGE:
                return
            values = {**values, bound: page[-1][0]}

    # --- decisions

    def get(self, ident: str) -> Logged:
        """One decision: by its id, by a unique beginning or ending of it, or `last`."""
        if ident == "last":
            ident = self._read(sql.LAST_DECISION)[0][0] or ident
        found = self._read(sql.DECISION, id=ident)
        if not found and 4 <= len(ident) < 26 and ident.isascii() and ident.isalnum():
            found = self._read(sql.DECISION, id=self._whole(ident))
        if not found:
            raise UnknownDecision(ident, self.tenant)
        return _logged(found[0])

    def _whole(self, piece: str) -> str:
        """The one id that begins or ends with a piece; the piece itself if there is none."""
        upper = piece.upper()
        # Beginnings have an index and are tried first; an ending is searched among all ids of the tenant.
        for where, statement, values in (
            ("beginning", sql.IDS_LIKE, {"low": upper, "high": upper + LAST}),
            ("ending", sql.IDS_ENDING, {"ending": f"%{upper}"}),
        ):
            like = self._read(statement, **values)
            if len(like) > 1:
                raise StoreError(f"{piece!r} is the {where} of several ids: write more of it")
            if like:
                whole: str = like[0][0]
                return whole
        return piece

    def parts(self, ident: str) -> list[Logged]:
        """The parts of a compound question, in order."""
        return [_logged(row) for row in self._read(sql.PARTS, id=ident)]

    def decisions(
        self,
        *,
        span: TimeSpan = ALWAYS,
        profile: str | None = None,
        by: str | None = None,
        route: str | None = None,
        outcome: str | None = None,
        session: str | None = None,
        key: str | None = None,
        verdict: Judgement | None = None,
        contains: str | None = None,
        below: str = LAST,
        above: str = FIRST,
        oldest_first: bool = False,
    ) -> Iterator[Logged]:
        """Decisions, newest first, fetched page by page.

        `outcome` is two letters with `?` for any: `L?`, `?t`. `verdict` is a decision's latest feedback. `contains`
        finds text without regard to case.
        """
        wanted = LogFilter(span, profile, by, route, outcome, session, contains, key, verdict)
        if oldest_first:
            values = wanted.values(below, above)
            rows = self._read_all(sql.DECISIONS_UP, "above", values) if values is not None else iter(())
            yield from filter(wanted.finds, map(_logged, rows))
            return
        while below:
            page = self.page(wanted, below=below, above=above)
            yield from page.rows
            below = page.below

    def page(self, wanted: LogFilter, *, below: str = LAST, above: str = FIRST, most: int = PAGE) -> LogPage:
        """One page of `decisions`, the newest first. With a text, it has the matches in a limited number of rows."""
        values = wanted.values(below, above)
        if values is None or most <= 0:
            return LogPage((), "")
        found, below = read_page(self._read, values, most)
        return LogPage(tuple(filter(wanted.finds, map(_logged, found))), below)

    def kinds(self, *, most: int = KINDS) -> list[DecisionKind]:
        """The kinds of decisions, which a list can be filtered by."""
        found = self._read(sql.DECISION_KINDS, most=most, last=LAST)
        return [DecisionKind(row[0], tuple(msgspec.json.decode(row[1])), *row[2:]) for row in found]

    def profile(self, profile_hash: str) -> dict[str, Any] | None:
        """The resolved profile with that hash, if a decision of this tenant was made with it."""
        found = self._read(sql.PROFILE_OF, hash=profile_hash)
        return msgspec.json.decode(found[0][0]) if found else None

    def contract(self, profile_hash: str) -> tuple[Rule, ...]:
        """The rules of that profile."""
        resolved = self.profile(profile_hash) or {}
        return msgspec.convert(resolved.get("contract", ()), tuple[Rule, ...])

    def patterns(self, profile_hash: str) -> tuple[PatternSource, ...]:
        """What that profile looks for, in the order of a decision's hits; nothing where no such row was written."""
        found = self._read(sql.PROFILE_OF, hash=profile_hash)
        return msgspec.json.decode(found[0][1] or "[]", type=tuple[PatternSource, ...]) if found else ()

    def searches(self, profile: str) -> Iterator[Search]:
        """Questions of one profile that were acted on, the newest first, each followed by its parts."""
        for row in self._read_all(sql.SEARCHES, "below", {"profile": profile, "below": LAST}):
            fields: dict[str, Any] = dict(zip(Search.__struct_fields__, row, strict=True))
            for field, missing in (("routes", ()), ("sources", None), ("extra", {})):
                fields[field] = msgspec.json.decode(fields[field]) if fields[field] else missing
            yield msgspec.convert(fields, Search)

    # --- what belongs to a decision

    def outcome(self, ident: str) -> Outcome | None:
        """What happened after a decision; None if nothing was written down."""
        found = self._read(sql.OUTCOME_OF, id=ident)
        if not found:
            return None
        fields: dict[str, Any] = dict(zip(OutcomeRow.__struct_fields__, found[0], strict=True))
        if fields["retrieval"] is not None:
            fields["retrieval"] = bool(fields["retrieval"])
        for field in ("sources", "extra"):
            fields[field] = msgspec.json.decode(fields[field]) if fields[field] else None
        known = {name: fields[name] for name in Outcome.__struct_fields__ if fields[name] is not None}
        return msgspec.convert(known, Outcome)

    def feedback(self, ident: str) -> list[Feedback]:
        """What humans said of a decision, in order; the last word counts."""
        return [Feedback(*row) for row in self._read(sql.FEEDBACK_OF, id=ident)]

    def judged(self, profile: str, *, most: int) -> list[JudgedQuestion]:
        """The latest feedback on each question of a profile, the newest first."""
        found: dict[str, JudgedQuestion] = {}
        for ident, text, route, verdict, should_be in self._read(sql.JUDGED, profile=profile, most=most):
            found.setdefault(ident, JudgedQuestion(text, route, route if verdict == "right" else should_be))
        return list(found.values())

    def judge(
        self, ident: str, verdict: Judgement, *, should_be: str | None = None, by: str, note: str = ""
    ) -> Feedback:
        """Save a person's feedback on a decision: right, wrong, or which route it should have been."""
        found = self.get(ident)
        # A profile built in code is stored without its routes: then any route is accepted.
        routes = (self.profile(found.profile_hash) or {}).get("routes", ())
        if should_be is not None and routes and should_be not in routes:
            raise StoreError(
                f"{should_be[:80]!r} is not a route of profile {found.profile!r}{suggest(should_be, routes)}: "
                f"{', '.join(routes)}"
            )
        if verdict not in JUDGEMENTS:
            raise StoreError(f"a decision is {' or '.join(JUDGEMENTS)}, not {verdict[:80]!r}")
        if verdict == "right" and should_be not in (None, found.route):
            raise StoreError(f"{found.route} cannot be right and should be {should_be}: say wrong, or leave that out")
        now = now_ms()
        feedback = Feedback(new_id(), found.id, verdict, should_be, writable(by), writable(note), now)
        values = msgspec.structs.asdict(feedback) | {"given_by": feedback.by, "tenant": self.tenant}
        self._backend.change(sql.ADD_FEEDBACK, values)
        return feedback

    # --- sessions

    def sessions(self, *, since_ms: int = 0, most: int = 100) -> list[Session]:
        """Sessions, the most recently used first."""
        return [Session(*row) for row in self._read(sql.SESSIONS, since_ms=since_ms, most=max(most, 0))]

    def turns(self, session: str, *, most: int = 50, before: str = LAST) -> tuple[Turn, ...]:
        """The last turns of a session, oldest first: questions and answers."""
        rows = self._read(sql.TURNS, session=name(session), most=max(most, 0), below=before)
        return tuple(Turn(role, self._text(text, kept, "the turns")) for role, text, kept, _, _ in rows)

    def intents(self, session: str, *, most: int = INTENTS, before: str = LAST) -> tuple[Intent, ...]:
        """The intent history of a session: at most six entries, with the beginnings of the questions."""
        # SQLite reads a negative limit as no limit.
        rows = self._read(sql.INTENTS, session=name(session), most=min(max(most, 0), INTENTS), below=before)
        return tuple(
            Intent(route, self._text(question, kept, "the intent history")[:SNIPPET_CHARACTERS], ident)
            for route, question, kept, ident in rows
        )

    def _text(self, text: str | None, kept: str, what: str) -> str:
        if text is None:
            raise TextNotKept(
                f"{what} of a session need text, but it was logged with text = {kept!r}: "
                "set text to 'snippet' or 'full' in [store]"
            )
        return text

    # --- the contract

    def breaches(
        self,
        *,
        span: TimeSpan = ALWAYS,
        profile: str | None = None,
        rule: str | None = None,
        decision: str | None = None,
        most: int = 100,
    ) -> list[BreachRow]:
        """Breaches with their evidence, the newest first."""
        if decision is not None:
            rows = self._read(sql.BREACHES_OF, id=decision)
        else:
            rows = self._read(sql.BREACHES, **span.values(), profile=profile, rule=rule, most=max(most, 0))
        return [BreachRow(*row) for row in rows]

    def rule_counts(self, *, span: TimeSpan = ALWAYS, profile: str | None = None) -> list[RuleCount]:
        return [RuleCount(*row) for row in self._read(sql.BREACH_COUNTS, **span.values(), profile=profile)]

    def checked(self, *, span: TimeSpan = ALWAYS, profile: str | None = None) -> list[Checked]:
        return [Checked(*row) for row in self._read(sql.CHECKED_COUNTS, **span.values(), profile=profile)]

    # --- over all

    def stats(
        self,
        *,
        span: TimeSpan = ALWAYS,
        profile: str | None = None,
        key: str | None = None,
        bucket_ms: int = 86_400_000,
        shift_ms: int = 0,
    ) -> Stats:
        """Shares per layer over time, latency, spending.

        Buckets begin at multiples of their length in UTC; `shift_ms` moves them earlier, for days of another time zone.
        """
        return gather(self._read, span, {"profile": profile, "key_id": key}, bucket_ms, shift_ms)

    def traffic(
        self, *, span: TimeSpan, profile: str | None = None, key: str | None = None, bucket_ms: int, shift_ms: int = 0
    ) -> Traffic:
        """The traffic of a span that ends now, by layer, route, profile and key. A long span should begin on the hour,
        so that it is read from counted hours."""
        only = {"profile": profile, "key_id": key}
        return read_traffic(self._read, span, now_ms(), only, bucket_ms, shift_ms)

    def labels(self, *, span: TimeSpan = ALWAYS, profile: str | None = None) -> Iterator[Label]:
        """Every decision as an example, oldest first; parts of compound questions are separate examples."""
        for row in self._read_all(sql.LABELS, "above", {**span.values(), "profile": profile, "above": FIRST}):
            # The columns for the verdict and the right route become one field, the human's label.
            verdict, should_be = row[11:13]
            fields: list[Any] = [*row[:11], row[6] if verdict == "right" else should_be, *row[13:]]
            yield Label(*fields)


class AllRecords(Records):
    """Decisions and statistics of all tenants, for the operator alone, never for a caller.

    `get` returns a decision with its tenant; its outcome and its feedback are read and written as that tenant.
    """

    def __init__(self, backend: Backend, settle: Callable[[float], bool]) -> None:
        super().__init__(backend, "", settle)

    def _read(self, statement: str, **values: Value) -> list[Record]:
        if statement not in sql.ALL_TENANTS:
            raise StoreError("only decisions and their statistics are read for all tenants: name the tenant")
        return super()._read(sql.ALL_TENANTS[statement], **values)


def _logged(row: Record) -> Logged:
    fields: dict[str, Any] = dict(zip(Logged.__struct_fields__, row, strict=True))
    fields["routes"] = tuple(msgspec.json.decode(fields["routes"]))
    if fields["asked"] is not None:
        fields["asked"] = msgspec.json.decode(fields["asked"], type=Query)
    return Logged(**fields)
