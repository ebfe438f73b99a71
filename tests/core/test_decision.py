"""A decision as a value: equality, hashing, JSON, replay and what would have been."""

import asyncio
import copy
import gc
import json
import weakref
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from toml_router import unlearnt
from turnout import Decision, Gate, Policy, Query, Reading, Reason, ReplayMismatch, Router, Turn, Verdict, load
from turnout.core.profile import Fallback, Part
from turnout.core.verdict import Fault
from turnout.testing import (
    ORDINARY,
    PassLayer,
    ScriptedLayer,
    ScriptedNetworkLayer,
    Stall,
    hostile_queries,
    make_router,
    place,
)

ROUTES = ("cheap", "middle", "dear")
SHIPPED = ["study", "study-seed", "tiers", "tiers-seed"]


def says(route: str = "middle", confidence: float = 0.9) -> ScriptedLayer:
    return ScriptedLayer([Verdict((route,), confidence, 0.1, {route: confidence})])


def router(*layers: Any, **fields: Any) -> Router:
    return make_router(layers or (place(says(), "one"),), ROUTES, **fields)


class TestEquality:
    def test_ids_and_timings_are_outside_it(self) -> None:
        one, two = router().route_sync("x"), router().route_sync("x")
        assert one.id != two.id
        assert one == two
        assert hash(one) == hash(two)
        assert replace(one, elapsed_ns=1, id="other") == one

    class Change(NamedTuple):
        id: str
        fields: dict[str, Any]

    CHANGES = (
        Change("query", {"query": Query("y")}),
        Change("routes", {"routes": ("dear",)}),
        Change("confidence", {"confidence": 0.8}),
        Change("margin", {"margin": 0.2}),
        Change("by", {"by": "two"}),
        Change("outcome", {"outcome": "Rl"}),
        Change("steps", {"steps": ()}),
        Change("chosen", {"chosen": None}),
        Change("remarks", {"remarks": (Reason("a.b", "c"),)}),
        Change("part", {"part": Part("part", Query("x"))}),
    )

    @pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
    def test_everything_else_is_inside(self, change: Change) -> None:
        decision = router().route_sync("x")
        assert (replace(decision, **change.fields) == decision) is False

    def test_parts_are_compared(self) -> None:
        decision = router().route_sync("x")
        whole = replace(decision, parts=(decision,))
        assert (whole == decision) is False
        assert whole == replace(decision, parts=(replace(decision, id="another"),))

    def test_the_profile_is_compared_by_its_hash(self) -> None:
        assert (router().route_sync("x") == router(ordered=True).route_sync("x")) is False

    def test_a_decision_is_not_equal_to_other_things(self) -> None:
        decision = router().route_sync("x")
        assert (decision == "middle") is False
        assert (decision == decision.to_dict()) is False

    def test_unequal_is_the_opposite_of_equal(self) -> None:
        one, two = router().route_sync("x"), router().route_sync("x")
        assert one == two
        assert (one != two) is False

    def test_unequal_is_the_opposite_of_equal_for_verdicts(self) -> None:
        one, two = Verdict(("a",), 0.5), Verdict(("a",), 0.5)
        assert one == two
        assert (one != two) is False

    def test_decisions_can_be_in_sets(self) -> None:
        same = router()
        assert len({same.route_sync("x"), same.route_sync("x"), same.route_sync("y")}) == 2

    def test_a_copy_is_equal(self) -> None:
        decision = load("tiers", config="").route_sync("prove the theorem")
        assert copy.copy(decision) == decision

    def test_looking_at_a_decision_does_not_change_it(self) -> None:
        layer = load("tiers", config="")
        seen, unseen = layer.route_sync("prove it"), layer.route_sync("prove it")
        assert seen.reasons
        assert seen.json()
        assert seen == unseen
        assert hash(seen) == hash(unseen)

    def test_it_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            router().route_sync("x").by = "me"  # type: ignore[misc]


class TestForm:
    def test_every_field_of_the_json_form(self) -> None:
        layers = [
            place(PassLayer(), "passes"),
            place(ScriptedLayer([ValueError("no")]), "raises"),
            place(ScriptedLayer([Verdict(("dear",), 0.2, reasons=(Reason("a.b", "c"),))]), "unsure", gate=Gate(0.5)),
            place(says(), "sure"),
        ]
        decision = router(*layers, policies={"middle": Policy(model="m", sources=("a",))}, name="toy").route_sync("x")
        form = json.loads(decision.json())
        assert form == decision.to_dict()
        trace = form.pop("trace")
        assert form.pop("elapsed_us") == decision.elapsed_ns / 1000
        assert form == {
            "id": decision.id,
            "profile": "toy",
            "profile_hash": decision.profile.hash,
            "route": "middle",
            "routes": ["middle"],
            "confidence": 0.9,
            "calibrated": False,
            "margin": 0.1,
            "by": "sure",
            "outcome": "R-",
            "reasons": [],
            "policy": {"model": "m", "sources": ["a"]},
            "scores": {"middle": 0.9},
            "parts": [],
            "remark_count": 0,
        }
        assert [(step["layer"], step["ended"]) for step in trace] == [
            ("passes", "passed"),
            ("raises", "error"),
            ("unsure", "held"),
            ("sure", "accepted"),
        ]
        assert set(trace[0]) == {"layer", "kind", "ended", "elapsed_us"}
        assert trace[1]["reasons"] == [{"code": "raises.error", "text": "ValueError: no"}]
        assert [reason["code"] for reason in trace[2]["reasons"]] == ["a.b", "gate.held"]
        assert trace[2]["verdict"] == {
            "routes": ["dear"],
            "confidence": 0.2,
            "margin": 0.0,
            "scores": {},
            "decisive": False,
        }
        assert trace[2]["gate"]["confidence"] == 0.5
        assert trace[3]["verdict"]["confidence"] == 0.9
        assert "reasons" not in trace[3], "they stand at the top"
        assert all(step["elapsed_us"] >= 0 and step["kind"] == "testing.v1" for step in trace)

    def test_calibrated_is_the_deciding_layers_word(self) -> None:
        fitted = ScriptedLayer([Verdict(("dear",), 0.9, calibrated=True)])
        assert router(fitted).route_sync("x").calibrated
        assert not router(place(fitted, gate=Gate(1.0))).route_sync("x").calibrated

    def test_evidence_is_rendered_on_demand_and_once(self) -> None:
        rendered = []

        def explain(verdict: Verdict) -> tuple[Reason, ...]:
            rendered.append(verdict)
            return (Reason("toy.saw", f"{verdict.evidence[0]}"),)

        layer = ScriptedLayer([Verdict(("dear",), 0.9, evidence=(7,))], explain=explain)
        decision = router(layer).route_sync("x")
        assert rendered == []
        assert decision.reasons == decision.reasons == (Reason("toy.saw", "7"),)
        assert decision.json()
        assert len(rendered) == 1

    @pytest.mark.parametrize("name", SHIPPED)
    def test_every_shipped_decision_can_be_written_and_says_why(self, name: str) -> None:
        layer = load(name, config="")
        for label, query in hostile_queries(layer.profile.routes if layer.profile.ordered else ()).items():
            decision = layer.route_sync(query)
            form = decision.to_dict()
            assert form["reasons"], label
            assert all("." in reason["code"] and reason["text"] for reason in form["reasons"]), label
            assert form["route"] in layer.profile.routes


def split_on_and(reading: Reading) -> tuple[Part, ...]:
    pieces = reading.words.split(" and ")
    return tuple(Part("part", Query(piece)) for piece in pieces) if len(pieces) > 1 else ()


def by_length(reading: Reading) -> Verdict | None:
    return Verdict((ROUTES[len(reading.words) % 3],), 0.4 + len(reading.words) % 5 / 10)


NETWORK: dict[str, list[object]] = {
    "verdict": [Verdict(("dear",), 0.9)],
    "held": [Verdict(("dear",), 0.1)],
    "passes": [None],
    "raises": [OSError("reset")],
    "garbage": ["rubbish"],
    "stalls": [Stall(30)],
    "breaker": [Fault("breaker", "open")],
    "fickle": [Verdict(("dear",), 0.9), None, OSError("reset"), Verdict(("cheap",), 0.6)],
}


class TestReplay:
    @pytest.mark.parametrize("name", SHIPPED)
    def test_local_layers_decide_the_same_again(self, name: str) -> None:
        layer = load(name, config="")
        for query in (*hostile_queries().values(), Query("x", session="s", tenant="t")):
            decision = layer.route_sync(query)
            again = layer.replay(decision)
            assert again == decision
            assert again.reasons == decision.reasons

    @pytest.mark.parametrize("script", NETWORK.values(), ids=NETWORK.keys())
    def test_network_layers_answer_as_they_did_then(self, script: list[object]) -> None:
        network = ScriptedNetworkLayer(script)
        layers = [place(by_length, "local", gate=Gate(0.75)), place(network, "llm", gate=Gate(0.5), deadline_ms=30)]
        one = router(*layers, fallback=Fallback("cheap", held=0.5))

        async def route_all() -> list[Decision]:
            return [await one.route(text) for text in ("a", "ab", "abc", "abcd", "abcde")]

        for decision in asyncio.run(route_all()):
            asked = len(network.calls)
            assert one.replay(decision) == decision
            assert len(network.calls) == asked

    @pytest.mark.parametrize("script", NETWORK.values(), ids=NETWORK.keys())
    def test_compound_questions_too(self, script: list[object]) -> None:
        layers = [
            place(by_length, "local", gate=Gate(0.75)),
            place(ScriptedNetworkLayer(script), "llm", gate=Gate(0.5), deadline_ms=30),
        ]
        one = router(*layers, split=split_on_and)
        decision = asyncio.run(one.route("a and ab and abc and abcd"))
        assert len(decision.parts) == 4
        assert one.replay(decision) == decision
        for part in decision.parts:
            assert one.replay(part) == part

    def test_a_decision_made_without_the_network_stays_so(self) -> None:
        one = router(place(ScriptedNetworkLayer([Verdict(("dear",), 0.9)]), "llm"))
        decision = one.route_sync("x")
        assert one.replay(decision) == decision

    def test_declared_ceiling_and_turns_are_part_of_the_query(self) -> None:
        one = load("tiers", config="")
        for query in (
            Query("hello", declared="reasoning"),
            Query("prove the theorem step by step", ceiling="SIMPLE"),
            Query(turns=(Turn("system", "x"), Turn("user", "hello"))),
            Query(""),
        ):
            decision = one.route_sync(query)
            assert one.replay(decision) == decision

    def test_another_profile_is_refused_and_both_are_named(self) -> None:
        theirs, ours = load("study", config=""), load("tiers", config="")
        with pytest.raises(ReplayMismatch) as caught:
            ours.replay(theirs.route_sync("define entropy"))
        message = str(caught.value)
        assert theirs.profile.hash in message
        assert ours.profile.hash in message
        assert "load that one" in message

    def test_a_profile_loaded_again_will_do(self) -> None:
        decision = load("study", config="").route_sync("define entropy")
        assert load("study", config="").replay(decision) == decision


class TestCounterfactuals:
    def test_what_a_decision_hangs_on(self) -> None:
        one = load("study-seed", config="")
        decision = one.route_sync("Define macroeconomics")
        (found,) = one.counterfactuals(decision)
        assert (found.signal, found.route) == ("signals.definition", "general_contextual")
        assert found.text == f"would be general_contextual ({found.confidence:.2f}) without signals.definition"

    def test_an_override_can_be_left_out(self) -> None:
        one = unlearnt("tiers")
        decision = one.route_sync("prove the theorem, and derive it formally")
        assert (decision.route, decision.reasons[0].code) == ("REASONING", "override.reasoning")
        assert "override.reasoning" in {found.signal for found in one.counterfactuals(decision)}

    def test_a_measure_can_be_left_out(self) -> None:
        one = unlearnt("tiers")
        decision = one.route_sync("ok? " * 200)
        codes = {reason.code for reason in decision.reasons}
        assert "signals.questionComplexity" in codes
        assert all(found.signal in codes for found in one.counterfactuals(decision))

    @pytest.mark.parametrize("name", SHIPPED)
    def test_they_are_true(self, name: str) -> None:
        """Each names a reason of the decision and another route than the one chosen."""
        one = load(name, config="")
        for text in ORDINARY.values():
            decision = one.route_sync(text)
            codes = {reason.code for step in decision.steps for reason in step.reasons}
            for found in one.counterfactuals(decision):
                assert found.signal in codes
                assert found.route != decision.route

    def test_nothing_hangs_on_anything_when_no_layer_looks_at_signals(self) -> None:
        one = router()
        assert list(one.counterfactuals(one.route_sync("x"))) == []

    def test_network_layers_are_not_asked_again(self) -> None:
        layer = ScriptedNetworkLayer([Verdict(("dear",), 0.9, reasons=(Reason("llm.said", "x"),))])
        one = router(layer)
        decision = asyncio.run(one.route("x"))
        assert list(one.counterfactuals(decision)) == []
        assert len(layer.calls) == 1

    def test_a_compound_question_hangs_on_what_its_parts_hang_on(self) -> None:
        study = load("study-seed", config="")
        one = Router(replace(study.profile, split=split_on_and))
        decision = one.route_sync("Define macroeconomics and summarize the main argument")
        assert len(decision.parts) == 2
        assert "signals.definition" in {found.signal for found in one.counterfactuals(decision)}


@pytest.mark.parametrize("profile", SHIPPED)
def test_a_profile_is_forgotten_with_its_router(profile: str) -> None:
    """Verdicts keep their reasons with their layer and layers keep verdicts: a reload must not keep all of them."""
    router = load(profile, config="")
    layer = weakref.ref(router.profile.layers[-1].call or router.profile.layers[-2].call)
    router.route_sync("what is the capital of France?").json()
    assert layer() is not None
    del router
    gc.collect()
    assert layer() is None
