"""Corners where a layer, or what it leaves behind, could still take a decision down.

Most of these are known bugs; each is one short example.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from turnout import Decision, Gate, Reading, Reason, Verdict, kind, load
from turnout.core import registry
from turnout.core.registry import kinds
from turnout.layers.declared import DeclaredConfig
from turnout.testing import PassLayer, ScriptedLayer, make_router, place

GOOD = Verdict(("second",), 0.9)


def decide(layer: Any, text: str = "x") -> Decision:
    return make_router([place(layer, "one")]).route_sync(text)


class Unprintable(Exception):
    """An error that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def test_an_error_that_cannot_be_shown_is_a_fault() -> None:
    assert decide(ScriptedLayer([Unprintable()])).outcome == "Fe"


def raises_its_text(reading: Reading) -> None:
    raise ValueError(reading.words)


def test_an_error_with_half_a_character_can_be_written() -> None:
    assert decide(raises_its_text, "what is \ud800?").json()


def test_an_error_does_not_carry_the_question_along() -> None:
    assert len(decide(raises_its_text, "secret " * 10_000).json()) < 5000


def test_a_reason_with_half_a_character_can_be_written() -> None:
    assert decide(ScriptedLayer([Verdict(("second",), 0.9, reasons=(Reason("toy.x", "\ud800"),))])).json()


def test_an_explain_that_raises_does_not_take_the_decision_down() -> None:
    def explain(verdict: Verdict) -> tuple[Reason, ...]:
        raise ValueError("no")

    decision = decide(ScriptedLayer([GOOD], explain=explain))
    assert decision.reasons
    assert decision.json()


class Speechless:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "told", [None, 7, "words", (None,), ("words",), [Speechless()], Speechless(), (Reason("toy.x", 5),), {"toy.x": "y"}]
)
def test_an_explain_that_returns_no_reasons_is_an_error_of_its_own(told: Any) -> None:
    given = Verdict(("second",), 0.9, reasons=(Reason("toy.given", "half a character: \ud800"),))
    decision = decide(ScriptedLayer([given], explain=lambda verdict: told))
    assert [reason.code for reason in decision.reasons] == ["toy.given", "explain.error"]
    assert decision.reasons[1].text.startswith("one cannot explain itself: ")
    assert decision.json()


@pytest.mark.parametrize("field", ["routes", "confidence", "margin"])
def test_a_verdict_with_a_value_that_has_no_repr_is_invalid(field: str) -> None:
    fields: dict[str, Any] = {"routes": ("second",), "confidence": 0.9, field: Speechless()}
    decision = decide(ScriptedLayer([Verdict(**fields)]))
    assert decision.outcome == "Fi"
    assert decision.json()


def test_a_splitter_or_adjustment_that_returns_a_value_without_repr_changes_nothing() -> None:
    router = make_router(
        [place(ScriptedLayer([GOOD]), "one")],
        split=lambda reading: Speechless(),  # type: ignore[arg-type,return-value]
        adjust=(lambda reading, routes: Speechless(),),  # type: ignore[arg-type,return-value]
    )
    decision = router.route_sync("x")
    assert decision.routes == GOOD.routes
    assert [reason.code for reason in decision.remarks] == ["adjust.error", "split.error"]


def test_an_explain_may_return_a_list() -> None:
    decision = decide(ScriptedLayer([GOOD], explain=lambda verdict: [Reason("toy.x", "x")]))
    assert decision.reasons == (Reason("toy.x", "x"),)


def test_two_layers_with_one_verdict_explain_it_each_in_its_way() -> None:
    verdict = Verdict(("second",), 0.1, evidence=(1,))
    one = ScriptedLayer([verdict], explain=lambda verdict: (Reason("one.saw", "x"),))
    two = ScriptedLayer([verdict], explain=lambda verdict: (Reason("two.saw", "x"),))
    decision = make_router([place(one, "one", gate=Gate(0.5)), place(two, "two")]).route_sync("x")
    assert [step.reasons[0].code for step in decision.steps] == ["one.saw", "two.saw"]


def test_a_layer_may_have_attributes_of_its_own() -> None:
    class Layer:
        needs = ("a graphics card",)

        def __call__(self, reading: Reading) -> Verdict:
            return GOOD

    assert decide(Layer()).by == "one"


class TestPlugIns:
    @pytest.fixture(autouse=True)
    def _own_kinds(self) -> Iterator[None]:
        before = dict(kinds())
        yield
        registry._kinds.clear()
        registry._kinds.update(before)

    def test_a_broken_package_says_so_every_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Entry:
            name = "broken"

            def load(self) -> None:
                raise ImportError("no module named 'gone'")

        monkeypatch.setattr(registry.metadata, "entry_points", lambda group: [Entry()])
        monkeypatch.setattr(registry, "_discovered", [])
        monkeypatch.setattr(registry, "_broken", {})
        for _ in range(2):
            # A profile that does not use it loads all the same, and says what is missing.
            (remark,) = [remark for remark in load("study", config="").profile.remarks if "broken" in remark]
            assert "no module named 'gone'" in remark

    def test_two_packages_cannot_provide_one_kind(self) -> None:
        with pytest.raises(ValueError, match=r"declared\.v1"):

            @kind("declared.v1", cost="free")
            def impostor(config: DeclaredConfig) -> PassLayer:
                return PassLayer()
