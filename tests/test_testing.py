"""The conformance suite catches each kind of bad layer and passes good ones; the doubles do as they are told."""

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec import Struct
from msgspec.structs import force_setattr

import turnout.testing
from turnout import Policy, Query, Reading, Reason, Turn, Verdict, kind
from turnout.config.cases import read_cases
from turnout.core import registry
from turnout.core.verdict import Fault
from turnout.testing import (
    ROUTES,
    Finding,
    PassLayer,
    ScriptedLayer,
    ScriptedNetworkLayer,
    Stall,
    check_layer,
    hostile_queries,
    layer_findings,
    load_cases,
    make_profile,
    make_reading,
    make_router,
    place,
)

REASON = (Reason("toy.because", "because"),)
GOOD = Verdict(("first",), 0.5, 0.1, {"first": 0.5}, REASON)


def answering(**changes: Any) -> Callable[[Reading], Verdict]:
    """A layer whose verdict has some fields replaced, with anything."""
    fields: dict[str, Any] = {"routes": ("first",), "confidence": 0.5, "reasons": REASON, **changes}
    return lambda reading: Verdict(**fields)


class ExplainedLayer:
    """A good layer whose reasons are rendered on demand."""

    def __call__(self, reading: Reading) -> Verdict | None:
        return Verdict(("second",), 1.0, evidence=(len(reading.folded),)) if "define" in reading.folded else None

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        return (Reason("toy.length", f"{verdict.evidence[0]} characters"),)


class Explaining:
    """A layer with this explain."""

    def __init__(self, explain: Callable[[Verdict], Any]) -> None:
        self.explain = explain

    def __call__(self, reading: Reading) -> Verdict:
        return Verdict(("first",), 0.5, evidence=(1,))


class NetworkLayer:
    async def __call__(self, reading: Reading) -> Verdict:
        await asyncio.sleep(0)
        return GOOD


class Fickle:
    """A layer with a memory."""

    def __init__(self) -> None:
        self.count = itertools.count()

    def __call__(self, reading: Reading) -> Verdict:
        return Verdict(("first",), 1 / (1 + next(self.count)), reasons=REASON)


class SharesScores:
    """A layer that gives the same dictionary to everybody, and goes on writing to it."""

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}

    def __call__(self, reading: Reading) -> Verdict:
        self.scores["first"] = float(reading.units)
        return Verdict(("first",), 0.5, 0.0, self.scores, REASON)


class OncePasses:
    """Passes on the first call, has an opinion later."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, reading: Reading) -> Verdict | None:
        self.calls += 1
        return GOOD if self.calls > 1 else None


class Uncopyable:
    def __eq__(self, other: object) -> bool:
        raise TypeError("ambiguous")

    __hash__ = object.__hash__


def writes_reading(reading: Reading) -> Verdict:
    force_setattr(reading, "notes", ("mine",))
    return GOOD


def writes_verdict(verdict: Verdict) -> tuple[Reason, ...]:
    force_setattr(verdict, "evidence", (2,))
    return REASON


def encodes(reading: Reading) -> Verdict:
    reading.words.encode()
    return GOOD


def quotes(reading: Reading) -> Verdict:
    return Verdict(("first",), 0.5, reasons=(Reason("toy.said", f"you said: {reading.words[:50]}"),))


def echoes(reading: Reading) -> Verdict:
    return Verdict(("first",), 0.5, reasons=(Reason("toy.said", f"you said: {reading.words!r}"),))


async def later(reading: Reading) -> Verdict:
    return GOOD


def promises(reading: Reading) -> Any:
    return later(reading)


class Good(NamedTuple):
    id: str
    layer: Any
    cost: Any = None


GOOD_LAYERS = [
    Good("pass", PassLayer()),
    Good("function", lambda reading: GOOD),
    Good("explained", ExplainedLayer()),
    Good("scripted", ScriptedLayer([GOOD])),
    Good("coroutine function", later),
    Good("coroutine object", NetworkLayer()),
    Good("awaitable", promises, "network"),
    Good("blocking network", lambda reading: GOOD, "network"),
    Good("network, declines", ScriptedNetworkLayer([Fault("breaker", "open")])),
    Good("network, fickle", ScriptedNetworkLayer([GOOD, None, Verdict(("second",), 0.1, reasons=REASON)])),
    Good("whole numbers", answering(confidence=1, margin=0)),
    Good("several routes", answering(routes=("first", "third"))),
]


@pytest.mark.alike(3)
@pytest.mark.parametrize("good", GOOD_LAYERS, ids=lambda good: good.id)
def test_a_good_layer_passes(good: Good) -> None:
    assert layer_findings(good.layer, cost=good.cost) == []
    check_layer(good.layer, cost=good.cost)


class Bad(NamedTuple):
    id: str
    layer: Any
    check: str
    message: str
    cost: Any = None


BAD_LAYERS = [
    Bad("raises", ScriptedLayer([ValueError("no")]), "raises", "ValueError: no"),
    Bad("raises on surrogates", encodes, "raises", "surrogates not allowed"),
    Bad("raises later", ScriptedLayer([*[GOOD] * 20, OSError("gone")]), "raises", "OSError: gone"),
    Bad("raises in a coroutine", ScriptedNetworkLayer([KeyError("x")]), "raises", "KeyError: 'x'"),
    Bad("cancels itself", ScriptedNetworkLayer([asyncio.CancelledError()]), "raises", "cancelled itself"),
    Bad("number", ScriptedLayer([0.7]), "type", "returned float, not a Verdict or None"),
    Bad("route name", ScriptedLayer(["first"]), "type", "returned str"),
    Bad("false", ScriptedLayer([False]), "type", "returned bool"),
    Bad("tuple", ScriptedLayer([(GOOD,)]), "type", "returned tuple"),
    Bad("fault", ScriptedLayer([Fault("error", "x")]), "type", "returned Fault"),
    Bad("coroutine", promises, "type", "awaitable"),
    Bad("coroutine, said to be local", later, "type", "awaitable", "free"),
    Bad("garbage from a coroutine", ScriptedNetworkLayer(["rubbish"]), "type", "returned str"),
    Bad("no routes", answering(routes=()), "verdict", "chose [], not routes of this profile"),
    Bad("one string", answering(routes="first"), "verdict", "chose 'first', not routes"),
    Bad("list of routes", answering(routes=["first"]), "verdict", "chose ['first'], not routes"),
    Bad("none", answering(routes=None), "verdict", "chose None"),
    Bad("unknown route", answering(routes=("first", "fourth")), "verdict", "chose ['first', 'fourth']"),
    Bad("route of another type", answering(routes=(1,)), "verdict", "chose [1]"),
    Bad("too sure", answering(confidence=1.0000001), "verdict", "confidence 1.0000001 is not between 0 and 1"),
    Bad("negative", answering(confidence=-0.1), "verdict", "confidence"),
    Bad("not a number", answering(confidence=float("nan")), "verdict", "confidence"),
    Bad("confidence in words", answering(confidence="high"), "verdict", "confidence"),
    Bad("true", answering(confidence=True), "verdict", "confidence"),
    Bad("no margin", answering(margin=None), "verdict", "margin"),
    Bad("negative margin", answering(margin=-1e-9), "verdict", "margin -1e-09 is not a number from 0 up"),
    Bad("endless margin", answering(margin=float("inf")), "verdict", "margin"),
    Bad("scores in a list", answering(scores=[1.0]), "verdict", "scores are not numbers by name"),
    Bad("score nan", answering(scores={"first": float("nan")}), "verdict", "scores are not numbers by name"),
    Bad("score beyond every float", answering(scores={"first": 10**400}), "verdict", "scores are not numbers by name"),
    Bad("reasons in a list", answering(reasons=list(REASON)), "verdict", "tuple of Reason"),
    Bad("reasons as strings", answering(reasons=("because",)), "verdict", "tuple of Reason"),
    Bad("no reason", answering(reasons=()), "reasons", "without a reason"),
    Bad("plain code", answering(reasons=(Reason("because", "x"),)), "reasons", "'because' is not dotted"),
    Bad("spaced code", answering(reasons=(Reason("toy.be cause", "x"),)), "reasons", "not dotted"),
    Bad("empty text", answering(reasons=(Reason("toy.x", " "),)), "reasons", "no text"),
    Bad("reason as long as the text", echoes, "reasons", "longer than 1000 characters"),
    Bad("reason that is not Unicode", quotes, "reasons", "cannot be written as JSON"),
    Bad("decisive by number", answering(decisive=1), "verdict", "decisive must be true or false"),
    Bad("calibrated by word", answering(calibrated="yes"), "verdict", "calibrated"),
    Bad("evidence in a list", answering(evidence=[1]), "verdict", "evidence is not a tuple"),
    Bad("evidence that is no value", answering(evidence=(Uncopyable(),)), "verdict", "TypeError: ambiguous"),
    Bad("evidence that cannot be copied", answering(evidence=(threading.Lock(),)), "verdict", "copied and compared"),
    Bad("explain raises", Explaining(lambda verdict: 1 // 0), "reasons", "explain raised ZeroDivisionError"),
    Bad("explain returns none", Explaining(lambda verdict: None), "reasons", "explain must return a tuple"),
    Bad("explain yields", Explaining(lambda verdict: iter(REASON)), "reasons", "explain must return a tuple"),
    Bad("explain is empty", Explaining(lambda verdict: ()), "reasons", "without a reason"),
    Bad("explain writes", Explaining(writes_verdict), "mutates", "explain changed the verdict"),
    Bad(
        "explain is fickle",
        Explaining(lambda verdict: (Reason("toy.x", str(random.random())),)),
        "repeat",
        "explains differently",
    ),
    Bad("memory", Fickle(), "repeat", "answers differently when asked again"),
    Bad("passes once", OncePasses(), "repeat", "answers differently when asked again"),
    Bad("chance", lambda reading: Verdict(("first",), random.random(), reasons=REASON), "repeat", "asked again"),
    Bad("writes the reading", writes_reading, "mutates", "changed the reading"),
    Bad("writes an old verdict", SharesScores(), "mutates", "changed a verdict"),
]


@pytest.mark.alike(3)
@pytest.mark.parametrize("bad", BAD_LAYERS, ids=lambda bad: bad.id)
def test_a_bad_layer_is_caught(bad: Bad) -> None:
    found = layer_findings(bad.layer, cost=bad.cost)
    assert any(finding.check == bad.check and bad.message in finding.message for finding in found), found


def test_all_findings_are_raised_together_with_the_readings_that_show_them() -> None:
    layer = answering(routes=("nowhere",), confidence=2, margin=-1, reasons=(Reason("plain", ""),))
    with pytest.raises(AssertionError) as caught:
        check_layer(layer)
    message = str(caught.value)
    assert "function breaks 5 of the promises" in message
    for part in ("verdict: chose ['nowhere']", "confidence", "margin", "'plain' is not dotted", "has no text"):
        assert part in message
    assert "(on: greeting, definition, page and" in message


def test_a_finding_reads_as_a_sentence() -> None:
    assert str(Finding("type", "wrong")) == "type: wrong"
    assert str(Finding("type", "wrong", ("a", "b"))) == "type: wrong (on: a, b)"
    assert str(Finding("type", "wrong", ("a", "b", "c", "d", "e"))) == "type: wrong (on: a, b, c and 2 more)"


def test_a_slow_layer_is_caught() -> None:
    def slow(reading: Reading) -> Verdict:
        if reading.words == "hello":
            time.sleep(0.02)
        return GOOD

    assert [finding.check for finding in layer_findings(slow, slowest_ms=10)] == ["slow"]


def test_a_network_layer_that_stalls_is_not_waited_for() -> None:
    def stalls(reading: Reading) -> object:
        return Stall(30) if reading.words == "hello" else None

    (finding,) = layer_findings(ScriptedNetworkLayer([stalls]), slowest_ms=500)
    assert finding == Finding("slow", "no answer within 500 ms", ("greeting", "greeting, muted"))


def test_a_keyboard_interrupt_stops_the_suite() -> None:
    with pytest.raises(KeyboardInterrupt):
        layer_findings(ScriptedLayer([KeyboardInterrupt()]))


def test_it_can_be_used_inside_a_running_loop() -> None:
    async def inside() -> None:
        check_layer(NetworkLayer())

    asyncio.run(inside())


def test_the_authors_own_texts_are_asked_too() -> None:
    def narrow(reading: Reading) -> Verdict | None:
        return Verdict(("first",), 7, reasons=REASON) if reading.words.startswith("xyzzy") else None

    assert layer_findings(narrow) == []
    (finding,) = layer_findings(narrow, texts=["plugh", "xyzzy", Query("xyzzy again")])
    assert finding.readings == ("text 1", "text 2", "text 1, muted", "text 2, muted")


def test_muted_signals_are_tried() -> None:
    def trusts_hits(reading: Reading) -> Verdict:
        return Verdict(("first",), 0.5 if not reading.muted else 5, reasons=REASON)

    (finding,) = layer_findings(trusts_hits)
    assert finding.check == "verdict"
    assert all(name.endswith(", muted") for name in finding.readings)


class ToyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    word: str = "define"
    chooses: str = "first"

    def faults(self, routes: tuple[str, ...]) -> list[tuple[str, str]]:
        if self.word == "crash":
            raise RuntimeError("no")
        return [("chooses", f"{self.chooses!r} is not a route")] if self.chooses not in routes else []

    def produces(self) -> set[str]:
        return {"first"}


class LooseConfig(Struct):
    word: str = ""


@pytest.fixture(autouse=True)
def _own_kinds() -> Any:
    """Kinds registered by a test do not outlive it."""
    before = dict(registry.kinds())
    yield
    registry._kinds.clear()
    registry._kinds.update(before)


def register_toy(build: Callable[[ToyConfig], Any], name: str = "toy.v1") -> None:
    @kind(name, cost="free")
    def toy(config: ToyConfig) -> Any:
        return build(config)


def test_a_kind_is_built_from_its_config() -> None:
    register_toy(lambda config: answering(routes=(config.chooses,)))
    assert layer_findings("toy.v1") == []
    assert layer_findings("toy.v1", {"word": "x"}) == []
    assert [str(finding) for finding in layer_findings("toy.v1", {"wird": "x", "chooses": 1})] == [
        "config: wird: unknown key, did you mean 'word'?",
        "config: chooses: must be a string, found 1",
    ]
    assert [str(finding) for finding in layer_findings("toy.v1", {"chooses": "fourth"})] == [
        "config: chooses: 'fourth' is not a route"
    ]
    (finding,) = layer_findings("toy.v1", {"chooses": "second"})
    assert finding.message == "chose 'second', which its config's produces() leaves out"
    assert [str(finding) for finding in layer_findings("toy.v1", {"word": "crash"})] == [
        "config: faults() raised RuntimeError: no"
    ]


def test_an_unknown_kind_is_a_finding() -> None:
    (finding,) = layer_findings("declared.v2")
    assert (finding.check, "did you mean 'declared.v1'?" in finding.message) == ("kind", True)


def test_a_kind_without_a_version_and_a_loose_config_are_findings() -> None:
    @kind("loose", cost="free")
    def loose(config: LooseConfig) -> PassLayer:
        return PassLayer()

    assert [finding.check for finding in layer_findings("loose")] == ["kind", "config", "config"]


def test_a_factory_that_raises_is_a_finding() -> None:
    register_toy(lambda config: 1 // 0)
    (finding,) = layer_findings("toy.v1")
    assert "the factory of toy.v1 raised ZeroDivisionError" in finding.message


def test_a_factory_whose_layers_differ_is_a_finding() -> None:
    numbers = itertools.count()
    register_toy(lambda config: answering(confidence=1 / (1 + next(numbers))))
    assert [finding.message for finding in layer_findings("toy.v1")] == ["answers differently when built again"]


def test_the_shipped_kinds_keep_their_promises() -> None:
    check_layer("declared.v1", {"aliases": {"one": "first"}})
    check_layer(
        "rules.v1",
        {
            "rules": [
                {"id": "RC-01", "route": "second", "when": {"any": ["define"]}},
                {"id": "rc-02", "route": ["first", "third"], "when": {"patterns": ["^."], "none": ["hello"]}},
            ]
        },
    )
    bands = {"edges": [0.5], "routes": ["first", "second"], "steepness": 12.0}
    check_layer("signals.v1", {"signals": [{"id": "a", "weight": 1.0, "words": ["define", "page"]}], "bands": bands})
    ranking = {"sums": {"s": {"a": 1.0}}, "routes": {"first": [{"add": 0.5}], "second": [{"add": 1.0, "of": "s"}]}}
    check_layer("signals.v1", {"signals": [{"id": "a", "patterns": [r"\bwhat\b"]}], "ranking": ranking})


class TestDoubles:
    def test_a_script_is_followed_and_its_last_entry_repeats(self) -> None:
        layer = ScriptedLayer([GOOD, None, "rubbish", ZeroDivisionError, lambda reading: reading.words])
        assert [layer(make_reading("a")), layer(make_reading("b")), layer(make_reading("c"))] == [GOOD, None, "rubbish"]
        with pytest.raises(ZeroDivisionError):
            layer(make_reading("d"))
        assert [layer(make_reading("e")), layer(make_reading("f"))] == ["e", "f"]
        assert "".join(reading.words for reading in layer.calls) == "abcdef"

    def test_an_empty_script_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"write \[None\]"):
            ScriptedLayer([])

    def test_a_stall_ends_by_itself_or_when_released(self) -> None:
        layer = ScriptedLayer([Stall(0.01, then=GOOD), Stall(30, then=Stall(30, then=None))])
        assert layer(make_reading()) is GOOD
        started = time.monotonic()
        threading.Timer(0.01, layer.release).start()
        assert layer(make_reading()) is None
        assert time.monotonic() - started < 5

    def test_a_coroutine_stalls_until_cancelled_unless_stubborn(self) -> None:
        async def cancel(layer: ScriptedNetworkLayer) -> bool:
            task = asyncio.ensure_future(layer(make_reading()))
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.sleep(0.02)
            ended = task.done()
            layer.release()
            await asyncio.wait({task})
            return ended

        willing, stubborn = ScriptedNetworkLayer([Stall()]), ScriptedNetworkLayer([Stall(stubborn=True)])
        assert asyncio.run(cancel(willing))
        assert not asyncio.run(cancel(stubborn))
        assert (willing.cancelled, stubborn.cancelled) == (1, 1)

    def test_a_script_may_fail_after_a_stall(self) -> None:
        layer = ScriptedNetworkLayer([Stall(0.001, then=OSError("reset"))])
        with pytest.raises(OSError, match="reset"):
            asyncio.run(layer(make_reading()))

    def test_a_reading_is_folded_and_keeps_its_query(self) -> None:
        reading = make_reading("  DEFINE\u200b “x” ", hits=(1,), notes=("a.b",), muted=["c.d"])
        assert (reading.folded, reading.hits, reading.notes, reading.muted) == ('define "x"', (1,), ("a.b",), {"c.d"})
        assert make_reading(Query(turns=(Turn("user", "one"), Turn("assistant", "two")))).words == "one"

    def test_a_router_needs_nothing_but_layers(self) -> None:
        decision = make_router().route_sync("anything")
        assert (decision.route, decision.by, decision.policy) == (ROUTES[0], "fallback", Policy())
        assert decision.to_dict()["policy"] == {}

    def test_layers_are_named_and_placed(self) -> None:
        profile = make_profile([PassLayer(), place(later, "mine"), later], routes=("x", "y"))
        assert [(layer.id, layer.cost) for layer in profile.layers] == [
            ("layer0", "free"),
            ("mine", "network"),
            ("layer2", "network"),
        ]
        assert profile.routes == ("x", "y")

    def test_the_hash_follows_the_data(self) -> None:
        same = [make_profile([PassLayer()]).hash, make_profile([ScriptedLayer([GOOD])]).hash]
        assert same[0] == same[1]
        assert make_profile([PassLayer()], ordered=True).hash != same[0]
        assert make_profile([PassLayer()], routes=("x",)).hash != same[0]


def test_hostile_queries_have_a_name_each_and_cover_what_is_promised() -> None:
    queries = hostile_queries(("first",))
    texts = [query.text for query in queries.values()]
    assert "" in texts
    assert any("\0" in text for text in texts)
    assert any("\ud800" in text for text in texts)
    assert any("👍" in text for text in texts)
    assert any(len(text) >= 1024 * 1024 for text in texts)
    assert any({"р", "漢", "ע"} <= set(text) for text in texts)
    assert queries["declared"].declared is not None
    assert not any(query.declared for query in hostile_queries().values())


def test_cases_are_offered_under_one_roof() -> None:
    assert load_cases is read_cases
    assert sorted(turnout.testing.__all__) == sorted(set(turnout.testing.__all__))
    assert all(hasattr(turnout.testing, name) for name in turnout.testing.__all__)
