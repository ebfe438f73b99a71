"""Compares two decisions on each of many questions: those of two profiles, or a recorded one and a new one.

A question counts as changed if its routes differ. All questions are counted, but only the first changes are kept, so
memory stays constant for any input. Only local layers decide; no model is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self, get_args

import msgspec
from msgspec import Struct, field

from turnout.core.decision import Decision
from turnout.core.errors import QueryError, TurnoutError
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.core.registry import kinds
from turnout.core.verdict import How, Reason, Who
from turnout.store import Logged
from turnout.text.json import UNREADABLE

from .rows import LineChunk, RowTally, encode_id, read_row, router_of, text_of

Pair = tuple[str, str]

NO_DECISION = "had no decision to compare with"
NO_TEXT = "had no text to decide again"
ASKED_A_MODEL = "took a model, which is not asked again"


class PastStep(Struct):
    kind: str
    ended: str


class PastPart(Struct):
    reasons: tuple[Reason, ...] = ()
    trace: tuple[PastStep, ...] = ()


class PastDecision(Struct):
    """The fields of a recorded decision that are compared."""

    profile_hash: str
    routes: tuple[str, ...]
    confidence: float
    by: str
    outcome: str
    reasons: tuple[Reason, ...] = ()
    trace: tuple[PastStep, ...] = ()
    parts: tuple[PastPart, ...] = ()

    def asked_a_model(self) -> bool:
        known = kinds()
        steps = (step for trace in (self.trace, *(part.trace for part in self.parts)) for step in trace)
        return any(
            step.ended not in ("passed", "skipped") and (step.kind not in known or known[step.kind].cost == "network")
            for step in steps
        )


class DiffSide(Struct, frozen=True):
    """One of the two decisions on a question."""

    route: str
    confidence: float
    by: str
    outcome: str
    reasons: tuple[str, ...]
    """The texts of the reasons."""

    @staticmethod
    def of(decision: Decision | PastDecision) -> DiffSide:
        reasons = [*decision.reasons, *(reason for part in decision.parts for reason in part.reasons)]
        texts = tuple(reason.text for reason in reasons)
        return DiffSide(" + ".join(decision.routes), decision.confidence, decision.by, decision.outcome, texts)

    def agrees(self, other: DiffSide) -> bool:
        """Whether both are the same decision, apart from the wording of the reasons."""
        return msgspec.structs.replace(self, reasons=other.reasons) == other


class DiffRow(Struct, frozen=True, omit_defaults=True):
    row: int
    text: str
    old: DiffSide
    new: DiffSide
    id: msgspec.Raw | None = None


class Diff(RowTally):
    """The counts for some rows: pairs of old and new routes, and of old and new outcomes."""

    limit: int = 0
    """How many changes to keep."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Rows that cannot be compared, by reason."""
    changes: list[DiffRow] = field(default_factory=list)
    hashes: Counter[str] = field(default_factory=Counter)
    """Recorded decisions of other profiles, by profile hash."""
    replayed: int = 0
    """Recorded decisions of this very profile, which must come out the same; counted separately."""
    differing: int = 0
    differences: list[DiffRow] = field(default_factory=list)

    def add(self, other: Self) -> None:
        super().add(other)
        self.replayed, self.differing = self.replayed + other.replayed, self.differing + other.differing
        self.skipped.update(other.skipped)
        self.hashes.update(other.hashes)
        self.changes += other.changes[: self.limit - len(self.changes)]
        self.differences += other.differences[: self.limit - len(self.differences)]

    def note(self, change: DiffRow) -> None:
        """Count the two decisions on a question."""
        old, new = change.old, change.new
        self.routes[old.route, new.route] += 1
        self.outcomes[old.outcome, new.outcome] += 1
        if old.route != new.route and len(self.changes) < self.limit:
            self.changes.append(change)

    def note_replay(self, change: DiffRow) -> None:
        """Count a recorded decision of this profile and the new one."""
        self.replayed += 1
        if not change.old.agrees(change.new):
            self.differing += 1
            if len(self.differences) < self.limit:
                self.differences.append(change)

    @property
    def decided(self) -> int:
        return self.routes.total()

    @property
    def changed(self) -> int:
        return sum(count for (old, new), count in self.routes.items() if old != new)

    @property
    def share(self) -> float:
        return self.changed / self.decided if self.decided else 0.0

    def form(self, old: Profile | None, new: Profile) -> dict[str, Any]:
        """The JSON form: for two profiles, or (without `old`) for recorded decisions and one profile."""
        counts = {
            "rows": self.rows,
            "errors": self.errors,
            "changed": self.changed,
            "share": self.share,
            "routes": _listed(self.routes),
            "outcomes": _listed(self.outcomes),
            "changes": self.changes,
        }
        if old is not None:
            heads = [{"profile": profile.name, "profile_hash": profile.hash} for profile in (old, new)]
            return {"old": heads[0], "new": heads[1], "policies": policy_changes(old, new), **counts}
        return {
            "profile": new.name,
            "profile_hash": new.hash,
            "replayed": self.replayed,
            "differing": self.differing,
            "differences": self.differences,
            "skipped": self.skipped.total(),
            "hashes": dict(sorted(self.hashes.items())),
            **counts,
        }


def _listed(pairs: Counter[Pair]) -> list[dict[str, str | int]]:
    return [{"old": old, "new": new, "count": count} for (old, new), count in ranked(pairs)]


def ranked(pairs: Counter[Pair]) -> list[tuple[Pair, int]]:
    """Most frequent first, then by name, so that the order does not depend on the workers."""
    return sorted(pairs.items(), key=lambda item: (-item[1], item[0]))


def policy_changes(old: Profile, new: Profile) -> dict[str, dict[str, tuple[Any, Any]]]:
    """For each route of both profiles: the fields of its policy that differ, old and new."""
    changes = {}
    for route in old.routes:
        if route in new.policies:
            was, now = (msgspec.to_builtins(profile.policies[route]) for profile in (old, new))
            fields = {name: (was.get(name), now.get(name)) for name in dict.fromkeys((*was, *now))}
            if differing := {name: pair for name, pair in fields.items() if pair[0] != pair[1]}:
                changes[route] = differing
    return changes


class DiffJob(NamedTuple):
    """The same for every chunk."""

    old: str | None
    """A profile; None to compare with the recorded decisions."""
    new: str
    config: str | None
    field: str
    limit: int


def compare_chunk(job: DiffJob, chunk: LineChunk) -> Diff:
    """Compare the two decisions on every row of a chunk."""
    old = None if job.old is None else router_of(job.old, job.config)
    new = router_of(job.new, job.config)
    diff = Diff(len(chunk.lines), chunk.size, limit=job.limit)
    for number, line in enumerate(chunk.lines, chunk.first):
        try:
            row = read_row(line)
            if old is None and "decision" not in row and "error" in row:
                diff.skipped[NO_DECISION] += 1
                continue
            before = read_recorded(row) if old is None else None
            query = _query(row, job.field, number, recorded=before is not None)
            was = DiffSide.of(before or old.route_sync(query))  # type: ignore[union-attr]
            now = DiffSide.of(new.route_sync(query))
            ident = msgspec.Raw(encode_id(row["id"])) if "id" in row else None
            change = DiffRow(number, query.text, was, now, ident)
        except QueryError as error:
            diff.fail(number, error)
            continue
        if before is not None and before.profile_hash == new.profile.hash:
            diff.note_replay(change)
            continue
        if before is not None:
            diff.hashes[before.profile_hash] += 1
        diff.note(change)
    return diff


def _query(row: dict[str, msgspec.Raw], name: str, number: int, *, recorded: bool) -> Query:
    if "query" in row:
        return msgspec.json.decode(row["query"], type=Query)
    if recorded and name not in row:
        raise TurnoutError(f"row {number} has no text to decide again: make the file with turnout batch --with-text")
    return Query(text_of(row, name))


def read_recorded(row: dict[str, msgspec.Raw]) -> PastDecision:
    if "decision" not in row:
        raise QueryError("neither a decision nor an error: is this what turnout batch has written?")
    try:
        recorded = _decision.decode(row["decision"])
    except UNREADABLE as error:
        raise QueryError(f"its decision cannot be read: {error}") from None
    letters = recorded.outcome
    if not recorded.routes or len(letters) != 2 or letters[0] not in get_args(Who) or letters[1] not in get_args(How):
        raise QueryError("its decision cannot be read: no route, or no outcome of two letters")
    return recorded


_decision = msgspec.json.Decoder(PastDecision)


def logged_lines(rows: Iterable[Logged], skipped: Counter[str], *, recorded: bool) -> Iterator[tuple[bytes, int]]:
    """Logged decisions as rows to compare, each with its size; those that cannot be compared are counted in `skipped`.

    With `recorded`, decisions that took a model's answer are skipped too: local layers alone cannot repeat them.
    """
    for row in rows:
        if row.question is None or row.kept != "full":
            skipped[NO_TEXT] += 1
        elif recorded and _decision.decode(row.body).asked_a_model():
            skipped[ASKED_A_MODEL] += 1
        else:
            query = row.asked or Query(row.question)
            line = msgspec.json.encode({"id": row.id, "query": query, "decision": msgspec.Raw(row.body.encode())})
            yield line, len(line)
