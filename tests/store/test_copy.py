"""A copy is complete or it is not there, whatever is copied, into whatever, whoever writes meanwhile."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from full_store import fill, fill_many, tables
from stored_decisions import ask, columns, select
from turnout.core.errors import SchemaTooNew, StoreDamaged, StoreError
from turnout.store import Store, open_store
from turnout.store.backend import Backend
from turnout.store.copy import COUNTED, PAGE, TABLES, backup, copy, pages, restore
from turnout.store.migrate import migrations
from turnout.store.row import ReplyRow
from turnout.store.store import connect
from turnout.store.verify import examine


@pytest.fixture
def filled(store: Store) -> Store:
    fill(store)
    return store


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A second store, of SQLite, with something of everything."""
    url = f"sqlite:///{tmp_path}/filled.db"
    with open_store(url) as made:
        fill(made)
    return url


@pytest.fixture
def empty(store_url: str) -> Iterator[Backend]:
    with closing(connect(store_url)[0]) as backend:
        yield backend


def interrupt(*_: int) -> None:
    raise KeyboardInterrupt


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_the_tables_are_all_tables_with_all_columns(filled: Store, store_url: str) -> None:
    """Whoever adds a table to the schema adds it to the copies."""
    listed = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    if not store_url.startswith("sqlite"):
        listed = "select tablename from pg_tables where schemaname = 'public'"
    assert {name for (name,) in select(store_url, listed)} == {
        *(table.name for table in TABLES),
        *COUNTED,
        "schema_version",
    }
    found = tables(store_url)
    assert [table.name for table in TABLES] == list(found)
    with filled.backend.snapshot() as moment:
        for table in TABLES:
            assert found[table.name], table.name
            rows = [row for page in pages(moment, table, most=2) for row in page]
            assert rows == found[table.name]
            listed = re.search(r"insert into \w+ \(([^)]*)\)", table.add)
            assert listed is not None, table.name
            assert re.split(r",\s*", listed[1].strip()) == columns(store_url, table.name)


def test_from_sqlite_to_postgresql_and_back_nothing_changes(sqlite_url: str, postgres_url: str, tmp_path: Path) -> None:
    with closing(connect(postgres_url)[0]) as postgres:
        count = restore(file_of(sqlite_url), postgres)
        assert tables(postgres_url) == tables(sqlite_url)
        backup(postgres, tmp_path / "back.db")
    assert tables(url_of(tmp_path / "back.db")) == tables(sqlite_url)
    uncounted = ("store_settings", "keys", "spending", "cache_entries", "study_sessions", "study_turns", "claim_cards")
    rows = sum(len(rows) for name, rows in tables(sqlite_url).items() if name not in uncounted)
    assert count == rows, "settings and keys are copied and not counted"


def test_a_backup_is_one_private_file_with_everything(filled: Store, store_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "safe"
    folder.mkdir()
    seen: list[tuple[int, int]] = []
    backup(filled.backend, folder / "copy.db", lambda *so: seen.append(so))
    assert tables(url_of(folder / "copy.db")) == tables(store_url)
    assert os.listdir(folder) == ["copy.db"]
    assert stat.S_IMODE((folder / "copy.db").stat().st_mode) == 0o600
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 0
    with closing(sqlite3.connect(folder / "copy.db")) as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("delete",)


def test_a_backup_is_a_store(filled: Store, tmp_path: Path) -> None:
    backup(filled.backend, tmp_path / "copy.db")
    with open_store(url_of(tmp_path / "copy.db")) as again:
        assert again.tenants() == filled.tenants()
        again.record(ask("one more"))
        assert again.records().get("last").question == "one more"


def test_a_backup_beside_a_busy_writer_is_of_one_moment(store: Store, tmp_path: Path) -> None:
    """The writer never pauses: a backup that began anew at every commit would not end."""
    fill_many(store, 1_500)
    stop, written = threading.Event(), [0]

    def write() -> None:
        while not stop.is_set():
            store.record(ask(f"meanwhile {written[0]}", "sources"))
            written[0] += 1
            stop.wait(0.0005)

    def wait_for_more(*_: int) -> None:
        """Between two steps of the backup the writer gets some rows in, for sure."""
        before = written[0]
        while written[0] < before + 10:
            stop.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backup(store.backend, tmp_path / "copy.db", wait_for_more)
    finally:
        stop.set()
        writer.join()
    assert store.flush()
    (copied,) = select(url_of(tmp_path / "copy.db"), "select count(*) from decisions")
    (whole,) = store.backend.read("select count(*) from decisions", {})
    assert 1_500 <= copied[0] < whole[0]
    with closing(connect(str(tmp_path / "copy.db"))[0]) as made:
        assert [finding for finding in examine(made, tmp_path / "none") if finding.state != "ok"] == []


class RefusedCase(NamedTuple):
    id: str
    make: str
    said: str


@pytest.mark.parametrize(
    "case",
    [
        RefusedCase("a file", "file", "is there already"),
        RefusedCase("a folder", "folder", "is there already"),
        RefusedCase("a link to nowhere", "link", "is there already"),
        RefusedCase("no folder", "nothing", "there is no folder"),
    ],
    ids=lambda case: case.id,
)
def test_a_backup_never_replaces_anything(filled: Store, tmp_path: Path, case: RefusedCase) -> None:
    target = tmp_path / "here"
    if case.make == "file":
        target.write_bytes(b"precious")
    elif case.make == "folder":
        target.mkdir()
    elif case.make == "link":
        target.symlink_to(tmp_path / "there")
    else:
        target = tmp_path / "not" / "here"
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match=case.said):
        backup(filled.backend, target)
    assert sorted(tmp_path.iterdir()) == before
    assert case.make != "file" or target.read_bytes() == b"precious"


def test_a_file_that_appears_meanwhile_is_not_replaced(filled: Store, tmp_path: Path) -> None:
    target = tmp_path / "here"
    with pytest.raises(StoreError, match="is there already"):
        backup(filled.backend, target, lambda *_: target.write_bytes(b"precious") and None)
    assert target.read_bytes() == b"precious"


def test_an_interrupted_backup_leaves_nothing(filled: Store, tmp_path: Path) -> None:
    folder = tmp_path / "safe"
    folder.mkdir()
    with pytest.raises(KeyboardInterrupt):
        backup(filled.backend, folder / "copy.db", interrupt)
    assert os.listdir(folder) == []
    filled.record(ask("still alive"))
    assert filled.flush()


def test_an_interrupted_restore_leaves_an_empty_store(sqlite_url: str, empty: Backend, store_url: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        restore(file_of(sqlite_url), empty, interrupt)
    assert not any(tables(store_url).values())
    restore(file_of(sqlite_url), empty)
    assert tables(store_url) == tables(sqlite_url)


def test_a_store_with_something_in_it_is_refused(sqlite_url: str, filled: Store, store_url: str) -> None:
    before = tables(store_url)
    with pytest.raises(StoreError, match=r"is not empty, it holds 6 decisions: a backup is only put into an empty"):
        restore(file_of(sqlite_url), filled.backend)
    assert tables(store_url) == before


def test_questions_are_hashed_as_before(tmp_path: Path, store_url: str) -> None:
    """A store that was opened once has a key of its own; the backup's counts, or digests would no longer compare."""
    with open_store(str(tmp_path / "old.db"), text="hash") as old:
        old.record(ask("the same again"))
    open_store(store_url, text="hash").close()
    with closing(connect(store_url)[0]) as target:
        restore(tmp_path / "old.db", target)
    with open_store(store_url, text="hash") as new:
        new.record(ask("the same again"))
        first, second = new.records().decisions()
        assert first.digest == second.digest is not None


class Wrong(NamedTuple):
    id: str
    content: bytes | None
    said: str


@pytest.mark.parametrize(
    "case",
    [
        Wrong("missing", None, "no such file: name one that turnout db backup has written"),
        Wrong("empty", b"", "is not a backup of a Turnout store"),
        Wrong("rubbish", b"rubbish" * 1000, "cannot be restored.*file is not a database"),
        Wrong("another database", b"sqlite", "is not a backup of a Turnout store"),
    ],
    ids=lambda case: case.id,
)
def test_what_is_no_backup_is_refused(tmp_path: Path, empty: Backend, case: Wrong) -> None:
    file = tmp_path / "given.db"
    if case.content == b"sqlite":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("create table mine (id int)")
    elif case.content is not None:
        file.write_bytes(case.content)
    with pytest.raises(StoreError, match=case.said):
        restore(file, empty)
    assert file.exists() == (case.content is not None)


def make_older(file: Path) -> None:
    """The store as the first step left it."""
    with closing(sqlite3.connect(file)) as connection:
        made = "select type, name from sqlite_master where type = 'view' or name like '%_with_text'"
        for kind, name in connection.execute(made).fetchall():
            connection.execute(f"drop {kind} {name}")
        for table in ("keys", "spending", "cache_entries", "study_sessions", "study_turns", "claim_cards", *COUNTED):
            connection.execute(f"drop table {table}")
        for index in ("decisions_by_kind", "decisions_of_many_routes"):
            connection.execute(f"drop index {index}")
        connection.execute("alter table decisions drop column key_id")
        connection.execute("alter table profiles drop column patterns")
        connection.execute("delete from schema_version where number > 1")
        connection.commit()


def test_an_older_backup_is_brought_up_to_date_and_stays_as_it_is(
    sqlite_url: str, empty: Backend, store_url: str
) -> None:
    full = tables(sqlite_url) | {
        "keys": [],
        "spending": [],
        "cache_entries": [],
        "study_sessions": [],
        "study_turns": [],
        "claim_cards": [],
    }
    full["profiles"] = [(*row[:-1], None) for row in full["profiles"]]
    make_older(file_of(sqlite_url))
    before = file_of(sqlite_url).read_bytes()
    restore(file_of(sqlite_url), empty)
    assert tables(store_url) == full
    assert file_of(sqlite_url).read_bytes() == before
    assert empty.pending() == []


def test_a_newer_backup_is_refused(sqlite_url: str, empty: Backend) -> None:
    with closing(sqlite3.connect(file_of(sqlite_url))) as connection:
        connection.execute("insert into schema_version values (99, 'future', 'x', 0)")
        connection.commit()
    with pytest.raises(SchemaTooNew, match=f"has schema 99, this version of Turnout knows {len(migrations('sqlite'))}"):
        restore(file_of(sqlite_url), empty)


def test_what_postgresql_cannot_hold_is_replaced(sqlite_url: str, postgres_url: str) -> None:
    with closing(sqlite3.connect(file_of(sqlite_url))) as connection:
        connection.execute("update feedback set note = 'a' || char(0) || 'b'")
        connection.commit()
    with closing(connect(postgres_url)[0]) as postgres:
        restore(file_of(sqlite_url), postgres)
    assert {row[6] for row in tables(postgres_url)["feedback"]} == {"a\ufffdb"}


def test_more_than_a_page(store: Store, tmp_path: Path, store_url: str) -> None:
    fill_many(store, 2 * PAGE + 1)
    with closing(connect(str(tmp_path / "copy.db"))[0]) as target:
        target.migrate()
        assert copy(store.backend, target) > 2 * PAGE
    assert tables(url_of(tmp_path / "copy.db")) == tables(store_url)


def test_somebody_who_writes_to_the_target_meanwhile_is_noticed(sqlite_url: str, postgres_url: str) -> None:
    last = ReplyRow(*tables(sqlite_url)["replies"][-1])
    with closing(connect(postgres_url)[0]) as postgres, closing(connect(postgres_url)[0]) as other:
        with pytest.raises(StoreDamaged, match="another program wrote to it meanwhile, so nothing was copied"):
            restore(file_of(sqlite_url), postgres, lambda done, _: other.write([last]) if done == 5 else None)
        assert [name for name, rows in tables(postgres_url).items() if rows] == ["replies"]


def test_a_row_that_no_page_reaches_is_noticed(sqlite_url: str, empty: Backend, store_url: str) -> None:
    with closing(sqlite3.connect(file_of(sqlite_url))) as connection:
        connection.execute("update replies set id = '' where id = (select min(id) from replies)")
        connection.commit()
    with pytest.raises(StoreDamaged, match=r"has 33 rows, of which 32 could be read, so nothing was copied"):
        restore(file_of(sqlite_url), empty)
    assert not any(tables(store_url).values())
