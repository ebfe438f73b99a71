"""What every command that reads the decision log shares: opening it, times as people write them, rows as JSON.

A command that reads does not create: where there is no log yet it says so, and leaves no empty file behind.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

import msgspec

from turnout.config.settings import store_settings, store_url
from turnout.core.errors import NoLogYet, TurnoutError, UnknownDecision, suggest
from turnout.store import Logged, Records, Store, TimeSpan, open_store
from turnout.store.records import AllRecords
from turnout.store.sqlite import Sqlite
from turnout.store.stats import FOREVER_MS
from turnout.store.store import StoreReader, connect, open_reader

from .draw.screen import counted, visible
from .option import OperatorOptions, StoreOptions

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@contextmanager
def reading_log(db: str | None, config: str | None = None) -> Iterator[StoreReader]:
    """The decision log, open to be read. Raises NoLogYet where there is none."""
    quiet()
    require_log(db, config)
    with open_reader(db, config=config) as store:
        yield store


@contextmanager
def writing_log(db: str | None, config: str | None = None, *, create: bool = False) -> Iterator[Store]:
    """The decision log, open to be written too. Raises NoLogYet where there is none and none is to be made."""
    quiet()
    if not create:
        require_log(db, config)
    with open_store(db, config=config) as store:
        yield store


def require_log(db: str | None, config: str | None) -> None:
    backend, spool = connect(store_url(db, store_settings(config)))
    if isinstance(backend, Sqlite) and not backend.path.exists() and not any(spool.glob("*.spool")):
        raise NoLogYet(visible(backend.where), StoreOptions(db, config).hint("route", "a question"))


def quiet() -> None:
    """What the journal tells a log file, a command says itself, once."""
    logging.getLogger("turnout.store").addHandler(logging.NullHandler())


def span_of(since: str | None, until: str | None) -> TimeSpan:
    """The time span that two options name."""
    span = TimeSpan(
        0 if since is None else moment(since, "--since"),
        FOREVER_MS if until is None else moment(until, "--until"),
    )
    if span.since_ms >= span.until_ms:
        raise TurnoutError(f"--since {since} is not before --until {until}: nothing lies between them")
    return span


def moment(said: str, option: str) -> int:
    """`2h` and `3d` are ago; a date or a time is local unless it says otherwise. Milliseconds since 1970."""
    ago = _AGO.fullmatch(said.strip().lower())
    try:
        if ago is not None:
            when = datetime.now().astimezone() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            when = datetime.fromisoformat(said.strip())
        return int(when.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise TurnoutError(
            f"{option} {said[:40]!r} is no time: write how long ago (90s, 30m, 2h, 3d, 1w) or when "
            "(2026-11-01, 2026-11-01T08:30)"
        ) from None


def nothing_there(store: StoreReader, records: Records, where: StoreOptions) -> str:
    """Why a list is empty, and what to do about it."""
    tenants = store.tenants()
    mine = sum(tenants.values()) if isinstance(records, AllRecords) else tenants.pop(records.tenant, 0)
    if mine:
        return f"none of {counted(mine, 'decision')} is like that: leave out a filter"
    if not tenants:
        return f"no decisions yet: {where.hint('route', 'a question')} logs the first one"
    whose = f"of tenant {records.tenant!r}" if records.tenant else "without a tenant"
    others = ", ".join(f"{visible(name) or '(none)'} ({count:,})" for name, count in tenants.items())
    return f"no decisions {whose}; there are decisions of {others}: name one with --tenant"


def records_of(store: StoreReader, where: OperatorOptions) -> Records:
    """What `--tenant`, `--all-tenants` and `--key` name. A key's rows are its tenant's, so a key is enough; one that
    was deleted is known by what it left in the log."""
    tenant, key = where.tenant, where.key
    if where.all_tenants:
        if tenant or key is not None:
            raise TurnoutError(f"--all-tenants leaves nothing to choose: leave out {'--tenant' if tenant else '--key'}")
        return store.all_records()
    if key is None:
        return store.records(tenant)
    row = store.keys.find(key)
    whose = {row.tenant} if row is not None else {use.tenant for use in store.keys.use(key=key)} if key else set()
    if not whose:
        known = [one.id for one in store.keys.all()]
        see = f"(see {where.hint('keys', 'list')})"
        raise TurnoutError(f"--key {key[:80]!r}: there is no such key{suggest(key, known)} {see}")
    if tenant and tenant not in whose:
        raise TurnoutError(f"--key {key} is of tenant {whose.pop()!r}, not {tenant[:80]!r}: leave out --tenant")
    return store.records(whose.pop())


def records_with(store: StoreReader, tenant: str, ident: str, *, all_tenants: bool = False) -> Records:
    """Where one decision is: with the tenant named; where none is, perhaps with a key that is its own tenant."""
    if all_tenants:
        everyone = records_of(store, OperatorOptions(tenant=tenant, all_tenants=True))
        return store.records(everyone.get(ident).tenant)
    records = store.records(tenant)
    if not tenant and ident != "last":
        for whose in ("", *store.keys.own_tenants()):
            with suppress(UnknownDecision):
                store.records(whose).get(ident)
                return store.records(whose)
    return records


def left_out(store: StoreReader, records: Records, key: str | None = None, *, all_tenants: bool = True) -> str:
    """What a list without a tenant does not show, and how to see it; empty if that is nothing. `all_tenants` says
    whether the command has that option."""
    partial = not records.tenant and key is None and not isinstance(records, AllRecords)
    own = store.keys.own_tenants() if partial else []
    if not own:
        return ""
    ids = ", ".join(own[:3]) + ", …" * (len(own) > 3)
    said = f"Not included: what {counted(len(own), 'key')} without a tenant asked for ({ids})."
    return f"{said} --tenant ID shows it{', --all-tenants everything' * all_tenants}."


def row_form(row: Logged) -> dict[str, Any]:
    """The whole stored row, the decision's own JSON form under `decision`."""
    form: dict[str, Any] = msgspec.to_builtins(row)
    form["decision"] = msgspec.Raw(form.pop("body").encode())
    return form


def clock(created_ms: int) -> str:
    """When, in full, on the clock of whoever reads."""
    return datetime.fromtimestamp(created_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def unread(row: Logged, dots: str) -> str:
    """What stands for a text that was not kept; empty for one that was."""
    if row.question is not None:
        return ""
    return f"(hash {row.digest[:8]}{dots})" if row.digest else "(not kept)"


def dollars(amount: float | None) -> str:
    """An amount as people read it: cents, and below a cent as many digits as it takes. Unknown is not zero."""
    if amount is None:
        return "unknown"
    if amount == 0 or abs(amount) >= 0.01:
        return f"{'-' * (amount < 0)}${abs(amount):,.2f}"
    return f"{'-' * (amount < 0)}${abs(amount):.2g}" if abs(amount) >= 1e-4 else f"${amount:.1e}"
