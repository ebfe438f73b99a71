"""What a layer may provide: defaults for who inherits them, and plain callables adapted once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from turnout import Layer, Reading, Reason, Verdict
from turnout.core.layer import MissingLayer, PlainLayer, adapt
from turnout.core.model import Demand
from turnout.core.query import Query
from turnout.testing import make_reading, place

VERDICT = Verdict(("first",), 0.5)
REASONS = (Reason("toy.because", "because"),)
DEMAND = Demand("classifier", 1, 2, 3)


def plain(reading: Reading) -> Verdict:
    return VERDICT


async def coroutine(reading: Reading) -> Verdict:
    return VERDICT


class AwaitedLayer:
    async def __call__(self, reading: Reading) -> Verdict:
        return VERDICT


class Generous:
    """Has all of the protocol without inheriting from it."""

    cost = "network"
    judges_by = "notes"
    absent = "on leave"
    artefact = "1234"
    undeclared = frozenset({"auto"})

    def __call__(self, reading: Reading) -> Verdict:
        return VERDICT

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        return REASONS

    elaborate = explain

    def demand(self, query: Query) -> Demand:
        return DEMAND

    def validate(self, declared: str) -> None:
        raise ValueError(declared)


class ConfusedLayer:
    cost = "cheap"
    judges_by = "mood"
    explain = None

    def __call__(self, reading: Reading) -> Verdict:
        return VERDICT


class Inherits(Layer):
    def __call__(self, reading: Reading, /) -> Verdict:
        return VERDICT


class InheritsAwaited(Layer):
    async def __call__(self, reading: Reading, /) -> Verdict:
        return VERDICT


class Case(NamedTuple):
    id: str
    layer: Callable[[Reading], Any]
    awaits: bool = False


BARE = [
    Case("function", plain),
    Case("coroutine function", coroutine, awaits=True),
    Case("coroutine object", AwaitedLayer(), awaits=True),
    Case("what it cannot be", ConfusedLayer()),
    Case("inherits", Inherits()),
    Case("inherits, awaited", InheritsAwaited(), awaits=True),
]


@pytest.mark.parametrize("case", BARE, ids=lambda case: case.id)
def test_what_is_not_provided_has_a_default(case: Case) -> None:
    layer = adapt(case.layer)
    assert (layer.cost, layer.judges_by, layer.absent, layer.artefact, layer.undeclared) == (
        None,
        None,
        "",
        None,
        set(),
    )
    assert (layer.explain(VERDICT), layer.elaborate(VERDICT), layer.demand(Query("x"))) == ((), (), None)
    layer.validate("anything")
    assert layer.awaits is case.awaits
    assert place(case.layer).cost == ("network" if case.awaits else "free")


def test_a_layer_is_itself_and_a_callable_is_adapted_once() -> None:
    layer = Inherits()
    assert adapt(layer) is layer
    adapted = adapt(plain)
    assert type(adapted) is PlainLayer
    assert adapt(adapted) is adapted
    assert adapted(make_reading("x")) is VERDICT


def test_a_callable_keeps_what_it_provides() -> None:
    layer = adapt(Generous())
    assert (layer.cost, layer.judges_by, layer.absent, layer.artefact) == ("network", "notes", "on leave", "1234")
    assert (layer.explain(VERDICT), layer.elaborate(VERDICT), layer.demand(Query("x"))) == (REASONS, REASONS, DEMAND)
    assert layer.undeclared == {"auto"}
    with pytest.raises(ValueError, match="maybe"):
        layer.validate("maybe")


def test_an_absent_layer_passes_and_says_why() -> None:
    layer = MissingLayer("no model fills the slot")
    assert (layer.absent, layer(make_reading("x"))) == ("no model fills the slot", None)
