"""Opens the decision log for a command, and finds the decisions it may show. Reading never creates a log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import msgspec

from turnout.config.settings import store_settings, store_url
from turnout.core.errors import NoLogYet, UnknownDecision
from turnout.store import Logged, Records, Store, open_store
from turnout.store.sqlite import Sqlite
from turnout.store.store import StoreReader, connect, open_reader
from turnout.text.count import counted


class LogPlace(Protocol):
    """Which decision log: that of the settings, or another one."""

    @property
    def db(self) -> str | None: ...
    @property
    def config(self) -> str | None: ...
    def hint(self, *words: str) -> str:
        """A command about this log, ready to type."""
        ...


@contextmanager
def reading_log(where: LogPlace) -> Iterator[StoreReader]:
    """The decision log, open for reading. Raises NoLogYet if there is none."""
    quiet()
    _require_log(where)
    with open_reader(where.db, config=where.config) as store:
        yield store


@contextmanager
def writing_log(where: LogPlace, *, create: bool) -> Iterator[Store]:
    """The decision log, open for writing. Raises NoLogYet if there is none and `create` is false."""
    quiet()
    if not create:
        _require_log(where)
    with open_store(where.db, config=where.config) as store:
        yield store


def _require_log(where: LogPlace) -> None:
    if (place := missing_log(where.db, where.config)) is not None:
        raise NoLogYet(place, where.hint("route", "a question"))


def missing_log(db: str | None, config: str | None) -> str | None:
    """Where the log would be created, if there is none yet."""
    backend, spool = connect(store_url(db, store_settings(config)))
    exists = not isinstance(backend, Sqlite) or backend.path.exists() or any(spool.glob("*.spool"))
    return None if exists else backend.where


def quiet() -> None:
    """Silence the store's logger: a command reports problems itself."""
    logging.getLogger("turnout.store").addHandler(logging.NullHandler())


def records_with(store: StoreReader, ident: str, tenant: str) -> Records:
    """The tenant's records; without a tenant, also look for the decision among keys that are their own tenants."""
    if not tenant and ident != "last":
        for name in ("", *store.keys.own_tenants()):
            with suppress(UnknownDecision):
                store.records(name).get(ident)
                return store.records(name)
    return store.records(tenant)


def row_form(row: Logged) -> dict[str, Any]:
    """The whole stored row, with the decision's JSON form under `decision`."""
    form: dict[str, Any] = msgspec.to_builtins(row)
    form["decision"] = msgspec.Raw(form.pop("body").encode())
    return form


def nothing_there(store: StoreReader, records: Records, where: LogPlace, *, all_tenants: bool = False) -> str:
    """Why a list is empty, and what to do about it."""
    tenants = store.tenants()
    mine = sum(tenants.values()) if all_tenants else tenants.pop(records.tenant, 0)
    if mine:
        return f"none of {counted(mine, 'decision')} matches: leave out a filter"
    if not tenants:
        return f"no decisions yet: {where.hint('route', 'a question')} logs the first one"
    whose = f"of tenant {records.tenant!r}" if records.tenant else "without a tenant"
    others = ", ".join(f"{name or '(none)'} ({count:,})" for name, count in tenants.items())
    return f"no decisions {whose}; there are decisions of {others}: name one with --tenant"


def left_out(store: StoreReader, records: Records, key: str | None = None, *, all_tenants: bool = True) -> str:
    """What a list without a tenant does not show, and how to see it; empty if it shows everything. `all_tenants` says
    whether the command has that option."""
    own = store.keys.own_tenants() if not records.tenant and key is None else []
    if not own:
        return ""
    ids = ", ".join(own[:3]) + ", …" * (len(own) > 3)
    text = f"Not included: what {counted(len(own), 'key')} without a tenant asked for ({ids})."
    return f"{text} Use --tenant ID to see it{', or --all-tenants to see everything' * all_tenants}."
