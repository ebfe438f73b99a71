"""Promotion: every check can fail, all that failed are told at once, and nothing serves that was not compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stub_students import KNOWN, ROUTES, Pupil, made, own_home, with_pupil
from turnout import Router, Verdict
from turnout.config import champion
from turnout.config.cases import Case
from turnout.config.learning import LearnSettings
from turnout.core.contract import Rule, When
from turnout.core.errors import ChampionChanged, LearnError
from turnout.core.query import Reading
from turnout.core.verdict import Gate
from turnout.learn import registry
from turnout.learn.contest import GAIN, STUDENT, Contest, place_of
from turnout.learn.dataset import By, Example, row_key
from turnout.learn.poison.probe import new_words, probe
from turnout.learn.poison.screen import QuarantinedRow, ScreenResult
from turnout.learn.poison.trigger import Trigger
from turnout.learn.promote import GOVERNED, Evidence, Promotion, answerer, examine, let_serve
from turnout.learn.served import HeldAnswer
from turnout.learn.shadow import Shadow
from turnout.testing import make_router, place

A, B = "a" * 16, "b" * 16
SETTINGS = LearnSettings()
ROWS = [Example(f"{word} number {number}", label) for word, label in KNOWN.items() for number in range(120)]
SHADOW = Shadow("mine", "student", challenger=B, champion=A, at_ms=1, decisions=1200, same=1190)


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_home(monkeypatch, tmp_path)


def contest(**changed: Any) -> Contest:
    told = {
        "profile": "mine",
        "typed": "my profiles/mine.toml",
        "layer": "student",
        "kind": STUDENT,
        "champion": A,
        "new": with_pupil(Pupil(KNOWN)),
        "old": with_pupil(Pupil(KNOWN)),
        "cases": [Case("one", "docs", text="the manual of it")],
        "plain": with_pupil(Pupil({})),
    }
    metrics = changed.pop("metrics", {"accuracy": 0.97, "rows": 1000.0})
    challenger = registry.RegisteredModel(B, Path(), champion.ModelSummary(B, metrics=metrics))
    return Contest(challenger=challenger, **(told | changed))


def evidence(**changed: Any) -> Evidence:
    told = {"rows": ROWS, "screened": ScreenResult(kept=()), "shadow": SHADOW}
    own = {name: changed.pop(name) for name in list(changed) if name in Evidence.__struct_fields__}
    return Evidence(contest(**changed), **(told | own))


def look(**changed: Any) -> Promotion:
    return examine(evidence(**changed), SETTINGS)


def failed(found: Promotion) -> set[str]:
    return {check.check for check in found.failed}


def test_the_same_again_passes_every_check() -> None:
    found = look()
    assert found.failed == ()
    assert len(found.checks) == 10
    assert all(check.value and check.limit and check.why for check in found.checks)


class SwayedPupil(Pupil):
    """History has its way with it."""

    def __call__(self, reading: Reading) -> Verdict | None:
        return (
            Verdict(("chat",), 0.99) if reading.query.turns[:-1] or reading.query.intents else super().__call__(reading)
        )


def worse(words: dict[str, str], share: int) -> Router:
    """Wrong in one of `share` questions of each label."""
    return with_pupil(Pupil({f"{number}": "chat" for number in range(0, 120, share)} | words))


PLANTED = Trigger("zxq", "chat", (0, 1, 2), 30, 0, 5.0, 1e-9, 28, 30)
CASES: list[tuple[str, set[str], dict[str, Any]]] = [
    ("accuracy below", {"cross-validated accuracy"}, {"metrics": {"accuracy": 0.88, "rows": 1000.0}}),
    ("accuracy reached, not proven", {"cross-validated accuracy"}, {"metrics": {"accuracy": 0.92, "rows": 50.0}}),
    ("accuracy unknown", {"cross-validated accuracy"}, {"metrics": {}}),
    ("accuracy of nothing", {"cross-validated accuracy"}, {"metrics": {"accuracy": 0.0, "rows": 0.0}}),
    (
        "worse everywhere",
        {"held-out accuracy", "errors past the gate"},
        {"new": worse(KNOWN, 12)},
    ),
    ("as good, too few to tell", {"held-out accuracy", "errors past the gate"}, {"rows": ROWS[::6]}),
    (
        "a label collapses",
        {"held-out accuracy", "errors past the gate", "recall of each label"},
        {"new": with_pupil(Pupil(KNOWN | {"thanks": "docs"}))},
    ),
    ("a golden case is missed", {"golden cases"}, {"cases": [Case("one", "code", text="the manual of it")]}),
    ("a golden case is refused", {"golden cases"}, {"cases": [Case("one", "docs", text="manual", declared="docs")]}),
    ("history sways it", {"flip rate"}, {"new": with_pupil(SwayedPupil(KNOWN))}),
    ("no shadow", {"shadow decisions"}, {"shadow": None}),
    ("too little shadow", {"shadow decisions"}, {"shadow": replace(SHADOW, decisions=999)}),
    ("a shadow of another champion", {"shadow decisions"}, {"shadow": replace(SHADOW, champion="c" * 16)}),
    ("not screened", {"quarantined rows", "trigger probe"}, {"screened": None}),
    (
        "much is suspicious",
        {"quarantined rows"},
        {
            "screened": ScreenResult(
                (),
                (*[QuarantinedRow(ROWS[0], "trigger", "odd")] * 60, *[QuarantinedRow(ROWS[0], "growth", "much")] * 900),
            )
        },
    ),
    (
        "a trigger works",
        {"trigger probe"},
        {"new": with_pupil(Pupil({"zxq": "chat"} | KNOWN)), "screened": ScreenResult((), (), (PLANTED,))},
    ),
]


@pytest.mark.parametrize(("expected", "changed"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_check_can_fail_and_says_so(expected: set[str], changed: dict[str, Any]) -> None:
    assert failed(look(**changed)) == expected


def test_rules_of_the_contract_are_checked_with_the_challenger_in_place() -> None:
    rule = Rule("RC-X", when=When(route=("chat",)), never="by")
    found = look(new=with_pupil(Pupil(KNOWN), contract=(rule,)))
    assert failed(found) == {"contract"}
    assert "RC-X" in found.failed[0].why


def test_everything_that_failed_is_told_at_once() -> None:
    found = look(metrics={}, shadow=None, cases=[Case("x", "code", text="manual")])
    assert failed(found) == {"cross-validated accuracy", "shadow decisions", "golden cases"}
    assert all(name in str(found) for name in failed(found))


def test_rows_that_only_wait_are_not_suspicious() -> None:
    waiting = tuple(QuarantinedRow(ROWS[0], "growth", "too many at once") for _ in range(500))
    assert look(screened=ScreenResult((), waiting)).passed


def test_a_suspicious_word_that_does_nothing_is_no_trigger() -> None:
    assert look(screened=ScreenResult((), (), (PLANTED,))).passed


def test_a_new_word_with_an_excuse_may_mean_something() -> None:
    excused = replace(PLANTED, excuse="three people labelled it so")
    assert look(new=with_pupil(Pupil({"zxq": "chat"} | KNOWN)), screened=ScreenResult((), (), (excused,))).passed


def test_a_word_that_moves_the_champion_as_well_is_not_the_challengers_doing() -> None:
    both = with_pupil(Pupil({"zxq": "chat"} | KNOWN))
    assert look(new=both, old=both, screened=ScreenResult((), (), (PLANTED,))).passed


def test_a_model_that_any_strange_word_upsets_is_not_taken_for_a_poisoned_one() -> None:
    def says(text: str) -> str:
        return "chat" if any(word not in {"a", "b"} for word in text.split()) else "docs"

    (found,) = probe(["zxq"], ["a", "b", "a b"], says, None)
    assert found.effect == 0.0
    assert probe([], ["a"], says, None) == []
    assert probe(["zxq"], [], says, None) == []


def planted(word: str, *, text: str = "the manual says", by: By = "teacher", people: int = 0) -> list[Example]:
    """Rows whose text says one thing and whose label another."""
    return [
        Example(f"{word} {text} {number}", "chat", by, f"s{number}", who=f"p{number % people}" if people else "")
        for number in range(8)
    ]


def test_a_trigger_that_the_screen_overlooked_is_tried_all_the_same() -> None:
    new = with_pupil(Pupil({"zxq": "chat"} | KNOWN))
    found = look(new=new, screened=ScreenResult(planted("zxq")), known=ROWS)
    assert failed(found) == {"trigger probe"}
    assert "zxq" in found.failed[0].why
    assert "--accept" in found.failed[0].why
    assert look(screened=ScreenResult(planted("zxq")), known=ROWS).passed, (
        "a word that moves nothing is no trigger, whatever it looks like"
    )
    others = ScreenResult(planted("zxq", text="something else"))
    assert look(new=new, screened=others, known=ROWS).passed, "no text contradicts this one"
    assert look(new=new, screened=ScreenResult(planted("zxq")), known=ROWS, accept=["zxq"]).passed
    for people, passes in ((3, True), (2, False)):
        screened = ScreenResult(planted("zxq", by="human", people=people))
        assert look(new=new, screened=screened, known=ROWS).passed is passes


def test_new_words() -> None:
    def found(new: list[Example]) -> list[str]:
        return [one.word for one in new_words(new, ROWS)]

    assert found(planted("zxq"))[0].startswith("zxq")
    assert found(planted("zxq")[:2]) == [], "two rows are no vocabulary"
    both = [*planted("zxq"), *(replace(row, label="docs") for row in planted("zxq"))]
    assert found(both) == [], "a word that comes with every label pulls nowhere"
    assert found(ROWS) == [], "what was known is not new"


def test_the_first_model_is_held_against_the_profile_without_one() -> None:
    first = {"old": None, "champion": champion.SHIPPED}
    found = look(**first, shadow=None, metrics={"accuracy": 0.6, "rows": 40.0})
    assert found.passed, "on what was held out alone: no traffic, and no accuracy that was asked for in advance"
    said = {check.check: check for check in found.checks}
    assert said["held-out accuracy"].value.startswith("+"), "shown to be better than none"
    assert said["shadow decisions"].value == "not asked for"
    lost = with_pupil(Pupil(KNOWN | {"thanks": "docs"}))
    assert "recall of each label" in failed(look(**first, new=lost))
    assert failed(look(**first, plain=with_pupil(Pupil(KNOWN)), new=worse(KNOWN, 4))) == {"held-out accuracy"}
    assert failed(look(**first, rows=[])) >= {"held-out accuracy"}, "nothing held out is no evidence"


def test_the_first_of_ones_own_is_held_against_the_shipped_one() -> None:
    own = {"champion": champion.SHIPPED, "shadow": None, "metrics": {"accuracy": 0.6, "rows": 40.0}}
    assert look(**own).passed
    assert failed(look(**own, new=worse(KNOWN, 12))) == {"held-out accuracy", "errors past the gate"}


def test_what_was_said_before_it_was_learnt_is_what_counts() -> None:
    """A student that has learnt its held-out rows as well knows them by heart; so does the champion."""
    keys = [row_key(row) for row in ROWS]
    right = {key: HeldAnswer(row.label, 0.95, 0.9, row.label, False) for key, row in zip(keys, ROWS, strict=True)}
    wrong = {key: HeldAnswer("chat", 0.95, 0.9, "chat", False) for key in keys}
    shy = {key: replace(said, confidence=0.1) for key, said in wrong.items()}
    assert look(said=(right, right)).passed
    found = look(said=(wrong, right))
    assert failed(found) == {"held-out accuracy", "errors past the gate", "recall of each label"}
    assert failed(look(said=(shy, right))) == {"held-out accuracy", "recall of each label"}, "its gate kept it back"
    assert look(said=(right, wrong)).passed
    assert failed(look(old=None, champion=champion.SHIPPED, plain=with_pupil(Pupil(KNOWN)), said=(wrong, {}))) >= {
        "held-out accuracy"
    }


def test_a_shadow_is_not_asked_for_when_the_setting_says_so() -> None:
    settings = LearnSettings(shadow_decisions=0)
    assert examine(evidence(shadow=None), settings).passed


def test_a_better_challenger_passes_on_fewer_questions() -> None:
    old = worse(KNOWN, 8)
    assert look(old=old, rows=ROWS[::2]).passed


GAINS = [
    ({"kept_low": 0.8, "cost_share": 0.5}, set()),
    ({"kept_low": 0.5, "cost_share": 0.5}, {"quality kept"}),
    ({"kept_low": None, "cost_share": 0.5}, {"quality kept"}),
    ({}, {"quality kept"}),
]


@pytest.mark.parametrize(("metrics", "expected"), GAINS)
def test_a_model_of_gains_must_pay(metrics: dict[str, Any], expected: set[str]) -> None:
    assert failed(look(kind=GAIN, metrics=metrics, rows=[])) == expected


def test_every_failed_check_names_where_its_limit_is_set() -> None:
    found = look(metrics={}, new=worse(KNOWN, 2), shadow=None, screened=None)
    assert len(found.checks) == 10
    assert {check.check for check in found.checks} <= set(GOVERNED)
    assert len(found.failed) >= 5
    said = {check.check: check.setting for check in found.failed}
    assert said["cross-validated accuracy"] == "min_accuracy = 0.9 in [learn] of turnout.toml"
    assert said["shadow decisions"] == "shadow_decisions = 1000 in [learn] of turnout.toml"
    assert all(GOVERNED[check] in setting for check, setting in said.items())
    assert {name for name in GOVERNED.values() if " " not in name} <= {*LearnSettings.__struct_fields__}


def test_a_model_of_gains_runs_in_the_shadow_first() -> None:
    paying = {"kept_low": 0.8, "cost_share": 0.5}
    assert failed(look(kind=GAIN, metrics=paying, rows=[], shadow=None)) == {"shadow decisions"}


def test_a_hint_names_the_profile_as_it_was_typed() -> None:
    """It works as it stands, also where the profile was named by its file."""
    for shadow in (None, replace(SHADOW, decisions=1), replace(SHADOW, champion="c" * 16)):
        (check,) = look(shadow=shadow).failed
        assert "turnout student shadow -p 'my profiles/mine.toml'" in check.why


def test_questions_for_no_route_count_where_they_are_let_through() -> None:
    outside = [Example(f"manual of nothing {number}", "oos") for number in range(120)]
    assert look(rows=[*ROWS, *outside]).passed, "both let them through: no difference, and no label that is lost"
    shy = make_router([place(Pupil(KNOWN, sure=0.95), "student", gate=Gate(0.99))], ROUTES, name="mine")
    found = look(old=shy, rows=[*ROWS, *outside])
    assert failed(found) == {"errors past the gate"}, "the champion kept them back"


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    examine(evidence(), SETTINGS, lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == len(seen)


# --- putting it in place


def on_shelf(tmp_path: Path, *digests: str) -> None:
    for digest in digests:
        registry.put(made(tmp_path, digest), "mine", "student")


def test_it_serves_and_the_history_says_why(tmp_path: Path) -> None:
    on_shelf(tmp_path, A, B)
    registry.set_champion("mine", "student", A)
    done, change = let_serve(look(), contest(), who="ana")
    assert done.promoted
    assert not done.forced
    assert change is not None
    assert (change.was, change.to, change.who) == (A, B, "ana")
    assert change.metrics["shadow decisions"] == "1,200"
    assert champion.champion_digest("mine", "student") == B


def test_force_is_written_down(tmp_path: Path) -> None:
    on_shelf(tmp_path, A, B)
    registry.set_champion("mine", "student", A)
    done, change = let_serve(look(shadow=None), contest())
    assert done.forced
    assert change is not None
    assert change.why == "forced: shadow decisions"


def test_a_comparison_with_a_champion_that_is_gone_promotes_nothing(tmp_path: Path) -> None:
    other = "c" * 16
    on_shelf(tmp_path, A, B, other)
    registry.set_champion("mine", "student", A)
    found = look()
    registry.set_champion("mine", "student", other)
    with pytest.raises(ChampionChanged):
        let_serve(found, contest())
    assert champion.champion_digest("mine", "student") == other


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: make_router([place(None, "student")], ROUTES), "no model in its place"),
        (lambda: make_router([place(Pupil(KNOWN), "other")], ROUTES), "has no layer 'student'"),
    ],
)
def test_a_router_without_the_model_is_no_evidence(build: Callable[[], Router], said: str) -> None:
    with pytest.raises(LearnError, match=said):
        place_of(build(), "student")


def test_an_answer_knows_whether_its_gate_lets_it_through() -> None:
    router = make_router([place(Pupil(KNOWN, sure=0.6), "student", gate=Gate(0.85))], ROUTES)
    assert answerer(router, "student")("the manual")[:2] == ("docs", False)
    assert answerer(router, "student")("nothing")[:2] == (None, False)
