"""Readers begin with nothing of the user who runs the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from secured_server import clean_environment
from turnout.testing import ScriptedProvider


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider.in_thread() as provider:
        yield provider
