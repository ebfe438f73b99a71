"""The events of sessions, in order, kept so that a late follower gets all of them.

In a file or a schema of its own beside the decision log: events show progress and are deleted after some days.
Invariant: the numbers of a session are 1, 2, 3… without a gap, whichever processes write to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .backend import Backend, Value
from .redact import name, writable
from .row import now_ms
from .sqlite import Sqlite
from .store import Store, brought_up

# Longer than anyone follows a session.
KEEP_DAYS = 30
DAY_MS = 86_400_000

# Locks the session's row until the transaction ends: writers of all processes take turns.
LOCK_SESSION = """
insert into sessions (tenant, session, last) values (:tenant, :session, 0)
on conflict (tenant, session) do update set last = sessions.last
returning last
"""
COUNT_UP = """
update sessions set last = :sequence where tenant = :tenant and session = :session
"""
FIND_ONCE = """
select sequence, at_ms, body from events where tenant = :tenant and session = :session and once = :once
"""
ADD_EVENT = """
insert into events (tenant, session, sequence, once, body, at_ms)
values (:tenant, :session, :sequence, :once, :body, :at_ms)
"""
EVENTS_AFTER = """
select sequence, at_ms, body from events
where tenant = :tenant and session = :session and sequence > :after
order by sequence limit :most
"""
FORGET_EVENTS = """
delete from events where at_ms < :before_ms
"""


class StoredEvent(NamedTuple):
    sequence: int
    at_ms: int
    body: str


class SessionFile(Sqlite):
    steps = "turnout.store.session_migrations"


class SessionLog:
    """The sessions of one database. Thread-safe; blocking. Every read names its tenant."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def append(self, tenant: str, session: str, body: bytes, once: str = "") -> StoredEvent:
        """Add an event. If there is one with the same `once`, that one is returned."""
        key: dict[str, Value] = {"tenant": name(tenant), "session": name(session)}
        text = writable(body.decode("utf-8", "replace"))
        with self._backend.transaction() as changes:
            last = int(changes.read(LOCK_SESSION, key)[0][0])
            if once and (found := changes.read(FIND_ONCE, {**key, "once": once})):
                return StoredEvent(*found[0])
            event = StoredEvent(last + 1, now_ms(), text)
            changes.change(ADD_EVENT, {**key, "once": once, **event._asdict()})
            changes.change(COUNT_UP, {**key, "sequence": event.sequence})
        return event

    def after(self, tenant: str, session: str, sequence: int, most: int = 1000) -> list[StoredEvent]:
        """The events after a number, in order."""
        values: dict[str, Value] = {"tenant": name(tenant), "session": name(session), "after": sequence, "most": most}
        return [StoredEvent(*row) for row in self._backend.read(EVENTS_AFTER, values)]

    def forget(self, days: int = KEEP_DAYS) -> int:
        """Delete older events and return how many. Numbering continues."""
        return self._backend.change(FORGET_EVENTS, {"before_ms": now_ms() - days * DAY_MS})

    def close(self) -> None:
        self._backend.close()


def open_session_log(store: Store) -> SessionLog:
    """The log beside a store: `NAME.sessions` beside its file, or a schema in its PostgreSQL."""
    backend: Backend
    if isinstance(store.backend, Sqlite):
        backend = SessionFile(beside(store, "sessions"))
    else:
        from .postgres import PostgresSchema

        class SessionSchema(PostgresSchema):
            steps = SessionFile.steps

            def _add_vectors(self) -> None:
                """This schema has no vectors."""

        backend = SessionSchema(store.url, "turnout_sessions")
    log = SessionLog(brought_up(backend))
    log.forget()
    return log


def beside(store: Store, what: str) -> Path:
    """A file beside the store's own."""
    assert isinstance(store.backend, Sqlite)  # noqa: S101 - asked for only of one
    return store.backend.path.with_name(f"{store.backend.path.name}.{what}")
