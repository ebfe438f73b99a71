"""Study sessions, their turns, and summaries of those that have ended.

Invariant: a session ends once, and nothing is added to it afterwards; a later question begins another with its name.
"""

from __future__ import annotations

from msgspec import Struct

from turnout.core.decision import new_id

from . import sql
from .backend import Backend, Value
from .redact import name, writable


class StudySession(Struct, frozen=True, omit_defaults=True):
    """Questions without a long pause between them."""

    id: str
    name: str
    started_ms: int
    last_ms: int
    ended_ms: int | None = None
    summary: str | None = None


class StudyTurn(Struct, frozen=True):
    """A question and its answer, word for word."""

    id: str
    """The decision's id."""
    question: str
    answer: str
    route: str
    created_ms: int


class StudyRows:
    """The study sessions of one tenant."""

    def __init__(self, backend: Backend, tenant: str) -> None:
        self._backend = backend
        self._tenant = name(tenant)

    def open_session(self, called: str, now_ms: int) -> StudySession:
        """The open session with that name; a new one if there is none."""
        if found := self.find_session(called):
            return found
        called = name(called)
        made = StudySession(new_id(), called, now_ms, now_ms)
        row = (made.id, self._tenant, called, now_ms, now_ms, None, None)
        with self._backend.transaction() as changes:
            changes.many(sql.ADD_SESSION, [row])
        return made

    def find_session(self, called: str) -> StudySession | None:
        """The open session with that name."""
        found = self._backend.read(sql.OPEN_SESSION, {"tenant": self._tenant, "name": name(called)})
        return StudySession(*found[0]) if found else None

    def idle(self, before_ms: int) -> list[StudySession]:
        """Open sessions without a question since."""
        rows = self._backend.read(sql.IDLE_SESSIONS, {"tenant": self._tenant, "before_ms": before_ms})
        return [StudySession(*row) for row in rows]

    def ended(self) -> list[StudySession]:
        """Ended sessions, the newest first."""
        return [StudySession(*row) for row in self._backend.read(sql.ENDED_SESSIONS, {"tenant": self._tenant})]

    def turns(self, session: str) -> list[StudyTurn]:
        """The turns of a session, oldest first."""
        values = {"tenant": self._tenant, "session_id": session}
        return [StudyTurn(*row) for row in self._backend.read(sql.SESSION_TURNS, values)]

    def add(self, session: str, turn: StudyTurn) -> None:
        question, answer = writable(turn.question), writable(turn.answer)
        row = (turn.id, self._tenant, session, question, answer, turn.route, turn.created_ms)
        with self._backend.transaction() as changes:
            changes.many(sql.ADD_TURN, [row])
            changes.change(sql.TOUCH_SESSION, {"tenant": self._tenant, "id": session, "last_ms": turn.created_ms})

    def end(self, session: str, summary: str, now_ms: int) -> bool:
        """End a session; returns whether it was open."""
        values: dict[str, Value] = {"tenant": self._tenant, "id": session, "ended_ms": now_ms}
        values["summary"] = writable(summary)
        return self._backend.change(sql.END_SESSION, values) > 0

    def set_summary(self, session: str, summary: str) -> bool:
        """Replace the summary of an ended session; returns whether there is one."""
        values: dict[str, Value] = {"tenant": self._tenant, "id": session, "summary": writable(summary)}
        return self._backend.change(sql.SET_SUMMARY, values) > 0

    def forget(self, session: str) -> bool:
        """Delete a session with its turns; returns whether there was one."""
        values = {"tenant": self._tenant, "id": session}
        with self._backend.transaction() as changes:
            changes.change(sql.FORGET_TURNS, values)
            return changes.change(sql.FORGET_SESSION, values) > 0
