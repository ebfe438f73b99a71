"""The decision without a model: what must hold, and that unsure is novel."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.claims.a_card import card
from turnout.apps.claims.card import ClaimType
from turnout.apps.claims.kind import retype, type_of
from turnout.apps.claims.library import ClaimLibrary
from turnout.apps.claims.local import decide_locally, form_of


class Must(NamedTuple):
    question: str
    mode: str
    cards: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """Cards that a contextual answer must have; the one of an exact match."""


FLOOD, MARK = "flood-worldwide", "matthew-copied-mark"
MUST = [
    Must("Did Matthew copy Mark?", "exact_match", (MARK,)),
    Must("Couldn't divine inspiration explain it instead?", "novel_claim", shown=(MARK,)),
    Must("Did the Council of Nicaea add books to the Bible?", "novel_claim"),
    Must("Does Isaiah 53 predict Jesus?", "novel_claim"),
    Must("How does this relate to the flood?", "contextual", (FLOOD, MARK), (MARK,)),
    Must("What's the difference between a worldwide flood and a local flood in Genesis?", "contextual", (FLOOD,)),
    Must("Why do people believe that vaccines cause autism?", "contextual", ("vaccines-cause-autism",)),
    Must("Could God have hidden the flood evidence?", "novel_claim"),
    Must("Which is more likely?", "contextual", (FLOOD, MARK), (FLOOD, MARK)),
    Must("Did the flood happen?", "exact_match", (FLOOD,)),
    Must("Did Mark copy Matthew?", "novel_claim"),
    Must("Can you put that more simply?", "contextual", (FLOOD,), (MARK, FLOOD)),
    Must("Can you put that more simply?", "contextual"),
    Must("Why do people believe in Bigfoot?", "novel_claim"),
]


@pytest.mark.parametrize("case", MUST, ids=lambda case: case.question)
@pytest.mark.parametrize("named", ["starter", "by_meaning"])
def test_what_must_hold(case: Must, named: str, request: pytest.FixtureRequest) -> None:
    library: ClaimLibrary = request.getfixturevalue(named)
    decision = decide_locally(case.question, library, case.shown)
    assert decision.mode == case.mode, decision.reasons
    assert set(case.cards) <= set(decision.cards)
    assert all(decision.reasons)
    assert decision.reasons
    if case.mode != "contextual":
        assert decision.cards == case.cards


def test_without_a_card_shown_it_is_asked_what_is_meant(starter: ClaimLibrary) -> None:
    assert decide_locally("Can you put that more simply?", starter).asks_back == "unclear"
    assert not decide_locally("Can you put that more simply?", starter, [FLOOD]).asks_back
    assert not decide_locally("Did Matthew copy Mark?", starter).asks_back


def test_of_two_cards_that_deny_each_other_each_answers_its_own_question(empty: ClaimLibrary) -> None:
    for ident, claim in (("one", "Matthew copied Mark."), ("other", "Mark copied Matthew.")):
        empty.put(card(id=ident, claim_text=claim))
    for question, ident in (("Did Matthew copy Mark?", "one"), ("Did Mark copy Matthew?", "other")):
        assert decide_locally(question, empty).cards == (ident,), question


def test_a_library_without_cards_answers_nothing(empty: ClaimLibrary) -> None:
    for question in ("Did Matthew copy Mark?", "Why do people believe that?", "Compare the two floods.", "", "?"):
        assert decide_locally(question, empty).cards == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(question=st.text(max_size=200))
def test_every_text_gets_a_decision_with_a_reason(starter: ClaimLibrary, question: str) -> None:
    decision = decide_locally(question, starter)
    assert decision.reasons
    assert all(decision.reasons)
    assert 0 <= decision.confidence <= 1
    assert decision == decide_locally(question, starter)


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Did Matthew copy Mark?", "claim"),
        ("Matthew copied Mark.", "claim"),
        ("What if Mark was lost?", "alternative"),
        ("Couldn't a comet explain it?", "alternative"),
        ("How do the two claims about Galileo fit together?", "comparison"),
        ("Can you explain the answer about QWERTY?", "clarification"),
        ("Who sold the first typewriter?", "open"),
        ("Which one?", "vague"),
        ("Hello!", "greeting"),
        ("Hi there, how are you?", "greeting"),
        ("ok great, thank you so much :)", "greeting"),
        ("Vielen Dank? danke!", "claim"),
        ("¡Hola! Gracias.", "greeting"),
        ("谢谢", "greeting"),
        ("Hello, did Matthew copy Mark?", "claim"),
        ("Thanks to vaccines, polio is gone.", "claim"),
        ("...", "claim"),
    ],
)
def test_what_a_question_does(question: str, form: str) -> None:
    assert form_of(question) == form


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("It is morally wrong to eat meat.", ClaimType.ETHICS),
        ("Nobody can know whether it rained.", ClaimType.EPISTEMOLOGY),
        ("The court ruled that tomatoes are vegetables.", ClaimType.INSTITUTIONAL),
        ("The word comes from Greek.", ClaimType.LINGUISTIC),
        ("The church's doctrine rejects it.", ClaimType.DOCTRINAL),
        ("The war happened in the last century.", ClaimType.HISTORICAL),
    ],
)
def test_the_type_of_a_claim(claim: str, kind: ClaimType) -> None:
    found, sure = type_of(claim)
    assert found == kind
    assert 0 < sure <= 1


def test_types_are_told_again_where_nobody_told_them() -> None:
    told = card(claim="It is morally wrong to eat cheese.")
    guessed = card(claim="It is morally wrong to eat cheese.", extra={"claim_type_told_by_words": True})
    assert retype(told) is None
    assert (retype(told, every=True) or told).claim_type_category == ClaimType.ETHICS
    assert (retype(guessed) or guessed).claim_type_category == ClaimType.ETHICS
    assert retype(card(claim="Cheese."), every=True) is None
