"""A server with scripted sources."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from apps.sources.asked import SourcesDouble, is_open
from secured_server import clean_environment
from serving import RunningServer, serving
from turnout.apps.sources import app as app_module
from turnout.testing.scripted_source import ScriptedSource

Serve = Callable[..., RunningServer]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """`serve(sources, settings)`: a server over these sources, until the test ends."""
    clean_environment(monkeypatch, tmp_path)
    with contextlib.ExitStack() as stack:

        def start(sources: Mapping[str, ScriptedSource], settings: str = "", **store: object) -> RunningServer:
            monkeypatch.setattr(app_module, "open_sources", lambda config: SourcesDouble(sources))
            monkeypatch.setattr(app_module, "judge_facts", is_open)
            return stack.enter_context(serving(tmp_path, settings, **store))

        yield start
