"""The flip rate finds what it is for: layers that history sways, by any way it can reach them; and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from random_text import router
from stored_decisions import ask, everything
from turnout import Query, Router, Turn, Verdict
from turnout.config.cases import read_cases
from turnout.config.load import read_chain
from turnout.core.contract import Rule, When
from turnout.core.query import Reading
from turnout.store import Store
from turnout.store.flip import (
    ENTRIES,
    HISTORIES,
    LONGEST,
    Flip,
    FlipQuestion,
    logged_questions,
    measure,
    note_flips,
)
from turnout.testing import ScriptedLayer, ScriptedNetworkLayer, make_router, place

ROUTES = ("first", "second", "third")
RULE = Rule("RC-03", never="flipped_by_history")

ALONE = ("What is a closure?", "Define entropy", "Who wrote Hamlet?", "Explain how rainbows form")
POINTING = ("And the second one?", "Shorter, please")


def questions(*texts: str, route: str = "first") -> list[FlipQuestion]:
    return [FlipQuestion(Query(text), route) for text in texts]


def swayed(sway: Callable[[Reading], bool], contract: tuple[Rule, ...] = (RULE,)) -> Router:
    """A router that says `first`, and `second` where history has its way."""
    say = {False: Verdict(("first",), 0.9), True: Verdict(("second",), 0.9)}
    return make_router([ScriptedLayer([lambda reading: say[sway(reading)]])], ROUTES, contract=contract)


def earlier(reading: Reading) -> tuple[Turn, ...]:
    """What was said before the question, whichever way it came."""
    turns = reading.query.turns
    return turns if reading.query.text else turns[:-1]


def says(*words: str) -> Callable[[Reading], bool]:
    return lambda reading: any(word in turn.text for turn in earlier(reading) for word in words)


class Case(NamedTuple):
    id: str
    sway: Callable[[Reading], bool]
    kinds: set[str]
    """The kinds of history that must be found out; a kind is its first words."""


CASES = [
    Case("never", lambda _: False, set()),
    Case("any history at all", lambda reading: bool(earlier(reading)), {"other questions", "six times", "an order"}),
    Case("a route's name", says("second"), {"the name second", "an order for second"}),
    Case("an order in the system role", lambda r: any(turn.role == "system" for turn in earlier(r)), {"an order"}),
    Case("its dominant question", lambda r: [turn.text for turn in earlier(r)].count(ALONE[0]) >= 5, {"six times"}),
    Case("a question seen before", says(*ALONE), {"other questions", "six times first"}),
    Case("only turns beside the text", lambda r: bool(r.query.text and r.query.turns), {"other questions"}),
    Case("only a conversation", lambda r: len(r.query.turns) > 1 and not r.query.text, {"other questions"}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_sways_a_layer_is_found_out(case: Case) -> None:
    found = measure(swayed(case.sway), questions(*ALONE, *POINTING))
    kinds = {flip.history for flip in found.found if not flip.refers}
    for kind in case.kinds:
        assert any(name.startswith(kind) for name in kinds), (kind, kinds)
    assert bool(found.alone.flips) == bool(case.kinds)
    assert {(flip.was, flip.became) for flip in found.found} <= {(("first",), ("second",))}


def test_what_is_counted() -> None:
    found = measure(swayed(lambda reading: bool(earlier(reading))), questions(*ALONE, *POINTING))
    assert (found.alone.questions, found.referring.questions) == (len(ALONE), len(POINTING))
    assert found.alone.routings == found.alone.flips == len(ALONE) * HISTORIES
    assert found.alone.rate == found.referring.rate == 1.0
    assert sum(not flip.refers for flip in found.found) == found.alone.flips
    assert measure(swayed(says("nothing")), []).alone.rate == 0.0


@pytest.mark.parametrize("count", [1, 2, 5, 20, 33])
def test_each_question_gets_as_many_histories_as_asked_for(count: int) -> None:
    layer = ScriptedLayer([Verdict(("first",), 0.9)])
    measure(make_router([layer], ROUTES), questions(*ALONE), histories=count)
    with_history = [reading for reading in layer.calls if earlier(reading)]
    assert len(with_history) == count * len(ALONE)
    for reading in with_history:
        asked = [turn for turn in earlier(reading) if turn.role == "user"]
        assert 1 <= len(asked) <= ENTRIES
        assert all(turn.text != reading.words for turn in asked) or len(set(asked)) == 1


def test_the_same_seed_makes_the_same_histories() -> None:
    def seen(seed: int) -> list[Query]:
        layer = ScriptedLayer([Verdict(("first",), 0.9)])
        measure(make_router([layer], ROUTES), questions(*ALONE), seed=seed)
        return [reading.query for reading in layer.calls]

    assert seen(1) == seen(1)
    assert seen(1) != seen(2)


def test_what_the_client_wraps_around_a_question_is_not_history() -> None:
    """A question in a turn may be read otherwise than one beside it: each is compared with itself."""
    found = measure(swayed(lambda reading: not reading.query.text), questions(*ALONE))
    assert found.found == ()


def test_layers_that_were_not_asked_are_named() -> None:
    layers = [place(None, "missing"), place(ScriptedNetworkLayer([Verdict(("third",), 1.0)]), "llm", who="L")]
    found = measure(make_router([*layers, ScriptedLayer([Verdict(("first",), 0.9)])], ROUTES), questions(*ALONE))
    assert found.unasked == ("missing", "llm")
    assert found.alone.flips == 0


def test_one_question_is_enough_and_a_huge_one_is_left_out() -> None:
    found = measure(swayed(says("second")), questions("Define entropy", "x" * (LONGEST + 1)))
    assert found.alone.questions == 1
    assert found.alone.flips > 0


def test_a_huge_question_in_a_history_is_cut() -> None:
    layer = ScriptedLayer([Verdict(("first",), 0.9)])
    measure(make_router([layer], ROUTES), questions("Define entropy", "y" * LONGEST))
    assert max(len(turn.text) for reading in layer.calls for turn in earlier(reading)) < 10_000


@pytest.mark.alike(3)
@pytest.mark.parametrize("profile", ["assist", "claims", "sources"])
def test_the_profiles_that_promise_it_never_flip(profile: str) -> None:
    path = read_chain(profile).cases
    assert path is not None
    golden = [FlipQuestion(Query(case.text), case.route) for case in read_cases(path) if case.text]
    found = measure(router(profile), golden)
    assert found.alone.questions > 100
    assert found.referring.questions > 20
    assert found.found == ()


# --- with a log


def swayed_and_logged(store: Store, *texts: str, contract: tuple[Rule, ...] = (RULE,)) -> Router:
    made = swayed(says("second"), contract)
    for text in texts:
        store.record(made.route_sync(Query(text)))
    assert store.flush()
    return made


def test_questions_of_the_log(store: Store) -> None:
    store.record(ask("one", "assist"))
    store.record(ask("two", "assist", attachments=("page.png",), declared="PLATFORM"))
    store.record(ask("", "assist", turns=(Turn("user", "before"), Turn("assistant", "ok"), Turn("user", "three"))))
    store.record(ask("one", "assist"))
    store.record(ask("not mine", "study"))
    store.record(ask("not hers", "assist", tenant="acme"))
    store.record(ask("   ", "assist"))
    found = logged_questions(store.records(), "assist", most=10)
    assert [question.text for question in found] == ["one", "three", "two"]
    assert all(question.query.declared is None and not question.query.turns for question in found)
    assert found[2].query.attachments == ("page.png",)
    assert [question.text for question in logged_questions(store.records(), "assist", most=2)] == ["one", "three"]


@pytest.mark.parametrize("level", ["off", "hash", "snippet"])
def test_a_text_that_was_not_kept_whole_is_no_question(opened: Callable[..., Store], level: str) -> None:
    store = opened(text=level)
    store.record(ask("one", "assist"))
    assert logged_questions(store.records(), "assist", most=10) == []


def test_flips_of_logged_decisions_break_the_rule(store: Store, store_url: str) -> None:
    made = swayed_and_logged(store, *ALONE, *POINTING)
    asked = logged_questions(store.records(), "testing", most=100)
    found = measure(made, asked)
    assert note_flips(store.journal, made.profile, "", asked, found.found) == len(ALONE)
    broken = store.records().breaches(rule="RC-03")
    assert {row.phase for row in broken} == {"replay"}
    assert {row.fact for row in broken} == {"flipped_by_history"}
    assert {row.found for row in broken} == {'"second"'}
    texts = {store.records().get(row.decision_id).question for row in broken}
    assert texts == set(ALONE)
    for text in ALONE:
        assert all(text not in row.explanation for row in broken)
    assert "stands alone was first and became second" in broken[0].explanation
    # Said again, it is the same breach.
    note_flips(store.journal, made.profile, "", asked, found.found)
    assert len(store.records().breaches(rule="RC-03")) == len(ALONE)
    assert "RC-03" in everything(store_url)


class UnnotedCase(NamedTuple):
    id: str
    contract: tuple[Rule, ...]
    profile_hash: str | None


@pytest.mark.parametrize(
    "case",
    [
        UnnotedCase("no rule speaks of it", (Rule("RC-04", never="retrieval"),), None),
        UnnotedCase("no contract", (), None),
        UnnotedCase("the rule is about another route", (Rule("R", When(("third",)), "flipped_by_history"),), None),
        UnnotedCase("another version decided", (RULE,), "0123456789abcdef"),
    ],
    ids=lambda case: case.id,
)
def test_what_breaks_no_rule_is_not_noted(store: Store, case: UnnotedCase) -> None:
    made = swayed_and_logged(store, *ALONE, contract=case.contract)
    asked = logged_questions(store.records(), "testing", most=100)
    if case.profile_hash:
        asked = [FlipQuestion(one.query, one.route, one.decision_id, case.profile_hash, one.by) for one in asked]
    found = measure(made, asked)
    assert found.alone.flips
    assert note_flips(store.journal, made.profile, "", asked, found.found) == 0
    assert store.records().breaches() == []


def test_questions_from_elsewhere_have_nothing_to_note(store: Store) -> None:
    made = swayed(says("second"))
    flip = Flip("x", None, ("first",), ("second",), "an order", False)
    assert note_flips(store.journal, made.profile, "", questions(*ALONE), [flip]) == 0
