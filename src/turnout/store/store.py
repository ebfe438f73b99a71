"""The store: decisions, outcomes, sessions, feedback and breaches of contract.

Writing goes through the journal, reading through `records`, which is bound to one tenant. Opening a store creates a
missing database, migrates an old schema, refuses a newer one, and takes over rows that an earlier process left in its
spool.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import unquote, urlsplit

from turnout.config.settings import StoreSettings, data_folder, store_settings, store_url
from turnout.core.decision import Decision
from turnout.core.errors import ConfigError, Problem, StoreError

from . import sql
from .backend import Backend
from .cache import CacheRows
from .cards import CardRows
from .hours import count_hour
from .journal import Counts, Durability, Journal
from .keys import Keys
from .migrate import Migration
from .records import AllRecords, Records
from .redact import Level
from .retention import Retention
from .row import Outcome, RowEncoder, Subject, spending
from .spool import CLOSED, Spool
from .sqlite import Sqlite
from .study import StudyRows

B = TypeVar("B", bound=Backend)


class StoreReader:
    """An open database without a journal; decisions are written through a `Store`."""

    def __init__(self, backend: Backend, folder: Path) -> None:
        self.backend = backend
        self.folder = folder
        """The spool's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def keys(self) -> Keys:
        """Keys and their spending."""
        return Keys(self.backend, self._settled)

    @property
    def cache(self) -> CacheRows:
        """Cached answers."""
        return CacheRows(self.backend)

    def study(self, tenant: str = "") -> StudyRows:
        """The study sessions of one tenant."""
        return StudyRows(self.backend, tenant)

    @property
    def cards(self) -> CardRows:
        """Claim cards."""
        return CardRows(self.backend)

    def records(self, tenant: str = "") -> Records:
        """The records of one tenant; by default of queries that named no tenant."""
        return Records(self.backend, tenant, self._settled)

    def all_records(self) -> AllRecords:
        """The records of all tenants, for the operator only."""
        return AllRecords(self.backend, self._settled)

    def tenants(self) -> dict[str, int]:
        """The tenants and their numbers of decisions."""
        self._settled(1.0)
        return dict(self.backend.read(sql.TENANTS, {}))

    def count_hour(self) -> bool:
        """Count the newest hour of traffic that is over and not counted; returns whether there was one."""
        return count_hour(self.backend)

    def close(self) -> None:
        self.backend.close()

    def _settled(self, timeout_s: float) -> bool:
        return True


class Store(StoreReader):
    """An open database with its journal. Thread-safe; not to be used across a fork."""

    def __init__(self, backend: Backend, journal: Journal, settings: StoreSettings, url: str = "") -> None:
        super().__init__(backend, journal.spool.folder)
        self.url = url
        """The URL it was opened with, which may have a password."""
        self.journal = journal
        self.settings = settings

    def __repr__(self) -> str:
        return f"Store({self.backend.where!r}, {self.journal.durability}, text={self.journal.encoder.level})"

    @property
    def is_strict(self) -> bool:
        """Whether rows are committed before the caller continues."""
        return self.journal.durability == "strict"

    def record(self, decision: Decision) -> None:
        """Write a decision; returns when it is as durable as the store was opened for.

        In `batched` a failing disk or database does not make this raise: rows that cannot be written are counted. In
        `strict` it raises NotStored. On a closed store, a mistake of the program, it raises ValueError.
        """
        done = self.append(decision)
        if done is not None:
            done.result()

    def append(self, decision: Decision, *, key_id: str = "", spent_usd: float = 0.0) -> Future[None] | None:
        """As `record`, for callers that must not block: in `strict`, returns a future to wait for before answering.
        Also writes which key asked for the decision and what it spent on it."""
        lines = self.journal.encoder.decision(decision, key_id=key_id) + spending(decision.id, key_id, spent_usd)
        return self.journal.append(lines, decision.profile)

    def settle(self, decision: Decision | str, outcome: Outcome, *, tenant: str = "") -> None:
        """Write the outcome of a decision, which is given itself or by its id and tenant.

        The first outcome of a decision counts; another one is ignored.
        """
        if isinstance(decision, Decision):
            subject = Subject.of(decision)
        else:
            records = self.records(tenant)
            found = records.get(decision)
            rules = records.contract(found.profile_hash)
            subject = Subject(found.id, found.tenant, found.profile, rules, found.routes, found.by)
        self.journal.put(self.journal.encoder.outcome(subject, outcome))

    def close_account(
        self,
        decision: Decision,
        outcome: Outcome,
        *,
        parts: Iterable[tuple[Decision, Outcome]] = (),
        key_id: str = "",
        spent_usd: float = 0.0,
        decided: bool = True,
    ) -> Future[None] | None:
        """Write in one go the outcomes of a decision and its parts, what a key spent on it, and the decision unless it
        is `decided` already. Never blocks: in `strict`, returns a future to wait for."""
        lines = self.journal.encoder.account(decision, outcome, parts, key_id, spent_usd, decided=decided)
        return self.journal.append(lines, decision.profile)

    def reply(self, decision: Decision, text: str, *, role: str = "assistant") -> None:
        """Write an answer in the decision's session."""
        query = decision.query
        if query.session is not None:
            self.journal.put(self.journal.encoder.reply(query.tenant or "", query.session, decision.id, role, text))

    def spend(self, decision: Decision | str, key_id: str, amount_usd: float) -> None:
        """Write what a key spent on a decision, or on something else with an id of its own. The first amount for an id
        counts."""
        ident = decision if isinstance(decision, str) else decision.id
        self.journal.put(spending(ident, key_id, amount_usd))

    def counts(self) -> Counts:
        """What the journal has committed, lost, and still holds."""
        return self.journal.counts()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the database has everything recorded so far; returns whether it has."""
        return self.journal.flush(timeout_s)

    def close(self) -> None:
        """Commit the rows in the spool and close. Does nothing in a forked child, or a second time."""
        if not self.journal.closed:
            self.journal.close()
            self.backend.close()

    def _settled(self, timeout_s: float) -> bool:
        """Wait, so that a reader finds what was recorded before. A closed store cannot be read: its connections are
        closed or, after a fork, another process's."""
        if self.journal.closed:
            raise ValueError(CLOSED)
        return self.journal.flush(timeout_s)


def open_store(
    url: str | None = None,
    *,
    durability: Durability | None = None,
    text: Level | None = None,
    public: bool = False,
    migrate: bool = True,
    config: str | None = None,
) -> Store:
    """Open the decision log: a path, `sqlite:///PATH` or `postgresql://…`; by default the user's own.

    `text` is how much of a user's text is kept: off, hash, snippet or full. The default is full, or hash if the program
    is `public`, open to other machines. Without `migrate`, an old schema is refused instead of migrated.
    """
    settings = store_settings(config)
    where = store_url(url, settings)
    backend, folder = connect(where)
    with contextlib.ExitStack() as opened:
        opened.callback(backend.close)
        bring_up(backend, migrate=migrate)
        encoder = RowEncoder(text or settings.text or ("hash" if public else "full"), _key(backend))
        days = (settings.keep_days, settings.text_days)
        journal = Journal(
            backend,
            Spool(folder, settings.spool_bytes),
            encoder,
            durability or settings.durability,
            Retention(backend, *days) if any(days) else None,
        )
        opened.callback(journal.close)
        # Whatever ended a process that did not close its spool may have damaged the database.
        if journal.spool.adopt():
            backend.check()
        journal.open()
        opened.pop_all()
    return Store(backend, journal, settings, where)


def open_reader(url: str | None = None, *, config: str | None = None) -> StoreReader:
    """Open the decision log for reading; rows that wait in a spool are committed first."""
    backend, folder = connect(store_url(url, store_settings(config)))
    if any(folder.glob("*.spool")):
        return open_store(url, config=config)
    return StoreReader(brought_up(backend), folder)


def connect(url: str) -> tuple[Backend, Path]:
    """The database at a URL, not opened yet, and the folder of its spool."""
    if not url:
        raise _wrong_url("the environment variable it names is empty: set it, or name a path")
    scheme, found, _ = url.partition("://")
    if not found and url.startswith(("postgres:", "postgresql:")):
        raise _wrong_url("a database's address has two slashes: postgresql://USER@HOST:PORT/DATABASE")
    if not found:
        path = Path(os.path.expanduser(url))
    elif scheme == "sqlite":
        parts = urlsplit(url)
        path = Path(os.path.expanduser(unquote(parts.path.removeprefix("/"))))
        if parts.netloc or not path.name:
            why = "sqlite:///PATH has three slashes, four if the path begins with one"
            raise _wrong_url(f"{url!r} names no file: {why}")
    elif scheme in ("postgresql", "postgres"):
        return _postgres(url)
    else:
        raise _wrong_url(f"no store speaks {scheme!r}: use a path, sqlite:///PATH or postgresql://HOST/DATABASE")
    return Sqlite(path), path.with_name(path.name + "-spool").absolute()


def _wrong_url(why: str) -> ConfigError:
    return ConfigError([Problem("store.url", why)])


def _postgres(url: str) -> tuple[Backend, Path]:
    try:
        from .postgres import Postgres, identity
    except ImportError:
        raise _wrong_url("PostgreSQL needs psycopg: pip install 'turnout[postgres]'") from None
    try:
        # Each database has its own folder: rows of one must never be replayed into another.
        folder = hashlib.sha256(identity(url).encode()).hexdigest()[:16]
        return Postgres(url), data_folder() / "spool" / folder
    except ValueError as error:
        # Python's message for a host with invalid characters quotes the password before it.
        why = str(error) if "netloc" not in str(error) else "its host has characters no host has"
    # Outside the handler, so that the original error is not chained.
    raise _wrong_url(f"this is not the address of a database ({why}): postgresql://USER@HOST:PORT/DATABASE")


def bring_up(backend: Backend, *, migrate: bool = True) -> list[Migration]:
    """Migrate a schema to this version; returns the steps that were applied."""
    steps = backend.pending()
    if not steps:
        return []
    if not migrate:
        names = ", ".join(f"{step.number} {step.name}" for step in steps)
        raise StoreError(f"{backend.where}: the schema lacks {names}: run turnout db migrate")
    return backend.migrate()


def brought_up(backend: B) -> B:
    """The database, migrated to this version; it is closed if that fails."""
    with contextlib.ExitStack() as opened:
        opened.callback(backend.close)
        bring_up(backend)
        opened.pop_all()
    return backend


def _key(backend: Backend) -> bytes:
    """The key that questions are hashed with, made once and kept in the store."""
    found = backend.read(sql.SETTING, {"name": "digest_key"})
    if not found:
        backend.change(sql.ADD_SETTING, {"name": "digest_key", "setting": secrets.token_hex(32)})
        found = backend.read(sql.SETTING, {"name": "digest_key"})
    return bytes.fromhex(found[0][0])
