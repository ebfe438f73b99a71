"""The spool loses no line and believes no torn one: appended, taken, given up, inherited, full, and raced for."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.store import spool as module
from turnout.store.row import contents, line
from turnout.store.spool import SUFFIX, Spool

MEBIBYTE = 1024 * 1024


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path / "spool", MEBIBYTE)
    yield opened
    opened.close()


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and batches of a few lines."""
    monkeypatch.setattr(module, "SEGMENT_BYTES", 64)
    monkeypatch.setattr(module, "BATCH_BYTES", 48)
    monkeypatch.setattr(module, "CUT_BYTES", 16)


def drain(spool: Spool) -> list[bytes | None]:
    """Everything that can be taken, torn lines as None."""
    found: list[bytes | None] = []
    while taken := spool.take():
        found += contents(taken)
        spool.release(len(taken))
    return found


def left(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


class TestLines:
    @given(st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")), min_size=1))
    def test_whatever_is_written_is_read(self, written: list[bytes]) -> None:
        assert list(contents(b"".join(map(line, written)))) == written

    @given(st.binary(min_size=1, max_size=40).map(lambda data: data.replace(b"\n", b"")), st.data())
    def test_a_damaged_line_is_never_believed(self, written: bytes, data: st.DataObject) -> None:
        whole = line(written)
        at = data.draw(st.integers(0, len(whole) - 2))
        letter = data.draw(st.integers(1, 255).filter(lambda one: one != whole[at] and one != 10))
        damaged = whole[:at] + bytes((letter,)) + whole[at + 1 :]
        assert list(contents(damaged)) == [None]
        assert at == 0 or list(contents(whole[:at])) == [None]

    @pytest.mark.parametrize("torn", [b"\n", b"0" * 8, b"00000000", b"garbage\n", b"\xff\xfe\n", b"00000001 \n"])
    def test_garbage(self, torn: bytes) -> None:
        assert list(contents(torn)) == [None]

    def test_a_torn_line_does_not_take_its_neighbours_along(self) -> None:
        lines = line(b"one") + line(b"two")[:-4] + b"\n" + line(b"three")
        assert list(contents(lines)) == [b"one", None, b"three"]


class TestAppending:
    def test_taken_in_order_and_only_after_release(self, spool: Spool) -> None:
        ends = [spool.append(line(b"%d" % number)) for number in range(5)]
        assert ends == sorted(ends)
        assert ends[-1] == spool.written == spool.backlog
        first = spool.take()
        assert spool.take() == first, "what is not released is taken again"
        spool.release(len(first))
        assert (spool.take(), spool.backlog, spool.taken) == (b"", 0, ends[-1])
        assert list(contents(first)) == [b"0", b"1", b"2", b"3", b"4"]

    def test_nothing_is_made_before_the_first_line(self, spool: Spool) -> None:
        assert (spool.take(), spool.adopt(), spool.backlog) == (b"", 0, 0)
        assert not spool.folder.exists()

    def test_for_its_owner_only(self, spool: Spool) -> None:
        spool.append(line(b"x"))
        (file,) = left(spool.folder)
        assert stat.S_IMODE(spool.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    @pytest.mark.usefixtures("_small")
    def test_a_full_file_is_given_up_for_a_new_one(self, spool: Spool) -> None:
        written = [b"line %02d" % number for number in range(40)]
        for content in written:
            spool.append(line(content))
        assert len(left(spool.folder)) > 5
        assert drain(spool) == written
        spool.rest()
        (file,) = left(spool.folder)
        assert file.stat().st_size == 0

    @pytest.mark.usefixtures("_small")
    @pytest.mark.parametrize("size", [1, 47, 48, 49, 64, 65, 1000])
    def test_a_line_of_any_length(self, spool: Spool, size: int) -> None:
        written = [b"x" * size, b"short", b"y" * size, b"z" * size]
        for content in written:
            spool.append(line(content))
        assert drain(spool) == written

    def test_an_emptied_file_is_used_again(self, spool: Spool) -> None:
        for number in range(100):
            spool.append(line(b"%d" % number))
            assert drain(spool) == [b"%d" % number]
            spool.rest()
        (file,) = left(spool.folder)
        assert file.stat().st_size == 0


class TestLimit:
    def test_what_does_not_fit_is_refused(self, tmp_path: Path) -> None:
        spool = Spool(tmp_path, 100)
        spool.append(line(b"x" * 50))
        with pytest.raises(OSError, match="the spool holds 100 bytes, its limit") as caught:
            spool.append(line(b"y" * 50))
        assert caught.value.errno == errno.EDQUOT
        assert spool.appends == 1
        assert drain(spool) == [b"x" * 50]
        spool.append(line(b"z" * 50))
        assert drain(spool) == [b"z" * 50]
        spool.close()

    def test_a_disk_that_takes_half_a_line(self, spool: Spool) -> None:
        """The file may not grow: the first part of a write succeeds, the rest does not, and nothing of it stays."""
        spool.append(line(b"before" * 10))
        (file,) = left(spool.folder)
        size = file.stat().st_size
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
        try:
            with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
                spool.append(line(b"too long" * 100))
            assert file.stat().st_size == size
            assert spool.written == size
            spool.append(line(b"fits"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        spool.append(line(b"after"))
        assert drain(spool) == [b"before" * 10, b"fits", b"after"]

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        spool = Spool(tmp_path / "file" / "spool", 100)
        with pytest.raises(OSError, match=os.strerror(errno.ENOTDIR)):
            spool.append(line(b"x"))
        assert (spool.adopt(), spool.take(), spool.written) == (0, b"", 0)
        spool.close()


# A process that leaves two lines and a torn one behind, one more file than it needs, and no chance to clean up.
DOOMED = """
import os, signal, sys
from pathlib import Path
from turnout.store import spool as module
from turnout.store.row import line
from turnout.store.spool import Spool
module.SEGMENT_BYTES = 1
spool = Spool(Path(sys.argv[1]), 1 << 20)
for number in range(4):
    spool.append(line(b"left %d" % number))
spool.append(b"00000000 torn")
print("ready", flush=True)
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def owner(folder: Path, then: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", DOOMED, str(folder), then]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


class TestInheriting:
    def test_what_a_dead_owner_left(self, spool: Spool) -> None:
        with owner(spool.folder, "die") as process:
            process.wait(30)
        assert len(left(spool.folder)) == 5
        assert spool.adopt()
        assert drain(spool) == [b"left 0", b"left 1", b"left 2", b"left 3", None]
        assert (spool.backlog, left(spool.folder)) == (0, [])

    def test_not_what_a_living_one_has(self, spool: Spool) -> None:
        with owner(spool.folder, "wait") as process:
            try:
                assert (spool.adopt(), spool.take(), len(left(spool.folder))) == (0, b"", 5)
            finally:
                process.kill()
        assert spool.adopt()
        assert len(drain(spool)) == 5

    def test_only_one_of_two_heirs_gets_it(self, spool: Spool) -> None:
        with owner(spool.folder, "die") as process:
            process.wait(30)
        other = Spool(spool.folder, MEBIBYTE)
        assert bool(other.adopt()) != bool(spool.adopt())
        assert (len(drain(other)), len(drain(spool))) == (5, 0)
        other.close()

    def test_garbage(self, spool: Spool) -> None:
        spool.folder.mkdir()
        junk = os.urandom(5000)
        (spool.folder / f"junk{SUFFIX}").write_bytes(junk)
        (spool.folder / f"empty{SUFFIX}").write_bytes(b"")
        (spool.folder / f"folder{SUFFIX}").mkdir()
        (spool.folder / "rejected.jsonl").write_bytes(b"{}\n")
        spool.adopt()
        spool.append(line(b"mine"))
        found = drain(spool)
        assert found.count(b"mine") == 1
        assert [content for content in found if content is not None] == [b"mine"]
        spool.close()
        assert sorted(path.name for path in spool.folder.iterdir()) == [f"folder{SUFFIX}", "rejected.jsonl"]

    def test_a_file_that_grows_in_the_wrong_place_harms_nobody(self, spool: Spool) -> None:
        """Appended to after it was taken over: whoever does that holds no lock, and is not one of us."""
        spool.folder.mkdir()
        file = spool.folder / f"old{SUFFIX}"
        file.write_bytes(line(b"one"))
        spool.adopt()
        with file.open("ab") as late:
            late.write(line(b"late"))
        spool.append(line(b"two"))
        assert drain(spool) == [b"one", b"two"]

    def test_left_for_the_next(self, spool: Spool) -> None:
        for number in range(3):
            spool.append(line(b"%d" % number))
        taken = spool.take()
        spool.close()
        assert len(left(spool.folder)) == 1
        heir = Spool(spool.folder, MEBIBYTE)
        assert heir.adopt()
        assert heir.take() == taken, "what was not released is there again"
        assert drain(heir) == [b"0", b"1", b"2"]
        heir.close()
        assert left(spool.folder) == []

    def test_closed_when_all_is_taken_leaves_nothing(self, spool: Spool) -> None:
        spool.append(line(b"x"))
        drain(spool)
        spool.close()
        assert left(spool.folder) == []

    def test_closed_is_closed(self, spool: Spool) -> None:
        spool.close()
        with pytest.raises(ValueError, match="the store is closed"):
            spool.append(line(b"x"))
        assert not spool.folder.exists()


@pytest.mark.parametrize("small", [False, True], ids=["one file", "many files"])
def test_many_threads_append_while_one_takes(spool: Spool, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if small:
        for name, size in (("SEGMENT_BYTES", 2000), ("BATCH_BYTES", 700), ("CUT_BYTES", 500)):
            monkeypatch.setattr(module, name, size)
    threads, each = 8, 300
    begin = threading.Barrier(threads)
    written: list[int] = []

    def append(thread: int) -> None:
        begin.wait()
        for number in range(each):
            # Two lines at once must stay together.
            spool.append(line(b"%d %d a" % (thread, number)) + line(b"%d %d b" % (thread, number)))
        written.append(thread)

    writers = [threading.Thread(target=append, args=(thread,)) for thread in range(threads)]
    for writer in writers:
        writer.start()
    found: list[bytes | None] = []
    while len(written) < threads or spool.backlog:
        found += drain(spool)
        spool.rest()
    for writer in writers:
        writer.join()
    assert None not in found
    assert len(found) == 2 * threads * each
    for thread in range(threads):
        mine = [content for content in found if content is not None and content.startswith(b"%d " % thread)]
        assert mine == [b"%d %d %b" % (thread, number, half) for number in range(each) for half in (b"a", b"b")]
    assert (spool.backlog, spool.appends) == (0, threads * each)
    assert sum(file.stat().st_size for file in left(spool.folder)) == 0
