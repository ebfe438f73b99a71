"""What a part of the benchmark hands back."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest import mock

from report import Table


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


Part = tuple[list[Table], list[Check]]
# How often it is said how far a part is.
EVERY_S = 5.0
T = TypeVar("T")


def told(what: str, items: Sequence[T]) -> Iterator[T]:
    """The items one by one; how far they are is told on stderr."""
    began = last = time.monotonic()
    for number, item in enumerate(items):
        if time.monotonic() - last >= EVERY_S:
            last = time.monotonic()
            print(f"{what}: {number:,} of {len(items):,}, {last - began:.0f} s", file=sys.stderr, flush=True)
        yield item


def tell_files(what: str) -> Callable[[int, int], None]:
    """The same for what reads files, and says itself how many it has read."""
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY_S:
            last = time.monotonic()
            print(f"{what}: {done:,} of {total:,} files", file=sys.stderr, flush=True)

    return tell


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file, split at newlines only: some texts hold other separators."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def missing(folder: Path, title: str) -> Part:
    """Data that is not there is said to be missing, and misses no target."""
    message = f"{folder} is not there; name the folder above it with --data DIR or TURNOUT_DATA"
    return [Table(title, ["skipped"], [[message]])], []


@contextlib.contextmanager
def own_home(folder: str | os.PathLike[str]) -> Iterator[None]:
    """What an assistant keeps goes into this folder."""
    with mock.patch.dict(os.environ, XDG_DATA_HOME=f"{os.fspath(folder)}/data"):
        yield
