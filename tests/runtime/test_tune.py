"""A profile with numbers moved decides as its TOML says, and what that changes of the log is counted as it is."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from old_rows import backdate
from stored_decisions import taught
from turnout import Query
from turnout.config.load import load_profile
from turnout.core.errors import ConfigError, QueryError
from turnout.core.profile import Profile
from turnout.core.router import Router
from turnout.core.verdict import Verdict
from turnout.runtime import effect as module
from turnout.runtime.effect import Effect, measure_effect, recorded_answers
from turnout.runtime.tune import find_knobs, read_changes, tune, write_changes
from turnout.store import open_store
from turnout.testing import ScriptedNetworkLayer, make_router, place

PROFILES = ("tiers", "study", "assist", "sources", "claims")
PROOF = "Prove the theorem formally, step by step"


@pytest.mark.parametrize("name", PROFILES)
def test_nothing_moved_is_the_same_profile(name: str) -> None:
    profile = load_profile(name, config="")
    knobs = find_knobs(profile)
    assert knobs
    said = {knob.path: f"{knob.value}" for knob in knobs}
    assert read_changes(knobs, said) == {}
    assert tune(name, write_changes(profile, name, {}), config="").hash == profile.hash


@pytest.mark.parametrize("name", PROFILES)
def test_every_knob_moves_something(name: str) -> None:
    profile = load_profile(name, config="")
    for knob in find_knobs(profile):
        value = knob.value + 0.03 if knob.value + 0.03 <= knob.high else knob.value - 0.03
        changes = read_changes([knob], {knob.path: str(value)})
        tuned = tune(name, write_changes(profile, name, changes), config="")
        assert tuned.hash != profile.hash, knob
        moved = {one.path: one.value for one in find_knobs(tuned)}
        assert math.isclose(moved[knob.path], value, abs_tol=1e-4), knob


@cache
def tiers() -> Profile:
    return load_profile("tiers", config="")


@given(st.lists(st.floats(0.0, 0.9), min_size=1, max_size=4))
def test_weights_add_up_whatever_is_moved(values: list[float]) -> None:
    profile = tiers()
    weights = [knob for knob in find_knobs(profile) if ".weight." in knob.path]
    changes = {knob.path: round(value, 4) for knob, value in zip(weights, values, strict=False)}
    if math.fsum(changes.values()) > 1.0:
        with pytest.raises(QueryError, match="leave room within 1"):
            write_changes(profile, "tiers", changes)
        return
    written = tomllib.loads(write_changes(profile, "tiers", changes)).get("layers", [{}])[-1].get("signals")
    if changes and written is not None:
        assert math.isclose(math.fsum(one["weight"] for one in written), 1.0, abs_tol=1e-6)
        assert all(one["weight"] >= 0.0 for one in written)


class Wrong(NamedTuple):
    id: str
    said: str
    error: str


@pytest.mark.parametrize(
    "case",
    [
        Wrong("words", "much", "is not a number"),
        Wrong("nan", "nan", "not between"),
        Wrong("beyond", "1.5", "not between"),
    ],
    ids=lambda case: case.id,
)
def test_what_is_no_value_is_said(case: Wrong) -> None:
    knob = find_knobs(load_profile("tiers", config=""))[0]
    with pytest.raises(QueryError, match=case.error):
        read_changes([knob], {knob.path: case.said})


def test_a_profile_that_cannot_be_is_refused() -> None:
    profile = load_profile("tiers", config="")
    with pytest.raises(ConfigError, match="must rise"):
        tune("tiers", write_changes(profile, "tiers", {"signals.edge.0": 0.3}), config="")


# --- the log


def test_network_layers_say_what_they_said(tmp_path: object) -> None:
    with open_store(f"{tmp_path}/log.db", config="") as store:
        store.record(decision := taught("second", "a question"))
        row = store.records().get(decision.id)
    answers = recorded_answers(row)
    assert [said.routes for said in answers["llm"] if isinstance(said, Verdict)] == [("second",)]
    layer = ScriptedNetworkLayer([Verdict(("first",), 0.9)])
    router = make_router([place(layer, "llm", who="L")])
    again = router.route_recorded(Query("a question"), answers)
    assert again.routes == ("second",)
    # Of one that was never asked nothing is made up.
    assert router.route_recorded(Query("a question"), {}).by == "fallback"


def test_what_would_change_is_counted(tmp_path: object) -> None:
    old = Router(load_profile("tiers", config=""))
    changes = {"student.accept.confidence": 1.0, "fallback.held": 1.0}
    new = Router(tune("tiers", write_changes(old.profile, "tiers", changes), config=""))
    questions = [f"{PROOF} {number}" for number in range(30)] + ["Hello there!"] * 10
    expected = sum(old.route_sync(text).routes != new.route_sync(text).routes for text in questions)
    assert expected > 0
    with open_store(f"{tmp_path}/log.db", config="") as store:
        for number, text in enumerate(questions):
            backdate(store, old.route_sync(text), 1_790_000_000_000 + number)
        backdate(store, old.route_sync("not kept"), 1_790_000_000_000, kept="hash", question=None)
        effect = Effect()
        measure_effect(store.records(), old, new, effect)
        assert (effect.rows, effect.unread, effect.changed, effect.ended) == (40, 1, expected, True)
        assert len(effect.changes) == min(expected, module.LISTED)
        assert sum(effect.pairs.values()) == expected
        bounded = Effect(most=7)
        measure_effect(store.records(), old, new, bounded)
        assert bounded.rows == 7
        stopped = Effect(stopped=True)
        measure_effect(store.records(), old, new, stopped)
        assert (stopped.rows, stopped.ended) == (0, True)
