"""The student that comes with `assist`: made of its seeds, small, and told apart from what it is judged by."""

import json
from pathlib import Path

import pytest

import turnout
from turnout import Query
from turnout.config.champion import SHIPPED, shipped_model
from turnout.config.load import shipped_file
from turnout.layers.student_model import read_student
from turnout.learn.dataset import hash_examples, read_seeds, row_key
from turnout.learn.train import read_record

MOST_BYTES = 5 * 1024 * 1024


@pytest.fixture(scope="module")
def folder() -> Path:
    found = shipped_model("assist", "student")
    assert found is not None
    return found


def test_it_is_small_and_whole(folder: Path) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) < MOST_BYTES
    manifest = read_student(folder).manifest
    assert manifest.embedder is None, "it needs nothing but NumPy"
    assert manifest.metrics["accuracy"] >= 0.9
    assert (folder / "card.html").is_file()


def test_it_was_made_of_the_seeds_that_ship(folder: Path) -> None:
    """Whoever changes the seeds trains again: turnout train -p assist --embedder none --hold-out 10% --out FOLDER."""
    noted = read_record("assist", "student", SHIPPED)
    assert noted is not None
    rows = {row_key(row): row for row in read_seeds("assist").rows}
    learnt = [rows[key] for key in noted.learnt]
    assert hash_examples(learnt) == read_student(folder).manifest.data_hash
    assert 0.85 < len(learnt) / len(rows) < 0.95, "the rest was held out, and may judge it"


def test_most_shipped_questions_need_no_language_model() -> None:
    router = turnout.load("assist", config="")
    file = shipped_file("assist").with_name("cases") / "assist-questions.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    decisions = [router.route_sync(row["text"]) for row in rows]
    left = [decision for decision in decisions if decision.by == "fallback"]
    assert len(left) / len(rows) < 0.10
    decided = [(one.route, row["label"]) for one, row in zip(decisions, rows, strict=True) if one.by != "fallback"]
    assert sum(route == label for route, label in decided) / len(decided) > 0.97


@pytest.mark.parametrize("text", ["zxqv brmpf?", "오늘 날씨 어때", "привет как дела", "9812739 1231", "🙂"])
def test_what_it_cannot_know_it_does_not_claim_to(text: str) -> None:
    """However short and odd: noise, and letters it was never shown, are left to others."""
    decision = turnout.load("assist", config="").route_sync(Query(text))
    assert (decision.by, decision.outcome) == ("fallback", "Fl")
    held = decision.held
    assert held is not None
    assert held.verdict is not None
    assert held.verdict.confidence <= 0.5
