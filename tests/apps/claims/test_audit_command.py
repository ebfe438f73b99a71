"""`turnout claims audit` without a server: the card on stdout, the agents on stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from apps.claims.auditing import CLAIM, CardFile
from turnout.apps.claims.durable_dbos import DbosWorkflows
from turnout.cli.commands.claims_audit import audit
from turnout.cli.option import StoreOptions
from turnout.core.errors import Refused
from turnout.store import open_store


class Shelf(CardFile):
    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Cards go to a file."""
    found = Shelf(tmp_path / "cards")
    module = ModuleType("turnout.apps.claims.library")
    module.open_library = lambda runtime: found  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "turnout.apps.claims.library", module)
    return found


def test_a_demonstration_says_what_it_is(
    shelf: Shelf, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert audit(CLAIM, where=StoreOptions(str(tmp_path / "t.db"), "")) == 0
    out, err = (stream.decode() for stream in capfdbinary.readouterr())
    assert CLAIM in out
    assert "demonstration: nothing was looked up" in out
    assert [line.split("  ")[0][2:] for line in err.splitlines()] == [
        "topic finder",
        "source checker",
        "adversarial checker",
        "writing agent",
        "publisher",
    ]
    assert len(shelf.lines) == 1


def test_as_json(shelf: Shelf, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert audit(CLAIM, json=True, where=StoreOptions(str(tmp_path / "t.db"), "")) == 0
    card = json.loads(capfdbinary.readouterr().out)
    assert (card["claim_text"], card["demo"]) == (CLAIM, True)
    assert card["id"] == shelf.lines[0].id


def test_on_one_machine_no_extra_is_needed(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dbos", "sqlalchemy", "trafilatura"):
        monkeypatch.setitem(sys.modules, name, None)
    assert audit(CLAIM, where=StoreOptions(str(tmp_path / "t.db"), "")) == 0
    assert [card.claim_text for card in shelf.lines] == [CLAIM]


def test_for_many_machines_it_says_which_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dbos", None)
    with open_store(str(tmp_path / "t.db"), config="") as store, pytest.raises(Refused, match=r"'turnout\[claims\]'"):
        DbosWorkflows(store, lambda order: order)
