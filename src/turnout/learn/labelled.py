"""What calibrating and evaluating begin with: a profile as it serves, labelled questions, and every layer's answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path as File

from msgspec.structs import replace

from turnout.config.champion import takes_model
from turnout.config.check import layer_id
from turnout.config.load import read_chain
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError, QueryError
from turnout.core.profile import Profile

from .contest import build_with
from .dataset import Example, Examples, read_examples, read_seeds, row_key
from .train import read_record
from .trial import Trial, try_layers

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
        if noted is not None and noted.held:
            return noted.held
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
    said = f"{out:,} question{'s' * (out != 1)} left out: the profile's model has learnt from them"
    return replace(found, rows=rows, remarks=(*found.remarks, said))


def ask_layers(profile: Profile, examples: Examples, progress: Callable[[int, int], None]) -> Trial:
    trial = try_layers(profile, examples.texts, examples.labels, progress)
    if not trial.labels:
        why = "; ".join(f"{count:,} {why}" for why, count in trial.skipped.items())
        raise LearnError(f"no question is left to ask the layers: {why}")
    return trial


def remarks_of(trial: Trial, examples: Examples) -> list[str]:
    """What whoever reads the figures should know of the questions and the layers."""
    said = [*examples.remarks, *(f"{count:,} questions left out: {why}" for why, count in trial.skipped.items())]
    if trial.foreign:
        told = ", ".join(f"{label} {count:,}" for label, count in list(trial.foreign.items())[:NAMED])
        more = f" and {len(trial.foreign) - NAMED} more" if len(trial.foreign) > NAMED else ""
        said.append(f"labels that are no route count as out of scope: {told}{more}")
    for tried in trial.layers:
        said += [f"layer {tried.place.id!r} failed {count:,} times: {why}" for why, count in tried.faults.items()]
    return [*said, *(remark for remark in trial.profile.remarks if remark.startswith("layer "))]
