"""The spool under everything that can go wrong with a file, and with two who use it at once.

Each test holds something that once was not so: the comment or the name says what would come back.
"""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from faults.rounds import TESTS, open_files
from turnout.store import spool as module
from turnout.store.row import contents, line
from turnout.store.spool import SUFFIX, UNNAMED, Spool

LIMIT = 64 * 1024 * 1024


def drain(spool: Spool) -> list[bytes | None]:
    """Everything there is to take."""
    found: list[bytes | None] = []
    while lines := spool.take():
        found += contents(lines)
        spool.release(len(lines))
    return found


def leave(folder: Path, *rows: bytes) -> None:
    """Rows of a process that is gone."""
    theirs = Spool(folder, LIMIT)
    for row in rows:
        theirs.append(line(row))
    theirs.close()


def test_a_segment_is_not_removed_while_it_is_being_made(tmp_path: Path) -> None:
    """The reader looks between the listing of a new file and the first write to it."""
    spool = Spool(tmp_path, LIMIT)

    class WatchedSpool(deque[Any]):
        def append(self, segment: Any) -> None:
            super().append(segment)
            assert spool.take() == b""

    spool._segments = WatchedSpool()
    spool.append(line(b"a"))
    assert drain(spool) == [b"a"]


def test_what_is_adopted_goes_behind_what_was_written_before(tmp_path: Path) -> None:
    """Else a position is reached by another's bytes, and a strict caller told of a commit that has not happened."""
    spool = Spool(tmp_path, LIMIT)
    end = spool.append(line(b"mine"))
    leave(tmp_path / "other", b"theirs, which is longer")
    (only,) = (tmp_path / "other").iterdir()
    only.rename(tmp_path / only.name)
    assert spool.adopt() == 1
    spool.append(line(b"mine again"))
    seen: list[bytes | None] = []
    while spool.taken < end:
        lines = spool.take()
        seen += contents(lines)
        spool.release(len(lines))
    assert seen == [b"mine"]
    assert drain(spool) == [b"theirs, which is longer", b"mine again"]
    spool.close()
    assert not list(tmp_path.glob("*.spool"))


def test_segments_are_adopted_in_the_order_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1)
    rows = [b"%d" % number for number in range(20)]
    leave(tmp_path, *rows)
    spool = Spool(tmp_path, LIMIT)
    assert spool.adopt() == len(rows)
    assert drain(spool) == rows


class Accident(NamedTuple):
    id: str
    writes: int
    """Bytes that reach the file before it happens."""
    error: BaseException
    truncates: bool = True


ACCIDENTS = (
    Accident("interrupted-after-the-write", 10_000, KeyboardInterrupt()),
    Accident("interrupted-half-way", 7, KeyboardInterrupt()),
    Accident("disk-full-half-way", 7, OSError(errno.ENOSPC, "No space left on device")),
    Accident("disk-full-and-no-truncate", 7, OSError(errno.ENOSPC, "No space left on device"), truncates=False),
    Accident("broken-disk", 0, OSError(errno.EIO, "Input/output error")),
)


@pytest.mark.parametrize("accident", ACCIDENTS, ids=lambda accident: accident.id)
@pytest.mark.parametrize("after", [b"b", b"a longer row than the one that was lost to the accident"])
def test_an_accident_in_a_write_costs_one_row_at_most(
    accident: Accident, after: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a failed or interrupted write has left in the file must not shift what comes after it."""
    spool = Spool(tmp_path, LIMIT)
    spool.append(line(b"before"))
    pwrite, ftruncate = os.pwrite, os.ftruncate

    def fail(fd: int, data: bytes, at: int) -> int:
        pwrite(fd, data[: accident.writes], at)
        raise accident.error

    def refuse(fd: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", fail)
        if not accident.truncates:
            broken.setattr(os, "ftruncate", refuse)
        with pytest.raises(type(accident.error)):
            spool.append(line(b"struck by the accident"))
    assert os.ftruncate is ftruncate
    spool.append(line(after))
    assert drain(spool) == [b"before", after]
    spool.append(line(b"later"))
    assert drain(spool) == [b"later"]


def test_a_write_in_pieces_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system may take less than it is given, and the rest a moment later."""
    spool = Spool(tmp_path, LIMIT)
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:5], at))
    spool.append(line(b"in pieces"))
    monkeypatch.undo()
    spool.append(line(b"whole"))
    assert drain(spool) == [b"in pieces", b"whole"]


def test_what_is_left_empty_or_half_made_is_cleared_away(tmp_path: Path) -> None:
    """A process that is killed when it has nothing to do leaves an empty file; they must not add up."""
    (tmp_path / f"01EMPTY{SUFFIX}").touch()
    (tmp_path / f"01HALF{UNNAMED}").touch()
    spool = Spool(tmp_path, LIMIT)
    before = open_files()
    assert spool.adopt() == 2
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


@pytest.mark.parametrize("moment", ["before the lock", "after the lock"])
def test_a_file_that_is_cleared_away_while_it_is_made_is_made_again(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process cannot tell a file that is just being made from one whose maker died just then."""
    neighbour, flock, struck = Spool(tmp_path, LIMIT), fcntl.flock, []

    def lock(fd: int, how: int) -> None:
        if not struck:
            struck.append(True)
            if moment == "before the lock":
                assert neighbour.adopt() == 1
            flock(fd, how)
            if moment == "after the lock":
                assert neighbour.adopt() == 0
        else:
            flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    spool = Spool(tmp_path, LIMIT)
    spool.append(line(b"a"))
    assert struck
    assert drain(spool) == [b"a"]
    assert not list(tmp_path.glob(f"*{UNNAMED}"))


def test_what_cannot_be_adopted_is_told_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"00FOLDER{SUFFIX}").mkdir()
    leave(tmp_path, b"a")
    spool = Spool(tmp_path, LIMIT)
    assert spool.adopt() == 1
    spool.adopt()
    assert drain(spool) == [b"a"]
    (said,) = caplog.messages
    assert "00FOLDER.spool was left behind and cannot be taken over" in said


HOLES = (
    ("hole-before-a-line", b"\0" * 4096 + line(b"a"), [b"a"]),
    ("hole-at-the-end", line(b"a") + b"\0" * 512, [b"a", None]),
    ("only-a-hole", b"\0" * 512, [None]),
    ("torn-line", line(b"a") + line(b"bbbb")[:-3], [b"a", None]),
    ("torn-in-the-middle", line(b"aaaa")[:6] + b"\n" + line(b"b"), [None, b"b"]),
    ("one-bit", line(b"aaaa").replace(b"aaaa", b"aaab"), [None]),
    ("empty-lines", b"\n\n" + line(b"a"), [None, None, b"a"]),
)


@pytest.mark.parametrize(("found", "rows"), [case[1:] for case in HOLES], ids=[case[0] for case in HOLES])
def test_what_a_power_cut_leaves(found: bytes, rows: list[bytes | None], tmp_path: Path) -> None:
    (tmp_path / f"01LEFT{SUFFIX}").write_bytes(found)
    spool = Spool(tmp_path, LIMIT)
    assert spool.adopt() == 1
    assert drain(spool) == rows
    assert spool.backlog == 0
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_somebody_cuts_short_does_not_stop_the_rest(tmp_path: Path) -> None:
    spool = Spool(tmp_path, LIMIT)
    spool.append(line(b"gone"))
    (file,) = tmp_path.glob("*.spool")
    os.truncate(file, 0)
    assert drain(spool) == [None]
    spool.append(line(b"a"))
    assert drain(spool) == [b"a"]
    assert spool.backlog == 0


def test_a_cut_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after the commit must not leave bytes that are neither there nor taken."""
    monkeypatch.setattr(module, "CUT_BYTES", 1)
    spool = Spool(tmp_path, LIMIT)

    def refuse(fd: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    spool.append(line(b"a"))
    assert drain(spool) == [b"a"]
    spool.rest()
    assert spool.backlog == 0
    spool.append(line(b"b"))
    assert drain(spool) == [b"b"]


def removed(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replaced(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
        file.write_bytes(b"something else")


@pytest.mark.parametrize("happens", [removed, moved, replaced], ids=lambda happens: happens.__name__)
def test_files_that_are_removed_while_in_use_are_written_anew(happens: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = Spool(folder, LIMIT)
    for row in (b"taken", b"a", b"b"):
        spool.append(line(row))
    assert next(contents(spool.take())) == b"taken"
    spool.release(len(line(b"taken")))
    happens(folder)
    spool.append(line(b"c"))
    assert spool.restore() == len(line(b"a")) * 3
    assert spool.restore() == 0
    spool.append(line(b"d"))
    # As a process that dies now would leave it.
    heir = Spool(folder, LIMIT)
    spool.forget()
    heir.adopt()
    assert [row for row in drain(heir) if row is not None] == [b"a", b"b", b"c", b"d"]


def test_a_closed_spool_takes_nothing(tmp_path: Path) -> None:
    """A row in a file that nobody reads any more, locked until the process ends, is as good as lost until then."""
    spool = Spool(tmp_path, LIMIT)
    spool.append(line(b"a"))
    drain(spool)
    spool.close()
    with pytest.raises(ValueError, match="the store is closed"):
        spool.append(line(b"b"))
    assert list(tmp_path.iterdir()) == []


def test_many_threads_and_many_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotation against taking: every row once, each thread's in its order, and no file left open."""
    monkeypatch.setattr(module, "SEGMENT_BYTES", 200)
    monkeypatch.setattr(module, "BATCH_BYTES", 150)
    monkeypatch.setattr(module, "CUT_BYTES", 60)
    before = open_files()
    spool, count, done = Spool(tmp_path, LIMIT), 1_500, threading.Event()
    errors: list[Exception] = []

    def write(thread: int) -> None:
        try:
            for number in range(count):
                spool.append(line(b"%d %d" % (thread, number)))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    found: list[bytes | None] = []

    def read() -> None:
        while not done.is_set() or spool.backlog:
            found.extend(drain(spool))
            spool.rest()

    reader = threading.Thread(target=read)
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert not errors
    assert len(found) == 4 * count
    for thread in range(4):
        mine = [row for row in found if row is not None and row.startswith(b"%d " % thread)]
        assert mine == [b"%d %d" % (thread, number) for number in range(count)]
    spool.close()
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


FORK = """
import os, sys
from pathlib import Path
from turnout.store.journal import Journal
from turnout.store.row import RowEncoder
from turnout.store.row import line
from turnout.store.spool import Spool

spool = Spool(Path(sys.argv[1]), 1 << 20)
journal = Journal(None, spool, RowEncoder("off", b"key"))
spool.append(line(b"a"))
if os.fork() == 0:
    sys.stdin.read()
os._exit(0)
"""


def test_a_forked_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path: Path) -> None:
    """A worker pool's children may live for days after the one process that wrote decisions."""
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", FORK, tmp_path]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as parent:
        assert parent.wait(30) == 0
        spool = Spool(tmp_path, LIMIT)
        # The child lives until its standard input ends, and lets go of the lock as soon as it runs at all.
        until = time.monotonic() + 30
        while not (adopted := spool.adopt()) and time.monotonic() < until:
            time.sleep(0.01)
        assert adopted == 1
        assert drain(spool) == [b"a"]


def test_everything_that_waits_is_synced_in_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only the file that is being written to: those before it wait as well."""
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1)
    spool = Spool(tmp_path, LIMIT)
    synced: list[str] = []

    def note(fd: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))

    monkeypatch.setattr(os, "fdatasync", note)
    monkeypatch.setattr(os, "fsync", note)
    for row in (b"a", b"b", b"c"):
        spool.append(line(row))
    spool.sync()
    assert synced == [*sorted(path.name for path in tmp_path.iterdir()), tmp_path.name]
    synced.clear()
    spool.sync()
    assert synced == []
