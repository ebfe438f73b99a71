"""A server with its console, without keys unless a test makes one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clean_environment import clear_environment
from serving import RunningServer, serving
from turnout.console.console import Console

OWN = {"sec-fetch-site": "same-origin"}
"""What a browser says of a request that a page of the same server sends."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    clear_environment(monkeypatch, tmp_path)
    with serving(tmp_path, "[server]\nlag_s = 60.0\n", pages=Console) as served:
        yield served
