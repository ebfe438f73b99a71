"""The decision log of the settings, opened for a command. Reading creates nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from turnout.config.settings import store_settings, store_url
from turnout.core.errors import NoLogYet
from turnout.store import Store, open_store
from turnout.store.sqlite import Sqlite
from turnout.store.store import StoreReader, connect, open_reader


@contextmanager
def reading_log(db: str | None, config: str | None = None, *, start: str = "turnout route") -> Iterator[StoreReader]:
    """The decision log, open to be read. Raises NoLogYet where there is none; `start` is the command that makes one."""
    quiet()
    _require_log(db, config, start)
    with open_reader(db, config=config) as store:
        yield store


@contextmanager
def writing_log(
    db: str | None, config: str | None = None, *, create: bool = False, start: str = "turnout route"
) -> Iterator[Store]:
    """The decision log, open to be written too. Raises NoLogYet where there is none and none is to be made."""
    quiet()
    if not create:
        _require_log(db, config, start)
    with open_store(db, config=config) as store:
        yield store


def _require_log(db: str | None, config: str | None, start: str) -> None:
    backend, spool = connect(store_url(db, store_settings(config)))
    if isinstance(backend, Sqlite) and not backend.path.exists() and not any(spool.glob("*.spool")):
        raise NoLogYet(backend.where, start)


def quiet() -> None:
    """What the journal tells a log file, a command says itself, once."""
    logging.getLogger("turnout.store").addHandler(logging.NullHandler())
