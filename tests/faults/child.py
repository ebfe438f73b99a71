"""A process that records decisions until it is done or killed, and says of each that it was told it is safe.

    python -m faults.child URL ACKS --worker NAME --durability strict --threads 8 --count 50000
    python -m faults.child URL ACKS --replay        opens the store, waits for what was left behind, closes it

An acknowledgement is one `write` to a file, after `record` has returned: what is in the file was promised.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import signal
import threading
import time
from pathlib import Path

from faults import workload
from turnout.core.errors import NotStored
from turnout.store import Outcome, journal, open_store, spool, sqlite


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("acks", type=Path)
    parser.add_argument("--worker", default="w")
    parser.add_argument("--durability", default="batched")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--segment-bytes", type=int)
    parser.add_argument("--batch-bytes", type=int)
    parser.add_argument("--busy-s", type=float)
    parser.add_argument("--pause-s", type=float, default=0.0)
    parser.add_argument("--file-bytes", type=int, help="no file of this process may grow beyond")
    parser.add_argument("--replay", action="store_true")
    told = parser.parse_args()
    if told.segment_bytes:
        spool.SEGMENT_BYTES = told.segment_bytes
        spool.CUT_BYTES = told.segment_bytes // 4
    if told.batch_bytes:
        spool.BATCH_BYTES = told.batch_bytes
    if told.busy_s is not None:
        sqlite.BUSY_S = told.busy_s
        journal.LAST_PAUSE_S = 0.2
    if told.file_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (told.file_bytes, told.file_bytes))
    acks = os.open(told.acks, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    # Before any thread: two that load profiles at the same time may crash in msgspec.
    for profile in workload.PROFILES:
        workload.router(profile)
    with open_store(told.url, durability=told.durability) as store:
        os.write(acks, b"open\n")
        if told.replay:
            store.flush(120.0)
            return
        numbers = itertools.count()
        offered = itertools.count()
        refused = itertools.count()

        def work() -> None:
            while (number := next(numbers)) < told.count:
                decision = workload.decide(told.worker, number)
                next(offered)
                try:
                    store.record(decision)
                    if number % workload.SETTLED == 0:
                        store.settle(decision, Outcome(model="m", attempts=number))
                except NotStored:
                    next(refused)
                    continue
                os.write(acks, f"{number} {decision.id}\n".encode())
                if told.pause_s:
                    time.sleep(told.pause_s)

        threads = [threading.Thread(target=work) for _ in range(told.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.flush(120.0)
        counts = store.counts()
    summary = {"offered": next(offered), "refused": next(refused), "recorded": counts.recorded, "lost": counts.lost}
    os.write(acks, f"done {json.dumps(summary)}\n".encode())


if __name__ == "__main__":
    main()
