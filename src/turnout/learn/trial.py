"""Asks every local layer of a profile about labelled questions, including those an earlier layer would decide.

The local layers are those before the first that asks a network. A label that is no route (`oos`, say) is out of scope:
any decision of such a question is wrong. Questions that the profile splits have no single label, and blank ones are
answered without any layer; both are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
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
from turnout.core.profile import PlacedLayer, Profile
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
    """The answers of one layer, in the order of the questions."""

    place: PlacedLayer
    routes: tuple[str | None, ...]
    """None where the layer passed or failed."""
    confidence: Floats
    margin: Floats
    decisive: Flags
    right: Flags
    elapsed_ns: npt.NDArray[np.int64]
    calibrated: bool
    """Whether its confidence claims to be a probability."""
    faults: Mapping[str, int]
    """How often each error occurred."""

    @property
    def answered(self) -> Flags:
        return ~np.isnan(self.confidence)

    def answers(self) -> LayerAnswers:
        """The answers that gates are chosen on; those below the margin's gate count as none."""
        held = ~self.decisive & ~(self.margin >= self.place.gate.margin)
        return LayerAnswers(self.place.id, np.where(held, np.nan, self.confidence), self.right, self.decisive)


class Trial(NamedTuple):
    profile: Profile
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    layers: tuple[LayerTrial, ...]
    skipped: Mapping[str, int]
    """How many questions were left out for which reason."""

    @property
    def foreign(self) -> dict[str, int]:
        """The labels that are no route, and how many questions have each."""
        routes = {*self.profile.routes}
        return dict(Counter(label for label in self.labels if not {*label.split(JOIN)} <= routes).most_common())

    def answers(self) -> list[LayerAnswers]:
        return [tried.answers() for tried in self.layers]

    def gates(self) -> tuple[float, ...]:
        """The gates of the profile."""
        return tuple(tried.place.gate.confidence for tried in self.layers)


def is_network(place: PlacedLayer) -> bool:
    """Whether a layer asks a network, or would if what it needs were installed."""
    kind = kinds().get(place.kind)
    return place.cost == "network" or (kind is not None and kind.cost == "network")


def local_layers(profile: Profile) -> tuple[PlacedLayer, ...]:
    """The layers before the first that asks a network, without those that an application provides."""
    own = (place for place in profile.layers if not is_brought_by_app(place.kind))
    return tuple(place for place in takewhile(lambda place: not is_network(place), own) if place.call is not None)


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


def _ask(profile: Profile, place: PlacedLayer, reading: Reading) -> tuple[Verdict | Fault | None, int]:
    """The answer of one layer, with its routes adjusted as in the cascade, and how long it took."""
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


def _gather(
    place: PlacedLayer, given: Sequence[tuple[Verdict | Fault | None, int]], wanted: Sequence[str]
) -> LayerTrial:
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
    """The decisions of the local layers together."""

    routes: list[str | None]
    """None where no local layer decides."""
    confidence: Floats
    decided: Flags
    wrong: Flags


def decide_local(trial: Trial, gates: Sequence[float]) -> CascadeAnswers:
    """The decisions of the local layers with these gates."""
    by = decide_by(trial.answers(), gates)
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
    """The profile as it serves, or with the student in the folder `model` instead of its own."""
    if model is None:
        return build_with(name, embedder=embedder, config=config)
    folder = File(model)
    if not folder.is_dir():
        raise QueryError(f"--model {model}: there is no such folder")
    entries = read_chain(name).document.tree.get("layers", ())
    takers = [layer_id(entry) for entry in entries if isinstance(entry, dict) and takes_model(entry)]
    if len(takers) != 1:
        raise LearnError(f"--model: {name} has {len(takers)} layers that serve a trained model, not one")
    return build_with(name, takers[0], folder, embedder=embedder, config=config, instead=True)


def models_of(profile: Profile) -> dict[str, str]:
    """The digest of the trained model of each layer that has one."""
    served = {place.id: place.call.artefact for place in profile.layers if place.call is not None}
    return {layer: digest for layer, digest in served.items() if digest is not None}


def read_labelled(source: str | None, profiles: Sequence[Profile]) -> Examples:
    """The questions of a file that no model of these profiles has learnt from; without a file, those held out from
    training.

    A label that is no route is no mistake: the question is outside all of them.
    """
    if source is not None:
        examples = _unlearnt(profiles, read_examples(source, profile=profiles[0].name))
    else:
        held = [_held_out(profile) for profile in profiles]
        shared = set.intersection(*({*map(row_key, rows)} for rows in held))
        examples = Examples(rows=tuple(row for row in held[0] if row_key(row) in shared))
    if not examples.rows:
        remarks = "".join(f"; {remark}" for remark in examples.remarks)
        raise LearnError(f"there is no question that no model here has learnt from{remarks}: name a FILE of others")
    return examples


def _held_out(profile: Profile) -> Sequence[Example]:
    for layer, digest in models_of(profile).items():
        record = read_record(profile.name, layer, digest)
        if record is None or not record.held:
            continue
        if held := [row for row in record.held if row_key(row) not in {*record.learnt}]:
            return held
        why = "after it was judged it learnt from what was held out as well (turnout train --no-refit does not)"
        raise LearnError(f"{profile.name}: {why}; name a FILE of other questions")
    raise LearnError(f"{profile.name}: nothing is known of questions held out from training; name a FILE of others")


def _unlearnt(profiles: Sequence[Profile], examples: Examples) -> Examples:
    """The examples without those a model has learnt from: figures on these would be meaningless."""
    learnt: set[str] = set()
    for profile in profiles:
        for layer, digest in models_of(profile).items():
            record = read_record(profile.name, layer, digest)
            # A model without a record is assumed to have learnt from the seeds.
            learnt |= {*record.learnt} if record is not None else {*map(row_key, read_seeds(profile.name).rows)}
    rows = tuple(row for row in examples.rows if row_key(row) not in learnt)
    removed = len(examples.rows) - len(rows)
    if not removed:
        return examples
    remark = f"{counted(removed, 'question')} left out: the profile's model has learnt from them"
    return replace(examples, rows=rows, remarks=(*examples.remarks, remark))


def remarks_of(trial: Trial, examples: Examples) -> list[str]:
    """Remarks on the questions and the layers for readers of the figures."""
    remarks = [*examples.remarks, *(f"{count:,} questions left out: {why}" for why, count in trial.skipped.items())]
    if trial.foreign:
        listed = ", ".join(f"{label} {count:,}" for label, count in list(trial.foreign.items())[:NAMED])
        more = f" and {len(trial.foreign) - NAMED} more" if len(trial.foreign) > NAMED else ""
        remarks.append(f"labels that are no route count as out of scope: {listed}{more}")
    for tried in trial.layers:
        remarks += [f"layer {tried.place.id!r} failed {count:,} times: {why}" for why, count in tried.faults.items()]
    return [*remarks, *(remark for remark in trial.profile.remarks if remark.startswith("layer "))]
