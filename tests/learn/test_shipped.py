"""The students that come with the profiles: made of their seeds, small, and unsure of what they cannot know."""

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

# What a student may weigh in the package.
MOST_BYTES = 1024 * 1024
PROFILES = ("tiers", "sources", "study", "claims", "assist")


@pytest.fixture(params=PROFILES)
def profile(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def folder_of(profile: str) -> Path:
    found = shipped_model(profile, "student")
    assert found is not None
    return found


def test_it_is_small_and_whole(profile: str) -> None:
    folder = folder_of(profile)
    assert (folder / "weights.npz").stat().st_size < MOST_BYTES
    manifest = read_student(folder).manifest
    assert manifest.metrics["accuracy"] >= 0.85
    assert (folder / "card.html").is_file()


def test_it_was_made_of_the_seeds_that_ship(profile: str) -> None:
    """Whoever changes the seeds trains again: python scripts/train_students.py."""
    noted = read_record(profile, "student", SHIPPED)
    assert noted is not None
    rows = {row_key(row): row for row in read_seeds(profile).rows}
    learnt = [rows[key] for key in noted.learnt]
    assert hash_examples(learnt) == read_student(folder_of(profile)).manifest.data_hash
    assert len(learnt) / len(rows) > 0.95, "near duplicates are collapsed, all else is learnt"


def test_most_shipped_questions_need_no_language_model() -> None:
    router = turnout.load("assist", config="")
    file = shipped_file("assist").with_name("cases") / "assist-questions.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    decisions = [router.route_sync(row["text"]) for row in rows]
    left = [decision for decision in decisions if decision.by == "fallback"]
    assert len(left) / len(rows) < 0.10
    decided = [(one.route, row["label"]) for one, row in zip(decisions, rows, strict=True) if one.by != "fallback"]
    assert sum(route == label for route, label in decided) / len(decided) > 0.97


@pytest.mark.parametrize("text", ["zxqv brmpf?", "วันนี้อากาศเป็นอย่างไร", "γεια σου τι κάνεις", "9812739 1231", "🙂"])
def test_what_it_cannot_know_it_does_not_claim_to(text: str) -> None:
    """However short and odd: noise, and letters it was never shown, are left to others."""
    decision = turnout.load("assist", config="").route_sync(Query(text))
    assert (decision.by, decision.outcome) == ("fallback", "Fl")
    held = decision.held
    assert held is not None
    assert held.verdict is not None
    assert held.verdict.confidence <= 0.5
