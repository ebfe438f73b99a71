"""The writing half of the store: rows go into a spool at once and into the database in groups.

    batched   a row is in the spool, with one `write`, before its decision is answered. Process death loses nothing;
              a power cut what has been neither committed nor synced: the last 5 ms, under full load those and what the
              commit and the sync under way take.
    strict    a row is committed before its decision is answered.

In both, one thread takes rows from the spool and commits them as a group, so that they share the cost of a commit. In
`batched`, routing never waits for the database: while it takes no rows, the spool grows to its limit, and rows beyond
that are lost and counted. Nothing is lost silently.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Literal, NamedTuple

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from turnout.core.errors import NotStored
from turnout.core.profile import Profile

from .backend import Backend, Unwritable
from .row import Row, RowEncoder, contents, decode_row, line
from .spool import BATCH_BYTES, CLOSED, Spool

Durability = Literal["batched", "strict"]
Refusal = tuple[bytes, Exception]

# How long a group is gathered. A commit costs nearly the same for ten rows and for a hundred.
GATHER_S = 0.05
# The share of the spool that may fill up before a busy process has to commit.
SPARED = 0.25
# How much the writer's niceness is raised in `batched`.
NICE = 5
# The pauses after failed writes, each longer than the last: asking more often does not unlock a database.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 2.0
# How often the spool is synced while rows wait to be committed: the most a power cut may take in `batched`.
SYNC_EVERY_S = 0.005
# How often the spools of workers that died are looked for.
ADOPT_EVERY_S = 60.0
# A spool that has taken rows for this long after it refused one works again.
CALM_S = 5.0
# An outage causes a few different errors: at most so many are logged.
SENTENCES = 8
# Refused rows that are remembered until their caller asks: a handful are in flight at a time.
REMEMBERED = 256
REJECTED = "rejected.jsonl"

log = logging.getLogger("turnout.store")


class Counts(Struct):
    """What the journal has done. A row that is not committed is `lost`, `rejected` or `torn`."""

    recorded: int = 0
    """Decisions, outcomes and replies put into the spool."""
    committed: int = 0
    """Rows the database has taken, of every kind."""
    repeated: int = 0
    """Rows the database had already."""
    lost: int = 0
    """Decisions, outcomes and replies that the spool could not take."""
    rejected: int = 0
    """Rows the database refused because of their content; they are in `rejected.jsonl` beside the spool."""
    torn: int = 0
    """Lines cut short by a full disk or a power cut."""
    failures: int = 0
    """Writes that failed and were tried again."""
    backlog_bytes: int = 0
    last_error: str = ""


class Waiter(NamedTuple):
    """A caller that waits until these bytes of the spool are in the database."""

    start: int
    end: int
    future: Future[None]


class Journal:
    """Takes rows from any thread and commits them in groups from one."""

    def __init__(
        self,
        backend: Backend,
        spool: Spool,
        encoder: RowEncoder,
        durability: Durability = "batched",
        chore: Callable[[], bool] | None = None,
    ) -> None:
        self.backend = backend
        self.spool = spool
        self.encoder = encoder
        self.durability = durability
        self._held_back = False
        self._chore = chore
        """Called by the thread when there is nothing to write; does a little and returns whether there is more."""
        self._profiles: set[str] = set()
        """Hashes of the profiles that are in the spool or in the database already."""
        self._counts = Counts()
        self._counting = threading.Lock()
        self._waiting: list[Waiter] = []
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._idle = True
        self._stopping = False
        self.closed = False
        """Whether it can no longer be used: closed, or copied into a child by a fork."""
        self._ended = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._adopt_at = time.monotonic() + ADOPT_EVERY_S
        self._sync_at = 0.0
        self._lost_at: float | None = None
        """When the spool last refused a row; None once it works again."""
        self._outage: set[str] = set()
        """Messages logged about the database since it last took rows."""
        self._spool_trouble: set[str] = set()
        """Messages logged about the spool's folder."""
        self._refused: deque[tuple[int, Exception]] = deque(maxlen=REMEMBERED)
        """Positions in the spool of rows that were refused, and why: their caller may ask a moment later."""
        _forget_after_fork(self)

    def append(self, lines: bytes, profile: Profile) -> Future[None] | None:
        """Write the rows of a decision of this profile, in one write. In `strict`, returns a future to wait for before
        answering; otherwise the rows are now in the spool or counted as lost."""
        if profile.hash in self._profiles:
            return self.post(lines)
        return self.post(self.encoder.profile(profile) + lines, profile.hash)

    def put(self, lines: bytes) -> None:
        """Write other rows, as durable as decisions are."""
        done = self.post(lines)
        if done is not None:
            done.result()

    def post(self, lines: bytes, profile: str | None = None) -> Future[None] | None:
        """As `put`, without waiting; `profile` is the hash of a profile whose row is among the lines."""
        if self.closed:
            raise ValueError(CLOSED)
        end: int | OSError
        try:
            end = self.spool.append(lines)
        except OSError as error:
            self._lose(error)
            end = error
        else:
            if profile is not None:
                # Only now: another thread's decision must not get into the spool before its profile.
                self._profiles.add(profile)
            if self._idle:
                if self._thread is None:
                    self._start()
                self._wake.set()
            if self._lost_at is not None:
                self._calm()
        return self._receipt(len(lines), end) if self.durability == "strict" else None

    def _lose(self, error: OSError) -> None:
        with self._counting:
            self._counts.lost += 1
            self._counts.last_error = str(error)
            first, self._lost_at = self._lost_at is None, time.monotonic()
        if first:
            log.warning("a decision is not logged: %s (routing goes on; what is lost is counted)", error)

    def _calm(self) -> None:
        """Log that nothing is lost any more, once that has lasted a while: a full disk has room now and then."""
        with self._counting:
            calm = self._lost_at is not None and time.monotonic() - self._lost_at >= CALM_S
            if calm:
                self._lost_at = None
            lost = self._counts.lost
        if calm:
            log.warning("decisions are logged again; %s were not since the store was opened", f"{lost:,}")

    def _receipt(self, size: int, end: int | OSError) -> Future[None]:
        """A future that is done when the database has everything up to `end`."""
        receipt: Future[None] = Future()
        # It cannot be cancelled: an asyncio caller that goes away cancels its wait, but not the write.
        receipt.set_running_or_notify_cancel()
        if isinstance(end, OSError):
            receipt.set_exception(NotStored(f"{self.backend.where}: {end}"))
            return receipt
        with self._counting:
            waiting = Waiter(end - size, end, receipt)
            if self.spool.taken >= end:
                _answer([waiting], self._refused)
            elif self._ended:
                receipt.set_exception(NotStored(f"{self.backend.where}: the store was closed"))
            else:
                self._waiting.append(waiting)
        if self._thread is None:
            self._fail_waiting(f"{self.backend.where}: no thread writes to it")
        self._hurry.set()
        return receipt

    def hold_back(self, busy: bool) -> None:
        """Delay commits, within limits, while the process is busy."""
        self._held_back = busy

    def counts(self) -> Counts:
        with self._counting:
            return replace(self._counts, recorded=self.spool.appends, backlog_bytes=self.spool.backlog)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the database has everything written so far; whether it has."""
        target, until = self.spool.written, time.monotonic() + timeout_s
        if self._has(target):
            return True
        self._start()
        self._hurry.set()
        self._wake.set()
        while not self._has(target):
            if time.monotonic() >= until or self.closed:
                return False
            time.sleep(0.001)
        return True

    def _has(self, end: int) -> bool:
        with self._counting:
            return self.spool.taken >= end

    def open(self) -> None:
        """Start with rows an earlier process left, and with the chore if there is one."""
        if self.spool.backlog or self._chore is not None:
            self._start()
            self._wake.set()

    def close(self, timeout_s: float = 10.0) -> None:
        """Commit what can be committed; what cannot stays in the spool for the next start."""
        with self._starting:
            if self.closed:
                return
            self.closed = True
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        if self._thread is None:
            self._end()
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            # It closes the spool itself when it is done: a file is never closed under its reader.
            log.warning("%s does not answer; rows wait in the spool for the next start", self.backend.where)
        self._fail_waiting(f"{self.backend.where}: the store was closed")

    # --- the one thread

    def _start(self) -> None:
        if self._thread is None:
            with self._starting:
                if self.closed:
                    return
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="turnout-journal", daemon=True)
                    try:
                        self._thread.start()
                    except RuntimeError as error:  # the system has no more threads for us
                        self._thread = None
                        self._fail(error)

    def _run(self) -> None:
        if self.durability == "batched":
            _step_back()
        self._idle = False
        spool, pause = self.spool, FIRST_PAUSE_S
        # The end of the current group. Rows that come while it is committed wait for the next one: a busy process would
        # otherwise commit as often as it can, a few rows each time.
        gathered = 0
        while not (self._stopping and spool.written == spool.taken):
            try:
                if time.monotonic() >= self._adopt_at:
                    self._adopt_at = time.monotonic() + ADOPT_EVERY_S
                    spool.adopt()
                if spool.written == spool.taken:
                    if self._chore is None or not self._chore():
                        self._rest()
                    continue
                if spool.taken >= gathered:
                    self._gather()
                    gathered = spool.written
                elif time.monotonic() >= self._sync_at:
                    self._sync()
                if self._hurry.is_set():
                    self._hurry.clear()
                    # Read after the flag is cleared: a caller that sets it has written before.
                    gathered = spool.written
                if not self._commit():
                    gathered = 0
                pause = FIRST_PAUSE_S
            # Whatever the error is, the rows are in the spool and this thread must live to try again.
            except Exception as error:
                self._fail(error)
                if self._stopping:
                    break
                self._hurry.wait(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
        self._end()

    def _gather(self) -> None:
        """Wait for more rows until a caller waits for one or a batch is full. The rows are safe in the spool."""
        until, spool, synced = time.monotonic() + GATHER_S, self.spool, -1
        while not self._stopping:
            held_back = self._held_back
            if spool.written - spool.taken > (spool.limit_bytes * SPARED if held_back else BATCH_BYTES):
                return
            if self._hurry.wait(SYNC_EVERY_S) or (time.monotonic() >= until and not held_back):
                return
            if spool.written > synced:
                synced = spool.written
                self._sync()

    def _rest(self) -> None:
        """Sleep until there is something to do. It is marked as idle and then checked again: no wake-up is missed."""
        self._idle = True
        # The spool is cut back in a pause, not between two rows: a caller that waits for each comes back at once.
        if self.spool.written == self.spool.taken and not self._stopping and not self._wake.wait(GATHER_S):
            self.spool.rest()
            self._wake.wait(max(0.0, self._adopt_at - time.monotonic()))
        self._wake.clear()
        self._idle = False

    def _restore(self) -> None:
        """Write the spool's files again if they were removed."""
        try:
            restored = self.spool.restore()
        except OSError as error:
            # Rows in a removed file can still be committed; only a crash before that would lose them.
            # Without the name of the file, which differs at every attempt.
            why = f"{self.spool.folder} was removed while in use and cannot be made again: {error.strerror or error}"
            _say(why, self._spool_trouble)
            return
        if restored:
            self._spool_trouble.clear()
            log.warning("%s was removed while in use; %s bytes were written anew", self.spool.folder, f"{restored:,}")

    def _end(self) -> None:
        """Close the spool and refuse all further rows."""
        self._restore()
        self.spool.close()
        self._fail_waiting(f"{self.backend.where}: the store was closed", last=True)

    def _commit(self) -> bool:
        """Hand one batch to the database; False when there is none."""
        lines = self.spool.take()
        if not lines:
            return False
        start, torn = self.spool.taken, 0
        read: list[bytes] = []
        rows: list[Row] = []
        refused: list[Refusal] = []
        for content in contents(lines):
            if content is None:
                torn += 1
                continue
            try:
                rows.append(decode_row(content))
            except DecodeError as error:
                refused.append((content, error))
            else:
                read.append(content)
        unreadable = len(refused)
        try:
            repeated = self.backend.write(rows) if rows else 0
        except Unwritable as error:
            repeated = self._write_apart(rows, read, error, refused)
        committed = len(rows) - repeated - (len(refused) - unreadable)
        # Only after the whole batch is done: if it is tried again, refused rows must be set aside once.
        if refused:
            self._set_aside(refused)
        if torn:
            log.warning("%s lines of the spool were torn and are lost", torn)
        if self._outage:
            self._outage.clear()
            log.warning("%s takes rows again", self.backend.where)
        with self._counting:
            # Last, and under one lock: a caller that sees a row taken finds it counted and the log complete.
            self.spool.release(len(lines))
            self._counts.committed += committed
            self._counts.repeated += repeated
            self._counts.torn += torn
            self._counts.rejected += len(refused)
            if refused:
                self._refused.extend((start + lines.find(line(content)), error) for content, error in refused)
            taken, done = self.spool.taken, self._waiting
            if done:
                done = [waiting for waiting in self._waiting if waiting.end <= taken]
                self._waiting = [waiting for waiting in self._waiting if waiting.end > taken]
        if done:
            _answer(done, self._refused)
        # Last, because a caller that was just answered can add its next row meanwhile.
        self._restore()
        return True

    def _write_apart(self, rows: Sequence[Row], read: Sequence[bytes], why: Unwritable, refused: list[Refusal]) -> int:
        """Write a batch that was refused in halves, down to the refused rows, which are added to `refused` with the
        bytes they were `read` from. Returns how many rows the database had already."""
        if len(rows) == 1:
            refused.append((read[0], why))
            return 0
        repeated, middle = 0, len(rows) // 2
        for half in (slice(middle), slice(middle, None)):
            try:
                repeated += self.backend.write(rows[half])
            except Unwritable as error:
                repeated += self._write_apart(rows[half], read[half], error, refused)
        return repeated

    def _set_aside(self, refused: Sequence[Refusal]) -> None:
        """Keep refused rows in a file for a person to look at."""
        file = self.spool.folder / REJECTED
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lines = [json.encode({"error": str(why), "row": content.decode(errors="replace")}) for content, why in refused]
        # What people ask must not be readable by other users.
        with open(file, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as rejected:
            rejected.write(b"\n".join([*lines, b""]))
            rejected.flush()
            os.fsync(rejected.fileno())
        error = refused[-1][1]
        with self._counting:
            self._counts.last_error = str(error)
        log.warning("%s rows were refused and set aside in %s: %s", len(refused), file, error)

    def _fail(self, error: Exception) -> None:
        with self._counting:
            self._counts.failures += 1
            self._counts.last_error = str(error)
        _say(f"{error} (routing goes on; rows wait in the spool)", self._outage)
        self._fail_waiting(str(error))
        # Afterwards the database may be another one: profiles are written again.
        self._profiles.clear()
        self._sync()

    def _sync(self) -> None:
        """Make waiting rows survive a power cut."""
        self._restore()
        try:
            self.spool.sync()
        except OSError as error:
            _say(f"{self.spool.folder}: what waits there could not be synced: {error}", self._spool_trouble)
        self._sync_at = time.monotonic() + SYNC_EVERY_S

    def _fail_waiting(self, why: str, *, last: bool = False) -> None:
        with self._counting:
            waiting, self._waiting = self._waiting, []
            self._ended = self._ended or last
        for one in waiting:
            one.future.set_exception(NotStored(why))


def _step_back() -> None:
    """Give answers precedence on a shared core: their rows are safe already. This thread keeps a quarter of the core,
    more than it needs. Only Linux has priorities for threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE)


def _say(sentence: str, logged: set[str]) -> None:
    """Log a sentence once."""
    if sentence not in logged and len(logged) < SENTENCES:
        logged.add(sentence)
        log.warning("%s", sentence)


def _answer(done: Sequence[Waiter], refused: Iterable[tuple[int, Exception]]) -> None:
    """Complete the futures of waiting callers; `refused` has the positions of refused rows in the spool."""
    for start, end, receipt in done:
        error = next((error for at, error in refused if start <= at < end), None)
        if error is None:
            receipt.set_result(None)
        else:
            receipt.set_exception(NotStored(f"the row was refused and set aside: {error}"))


def _forget_after_fork(journal: Journal) -> None:
    """A forked child has the journal's memory but not its thread: it must open a store of its own."""
    reference: Callable[[], Journal | None] = weakref.ref(journal)

    def forget() -> None:
        inherited = reference()
        if inherited is not None and not inherited.closed:
            inherited.closed = True
            inherited.spool.forget()

    os.register_at_fork(after_in_child=forget)
