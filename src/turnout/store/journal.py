"""The writing half of the store: rows go into a spool at once and into the database in groups.

    batched   a row is in the spool, with one `write`, before its decision is answered. Process death loses nothing;
              a power cut at most what has not been committed, the last 5 ms.
    strict    a row is committed before its decision is answered.

Either way one thread takes what the spool holds and commits it as a group, so that a commit's cost is shared. Routing
never waits for the database in `batched`: when it cannot take rows, the spool grows to its limit, and what does not
fit then is lost and counted. Nothing is lost silently.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal

from msgspec import DecodeError, Struct, json

from turnout.core.decision import Decision
from turnout.core.errors import NotStored

from .backend import Backend, Unwritable
from .entry import Scribe, read_entry
from .row import Row
from .spool import Spool, contents

Durability = Literal["batched", "strict"]

# What a power cut may take in `batched`, and how long a group is gathered for.
GATHER_S = 0.005
# After a failed write the next one waits, longer each time: a locked database is not helped by being asked.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 2.0
# A worker that died leaves its spool to whoever looks next.
ADOPT_EVERY_S = 60.0
REJECTED = "rejected.jsonl"

log = logging.getLogger("turnout.store")


class Counts(Struct):
    """What the journal has done. `lost`, `rejected` and `torn` are the three ways a row can end elsewhere."""

    recorded: int = 0
    """Decisions, outcomes and replies put into the spool."""
    committed: int = 0
    """Rows the database has taken, of every kind."""
    repeated: int = 0
    """Rows that were there already."""
    lost: int = 0
    """Decisions, outcomes and replies that the spool could not take."""
    rejected: int = 0
    """Rows the database refused for what they say; they are in `rejected.jsonl` beside the spool."""
    torn: int = 0
    """Lines cut short by a full disk or a power cut."""
    failures: int = 0
    """Writes that did not succeed and were tried again."""
    backlog_bytes: int = 0
    last_error: str = ""


class Journal:
    """Rows in, from any thread; groups out, from one."""

    def __init__(self, backend: Backend, spool: Spool, scribe: Scribe, durability: Durability = "batched") -> None:
        self.backend = backend
        self.spool = spool
        self.scribe = scribe
        self.durability = durability
        self._counts = Counts()
        self._counting = threading.Lock()
        self._waiting: list[tuple[int, Future[None]]] = []
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._idle = True
        self._stopping = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        _forget_after_fork(self)

    def record(self, decision: Decision) -> None:
        """Write a decision down; returns when it is as durable as was asked for.

        In `batched` this never raises: what cannot be written is counted. In `strict` it raises NotStored.
        """
        done = self.append(decision)
        if done is not None:
            done.result()

    def append(self, decision: Decision) -> Future[None] | None:
        """As `record`, without waiting: in `strict`, a future to wait for before answering."""
        end = self._spool(self.scribe.decision(decision))
        if isinstance(end, int):
            # Only now: a profile that did not fit into the spool goes with the next decision that does.
            self.scribe.spooled.add(decision.profile.hash)
        return self._receipt(end) if self.durability == "strict" else None

    def put(self, lines: bytes) -> None:
        """Write other rows, as durable as decisions are."""
        end = self._spool(lines)
        if self.durability == "strict":
            self._receipt(end).result()

    def _spool(self, lines: bytes) -> int | OSError:
        """Where the lines end in the spool; the error if they are not in it."""
        try:
            if self._closed:
                raise ValueError("the store is closed, or was opened before a fork: open it where it is used")
            end = self.spool.append(lines)
        except OSError as error:
            with self._counting:
                self._counts.lost += 1
                new = self._counts.last_error != str(error)
                self._counts.last_error = str(error)
            if new:
                log.warning("a decision is not logged: %s (routing goes on; what is lost is counted)", error)
            return error
        if self._idle:
            self._start()
            self._wake.set()
        return end

    def _receipt(self, end: int | OSError) -> Future[None]:
        """Done when the database has everything up to `end`."""
        receipt: Future[None] = Future()
        if isinstance(end, OSError):
            receipt.set_exception(NotStored(f"{self.backend.where}: {end}"))
            return receipt
        with self._counting:
            if self.spool.taken >= end:
                receipt.set_result(None)
            else:
                self._waiting.append((end, receipt))
        self._hurry.set()
        return receipt

    def counts(self) -> Counts:
        with self._counting:
            counts = Counts(*(getattr(self._counts, name) for name in Counts.__struct_fields__))
        counts.recorded, counts.backlog_bytes = self.spool.appends, self.spool.backlog
        return counts

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the database has everything written so far; whether it has."""
        target, until = self.spool.written, time.monotonic() + timeout_s
        while self.spool.taken < target:
            self._start()
            self._hurry.set()
            self._wake.set()
            if time.monotonic() >= until or self._closed:
                return False
            time.sleep(0.001)
        return True

    def open(self) -> None:
        """Take over what earlier processes have left."""
        if self.spool.adopt():
            self._start()
            self._wake.set()

    def close(self, timeout_s: float = 10.0) -> None:
        """Commit what can be committed; what cannot stays in the spool for the next start."""
        if self._closed:
            return
        self._closed = True
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout_s)
        self._fail_waiting("the store was closed")
        self.spool.close()

    # --- the one thread

    def _start(self) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="turnout-journal", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            if self.spool.backlog == 0:
                self.spool.rest()
                if self._stopping:
                    return
                self._rest()
                continue
            if not self._stopping:
                self._hurry.wait(GATHER_S)
            self._hurry.clear()
            try:
                while self._commit():
                    pass
            # Whatever it is, the rows are in the spool and this thread must live to try again.
            except Exception as error:
                self._fail(error)
                if self._stopping:
                    return
                self._hurry.wait(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
            else:
                if self._counts.last_error and pause > FIRST_PAUSE_S:
                    log.warning("%s takes rows again", self.backend.where)
                pause = FIRST_PAUSE_S

    def _rest(self) -> None:
        """Sleep until there is something to do. Told to be idle first, then asked again: no wake-up is missed."""
        self._idle = True
        if self.spool.backlog == 0 and not self._stopping and not self._wake.wait(ADOPT_EVERY_S):
            self.spool.adopt()
        self._wake.clear()
        self._idle = False

    def _commit(self) -> bool:
        """Hand one batch to the database; False when there is nothing more."""
        lines = self.spool.take()
        if not lines:
            return False
        rows: list[Row] = []
        torn = 0
        for content in contents(lines):
            if content is None:
                torn += 1
                continue
            try:
                rows.append(read_entry(content))
            except DecodeError as error:
                self._set_aside(content, error)
        committed, repeated = self._write(rows)
        self.spool.release(len(lines))
        with self._counting:
            self._counts.committed += committed
            self._counts.repeated += repeated
            self._counts.torn += torn
            taken = self.spool.taken
            done = [receipt for end, receipt in self._waiting if end <= taken]
            if done:
                self._waiting = [waiting for waiting in self._waiting if waiting[0] > taken]
        for receipt in done:
            receipt.set_result(None)
        return True

    def _write(self, rows: list[Row]) -> tuple[int, int]:
        """How many rows were written, and how many were there already. One that is refused does not stop the others."""
        if not rows:
            return 0, 0
        try:
            repeated = self.backend.write(rows)
        except Unwritable as error:
            if len(rows) == 1:
                self._set_aside(json.encode(rows[0]), error)
                return 0, 0
            middle = len(rows) // 2
            first, second = self._write(rows[:middle]), self._write(rows[middle:])
            return first[0] + second[0], first[1] + second[1]
        return len(rows) - repeated, repeated

    def _set_aside(self, content: bytes, error: Exception) -> None:
        """Keep what no database takes where a person can look at it."""
        file = self.spool.folder / REJECTED
        with file.open("ab") as rejected:
            rejected.write(json.encode({"error": str(error), "row": content.decode(errors="replace")}) + b"\n")
        with self._counting:
            self._counts.rejected += 1
            self._counts.last_error = str(error)
        log.warning("a row was refused and set aside in %s: %s", file, error)

    def _fail(self, error: Exception) -> None:
        with self._counting:
            self._counts.failures += 1
            first = self._counts.last_error != str(error)
            self._counts.last_error = str(error)
        if first:
            log.warning("%s (routing goes on; rows wait in the spool)", error)
        self._fail_waiting(str(error))
        try:
            self.spool.sync()
        except OSError as unsynced:
            log.warning("the spool could not be synced: %s", unsynced)

    def _fail_waiting(self, why: str) -> None:
        with self._counting:
            waiting, self._waiting = self._waiting, []
        for _, receipt in waiting:
            receipt.set_exception(NotStored(why))


def _forget_after_fork(journal: Journal) -> None:
    """A forked child has the journal's memory but not its thread: it must open a store of its own."""
    reference: Callable[[], Journal | None] = weakref.ref(journal)

    def forget() -> None:
        theirs = reference()
        if theirs is not None:
            theirs._closed = True

    os.register_at_fork(after_in_child=forget)
