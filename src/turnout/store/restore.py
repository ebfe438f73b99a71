"""A decision as it was, from its row alone, and the same decision made again.

`as_recorded` needs nothing but the row: it rebuilds what the JSON form says. `replayed` builds the profile of that day
from its resolved tree and decides the question anew; layers that ask a model, or are not installed here, answer as they
did. Only if that comes out the same is it the decision, with the evidence that no row keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnout.config.document import Document
from turnout.config.resolve import build
from turnout.core.decision import Decision, Ended, Step
from turnout.core.errors import ConfigError, StoreError
from turnout.core.layer import Layer
from turnout.core.policy import Policy
from turnout.core.profile import Fallback, Part, Placed, Profile
from turnout.core.query import NOT_KEPT, Query, Reading
from turnout.core.registry import kinds
from turnout.core.router import Router
from turnout.core.verdict import Fault, Gate, Reason, Verdict

from .encode import asked_text
from .records import Logged

HELD = "gate.held"
# The loop's own reasons and those of the adjustments that ship: what a decision says beside its layers.
_REMARKS = ("adjust.", "clamp.", "extract.", "fallback.", "framing.", "held.", "router.", "scan.", "split.")


class RecordedVerdict(Struct, frozen=True):
    routes: tuple[str, ...]
    confidence: float
    margin: float
    scores: dict[str, float]
    decisive: bool = False


class RecordedStep(Struct, frozen=True):
    layer: str
    kind: str
    ended: Ended
    elapsed_us: float = 0.0
    gate: Gate = Gate()
    verdict: RecordedVerdict | None = None
    reasons: tuple[Reason, ...] = ()


class Recorded(Struct, frozen=True):
    """The documented JSON form, read back."""

    id: str
    profile: str
    profile_hash: str
    routes: tuple[str, ...]
    confidence: float
    calibrated: bool
    margin: float
    by: str
    outcome: str
    reasons: tuple[Reason, ...]
    policy: Policy
    trace: tuple[RecordedStep, ...]
    parts: tuple[Recorded, ...]
    elapsed_us: float
    role: str = ""
    text: str = ""
    then: str = ""


class Restored(NamedTuple):
    """A decision out of the log."""

    decision: Decision
    why_not: str
    """Why it could not be made again, so that it is only what its row says; empty if it was."""


_form = msgspec.json.Decoder(Recorded)


def restore(logged: Logged, parts: Sequence[Logged], resolved: Mapping[str, Any] | None) -> Restored:
    """The decision made again where that is possible, else as it was recorded, and why."""
    profile = rebuilt(resolved, logged.profile_hash)
    recorded = as_recorded(logged, parts, profile)
    if logged.kept != "full":
        return Restored(recorded, f"its text was not kept (text = {logged.kept!r})")
    if profile is None:
        return Restored(recorded, "this version of Turnout cannot build the profile it was made with")
    again = _again(recorded, profile)
    if again is None:
        return Restored(recorded, "decided anew it comes out differently: a layer has changed since")
    return Restored(again, "")


def replayed(logged: Logged, resolved: Mapping[str, Any] | None, parts: Sequence[Logged] = ()) -> Decision | None:
    """The decision made again; None if it cannot be, or does not come out the same."""
    profile = rebuilt(resolved, logged.profile_hash)
    if profile is None or logged.kept != "full":
        return None
    return _again(as_recorded(logged, parts, profile), profile)


def rebuilt(resolved: Mapping[str, Any] | None, profile_hash: str) -> Profile | None:
    """The profile of a resolved tree; None where this version makes another of it, or none at all."""
    if resolved is None:
        return None
    try:
        profile = build(Document(dict(resolved), {}, "the log"))
    except ConfigError:
        return None
    return profile if profile.hash == profile_hash else None


def as_recorded(logged: Logged, parts: Sequence[Logged] = (), profile: Profile | None = None) -> Decision:
    """The decision that a row describes; its layers say what they said and can be asked nothing more.

    `profile` adds what only a profile knows, such as the layers that were not asked.
    """
    rows = {row.id: row for row in (logged, *parts)}
    try:
        form = _form.decode(logged.body)
    except msgspec.DecodeError as error:
        raise StoreError(f"decision {logged.id} was written by another version of Turnout: {error}") from None
    return _decision(form, logged, rows, profile)


def asked_of(logged: Logged) -> Query:
    """The query, as far as it was kept."""
    if logged.asked is not None:
        return logged.asked
    return Query(logged.question or "", session=logged.session, tenant=logged.tenant or None)


def _decision(form: Recorded, whole: Logged, rows: Mapping[str, Logged], profile: Profile | None) -> Decision:
    row = rows.get(form.id)
    query = asked_of(row) if row is not None else Query(form.text, session=whole.session, tenant=whole.tenant or None)
    decider = _decider(form)
    remarks, told = _split_reasons(form, decider)
    steps = tuple(
        _step(step, reasons, calibrated=form.calibrated and number == decider)
        for number, (step, reasons) in enumerate(zip(form.trace, told, strict=True))
    )
    held = max((step for step in steps if step.ended == "held"), key=_confidence, default=None)
    return Decision(
        _profile(form, steps, query, profile, kept=(row or whole).question is not None),
        query,
        form.routes,
        form.confidence,
        form.margin,
        form.by,
        form.outcome,
        steps,
        None if decider is None else steps[decider],
        held,
        remarks,
        tuple(_decision(part, whole, rows, profile) for part in form.parts),
        Part(form.role, query, form.then) if form.role else None,
        form.id,
        round(form.elapsed_us * 1000),
    )


def _confidence(step: Step) -> float:
    return step.verdict.confidence if step.verdict is not None else 0.0


def _decider(form: Recorded) -> int | None:
    """Which step's verdict was used: the one its gate let through, else the held one that decided all the same."""
    if form.trace and form.trace[-1].ended == "accepted":
        return len(form.trace) - 1
    if form.outcome[0] == "F":
        return None
    spoke = (number for number, step in enumerate(form.trace) if step.verdict is not None and step.layer == form.by)
    return next(spoke, None)


def _split_reasons(form: Recorded, decider: int | None) -> tuple[tuple[Reason, ...], list[tuple[Reason, ...]]]:
    """The decision's own reasons, and those of each layer.

    The JSON form gives a reason once: those of the layer that decided stand in front of the decision's own, and where
    no layer decided, what each held layer said stands behind them. Where they part is told by their codes.
    """
    reasons = _worded(form.reasons)
    told = [_worded(step.reasons) for step in form.trace]
    if decider is not None:
        # The gate's word is a held layer's last.
        last = HELD if form.trace[decider].ended == "held" else ""
        cut = next((at + 1 for at, reason in enumerate(reasons) if reason.code == last), None)
        if cut is None:
            cut = next((at for at, reason in enumerate(reasons) if _is_remark(reason)), len(reasons))
        told[decider] = reasons[:cut]
        return reasons[cut:], told
    cut = next((at for at, reason in enumerate(reasons) if not _is_remark(reason)), len(reasons))
    rest = iter(reasons[cut:])
    for number, step in enumerate(form.trace):
        if step.verdict is not None:
            told[number] = tuple(_until_held(rest))
    return (*reasons[:cut], *rest), told


def _worded(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Reasons whose text was not kept are read by their codes."""
    return tuple(Reason(reason.code, reason.text or reason.code) for reason in reasons)


def _is_remark(reason: Reason) -> bool:
    return reason.code.startswith(_REMARKS)


def _until_held(reasons: Iterator[Reason]) -> Iterator[Reason]:
    for reason in reasons:
        yield reason
        if reason.code == HELD:
            return


def _step(step: RecordedStep, reasons: tuple[Reason, ...], *, calibrated: bool) -> Step:
    kind = kinds().get(step.kind)
    place = Placed(
        id=step.layer,
        kind=step.kind,
        # What is not installed here cannot judge anew: like a model, it answers as it did.
        cost=kind.cost if kind is not None else "network",
        who=kind.who if kind is not None else "R",
        gate=step.gate,
        deadline_ms=0.0,
        call=None,
    )
    elapsed = round(step.elapsed_us * 1000)
    if step.verdict is None:
        # A layer that is not installed passes, and says so by a fault of its own.
        fault = [Fault(reason.code.rpartition(".")[2], reason.text) for reason in reasons[:1]]  # type: ignore[arg-type]
        return Step(place, step.ended, elapsed, fault=fault[0] if fault else None)
    said = step.verdict
    verdict = Verdict(
        said.routes,
        said.confidence,
        said.margin,
        said.scores,
        tuple(reason for reason in reasons if reason.code != HELD),
        decisive=said.decisive,
        calibrated=calibrated,
    )
    found = Step(place, step.ended, elapsed, verdict)
    held = next((reason.text for reason in reasons if reason.code == HELD and reason.text != HELD), "")
    if step.ended != "held" or not held or found.reasons[-1].text == held:
        return found
    # The profile has words of its own for a verdict that is held back.
    return Step(replace(place, held_text=held), step.ended, elapsed, verdict)


def _profile(form: Recorded, steps: Sequence[Step], query: Query, profile: Profile | None, *, kept: bool) -> Profile:
    """What stands in for the profile: it knows this decision and nothing else."""
    seen = {step.place.id for step in steps}

    def read(asked: Query) -> Reading:
        text = asked_text(asked)
        return Reading(asked, text, text, len(text), notes=() if kept else (NOT_KEPT,))

    rest = [replace(place, call=None) for place in profile.layers if place.id not in seen] if profile else []
    routes = (*form.routes, *(route for step in steps if step.verdict for route in step.verdict.routes))
    # Of several routes the form has one policy, with the sources of all: the others have nothing to add to it.
    policies = dict.fromkeys(form.routes, Policy()) | {form.routes[0]: form.policy}
    return Profile(
        name=form.profile,
        hash=form.profile_hash,
        description="",
        routes=profile.routes if profile is not None else tuple(dict.fromkeys(routes)),
        layers=(*(step.place for step in steps), *rest),
        policies=policies,
        fallback=Fallback(form.routes[0]),
        read=read,
        mute=lambda reading, _: reading,
        resolved=profile.resolved if profile is not None else {},
        encoded_policies={route: Raw(msgspec.json.encode(policy)) for route, policy in policies.items()},
    )


def _again(recorded: Decision, profile: Profile) -> Decision | None:
    """The recorded decision, made anew with its profile; None where it comes out differently."""
    wholes = (recorded, *recorded.parts)
    steps = (step for whole in wholes for step in whole.steps)
    answered = {step.place.id: step.place for step in steps if step.verdict or step.ended != "passed"}
    letters = {whole.by: whole.outcome[0] for whole in wholes}
    layers = tuple(_answering(place, answered, letters) for place in profile.layers)
    again = Router(replace(profile, layers=layers)).replay(recorded)
    return _timed(again, recorded) if _agree(again, recorded) else None


def _answering(place: Placed, answered: Mapping[str, Placed], letters: Mapping[str, Any]) -> Placed:
    """The layer as a replay asks it. One that answers as recorded must not explain what it did not see."""
    if place.needs == "install" and (was := answered.get(place.id)) is not None:
        who = letters.get(place.id, place.who)
        place = replace(place, cost="network", needs=None, who=who, held_text=was.held_text)
    return replace(place, call=None if place.call is None else RecordedLayer()) if place.cost == "network" else place


class RecordedLayer(Layer):
    """Stands for a layer whose answers are on record, and cannot explain them."""

    def __call__(self, reading: Reading, /) -> None:
        return None


def _agree(one: Decision, other: Decision) -> bool:
    def told(decision: Decision) -> tuple[object, ...]:
        steps = [(step.place.id, step.ended) for step in decision.steps]
        return (decision.routes, decision.outcome, decision.confidence, decision.by, steps, len(decision.parts))

    return told(one) == told(other) and all(map(_agree, one.parts, other.parts))


def _timed(again: Decision, recorded: Decision) -> Decision:
    """The decision with the id and the times of the one that was recorded."""
    steps = tuple(
        replace(step, elapsed_ns=was.elapsed_ns, encoded=None)
        for step, was in zip(again.steps, recorded.steps, strict=True)
    )
    place = {id(step): number for number, step in enumerate(again.steps)}
    return replace(
        again,
        steps=steps,
        chosen=None if again.chosen is None else steps[place[id(again.chosen)]],
        held=None if again.held is None else steps[place[id(again.held)]],
        parts=tuple(map(_timed, again.parts, recorded.parts)),
        id=recorded.id,
        elapsed_ns=recorded.elapsed_ns,
    )
