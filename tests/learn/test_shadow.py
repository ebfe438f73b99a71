"""The shadow: both decide, only counts remain, and nothing counts that never reached the model."""

from pathlib import Path

import pytest

from stub_students import KNOWN, Pupil, log, made, own_home, with_pupil
from turnout import Query, Router, Turn, Verdict
from turnout.config.champion import ModelSummary
from turnout.learn import registry
from turnout.learn.contest import STUDENT, Contest
from turnout.learn.shadow import PASSED_ON, LoggedQuestion, RouteChange, keep, kept, logged, shadow
from turnout.store import TimeSpan, open_store
from turnout.testing import ScriptedLayer, make_router, place

A, B = "a" * 16, "b" * 16


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_home(monkeypatch, tmp_path)


def run(old: Pupil, new: Pupil, *asked: LoggedQuestion):  # type: ignore[no-untyped-def]
    return shadow(beside(with_pupil(old), with_pupil(new)), asked)


def beside(old: Router, new: Router) -> Contest:
    model = registry.RegisteredModel(B, Path(), ModelSummary(B))
    return Contest("mine", "mine", "student", STUDENT, model, A, new, old, [], old)


def test_what_both_say_is_counted_pair_by_pair() -> None:
    old = Pupil(KNOWN)
    new = Pupil(KNOWN | {"manual": "chat", "hello": "chat"})
    questions = [
        *[LoggedQuestion(Query("the manual please"))] * 3,
        *[LoggedQuestion(Query("a function please"))] * 5,
        *[LoggedQuestion(Query("hello there"))] * 2,
        LoggedQuestion(Query("something else")),
    ]
    found, differences = run(old, new, *questions)
    assert (found.decisions, found.same, found.flips) == (11, 6, 3)
    assert found.moved == (RouteChange("docs", "chat", 3), RouteChange(PASSED_ON, "chat", 2))
    assert (found.old.decided, found.new.decided) == (8, 10)
    assert [one.was for one in differences] == ["docs"] * 3 + [PASSED_ON] * 2
    assert found.agreement == pytest.approx(6 / 11)


def test_a_held_answer_is_passed_on() -> None:
    unsure = Pupil(KNOWN, sure=0.5)
    found, _ = run(Pupil(KNOWN), unsure, LoggedQuestion(Query("the manual")))
    assert found.moved == (RouteChange("docs", PASSED_ON, 1),)
    assert found.flips == 0


def test_labels_of_people_and_of_models_are_kept_apart() -> None:
    old, new = Pupil(KNOWN), Pupil(KNOWN | {"manual": "chat"})
    asked = [
        LoggedQuestion(Query("the manual"), human="docs", teacher="chat"),
        LoggedQuestion(Query("the manual"), human="chat"),
        LoggedQuestion(Query("the manual"), human="chat"),
        LoggedQuestion(Query("a function"), teacher="code"),
        LoggedQuestion(Query("a function"), teacher="chat"),
        LoggedQuestion(Query("nothing known"), human="docs"),
    ]
    found, _ = run(old, new, *asked)
    assert (found.old.labelled, found.old.right, found.old.taught, found.old.agreed) == (3, 1, 2, 1)
    assert (found.new.labelled, found.new.right, found.new.taught, found.new.agreed) == (3, 2, 2, 1)
    assert found.new.accuracy == pytest.approx(2 / 3)


def test_what_never_reaches_the_model_does_not_count() -> None:
    def build(pupil: Pupil):  # type: ignore[no-untyped-def]
        first = ScriptedLayer([lambda reading: Verdict(("chat",), 1.0) if "rule" in reading.folded else None])
        return make_router([place(first, "rules"), place(pupil, "student", who="E")], ("docs", "code", "chat"))

    asked = [LoggedQuestion(Query("rule one")), LoggedQuestion(Query("rule two")), LoggedQuestion(Query("a function"))]
    found, _ = shadow(beside(build(Pupil(KNOWN)), build(Pupil(KNOWN))), asked)
    assert (found.decisions, found.elsewhere) == (1, 2)


def test_a_question_the_profile_refuses_by_now_is_counted_apart() -> None:
    found, _ = run(
        Pupil(KNOWN),
        Pupil(KNOWN),
        LoggedQuestion(Query("the manual", declared="docs")),
        LoggedQuestion(Query("a manual")),
    )
    assert (found.decisions, found.refused) == (1, 1)


def test_the_log_gives_its_questions_with_their_labels(tmp_path: Path) -> None:
    router = with_pupil(Pupil(KNOWN))
    with open_store(str(tmp_path / "log.db")) as store:
        first, second = log(store, router, "the manual", "a function")
        log(store, with_pupil(Pupil(KNOWN), contract=()), "not this one")
        store.record(router.route_sync(Query(turns=(Turn("user", "thanks a lot"),))))
        records = store.records()
        records.judge(first, "wrong", should_be="code", by="ana")
        records.judge(second, "right", by="ana")
        found, _ = logged(records, "mine")
        assert [(asked.query.text, asked.human) for asked in found] == [
            ("", None),
            ("not this one", None),
            ("a function", "code"),
            ("the manual", "code"),
        ]
        assert logged(records, "other")[0] == []
        assert len(logged(records, "mine", most=2)[0]) == 2
        assert logged(records, "mine", span=TimeSpan(0, 1))[0] == []


def test_text_that_was_not_kept_is_counted(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "log.db"), text="hash") as store:
        log(store, with_pupil(Pupil(KNOWN)), "the manual", "a function")
        assert logged(store.records(), "mine") == ([], 2)


def test_what_was_found_stands_beside_the_model_and_has_no_text_in_it(tmp_path: Path) -> None:
    registry.put(made(tmp_path, B), "mine", "student")
    assert kept("mine", "student", B) is None
    found, _ = run(Pupil(KNOWN), Pupil({}), LoggedQuestion(Query("the secret manual"), human="docs"))
    keep(found)
    keep(found)
    assert kept("mine", "student", B) == found
    file = registry.note_file("mine", "student", B, "shadow")
    assert b"secret" not in file.read_bytes()
    file.write_bytes(b"{broken")
    assert kept("mine", "student", B) is None
