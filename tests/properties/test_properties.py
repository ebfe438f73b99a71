"""What holds for every shipped profile and every text. TURNOUT_EXAMPLES asks for more examples, at night."""

import asyncio
import functools
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import turnout
from random_text import ascii_texts, hidden, router, texts
from toml_router import unlearnt
from turnout import Decision, Query, Reading, Router, Turn
from turnout.config.load import shipped

PROFILES = shipped()
# Not to the letter of a scorer that folds nothing: invisible characters and blanks are evidence there.
FOLDING = [name for name in PROFILES if router(name).profile.resolved.get("text", {}).get("fold") != "javascript"]
LOCAL = [name for name in PROFILES if all(place.cost != "network" for place in router(name).profile.layers)]
ORDERED = [name for name in PROFILES if router(name).profile.ordered]

# Of each profile. A property is tried on four at least: on 500 examples here, and on thousands in `make soak`.
EXAMPLES = int(os.environ.get("TURNOUT_EXAMPLES", "125"))
property_ = settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
of_few_profiles = settings(max_examples=4 * EXAMPLES, deadline=None, derandomize=True)
every_profile = pytest.mark.parametrize("name", PROFILES)

SURROGATES = "\ud800prove\udfff the theorem\ud83d"


def substance(decision: Decision) -> tuple[object, ...]:
    """What a decision says, without the question, ids and timings."""
    return (
        decision.routes,
        decision.confidence,
        decision.margin,
        decision.by,
        decision.outcome,
        decision.reasons,
        dict(decision.scores),
    )


def decide(router: Router, query: Query, muted: frozenset[str] = frozenset()) -> Decision:
    """The loop with the plainest driver there could be; `muted` signals are left out."""
    steps = router.steps(query, muted)
    try:
        place, reading = next(steps)
        while True:
            assert place.cost != "network"
            place, reading = steps.send((place.call(reading), 0))  # type: ignore[misc, arg-type]
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


def test_the_shipped_profiles_are_all_here() -> None:
    assert {"study", "study-seed", "tiers", "tiers-seed"} <= set(PROFILES)
    assert {"study", "tiers"} <= set(LOCAL)
    assert set(PROFILES) - set(FOLDING) == {"tiers-seed"}


# --- every text gets a decision -------------------------------------------------------------------------------------


@every_profile
@property_
@given(texts())
@example("")
@example("\x00")
@example(SURROGATES)
@example("👩\u200d💻" * 50)
@example("a\u0301" * 2000)
def test_is_total(name: str, text: str) -> None:
    decision = router(name).route_sync(text)
    profile = router(name).profile
    assert decision.query == Query(text)
    assert set(decision.routes) <= set(profile.routes)
    assert 0.0 <= decision.confidence <= 1.0
    assert decision.margin >= 0.0
    assert decision.by in {"fallback", "default", "parts"} | {place.id for place in profile.layers}
    assert re.fullmatch("[DRSKELACFN][-lteixkh]", decision.outcome)
    if len(decision.routes) == 1:
        assert decision.policy == profile.policies[decision.route]
    for step in decision.steps:
        if step.verdict is not None:
            assert 0.0 <= step.verdict.confidence <= 1.0
    assert decision.elapsed_ns > 0


@pytest.mark.alike(3)
@every_profile
@pytest.mark.parametrize(
    "piece", ["a", "prove it ", "é", "字", "😀", "\0", "\ud800", "\u200b", "\n", "\u0301"], ids=ascii
)
def test_is_total_at_a_megabyte(name: str, piece: str) -> None:
    text = piece * (2**20 // len(piece))
    decision = router(name).route_sync(text)
    assert decision.route in router(name).profile.routes
    assert decision.reasons


@every_profile
@property_
@given(st.lists(st.tuples(st.sampled_from(("user", "system", "assistant", "tool", "")), texts()), max_size=4))
def test_is_total_for_conversations(name: str, turns: list[tuple[str, str]]) -> None:
    decision = router(name).route_sync(Query(turns=tuple(Turn(role, text) for role, text in turns)))
    assert decision.route in router(name).profile.routes
    assert decision.reasons


@every_profile
@property_
@given(texts())
@example("")
def test_is_deterministic(name: str, text: str) -> None:
    once, again = router(name).route_sync(text), router(name).route_sync(text)
    assert once == again
    assert substance(once) == substance(again)
    assert once.id != again.id
    assert substance(fresh(name).route_sync(text)) == substance(once)


@functools.cache
def fresh(name: str) -> Router:
    """The same profile, loaded a second time."""
    return turnout.load(name, config="")


@every_profile
@property_
@given(texts())
@example("")
@example(SURROGATES)
def test_replays_to_the_same_decision(name: str, text: str) -> None:
    decision = router(name).route_sync(text)
    assert router(name).replay(decision) == decision
    assert fresh(name).replay(decision) == decision


@pytest.mark.parametrize("name", LOCAL)
@property_
@given(texts())
@example("")
@example("z" * 50_000)
def test_both_drivers_decide_alike(name: str, text: str) -> None:
    awaited = asyncio.run(router(name).route(text))
    sync = router(name).route_sync(text)
    assert awaited == sync
    assert substance(awaited) == substance(sync)


# --- every decision explains itself ---------------------------------------------------------------------------------

KEYS = {
    *("id", "profile", "profile_hash", "route", "routes", "confidence", "margin", "by", "outcome", "reasons", "policy"),
    *("trace", "scores", "parts", "elapsed_us"),
}


@every_profile
@property_
@given(texts())
@example("")
@example(SURROGATES)
def test_the_json_form_is_valid_and_complete(name: str, text: str) -> None:
    decision = router(name).route_sync(text)
    # Strict UTF-8, strict JSON: no surrogates, no NaN.
    data: dict[str, Any] = json.loads(decision.json().decode(), parse_constant=pytest.fail)
    assert set(data) >= KEYS
    assert (data["route"], data["routes"]) == (decision.route, list(decision.routes))
    assert (data["confidence"], data["margin"]) == (decision.confidence, decision.margin)
    assert (data["by"], data["outcome"]) == (decision.by, decision.outcome)
    assert (data["profile"], data["profile_hash"]) == (name, router(name).profile.hash)
    assert data["scores"] == dict(decision.scores)
    assert data["reasons"] == [{"code": reason.code, "text": reason.text} for reason in decision.reasons]
    assert data["policy"] == json.loads(msgspec.json.encode(decision.policy))
    assert [entry["layer"] for entry in data["trace"]] == [step.place.id for step in decision.steps]
    assert decision.to_dict() == data


CODE = re.compile(r"[a-z][A-Za-z0-9]*(?:\.[a-z0-9][A-Za-z0-9_-]*)+")


@every_profile
@property_
@given(texts())
@example("")
@example("🤔")
@example("z" * 500)
def test_every_decision_has_reasons_with_stable_codes(name: str, text: str) -> None:
    decision = router(name).route_sync(text)
    assert decision.reasons
    for reason in (*decision.reasons, *(reason for step in decision.steps for reason in step.reasons)):
        assert CODE.fullmatch(reason.code), reason.code
        assert reason.text.strip()


@every_profile
@property_
@given(texts())
def test_counterfactuals_name_another_route(name: str, text: str) -> None:
    decision = router(name).route_sync(text)
    for other in router(name).counterfactuals(decision):
        assert other.route in router(name).profile.routes
        assert other.routes != decision.routes
        assert decide(router(name), Query(text), frozenset((other.signal,))).routes == other.routes


def codes_of(name: str) -> Iterator[str]:
    for layer in router(name).profile.resolved["layers"]:
        for prefix, key in (("signals", "signals"), ("rule", "rules"), ("override", "overrides")):
            yield from (f"{prefix}.{entry['id']}" for entry in layer.get(key, ()))
    yield "signals.unheard-of"


@every_profile
@property_
@given(texts())
@example("")
@example("algorithm deploy, first a then b")
def test_muting_what_did_not_fire_changes_nothing(name: str, text: str) -> None:
    whole = router(name)
    decision = decide(whole, Query(text))
    reading = whole.profile.read(Query(text))
    said = {reason.code for step in decision.steps for reason in step.reasons}
    silent = frozenset(
        code
        for code in codes_of(name)
        if code not in said and whole.profile.mute(reading, frozenset((code,))).hits == reading.hits
    )
    assert substance(decide(whole, Query(text), silent)) == substance(decision)


# --- what must not matter -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FOLDING)
@property_
@given(hidden())
@example(("What is\r\nit", "What is\r\x00\nit"))
@example(("prove it", "\u202eprove\u202c \U000e0070it"))
@example(("", "\u200b"))
def test_invisible_characters_change_nothing(name: str, pair: tuple[str, str]) -> None:
    text, changed = pair
    assert substance(router(name).route_sync(changed)) == substance(router(name).route_sync(text))


@every_profile
@property_
@given(ascii_texts())
@example("WHAT IS 2+2? prove IT Step By Step")
def test_case_changes_nothing(name: str, text: str) -> None:
    decision = substance(router(name).route_sync(text))
    assert substance(router(name).route_sync(text.swapcase())) == decision
    assert substance(router(name).route_sync(text.upper())) == decision


def blanks(draw: st.DrawFn, text: str) -> str:
    """The text with more blanks wherever it has some, and around it."""
    more = st.sampled_from((" ", "  ", "\t", "   "))
    return draw(more) + re.sub("[ \t]", lambda blank: blank[0] + draw(more), text) + draw(more)


@pytest.mark.parametrize("name", FOLDING)
@property_
@given(st.data(), st.one_of(texts(), ascii_texts()))
def test_extra_blanks_change_nothing_but_the_length(name: str, data: st.DataObject, text: str) -> None:
    """Of what a profile says itself: to what was learnt, how long a text is and how its lines stand is evidence."""
    read = router(name).profile.read
    wider = blanks(data.draw, text)
    before, after = read(Query(text)), read(Query(wider))
    assert after.hits == before.hits
    assert after.blank == before.blank
    measured = any("measure" in signal for signal in signals_of(name))
    if not measured:
        assert substance(unlearnt(name).route_sync(wider)) == substance(unlearnt(name).route_sync(text))
    else:
        # The length is evidence here; muted, and away from the overrides that read it, nothing else may change.
        assume((before.units > 300) == (after.units > 300))
        muted = frozenset(f"signals.{signal['id']}" for signal in signals_of(name) if "measure" in signal)
        first, second = (decide(unlearnt(name), Query(question), muted) for question in (text, wider))
        assert substance(first) == substance(second)


def signals_of(name: str) -> Iterator[dict[str, Any]]:
    for layer in router(name).profile.resolved["layers"]:
        yield from layer.get("signals", ())


# --- profiles built from the shipped ones ---------------------------------------------------------------------------


class NothingToSay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


@turnout.kind("test-pass-only.v1", cost="free")
def pass_only(_config: NothingToSay) -> Callable[[Reading], None]:
    return lambda _reading: None


Build = Callable[..., Router]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Routers of small files, each loaded once."""
    folder: Path = tmp_path_factory.mktemp("profiles")

    @functools.cache
    def build(source: str) -> Router:
        file = folder / f"p{len(list(folder.iterdir()))}.toml"
        file.write_text(source, encoding="utf-8")
        return turnout.load(file, config="")

    return build


def to_toml(value: object) -> str:
    """Plain data as TOML on one line."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{json.dumps(key)} = {to_toml(item)}" for key, item in value.items()) + " }"
        case list() | tuple():
            return f"[{', '.join(to_toml(item) for item in value)}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def whole_file(name: str, at: int, extra: dict[str, Any]) -> str:
    """The resolved profile as one file, with one more layer in some place."""
    tree = {key: value for key, value in router(name).profile.resolved.items() if key not in ("extends", "cases")}
    tree["layers"] = [*tree["layers"][:at], extra, *tree["layers"][at:]]
    return "\n".join(f"{json.dumps(key)} = {to_toml(value)}" for key, value in tree.items())


def extension(name: str, *layers: dict[str, Any]) -> str:
    return f"extends = {json.dumps(name)}\nlayers = {to_toml(layers)}\n"


@functools.cache
def with_a_silent_layer(name: str) -> list[str]:
    """The profile with a layer more: laid over it, which puts the layer last, and written out with it at each place."""
    extra = {"id": "silent", "kind": "test-pass-only.v1"}
    last = len(router(name).profile.layers)
    return [extension(name, extra), *(whole_file(name, at, extra) for at in (0, last // 2, last))]


@functools.cache
def with_gates(name: str, what: str) -> dict[str, list[str]]:
    """For each layer that has a gate: the profile with that gate raised, step by step."""
    gated = [layer for layer in router(name).profile.resolved["layers"] if "accept" in layer]
    return {
        layer["id"]: [
            extension(name, {"id": layer["id"], "kind": layer["kind"], "accept": {**layer["accept"], what: gate}})
            for gate in GATES
        ]
        for layer in gated
    }


@every_profile
@property_
@given(texts())
@example("")
def test_a_layer_that_only_passes_changes_nothing(name: str, build: Build, text: str) -> None:
    plain = router(name).route_sync(text)
    for source in with_a_silent_layer(name):
        longer = build(source).route_sync(text)
        assert substance(longer) == substance(plain)
        heard = [(step.place.id, step.ended, step.verdict) for step in longer.steps if step.place.id != "silent"]
        assert heard == [(step.place.id, step.ended, step.verdict) for step in plain.steps]
        assert all(step.ended == "passed" for step in longer.steps if step.place.id == "silent")


GATES = (0.0, 0.4, 0.6, 0.7, 0.75, 0.85, 0.95, 1.0)


@pytest.mark.alike(2)
@pytest.mark.parametrize("name", [name for name in PROFILES if name != "sources"])  # it has no gate to raise
@pytest.mark.parametrize("what", ["confidence", "margin"])
@property_
@given(texts())
@example("")
@example("What is complexity in this context?")
def test_raising_a_gate_never_raises_acceptance(name: str, what: str, build: Build, text: str) -> None:
    gated = with_gates(name, what)
    assert gated
    for layer, sources in gated.items():
        accepted = [
            any(step.place.id == layer and step.ended == "accepted" for step in build(source).route_sync(text).steps)
            for source in sources
        ]
        assert accepted == sorted(accepted, reverse=True)


@pytest.mark.parametrize("name", ORDERED)
@of_few_profiles
@given(texts(), st.data())
def test_a_ceiling_is_never_exceeded(name: str, text: str, data: st.DataObject) -> None:
    routes = router(name).profile.routes
    ceiling = data.draw(st.sampled_from(routes))
    declared = data.draw(st.one_of(st.none(), st.sampled_from(routes)))
    decision = router(name).route_sync(Query(text, ceiling=ceiling, declared=declared))
    free = router(name).route_sync(Query(text, declared=declared))
    assert all(routes.index(route) <= routes.index(ceiling) for route in decision.routes)
    lowered = routes.index(free.route) > routes.index(ceiling)
    assert decision.route == (ceiling if lowered else free.route)
    assert ("clamp.ceiling" in {reason.code for reason in decision.reasons}) == lowered
    assert (decision.outcome[1] == "k") == lowered
