"""Kinds: registered by name, found through entry points, built from typed config."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from turnout import Supplies, kind
from turnout.core import registry
from turnout.core.registry import kinds
from turnout.testing import PassLayer


class ToyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    size: int = 1


@pytest.fixture(autouse=True)
def _own_kinds() -> Iterator[None]:
    before = dict(kinds())
    yield
    registry._kinds.clear()
    registry._kinds.update(before)


class Phrases:
    def add(self, pattern: Any, code: str) -> int:
        return 0


SUPPLIES = Supplies(("first", "second"), Phrases())


def test_the_shipped_kinds_are_known() -> None:
    assert {"declared.v1", "rules.v1", "signals.v1"} <= set(kinds())
    assert {name: found.who for name, found in kinds().items() if name.endswith(".v1")} | {
        "declared.v1": "D",
        "rules.v1": "R",
        "signals.v1": "S",
    } == {name: found.who for name, found in kinds().items() if name.endswith(".v1")}


def test_a_factory_may_ask_for_supplies_or_not() -> None:
    asked = []

    @kind("toy.v1", cost="cpu", who="K")
    def with_supplies(config: ToyConfig, supplies: Supplies) -> PassLayer:
        asked.append((config, supplies))
        return PassLayer()

    @kind("toy.v2", cost="network")
    def without(config: ToyConfig) -> PassLayer:
        asked.append((config, None))
        return PassLayer()

    found = kinds()["toy.v1"]
    assert (found.name, found.cost, found.who, found.config) == ("toy.v1", "cpu", "K", ToyConfig)
    found.build(ToyConfig(2), SUPPLIES)
    kinds()["toy.v2"].build(ToyConfig(3), SUPPLIES)
    assert asked == [(ToyConfig(2), SUPPLIES), (ToyConfig(3), None)]


def test_the_decorator_leaves_the_factory_as_it_is() -> None:
    @kind("toy.v1", cost="free")
    def factory(config: ToyConfig) -> PassLayer:
        """What it is."""
        return PassLayer()

    assert factory.__doc__ == "What it is."
    assert isinstance(factory(ToyConfig()), PassLayer)


def test_entry_points_are_imported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    class Entry:
        def load(self) -> None:
            loaded.append(self)

    def entry_points(group: str) -> list[Entry]:
        assert group == "turnout.layers"
        return [Entry()]

    monkeypatch.setattr(registry.metadata, "entry_points", entry_points)
    monkeypatch.setattr(registry, "_discovered", [])
    kinds()
    kinds()
    assert len(loaded) == 1
