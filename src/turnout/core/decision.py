"""The outcome of routing one query: what was chosen, by whom, why, and what else was considered.

A decision keeps its evidence raw and its profile at hand; reasons, scores and JSON are rendered on demand,
so an explained decision costs no more than a few microseconds. Ids and timings are outside its equality.

Ids are ULIDs (48 bits of milliseconds, 80 bits that never repeat), sortable by time, made in a fifth of a microsecond.
The 80 bits are a random start per process and a counter, drawn anew after a fork.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, json
from msgspec.structs import replace

from .layer import Explain
from .policy import Policy
from .profile import Part, Placed, Profile
from .query import Query
from .verdict import Fault, Gate, Reason, Verdict, contain, keep, readable

Ended = Literal["accepted", "held", "passed", "timeout", "error", "invalid", "breaker", "skipped"]


class Step(Struct, frozen=True, gc=False):
    """How one layer ended."""

    place: Placed
    ended: Ended
    elapsed_ns: int = 0
    verdict: Verdict | None = None
    fault: Fault | None = None
    encoded: Raw | None = None
    """The JSON form, for a step that is always the same."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the layer judged as it did, or what kept it from judging."""
        verdict, place = self.verdict, self.place
        if verdict is not None:
            kept = verdict._explained
            # Kept with the place it was rendered for: another layer may have returned the same verdict.
            if kept is None or kept[0] is not place or kept[1] != self.ended:
                explain = None if place.call is None else place.call.explain
                kept = (place, self.ended, _told(place, explain, verdict, self.ended))
                keep(verdict, "_explained", kept)
            return kept[2]
        if self.fault is not None:
            return (Reason(f"{place.id}.{self.fault.kind}", self.fault.detail),)
        return ()

    @property
    def details(self) -> tuple[Reason, ...]:
        """What else the layer can say of its verdict. Found anew each time: it is not in the log, nor in the JSON."""
        layer, verdict = self.place.call, self.verdict
        return () if verdict is None or layer is None else _told(self.place, layer.elaborate, verdict)


def _told(place: Placed, explain: Explain | None, verdict: Verdict, ended: str = "") -> tuple[Reason, ...]:
    """What `explain` makes of a verdict. Of one that has `ended` somehow: the reasons it came with, too, and why its
    gate held it back if it did."""
    reasons = verdict.reasons if ended else ()
    if explain is not None:
        told = contain(explain, verdict)
        reasons += told if type(told) is tuple else _untold(place, told)
    if ended == "held":
        gate, sure = place.gate, f"{verdict.confidence:.2f}"
        if place.held_text:
            text = place.held_text.replace("{confidence}", sure)
        else:
            text = f"below the gate: confidence {sure} (needs {gate.confidence:.2f})"
            if gate.margin:
                text = f"{text}, margin {verdict.margin:.2f} (needs {gate.margin:.2f})"
        reasons += (Reason("gate.held", text),)
    for one in reasons:
        if type(one) is not Reason or type(one.text) is not str or not one.text.isascii():
            return tuple(map(functools.partial(_readable, place), reasons))
    return reasons


def _untold(place: Placed, told: object) -> tuple[Any, ...]:
    """What is left of an explanation that is not a tuple of reasons."""
    if isinstance(told, list):
        return tuple(told)
    detail = told.detail if isinstance(told, Fault) else f"returned {_shown(told)}, not reasons"
    return (Reason("explain.error", f"{place.id} cannot explain itself: {detail}"),)


def _readable(place: Placed, reason: object) -> Reason:
    """The reason as it can be written down."""
    if type(reason) is Reason and isinstance(reason.text, str):
        return Reason(reason.code, readable(reason.text))
    return Reason("explain.error", f"{place.id} cannot explain itself: {_shown(reason)} is not a reason")


def _shown(value: object) -> str:
    return readable(str(contain(repr, value))[:80])


class Decision(Struct, frozen=True, eq=False, gc=False):
    profile: Profile
    query: Query
    routes: tuple[str, ...]
    confidence: float
    margin: float
    by: str
    """The id of the layer that decided, or `fallback`, `default`, `parts`."""
    outcome: str
    """Two letters: who decided and how (see `turnout.core.verdict`)."""
    steps: tuple[Step, ...] = ()
    chosen: Step | None = None
    """The step whose verdict was used, if one was."""
    held: Step | None = None
    """The best step among those whose verdict was held back."""
    remarks: tuple[Reason, ...] = ()
    """Reasons that are not a layer's: fallback, default, adjustments, what reading the text took."""
    parts: tuple[Decision, ...] = ()
    part: Part | None = None
    """What this decision is to the question it is a part of."""
    id: str = ""
    elapsed_ns: int = 0
    hits: tuple[int, ...] = ()
    """Which of the profile's patterns were found, by their place in it."""
    _reasons: tuple[Reason, ...] | None = None

    @property
    def role(self) -> str:
        """`part`, `condition` or `remainder`; empty for a whole question."""
        return self.part.role if self.part is not None else ""

    @property
    def then(self) -> str:
        """What a condition leads to."""
        return self.part.then if self.part is not None else ""

    @property
    def route(self) -> str:
        return self.routes[0]

    @property
    def policy(self) -> Policy:
        """What the route means. Of several routes it is the first one's, with the sources of all."""
        policy = self.profile.policies[self.routes[0]]
        if len(self.routes) > 1 and policy.sources is not None:
            others = (self.profile.policies[route].sources or () for route in self.routes)
            policy = replace(policy, sources=tuple(dict.fromkeys(source for sources in others for source in sources)))
        return policy

    @property
    def calibrated(self) -> bool:
        """Whether `confidence` is a fitted probability; otherwise it is a score."""
        return self.chosen is not None and self.chosen.verdict is not None and self.chosen.verdict.calibrated

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why: the deciding layer's reasons, then what was done around it; for a fallback, what the losers saw."""
        reasons = self._reasons
        if reasons is None:
            if self.chosen is not None:
                reasons = self.chosen.reasons + self.remarks
            else:
                reasons = self.remarks
                for step in self.steps:
                    if step.verdict is not None:
                        reasons += step.reasons
            keep(self, "_reasons", reasons)
        return reasons

    @property
    def scores(self) -> Mapping[str, float]:
        """The deciding layer's scores; for a fallback, those of the best layer that was held back."""
        best = self.chosen or self.held
        return best.verdict.scores if best is not None and best.verdict is not None else {}

    def _content(self) -> tuple[object, ...]:
        steps = tuple((step.place.id, step.ended, step.verdict, step.fault) for step in self.steps)
        place = self.chosen.place.id if self.chosen is not None else None
        whole = (self.profile.hash, self.query, self.routes, self.confidence, self.margin, self.by, self.outcome)
        return (*whole, steps, place, self.remarks, self.part, tuple(part._content() for part in self.parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.profile.hash, self.query, self.routes, self.outcome))

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON form as plain data (see docs/reference/decision.md)."""
        data: dict[str, Any] = json.decode(self.json())
        return data

    def json(self) -> bytes:
        """The documented JSON form."""
        return _encode(self.form())

    def form(self) -> DecisionForm:
        """What the JSON form is written from."""
        profile, chosen = self.profile, self.chosen
        best = chosen if chosen is not None else self.held
        verdict = best.verdict if best is not None else None
        role, text, then = _WHOLE if self.part is None else _part_form(self.part)
        trace = [step.encoded or _step_form(step, chosen) for step in self.steps]
        return DecisionForm(
            self.id,
            profile.name,
            profile.hash,
            self.routes[0],
            self.routes,
            self.confidence,
            chosen is not None and verdict is not None and verdict.calibrated,
            self.margin,
            self.by,
            self.outcome,
            self.reasons,
            profile.encoded_policies[self.routes[0]] if len(self.routes) == 1 else Raw(_encode(self.policy)),
            verdict.scores if verdict is not None else {},
            trace,
            [part.form() for part in self.parts] if self.parts else [],
            self.elapsed_ns / 1000,
            role,
            text,
            then,
            len(self.remarks),
            self.hits or UNSET,
        )


class StepForm(Struct, frozen=True, omit_defaults=True, gc=False):
    """One layer in the JSON form."""

    layer: str
    kind: str
    ended: Ended
    elapsed_us: float
    gate: Gate | None = None
    verdict: Raw | None = None
    reasons: tuple[Reason, ...] | None = None
    """Given where they are not among the decision's own already: the losers' of a decision that a layer made."""
    model: str | None = None
    """The model that answered the layer; None where it said no such thing."""


class VerdictForm(Struct, frozen=True, gc=False):
    """A verdict in the JSON form of a decision's trace."""

    routes: tuple[str, ...]
    confidence: float
    margin: float
    scores: Mapping[str, float]
    decisive: bool
    calibrated: bool | UnsetType = UNSET
    """Given where `confidence` is a fitted probability."""
    adds: Mapping[str, float] | UnsetType = UNSET


class DecisionForm(Struct, frozen=True, gc=False):
    """The JSON form of a decision, field by field."""

    id: str
    profile: str
    profile_hash: str
    route: str
    routes: tuple[str, ...]
    confidence: float
    calibrated: bool
    """Whether `confidence` is a fitted probability; otherwise it is a score."""
    margin: float
    by: str
    outcome: str
    reasons: tuple[Reason, ...]
    policy: Raw
    scores: Mapping[str, float]
    trace: list[StepForm | Raw]
    parts: list[DecisionForm]
    elapsed_us: float
    role: str | UnsetType = UNSET
    """What a part is to its question; a whole question has none of these three."""
    text: str | UnsetType = UNSET
    """The part's own text."""
    then: str | UnsetType = UNSET
    """What a condition leads to."""
    remark_count: int = 0
    """How many of the reasons are no layer's: the last ones where a layer decided, else the first ones."""
    hits: tuple[int, ...] | UnsetType = UNSET
    """Which of the profile's patterns were found; where text is not kept, neither are they."""


PartForm = tuple[str | UnsetType, str | UnsetType, str | UnsetType]
_WHOLE: PartForm = (UNSET, UNSET, UNSET)


def _part_form(part: Part) -> PartForm:
    return part.role, readable(part.query.text), readable(part.then) or UNSET


def _step_form(step: Step, chosen: Step | None) -> StepForm:
    place, verdict = step.place, step.verdict
    model = _model_of(step) if place.cost == "network" else None
    if verdict is None:
        reasons = None if step.fault is None else step.reasons
        return StepForm(place.id, place.kind, step.ended, step.elapsed_ns / 1000, reasons=reasons, model=model)
    # A fallback's reasons are those of the layers it fell back from.
    reasons = None if chosen is None or step is chosen else step.reasons
    return StepForm(
        place.id,
        place.kind,
        step.ended,
        step.elapsed_ns / 1000,
        place.gate,
        verdict._encoded or _encode_verdict(verdict),
        reasons,
        model,
    )


def _encode_verdict(verdict: Verdict) -> Raw:
    """A verdict as JSON, kept with it: a layer that sees the same again may return the same one."""
    form = VerdictForm(
        verdict.routes,
        verdict.confidence,
        verdict.margin,
        verdict.scores,
        verdict.decisive,
        verdict.calibrated or UNSET,
        verdict.adds or UNSET,
    )
    encoded = Raw(_encode(form))
    keep(verdict, "_encoded", encoded)
    return encoded


def _model_of(step: Step) -> str | None:
    """The model that a network layer asked, which is the first of its evidence."""
    said = step.verdict or step.fault
    model = said.evidence[0] if said is not None and said.evidence else None
    return readable(model) if isinstance(model, str) else None


_encode = json.Encoder().encode


def idle_step(place: Placed) -> Step:
    """How a layer ends that is not asked: its kind is not installed, or what it judges by is not there."""
    why = place.absent or f"no installed package provides {place.kind}"
    missing = Fault("skipped", why) if place.needs == "install" else None
    step = Step(place, "passed", fault=missing)
    return replace(step, encoded=Raw(_encode(_step_form(step, None))))


# --- ids

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIR = tuple(a + b for a in _ALPHABET for b in _ALPHABET)


class _Source:
    """Hands out ids in blocks of 1,024 that share all but their last two characters, at least one a millisecond."""

    def __init__(self) -> None:
        self.seed()

    def seed(self) -> None:
        start = int.from_bytes(os.urandom(10))
        self.head = _spell(start >> 30, 5)
        self.blocks = itertools.count(start & ((1 << 20) - 1))
        self.block: tuple[int, str, Iterator[str]] = (0, "", iter(()))

    def next(self) -> str:
        now = time.time_ns()
        # One tuple, replaced whole: threads may race to write it, but none can read half of it.
        until, prefix, pairs = self.block
        pair = next(pairs, "")
        if not pair or now >= until:
            millisecond = now // 1_000_000
            prefix = f"{_spell(millisecond, 5)}{self.head}{_spell(next(self.blocks), 2)}"
            pairs = iter(_PAIR)
            pair = next(pairs)
            self.block = ((millisecond + 1) * 1_000_000, prefix, pairs)
        return prefix + pair


def _spell(number: int, pairs: int) -> str:
    """The lowest `10 * pairs` bits, two characters for ten of them."""
    return "".join([_PAIR[(number >> shift) & 1023] for shift in range(10 * (pairs - 1), -1, -10)])


def first_id(millisecond: int) -> str:
    """What no id of that millisecond or a later one is below, and every earlier id is."""
    return _spell(max(millisecond, 0), 5)


def id_ms(ident: str) -> int:
    """The millisecond an id begins with; what is no sign of an id counts as the lowest."""
    found = 0
    for letter in ident[:10]:
        found = found * 32 + max(_ALPHABET.find(letter), 0)
    return found


_source = _Source()
os.register_at_fork(after_in_child=_source.seed)

new_id = _source.next
