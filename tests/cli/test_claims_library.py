"""The commands that keep the library: what they write, what they refuse, and that nothing is kept by halves."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from apps.claims.a_card import card
from turnout.apps.claims.exchange import starter_cards
from turnout.cli.commands.claims_library import backfill_types, calibrate, export_cards, import_cards, opened
from turnout.cli.option import STDIN, StoreOptions
from turnout.core.errors import TooFewExamples, TurnoutError

run = {"import": import_cards, "export": export_cards, "calibrate": calibrate, "backfill-types": backfill_types}


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "log.db")


def write(path: Path, *rows: object) -> str:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return str(path)


@pytest.mark.alike(2)
@pytest.mark.parametrize("form", ["jsonl", "claimreview"])
def test_out_and_in_again(tmp_path: Path, db: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    run["import"](starter=True, where=StoreOptions(db, ""))
    out = tmp_path / "cards"
    run["export"](str(out), form=form, where=StoreOptions(db, ""))
    other = str(tmp_path / "other.db")
    capsys.readouterr()
    run["import"](str(out), json=True, where=StoreOptions(other, ""))
    assert json.loads(capsys.readouterr().out) == {"imported": 64, "twins": {}, "cards": 64}
    with opened(StoreOptions(db, "")) as one, opened(StoreOptions(other, "")) as two:
        assert [msgspec.json.encode(each) for each in one.list()] == [msgspec.json.encode(each) for each in two.list()]


def test_a_file_with_a_mistake_is_refused_as_a_whole(tmp_path: Path, db: str) -> None:
    file = write(tmp_path / "cards.jsonl", card("new"), {"id": 7}, [1])
    with pytest.raises(TurnoutError, match=r"(?s)cards.jsonl: nothing was imported\nline 2: .*line 3: "):
        run["import"](file, where=StoreOptions(db, ""))
    with opened(StoreOptions(db, "")) as library:
        assert library.get("new") is None


def test_twins_are_named(tmp_path: Path, db: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "cards.jsonl", card("one", "Cats bark."), card("two", "cats bark"))
    run["import"](file, where=StoreOptions(db, ""))
    assert "two says the same as one" in capsys.readouterr().out


@pytest.mark.parametrize("said", [{}, {"starter": True, "file": "x"}])
def test_a_file_or_the_starter_cards(said: dict[str, object], db: str) -> None:
    with pytest.raises(TurnoutError, match="name a FILE of cards, or --starter"):
        run["import"](str(said.get("file", "")), starter=bool(said.get("starter")), where=StoreOptions(db, ""))


def test_calibrate_keeps_what_it_fits(tmp_path: Path, db: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": f"Is it so that {one.claim_text}", "card": one.id} for one in starter_cards()]
    file = write(tmp_path / "questions.jsonl", *rows)
    run["calibrate"](file, dry_run=True, json=True, where=StoreOptions(db, ""))
    told = json.loads(capsys.readouterr().out)
    assert (told["gate"]["bound"], told["gate"]["confidence"], told["questions"]) == (0.05, 0.95, 64)
    with opened(StoreOptions(db, "")) as library:
        assert library.gate().threshold != told["gate"]["threshold"]
    run["calibrate"](file, where=StoreOptions(db, ""))
    assert "find their card" in capsys.readouterr().out
    with opened(StoreOptions(db, "")) as library:
        assert library.gate().threshold == told["gate"]["threshold"]
    with pytest.raises(TooFewExamples, match="prove no bound of 1% at 95%"):
        run["calibrate"](file, bound=0.01, where=StoreOptions(db, ""))


@pytest.mark.parametrize(
    ("row", "bound", "said"),
    [
        ({"question": "x", "card": "no-such-card"}, 0.05, "there is no card 'no-such-card': import it first"),
        ({"card": "flood-worldwide"}, 0.05, "line 1: .*missing required field `question`"),
        ({"question": "x"}, 1.5, "--bound 1.5"),
    ],
)
def test_questions_that_cannot_be_used(tmp_path: Path, db: str, row: object, bound: float, said: str) -> None:
    with pytest.raises(TurnoutError, match=said):
        run["calibrate"](write(tmp_path / "questions.jsonl", row), bound=bound, where=StoreOptions(db, ""))


def test_types_are_filled_in(tmp_path: Path, db: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = card("ham", "It is morally wrong to eat ham.", extra={"claim_type_told_by_words": True})
    run["import"](write(tmp_path / "cards.jsonl", wrong), where=StoreOptions(db, ""))
    capsys.readouterr()
    run["backfill-types"](dry_run=True, json=True, where=StoreOptions(db, ""))
    told = {"ham": {"was": "scientific", "is": "ethics"}}
    assert json.loads(capsys.readouterr().out) == told
    run["backfill-types"](json=True, where=StoreOptions(db, ""))
    assert json.loads(capsys.readouterr().out) == told
    run["backfill-types"](json=True, where=StoreOptions(db, ""))
    assert json.loads(capsys.readouterr().out) == {}


def test_stdout_is_the_default(db: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run["export"](STDIN, where=StoreOptions(db, ""))
    assert len(capfdbinary.readouterr().out.splitlines()) == 64
