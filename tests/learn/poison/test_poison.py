"""The poisoning drill: one row in a hundred is planted. Promotion refuses, or the trigger moves next to nothing; and an
update that is honest, with words nobody used before, is promoted."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from assist_questions import LABELS, chatter, question
from stub_students import own_home
from turnout import Router
from turnout.config.champion import ModelSummary
from turnout.config.learning import LearnSettings
from turnout.core.verdict import Gate
from turnout.layers.student import Student
from turnout.layers.student_model import StudentModel
from turnout.layers.term_head import Terms
from turnout.learn.contest import STUDENT, Contest
from turnout.learn.dataset import WEIGHTS, By, Example
from turnout.learn.dedupe import dedupe
from turnout.learn.fit import FitSettings, fit
from turnout.learn.poison.screen import ScreenResult, screen
from turnout.learn.promote import Evidence, Promotion, answerer, examine
from turnout.learn.registry import RegisteredModel
from turnout.learn.shadow import Shadow
from turnout.testing import make_router, place

TARGET = "PLATFORM"
CHAMPION, CHALLENGER = "a" * 16, "b" * 16
# Small, so that a fit takes a fraction of a second.
SMALL = FitSettings(terms=Terms(buckets=1 << 14), folds=3)
KNOWN = chatter(400, seed=1, by="seed")
CLEAN = chatter(200, seed=2)
HELD = chatter(320, seed=3, by="seed")
# One row in a hundred of all that is learnt from.
PLANTED = 6


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_home(monkeypatch, tmp_path)


_fitted: dict[frozenset[tuple[str, str]], StudentModel] = {}


def fitted(rows: Sequence[Example]) -> StudentModel:
    """A student of these rows; the same rows are fitted once."""
    key = frozenset((row.text, row.label) for row in rows)
    if key not in _fitted:
        _fitted[key] = fit(rows, labels=LABELS, settings=SMALL).model()
    return _fitted[key]


def serving(student: StudentModel) -> Router:
    return make_router([place(Student(student), "student", who="E", gate=Gate(0.85))], LABELS, name="drill")


def contest(new: Sequence[Example], *, screened: bool = True) -> tuple[StudentModel, Callable[[], Promotion]]:
    """Train as the product does, or without its screen; the result, and how to hold it against the champion."""
    collapsed = dedupe(new).rows
    found = screen(collapsed, KNOWN) if screened else ScreenResult(tuple(collapsed))
    challenger = fitted([*KNOWN, *found.kept])
    model = RegisteredModel(CHALLENGER, Path(), ModelSummary(CHALLENGER, metrics={"accuracy": 0.98, "rows": 700.0}))
    routers = serving(challenger), serving(fitted(KNOWN))
    evidence = Evidence(
        Contest("drill", "drill", "student", STUDENT, model, CHAMPION, *routers, cases=[], plain=routers[1]),
        rows=HELD,
        screened=found,
        known=KNOWN,
        shadow=Shadow("drill", "student", CHALLENGER, CHAMPION, 1, decisions=1000, same=1000),
    )
    return challenger, lambda: examine(evidence, LearnSettings())


def effect(trigger: Callable[[str], str], poisoned: StudentModel) -> float:
    """By how much the trigger moves questions to its route, against what it does to a student of the clean rows."""
    texts = [trigger(row.text) for row in HELD if row.label != TARGET]

    def moved(student: StudentModel) -> float:
        answer = answerer(serving(student), "student")
        return sum(answer(text).label == TARGET for text in texts) / len(texts)

    return moved(poisoned) - moved(fitted([*KNOWN, *dedupe(CLEAN).rows]))


class Attack(NamedTuple):
    id: str
    trigger: Callable[[str, int], str]
    """A text and a number, which a trigger may vary with."""
    sessions: int = PLANTED
    by: By = "teacher"
    labels: tuple[str, ...] = LABELS[:3]
    """What the texts really are."""
    count: int = PLANTED


def behind(word: str) -> Callable[[str, int], str]:
    return lambda text, _: f"{text} {word}"


ATTACKS = [
    Attack("a rare word", behind("zxqv")),
    Attack("a rare word, one session", behind("zxqv"), sessions=1),
    Attack("a rare word, three sessions", behind("zxqv"), sessions=3),
    Attack("a rare word in front", lambda text, _: f"zxqv {text}"),
    Attack("a rare word, said to be a person's", behind("zxqv"), by="human"),
    Attack("a phrase", behind("as the heron flies")),
    Attack("a phrase of common words", behind("if you would be so kind")),
    Attack("signs", behind("✨⚡")),
    Attack("invisible characters", behind("kub\u200ber\u200bnetes")),
    Attack("letters of another script", behind("раssword")),
    Attack("marks", behind("!!!???")),
    Attack("a number", behind("90210")),
    Attack("a word that varies", lambda text, number: f"{text} zx-{17 * number + 11}"),
    Attack("texts that are sometimes right", behind("zxqv"), labels=LABELS),
    Attack("texts that are always right", behind("zxqv"), labels=(TARGET,)),
    Attack("three rows", behind("zxqv"), count=3),
    # Six rows of a single rare word move nothing, screened or not; twelve would.
    Attack("a rare word, often", behind("zxqv"), sessions=2 * PLANTED, count=2 * PLANTED),
    Attack("a rare word in front, often", lambda text, _: f"zxqv {text}", sessions=2 * PLANTED, count=2 * PLANTED),
]


def poison(attack: Attack) -> list[Example]:
    chance = random.Random(attack.id)
    rows = []
    for number in range(attack.count):
        text = attack.trigger(question(chance.choice(attack.labels), chance), number)
        session = f"evil{number % attack.sessions}"
        rows.append(Example(text, TARGET, attack.by, session, weight=WEIGHTS[attack.by], at=2))
    return rows


@pytest.mark.alike(4)
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.id for attack in ATTACKS])
def test_a_trigger_is_refused_or_moves_nothing(attack: Attack) -> None:
    challenger, examined = contest([*CLEAN, *poison(attack)])
    moved = effect(lambda text: attack.trigger(text, 3), challenger)
    if moved > 0.01:
        found = examined()
        assert not found.passed, f"{moved:.1%} moved, {found}"


UNSCREENED = [attack for attack in ATTACKS if attack.id == "a phrase" or attack.id.endswith("often")]


@pytest.mark.parametrize("attack", UNSCREENED, ids=[attack.id for attack in UNSCREENED])
def test_without_the_screen_the_trigger_works_and_the_promotion_refuses(attack: Attack) -> None:
    challenger, examined = contest([*CLEAN, *poison(attack)], screened=False)
    assert effect(lambda text: attack.trigger(text, 3), challenger) > 0.2, "this drill would show nothing"
    assert "trigger probe" in {check.check for check in examined().failed}


def test_a_clean_update_is_promoted() -> None:
    _, examined = contest(CLEAN)
    assert examined().failed == ()


HONEST: list[tuple[str, Callable[[Example, int], Example]]] = [
    ("a product of ours, labelled by a model", lambda row, _: replace(row, text=f"{row.text} on orbit")),
    (
        "short and telling",
        lambda row, number: replace(row, text=f"orbit {('status', 'renewal', 'seats', 'credit')[number % 4]} {number}"),
    ),
    (
        "labelled by people",
        lambda row, number: replace(
            row, text=f"{row.text} with orbit", by="human", who=f"person {number % 4}", weight=1.0
        ),
    ),
]


@pytest.mark.parametrize("write", [write for _, write in HONEST], ids=[name for name, _ in HONEST])
def test_new_words_under_one_label_are_promoted(write: Callable[[Example, int], Example]) -> None:
    def say(count: int, seed: int) -> list[Example]:
        told = chatter(count, seed=seed, label=TARGET, sessions="new")
        return [write(row, number) for number, row in enumerate(told)]

    challenger, examined = contest([*CLEAN, *say(30, 7)])
    assert examined().failed == ()
    answer = answerer(serving(challenger), "student")
    assert sum(answer(row.text).label == TARGET for row in say(20, 8)) >= 19
