"""How the tests run the command line: in this process where they can, as a real process where that is the point."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from turnout.cli import main
from turnout.models.provider import PROVIDERS


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """No settings, colours or widths of whoever runs the tests, and a decision log of the test's own."""
    for name in ("TURNOUT_PROFILE", "TURNOUT_CONFIG", "TURNOUT_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    # A provider's key would have commands ask its models.
    for provider in PROVIDERS.values():
        monkeypatch.delenv(provider.env or "", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", f"{tmp_path}/share")
    monkeypatch.setenv("TURNOUT_DB", f"{tmp_path}/log/turnout.db")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("route", "hello", stdin=b"…")`; without stdin, there is a terminal."""

    def ran(*argv: str, stdin: bytes | None = None) -> CommandResult:
        raw = io.BytesIO(stdin or b"")
        file = io.TextIOWrapper(raw, encoding="utf-8")
        file.isatty = lambda: stdin is None  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", file)
        code = main(argv)
        out, err = capsys.readouterr()
        return CommandResult(code, out, err)

    return ran


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """The command as users start it."""

    def ran(*argv: str | bytes, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-W", "error", "-m", "turnout.cli", *argv]
        return subprocess.run(
            command, input=stdin, capture_output=True, check=False, env={**os.environ, **env}, timeout=60
        )

    return ran
