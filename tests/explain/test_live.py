"""The explanation of a decision: what it says is what the decision's JSON form says, and what its layers can add."""

from __future__ import annotations

import json

import msgspec
import pytest

import turnout
from random_text import router
from toml_router import unlearnt
from turnout import Query, Reason, Verdict
from turnout.config.cases import codes_of
from turnout.config.load import shipped
from turnout.core.query import Reading
from turnout.explain.explanation import explain
from turnout.testing import make_router

TIERS, STUDY = unlearnt("tiers"), router("study")
HELD = TIERS.route_sync("Write a function to sort an array")
QUESTION = "Will it rain in Paris, and who won the game?"


@pytest.mark.parametrize("text", ["Write a function to sort an array", "Define entropy", QUESTION, "zxcv", " "])
@pytest.mark.parametrize("name", shipped())
def test_it_says_what_the_decision_says(name: str, text: str) -> None:
    decision = router(name).route_sync(text)
    explained = explain(decision)
    for found, was in zip((explained, *explained.parts), (decision, *decision.parts), strict=True):
        assert (found.id, found.routes, found.by, found.outcome) == (was.id, was.routes, was.by, was.outcome)
        assert (found.confidence, found.calibrated, found.policy) == (was.confidence, was.calibrated, was.policy)
        assert (found.reasons, found.remarks, found.role) == (was.reasons, was.remarks, was.role)
        decider = None if was.chosen is None else was.chosen.place.id
        assert (found.decider.layer if found.decider is not None else None) == decider
        if was.parts:
            continue
        assert [step.layer for step in found.trace] == [place.id for place in was.profile.layers]
        for step, judged in zip(found.trace, was.steps, strict=False):
            assert (step.ended, step.reasons, step.details) == (judged.ended, judged.reasons, judged.details)
            assert (step.verdict is None) == (judged.verdict is None)
        assert {step.ended for step in found.trace[len(was.steps) :]} <= {"not asked"}
        assert found.counterfactuals == tuple(turnout.Router(was.profile).counterfactuals(was))


def test_it_is_a_value() -> None:
    explained = explain(HELD)
    assert explained == explain(HELD)
    with pytest.raises(AttributeError):
        explained.by = "me"  # type: ignore[misc]
    assert json.loads(msgspec.json.encode(explained))["question"]["excerpt"] == HELD.query.text


@pytest.mark.parametrize("text", ["Write a function to sort an array", "Prove the theorem step by step", "hello"])
def test_what_signals_add_to_a_band_is_the_score(text: str) -> None:
    decision = TIERS.route_sync(text)
    step = next(step for step in explain(decision).trace if step.layer == "signals")
    assert step.verdict is not None
    assert sum(step.verdict.adds.values()) == pytest.approx(step.score)
    assert step.bands is not None
    assert step.bands.routes == TIERS.profile.routes


@pytest.mark.parametrize("name", ["tiers", "tiers-seed", "study", "study-seed", "claims"])
@pytest.mark.parametrize(
    "text",
    [
        "Write a function to sort an array",
        "Explain what complexity means in the definition on the far right",
        "Define it",
    ],
)
def test_what_a_signal_adds_is_what_is_missing_without_it(name: str, text: str) -> None:
    decision = unlearnt(name).route_sync(text)
    profile = decision.profile
    reading = profile.read(decision.query)
    for step in decision.steps:
        if step.verdict is None or step.place.kind != "signals.v1":
            continue
        scores, route = step.verdict.scores, step.verdict.routes[0]
        key = route if route in scores else "score"
        for reason in step.reasons:
            other = step.place.call(profile.mute(reading, frozenset((reason.code,))))  # type: ignore[misc]
            assert isinstance(other, Verdict)
            assert step.verdict.adds.get(reason.code, 0.0) == pytest.approx(scores[key] - other.scores[key])


def test_any_layer_may_say_what_a_reason_adds() -> None:
    def shouting(reading: Reading) -> Verdict:
        adds = {"shouting.capitals": 0.3}
        return Verdict(("a",), 0.9, scores={"a": 0.4}, reasons=(Reason("shouting.capitals", "HEY"),), adds=adds)

    explained = explain(make_router([shouting], ("a", "b")).route_sync("HEY"))
    assert explained.trace[0].verdict is not None
    assert explained.trace[0].verdict.adds == {"shouting.capitals": 0.3}
    assert explained.trace[0].score == 0.4


def test_every_part_is_explained() -> None:
    explained = explain(unlearnt("sources").route_sync(QUESTION))
    assert [part.question.excerpt for part in explained.parts] == ["Will it rain in Paris", "who won the game?"]
    for part in explained.parts:
        assert part.question.spans
        assert part.counterfactuals


def test_earlier_turns_are_counted() -> None:
    turns = (turnout.Turn("user", "hello"), turnout.Turn("assistant", "hi"), turnout.Turn("user", "And why?"))
    question = explain(STUDY.route_sync(Query(turns=turns))).question
    assert (question.excerpt, question.earlier_turns) == ("And why?", 2)


def test_codes_of_a_profile() -> None:
    codes = codes_of(TIERS.profile)
    assert {"signals.tokenCount", "rule.packed-default", "override.reasoning"} <= set(codes)
    assert len(set(codes)) == len(codes)
    assert {pattern.code for pattern in TIERS.profile.patterns} <= set(codes)
    assert len(TIERS.profile.patterns) > 100
