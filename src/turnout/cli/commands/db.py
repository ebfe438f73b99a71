"""`turnout db`: migrate, verify, back up, restore or prune the store, SQLite and PostgreSQL alike."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path as File
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.filesize import decimal
from rich.text import Text

from turnout.config.settings import StoreSettings, store_settings, store_url
from turnout.core.errors import NoLogYet, QueryError
from turnout.runtime.log import quiet
from turnout.store import copy, retention, verify
from turnout.store.backend import Backend
from turnout.store.sqlite import Sqlite
from turnout.store.store import bring_up, connect
from turnout.text.count import counted

from ..app import examples_of, show_paragraphs
from ..draw.finding import BAD, draw_findings
from ..draw.screen import console, visible, write_json
from ..draw.shape import columns
from ..option import JsonOption, StoreOptions, hint
from ..stream import progressing

app = App(name="db", help_epilogue=examples_of("db"))

Days = Annotated[int | None, Parameter(metavar="N")]


@contextlib.contextmanager
def _opened(where: StoreOptions, *, create: bool = False) -> Iterator[tuple[Backend, File, StoreSettings]]:
    """The database, its spool and its settings, without a journal: only the command itself writes to it."""
    quiet()
    settings = store_settings(where.config)
    backend, spool = connect(store_url(where.db, settings))
    if not create and isinstance(backend, Sqlite) and not backend.path.exists():
        raise NoLogYet(visible(backend.where), where.hint("route", "a question"))
    with contextlib.closing(backend):
        yield backend, spool, settings


@app.command(name="migrate")
def migrate(
    *,
    check: Annotated[bool, Parameter(help="Only list what is pending.")] = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Migrate the schema, and list the migrations that were applied.

    With --check nothing is changed, and the exit code is 1 if a migration is pending.
    """
    with _opened(where, create=True) as (backend, _, _):
        steps = backend.pending() if check else bring_up(backend)
    screen = console()
    if not steps:
        screen.say(f"{visible(backend.where)}: nothing to do, the schema is up to date")
        return 0
    screen.say(f"{visible(backend.where)}: {counted(len(steps), 'step')} {'to be taken' if check else 'taken'}")
    grid = columns("right", "bold", "wrap")
    for step in steps:
        grid.add_row(str(step.number), step.name, Text(step.reason))
    screen.inset(grid)
    return 1 if check else 0


@app.command(name="verify")
def verify_store(*, where: StoreOptions = StoreOptions()) -> int:
    """Check the database, its schema, and every row of it.

    Nothing is repaired or changed. The exit code is 1 if something is wrong.
    """
    with _opened(where) as (backend, spool, _), progressing("rows") as progress:
        found = list(verify.examine(backend, spool, progress))
    screen = console()
    wrong = draw_findings(screen, found)
    screen.print(Text(f"{wrong} wrong", BAD) if wrong else "nothing is wrong")
    return 1 if wrong else 0


@app.command(name="backup")
def backup(
    file: Annotated[str, Parameter(name="FILE", help="A new file; an existing one is never replaced.")],
    /,
    *,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Copy the store, while it is in use, into one new SQLite file.

    The copy is a consistent snapshot, whatever is written meanwhile. A backup of PostgreSQL is a SQLite file, too: it
    can be verified, and used as a store, like any other.
    """
    target = File(file)
    with _opened(where) as (backend, _, _):
        bring_up(backend, migrate=False)
        with progressing("pages" if isinstance(backend, Sqlite) else "rows") as progress:
            copy.backup(backend, target, progress)
    size = decimal(target.stat().st_size)
    console().say(f"{visible(file)} is written, {size}: {hint('db', 'restore', file)} puts it back")


@app.command(name="restore")
def restore(
    file: Annotated[str, Parameter(name="FILE", help="What turnout db backup has written, or any SQLite store.")],
    /,
    *,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Put a backup into an empty store, of either kind.

    This is also the way from SQLite to PostgreSQL. A store that is not empty is refused; a backup is restored
    completely or not at all.
    """
    with _opened(where, create=True) as (backend, _, _):
        with progressing("rows") as progress:
            rows = copy.restore(File(file), backend, progress)
        console().say(f"{visible(backend.where)} has the {counted(rows, 'row')} of {visible(file)}")


@app.command(name="prune")
def prune(
    *,
    keep_days: Annotated[Days, Parameter(help="Delete decisions older than this; 0 keeps them.")] = None,
    text_days: Annotated[Days, Parameter(help="Remove the text of decisions older than this; 0 keeps it.")] = None,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Delete what is older than your settings keep, now.

    Without options, keep_days and text_days of [store] in turnout.toml hold; a program that has the store open does
    the same by itself every hour. It can be interrupted at any time, and then continues where it stopped.
    """
    for option, days in (("--keep-days", keep_days), ("--text-days", text_days)):
        if days is not None and days < 0:
            raise QueryError(f"{option} {days}: at least 0 is needed, which keeps everything")
    screen = console()
    with _opened(where) as (backend, _, settings):
        bring_up(backend, migrate=False)
        keep_days = settings.keep_days if keep_days is None else keep_days
        text_days = settings.text_days if text_days is None else text_days
        if not keep_days and not text_days:
            screen.say("nothing is deleted: set keep_days or text_days in [store] of turnout.toml, or the options")
            return
        with progressing("rows") as progress:
            pruned = retention.prune(
                backend, keep_days=keep_days, text_days=text_days, progress=lambda counts: progress(sum(counts), 0)
            )
    place = visible(backend.where)
    for days, count, what in (
        (keep_days, pruned.deleted, "deleted, with what belonged to them"),
        (text_days, pruned.emptied, "left without their text"),
    ):
        if days:
            screen.say(f"{place}: {counted(count, 'decision')} older than {counted(days, 'day')} {what}")
    if pruned.sessions:
        screen.say(f"{place}: {counted(pruned.sessions, 'session')} of readers forgotten")


@app.command(name="info")
def info(*, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """Show where the store is, what it contains, and its settings."""
    with _opened(where) as (backend, spool, settings):
        found = verify.describe(backend, spool)
    shown = {name: getattr(settings, name) for name in ("durability", "text", "keep_days", "text_days")}
    shown["text"] = shown["text"] or "full"
    if json:
        write_json({**found, "settings": shown})
    else:
        console().facts(_facts(found, shown, where))


def _facts(found: dict[str, Any], settings: dict[str, Any], where: StoreOptions) -> Iterator[tuple[str, str]]:
    kind = {"sqlite": "SQLite", "postgres": "PostgreSQL"}[found["kind"]]
    yield "store", f"{found['where']}"
    yield "database", f"{kind} {found['version']}, {decimal(found['size_bytes'])}"
    if "vector" in found:
        yield "vectors", f"pgvector {found['vector']}" if found["vector"] else "no: the extension is not there"
    steps = ", ".join(map(str, found["pending"]))
    behind = f"; to be taken: {steps} ({where.hint('db', 'migrate')})" if steps else ""
    yield "schema", f"step {found['schema']}{behind}"
    yield "rows", ", ".join(f"{name} {count:,}" for name, count in found["rows"].items()) or "none"
    limits = (("keep_days", "decisions"), ("text_days", "their text"))
    days = [f"{what} for {counted(settings[name], 'day')}" for name, what in limits if settings[name]]
    yield "kept", f"{', '.join(days) or 'everything, for good'}; text = {settings['text']}"
    yield "durability", settings["durability"]
    spool = found["spool"]
    sizes = (("held_bytes", "of running programs"), ("left_bytes", "of programs that are gone"))
    waiting = [f"{decimal(spool[name])} {what}" for name, what in sizes if spool[name]]
    yield "spool", f"{', '.join(waiting) or 'nothing waits'} in {spool['folder']}"
    if spool["rejected_rows"]:
        yield "refused", f"{counted(spool['rejected_rows'], 'row')}: see {where.hint('db', 'verify')}"


show_paragraphs(app)
