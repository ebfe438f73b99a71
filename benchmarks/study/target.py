"""What a part of the benchmark hands back."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from report import Table


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


Part = tuple[list[Table], list[Check]]


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
