"""A decision out of the log is explained as it was when it was made, and nothing is decided for it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

import turnout
from random_text import router, texts
from toml_router import LOCAL, router_of
from turnout import Decision, Query, QueryError, Reason, Router, Turn, Verdict
from turnout.config.cases import read_cases
from turnout.config.load import shipped, shipped_file
from turnout.core import registry
from turnout.core.errors import StoreError
from turnout.core.profile import Layer
from turnout.core.query import Reading
from turnout.explain.explanation import Explanation, explain, explain_logged
from turnout.store import Logged, Store, open_store
from turnout.store.redact import LEVELS

SCHEMAS = Path(__file__).parent.parent / "store" / "schemas"
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
    Query(turns=(Turn("user", "What is entropy?"), Turn("assistant", "Disorder."), Turn("user", "And of a gas?"))),
    Query(
        turns=(
            Turn("system", "You are helpful."),
            Turn("user", "<system-reminder>\nfunction\n</system-reminder>\nWrite a function that sorts"),
        )
    ),
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


def fetched(store: Store, decision: Decision) -> tuple[Logged, Explanation]:
    records = store.records(decision.query.tenant or "")
    row = records.get(decision.id)
    return row, explain_logged(row, records.profile(row.profile_hash), records.patterns(row.profile_hash))


def as_logged(explained: Explanation) -> Explanation:
    """An explanation without what takes asking the layers again."""
    trace = tuple(replace(step, details=()) for step in explained.trace)
    parts = tuple(map(as_logged, explained.parts))
    return replace(explained, trace=trace, parts=parts, counterfactuals=None)


@pytest.mark.parametrize("name", shipped())
def test_what_went_in_comes_out(name: str, store: Store) -> None:
    decisions = list(decided(name))
    assert len(decisions) > 12
    for decision in decisions:
        store.record(decision)
    for decision in decisions:
        row, found = fetched(store, decision)
        assert found == as_logged(explain(decision))
        assert row.to_dict() == decision.to_dict()


@pytest.mark.parametrize("name", shipped())
def test_golden_cases_come_out_again(name: str, store: Store) -> None:
    path = shipped_file(name).parent / str(router(name).profile.resolved["cases"])
    decisions = [router(name).route_sync(case.query()) for case in list(read_cases(path))[::8]]
    for decision in decisions:
        store.record(decision)
    for decision in decisions:
        assert fetched(store, decision)[1] == as_logged(explain(decision))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(str(tmp_path_factory.mktemp("wild") / "wild.db"), config="") as store:
        yield store


@settings(max_examples=60, deadline=None)
@given(text=texts())
@pytest.mark.parametrize("name", ["sources", "tiers"])
def test_any_text_comes_out_as_it_was_judged(name: str, text: str, kept: Store) -> None:
    decision = router(name).route_sync(text)
    kept.record(decision)
    row, found = fetched(kept, decision)
    assert (found.routes, found.reasons, found.hits) == (decision.routes, decision.reasons, decision.hits)
    if row.question == text:
        assert found == as_logged(explain(decision))


def test_nothing_is_decided(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = router("tiers").route_sync("Write a function that returns JSON and a test for it")
    expected = as_logged(explain(decision))
    store.record(decision)

    def decide(*_: object) -> None:
        raise AssertionError("a logged decision is not made again")

    monkeypatch.setattr(Router, "steps", decide)
    monkeypatch.setattr("turnout.config.resolve.build", decide)
    assert fetched(store, decision)[1] == expected


def test_a_part_comes_out_on_its_own(store: Store) -> None:
    decision = router("sources").route_sync("If it rains in Paris, cancel the picnic and check the news")
    store.record(decision)
    assert [part.role for part in decision.parts] == ["condition", "remainder"]
    for part, whole in zip(decision.parts, explain(decision).parts, strict=True):
        row, found = fetched(store, part)
        assert row.parent_id == decision.id
        assert found == as_logged(whole)


def test_without_its_profile_it_says_what_the_row_says(store: Store) -> None:
    decision = turnout.load(LOCAL, config="").route_sync("Write a function that returns JSON")
    store.record(decision)
    row, found = fetched(store, decision)
    bare = explain_logged(row)
    assert [step.layer for step in bare.trace] == [step.place.id for step in decision.steps]
    assert bare.question.excerpt == decision.query.text
    assert (bare.question.spans, found.question.spans != ()) == ((), True)
    assert [step.reasons for step in bare.trace] == [step.reasons for step in found.trace[: len(bare.trace)]]


# --- text that is not kept


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
    decision = router("study-seed").route_sync(Query(text, tenant="acme"))
    assert decision.hits
    with open_store(str(tmp_path / "log.db"), text=case.level, config="") as store:
        store.record(decision)
        row, found = fetched(store, decision)
    assert found.reasons[0] == Reason("signals.definition", case.reason)
    assert [reason.code for reason in found.reasons] == [reason.code for reason in decision.reasons]
    assert found.question.excerpt == case.words
    assert found.question.kept == bool(case.words)
    # Which phrases were found would tell the words; what a signal adds does not.
    assert (found.hits, found.question.spans) == ((), ())
    assert found.decider is not None
    assert found.decider.verdict is not None
    assert decision.chosen is not None
    assert decision.chosen.verdict is not None
    assert found.decider.verdict.adds == decision.chosen.verdict.adds
    # What only the profile knows is there all the same: the layers that were not asked.
    assert [step.layer for step in found.trace] == [place.id for place in decision.profile.layers]
    assert "joe@" not in row.body


def test_parts_of_what_was_not_kept(tmp_path: Path) -> None:
    decision = router("sources").route_sync("Will it rain in Paris, and who won the game?")
    with open_store(str(tmp_path / "log.db"), text="hash", config="") as store:
        store.record(decision)
        row, found = fetched(store, decision)
    assert [part.question.kept for part in found.parts] == [False, False]
    assert "Paris" not in row.body
    assert '"hits"' not in row.body


def test_every_level_is_in_the_table() -> None:
    assert {"full", "snippet", "hash", "off"} == set(LEVELS)


# --- rows of earlier versions


def as_before(form: dict[str, Any]) -> dict[str, Any]:
    """A decision's JSON form as version 0.1 wrote it."""
    form = {key: value for key, value in form.items() if key not in ("hits", "remark_count")}
    form["parts"] = [as_before(part) for part in form["parts"]]
    for step in form["trace"]:
        for field in ("adds", "calibrated"):
            step.get("verdict", {}).pop(field, None)
    return form


def told(explained: Explanation) -> tuple[object, ...]:
    """What is known of a row without its evidence."""
    steps = [(step.layer, step.ended, step.reasons, step.elapsed_us, step.score) for step in explained.trace]
    stated = (explained.routes, explained.confidence, explained.by, explained.outcome, explained.policy)
    words = (explained.question.excerpt, explained.question.earlier_turns, explained.role, explained.then)
    return (*stated, *words, explained.remarks, steps, [told(part) for part in explained.parts])


@pytest.mark.parametrize("name", shipped())
def test_rows_of_earlier_versions_give_each_layer_its_reasons(name: str, store: Store) -> None:
    for decision in decided(name):
        store.record(decision)
        row, found = fetched(store, decision)
        before = replace(row, body=json.dumps(as_before(row.to_dict())))
        resolved = store.records(row.tenant).profile(row.profile_hash)
        old = explain_logged(before, resolved)
        assert told(old) == told(found)
        assert old.question.spans == ()


def test_rows_that_an_earlier_version_wrote(tmp_path: Path) -> None:
    """The bodies in this file were written by the release that had schema 5."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SCHEMAS / "schema-0005.sql").read_text(encoding="utf-8"))
    with open_store(str(path), config="") as store:
        rows = [row for tenant in store.tenants() for row in store.records(tenant).decisions()]
        assert len(rows) >= 4
        for row in rows:
            records = store.records(row.tenant)
            assert records.patterns(row.profile_hash) == ()
            found = explain_logged(row, records.profile(row.profile_hash))
            assert (found.routes, found.by, found.outcome) == (row.routes, row.by, row.outcome)
            assert found.question.excerpt == row.question
            given = {reason.code for step in found.trace for reason in step.reasons}
            assert given | {remark.code for remark in found.remarks} >= {reason.code for reason in found.reasons}


@pytest.mark.parametrize("field", [{"policy": {"warp": 9}}, {"trace": [{"layer": "x"}]}, {"outcome": None}])
def test_a_row_of_another_version_is_a_sentence(field: dict[str, Any], store: Store) -> None:
    decision = router("study").route_sync("Define entropy")
    store.record(decision)
    row = store.records().get(decision.id)
    with pytest.raises(StoreError, match=f"decision {decision.id} was written by another version"):
        explain_logged(replace(row, body=json.dumps({**row.to_dict(), **field})))


# --- layers that ask a model


class ScriptedModel(msgspec.Struct, frozen=True):
    """A model for tests, which says what the profile tells it to."""

    says: str = ""
    confidence: float = 0.9
    fails: str = ""


class Model:
    def __init__(self, config: ScriptedModel) -> None:
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
    def scripted(config: ScriptedModel) -> Layer:
        return Model(config)


class AskedCase(NamedTuple):
    id: str
    table: str
    outcome: str
    ended: str


ASKED = [
    AskedCase("accepted", 'says = "b"', "L-", "accepted"),
    AskedCase("held", 'says = "b"\nconfidence = 0.5', "Fl", "held"),
    AskedCase("held-text", 'says = "b"\nconfidence = 0.5\nheld_text = "meh ({confidence})"', "Fl", "held"),
    AskedCase("passed", "", "F-", "passed"),
    AskedCase("failed", 'fails = "boom"', "Fe", "error"),
    AskedCase("slow", 'fails = "slow"\ndeadline_ms = 30', "Ft", "timeout"),
    AskedCase("invalid", 'says = "c"', "Fi", "invalid"),
]


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_what_a_model_said_comes_out(case: AskedCase, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = asyncio.run(model_router(case.table).route("go on"))
    assert (decision.outcome, decision.steps[-1].ended) == (case.outcome, case.ended)
    store.record(decision)
    expected = as_logged(explain(decision))
    # Whether the kind is still installed makes no difference to what was said.
    monkeypatch.delitem(registry._kinds, "scripted.v1")
    row, found = fetched(store, decision)
    assert found == expected
    assert found.trace[-1].held_text == ("meh (0.50)" if case.id == "held-text" else "")
    if found.trace[-1].verdict is not None:
        assert found.trace[-1].verdict.calibrated
    old = explain_logged(replace(row, body=json.dumps(as_before(row.to_dict()))))
    assert old.remarks == found.remarks


@pytest.mark.usefixtures("_scripted")
def test_a_held_verdict_that_was_used_comes_out_as_one(store: Store) -> None:
    asking = model_router('says = "b"\nconfidence = 0.5', '{ route = "a", confidence = 0.4, held = 0.3 }')
    decision = asyncio.run(asking.route("go on"))
    assert (decision.outcome, decision.by) == ("Lh", "model")
    store.record(decision)
    row, found = fetched(store, decision)
    assert found == as_logged(explain(decision))
    assert found.decider == found.trace[-1]
    assert [remark.code for remark in found.remarks] == ["held.used"]
    old = explain_logged(replace(row, body=json.dumps(as_before(row.to_dict()))))
    assert (old.remarks, old.trace[-1].reasons) == (found.remarks, found.trace[-1].reasons)


@pytest.mark.usefixtures("_scripted")
def test_a_model_that_was_skipped_stays_skipped(store: Store) -> None:
    decision = model_router('says = "b"').route_sync("go on")
    store.record(decision)
    found = fetched(store, decision)[1]
    assert (found.trace[-1].ended, found.trace[-1].fault) == ("skipped", "a network layer is not asked by route_sync")
