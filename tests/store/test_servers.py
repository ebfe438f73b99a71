"""The servers that other tests rely on are what they say: the right version, with vectors, isolated, and gone after."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

import postgres_server as module
from postgres_server import PostgresServer

TESTS = Path(module.__file__).parent


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


def test_postgres_is_18_or_newer_and_its_text_is_unicode(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.info.server_version >= 18_00_00
        assert connection.execute("select upper('straße é'), 'Z' < 'a'").fetchone() == ("STRAßE É", True)


def test_pgvector_finds_the_nearest_row(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("create extension vector")
        connection.execute("create table place (name text, at vector(3))")
        connection.execute("insert into place values ('far', '[9,9,9]'), ('near', '[1,2,4]'), ('other', '[-1,-2,-3]')")
        query = "select name, at <-> '[1,2,3]' from place order by at <-> '[1,2,3]' limit 2"
        assert connection.execute(query).fetchall()[0] == ("near", 1.0)


@pytest.mark.parametrize("run", ["first", "second"])
def test_each_test_gets_an_empty_database(postgres_url: str, run: str) -> None:
    assert tables(postgres_url) == set()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("create table leftover (run text)")


def test_databases_are_isolated(postgres_server: PostgresServer, postgres_url: str) -> None:
    with postgres_server.database() as other:
        assert other != postgres_url
        with psycopg.connect(other) as connection:
            connection.execute("create table mine (id int)")
        assert tables(other) == {"mine"}
        assert tables(postgres_url) == set()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other)


def test_a_store_url_of_each_kind_is_fresh(store_url: str) -> None:
    kind, _, rest = store_url.partition("://")
    if kind == "sqlite":
        path = Path(rest.removeprefix("/"))
        assert path.is_absolute()
        assert path.parent.is_dir()
        assert not path.exists()
    else:
        assert tables(store_url) == set()


@pytest.mark.parametrize("crash", [False, True])
def test_committed_rows_survive_a_restart(postgres_server: PostgresServer, postgres_url: str, crash: bool) -> None:
    before = postgres_server.pid
    with contextlib.closing(psycopg.connect(postgres_url)) as connection:
        connection.execute("create table kept (id int)")
        connection.execute("insert into kept select generate_series(1, 1000)")
        connection.commit()
        connection.execute("insert into kept values (0)")
        postgres_server.restart(crash=crash)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    assert postgres_server.pid != before
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("select count(*), min(id) from kept").fetchone() == (1000, 1)


def test_a_stopped_server_refuses(postgres_server: PostgresServer, postgres_url: str) -> None:
    postgres_server.stop()
    assert postgres_server.pid is None
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres_url)
    # Not started again here: the fixture drops its database all the same, and the next test finds a server.


def test_a_server_that_cannot_start_says_why(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres_server.stop()
    with monkeypatch.context() as patch:
        patch.setitem(module.SETTINGS, "max_connections", "none")
        with pytest.raises(RuntimeError, match=r'invalid value for parameter "max_connections"'):
            postgres_server.start()


# A process that starts a server, says where, and kills itself without any chance to clean up.
DOOMED = """
import os, signal
from postgres_server import PostgresServer, wheel
server = PostgresServer(wheel())
server.start()
print(server.pid, server.home, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and was not collected does not."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # gone just now, or a system without /proc
        return not Path("/proc/self").exists()


@pytest.mark.usefixtures("postgres_server")
def test_a_killed_run_leaves_no_server() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run([sys.executable, "-c", DOOMED], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == -9, done.stderr
    pid, home = done.stdout.split()
    deadline = time.monotonic() + 30
    while (alive(int(pid)) or Path(home).exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(pid))
    assert not Path(home).exists()
