"""Drift: beyond chance and large enough, and neither alone."""

import random
from math import comb
from pathlib import Path

import pytest

from stub_students import KNOWN, Pupil, log, own_home, with_pupil
from turnout.learn.drift import (
    LEAST,
    ChampionAnswer,
    Measure,
    TrafficRow,
    compare,
    psi,
    window,
)
from turnout.store import TimeSpan, open_store

WORDS = [f"word{number}" for number in range(60)]


def traffic(
    count: int,
    *,
    seed: int,
    docs: float = 0.5,
    llm: float = 0.1,
    wrong: float | None = None,
    words: list[str] = WORDS,
    sure: float = 0.9,
) -> list[TrafficRow]:
    chance = random.Random(seed)
    return [
        TrafficRow(
            " ".join(chance.choices(words, k=6)),
            "docs" if chance.random() < docs else "code",
            "llm" if chance.random() < llm else "student",
            min(1.0, max(0.0, chance.gauss(sure, 0.05))),
            None if wrong is None else chance.random() < wrong,
        )
        for _ in range(count)
    ]


BEFORE = traffic(1000, seed=1, wrong=0.05)
CASES = [
    ("route mix", traffic(1000, seed=2, wrong=0.05, docs=0.2)),
    ("layer shares", traffic(1000, seed=2, wrong=0.05, llm=0.4)),
    ("confidence", traffic(1000, seed=2, wrong=0.05, sure=0.8)),
    ("unseen words", traffic(1000, seed=2, wrong=0.05, words=[*WORDS, "new", "newer"])),
    ("corrections", traffic(1000, seed=2, wrong=0.25)),
]


@pytest.mark.parametrize(("name", "recent"), CASES, ids=[name for name, _ in CASES])
def test_each_change_is_found_and_named_alone(name: str, recent: list[TrafficRow]) -> None:
    found = compare(BEFORE, recent)
    assert found.drifted == (name,)
    (measure,) = [one for one in found.measures if one.drifted]
    assert measure.p is not None
    assert measure.p <= 0.01
    assert measure.effect is not None
    assert measure.limit is not None
    assert measure.effect >= measure.limit
    assert "before" in measure.said


def test_the_same_traffic_has_not_drifted_in_hundreds_of_looks() -> None:
    called = [compare(traffic(300, seed=number), traffic(300, seed=-number - 1)).drifted for number in range(60)]
    assert sum(map(bool, called)) <= 2, called


def test_a_small_change_in_much_traffic_is_beyond_chance_and_still_no_drift() -> None:
    found = compare(traffic(20_000, seed=1, docs=0.50), traffic(20_000, seed=2, docs=0.53))
    mix = next(one for one in found.measures if one.name == "route mix")
    assert mix.p is not None
    assert mix.p < 0.001
    assert not mix.drifted


def test_a_large_change_in_little_traffic_may_be_chance() -> None:
    found = compare(traffic(60, seed=1, wrong=0.05)[:60], traffic(60, seed=4, wrong=0.12))
    assert "corrections" not in found.drifted


def test_fewer_corrections_are_no_bad_news() -> None:
    assert compare(traffic(1000, seed=1, wrong=0.3), traffic(1000, seed=2, wrong=0.05)).drifted == ()


def test_too_little_to_tell() -> None:
    found = compare(BEFORE, BEFORE[: LEAST - 1])
    assert not found.enough
    assert found.measures == ()


def test_one_model_judges_both_windows() -> None:
    asked = []

    def judge(text: str) -> ChampionAnswer:
        asked.append(text)
        strange = "new" in text.split()
        return ChampionAnswer(0.5 if strange else 0.9, -3.0 if strange else float(len(text) % 7))

    recent = traffic(1000, seed=2, words=WORDS + ["new"] * 3)
    found = compare(traffic(1000, seed=1), recent, judge=judge, judged_by="abc")
    assert {"confidence", "unknown questions", "unseen words"} == set(found.drifted)
    assert len(asked) == 2000
    assert found.judged_by == "abc"


def test_text_that_was_not_kept_leaves_what_needs_none() -> None:
    before, recent = ([one._replace(text=None) for one in traffic(200, seed=seed)] for seed in (1, 2))
    found = compare(before, recent, judge=lambda _: ChampionAnswer(0.9, 1.0))
    words = next(one for one in found.measures if one.name == "unseen words")
    assert words.p is None
    assert not words.drifted
    assert found.drifted == ()


def test_psi() -> None:
    assert psi([0.5, 0.5], [0.5, 0.5]) == 0
    assert psi([0.5, 0.5], [0.4, 0.6]) == pytest.approx(0.0405, abs=1e-3)
    assert psi([0.5, 0.5, 0.0], [0.4, 0.5, 0.1]) > 0.5


def test_a_window_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_home(monkeypatch, tmp_path)
    with open_store(str(tmp_path / "log.db")) as store:
        first, *_ = log(store, with_pupil(Pupil(KNOWN)), "the manual", "a function", "else")
        records = store.records()
        records.judge(first, "wrong", should_be="code", by="ana")
        found = window(records, "mine", TimeSpan())
        assert [(one.text, one.route, one.by, one.corrected) for one in found] == [
            ("the manual", "docs", "student", True),
            ("a function", "code", "student", None),
            ("else", "docs", "fallback", None),
        ]
        assert len(window(records, "mine", TimeSpan(), most=2)) == 2
        assert window(records, "mine", TimeSpan(0, 1)) == []


def test_the_tests_are_the_textbooks() -> None:
    def rows(route: str, count: int, corrected: bool | None = None, sure: float = 0.9) -> list[TrafficRow]:
        return [TrafficRow(None, route, "student", sure, corrected)] * count

    def measure(before: list[TrafficRow], recent: list[TrafficRow], name: str) -> Measure:
        return next(one for one in compare(before, recent, alpha=1.0).measures if one.name == name)

    # chi-square of 2.02 with one degree of freedom, times the four measures that could be tested.
    mix = measure(rows("docs", 50) + rows("code", 50), rows("docs", 60) + rows("code", 40), "route mix")
    assert mix.p == pytest.approx(3 * 0.1556, abs=3e-3)
    # Fisher: of 100 corrections, all 50 of the recent ones by chance.
    told = measure(rows("docs", 50, False), rows("docs", 50, True), "corrections")
    assert told.p == pytest.approx(4 / comb(100, 50))
    # The largest distance of two samples that do not overlap is everything.
    assert measure(rows("docs", 50, sure=0.1), rows("docs", 50, sure=0.9), "confidence").effect == 1.0
    same = measure(rows("docs", 50), rows("docs", 50), "confidence")
    assert (same.effect, same.p) == (0.0, 1.0)
