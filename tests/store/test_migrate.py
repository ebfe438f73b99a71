"""The schema, step by step: from every schema there has been, at once from several sides, and never backwards."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stored_decisions import TABLES, ask, everything, select
from turnout.core.errors import SchemaTooNew, StoreDamaged, StoreError, StoreUnavailable, UnknownDecision
from turnout.store import Store, open_store, sql
from turnout.store.migrate import Migration, migrations
from turnout.store.store import bring_up, connect

# Columns that SQLite gives back as 0 and 1.
BOOLEAN = ("retrieval", "may_force", "visible", "indexed")
SCHEMAS = Path(__file__).parent / "schemas"
DATABASES = ("sqlite", "postgres")
NEWEST = migrations("sqlite")[-1].number


def run(url: str, *statements: str) -> None:
    """Statements as somebody else would run them."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def version(step: Migration) -> str:
    return f"insert into schema_version values ({step.number}, '{step.name}', '{step.checksum}', 0)"  # noqa: S608


def build(url: str, steps: list[Migration]) -> None:
    """A database that stopped at these steps."""
    run(url, sql.SCHEMA_TABLE)
    for step in steps:
        run(url, *step.statements, version(step))


def schema(url: str) -> list[tuple[Any, ...]]:
    """All that there is in a database, but for its rows."""
    if url.startswith("sqlite"):
        found = select(
            url, "select type, name, sql from sqlite_master where name not like 'sqlite_stat%' order by 1, 2"
        )
        return [(kind, name, re.sub(r"\s+", " ", text or "").lower()) for kind, name, text in found]
    columns = select(
        url,
        "select table_name, ordinal_position, column_name, data_type, is_nullable from information_schema.columns "
        "where table_schema = 'public' order by 1, 2",
    )
    return columns + select(url, "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1")


def steps_of(url: str) -> list[Migration]:
    return migrations("sqlite" if url.startswith("sqlite") else "postgres")


class TestSteps:
    @pytest.mark.parametrize("database", DATABASES)
    def test_are_numbered_without_a_gap(self, database: str) -> None:
        assert [step.number for step in migrations(database)] == list(range(1, NEWEST + 1))

    def test_are_the_same_for_both_databases(self) -> None:
        sqlite, postgres = (migrations(database) for database in DATABASES)
        assert [step[:2] for step in sqlite] == [step[:2] for step in postgres]

    @pytest.mark.parametrize("database", DATABASES)
    def test_each_begins_with_its_reason(self, database: str) -> None:
        for step in migrations(database):
            assert step.text.startswith("-- "), step.name
            assert len(step.reason.split()) >= 5, step.name
            assert step.reason.endswith("."), step.name

    @pytest.mark.parametrize("database", DATABASES)
    def test_statements_are_whole(self, database: str) -> None:
        """A semicolon ends a line and a statement; were one missing, two statements would be one."""
        for step in migrations(database):
            code = "\n".join(line for line in step.text.splitlines() if not line.startswith("--"))
            assert len(step.statements) == len(re.findall(r";$", code, re.MULTILINE)), step.name
            assert all(re.match(r"(create|alter|drop|update|insert|delete)\b", one) for one in step.statements)

    def test_each_has_a_schema_to_upgrade_from(self) -> None:
        expected = [f"schema-{number:04}.sql" for number in range(1, NEWEST + 1)]
        found = sorted(path.name for path in SCHEMAS.glob("*.sql"))
        assert found == expected, "a new step needs its schema: run python tests/store/schemas/write.py"


class TestUpgrade:
    def load(self, url: str, number: int) -> dict[str, list[tuple[Any, ...]]]:
        """The database of a fixture; what was in its tables."""
        script = (SCHEMAS / f"schema-{number:04}.sql").read_text(encoding="utf-8")
        with contextlib.closing(sqlite3.connect(":memory:")) as old:
            old.executescript(script)
            there = {name for (name,) in old.execute("select name from sqlite_master where type = 'table'")}
            held = {
                table: old.execute(f"select * from {table}").fetchall()  # noqa: S608
                for table in TABLES
                if table in there
            }
            if url.startswith("sqlite"):
                with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as target:
                    old.backup(target)
                return held
            names = {table: [row[1] for row in old.execute(f"pragma table_info({table})")] for table in held}
        # SQLite's file holds the rows; the tables are PostgreSQL's own.
        build(url, migrations("postgres")[:number])
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            for table, rows in held.items():
                places = ", ".join(["%s"] * len(names[table]))
                told = [
                    tuple(
                        bool(value) if name in BOOLEAN and value is not None else value
                        for name, value in zip(names[table], row, strict=True)
                    )
                    for row in rows
                ]
                cursor.executemany(f"insert into {table} values ({places})".encode(), told)  # noqa: S608
        return held

    @pytest.mark.alike(2)
    @pytest.mark.parametrize("number", range(1, NEWEST + 1))
    def test_from_every_schema(self, store_url: str, number: int) -> None:
        held = self.load(store_url, number)
        assert all(held.values()), "an empty table proves nothing"
        with open_store(store_url) as store:
            assert {table: len(select(store_url, f"select * from {table}")) for table in held} == {  # noqa: S608
                table: len(rows) for table, rows in held.items()
            }
            assert bring_up(store.backend) == []
            for tenant in store.tenants():
                records = store.records(tenant)
                for found in records.decisions():
                    assert records.get(found.id).to_dict()["route"] == found.route
                    assert records.profile(found.profile_hash) is not None
                    assert records.outcome(found.id) is not None
                    assert records.feedback(found.id)
                assert list(records.labels())
                assert records.stats().decisions == len(list(records.decisions()))
            assert [intent.topic for intent in store.records().intents("s")] == [
                "What is the weather tomorrow and who won the match yesterday"
            ]
            assert len(store.records("acme").turns("s")) == 2
            assert {breach.rule for breach in store.records("acme").breaches()} == {"RC-01", "RC-02", "RC-04", "RC-05b"}
            store.record(decision := ask())
            assert store.records().get(decision.id).question == "Define entropy"

    def test_rows_belong_to_the_key_that_wrote_them(self, store_url: str) -> None:
        """A key without a tenant becomes its own, with what it paid for. What no key wrote stays the operator's."""
        held = self.load(store_url, 4)
        ids = {row[14]: row[0] for row in held["decisions"] if row[1] is None}
        compound = "What is the weather tomorrow and who won the match yesterday?"
        hers, his, local = ids[compound], ids["Define entropy"], ids["a question a model was asked"]
        key = "insert into keys select {0}, digest, name, '', scopes, profiles, ceiling, may_force, budget_usd, "
        key += "per_minute, created_ms, expires_ms, revoked_ms from keys where id = 'k1'"
        run(
            store_url,
            key.format("'anna'"),
            key.format("'bert'"),
            f"insert into spending values ('{hers}', 'anna', 0.5, 1), ('{his}', 'bert', 0.5, 1)",  # noqa: S608
        )
        with open_store(store_url) as store:
            assert {key.id: key.tenant for key in store.keys.all()} == {"k1": "acme", "anna": "anna", "bert": "bert"}
            assert store.tenants() == {"": 1, "acme": 1, "anna": 1, "bert": 1}
            anna, bert = store.records("anna"), store.records("bert")
            for records, ident, others in ((anna, hers, (his, local)), (bert, his, (hers, local))):
                assert records.get(ident).key_id == records.tenant
                assert records.outcome(ident) is not None
                assert records.feedback(ident)
                for other in others:
                    with pytest.raises(UnknownDecision):
                        records.get(other)
                    assert records.outcome(other) is None
                    assert records.feedback(other) == []
            parts = anna.parts(hers)
            assert len(parts) == 2
            assert {part.key_id for part in parts} == {"anna"}
            assert [turn.role for turn in anna.turns("s")] == ["user", "assistant"]
            assert store.records().turns("s") == ()
            assert (store.records().get("last").id, store.records().get("last").key_id) == (local, "")
            assert store.records("acme").get("last").key_id == "k1"
            whose = "(select tenant from decisions d where d.id = decision_id)"
            for table in ("outcomes", "feedback", "breaches", "replies"):
                assert select(store_url, f"select 1 from {table} where tenant <> {whose}") == []  # noqa: S608

    @pytest.mark.alike(6)
    @pytest.mark.parametrize("number", range(NEWEST + 1))
    def test_ends_where_a_new_one_begins(self, store_url: str, number: int, tmp_path: Path, request: Any) -> None:
        build(store_url, steps_of(store_url)[:number])
        open_store(store_url).close()
        upgraded = schema(store_url)
        run(store_url, "update schema_version set applied_ms = 0")
        applied = select(store_url, "select number, name, checksum from schema_version order by number")
        assert applied == [(step.number, step.name, step.checksum) for step in steps_of(store_url)]
        if store_url.startswith("sqlite"):
            fresh = f"sqlite:///{tmp_path}/fresh.db"
            open_store(fresh).close()
            assert upgraded == schema(fresh)
        else:
            with request.getfixturevalue("postgres_server").database() as fresh:
                open_store(fresh).close()
                assert upgraded == schema(fresh)

    def test_an_empty_file_is_a_new_database(self, tmp_path: Path) -> None:
        (tmp_path / "empty.db").write_bytes(b"")
        with open_store(str(tmp_path / "empty.db")) as store:
            store.record(decision := ask())
            assert store.records().get(decision.id)

    def test_a_second_time_nothing_is_done(self, store_url: str) -> None:
        open_store(store_url).close()
        before = select(store_url, "select * from schema_version")
        open_store(store_url).close()
        assert select(store_url, "select * from schema_version") == before
        backend, _ = connect(store_url)
        assert (backend.pending(), backend.migrate()) == ([], [])
        backend.close()

    def test_a_step_that_fails_leaves_nothing(self, store_url: str) -> None:
        """Something of that name is there already: no step is taken, not even those before it."""
        run(store_url, "create table router_decisions (mine text)")
        before = schema(store_url)
        with pytest.raises(StoreError, match="router_decisions"):
            open_store(store_url)
        assert schema(store_url) == before


class TestRefused:
    def untouched(self, url: str) -> tuple[object, ...]:
        content = Path(url.removeprefix("sqlite:///")).read_bytes() if url.startswith("sqlite") else b""
        return schema(url), everything(url, (*TABLES, "schema_version")), content

    def refused(self, url: str, **options: Any) -> str:
        before = self.untouched(url)
        with pytest.raises(StoreError) as caught:
            open_store(url, **options)
        assert self.untouched(url) == before
        self.error: type[StoreError] = type(caught.value)
        return str(caught.value)

    @pytest.fixture
    def made(self, opened: Callable[..., Store], store_url: str) -> str:
        with opened() as store:
            store.record(ask())
        return store_url

    @pytest.mark.parametrize("migrate", [True, False])
    def test_a_newer_schema(self, made: str, migrate: bool) -> None:
        run(made, f"insert into schema_version values ({NEWEST + 7}, 'from the future', 'x', 0)")  # noqa: S608
        message = self.refused(made, migrate=migrate)
        assert self.error is SchemaTooNew
        assert f"has schema {NEWEST + 7}, this version of Turnout knows {NEWEST}: upgrade Turnout; " in message
        assert "restore a backup from before the upgrade instead" in message

    def test_a_step_of_another_text(self, made: str) -> None:
        run(made, "update schema_version set checksum = 'another' where number = 1")
        message = self.refused(made)
        assert self.error is StoreDamaged
        assert "step 1 (decisions) was applied from another text than this version of Turnout has: restore a" in message

    def test_an_old_schema_without_leave_to_migrate(self, store_url: str) -> None:
        build(store_url, steps_of(store_url)[:1])
        before = schema(store_url)
        with pytest.raises(StoreError) as caught:
            open_store(store_url, migrate=False)
        missing = ", ".join(f"{step.number} {step.name}" for step in steps_of(store_url)[1:])
        assert str(caught.value).endswith(f": the schema lacks {missing}: run turnout db migrate")
        assert schema(store_url) == before

    def test_a_new_database_without_leave_to_migrate(self, store_url: str, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="run turnout db migrate"):
            open_store(store_url, migrate=False)
        if store_url.startswith("sqlite"):
            assert not list(tmp_path.rglob("*.db*"))
        else:
            assert schema(store_url) == []

    def test_an_up_to_date_one_needs_no_leave(self, made: str) -> None:
        with open_store(made, migrate=False) as store:
            assert store.records().get("last")

    def test_what_is_no_database(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("not a database, " * 1000)
        with pytest.raises(StoreDamaged, match=r"notes.txt: file is not a database"):
            open_store(str(path))
        assert path.read_text() == "not a database, " * 1000

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="is a folder: name a file in it"):
            open_store(str(tmp_path))


class TestAtOnce:
    def test_threads(self, store_url: str) -> None:
        """Whoever is second waits, and finds the work done."""

        def start(number: int) -> str:
            with open_store(store_url) as store:
                store.record(decision := ask(f"Define entropy {number}"))
                return decision.id

        with ThreadPoolExecutor(8) as pool:
            ids = list(pool.map(start, range(8)))
        with open_store(store_url) as store:
            assert sorted(one.id for one in store.records().decisions()) == sorted(ids)
        assert len(select(store_url, "select * from schema_version")) == NEWEST
        assert select(store_url, "select count(*) from store_settings") == [(1,)]

    PROCESS = """
import sys
from turnout.store import open_store
from turnout.core import errors
print("ready", flush=True)
sys.stdin.readline()
with open_store(sys.argv[1]) as store:
    print(store.journal.encoder.key.hex(), flush=True)
"""

    def test_processes(self, store_url: str) -> None:
        command = [sys.executable, "-c", self.PROCESS, store_url]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        for worker in workers:
            assert worker.stdout
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        told = [worker.communicate(timeout=60) for worker in workers]
        assert [errors for _, errors in told] == [""] * 4
        assert len({keys for keys, _ in told}) == 1, "all hash with the one key"
        assert len(select(store_url, "select * from schema_version")) == NEWEST
