"""Streaming of files too big for memory, and progress bars on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path as File
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from turnout.core.errors import QueryError

from .draw.screen import console
from .option import STDIN, check_least

if TYPE_CHECKING:
    from turnout.runtime.rows import RowTally


M = TypeVar("M", bound="RowTally")


def workers_for(asked: int | None) -> int:
    """The number of processes: as asked, else one for each core this process may use, which may be few in a
    container."""
    check_least("--workers", asked)
    return asked or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@contextlib.contextmanager
def reading(source: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The open file and, if known, its size in bytes."""
    if source == STDIN:
        yield sys.stdin.buffer, None
        return
    with File(source).open("rb") as file:
        yield file, os.fstat(file.fileno()).st_size or None


@contextlib.contextmanager
def writing(out: str) -> Iterator[BinaryIO]:
    """Open the output file. It appears complete or not at all: it is written under another name and renamed."""
    if out == STDIN:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = File(os.path.realpath(out))
    if not target.parent.is_dir():
        raise QueryError(f"{out}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe: nothing to rename over
            yield file
    else:
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with part.open("xb") as file:
                yield file
            part.replace(target)
        except OSError as error:
            if error.filename != os.fspath(part):
                raise
            raise OSError(error.errno, error.strerror, out) from None  # with the name the user typed
        finally:
            with contextlib.suppress(OSError):
                part.unlink()


def watched(parts: Iterator[M], size: int | None) -> Iterator[M]:
    """The parts, with a progress bar on stderr if that is a terminal."""
    rows = read = 0
    with _bar("{task.fields[noun]} rows") as update:
        for part in parts:
            rows, read = rows + part.rows, read + part.size
            update(read, size, f"{rows:,}")
            yield part


@contextlib.contextmanager
def progressing(noun: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar, on a terminal, for work that reports how much of how much is done."""
    with _bar("{task.completed:,.0f} {task.fields[noun]}") as update:
        yield lambda done, total: update(done, total or None, noun)


@contextlib.contextmanager
def _bar(text: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """A function that updates a bar on stderr, if that is a terminal: the amount done, the total, and the noun."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(BarColumn(), TextColumn(text), TimeRemainingColumn(), console=screen, transient=True) as progress:
        task = progress.add_task("", total=None, noun="")
        yield lambda done, total, noun: progress.update(task, completed=done, total=total, noun=noun)


@contextlib.contextmanager
def phases() -> Iterator[Callable[[str, float], None]]:
    """Progress bars on a terminal, one for each phase of the work."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda *_: None
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<34}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def report(phase: str, done: float) -> None:
            if phase not in tasks:
                for task in tasks.values():
                    progress.update(task, completed=1.0)
                tasks[phase] = progress.add_task(phase, total=1.0)
            progress.update(tasks[phase], completed=done)

        yield report
