"""Who repeats a wording of a card means it, in whichever language; who adds, drops or turns something does not."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from apps.claims.a_card import card
from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.gate import GUARD, shipped_gate
from turnout.apps.claims.library import CardRefused, ClaimLibrary
from turnout.apps.claims.local import decide_locally
from turnout.apps.claims.wording import bare, language_of, repeats, respell, wordings


class Case(NamedTuple):
    question: str
    card: str = ""


CASES = [
    Case("Isn't it true that vaccines lead to autism?", "vaccines-cause-autism"),
    Case("my uncle says vaccines cause autism, is that right?", "vaccines-cause-autism"),
    Case("Did Matthew use the Gospel of Mark as a source?", "matthew-copied-mark"),
    Case("Was Mark used by Matthew?", "matthew-copied-mark"),
    Case("Hat Matthäus von Markus abgeschrieben?", "matthew-copied-mark"),
    Case("¿Las vacunas causan realmente autismo?", "vaccines-cause-autism"),
    Case("Est-ce que les vaccins provoquent vraiment l'autisme ?", "vaccines-cause-autism"),
    # Other roles, in words of the card's own.
    Case("Hat Markus von Matthäus abgeschrieben?"),
    Case("Was Matthew used by Mark?"),
    Case("Did Galileo torture the inquisitors?"),
    # Another thing, number, letter or time.
    Case("Does taking vitamin D every day prevent colds?"),
    Case("Do humans use only thirty percent of their brains?"),
    Case("Was Matthew written before Mark?"),
    Case("¿Las vacunas causan diabetes?"),
    # Denied.
    Case("Les vaccins ne provoquent pas l'autisme."),
    Case("Impfungen verursachen keinen Autismus."),
    # Who says so is another question than whether it is so, and so is what should be.
    Case("Did Al Gore invent the Internet?"),
    Case("Did Kennedy say that the Chinese word for crisis is made of danger and opportunity?"),
    Case("Should the FDA approve vitamin supplements before they are sold?"),
    # Less than the claim, or more.
    Case("Did Japan surrender in 1945?"),
    Case("Did the Inquisition threaten Galileo with torture?"),
    Case("Warum glauben so viele, dass Impfungen Autismus verursachen?"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.question)
def test_by_the_wordings_of_a_card(case: Case, starter: ClaimLibrary) -> None:
    decision = decide_locally(case.question, starter)
    assert decision.cards == ((case.card,) if case.card else ()), decision.reasons


@pytest.mark.parametrize("one", starter_cards(), ids=lambda one: one.id)
def test_every_wording_repeats_itself(one: object) -> None:
    missed = [
        text
        for lang, text in wordings(one)  # type: ignore[arg-type]
        if not repeats(bare(text), one, lang)  # type: ignore[arg-type]
    ]
    assert not missed


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I heard that fish feel pain, is that true?", "fish feel pain?"),
        ("my dad says fish feel pain", "fish feel pain"),
        ("so is pluto a planet or what", "is pluto a planet?"),
        ("Did people say that fish feel pain?", "Did people say that fish feel pain?"),
        ("True.", "True."),
    ],
)
def test_what_stands_around_a_claim(said: str, asked: str) -> None:
    assert bare(said) == asked


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    one = replace(card(), questions={"de": ["Besteht der Mond aus Käse?"]})
    assert isinstance(bare(text), str)
    assert isinstance(repeats(text, one, language_of(text)), str)


def test_words_that_mean_the_same_are_respelled() -> None:
    one = card(claim="Weavers ban cheese.")
    pairs = {("spinners", "weavers")}
    alike = lambda word, others: next((other for other in others if (word, other) in pairs), "")  # noqa: E731
    assert respell("Do spinners ban cheese?", one, alike) == "Do weavers ban cheese?"
    assert respell("Do lawyers ban cheese?", one, alike) == "Do lawyers ban cheese?"


def test_questions_are_found_and_go_with_their_card(empty: ClaimLibrary) -> None:
    one = card(questions={"de": ["Besteht der Mond aus Käse?", "Ist der Mond aus Käse gemacht?"]})
    empty.put(one)
    assert decide_locally("Besteht der Mond wirklich aus Käse?", empty).cards == (one.id,)
    empty.put(replace(one, questions={}))
    assert empty.index.ids() == [one.id]
    assert decide_locally("Besteht der Mond wirklich aus Käse?", empty).cards == ()
    empty.put(one)
    empty.set_visible(one.id, False)
    assert empty.index.ids() == []
    empty.set_visible(one.id, True)
    empty.delete(one.id)
    assert empty.index.ids() == []


def test_what_was_left_undone_is_caught_up(empty: ClaimLibrary) -> None:
    empty.put(card(questions={"de": ["Besteht der Mond aus Käse?"]}))
    empty.index.delete(empty.index.ids())
    assert empty.catch_up() == 1
    assert len(empty.index.ids()) == 2
    assert empty.catch_up() == 0


def test_an_id_cannot_pass_for_a_question(empty: ClaimLibrary) -> None:
    with pytest.raises(CardRefused, match="control characters"):
        empty.put(card("moon\x1e1"))


def test_the_gates_that_ship_were_fitted_with_the_guard_that_ships(starter: ClaimLibrary) -> None:
    for name in ("text", "minilm-l6-v2-int8-3e23559d"):
        gate = shipped_gate(name)
        assert gate is not None
        assert (gate.guard, gate.bound, len(gate.weights)) == (GUARD, 0.02, 5)
    old = replace(starter.gate(), threshold=0.0, guard=GUARD - 1)
    starter.keep_gate(old)
    assert starter.gate() == shipped_gate("text"), "one of another guard proves nothing"
