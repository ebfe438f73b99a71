"""What every local layer of a profile says about labelled questions, also where an earlier one would have decided.

A layer counts as local up to the first one that asks a network: what stands behind that is reached only when a model
was not sure. A label that is no route (`oos`, say) is out of scope: any decision of such a question is wrong. A
question that the profile takes apart has no single label, and one it answers without asking any layer is not the
layers' doing; both are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from turnout.config.champion import takes_model
from turnout.config.check import layer_id
from turnout.config.load import read_chain
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError, QueryError
from turnout.core.profile import Placed, Profile
from turnout.core.query import Query, Reading
from turnout.core.registry import is_brought_by_app, kinds
from turnout.core.verdict import Fault, Verdict, check_verdict, contain
from turnout.text.count import counted

from .contest import build_with
from .dataset import JOIN, Example, Examples, in_order, read_examples, read_seeds, row_key
from .gate import LayerAnswers, decide_by
from .metric import Flags, Floats
from .train import read_record


class LayerTrial(NamedTuple):
    """One layer's answers, in the order of the questions."""

    place: Placed
    routes: tuple[str | None, ...]
    """None where it passed or failed."""
    confidence: Floats
    margin: Floats
    decisive: Flags
    right: Flags
    elapsed_ns: npt.NDArray[np.int64]
    calibrated: bool
    """Whether its confidence claims to be a probability."""
    faults: Mapping[str, int]
    """What went wrong, and how often."""

    @property
    def answered(self) -> Flags:
        return ~np.isnan(self.confidence)

    def said(self) -> LayerAnswers:
        """As gates are chosen: below the margin's gate, which stays as it is, there is no answer."""
        held = ~self.decisive & ~(self.margin >= self.place.gate.margin)
        return LayerAnswers(self.place.id, np.where(held, np.nan, self.confidence), self.right, self.decisive)


class Trial(NamedTuple):
    profile: Profile
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    layers: tuple[LayerTrial, ...]
    skipped: Mapping[str, int]
    """Questions that were left out, by why."""

    @property
    def foreign(self) -> dict[str, int]:
        """Labels that are no route, and how many questions have each."""
        routes = {*self.profile.routes}
        found = Counter(label for label in self.labels if not {*label.split(JOIN)} <= routes)
        return dict(found.most_common())

    def said(self) -> list[LayerAnswers]:
        return [tried.said() for tried in self.layers]

    def gates(self) -> tuple[float, ...]:
        """The gates as the profile has them."""
        return tuple(tried.place.gate.confidence for tried in self.layers)


def is_network(place: Placed) -> bool:
    """Whether a layer asks a network, or would if what it needs were here."""
    kind = kinds().get(place.kind)
    return place.cost == "network" or (kind is not None and kind.cost == "network")


def local_layers(profile: Profile) -> tuple[Placed, ...]:
    """Those before the first that asks a network. One that an application brings is none of the profile's own."""
    found = []
    for place in profile.layers:
        if is_brought_by_app(place.kind):
            continue
        if is_network(place):
            break
        if place.call is not None:
            found.append(place)
    return tuple(found)


def try_layers(
    profile: Profile,
    texts: Sequence[str],
    labels: Sequence[str],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Trial:
    """Ask every local layer about every question."""
    if len(texts) != len(labels):
        raise ValueError(f"{len(texts)} questions and {len(labels)} labels: both must be of one length")
    if profile.off is not None:
        raise LearnError(f"profile {profile.name!r} is switched off: it asks no layer; say enabled = true in it")
    places = local_layers(profile)
    if not places:
        raise LearnError(f"profile {profile.name!r} has no local layer here (see turnout check {profile.name})")
    if shifting := next((place.id for place in places if place.max_shift is not None), None):
        raise LearnError(f"layer {shifting!r} has max_shift: what it decides hangs on gates, so they cannot be chosen")
    kept: list[int] = []
    skipped: Counter[str] = Counter()
    answers: list[list[tuple[Verdict | Fault | None, int]]] = [[] for _ in places]
    for number, text in enumerate(texts):
        query = Query(text)
        reading = profile.read(query)
        if profile.blank is not None and reading.blank:
            skipped["blank"] += 1
        elif _is_split(profile, reading):
            skipped["of several parts, each decided on its own: label the parts"] += 1
        else:
            kept.append(number)
            for place, given in zip(places, answers, strict=True):
                given.append(_ask(profile, place, reading))
        if number % 64 == 63:
            progress(number + 1, len(texts))
    if not kept:
        why = "; ".join(f"{count:,} {why}" for why, count in skipped.items())
        raise LearnError(f"no question is left to ask the layers: {why}")
    wanted = [in_order(labels[number]) for number in kept]
    return Trial(
        profile,
        tuple(texts[number] for number in kept),
        tuple(labels[number] for number in kept),
        tuple(_gather(place, given, wanted) for place, given in zip(places, answers, strict=True)),
        skipped,
    )


def _is_split(profile: Profile, reading: Reading) -> bool:
    parts = contain(profile.split, reading) if profile.split is not None else ()
    return isinstance(parts, tuple) and bool(parts)


def _ask(profile: Profile, place: Placed, reading: Reading) -> tuple[Verdict | Fault | None, int]:
    """One layer's answer, its routes as they would leave the cascade, and how long it took."""
    if place.needs is not None and not (place.needs == "notes" and reading.notes):
        return None, 0
    started = perf_counter_ns()
    raw = contain(place.call, reading)  # type: ignore[arg-type]
    elapsed = perf_counter_ns() - started
    answer = check_verdict(raw, profile.routes)
    if isinstance(answer, Verdict):
        routes = answer.routes
        for adjust in profile.adjust:
            change = contain(adjust, reading, routes)
            if isinstance(change, tuple):
                routes = change[0]
        if routes != answer.routes:
            answer = replace(answer, routes=routes)
    return answer, elapsed


def _gather(place: Placed, given: Sequence[tuple[Verdict | Fault | None, int]], wanted: Sequence[str]) -> LayerTrial:
    verdicts = [answer if isinstance(answer, Verdict) else None for answer, _ in given]
    faults = Counter(f"{answer.kind}: {answer.detail}" for answer, _ in given if isinstance(answer, Fault))
    routes = tuple(JOIN.join(one.routes) if one is not None else None for one in verdicts)
    right = [route is not None and in_order(route) == label for route, label in zip(routes, wanted, strict=True)]
    return LayerTrial(
        place,
        routes,
        np.array([np.nan if one is None else one.confidence for one in verdicts], np.float64),
        np.array([np.nan if one is None else one.margin for one in verdicts], np.float64),
        np.array([one is not None and one.decisive for one in verdicts], bool),
        np.array(right, bool),
        np.array([elapsed for _, elapsed in given], np.int64),
        any(one is not None and one.calibrated for one in verdicts),
        faults,
    )


class CascadeAnswers(NamedTuple):
    """What the local layers say together."""

    routes: list[str | None]
    """None where the question goes on."""
    confidence: Floats
    decided: Flags
    wrong: Flags


def decide_local(trial: Trial, gates: Sequence[float]) -> CascadeAnswers:
    """What the cascade of local layers says with these gates."""
    by = decide_by(trial.said(), gates)
    routes: list[str | None] = [None] * len(by)
    confidence, wrong = np.full(len(by), np.nan), np.zeros(len(by), bool)
    for place, tried in enumerate(trial.layers):
        mine = by == place
        confidence[mine], wrong[mine] = tried.confidence[mine], ~tried.right[mine]
        for number in np.flatnonzero(mine):
            routes[number] = tried.routes[number]
    return CascadeAnswers(routes, confidence, by >= 0, wrong)


# Labels that are no route, named in a remark.
NAMED = 5


def load_serving(name: str, *, model: str | None = None, embedder: Embeds | None, config: str | None) -> Profile:
    """The profile as it serves; with `model`, the student in that folder instead of its own."""
    if model is None:
        return build_with(name, None, None, embedder=embedder, config=config)
    folder = File(model)
    if not folder.is_dir():
        raise QueryError(f"--model {model}: there is no such folder")
    entries = read_chain(name).document.tree.get("layers", ())
    takers = [layer_id(entry) for entry in entries if isinstance(entry, dict) and takes_model(entry)]
    if len(takers) != 1:
        raise LearnError(f"--model: {name} has {len(takers)} layers that serve a trained model, not one")
    return build_with(name, takers[0], folder, embedder=embedder, config=config, instead=True)


def models_of(profile: Profile) -> dict[str, str]:
    """The digest of the trained model that each layer serves."""
    layers = {place.id: place.call for place in profile.layers if place.call is not None}
    return {name: layer.artefact for name, layer in layers.items() if layer.artefact is not None}


def read_labelled(source: str | None, profiles: Sequence[Profile]) -> Examples:
    """The questions no model of these profiles has learnt from; without a file, those held out when it was trained.

    A label that is no route is a question outside all of them, and no mistake.
    """
    if source is not None:
        found = _unlearnt(profiles, read_examples(source, profile=profiles[0].name))
    else:
        held = [_held_out(profile) for profile in profiles]
        shared = set.intersection(*({*map(row_key, rows)} for rows in held))
        found = Examples(rows=tuple(row for row in held[0] if row_key(row) in shared))
    if not found.rows:
        said = "".join(f"; {said}" for said in found.remarks)
        raise LearnError(f"there is no question that no model here has learnt from{said}: name a FILE of others")
    return found


def _held_out(profile: Profile) -> Sequence[Example]:
    for layer, digest in models_of(profile).items():
        noted = read_record(profile.name, layer, digest)
        learnt = {*noted.learnt} if noted is not None else set()
        held = [row for row in noted.held if row_key(row) not in learnt] if noted is not None else []
        if held:
            return held
        if noted is not None and noted.held:
            said = "after it was judged it learnt from what was held out as well (turnout train --no-refit does not)"
            raise LearnError(f"{profile.name}: {said}; name a FILE of other questions")
    raise LearnError(f"{profile.name}: nothing is known of questions held out from training; name a FILE of others")


def _unlearnt(profiles: Sequence[Profile], found: Examples) -> Examples:
    """Without what a model has learnt from: it knows those by heart, and what is measured on them is no measure."""
    learnt: set[str] = set()
    for profile in profiles:
        for layer, digest in models_of(profile).items():
            noted = read_record(profile.name, layer, digest)
            # Of a model that came with Turnout, or from elsewhere, it is known only that it learns from the seeds.
            learnt |= {*noted.learnt} if noted is not None else {*map(row_key, read_seeds(profile.name).rows)}
    rows = tuple(row for row in found.rows if row_key(row) not in learnt)
    out = len(found.rows) - len(rows)
    if not out:
        return found
    said = f"{counted(out, 'question')} left out: the profile's model has learnt from them"
    return replace(found, rows=rows, remarks=(*found.remarks, said))


def remarks_of(trial: Trial, examples: Examples) -> list[str]:
    """What a reader of the figures should know of the questions and the layers."""
    said = [*examples.remarks, *(f"{count:,} questions left out: {why}" for why, count in trial.skipped.items())]
    if trial.foreign:
        told = ", ".join(f"{label} {count:,}" for label, count in list(trial.foreign.items())[:NAMED])
        more = f" and {len(trial.foreign) - NAMED} more" if len(trial.foreign) > NAMED else ""
        said.append(f"labels that are no route count as out of scope: {told}{more}")
    for tried in trial.layers:
        said += [f"layer {tried.place.id!r} failed {count:,} times: {why}" for why, count in tried.faults.items()]
    return [*said, *(remark for remark in trial.profile.remarks if remark.startswith("layer "))]
