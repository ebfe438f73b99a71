"""The one loop, and the two small drivers that run it.

`Router.steps` is a pure generator: it yields a layer and a reading, is sent the layer's answer, and returns a decision.
It has no clock, does no I/O, and no layer can make it fail. Time, threads, deadlines and error handling live in the
drivers, `route` (async) and `_run` (sync).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from .aside import INLINE
from .decision import Decision, Step, idle_step, new_id
from .embed import Embeds
from .errors import QueryError, QueryTooLarge, ReplayMismatch
from .policy import Policy
from .profile import Default, Fallback, Part, PlacedLayer, Profile
from .query import MAX_CHARACTERS, Query, Reading
from .verdict import Answer, Fault, How, Reason, Verdict, check_verdict, contain, show, to_fault

Steps = Generator[tuple[PlacedLayer, Reading], tuple[Answer, int], Decision]
"""Yields (layer, reading), is sent (answer, nanoseconds it took), returns the decision."""

Ask = Callable[[PlacedLayer, Reading], tuple[Answer, int]]
"""Asks a layer at once: its answer, and how many nanoseconds it took."""

Stamp = Callable[[int, tuple[Step, ...], Part | None], tuple[str, int]]
"""What only the driver knows about a decision: its id, and the nanoseconds since it was started."""

Admit = Callable[[PlacedLayer, Query], str]
"""Why a network layer may not be asked about a query; an empty string if it may."""

# With less than this left of the deadline a layer is not started: it could not finish in time.
MIN_LEFT_MS = 20.0

_FAULT_LETTER: dict[str, How] = {"timeout": "t", "error": "e", "invalid": "i", "breaker": "x", "skipped": "-"}
# How a fallback is marked after several faults: by the last of these, the one an operator should look at first.
_GRAVITY = "-lxtie"


class Counterfactual(NamedTuple):
    """What the decision would have been without one signal."""

    signal: str
    routes: tuple[str, ...]
    confidence: float

    @property
    def route(self) -> str:
        return self.routes[0]

    @property
    def text(self) -> str:
        return f"would be {' + '.join(self.routes)} ({self.confidence:.2f}) without {self.signal}"


def _stamp(started: int, steps: tuple[Step, ...], part: Part | None) -> tuple[str, int]:
    # All parts are decided in one run, so a part's time is that of its layers.
    return new_id(), perf_counter_ns() - started if part is None else sum(step.elapsed_ns for step in steps)


def _unstamped(started: int, steps: tuple[Step, ...], part: Part | None) -> tuple[str, int]:
    """For a replay or a counterfactual."""
    return "", 0


class LearnsRouter(Protocol):
    """Makes a router from examples."""

    def __call__(
        self,
        examples: Mapping[str, Sequence[str]],
        *,
        fallback: str | None = None,
        policies: Mapping[str, Policy | Mapping[str, object]] | None = None,
        embedder: Embeds | Literal["auto", "none"] = "auto",
        gate: float | None = None,
        name: str = "examples",
        seed: int = 0,
    ) -> Router: ...


class Router:
    """One profile, ready to decide."""

    __slots__ = ("profile", "stations")

    from_examples: ClassVar[LearnsRouter]
    """Set by the package `turnout`: core cannot import what learns."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.stations = tuple((place, idle_step(place)) for place in profile.layers)
        """Each layer with its step for when it is not asked."""

    def __repr__(self) -> str:
        return f"Router({self.profile!r})"

    async def route(self, query: str | Query, *, admit: Admit | None = None) -> Decision:
        """Decide, asking network layers too. Every valid query gets a decision, within the profile's deadline.

        `admit` is called before each network layer: if it returns a reason, the layer is skipped; if it raises, so does
        `route`.
        """
        started = perf_counter_ns()
        query = self.accept(query)
        steps = self.steps(query, stamp=_stamp, started=started)
        # A long text is read, and judged by CPU-bound layers, in a thread.
        short = _is_short(query)
        answer: tuple[Answer, int] | None = None
        while True:
            step = _advance(steps, answer) if short else await asyncio.to_thread(_advance, steps, answer)
            if isinstance(step, Decision):
                return step
            place, reading = step
            if place.cost == "free" or (place.cost == "cpu" and short):
                answer = _ask_now(place, reading)
            elif admit is not None and place.cost == "network" and (why := admit(place, reading.query)):
                answer = Fault("skipped", why), 0
            else:
                left_ms = self.profile.deadline_ms - (perf_counter_ns() - started) / 1e6
                answer = await _ask(place, reading, left_ms)

    def route_sync(self, query: str | Query) -> Decision:
        """Decide with local layers only; a network layer is skipped."""
        started = perf_counter_ns()
        return _run(self.steps(self.accept(query), stamp=_stamp, started=started), _ask_now)

    def accept(self, query: str | Query) -> Query:
        """The query, validated. Only here can routing refuse a query."""
        if isinstance(query, str):
            query = Query(query)
            if len(query.text) <= MAX_CHARACTERS:
                return query
        query = _check_types(query)
        size = _size(query)
        if size > MAX_CHARACTERS:
            raise QueryTooLarge(size, MAX_CHARACTERS)
        profile = self.profile
        if query.ceiling is not None:
            profile.routes_up_to(query.ceiling)
        if query.declared is not None:
            if query.declared.strip().casefold() in profile.undeclared:
                return replace(query, declared=None)
            if not profile.declared:
                raise QueryError(
                    f"declared route {query.declared[:80]!r}: profile {profile.name!r} takes none; "
                    "leave it out, or add a declared.v1 layer to the profile"
                )
            for validate in profile.declared:
                validate(query.declared)
        return query

    def steps(
        self,
        query: Query,
        muted: frozenset[str] = frozenset(),
        part: Part | None = None,
        stamp: Stamp = _unstamped,
        started: int = 0,
    ) -> Steps:
        """The one loop. `part` is set when the query is a part of a compound question; a part is not split again."""
        profile = self.profile
        unsplit: tuple[Reason, ...] = ()
        reading = profile.read(query)
        if muted:
            reading = profile.mute(reading, muted)
        if profile.off is not None:
            return self._default(reading, profile.off, "router.off", "the router is switched off", part, stamp, started)
        if not reading.folded and profile.blank is not None and reading.blank and query.declared is None:
            return self._default(reading, profile.blank, "router.blank", "the question is blank", part, stamp, started)
        if profile.split is not None and part is None:
            parts = contain(profile.split, reading)
            if _are_parts(parts):
                return (yield from self._compose(reading, parts, muted, stamp, started))
            if parts != ():
                unsplit = (Reason("split.error", f"the question could not be taken apart: {_complain(parts)}"),)

        trace: list[Step] = []
        held: Step | None = None
        chosen: Step | None = None
        mishap = "-"
        confidences: list[tuple[str, float | None]] = []
        for place, idle in self.stations:
            needs = place.needs
            if needs is not None:
                if needs == "install":
                    confidences.append((place.id, None))
                if needs == "install" or not (query.declared if needs == "declared" else reading.notes):
                    trace.append(idle)
                    continue
            raw, elapsed = yield place, reading
            # Repeats the first check of `check_verdict`, to save a call where the layer returns a verdict again.
            is_valid = type(raw) is Verdict and raw._valid_for is profile.routes
            answer = raw if is_valid else check_verdict(raw, profile.routes)
            if isinstance(answer, Verdict):
                if place.gate.admits(answer):
                    chosen = Step(place, "accepted", elapsed, answer)
                    trace.append(chosen)
                    break
                step = Step(place, "held", elapsed, answer)
                trace.append(step)
                confidences.append((place.id, answer.confidence))
                if mishap == "-":
                    mishap = "l"
                if held is None or _sureness(step) > _sureness(held):
                    held = step
            elif answer is None:
                trace.append(Step(place, "passed", elapsed))
            else:
                mishap = max(mishap, _FAULT_LETTER[answer.kind], key=_GRAVITY.index)
                confidences.append((place.id, None))
                trace.append(Step(place, answer.kind, elapsed, fault=answer))

        remarks: tuple[Reason, ...] = ()
        how = "-"
        if chosen is None:
            how = mishap
            usable = _find_usable(profile.fallback, trace)
            if usable is not None:
                chosen, how = usable, "h"
                remarks = (
                    Reason("held.used", f"no layer was sure; the best held verdict, {usable.place.id}'s, is used"),
                )
        if chosen is not None:
            verdict: Verdict = chosen.verdict  # type: ignore[assignment]
            routes, confidence, margin = verdict.routes, verdict.confidence, verdict.margin
            by, who = chosen.place.id, verdict.who or chosen.place.who
            if chosen.place.max_shift is not None and held is not None and held is not chosen:
                routes, how, remarks = _limit_shift(profile, chosen, held, routes, how, remarks)
        else:
            routes, confidence, margin = (profile.fallback.route,), profile.fallback.confidence, 0.0
            by, who = "fallback", "F"
            remarks = (_fallback_reason(tuple(confidences)),)
        if reading.notes or profile.adjust or query.ceiling is not None:
            routes, how, more = self._adjust(reading, query.ceiling, routes, how)
            remarks += more
        remarks += unsplit
        steps = tuple(trace)
        ident, elapsed = stamp(started, steps, part)
        return Decision(
            profile,
            query,
            routes,
            confidence,
            margin,
            by,
            who + how,
            steps,
            chosen,
            held,
            remarks,
            (),
            part,
            ident,
            elapsed,
            hits=reading.hits,
        )

    def _adjust(
        self, reading: Reading, ceiling: str | None, routes: tuple[str, ...], how: str
    ) -> tuple[tuple[str, ...], str, tuple[Reason, ...]]:
        """Apply the profile's adjustments and the ceiling; each change has its reason."""
        profile = self.profile
        remarks = [Reason(code, _note(code)) for code in reading.notes]
        for adjust in profile.adjust:
            change = contain(adjust, reading, routes)
            if change is None:
                continue
            if _is_change(change, profile.routes):
                routes, reason = change
                remarks.append(reason)
            else:
                text = f"an adjustment failed and changed nothing: {_complain(change)}"
                remarks.append(Reason("adjust.error", text))
        if ceiling is not None:
            allowed = profile.routes_up_to(ceiling)
            clamped = tuple(dict.fromkeys(route if route in allowed else ceiling for route in routes))
            if clamped != routes:
                remarks.append(Reason("clamp.ceiling", f"{routes[0]} is above this caller's ceiling {ceiling}"))
                routes, how = clamped, "k"
        return routes, how, tuple(remarks)

    def _default(
        self,
        reading: Reading,
        default: Default,
        code: str,
        text: str,
        part: Part | None,
        stamp: Stamp,
        started: int,
    ) -> Decision:
        remarks = (Reason(code, text),)
        routes, how, more = self._adjust(reading, reading.query.ceiling, (default.route,), "-")
        ident, elapsed = stamp(started, (), part)
        return Decision(
            self.profile,
            reading.query,
            routes,
            default.confidence,
            0.0,
            "default",
            "N" + how,
            remarks=remarks + more,
            part=part,
            id=ident,
            elapsed_ns=elapsed,
        )

    def _compose(
        self, reading: Reading, parts: tuple[Part, ...], muted: frozenset[str], stamp: Stamp, started: int
    ) -> Steps:
        """Decide each part of a compound question; the whole is as sure as its least sure part."""
        decided: list[Decision] = []
        for part in parts:
            decision = yield from self.steps(part.query, muted, part, stamp, started)
            decided.append(decision)
        weakest = min(decided, key=lambda decision: decision.confidence)
        count = f"{len(decided)} parts, each" if len(decided) > 1 else "one part,"
        notes = tuple(Reason(code, _note(code)) for code in reading.notes)
        ident, elapsed = stamp(started, (), None)
        return Decision(
            self.profile,
            reading.query,
            tuple(dict.fromkeys(route for decision in decided for route in decision.routes)),
            weakest.confidence,
            weakest.margin,
            "parts",
            weakest.outcome,
            remarks=(Reason("split.parts", f"{count} decided on its own"), *notes),
            parts=tuple(decided),
            id=ident,
            elapsed_ns=elapsed,
        )

    def replay(self, decision: Decision) -> Decision:
        """Decide the same query again: local layers judge anew, network layers repeat their recorded answers."""
        if decision.profile.hash != self.profile.hash:
            theirs, ours = decision.profile.hash, self.profile.hash
            raise ReplayMismatch(f"the decision was made with profile {theirs}, this router has {ours}: load that one")
        return self._run_again(decision, frozenset())

    def counterfactuals(self, decision: Decision) -> Iterator[Counterfactual]:
        """Each signal without which the routes would differ, and what they would be."""
        for code in dict.fromkeys(reason.code for step in _all_steps(decision) for reason in step.reasons):
            other = self._run_again(decision, frozenset((code,)))
            if other.routes != decision.routes:
                yield Counterfactual(code, other.routes, other.confidence)

    def route_recorded(self, query: Query, recorded: Mapping[str, Iterable[Answer]]) -> Decision:
        """Decide with local layers; a network layer repeats its recorded answers, by its id, and then passes."""
        steps = self.steps(self.accept(query), stamp=_stamp, started=perf_counter_ns())
        return _run(steps, _ask_recorded(recorded))

    def _run_again(self, decision: Decision, muted: frozenset[str]) -> Decision:
        recorded: dict[str, list[Answer]] = {}
        for step in _all_steps(decision):
            if step.place.cost == "network":
                recorded.setdefault(step.place.id, []).append(step.verdict or step.fault)
        return _run(self.steps(decision.query, muted, decision.part), _ask_recorded(recorded))


def _run(steps: Steps, ask: Ask) -> Decision:
    try:
        place, reading = next(steps)
        while True:
            place, reading = steps.send(ask(place, reading))
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


def _ask_recorded(recorded: Mapping[str, Iterable[Answer]]) -> Ask:
    """Asks local layers; a network layer gives the next of its recorded answers, or passes."""
    answers = {layer: iter(found) for layer, found in recorded.items()}

    def ask(place: PlacedLayer, reading: Reading) -> tuple[Answer, int]:
        if place.cost == "network":
            return next(answers.get(place.id, iter(())), None), 0
        return _ask_now(place, reading)

    return ask


def _all_steps(decision: Decision) -> list[Step]:
    """The steps of a decision and of its parts, in order."""
    return [step for whole in (decision, *decision.parts) for step in whole.steps]


def _check_types(query: object) -> Query:
    """The query, with fields of the declared types."""
    if not isinstance(query, Query):
        raise QueryError(f"a query is a string or a turnout.Query, not {type(query).__name__}")
    try:
        checked = convert(to_builtins(query), Query)
    except ValidationError as error:
        raise QueryError(f"the query cannot be used: {error}") from None
    return query if query == checked else checked


def _size(query: Query) -> int:
    return len(query.text) + sum(len(turn.text) for turn in query.turns)


def _is_short(query: Query) -> bool:
    """Whether it is read in a few milliseconds. A character beyond ASCII may fold to eighteen."""
    size = _size(query)
    if size <= INLINE // 32:
        return True
    return size <= INLINE and query.text.isascii() and all(turn.text.isascii() for turn in query.turns)


def _advance(steps: Steps, answer: tuple[Answer, int] | None) -> tuple[PlacedLayer, Reading] | Decision:
    """The next layer to ask, or the decision. StopIteration cannot cross from a thread to the event loop."""
    try:
        return steps.send(answer)  # type: ignore[arg-type]
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


def _ask_now(place: PlacedLayer, reading: Reading) -> tuple[Answer, int]:
    if place.cost == "network":
        return Fault("skipped", "a network layer is not asked by route_sync"), 0
    started = perf_counter_ns()
    try:
        answer: Any = place.call(reading)  # type: ignore[misc]
    # As in `contain`, which would cost every decision one more call.
    except (Exception, asyncio.CancelledError) as error:
        answer = to_fault(error)
    elapsed = perf_counter_ns() - started
    if type(answer) is not Verdict and asyncio.iscoroutine(answer):
        answer.close()
        answer = Fault("invalid", f"returned a coroutine: a layer that awaits has cost 'network', not {place.cost!r}")
    return answer, elapsed


async def _ask(place: PlacedLayer, reading: Reading, left_ms: float) -> tuple[Answer, int]:
    """Ask a layer in a task or thread, within its deadline and what is left of the profile's."""
    if left_ms < MIN_LEFT_MS:
        return Fault("timeout", f"not started: {max(left_ms, 0):.0f} ms were left of the deadline"), 0
    started = perf_counter_ns()
    limit_ms = min(place.deadline_ms, left_ms)
    task = asyncio.ensure_future(_call(place, reading))
    try:
        # `asyncio.wait` and not `wait_for`: a layer that ignores cancellation must not hold up the decision.
        done, _ = await asyncio.wait({task}, timeout=limit_ms / 1000)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        return Fault("timeout", f"no answer within {limit_ms:.0f} ms"), perf_counter_ns() - started
    return _outcome(task), perf_counter_ns() - started


async def _call(place: PlacedLayer, reading: Reading) -> Any:
    """Await a coroutine layer; run a plain function in a thread."""
    call: Any = place.call
    if call.awaits:
        return await call(reading)
    answer = await asyncio.to_thread(contain, call, reading)
    return await answer if isinstance(answer, Awaitable) else answer


def _outcome(task: asyncio.Task[Any]) -> Any:
    if task.cancelled():
        return Fault("error", "the layer cancelled itself")
    error = task.exception()
    if error is None:
        return task.result()
    if not isinstance(error, Exception):
        raise error
    return to_fault(error)


def _abandon(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and retrieve its exception so that the event loop does not log it."""
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    task.cancel()


def _are_parts(parts: object) -> bool:
    return isinstance(parts, tuple) and bool(parts) and all(isinstance(part, Part) for part in parts)


def _complain(found: object) -> str:
    """Why a plug-in's answer cannot be used."""
    return found.detail if isinstance(found, Fault) else f"returned {show(found)}"


def _find_usable(fallback: Fallback, trace: Sequence[Step]) -> Step | None:
    """The best held verdict that may be used instead of the fallback's route."""
    least = fallback.held
    if least is None:
        return None
    held = (step for step in trace if step.ended == "held" and _sureness(step)[1] >= least)
    named = (step for step in held if not fallback.held_by or step.place.id in fallback.held_by)
    return max(named, key=_sureness, default=None)


def _sureness(step: Step) -> tuple[bool, float]:
    """Orders held verdicts: a calibrated probability counts more than any score."""
    verdict: Verdict = step.verdict  # type: ignore[assignment]
    return verdict.calibrated, verdict.confidence


def _limit_shift(
    profile: Profile, chosen: Step, held: Step, routes: tuple[str, ...], how: str, remarks: tuple[Reason, ...]
) -> tuple[tuple[str, ...], str, tuple[Reason, ...]]:
    """The routes, moved at most `max_shift` places from the best held verdict's route."""
    most: int = chosen.place.max_shift  # type: ignore[assignment]
    order = profile.routes
    here: int = order.index(held.verdict.routes[0])  # type: ignore[union-attr]
    there = order.index(routes[0])
    within = max(here - most, min(here + most, there))
    if within == there:
        return routes, how, remarks
    text = f"{chosen.place.id} says {routes[0]}, more than {most} from {order[here]}, as {held.place.id} was inclined"
    return (order[within],), "k", (*remarks, Reason("clamp.shift", text))


@functools.lru_cache(maxsize=4096)
def _fallback_reason(confidences: tuple[tuple[str, float | None], ...]) -> Reason:
    """`fallback:low_conf(local=X.XX,llm=Y.YY|na)`, with every layer under its own name."""
    shown = [f"{layer}={'na' if confidence is None else f'{confidence:.2f}'}" for layer, confidence in confidences]
    return Reason("fallback.low_conf", f"fallback:low_conf({','.join(shown)})" if shown else "no layer had a verdict")


def _is_change(change: object, routes: tuple[str, ...]) -> bool:
    """Whether an adjustment returned some routes of the profile and a reason."""
    if type(change) is not tuple or len(change) != 2:
        return False
    chosen, reason = change
    known = type(chosen) is tuple and bool(chosen) and all(route in routes for route in chosen)
    return known and type(reason) is Reason


def _note(code: str) -> str:
    client = code.removeprefix("extract.wrapper.")
    return f"what {client} wraps around the user's words was removed" if client != code else _NOTES.get(code, code)


_NOTES = {
    "extract.packed": "only the current message of a packed conversation was read",
    "extract.packed_empty": "a packed conversation without a current message",
    "extract.embedded_system": "the system prompt was found inside the message and cut out",
    "extract.tail": "a long message without a system role: only what follows its last blank line was read",
    "scan.window": "the text is very long: its beginning and end were read",
    "extract.inherited": "a follow-up: read together with what it goes on from",
}
