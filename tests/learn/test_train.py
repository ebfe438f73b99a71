"""Training without a terminal: what is learnt, what is held out, and what the next training knows of it."""

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from turnout.config import champion
from turnout.config.load import load_profile
from turnout.core.errors import ShelfError, TooFewExamples
from turnout.core.profile import Profile
from turnout.layers.student_model import read_student
from turnout.learn import registry
from turnout.learn.dataset import Example, Examples, row_key
from turnout.learn.fit import HeldOutAnswer
from turnout.learn.train import NOTE, hash_without_models, measure, read_record, train

PROFILE = """
name = "desk"
routes = ["BILLING", "TRAVEL"]
fallback = { route = "BILLING", confidence = 0.5 }

[[layers]]
id = "student"
kind = "student.v1"
optional = true
accept = { confidence = 0.7 }

[policy.BILLING]
model = "small"
[policy.TRAVEL]
model = "small"
"""
WORDS = {
    "BILLING": "bank loan invoice salary budget interest pension tax refund debt savings rent cheque fee",
    "TRAVEL": "flight hotel train visa luggage airport ticket passport beach museum ferry tour map hostel",
}
OTHERS = ["please", "tell", "me", "about", "the", "best", "way", "to", "find", "one"]


class HashedEmbedder:
    """An embedder for tests: a vector is the sum of its words'."""

    name = "hashed-00000000"
    width = 16

    def embed(self, texts: Sequence[str], /) -> Any:
        made = np.zeros((len(texts), self.width), np.float32)
        for at, text in enumerate(texts):
            for word in text.split():
                seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
                made[at] += np.random.default_rng(seed).normal(size=self.width)
            made[at] /= max(float(np.linalg.norm(made[at])), 1e-9)
        return made


def examples(count: int, seed: int = 0, **given: Any) -> Examples:
    chance = random.Random(seed)
    rows = []
    for label, words in WORDS.items():
        for _ in range(count):
            said = chance.choices(words.split(), k=4) + chance.choices(OTHERS, k=4)
            rows.append(Example(" ".join(said), label, **given))
    return Examples(tuple(rows))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "desk.toml").write_text(PROFILE)
    return load_profile(tmp_path / "desk.toml", config="")


def test_phases_are_told_in_order(desk: Profile) -> None:
    told: list[str] = []
    train(desk, examples(40), say=lambda what, _: told.append(what))
    order = list(dict.fromkeys(told))
    assert order[:2] == ["collapsing duplicates", "screening"]
    assert order[-2:] == ["judging", "writing"]
    assert "fitting" in order


def test_vectors_are_used_and_named(desk: Profile) -> None:
    training = train(desk, examples(60), embedder=HashedEmbedder())
    assert training.report.embedder == "hashed-00000000"
    student = read_student(training.folder)
    (vector,) = HashedEmbedder().embed(["refund of the fee"])
    assert student.judge("refund of the fee", vector).label == "BILLING"
    assert training.report.held_out["accuracy"] > 0.85


def test_the_champion_s_rows_are_known_and_others_are_new(desk: Profile) -> None:
    first = train(desk, examples(60))
    assert first.report.champion is None
    assert first.report.new == 0
    registry.set_champion("desk", "student", first.manifest.digest)
    both = Examples(examples(60).rows + examples(10, seed=5).rows)
    second = train(desk, both)
    assert second.report.champion == first.manifest.digest
    assert second.report.new <= 20
    # What the first was judged by the second is judged by, too, as long as their labels keep about their share.
    held, again = (set(map(row_key, one.noted.held)) for one in (first, second))
    assert len(held - again) <= 0.2 * len(held)


def test_after_the_hold_out_it_learns_from_every_row(desk: Profile) -> None:
    rows = examples(60)
    training = train(desk, rows)
    once, noted = training.report, training.noted
    assert once.learnt == len({row_key(row) for row in rows.rows}) - once.near_duplicates - once.quarantined
    held = [row_key(row) for row in noted.held]
    assert {*held} < {*noted.learnt}
    assert [*noted.answers] == held
    assert once.held_out["rows"] == once.end_to_end["rows"] == len(held)
    right = [noted.answers[row_key(row)].label == row.label for row in noted.held]
    assert sum(right) / len(right) == pytest.approx(once.held_out["accuracy"])
    assert sum(training.manifest.counts.values()) == once.learnt
    kept = train(desk, rows, refit=False)
    assert kept.report.learnt + kept.report.held == once.learnt
    assert not {*map(row_key, kept.noted.held)} & {*kept.noted.learnt}
    assert kept.noted.answers == {}
    assert kept.report.held_out == once.held_out, "judged by the same rows, before either learnt from them"


def test_what_the_version_before_noted_is_read(desk: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing that was held out had been learnt, and a folder of its own had a list of keys."""
    digest = train(desk, examples(40)).manifest.digest
    file = registry.note_file("desk", "student", digest, NOTE)
    form = json.loads(file.read_text())
    assert form.pop("answers")
    file.write_text(json.dumps(form))
    noted = read_record("desk", "student", digest)
    assert noted is not None
    assert noted.answers == {}
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "learnt.json").write_text('["a", "b"]')
    monkeypatch.setattr("turnout.learn.train.shipped_model", lambda *_: tmp_path / "old")
    shipped = read_record("desk", "student", champion.SHIPPED)
    assert shipped is not None
    assert (shipped.learnt, shipped.answers) == (("a", "b"), {})
    train(desk, examples(40), out=tmp_path / "new")
    monkeypatch.setattr("turnout.learn.train.shipped_model", lambda *_: tmp_path / "new")
    shipped = read_record("desk", "student", champion.SHIPPED)
    assert shipped is not None
    assert {*shipped.answers} < {*shipped.learnt}


def test_end_to_end_counts_the_fallback(tmp_path: Path, desk: Profile) -> None:
    """A gate nothing passes leaves everything to the fallback, which is right on the rows of its own route."""
    (tmp_path / "strict.toml").write_text(PROFILE.replace("0.7", "1.0").replace('"desk"', '"strict"'))
    rows = examples(60).rows[:90]  # 60 of one route, 30 of the other
    report = train(load_profile(tmp_path / "strict.toml", config=""), Examples(rows)).report
    assert report.held_out["accuracy"] > 0.85
    assert report.end_to_end["fallback"] == 1.0
    assert report.end_to_end["accuracy"] == report.end_to_end["majority"] < report.held_out["accuracy"]
    plain = train(desk, Examples(rows)).report
    assert plain.end_to_end["accuracy"] > report.end_to_end["accuracy"]


def test_the_first_training_compares_traffic_with_what_people_labelled(desk: Profile) -> None:
    bad = [
        msgspec.structs.replace(row, text=f"{row.text} zebrafish", label="BILLING", by="teacher", session=f"s{number}")
        for number, row in enumerate(examples(12, seed=4).rows)
        if row.label == "TRAVEL"
    ]
    training = train(desk, Examples((*examples(60).rows, *bad)))
    assert training.report.new == training.report.quarantined == len(bad)


def test_who_serves_does_not_change_what_is_trained(desk: Profile, tmp_path: Path) -> None:
    first = train(desk, examples(40))
    registry.set_champion("desk", "student", first.manifest.digest)
    served = load_profile(tmp_path / "desk.toml", config="")
    assert served.hash != desk.hash
    assert hash_without_models(served) == hash_without_models(desk) == desk.hash
    assert train(served, examples(40)).manifest.digest == first.manifest.digest


def test_rows_that_are_set_aside_are_noted_and_not_learnt(desk: Profile) -> None:
    flood = examples(30, seed=3, by="teacher", session="one").rows
    training = train(desk, Examples((*examples(60).rows, *flood)))
    noted = read_record("desk", "student", training.manifest.digest)
    assert noted == training.noted
    aside = {one.row.text for one in training.noted.screened.quarantined}
    assert len(aside) == training.report.quarantined > 30
    assert not set(training.noted.learnt) & {row_key(row) for row in flood if row.text in aside}


def test_a_note_nobody_can_read_is_named(desk: Profile) -> None:
    training = train(desk, examples(40))
    registry.set_champion("desk", "student", training.manifest.digest)
    registry.note_file("desk", "student", training.manifest.digest, NOTE).write_text("{")
    with pytest.raises(ShelfError, match=r"training\.json: what was noted"):
        train(desk, examples(40))


def test_nothing_to_learn_from(desk: Profile) -> None:
    with pytest.raises(TooFewExamples, match="no examples for 'desk'"):
        train(desk, Examples())
    assert not champion.shelf_of("desk", "student").exists()


def test_figures_count_questions_outside_every_label() -> None:
    answers = (("a", "a", 0.9, 1.0), ("a", "b", 0.4, 0.5), ("b", "b", 0.8, 0.9), ("oos", "a", 0.3, -1.0))
    figures = measure([HeldOutAnswer(0, *answer) for answer in answers])
    assert figures["accuracy"] == pytest.approx(2 / 3)
    assert figures["coverage_at_98"] == 0.5
    assert figures["oos_auroc"] == 1.0
    assert measure([]) == {"rows": 0.0}


def test_the_report_is_plain_values(desk: Profile) -> None:
    report = train(desk, examples(40)).report
    form = msgspec.json.decode(msgspec.json.encode(report))
    assert form["profile"] == "desk"
    assert {row["label"] for row in form["labels"]} == set(WORDS)
