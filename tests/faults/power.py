"""A power cut, simulated: what is on the disk if everything that was not synced is gone, or gone in part.

`strace` writes down every write, truncate, rename, unlink and sync of a process that records decisions, with the bytes.
From that the disk can be put together as it would be after a cut at any moment, in three ways:

    nothing   of what was not synced has reached it
    some      sectors of 512 bytes of it have, and some names, by chance
    all       of it has, as after kill -9

A sync makes durable what was written to the file before the sync began, and, as ext4 and XFS do, the file's name; a
sync of a folder makes durable the names in it. Not shown by this: a disk that lies about its cache, and file systems
that write something else than what they were given.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faults import rounds
from faults.rounds import TESTS, RoundFailed
from turnout.store import open_store

SECTOR = 512
WAYS = ("nothing", "some", "all")
CALLS = "write,pwrite64,fsync,fdatasync,ftruncate,rename,unlink,open,openat"

_BEGUN = re.compile(r"(\d+) +(\w+)\((.*?)(?: <unfinished \.\.\.>|\) += (-?\d+).*)")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>.*= (-?\d+).*")
_FILE = re.compile(r"-?\d+<((?:\\x[0-9a-f]{2})*)>(?:\(deleted\))?(?:, (.*))?")


class Call(NamedTuple):
    name: str
    arguments: str
    begin: int
    end: int
    """Lines of the record: what happened before what."""


def available() -> bool:
    return shutil.which("strace") is not None


def watch(folder: Path, durability: str, count: int, threads: int) -> tuple[list[Call], int]:
    """Let a process record decisions from an empty folder on; what it asked of the system, and in how many lines."""
    record = folder / "strace"
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    watched = ["strace", "-f", "-y", "-xx", "-s", str(1 << 24), "-e", "signal=none", "-e", f"trace={CALLS}"]
    child = [sys.executable, "-m", "faults.child", str(folder / "turnout.db"), str(folder / "w0.acks")]
    child += ["--worker", "w0", "--durability", durability, "--count", str(count), "--threads", str(threads)]
    subprocess.run([*watched, "-o", record, *child], env=environment, check=True, timeout=300)
    return parse(record)


def parse(record: Path) -> tuple[list[Call], int]:
    calls: list[Call] = []
    open_calls: dict[str, tuple[str, str, int]] = {}
    number = 0
    with record.open(encoding="ascii") as lines:
        for number, line in enumerate(lines):
            if found := _BEGUN.fullmatch(line.rstrip("\n")):
                thread, name, arguments, returned = found.groups()
                if returned is None:
                    open_calls[thread] = (name, arguments, number)
                elif int(returned) >= 0:
                    calls.append(Call(name, arguments, number, number))
            elif found := _RESUMED.fullmatch(line.rstrip("\n")):
                begun = open_calls.pop(found[1], None)
                if begun is not None and int(found[2]) >= 0:
                    calls.append(Call(*begun, number))
    return sorted(calls, key=lambda call: call.end), number + 1


class Write(NamedTuple):
    at: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        if len(content) < self.at:
            content.extend(bytes(self.at - len(content)))
        content[self.at : self.at + len(self.data)] = self.data

    def pieces(self) -> Iterator[Write]:
        for start in range(0, len(self.data), SECTOR):
            yield Write(self.at + start, self.data[start : start + SECTOR])


class Cut(NamedTuple):
    length: int

    def apply(self, content: bytearray) -> None:
        del content[self.length :]
        content.extend(bytes(self.length - len(content)))

    def pieces(self) -> Iterator[Cut]:
        yield self


class OnDisk:
    """One file: what has been done to it, and how much of that a power cut leaves."""

    def __init__(self, name: str) -> None:
        self.home = name
        self.name: str | None = name
        self.safe_name: str | None = None
        self.changes: list[Write | Cut] = []
        self.ends: list[int] = []
        self.safe = 0
        """How many of the changes are durable."""

    def content(self, way: str, chance: random.Random) -> bytes:
        content = bytearray()
        share = chance.choice((0.2, 0.5, 0.9))
        for number, change in enumerate(self.changes):
            if number < self.safe or way == "all":
                change.apply(content)
            elif way == "some":
                for piece in change.pieces():
                    if chance.random() < share:
                        piece.apply(content)
        return bytes(content)

    def found_as(self, way: str, chance: random.Random) -> str | None:
        if way == "some":
            way = chance.choice(("nothing", "all"))
        return self.name if way == "all" else self.safe_name


def disk(calls: list[Call], folder: Path, until: int) -> tuple[list[OnDisk], dict[int, str]]:
    """The files below the folder after so many lines of the record, and what had been acknowledged by then."""
    files: dict[str, OnDisk] = {}
    every: list[OnDisk] = []

    def at(path: str) -> OnDisk:
        if path not in files:
            files[path] = OnDisk(path)
            every.append(files[path])
        return files[path]

    promised: dict[int, str] = {}
    home = str(folder)
    for call in calls:
        if call.begin >= until:
            continue
        if call.name in ("rename", "unlink"):
            if call.end < until:
                names = [unhex(part) for part in call.arguments.split(", ")]
                moved = files.pop(names[0], None)
                if moved is not None:
                    moved.name = names[1] if call.name == "rename" else None
                    if moved.name is not None:
                        files[moved.name] = moved
            continue
        if call.name in ("open", "openat"):
            path = unhex(next(part for part in call.arguments.split(", ") if part.startswith('"')))
            if call.end < until and "O_CREAT" in call.arguments and path.startswith(home):
                at(path)
            continue
        target = _FILE.fullmatch(call.arguments)
        path = unhex(target[1]) if target else ""
        if not target or not path.startswith(home):
            continue
        if path.endswith(".acks"):
            # Promised as soon as it is being said.
            promised |= said(unhex(target[2].split(", ")[0]))
        elif call.end < until:
            if call.name in ("fsync", "fdatasync"):
                sync(call, path, every)
            else:
                change(call, target[2], at(path))
    return every, promised


def sync(call: Call, path: str, files: list[OnDisk]) -> None:
    for file in files:
        if file.name == path:
            file.safe_name = file.name
            file.safe = sum(end <= call.begin for end in file.ends)
        elif os.path.dirname(file.home) == path:
            file.safe_name = file.name


def change(call: Call, arguments: str, file: OnDisk) -> None:
    parts = arguments.split(", ")
    file.changes.append(Cut(int(parts[0])) if call.name == "ftruncate" else Write(int(parts[2]), data_of(parts[0])))
    file.ends.append(call.end)


def unhex(text: str) -> str:
    return data_of(text).decode()


def data_of(text: str) -> bytes:
    return bytes.fromhex(text.strip('"').replace("\\x", ""))


def said(text: str) -> dict[int, str]:
    lines = [line.split(" ", 1) for line in text.splitlines() if line[:1].isdigit()]
    return {int(number): ident for number, ident in lines}


class Outage(NamedTuple):
    durability: str
    cuts: int
    promised: int
    """The most that had been acknowledged before a cut."""
    lost: dict[str, int]
    """For each way, the most acknowledged decisions that one cut has cost."""
    changes: int
    syncs: int


def play(folder: Path, seed: int, *, durability: str = "strict", cuts: int = 8, count: int = 150) -> Outage:
    """Cut the power so many times, in each of the ways, and open what is left."""
    chance = random.Random(seed)
    run = folder / "run"
    run.mkdir()
    calls, lines = watch(run, durability, count, threads=4)
    first = next(call.begin for call in calls if names_of(call).endswith("turnout.db"))
    lost: Counter[str] = Counter()
    most = 0
    for cut in range(cuts):
        until = chance.randrange(first, lines + 1) if cut else lines
        files, promised = disk(calls, run, until)
        most = max(most, len(promised))
        for way in WAYS:
            whole = durability == "strict" or way == "all"
            moment = f"seed {seed}, line {until}"
            missing = open_after(files, way, chance, folder / f"{cut}-{way}", promised, moment, whole=whole)
            if missing and whole:
                raise RoundFailed(
                    f"{missing} acknowledged decisions are gone after a power cut ({way}, seed {seed}, {until})"
                )
            lost[way] = max(lost[way], missing)
    syncs = sum(call.name in ("fsync", "fdatasync") for call in calls)
    return Outage(durability, cuts * len(WAYS), most, dict(lost), len(calls) - syncs, syncs)


def names_of(call: Call) -> str:
    target = _FILE.fullmatch(call.arguments)
    return unhex(target[1]) if target else ""


def open_after(
    files: list[OnDisk],
    way: str,
    chance: random.Random,
    home: Path,
    promised: dict[int, str],
    moment: str,
    *,
    whole: bool,
) -> int:
    """Put the disk together, open the store on it, and hold it against what was promised; how much is missing.

    What must be `whole` has all its parts and its outcome; else these may be lost as the decision itself may.
    """
    (home / "turnout.db-spool").mkdir(parents=True)
    for file in files:
        name = file.found_as(way, chance)
        # The index of the write-ahead log is made anew from it.
        if name is not None and not name.endswith("-shm"):
            below = Path(name).relative_to(Path(name).parents[1] if "-spool" in name else Path(name).parent)
            (home / below).write_bytes(file.content(way, chance))
    with open_store(str(home / "turnout.db")) as store:
        if not store.flush(rounds.PATIENCE_S):
            raise RoundFailed(f"what is left is not taken ({way}, {moment}): {store.counts()}")
        there = {ident for (ident,) in store.backend.read("select id from decisions", {})}
        kept = {number: ident for number, ident in promised.items() if ident in there}
        torn = store.counts().torn > 0
        held_to = {"w0": kept if whole else {}}
        rounds.check(store.backend.read, held_to, f"power cut, {way}, {moment}", 0, torn=torn or not whole)
        problems = list(store.backend.problems())
    if problems:
        raise RoundFailed(f"the database is damaged ({way}, {moment}): {problems[:1]}")
    shutil.rmtree(home)
    return len(promised) - len(kept)
