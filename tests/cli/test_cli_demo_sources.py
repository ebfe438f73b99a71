"""`make demo-sources`: every question is answered as its line says, fast, and nothing of the user's is touched."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import demo_sources
from turnout.cli.app import guarded

# What `make demo-sources` may take.
MOST_S = 25.0

SEEN = (
    "Berlin, today: clear",
    "Berlin, tomorrow: light rain",
    "Down: Backup.",
    "It is the case: the garage door is open.",
    "Not in this answer: kiwix cannot be reached.",
    "Nothing was found: ha took too long.",
)


def test_six_questions(tmp_path: Path) -> None:
    """A provider's key is no reason to ask a provider."""
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": f"{tmp_path}/data", "XDG_CONFIG_HOME": f"{tmp_path}/config"}
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-W", "error", demo_sources.__file__],
        capture_output=True,
        check=False,
        env={**os.environ, **home, "ANTHROPIC_API_KEY": "sk-none", "COLUMNS": "120"},
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert time.monotonic() - began < MOST_S
    shown = re.split(r"^\d  (?=[A-Z])", ran.stdout.decode(), flags=re.MULTILINE)[1:]
    assert len(shown) == len(demo_sources.STEPS) == len(SEEN)
    for step, seen, part in zip(demo_sources.STEPS, SEEN, shown, strict=True):
        assert part.startswith(f"{step.said}\n$ turnout ask ")
        assert seen in part
    assert "Durability" in shown[2]
    assert "A bridge is opened" in shown[3]
    assert re.search(r"kiwix  unreachable .* web ", shown[4])
    assert re.search(r"ha  timeout  2\.\d s\n2  . news", shown[5])
    assert list(tmp_path.iterdir()) == []


def test_surroundings_are_as_before() -> None:
    before = dict(os.environ)
    with demo_sources.apart() as folder:
        assert os.environ[demo_sources.TOKEN]
        assert os.environ["XDG_DATA_HOME"] == str(folder)
    assert dict(os.environ) == before
    assert not folder.exists()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "feedparser", None)
    assert guarded(demo_sources.run) == 2
    assert "pip install 'turnout[serve,sources]'" in capsys.readouterr().err
