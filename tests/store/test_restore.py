"""A decision out of the log is the decision that went in: as its row says, and decided again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from toml_router import router_of
from turnout import Decision, Query, QueryError, Reason, Turn, Verdict
from turnout.config.cases import read_cases
from turnout.config.load import shipped, shipped_file
from turnout.core import registry
from turnout.core.errors import StoreError
from turnout.core.layer import Layer
from turnout.core.query import NOT_KEPT, Reading
from turnout.store import Logged, Store, open_store
from turnout.store.redact import LEVELS
from turnout.store.restore import as_recorded, rebuilt, replayed, restore
from wild_text import router, texts

QUESTIONS = (
    Query("Define entropy"),
    Query("Prove step by step that sqrt(2) is irrational, then write a function that checks it"),
    Query("Will it rain in Paris, and who won the game?"),
    Query("If it rains in Paris, cancel the picnic and check the news"),
    Query("Everyone keeps talking about inflation. What is it?"),
    Query("What did I use of my quota, 80% or more?"),
    Query("Explain what complexity means in this definition on the far right"),
    Query("zxcv"),
    Query("   "),
    Query('Ünïcode 你好 😀 “quotes” \\ " \n lines'),
    Query("a\0b"),
    Query(turns=(Turn("user", "What is entropy?"), Turn("assistant", "Disorder."), Turn("user", "And of a gas?"))),
    Query("Prove the theorem step by step", ceiling="SIMPLE"),
    Query("hello", declared="COMPLEX"),
    Query("hello", declared="definition"),
    Query("who won, and will it rain?", session="chat", tenant="acme"),
    Query("x " * 5000),
)


def decided(name: str) -> Iterator[Decision]:
    """What a profile makes of them; a route or a ceiling it does not know it refuses."""
    for query in QUESTIONS:
        try:
            yield router(name).route_sync(query)
        except QueryError:
            continue


def fetched(store: Store, decision: Decision) -> tuple[Logged, list[Logged], dict[str, Any] | None]:
    records = store.records(decision.query.tenant or "")
    return records.get(decision.id), records.parts(decision.id), records.profile(decision.profile.hash)


def told(decision: Decision) -> tuple[object, ...]:
    """Everything a decision says but the evidence, which no row keeps."""
    steps = [(step.place.id, step.ended, step.elapsed_ns, step.reasons, step.fault) for step in decision.steps]
    stated = (decision.routes, decision.confidence, decision.margin, decision.by, decision.outcome)
    why = (decision.reasons, decision.remarks, dict(decision.scores), decision.policy, decision.calibrated)
    which = (decision.id, decision.elapsed_ns, decision.role, decision.then, steps)
    return (*stated, *why, *which, [told(part) for part in decision.parts])


@pytest.mark.parametrize("name", shipped())
def test_what_went_in_comes_out(name: str, store: Store) -> None:
    decisions = list(decided(name))
    assert len(decisions) > 12
    for decision in decisions:
        store.record(decision)
    for decision in decisions:
        row, parts, resolved = fetched(store, decision)
        recorded = as_recorded(row, parts)
        assert told(recorded) == told(decision)
        assert json.loads(recorded.json()) == json.loads(row.body)
        if "\0" in decision.query.text:
            continue
        assert recorded.query == decision.query
        assert recorded.json() == decision.json()
        again = replayed(row, resolved, parts)
        assert again == decision
        assert again.json() == decision.json()
        assert restore(row, parts, resolved).why_not == ""


@pytest.mark.parametrize("name", shipped())
def test_golden_cases_come_out_again(name: str, tmp_path: Path) -> None:
    path = shipped_file(name).parent / str(router(name).profile.resolved["cases"])
    decisions = [router(name).route_sync(case.query()) for case in list(read_cases(path))[::4]]
    with open_store(str(tmp_path / "cases.db")) as store:
        for decision in decisions:
            store.record(decision)
        for decision in decisions:
            row, parts, resolved = fetched(store, decision)
            assert told(as_recorded(row, parts)) == told(decision)
            assert replayed(row, resolved) == decision


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(str(tmp_path_factory.mktemp("wild") / "wild.db")) as store:
        yield store


@settings(max_examples=60, deadline=None)
@given(text=texts())
@pytest.mark.parametrize("name", ["sources", "tiers"])
def test_any_text_comes_out_as_it_was_judged(name: str, text: str, kept: Store) -> None:
    decision = router(name).route_sync(text)
    kept.record(decision)
    row, parts, resolved = fetched(kept, decision)
    recorded = as_recorded(row, parts)
    assert (recorded.routes, recorded.reasons, recorded.scores) == (decision.routes, decision.reasons, decision.scores)
    restored = restore(row, parts, resolved)
    assert restored.decision == decision or recorded.query != decision.query


def test_a_part_comes_out_on_its_own(store: Store) -> None:
    decision = router("sources").route_sync("If it rains in Paris, cancel the picnic and check the news")
    store.record(decision)
    assert [part.role for part in decision.parts] == ["condition", "remainder"]
    for part in decision.parts:
        row, parts, resolved = fetched(store, part)
        assert row.parent_id == decision.id
        assert told(as_recorded(row, parts)) == told(part)
        assert replayed(row, resolved) == part


class Level(NamedTuple):
    level: Any
    words: str
    reason: str


@pytest.mark.parametrize(
    "case",
    [
        Level("snippet", "Define entropy, and mail it to [email], then go on and on an", "definition (define)"),
        Level("hash", "", "signals.definition"),
        Level("off", "", "signals.definition"),
    ],
    ids=lambda case: case.level,
)
def test_what_was_not_kept_is_not_made_up(case: Level, tmp_path: Path) -> None:
    text = "Define entropy, and mail it to joe@example.org, then go on and on and on until nobody listens any more"
    decision = router("study").route_sync(Query(text, tenant="acme"))
    with open_store(str(tmp_path / "log.db"), text=case.level) as store:
        store.record(decision)
        row, parts, resolved = fetched(store, decision)
    restored = restore(row, parts, resolved)
    assert restored.why_not == f"its text was not kept (text = {case.level!r})"
    assert replayed(row, resolved) is None
    found = restored.decision
    assert found.reasons[0] == Reason("signals.definition", case.reason)
    assert [reason.code for reason in found.reasons] == [reason.code for reason in decision.reasons]
    assert (found.routes, found.scores) == (decision.routes, decision.scores)
    reading = found.profile.read(found.query)
    assert reading.words == case.words
    assert (NOT_KEPT in reading.notes) == (not case.words)
    # What only the profile knows is there all the same: layers that were not asked, bands, routes.
    assert [place.id for place in found.profile.layers] == [place.id for place in decision.profile.layers]
    assert found.profile.routes == decision.profile.routes
    assert "joe@" not in found.json().decode()


def test_every_level_is_in_the_table() -> None:
    assert {"full", "snippet", "hash", "off"} == set(LEVELS)


# --- decisions that cannot be made again


class Spoilt(NamedTuple):
    id: str
    why: str
    tree: dict[str, Any] | None = None
    row: dict[str, Any] | None = None


SPOILT = [
    Spoilt("no profile", "cannot build the profile", tree={}),
    Spoilt("a kind nobody has", "cannot build the profile", tree={"layers": [{"kind": "gone.v1"}]}),
    Spoilt("a key nobody knows", "cannot build the profile", tree={"nonsense": 1}),
    Spoilt("another hash", "cannot build the profile", tree={"deadline_ms": 123}),
    Spoilt("another confidence", "comes out differently", row={"confidence": 0.123}),
    Spoilt("another route", "comes out differently", row={"routes": ["general_contextual"]}),
    Spoilt("another layer", "comes out differently", row={"by": "nobody"}),
    Spoilt("another trace", "comes out differently", row={"trace": []}),
]


@pytest.mark.parametrize("case", SPOILT, ids=lambda case: case.id)
def test_a_decision_that_cannot_be_made_again_is_drawn_as_recorded(case: Spoilt, tmp_path: Path) -> None:
    decision = router("study").route_sync("Define entropy")
    with open_store(str(tmp_path / "log.db")) as store:
        store.record(decision)
        row, parts, resolved = fetched(store, decision)
    assert resolved is not None
    if case.row is not None:
        row = replace(row, body=json.dumps({**row.to_dict(), **case.row}))
    tree = {**resolved, **case.tree} if case.tree else resolved if case.tree is None else None
    restored = restore(row, parts, tree)
    assert case.why in restored.why_not
    assert replayed(row, tree, parts) is None
    assert restored.decision.id == decision.id


@pytest.mark.parametrize("field", [{"policy": {"warp": 9}}, {"trace": [{"layer": "x"}]}, {"outcome": None}])
def test_a_row_of_another_version_is_a_sentence(field: dict[str, Any], tmp_path: Path) -> None:
    decision = router("study").route_sync("Define entropy")
    with open_store(str(tmp_path / "log.db")) as store:
        store.record(decision)
        row, parts, resolved = fetched(store, decision)
    with pytest.raises(StoreError, match=f"decision {decision.id} was written by another version"):
        restore(replace(row, body=json.dumps({**row.to_dict(), **field})), parts, resolved)


# --- layers that ask a model


class Scripted(msgspec.Struct, frozen=True):
    """A model for tests, which says what the profile tells it to."""

    says: str = ""
    confidence: float = 0.9
    fails: str = ""


class Model:
    def __init__(self, config: Scripted) -> None:
        self.config = config

    async def __call__(self, reading: Reading) -> Verdict | None:
        config = self.config
        if config.fails == "slow":
            await asyncio.sleep(30)
        if config.fails:
            raise RuntimeError(config.fails)
        if not config.says:
            return None
        reasons = (Reason("model.said", f"the model says {config.says}"),)
        scores = {config.says: config.confidence}
        return Verdict((config.says,), config.confidence, 0.5, scores, reasons, evidence=("raw", 7), calibrated=True)

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        return (Reason("model.saw", f"it saw {len(verdict.evidence)} things"),)


def model_router(table: str, fallback: str = '{ route = "a", confidence = 0.4 }') -> Any:
    return router_of(
        f'name = "asking"\nroutes = ["a", "b"]\nfallback = {fallback}\ndeadline_ms = 2000\n[policy.a]\n[policy.b]\n'
        f'[[layers]]\nkind = "rules.v1"\n[[layers.rules]]\nid = "r"\nroute = "a"\nwhen = {{ any = ["stop"] }}\n'
        f'[[layers]]\nid = "model"\nkind = "scripted.v1"\naccept = {{ confidence = 0.7 }}\n{table}\n'
    )


@pytest.fixture
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_kinds", dict(registry.kinds()))

    @registry.kind("scripted.v1", cost="network", who="L")
    def scripted(config: Scripted) -> Layer:
        return Model(config)


class Asked(NamedTuple):
    id: str
    table: str
    outcome: str
    ended: str


ASKED = [
    Asked("accepted", 'says = "b"', "L-", "accepted"),
    Asked("held", 'says = "b"\nconfidence = 0.5', "Fl", "held"),
    Asked("held-text", 'says = "b"\nconfidence = 0.5\nheld_text = "meh ({confidence})"', "Fl", "held"),
    Asked("passed", "", "F-", "passed"),
    Asked("failed", 'fails = "boom"', "Fe", "error"),
    Asked("slow", 'fails = "slow"\ndeadline_ms = 30', "Ft", "timeout"),
    Asked("invalid", 'says = "c"', "Fi", "invalid"),
]


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_a_model_is_not_asked_twice(case: Asked, store: Store) -> None:
    asking = model_router(case.table)
    decision = asyncio.run(asking.route("go on"))
    assert (decision.outcome, decision.steps[-1].ended) == (case.outcome, case.ended)
    store.record(decision)
    row, parts, resolved = fetched(store, decision)
    recorded = as_recorded(row, parts)
    assert told(recorded) == told(decision)
    profile = rebuilt(resolved, row.profile_hash)
    assert profile is not None
    restored = restore(row, parts, resolved)
    assert restored.why_not == ""
    assert told(restored.decision) == told(decision)
    # No row keeps what a model saw; its verdict is the same in everything that was said of it.
    assert restored.decision.json() == decision.json()


@pytest.mark.usefixtures("_scripted")
def test_a_held_verdict_that_was_used_comes_out_as_one(store: Store) -> None:
    asking = model_router('says = "b"\nconfidence = 0.5', '{ route = "a", confidence = 0.4, held = 0.3 }')
    decision = asyncio.run(asking.route("go on"))
    assert (decision.outcome, decision.by) == ("Lh", "model")
    store.record(decision)
    row, parts, resolved = fetched(store, decision)
    for found in (as_recorded(row, parts), replayed(row, resolved, parts)):
        assert found is not None
        assert told(found) == told(decision)
        assert found.chosen is found.steps[-1]
        assert found.held is found.steps[-1]


@pytest.mark.usefixtures("_scripted")
def test_a_model_that_was_skipped_stays_skipped(store: Store) -> None:
    decision = model_router('says = "b"').route_sync("go on")
    assert decision.steps[-1].ended == "skipped"
    store.record(decision)
    row, parts, resolved = fetched(store, decision)
    assert replayed(row, resolved, parts) == decision


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_a_layer_that_is_gone_answers_as_it_did(
    case: Asked, opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = asyncio.run(model_router(f"optional = true\n{case.table}").route("go on"))
    store = opened()
    store.record(decision)
    monkeypatch.delitem(registry._kinds, "scripted.v1")
    row, parts, resolved = fetched(store, decision)
    restored = restore(row, parts, resolved)
    assert restored.why_not == ""
    # A layer that passed and one that is missing end alike; the missing one says so.
    if case.ended != "passed":
        assert told(restored.decision) == told(decision)
