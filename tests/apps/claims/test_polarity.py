"""What contradicts a card refuses it; silence does not. And no text, however long or odd, takes more than a moment."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.polarity import contradicts


class Case(NamedTuple):
    question: str
    claim: str
    kind: str | None


CASES = [
    Case("Did Mark copy Matthew?", "Matthew copied Mark.", "roles"),
    Case("Was Matthew copied by Mark?", "Matthew copied Mark.", "roles"),
    Case("Did Mark copy Matthew?", "Matthew copied from the Gospel of Mark.", "roles"),
    Case("Did Matthew copy from Mark?", "Matthew copied from the Gospel of Mark.", None),
    Case("Was Mark copied by Matthew?", "Matthew copied Mark.", None),
    Case("Did Matthew copy Mark?", "Matthew copied Mark.", None),
    Case("Isn't it true that Matthew copied Mark?", "Matthew copied Mark.", None),
    Case("Didn't Matthew copy Mark?", "Matthew copied Mark.", None),
    Case("Matthew did not copy Mark.", "Matthew copied Mark.", "negation"),
    Case("Matthew never copied Mark.", "Matthew copied Mark.", "negation"),
    Case("It is not true that Matthew copied Mark.", "Matthew copied Mark.", "negation"),
    Case("Did Luke copy Mark?", "Matthew copied Mark.", "name"),
    Case("Does a vaccine cause autism?", "Vaccines do not cause autism.", "negation"),
    Case("Did the flood happen?", "A worldwide flood covered the whole Earth, as Genesis describes.", None),
    Case("Did Apollo land on the Moon in 1959?", "Apollo astronauts landed on the Moon in 1969.", "number"),
    Case("Did Apollo land on the Moon?", "Apollo astronauts landed on the Moon in 1969.", None),
    Case("Did 12 people die?", "Fifteen people died in the fire.", "number"),
    Case("Did the shop close in May 2019?", "The shop closed in June 2019.", "number"),
    Case("Did the shop close in 2019?", "The shop closed in June 2019.", None),
    Case("Is the Moon visible from the Great Wall?", "The Great Wall is visible from the Moon.", "roles"),
    Case("Was the Tuskegee study unethical?", "The Tuskegee study was ethical.", "opposite"),
    Case("Did the EU ban bendy bananas?", "The European Union banned bendy bananas.", None),
    Case("Can plants feel pain?", "Fish can feel pain.", "name"),
    Case("Was Galileo tortured by the Inquisition?", "The Inquisition tortured Galileo.", None),
    Case("I am not a historian. Did Matthew copy Mark?", "Matthew copied Mark.", None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.question)
def test_the_guard(case: Case) -> None:
    found = contradicts(case.question, case.claim)
    assert (found.kind if found else None) == case.kind, found


@pytest.mark.parametrize("card", starter_cards(), ids=lambda card: card.id)
def test_no_claim_contradicts_itself(card: object) -> None:
    claim = card.claim_text  # type: ignore[attr-defined]
    assert contradicts(claim, claim) is None
    assert contradicts(f"Is it true that {claim[0].lower()}{claim[1:].rstrip('.')}?", claim) is None


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    contradicts(one, other)
    assert contradicts(one, one) is None


@pytest.mark.parametrize(
    "unit", ["a ", "not ", "Mark copied Matthew. ", "1 ", "n't ", "A", "— (@a) ", "is it not true "]
)
def test_long_texts_take_no_longer(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    began = time.perf_counter()
    contradicts(text, "Matthew copied Mark.")
    contradicts("Matthew copied Mark.", text)
    # Some 0.3 s at worst; a machine that does other things as well is given ten times that.
    assert time.perf_counter() - began < 3
