"""A gate keeps its bound on questions it was not fitted on, and more alike is never admitted less."""

from __future__ import annotations

import random
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.gate import MatchFeatures, fit_gate, shipped_gate
from turnout.apps.claims.library import ClaimLibrary
from turnout.apps.claims.match import LabelledQuestion, fit_observed, observe, share_found
from turnout.core.errors import TooFewExamples

ROOT = Path(__file__).parents[3]


def draw(rng: random.Random, centre: float) -> MatchFeatures:
    noise = [min(1.0, max(0.0, rng.gauss(centre, 0.15))) for _ in range(3)]
    return MatchFeatures(noise[0], noise[1], noise[2], rng.uniform(0, 0.3))


def test_the_bound_holds_on_fresh_questions() -> None:
    rng = random.Random(3)
    broken = 0
    for _ in range(40):
        gate = fit_gate([draw(rng, 0.7) for _ in range(300)], [draw(rng, 0.4) for _ in range(300)], "x")
        fresh = [draw(rng, 0.4) for _ in range(2000)]
        broken += sum(map(gate.admits, fresh)) > 0.05 * len(fresh)
    # One in twenty may; of forty, six would be a chance of one in a hundred.
    assert broken <= 5


def test_a_stricter_bound_never_admits_more() -> None:
    rng = random.Random(4)
    matches, strangers = [draw(rng, 0.7) for _ in range(300)], [draw(rng, 0.4) for _ in range(300)]
    loose, strict = (fit_gate(matches, strangers, "x", bound=bound) for bound in (0.1, 0.02))
    assert strict.threshold >= loose.threshold
    assert sum(map(strict.admits, matches)) <= sum(map(loose.admits, matches))


@pytest.mark.parametrize("strangers", [0, 10, 58])
def test_too_few_prove_nothing(strangers: int) -> None:
    rng = random.Random(5)
    with pytest.raises(TooFewExamples):
        fit_gate([draw(rng, 0.7)] * 10, [draw(rng, 0.4) for _ in range(strangers)], "x")


unit = st.floats(0, 1)


@settings(deadline=None)
@given(unit, unit, unit, st.floats(0, 0.3), unit)
def test_more_alike_is_never_admitted_less(
    cosine: float, cover: float, back: float, margin: float, more: float
) -> None:
    one = MatchFeatures(cosine, cover, back, margin)
    for name in ("similarity", "coverage", "returned", "margin"):
        for gate in map(shipped_gate, ("text", "minilm-l6-v2-int8-3e23559d")):
            assert gate is not None
            raised = replace(one, **{name: max(more, getattr(one, name))})
            assert gate.score(raised) >= gate.score(one)
            assert 0 <= gate.score(one) <= 1


def test_calibrated_on_questions_whose_card_is_known(starter: ClaimLibrary) -> None:
    asked = [LabelledQuestion(f"Is it true that {card.claim_text}", card.id) for card in starter_cards()]
    seen = [observe(starter, one) for one in asked]
    gate = fit_observed(seen, "text")
    assert (gate.embedder, gate.fitted_on) == ("text", len(asked))
    found, wrong = share_found(gate, seen)
    assert found > 0.8
    assert wrong <= 0.05


def test_a_question_without_a_card_counts_against_the_gate_alone(starter: ClaimLibrary) -> None:
    seen = observe(starter, LabelledQuestion("Did Luke copy Mark?"))
    assert seen.right is None
    assert seen.wrong is not None
    assert seen.wrong_refused
    assert observe(starter, LabelledQuestion("Did Matthew copy Mark?", "matthew-copied-mark")).right is not None


@pytest.mark.long
def test_the_gate_that_ships_is_what_the_script_makes_of_the_questions() -> None:
    """Of words alone; with the embedder the same script makes the other."""
    spec = spec_from_file_location("fit_claim_gates", ROOT / "scripts" / "fit_claim_gates.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    made, _, wrong = script.fit(None)
    shipped = shipped_gate("text")
    assert shipped is not None
    assert (made.fitted_on, made.bound, made.guard) == (shipped.fitted_on, shipped.bound, shipped.guard)
    assert made.threshold == pytest.approx(shipped.threshold, abs=0.01)
    assert made.weights == pytest.approx(shipped.weights, abs=0.05)
    assert wrong < shipped.bound
