"""The store: where decisions, outcomes, sessions, feedback and breaches of contract live.

Writing goes through the journal, reading through `records`, which is bound to one tenant. Opening it creates what is
missing, migrates what is old, refuses what is newer, and takes over what an earlier process left in its spool.
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
    """One open database, for reading only; decisions are written through a `Store`."""

    def __init__(self, backend: Backend, folder: Path) -> None:
        self.backend = backend
        self.folder = folder
        """Where rows wait for the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def keys(self) -> Keys:
        """Keys, and what they have spent."""
        return Keys(self.backend, self._settled)

    @property
    def cache(self) -> CacheRows:
        """What was answered before and is still fresh."""
        return CacheRows(self.backend)

    def study(self, tenant: str = "") -> StudyRows:
        """What one tenant has studied."""
        return StudyRows(self.backend, tenant)

    @property
    def cards(self) -> CardRows:
        """Claim cards."""
        return CardRows(self.backend)

    def records(self, tenant: str = "") -> Records:
        """What one tenant may see. Without a name: decisions of queries that named none."""
        return Records(self.backend, tenant, self._settled)

    def all_records(self) -> AllRecords:
        """Decisions of every tenant, for the operator of the store only."""
        return AllRecords(self.backend, self._settled)

    def tenants(self) -> dict[str, int]:
        """Whose decisions there are, and how many."""
        self._settled(1.0)
        return dict(self.backend.read(sql.TENANTS, {}))

    def count_hour(self) -> bool:
        """Count the newest hour of traffic that is over and not counted; whether there was one."""
        return count_hour(self.backend)

    def close(self) -> None:
        self.backend.close()

    def _settled(self, timeout_s: float) -> bool:
        return True


class Store(StoreReader):
    """One open database with its journal. Thread-safe; not to be used across a fork."""

    def __init__(self, backend: Backend, journal: Journal, settings: StoreSettings, url: str = "") -> None:
        super().__init__(backend, journal.spool.folder)
        self.url = url
        """Where it was opened; it may hold a password."""
        self.journal = journal
        self.settings = settings

    def __repr__(self) -> str:
        return f"Store({self.backend.where!r}, {self.journal.durability}, text={self.journal.encoder.level})"

    @property
    def is_strict(self) -> bool:
        """Whether what is written is committed before the caller goes on."""
        return self.journal.durability == "strict"

    def record(self, decision: Decision) -> None:
        """Write a decision down; returns when it is as durable as the store was opened for.

        In `batched` nothing a disk or a database does makes this raise: what cannot be written is counted. In `strict`
        it raises NotStored. A store that is closed is the program's mistake: ValueError.
        """
        done = self.append(decision)
        if done is not None:
            done.result()

    def append(self, decision: Decision, *, key_id: str = "", spent_usd: float = 0.0) -> Future[None] | None:
        """As `record`, for callers that must not block: in `strict`, what to wait for before answering. Which key asked
        for the decision and what it spent on it go with it."""
        lines = self.journal.encoder.decision(decision, key_id=key_id) + spending(decision.id, key_id, spent_usd)
        return self.journal.append(lines, decision.profile)

    def settle(self, decision: Decision | str, outcome: Outcome, *, tenant: str = "") -> None:
        """Write down what happened after a decision, which is named by itself or by its id and tenant.

        The first outcome of a decision stands; saying it again is harmless.
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
        """Write down in one go what happened after a decision and each of its parts, and what a key spent on it;
        unless it is `decided` already, the decision too. Never blocks: in `strict`, what to wait for."""
        lines = self.journal.encoder.account(decision, outcome, parts, key_id, spent_usd, decided=decided)
        return self.journal.append(lines, decision.profile)

    def reply(self, decision: Decision, text: str, *, role: str = "assistant") -> None:
        """Write down what was answered in the decision's session."""
        query = decision.query
        if query.session is not None:
            self.journal.put(self.journal.encoder.reply(query.tenant or "", query.session, decision.id, role, text))

    def spend(self, decision: Decision | str, key_id: str, amount_usd: float) -> None:
        """Write down what a key spent on a decision, or on what has an id of its own and did not become one; the same
        id is never paid for twice."""
        ident = decision if isinstance(decision, str) else decision.id
        self.journal.put(spending(ident, key_id, amount_usd))

    def counts(self) -> Counts:
        """What the journal has done, lost, and still holds."""
        return self.journal.counts()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the database has everything recorded so far; whether it has."""
        return self.journal.flush(timeout_s)

    def close(self) -> None:
        """Commit what can be committed. Once is enough; in a forked child it is the parent's to do."""
        if not self.journal.closed:
            self.journal.close()
            self.backend.close()

    def _settled(self, timeout_s: float) -> bool:
        """A reader finds what was recorded before. What is closed cannot be read: connections are gone, or, after
        a fork, another process's."""
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

    `text` says how much of a user's text is kept: off, hash, snippet or full. By default that is everything, or the
    hash alone where the program is `public`, open to other machines. Without `migrate`, an old schema is refused
    instead of brought up to date.
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
        # A process that ended without closing may have been ended by what damages files as well.
        if journal.spool.adopt():
            backend.check()
        journal.open()
        opened.pop_all()
    return Store(backend, journal, settings, where)


def open_reader(url: str | None = None, *, config: str | None = None) -> StoreReader:
    """Open the decision log for reading; where rows wait in a spool, they are put into the database first."""
    backend, folder = connect(store_url(url, store_settings(config)))
    if any(folder.glob("*.spool")):
        return open_store(url, config=config)
    return StoreReader(brought_up(backend), folder)


def connect(url: str) -> tuple[Backend, Path]:
    """The database a URL names, not yet touched, and the folder of its spool."""
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
        # Its own folder for each database: rows of one must never be replayed into another.
        folder = hashlib.sha256(identity(url).encode()).hexdigest()[:16]
        return Postgres(url), data_folder() / "spool" / folder
    except ValueError as error:
        # Python's own message for a host with odd characters quotes the password before it.
        why = str(error) if "netloc" not in str(error) else "its host has characters no host has"
    # Not in the handler, so that the error is not carried along.
    raise _wrong_url(f"this is no address of a database ({why}): postgresql://USER@HOST:PORT/DATABASE")


def bring_up(backend: Backend, *, migrate: bool = True) -> list[Migration]:
    """Make sure the schema is ours; the steps that were taken."""
    steps = backend.pending()
    if not steps:
        return []
    if not migrate:
        names = ", ".join(f"{step.number} {step.name}" for step in steps)
        raise StoreError(f"{backend.where}: the schema lacks {names}: run turnout db migrate")
    return backend.migrate()


def brought_up(backend: B) -> B:
    """A database whose schema is ours; one that cannot be brought up is closed."""
    with contextlib.ExitStack() as opened:
        opened.callback(backend.close)
        bring_up(backend)
        opened.pop_all()
    return backend


def _key(backend: Backend) -> bytes:
    """What questions are hashed with: made once, kept with the store."""
    found = backend.read(sql.SETTING, {"name": "digest_key"})
    if not found:
        backend.change(sql.ADD_SETTING, {"name": "digest_key", "setting": secrets.token_hex(32)})
        found = backend.read(sql.SETTING, {"name": "digest_key"})
    return bytes.fromhex(found[0][0])
