"""A process whose disk fills up and has room again; it tells what became of every decision, as JSON.

    python -m faults.full PATH batched --file-bytes 300000    no file may grow beyond (RLIMIT_FSIZE; needs no rights)
    python -m faults.full PATH strict --ballast FILE          fills the file system PATH is on; only for a small one

Both are real errors from the kernel, EFBIG and ENOSPC, for the spool and for SQLite alike.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from faults import workload
from faults.workload import RoutedDecision
from turnout.core.errors import NotStored
from turnout.store import journal, open_store


class Notes(logging.Handler):
    """Every message the store logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("durability")
    parser.add_argument("--file-bytes", type=int)
    parser.add_argument("--ballast", type=Path)
    parser.add_argument("--count", type=int, default=2_000)
    told = parser.parse_args()
    journal.LAST_PAUSE_S, journal.CALM_S = 0.1, 0.1
    notes = Notes()
    logging.getLogger("turnout.store").addHandler(notes)

    def fill() -> None:
        if told.file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (told.file_bytes, resource.RLIM_INFINITY))
        else:
            stuff(told.ballast)

    def make_room() -> None:
        if told.file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            told.ballast.unlink()

    offered, acked, refused = 0, [], []
    wrong: list[RoutedDecision] = []
    with open_store(str(told.path), durability=told.durability) as store:
        for number in range(told.count):
            if number == told.count // 10:
                store.flush()
                fill()
            if number == told.count * 9 // 10:
                in_between = store.counts()
                while_full = rows(told.path)
                make_room()
                time.sleep(2 * journal.CALM_S)
            decision = workload.decide("f", number)
            if workload.routed(decision) != workload.expected(*workload.asked(number)):
                wrong.append(workload.routed(decision))
            offered += 1
            try:
                store.record(decision)
            except NotStored:
                refused.append(decision.id)
            else:
                acked.append(decision.id)
        flushed = store.flush(60.0)
        counts = store.counts()
    found = rows(told.path)
    report = {
        "offered": offered,
        "recorded": counts.recorded,
        "lost": counts.lost,
        "lost_while_full": in_between.lost,
        "failures": counts.failures,
        "acked": len(acked),
        "refused": len(refused),
        "refused_but_there_at_once": len(while_full & set(refused)),
        "rows": len(found),
        "acked_and_missing": len(set(acked) - found),
        "wrong": len(wrong),
        "flushed": flushed,
        "left": len(list(told.path.with_name(told.path.name + "-spool").iterdir())),
        "said": notes.said,
    }
    print(json.dumps(report))


def rows(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {ident for (ident,) in connection.execute("select id from decisions where parent_id is null")}


def stuff(ballast: Path) -> None:
    """Take every byte there is."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 512, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue
    os.sync()


if __name__ == "__main__":
    main()
