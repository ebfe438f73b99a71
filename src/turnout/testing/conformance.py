"""A conformance suite for layers: `check_layer` asks a layer hostile and ordinary texts and lists its broken promises.

The promises are those the router relies on. A layer is *total* (it answers every reading and never raises), *pure* (the
same reading gets the same answer, in any order, and the layer changes nothing it was given), *well-formed* (a `Verdict`
or None; routes of the profile, confidence in [0, 1], margin >= 0) and *explained* (every verdict has reasons with
dotted codes, and they can be written as JSON). A network layer need not be pure: models are not.

Layers are called through the router's own driver, as in production.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import msgspec

from turnout import layers as _builtin_layers  # noqa: F401 - importing it registers the kinds that ship with Turnout
from turnout.config.check import conform
from turnout.config.document import spell
from turnout.core.errors import suggest
from turnout.core.layer import Cost, Judge, Layer, adapt
from turnout.core.profile import PlacedLayer
from turnout.core.query import Query, Reading
from turnout.core.registry import Kind, Supplies, kinds
from turnout.core.verdict import Fault, Reason, Verdict, find_mistakes
from turnout.text.match import Lexicon
from turnout.text.read import reader

from .hostile import hostile_queries
from .router import ROUTES, make_reading, make_router, place

# A layer that needs longer for a mebibyte of text is not linear in it, or does what a layer should not do.
SLOWEST_MS = 1000.0
# A reason is a sentence; a longer one contains the text of the question.
LONGEST_REASON = 1000

_CODE = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_VERSIONED = re.compile(r"[a-z][a-z0-9_-]*\.v[1-9][0-9]*")


class Finding(NamedTuple):
    """One broken promise, and the readings that show it."""

    check: str
    """`kind`, `config`, `raises`, `slow`, `type`, `verdict`, `reasons`, `repeat` or `mutates`."""
    message: str
    readings: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(self.readings[:3])
        more = f" and {len(self.readings) - 3} more" if len(self.readings) > 3 else ""
        return f"{self.check}: {self.message}" + (f" (on: {shown}{more})" if shown else "")


def check_layer(
    layer: Layer | Judge | str,
    config: Mapping[str, Any] | None = None,
    *,
    routes: tuple[str, ...] = ROUTES,
    cost: Cost | None = None,
    texts: Iterable[str | Query] = (),
    slowest_ms: float = SLOWEST_MS,
) -> None:
    """Raise an AssertionError that names every promise the layer breaks, or return quietly.

    `layer` is a layer, or the name of an installed kind, which is then built from `config` (its table in a profile,
    without `kind`, `id` and `accept`) and has its phrases found as in a real profile. `routes` are the profile's.
    `texts` are questions the layer has something to say about; they come on top of the suite's own, which may never
    reach it. `cost` is the kind's; for a bare layer a coroutine is `network`, anything else `free`. A network layer is
    given `slowest_ms` for each answer and runs on an event loop of its own: hand it doubles of what it asks.
    """
    findings = layer_findings(layer, config, routes=routes, cost=cost, texts=texts, slowest_ms=slowest_ms)
    if findings:
        name = layer if isinstance(layer, str) else type(layer).__name__
        listed = "".join(f"\n  {finding}" for finding in findings)
        raise AssertionError(f"{name} breaks {len(findings)} of the promises a layer makes:{listed}")


def layer_findings(
    layer: Layer | Judge | str,
    config: Mapping[str, Any] | None = None,
    *,
    routes: tuple[str, ...] = ROUTES,
    cost: Cost | None = None,
    texts: Iterable[str | Query] = (),
    slowest_ms: float = SLOWEST_MS,
) -> list[Finding]:
    """The broken promises as a list; the arguments are those of `check_layer`."""
    found = _Findings()
    if isinstance(layer, str):
        subject = _build(layer, config or {}, routes, found)
    else:
        subject = _Subject(place(layer, "layer", cost=cost), make_reading, None, None)
    if subject is not None:
        queries = hostile_queries(routes)
        queries |= {f"text {i}": text if isinstance(text, Query) else Query(text) for i, text in enumerate(texts)}
        _Examination(subject, routes, slowest_ms, found).run(queries)
    return found.merged()


class _Findings:
    """Collects findings; the same finding on several readings is one."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, None]] = {}

    def add(self, check: str, message: str, reading: str = "") -> None:
        readings = self._seen.setdefault((check, message), {})
        if reading:
            readings[reading] = None

    def merged(self) -> list[Finding]:
        return [Finding(check, message, tuple(readings)) for (check, message), readings in self._seen.items()]


class _Subject(NamedTuple):
    """A layer, and the reader a profile with it has."""

    place: PlacedLayer
    read: Callable[[Query], Reading]
    produces: set[str] | None
    """The routes its config can choose."""
    rebuild: Callable[[], _Subject | None] | None


class _LayerAnswer(NamedTuple):
    answer: Any
    fault: Fault | None
    elapsed_ms: float
    kept: Any = None
    """A copy of the answer, made when it was given."""


def _build(name: str, config: Mapping[str, Any], routes: tuple[str, ...], found: _Findings) -> _Subject | None:
    kind = kinds().get(name)
    if kind is None:
        found.add("kind", f"no installed package provides {name!r}{suggest(name, kinds())}")
        return None
    if not _VERSIONED.fullmatch(name):
        found.add("kind", f"{name!r} is not a versioned name such as 'mine.v1'")
    shape = msgspec.inspect.type_info(kind.config)
    if not kind.config.__struct_config__.forbid_unknown_fields:
        found.add("config", f"{kind.config.__name__} takes unknown keys: a misspelt one would be ignored")
    if not kind.config.__struct_config__.frozen:
        found.add("config", f"{kind.config.__name__} is not frozen")
    mistakes = [f"{spell(path)}: {message}" for path, message in conform(dict(config), shape)]
    if not mistakes:
        listed = _attempt(lambda: kind.faults(msgspec.convert(config, kind.config), routes))
        if listed.fault is not None:
            mistakes.append(f"faults() raised {listed.fault.detail}")
        mistakes += [f"{where}: {message}" for where, message in listed.answer or ()]
    for mistake in mistakes:
        found.add("config", mistake)
    return None if mistakes else _construct(kind, config, routes, found)


def _construct(kind: Kind, config: Mapping[str, Any], routes: tuple[str, ...], found: _Findings) -> _Subject | None:
    lexicon = Lexicon()
    before = copy.deepcopy(config)
    typed = msgspec.convert(config, kind.config)
    built = _attempt(lambda: kind.build(typed, Supplies(routes, lexicon)))
    if built.fault is not None:
        found.add("raises", f"the factory of {kind.name} raised {built.fault.detail}")
        return None
    if config != before:
        found.add("mutates", "building the layer changed its config")
    read = reader(lexicon.compile(), fold_name="unicode", unwrap=True)
    placed = place(built.answer, kind.name.split(".")[0], cost=kind.cost, who=kind.who)
    again = lambda: _construct(kind, config, routes, found)  # noqa: E731 - the same arguments, later
    return _Subject(placed, read, kind.produces(typed), again)


class _Examination:
    """Asks a layer about every reading: twice, the second time backwards, and once more with its signals muted."""

    def __init__(self, subject: _Subject, routes: tuple[str, ...], slowest_ms: float, found: _Findings) -> None:
        self.subject = subject
        self.routes = routes
        self.slowest_ms = slowest_ms
        self.found = found
        self.is_local = subject.place.cost != "network"
        self.codes: set[str] = set()

    def run(self, queries: Mapping[str, Query]) -> None:
        readings = {name: self.subject.read(query) for name, query in queries.items()}
        originals = copy.deepcopy(readings)
        asked = self._ask(self.subject, readings)
        sound = {name: one.kept for name, one in asked.items() if self._judge(name, one)}
        if self.is_local:
            backwards = dict(reversed(readings.items()))
            self._compare(sound, self._ask(self.subject, backwards), "answers differently when asked again")
            if self.subject.rebuild is not None and (twin := self.subject.rebuild()) is not None:
                self._compare(sound, self._ask(twin, readings), "answers differently when built again")
        muted = {
            name: msgspec.structs.replace(reading, hits=(), muted=frozenset(self.codes))
            for name, reading in readings.items()
        }
        for name, one in self._ask(self.subject, muted).items():
            self._judge(f"{name}, muted", one)
        for name, reading in readings.items():
            if reading != originals[name]:
                self.found.add("mutates", "changed the reading it was given", name)
        for name, answer in sound.items():
            if _differ(asked[name].answer, answer):
                self.found.add("mutates", "changed a verdict it had given before", name)

    def _ask(self, subject: _Subject, readings: Mapping[str, Reading]) -> dict[str, _LayerAnswer]:
        if self.is_local:
            return {name: _keep(_ask_local(subject.place, reading)) for name, reading in readings.items()}
        # A loop of its own in a thread of its own: the caller may be running one already.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _ask_network(subject.place, readings, self.slowest_ms)).result()

    def _judge(self, name: str, asked: _LayerAnswer) -> bool:
        """Whether the answer is one a layer may give; adds a finding for each mistake in it."""
        answer, fault = asked.answer, asked.fault
        if fault is not None:
            self.found.add("slow" if fault.kind == "timeout" else "raises", fault.detail, name)
            return False
        if asked.elapsed_ms > self.slowest_ms:
            self.found.add("slow", f"took more than {self.slowest_ms:.0f} ms", name)
        if answer is None or (type(answer) is Fault and not self.is_local):
            return True
        if inspect.isawaitable(answer):
            self.found.add("type", "returned an awaitable, but only a network layer is awaited", name)
            _dispose(answer)
            return False
        if type(answer) is not Verdict:
            self.found.add("type", f"returned {type(answer).__name__}, not a Verdict or None", name)
            return False
        wrong = list(_mistakes_of(answer, self.routes, self.subject.produces))
        for message in wrong:
            self.found.add("verdict", message, name)
        if _are_reasons(answer.reasons):
            self._judge_reasons(name, answer)
        return not wrong

    def _judge_reasons(self, name: str, verdict: Verdict) -> None:
        reasons = verdict.reasons
        place = self.subject.place
        layer = adapt(place.call)
        for called, explain in (("explain", layer.explain), ("elaborate", layer.elaborate)):
            before = _attempt(partial(copy.deepcopy, verdict)).answer
            first, again = (_attempt(partial(explain, verdict)) for _ in range(2))
            if first.fault is not None:
                self.found.add("reasons", f"{called} raised {first.fault.detail}", name)
                return
            if not _are_reasons(first.answer):
                self.found.add("reasons", f"{called} must return a tuple of Reasons", name)
                return
            if first.answer != again.answer:
                self.found.add("repeat", "explains differently when asked again", name)
            # A verdict that cannot be copied or compared is reported already.
            if before is not None and _attempt(partial(_differ, verdict, before)).answer:
                self.found.add("mutates", f"{called} changed the verdict", name)
            reasons += first.answer
        if not reasons:
            self.found.add("reasons", "a verdict without a reason: give it `reasons`, or the layer an `explain`", name)
        for reason in reasons:
            self.codes.add(reason.code)
            for message in _mistakes_in(reason):
                self.found.add("reasons", message, name)

    def _compare(self, sound: Mapping[str, Any], again: Mapping[str, _LayerAnswer], message: str) -> None:
        for name, asked in again.items():
            if asked.fault is not None:
                self.found.add("raises", asked.fault.detail, name)
            elif name in sound and _differ(sound[name], asked.kept):
                self.found.add("repeat", message, name)
            _dispose(asked.answer)


def _differ(one: object, other: object) -> bool:
    """Compared with `==` alone: a type may define it and leave `!=` to compare identities."""
    return (one == other) is not True


def _dispose(answer: object) -> None:
    """Close a coroutine that is not awaited, which would warn when it is collected."""
    if inspect.iscoroutine(answer):
        answer.close()


# A struct does not check its fields, so a verdict may hold anything: hence Any in the next two functions.
def _mistakes_of(verdict: Any, routes: tuple[str, ...], produces: set[str] | None) -> Iterable[str]:
    if mistakes := list(find_mistakes(verdict, routes)):
        yield from mistakes
        return
    for route in verdict.routes:
        if produces is not None and route not in produces:
            yield f"chose {route!r}, which its config's produces() leaves out"
    if (same := _attempt(lambda: copy.deepcopy(verdict) == verdict)).answer is not True:
        detail = f": {same.fault.detail}" if same.fault is not None else ""
        yield f"evidence must be plain values that can be copied and compared{detail}"
    for name in ("decisive", "calibrated"):
        if not isinstance(getattr(verdict, name), bool):
            yield f"{name} must be true or false, not {_short(getattr(verdict, name))}"


def _mistakes_in(reason: Any) -> Iterable[str]:
    if not isinstance(reason.code, str) or not _CODE.fullmatch(reason.code):
        yield f"the code {_short(reason.code)} is not dotted, such as 'mine.found'"
    if not isinstance(reason.text, str) or not reason.text.strip():
        yield f"the reason {_short(reason.code)} has no text"
    elif len(reason.text) > LONGEST_REASON:
        yield f"the text of {_short(reason.code)} is longer than {LONGEST_REASON} characters"
    elif (written := _attempt(lambda: msgspec.json.encode(reason))).fault is not None:
        yield f"the text of {_short(reason.code)} cannot be written as JSON: {written.fault.detail}"


def _are_reasons(value: object) -> bool:
    return isinstance(value, tuple) and all(type(item) is Reason for item in value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


class _Recorder:
    """Takes the layer's place and records its answer; the router gets none, so that it has nothing to judge."""

    def __init__(self, call: Callable[[Reading], Any]) -> None:
        self.call = call
        self.answer: Any = None

    def __call__(self, reading: Reading) -> Any:
        self.answer = self.call(reading)


class _NetworkRecorder(_Recorder):
    """The same for a layer that is awaited, or that returns an awaitable."""

    async def __call__(self, reading: Reading) -> Any:
        answer = self.call(reading)
        self.answer = await answer if inspect.isawaitable(answer) else answer


def _attempt(call: Callable[[], Any]) -> _LayerAnswer:
    """A function's result or failure, from the router's driver, the one place that may catch any exception."""
    return _ask_local(place(lambda _reading: call()), make_reading())


def _ask_local(placed: PlacedLayer, reading: Reading) -> _LayerAnswer:
    recorder = _Recorder(placed.call)  # type: ignore[arg-type]
    router = make_router([place(recorder, cost="free")], read=_reads(reading))
    step = router.route_sync(Query()).steps[0]
    return _LayerAnswer(recorder.answer, step.fault, step.elapsed_ns / 1e6)


async def _ask_network(
    placed: PlacedLayer, readings: Mapping[str, Reading], slowest_ms: float
) -> dict[str, _LayerAnswer]:
    asked = {}
    for name, reading in readings.items():
        recorder = _NetworkRecorder(placed.call)  # type: ignore[arg-type]
        recording = place(recorder, cost="network", deadline_ms=slowest_ms)
        router = make_router([recording], read=_reads(reading), deadline_ms=slowest_ms)
        step = (await router.route(Query())).steps[0]
        asked[name] = _keep(_LayerAnswer(recorder.answer, step.fault, step.elapsed_ns / 1e6))
    return asked


def _keep(asked: _LayerAnswer) -> _LayerAnswer:
    """Add a copy of the answer, made at once: the layer may still write to the original."""
    if type(asked.answer) is not Verdict:
        return asked._replace(kept=asked.answer)
    return asked._replace(kept=_attempt(lambda: copy.deepcopy(asked.answer)).answer)


def _reads(reading: Reading) -> Callable[[Query], Reading]:
    return lambda _query: reading
