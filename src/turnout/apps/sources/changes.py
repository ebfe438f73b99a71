"""Tells what has changed since last time: other sources are asked on a schedule, and their answers compared.

A snapshot is an answer's facts (for news, its articles) as a table from names to values. Snapshots are kept on disk and
survive a restart. A small change of a number does not count: a thermometer always moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from turnout.text.file import read_bytes, reason_of, write_bytes

from .fetch import health_of
from .source import (
    Cause,
    EntityState,
    Failure,
    Health,
    HourOfWeather,
    MonitorState,
    Result,
    Source,
    SourceAnswer,
    SourceQuestion,
)
from .weather import CODES

# Snapshots kept of each source: two days of hourly ones.
KEPT = 48
# Age from which on a snapshot counts as "last time", if the question does not say since when: otherwise an answer would
# be compared with the one a moment before.
LEAST_AGE_S = 600.0
# A number has changed if it moved by more than this share; half a degree has not.
MOVED_SHARE = 0.2
FILE_BYTES = 16 * 1024 * 1024
SHOWN = 20


class Snapshot(Struct, frozen=True):
    at: datetime
    values: dict[str, str]


class FolderSnapshots:
    """Snapshots in a folder, with a file for each source; oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, source: str) -> list[Snapshot]:
        try:
            return msgspec.json.decode(read_bytes(self._file(source), FILE_BYTES), type=list[Snapshot])
        except (OSError, msgspec.MsgspecError):
            return []  # there is no file yet, or it cannot be read: start anew

    def save(self, source: str, snapshots: Sequence[Snapshot]) -> None:
        """Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_bytes(self._file(source), msgspec.json.encode(list(snapshots)))

    def _file(self, source: str) -> Path:
        return self._folder / f"{source}.json"


class WatchedSource(Struct, frozen=True):
    """A source to take snapshots of."""

    source: Source
    question: str = ""
    """The question for a snapshot; a blank one asks for everything."""


class ChangesSource(Source):
    def __init__(
        self,
        name: str,
        watched: Sequence[WatchedSource],
        kept: FolderSnapshots,
        description: str = "",
        every_s: float = 3600.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.name = name
        self.description = description or "what has changed since the user last looked"
        self.every_s = every_s
        """Time between snapshots."""
        self._watched = tuple(watched)
        self._kept = kept
        self._now = now
        self._writing = asyncio.Lock()

    async def ask(self, question: SourceQuestion) -> Result:
        if not self._watched:
            return self._unwatching()
        taken = await asyncio.gather(*(self._compare(one, question.since) for one in self._watched))
        failed = [one for one in taken if isinstance(one, Failure)]
        if failed and len(failed) == len(taken):
            return failed[0]
        lines = [line for one in taken if isinstance(one, list) for line in one]
        missed = [one.said for one in failed]
        first = [one.source.name for one, known in zip(self._watched, taken, strict=True) if known is None]
        if len(first) + len(failed) == len(taken):
            # "Nothing has changed" would need an earlier snapshot.
            text = f"Seen for the first time: {', '.join(first)}. What changes from now on can be told later."
            return SourceAnswer(text, note=_not_compared(missed))
        note = _not_compared([*missed, *(f"{name} was seen for the first time" for name in first)])
        if not lines:
            return SourceAnswer("Nothing has changed.", note=note)
        more = [f"And {len(lines) - SHOWN} more."] if len(lines) > SHOWN else []
        return SourceAnswer("\n".join(lines[:SHOWN] + more), note=note)

    async def check(self) -> Health:
        async def look() -> Failure | None:
            return None if self._watched else self._unwatching()

        return await health_of(look())

    def _unwatching(self) -> Failure:
        message = "no source is configured that it could watch: add one first (turnout sources list)"
        return Failure(Cause.NOT_CONFIGURED, f"{self.name}: {message}")

    async def take(self) -> None:
        """Take a snapshot of each source."""
        await asyncio.gather(*(self._take(one) for one in self._watched))

    async def keep_taking(self) -> None:
        """Take snapshots on a schedule, until cancelled."""
        while True:
            await self.take()
            await asyncio.sleep(self.every_s)

    async def _take(self, watched: WatchedSource) -> tuple[list[Snapshot], Snapshot] | Failure:
        """Take and save a snapshot of a source; returns the earlier ones, and this one."""
        result = await watched.source.ask(SourceQuestion(watched.question))
        if isinstance(result, Failure):
            return result
        values = dict(_values(result)) if isinstance(result, SourceAnswer) else {}
        snapshot = Snapshot(self._now(), values)
        name = watched.source.name
        async with self._writing:
            before = await asyncio.to_thread(self._kept.load, name)
            # Questions in quick succession must not push out yesterday's snapshots.
            if not before or (snapshot.at - before[-1].at).total_seconds() >= LEAST_AGE_S:
                try:
                    await asyncio.to_thread(self._kept.save, name, [*before, snapshot][-KEPT:])
                except OSError as error:
                    return Failure(Cause.ERROR, f"{self.name}: its snapshots cannot be written: {reason_of(error)}")
        return before, snapshot

    async def _compare(self, watched: WatchedSource, since: datetime | None) -> list[str] | Failure | None:
        """The differences as lines; None if there is no earlier snapshot."""
        taken = await self._take(watched)
        if isinstance(taken, Failure):
            return taken
        before, now = taken
        until = since or datetime.fromtimestamp(now.at.timestamp() - LEAST_AGE_S, UTC)
        earlier = [one for one in before if one.at <= until]
        # If `since` is before the first snapshot, compare with the first; else with the last one before it.
        old = earlier[-1] if earlier else before[0] if before and since is not None else None
        return list(differences(old.values, now.values)) if old is not None else None


def _not_compared(why: Sequence[str]) -> str:
    return f"Not compared: {'; '.join(why)}" if why else ""


def _values(answer: SourceAnswer) -> Iterator[tuple[str, str]]:
    for fact in answer.facts:
        match fact:
            case EntityState():
                yield fact.name, f"{fact.state}{fact.unit}"
            case MonitorState():
                yield fact.name, "up" if fact.up else "down" if fact.up is False else "paused"
            case HourOfWeather():
                chance = f", {fact.rain_probability:.0%} rain" if fact.rain_probability is not None else ""
                yield f"{fact.at:%A %d %B}", f"{CODES.get(fact.code, str(fact.code))}{chance}"
    if not answer.facts:
        for passage in answer.passages:
            yield passage.url or passage.title, passage.title


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """The differences as lines."""
    for name, value in new.items():
        if name not in old:
            yield f"New: {value if '://' in name else f'{name} ({value})'}"
        elif _has_changed(old[name], value):
            yield f"{name}: {old[name]} → {value}"
    for name in old:
        if name not in new and "://" not in name:
            yield f"Gone: {name}"


def _has_changed(old: str, new: str) -> bool:
    if old == new:
        return False
    try:
        before, after = float(old.rstrip("%°CFWkh ")), float(new.rstrip("%°CFWkh "))
    except ValueError:
        return True
    return abs(after - before) > MOVED_SHARE * max(abs(before), 1.0)
