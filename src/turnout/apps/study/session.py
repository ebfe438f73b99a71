"""Sessions: a reader's questions without a long pause, so that a question can refer to earlier ones.

Every turn is recorded, whatever its policy hid from the model. If the store may not keep texts, sessions live in the
process and are not remembered after they end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from turnout.core.decision import new_id
from turnout.store import Store
from turnout.store.study import StudyRows, StudySession, StudyTurn

from .memory import Memories, Memory, summarize

# The most sessions kept in the process; the oldest are dropped.
MOST_SESSIONS = 1_000
MINUTE_MS = 60_000
# The specification's.
IDLE_MINUTES = 30


class Sessions:
    """The sessions of all readers. Blocking if they are in a store."""

    def __init__(
        self,
        store: Store | None,
        memories: Callable[[], Memories],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Without `store` sessions are kept in the process. `memories` opens the index when it is first needed."""
        self._store = store
        self._open_memories = memories
        self._memories: Memories | None = None
        self.idle_minutes = IDLE_MINUTES
        self._clock = clock
        self._here: dict[tuple[str, str], tuple[StudySession, list[StudyTurn]]] = {}

    @property
    def is_kept(self) -> bool:
        return self._store is not None

    def begin(self, reader: str, name: str) -> tuple[StudySession, list[StudyTurn]]:
        """The open session of that name and its turns, or a new one if it was idle for too long."""
        now = self._now()
        rows = self._rows(reader)
        if rows is None:
            session, turns = self._here.get((reader, name), (None, []))
            if session is None or session.last_ms < now - self.idle_minutes * MINUTE_MS:
                session, turns = StudySession(new_id(), name, now, now), []
            return session, turns
        self.end_idle(reader)
        session = rows.open_session(name, now)
        return session, rows.turns(session.id)

    def add(self, reader: str, session: StudySession, turn: StudyTurn) -> None:
        rows = self._rows(reader)
        if rows is not None:
            rows.add(session.id, turn)
            return
        key = (reader, session.name)
        known, turns = self._here.pop(key, (session, []))
        turns = [*turns, turn] if known.id == session.id else [turn]
        self._here[key] = (StudySession(session.id, session.name, session.started_ms, turn.created_ms), turns)
        while len(self._here) > MOST_SESSIONS:
            del self._here[next(iter(self._here))]

    def end(self, reader: str, name: str) -> StudySession | None:
        """End a session, with its summary; None if there is none of that name."""
        rows = self._rows(reader)
        if rows is None:
            found, _ = self._here.pop((reader, name), (None, []))
            return found
        session = rows.find_session(name)
        return self._end(rows, session) if session is not None else None

    def end_idle(self, reader: str) -> list[StudySession]:
        """End the sessions that were idle for too long, and return those that this call ended."""
        rows = self._rows(reader)
        if rows is None:
            return []
        idle = rows.idle(self._now() - self.idle_minutes * MINUTE_MS)
        return [ended for one in idle if (ended := self._end(rows, one)) is not None]

    def _end(self, rows: StudyRows, session: StudySession) -> StudySession | None:
        """The ended session; None if another process ended it just before."""
        summary, now = summarize(rows.turns(session.id)), self._now()
        if not rows.end(session.id, summary, now):
            return None
        return StudySession(session.id, session.name, session.started_ms, session.last_ms, now, summary)

    def turns(self, reader: str, session: StudySession) -> list[StudyTurn]:
        rows = self._rows(reader)
        return rows.turns(session.id) if rows is not None else []

    def set_summary(self, reader: str, session: StudySession, summary: str) -> StudySession:
        """Replace the summary of an ended session, in the store and in the index."""
        session = replace(session, summary=summary)
        rows = self._rows(reader)
        if rows is not None and rows.set_summary(session.id, summary):
            self._memory().remember(reader, session, rows.turns(session.id))
        return session

    # --- memory

    def find(self, reader: str, question: str) -> tuple[Memory, ...]:
        """Memories of earlier sessions for a question."""
        rows = self._rows(reader)
        if rows is None:
            return ()
        memories = self._memory()
        memories.follow(reader, rows)
        return memories.find(reader, question)

    def remembered(self, reader: str) -> list[StudySession]:
        """The ended sessions, the newest first."""
        rows = self._rows(reader)
        if rows is None:
            return []
        self.end_idle(reader)
        return rows.ended()

    def forget(self, reader: str, ident: str) -> int:
        """Delete the ended sessions of this id or name, or `all`; returns how many."""
        rows = self._rows(reader)
        if rows is None:
            return 0
        chosen = [one for one in rows.ended() if ident in ("all", one.id, one.name) or _is_ending(ident, one.id)]
        forgotten = sum(rows.forget(one.id) for one in chosen)
        if forgotten:
            self._memory().follow(reader, rows)
        return forgotten

    def close(self) -> None:
        if self._memories is not None:
            self._memories.close()

    def _memory(self) -> Memories:
        self._memories = self._memories or self._open_memories()
        return self._memories

    def _rows(self, reader: str) -> StudyRows | None:
        return self._store.study(reader) if self._store is not None else None

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _is_ending(end: str, ident: str) -> bool:
    """Whether this is the end of an id: ids are shown by their last eight characters."""
    return len(end) >= 8 and ident.endswith(end.upper())
