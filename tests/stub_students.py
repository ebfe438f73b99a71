"""Students that need no training, for tests of what is done with them: a word in the text decides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turnout import Router, Verdict
from turnout.core.query import Query, Reading
from turnout.core.verdict import Gate
from turnout.store import Store
from turnout.testing import make_router, place

ROUTES = ("docs", "code", "chat")
GATE = 0.85


class Pupil:
    """Says the route of the first of its words that is in the text; of none of them, the default."""

    def __init__(self, words: Mapping[str, str], default: str | None = None, sure: float = 0.95) -> None:
        self.words, self.default, self.sure = dict(words), default, sure

    def __call__(self, reading: Reading) -> Verdict | None:
        text = reading.folded.split()
        for word, route in self.words.items():
            if word in text:
                return Verdict((route,), self.sure, calibrated=True)
        return Verdict((self.default,), self.sure, calibrated=True) if self.default is not None else None


def with_pupil(pupil: Pupil, **fields: Any) -> Router:
    """A router whose layer `student` is this one."""
    return make_router([place(pupil, "student", who="E", gate=Gate(GATE))], ROUTES, name="mine", **fields)


KNOWN = {"manual": "docs", "function": "code", "thanks": "chat"}


def own_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A shelf, a log and settings of the test's own."""
    for name in ("TURNOUT_CONFIG", "TURNOUT_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))


def made(folder: Path, digest: str, **more: object) -> Path:
    """What a training leaves, as far as the shelf looks at it."""
    folder = folder / f"made-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"digest": digest, **more}))
    (folder / "weights.npz").write_bytes(b"weights")
    return folder


def log(store: Store, router: Router, *texts: str, session: str | None = None, **query: Any) -> list[str]:
    """Decide and write down; the ids."""
    found = []
    for text in texts:
        decision = router.route_sync(Query(text, session=session, **query))
        store.record(decision)
        found.append(decision.id)
    return found
