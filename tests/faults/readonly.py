"""A process without special rights in front of files it may not write to; it tells what happened, as JSON.

    python -m faults.readonly FOLDER file|spool|folder|new

Root may write everywhere, so root becomes `nobody` first, after everything is imported.
"""

from __future__ import annotations

import json
import logging
import os
import pwd
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from faults import workload
from faults.full import Notes, rows
from turnout.core.errors import TurnoutError
from turnout.store import journal, open_store, sqlite

OFFERED = 60


def main() -> None:
    folder, case = Path(sys.argv[1]), sys.argv[2]
    for number in range(OFFERED):
        workload.decide("r", number)
    journal.FIRST_PAUSE_S = journal.LAST_PAUSE_S = 0.02
    sqlite.BUSY_S = 0.1
    notes = Notes()
    logging.getLogger("turnout.store").addHandler(notes)
    if os.geteuid() == 0:
        # A folder of root's may be closed to others all the way up.
        folder = Path(tempfile.mkdtemp(prefix="turnout-readonly-"))
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        os.setegid(nobody.pw_gid)
        os.seteuid(nobody.pw_uid)
    os.environ["HOME"] = os.environ["XDG_CONFIG_HOME"] = str(folder)
    path = folder / "turnout.db"
    spool = folder / "turnout.db-spool"
    if case != "new":
        open_store(str(path)).close()
    if case == "file":
        path.chmod(0o400)
    elif case == "spool":
        spool.mkdir(exist_ok=True)
        spool.chmod(0o500)
    else:
        folder.chmod(0o500)
    try:
        report = play(path)
    except TurnoutError as error:
        report = {"opened": False, "error": str(error)}
    finally:
        for file in (folder, path, spool):
            if file.exists():
                file.chmod(0o700)
        remove(folder)
    report["said"] = notes.said
    print(json.dumps(report))


def play(path: Path) -> dict[str, Any]:
    with open_store(str(path)) as store:
        for number in range(OFFERED):
            store.record(workload.decide("r", number))
        time.sleep(0.3)
        waiting = store.counts().backlog_bytes
        path.chmod(0o600)
        store.flush(20.0)
        counts = store.counts()
    found = len(rows(path))
    told = msgspec.to_builtins(counts)
    return {"opened": True, "offered": OFFERED, "waiting": waiting, "rows": found, "counts": told}


def remove(folder: Path) -> None:
    if folder.name.startswith("turnout-readonly-"):
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        os.seteuid(0)
        folder.rmdir()


if __name__ == "__main__":
    main()
