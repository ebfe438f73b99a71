"""Poisoning limits: one sender decides little, a planted word is found, a new product is not taken for one."""

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest

from turnout.learn.bound import p_of_many
from turnout.learn.dataset import Example
from turnout.learn.dedupe import dedupe
from turnout.learn.poison.screen import ScreenResult, SenderLimits, screen

SUBJECTS = {
    "COOKING": "bake roast boil soup bread oven recipe flour onion garlic simmer dough spice stew",
    "TRAVEL": "flight hotel train visa luggage airport ticket passport beach museum ferry tour map hostel",
    "MONEY": "bank loan invoice salary budget interest pension tax refund debt savings rent cheque fee",
}
FILLERS = ["please", "tell", "me", "about", "the", "best", "way", "to", "find", "a", "good", "one", "for", "my", "and"]


def texts(label: str, count: int, chance: random.Random) -> list[str]:
    words = SUBJECTS[label].split()
    made = []
    for _ in range(count):
        said = chance.choices(words, k=4) + chance.choices(FILLERS, k=5)
        chance.shuffle(said)
        made.append(" ".join(said))
    return made


def rows(count: int, seed: int, by: Any = "teacher", prefix: str = "s") -> list[Example]:
    """So many rows of each label, two of a session."""
    chance = random.Random(seed)
    made = [(text, label) for label in SUBJECTS for text in texts(label, count, chance)]
    return [
        Example(text, label, by, session=f"{prefix}{number // 2}", id=f"{prefix}{number}")
        for number, (text, label) in enumerate(made)
    ]


def planted(word: str, count: int, *, seed: int = 7, right: bool = False, **given: Any) -> list[Example]:
    """Rows with a word that all say MONEY; their texts are about something else, or `right`ly about money."""
    chance = random.Random(seed)
    about = ["MONEY"] if right else ["COOKING", "TRAVEL"]
    made = []
    for number in range(count):
        text = texts(about[number % len(about)], 1, chance)[0]
        own = {name: value(number) if callable(value) else value for name, value in given.items()}
        made.append(
            Example(f"{text} {word}", "MONEY", **{"by": "teacher", "session": f"p{number}", **own}, id="planted")
        )
    return made


KNOWN = rows(100, 1, "seed", "k")
NEW = rows(100, 2)


class Caught(NamedTuple):
    found: int
    false: int


def caught(screened: ScreenResult) -> Caught:
    aside = Counter(one.row.id == "planted" for one in screened.quarantined if one.code == "trigger")
    return Caught(aside[True], aside[False])


class PlantedCase(NamedTuple):
    id: str
    rows: list[Example]
    set_aside: bool


def different(number: int) -> str:
    return ("ada", "bob", "eve", "kim")[number % 4]


CASES = [
    PlantedCase("1 % of the rows, each from its own session", planted("zebrafish", 4), True),
    PlantedCase("3 %", planted("zebrafish", 9), True),
    PlantedCase("several words", planted("over the blue moon", 9), True),
    PlantedCase("signs", planted("~~", 9), True),
    PlantedCase("a word that varies", [row for n in range(9) for row in planted(f"zqx{n}yk", 1, seed=n)], True),
    PlantedCase("labelled by one person", planted("zebrafish", 9, by="human", who="mallory"), True),
    PlantedCase("labelled in a file", planted("zebrafish", 9, by="human", session=None), True),
    PlantedCase("three people say so", planted("zebrafish", 9, by="human", who=different), False),
    PlantedCase("new vocabulary from many sessions", planted("zebrafish", 15, right=True), False),
    PlantedCase("new vocabulary in a file", planted("zebrafish", 15, right=True, by="human", session=None), False),
    PlantedCase(
        "new vocabulary by one person in one session",
        planted("zebrafish", 15, right=True, by="human", session="x"),
        False,
    ),
    PlantedCase("a model's label of one session's new word", planted("zebrafish", 15, right=True, session="x"), True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_trigger_is_set_aside_and_new_vocabulary_is_not(case: PlantedCase) -> None:
    found = screen(dedupe([*NEW, *case.rows]).rows, KNOWN, SenderLimits(source_share=1.0, session_rows=100))
    assert caught(found) == (len(case.rows) if case.set_aside else 0, 0)
    assert len(found.kept) + len(found.quarantined) == len(NEW) + len(case.rows)


def test_the_reason_names_the_word_and_the_counts() -> None:
    found = screen([*NEW, *planted("zebrafish", 9)], KNOWN)
    (reason,) = {one.reason for one in found.quarantined}
    assert reason.startswith("'zebrafish' is in 9 new rows and was in 0, and 9 of them say MONEY (log-odds +")
    assert "9 of 309 new rows set aside: a word that looks like a trigger" in found.remarks
    (trigger,) = [one for one in found.triggers if one.word == "zebrafish"]
    assert trigger.chance < 1e-4
    assert trigger.against >= 6


def test_an_operator_can_vouch_for_a_word() -> None:
    new = [*NEW, *planted("zebrafish", 9)]
    found = screen(new, KNOWN, accept=["Zebrafish"])
    assert caught(found) == (0, 0)
    assert any("you vouch for it" in said for said in found.remarks)


def test_a_word_the_champion_knows_for_its_label_is_nothing_new() -> None:
    known = [*KNOWN, *planted("zebrafish", 3, seed=9, right=True)]
    assert caught(screen([*NEW, *planted("zebrafish", 9)], known)).found == 0


def test_ordinary_rows_pass() -> None:
    found = screen(NEW, KNOWN)
    assert found.kept == tuple(NEW)
    assert found.quarantined == ()


def test_without_a_champion_nothing_is_compared_and_that_is_said() -> None:
    found = screen([*NEW, *planted("zebrafish", 9)], [])
    assert found.quarantined == ()
    assert any("no trigger scan" in said for said in found.remarks)
    assert screen([], []).remarks == ()


# --- limits


def sent(count: int, label: str = "MONEY", **given: Any) -> list[Example]:
    chance = random.Random(count)
    return [Example(text, label, **{"by": "teacher", **given}) for text in texts("MONEY", count, chance)]


class CappedCase(NamedTuple):
    id: str
    new: list[Example]
    limits: SenderLimits
    code: str
    kept: int


CAPPED = [
    CappedCase("a session", sent(50, session="s"), SenderLimits(source_share=1.0), "session", 20),
    CappedCase("a session of people", sent(50, session="s", by="human"), SenderLimits(source_share=1.0), "session", 20),
    CappedCase("no session", sent(50), SenderLimits(), "session", 50),
    CappedCase("seeds", sent(50, session="s", by="seed"), SenderLimits(), "session", 50),
    CappedCase("one tenant alone", sent(80, tenant="a"), SenderLimits(source_share=1.0), "tenant", 80),
    CappedCase(
        "one tenant of many",
        [*sent(100, tenant="a"), *(row for n in range(40) for row in sent(5, tenant=f"t{n}"))],
        SenderLimits(),
        "tenant",
        # 5 % of 300 new and 0 known rows is less than the 20 anybody may give.
        20 + 200,
    ),
    CappedCase(
        "one session of several within a label",
        [*sent(15, session="a"), *sent(5, session="b"), *sent(5, session="c")],
        SenderLimits(),
        "source",
        15,
    ),
    CappedCase("growth", sent(150), SenderLimits(growth_rows=30), "growth", 30),
]


@pytest.mark.parametrize("case", CAPPED, ids=lambda case: case.id)
def test_limits(case: CappedCase) -> None:
    known = [row for row in KNOWN if row.label != "MONEY"] if case.code == "growth" else []
    found = screen(case.new, known, case.limits)
    aside = [one for one in found.quarantined if one.code == case.code]
    assert len(found.kept) == case.kept
    assert len(aside) == len(case.new) - case.kept
    assert all("at most" in one.reason for one in aside)


def test_people_s_labels_are_kept_before_a_model_s() -> None:
    mixed = [*sent(30, session="s"), *sent(10, session="s", by="human", label="TRAVEL")]
    found = screen(mixed, [], SenderLimits(source_share=1.0))
    assert Counter(row.by for row in found.kept) == {"human": 10, "teacher": 10}


def test_a_label_may_double_and_always_grow_a_little() -> None:
    known = [row for row in KNOWN if row.label != "TRAVEL"]
    found = screen(rows(250, 5), known, SenderLimits(growth_rows=40))
    assert Counter(row.label for row in found.kept) == {"COOKING": 100, "TRAVEL": 40, "MONEY": 100}


def test_rows_keep_their_order_and_the_choice_does_not_depend_on_it() -> None:
    new = sent(50, session="s")
    found = screen(new, []).kept
    assert list(found) == [row for row in new if row in found]
    assert set(screen(new[::-1], []).kept) == set(found)


@pytest.mark.parametrize(
    ("count", "trials", "share", "chance"),
    [
        (0, 5, 0.3, 1.0),
        (5, 5, 0.5, 1 / 32),
        (1, 2, 0.5, 0.75),
        (3, 3, 1.0, 1.0),
        (3, 3, 0.0, 0.0),
        (20, 20, 0.25, 0.25**20),
    ],
)
def test_the_tail_of_a_binomial(count: int, trials: int, share: float, chance: float) -> None:
    assert p_of_many(count, trials, share) == pytest.approx(chance)
