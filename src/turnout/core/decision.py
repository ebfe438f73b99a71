"""The outcome of routing one query: what was chosen, by whom, why, and what else was considered.

A decision keeps the raw evidence and its profile; reasons, scores and JSON are rendered on demand, so an explained
decision costs no more than a few microseconds. Ids and timings are not part of its equality.

Ids are ULIDs: 48 bits of milliseconds and 80 bits that never repeat. They sort by time and take a fifth of a
microsecond. The 80 bits are a counter with a random start per process, drawn again after a fork.
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
from .profile import Part, PlacedLayer, Profile
from .query import Query
from .verdict import Fault, Gate, Reason, Verdict, contain, keep, readable, show

Ended = Literal["accepted", "held", "passed", "timeout", "error", "invalid", "breaker", "skipped"]


class Step(Struct, frozen=True, gc=False):
    """How one layer ended."""

    place: PlacedLayer
    ended: Ended
    elapsed_ns: int = 0
    verdict: Verdict | None = None
    fault: Fault | None = None
    encoded: Raw | None = None
    """The JSON form of a step that is always the same."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why the layer judged as it did, or why it gave no verdict."""
        verdict, place = self.verdict, self.place
        if verdict is not None:
            cached = verdict._explained
            # Another layer may have returned the same verdict, so the reasons are cached with their layer's place.
            if cached is None or cached[0] is not place or cached[1] != self.ended:
                explain = None if place.call is None else place.call.explain
                cached = (place, self.ended, _render(place, explain, verdict, self.ended))
                keep(verdict, "_explained", cached)
            return cached[2]
        if self.fault is not None:
            return (Reason(f"{place.id}.{self.fault.kind}", self.fault.detail),)
        return ()

    @property
    def details(self) -> tuple[Reason, ...]:
        """Reasons that take longer to compute; neither in the log nor in the JSON, and not cached."""
        layer, verdict = self.place.call, self.verdict
        return () if verdict is None or layer is None else _render(self.place, layer.elaborate, verdict)


def _render(place: PlacedLayer, explain: Explain | None, verdict: Verdict, ended: str = "") -> tuple[Reason, ...]:
    """The reasons that `explain` gives for a verdict; with `ended`, also the verdict's own and why it was held."""
    reasons = verdict.reasons if ended else ()
    if explain is not None:
        explained = contain(explain, verdict)
        reasons += explained if type(explained) is tuple else _repair(place, explained)
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


def _repair(place: PlacedLayer, explained: object) -> tuple[Any, ...]:
    """The reasons for an explanation that is not a tuple."""
    if isinstance(explained, list):
        return tuple(explained)
    detail = explained.detail if isinstance(explained, Fault) else f"returned {show(explained)}, not reasons"
    return (Reason("explain.error", f"{place.id} cannot explain itself: {detail}"),)


def _readable(place: PlacedLayer, reason: object) -> Reason:
    """The reason with text that can be encoded, or one that says that this is no reason."""
    if type(reason) is Reason and isinstance(reason.text, str):
        return Reason(reason.code, readable(reason.text))
    return Reason("explain.error", f"{place.id} cannot explain itself: {show(reason)} is not a reason")


class Decision(Struct, frozen=True, eq=False, gc=False):
    """What was decided about one query, or about one part of a compound question."""

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
    """The step whose verdict was used, if any."""
    held: Step | None = None
    """The best step whose verdict was held back."""
    remarks: tuple[Reason, ...] = ()
    """Reasons that are not a layer's: fallback, default, adjustments, changes to the text."""
    parts: tuple[Decision, ...] = ()
    part: Part | None = None
    """The part of a compound question that this decision is about."""
    id: str = ""
    elapsed_ns: int = 0
    hits: tuple[int, ...] = ()
    """The profile's patterns that were found, by position."""
    _reasons: tuple[Reason, ...] | None = None

    @property
    def role(self) -> str:
        """`part`, `condition` or `remainder`; empty for a whole question."""
        return self.part.role if self.part is not None else ""

    @property
    def then(self) -> str:
        """The consequence of a condition."""
        return self.part.then if self.part is not None else ""

    @property
    def route(self) -> str:
        return self.routes[0]

    @property
    def policy(self) -> Policy:
        """What the route means. For several routes: the first one's policy, with the sources of all."""
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
        """The deciding layer's reasons, then the remarks; for a fallback, the remarks, then every layer's reasons."""
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
        """The deciding layer's scores; for a fallback, those of the best held verdict."""
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
        """The JSON form before it is encoded."""
        profile, chosen = self.profile, self.chosen
        best = chosen if chosen is not None else self.held
        verdict = best.verdict if best is not None else None
        trace = [step.encoded or _step_form(step, chosen) for step in self.steps]
        form = DecisionForm(
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
            remark_count=len(self.remarks),
            hits=self.hits or UNSET,
        )
        if (part := self.part) is None:
            return form
        return replace(form, role=part.role, text=readable(part.query.text), then=readable(part.then) or UNSET)


class StepForm(Struct, frozen=True, omit_defaults=True, gc=False):
    """One layer in the JSON form."""

    layer: str
    kind: str
    ended: Ended
    elapsed_us: float
    gate: Gate | None = None
    verdict: Raw | None = None
    reasons: tuple[Reason, ...] | None = None
    """Left out where the decision's own reasons include them: the deciding layer's, and all layers' in a fallback."""
    model: str | None = None
    """The model that answered the layer, if known."""


class VerdictForm(Struct, frozen=True, gc=False):
    """A verdict in the JSON form of a decision's trace."""

    routes: tuple[str, ...]
    confidence: float
    margin: float
    scores: Mapping[str, float]
    decisive: bool
    calibrated: bool | UnsetType = UNSET
    """Set if `confidence` is a fitted probability."""
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
    """The part's role in its question; a whole question has none of these three."""
    text: str | UnsetType = UNSET
    """The part's own text."""
    then: str | UnsetType = UNSET
    """The consequence of a condition."""
    remark_count: int = 0
    """How many of the reasons are not a layer's: the last ones if a layer decided, else the first ones."""
    hits: tuple[int, ...] | UnsetType = UNSET
    """The profile's patterns that were found; not logged where text is not kept."""


def _step_form(step: Step, chosen: Step | None) -> StepForm:
    place, verdict = step.place, step.verdict
    model = _model_of(step) if place.cost == "network" else None
    if verdict is None:
        reasons = None if step.fault is None else step.reasons
        return StepForm(place.id, place.kind, step.ended, step.elapsed_ns / 1000, reasons=reasons, model=model)
    # The decision's own reasons include the deciding layer's, and all layers' in a fallback.
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
    """A verdict as JSON, cached with it: a layer may return the same verdict again."""
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
    """The model that a network layer asked: the first item of its evidence."""
    answer = step.verdict or step.fault
    model = answer.evidence[0] if answer is not None and answer.evidence else None
    return readable(model) if isinstance(model, str) else None


_encode = json.Encoder().encode


def idle_step(place: PlacedLayer) -> Step:
    """The step of a layer that is not asked: its kind is not installed, or what it judges by is missing."""
    why = place.absent or f"no installed package provides {place.kind}"
    missing = Fault("skipped", why) if place.needs == "install" else None
    step = Step(place, "passed", fault=missing)
    return replace(step, encoded=Raw(_encode(_step_form(step, None))))


# --- ids

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIR = tuple(a + b for a in _ALPHABET for b in _ALPHABET)


class _IdSource:
    """Makes ids in blocks of 1,024 that share all but the last two characters; each millisecond starts a new block."""

    def __init__(self) -> None:
        self.seed()

    def seed(self) -> None:
        start = int.from_bytes(os.urandom(10))
        self.head = _spell(start >> 30, 5)
        self.blocks = itertools.count(start & ((1 << 20) - 1))
        self.block: tuple[int, str, Iterator[str]] = (0, "", iter(()))

    def next(self) -> str:
        now = time.time_ns()
        # A single tuple, so that threads may race to replace it but never see half of it.
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
    """The lowest `10 * pairs` bits in base 32, two characters for ten bits."""
    return "".join([_PAIR[(number >> shift) & 1023] for shift in range(10 * (pairs - 1), -1, -10)])


def first_id(millisecond: int) -> str:
    """A lower bound for the ids of that millisecond and later; every earlier id is below it."""
    return _spell(max(millisecond, 0), 5)


def id_ms(ident: str) -> int:
    """The millisecond an id begins with; characters outside the alphabet count as 0."""
    number = 0
    for letter in ident[:10]:
        number = number * 32 + max(_ALPHABET.find(letter), 0)
    return number


_ids = _IdSource()
os.register_at_fork(after_in_child=_ids.seed)

new_id = _ids.next
