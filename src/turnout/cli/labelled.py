"""What `calibrate` and `evaluate` begin with: a profile as it serves, labelled questions, and every layer's answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from turnout.config.champion import FIELD
from turnout.config.check import layer_id
from turnout.config.document import Place, set_value
from turnout.config.load import apply_settings, read_chain
from turnout.config.resolve import build
from turnout.config.settings import settings_file
from turnout.core.errors import LearnError, QueryError
from turnout.core.profile import Profile
from turnout.core.registry import kinds

from .draw.screen import counted, visible
from .question import STDIN
from .stream import progressing

if TYPE_CHECKING:
    from turnout.learn.dataset import Example, Examples
    from turnout.learn.trial import Trial

ModelOption = Annotated[
    str | None,
    Parameter(name="--model", metavar="FOLDER", help="The trained model in that folder, not the one that serves."),
]


def load_serving(name: str, config: str | None, model: str | None = None) -> Profile:
    """The profile with the embedder of this machine; with `model`, the student in that folder instead of its own."""
    from turnout.models.embed import find_embedder

    chain = read_chain(name)
    document, remarks = apply_settings(chain, settings_file(config))
    if model is not None:
        folder = os.path.abspath(model)
        if not File(folder).is_dir():
            raise QueryError(f"--model {model}: there is no such folder")
        entries = [entry for entry in document.tree.get("layers", ()) if isinstance(entry, dict)]
        takers = [layer_id(entry) for entry in entries if _takes_model(entry)]
        if len(takers) != 1:
            raise LearnError(f"--model: {name} has {len(takers)} layers that serve a trained model, not one")
        changed = set_value(document, f"layers.{takers[0]}.model", folder, Place("--model", None))
        if changed is None:
            raise LearnError(f"--model: the layer {takers[0]!r} of {name} has no id: give it one")
        document = changed
    return build(document, remarks, None, find_embedder(), chain.beside)


def _takes_model(entry: dict[str, object]) -> bool:
    kind = kinds().get(str(entry.get("kind")))
    return kind is not None and {FIELD, "model"} <= {*kind.config.__struct_fields__}


def read_labelled(source: str | None, profile: Profile) -> Examples:
    """The questions no model of the profile has learnt from; without a file, those held out when it was trained.

    A label that is no route is a question outside all of them, and no mistake.
    """
    from turnout.learn.dataset import Examples, read_examples

    if source == STDIN:
        raise QueryError("labelled questions are read from a file: write what you pipe in into one, and name that")
    if source is None:
        return Examples(rows=tuple(_held_out(profile)))
    found = read_examples(source, profile=profile.name)
    rest = _unlearnt(profile, found)
    if not rest.rows:
        raise LearnError(f"{source}: no question to judge by{''.join(f'; {said}' for said in rest.remarks)}")
    return rest


def _held_out(profile: Profile) -> Sequence[Example]:
    from turnout.learn.train import read_noted

    for layer, digest in models_of(profile).items():
        noted = read_noted(profile.name, layer, digest)
        if noted is not None and noted.held:
            return noted.held
    raise LearnError(f"{profile.name}: nothing is known of questions held out from training; name a FILE of others")


def _unlearnt(profile: Profile, found: Examples) -> Examples:
    """Without what a model has learnt from: it knows those by heart, and what is measured on them is no measure."""
    from turnout.learn.dataset import read_seeds, row_key
    from turnout.learn.train import read_noted

    learnt: set[str] = set()
    for layer, digest in models_of(profile).items():
        noted = read_noted(profile.name, layer, digest)
        # Of a model that came with Turnout, or from elsewhere, it is known only that it learns from the seeds.
        learnt |= {*noted.learnt} if noted is not None else {*map(row_key, read_seeds(profile.name).rows)}
    rows = tuple(row for row in found.rows if row_key(row) not in learnt) if learnt else found.rows
    if len(rows) == len(found.rows):
        return found
    said = f"{counted(len(found.rows) - len(rows), 'question')} left out: the profile's model has learnt from them"
    return replace(found, rows=rows, remarks=(*found.remarks, said))


def models_of(profile: Profile) -> dict[str, str]:
    """The digest of the trained model that each layer serves."""
    layers = {place.id: place.call for place in profile.layers if place.call is not None}
    return {name: layer.artefact for name, layer in layers.items() if layer.artefact is not None}


def ask_layers(profile: Profile, examples: Examples) -> Trial:
    from turnout.learn.trial import try_layers

    with progressing("questions") as progress:
        trial = try_layers(profile, examples.texts, examples.labels, progress)
    if not trial.labels:
        why = "; ".join(f"{count:,} {why}" for why, count in trial.skipped.items())
        raise LearnError(f"no question is left to ask the layers: {why}")
    return trial


def remarks_of(trial: Trial, examples: Examples) -> list[str]:
    """What whoever reads the figures should know of the questions and the layers."""
    said = [*examples.remarks, *(f"{count:,} questions left out: {why}" for why, count in trial.skipped.items())]
    if trial.foreign:
        told = ", ".join(f"{visible(label)} {count:,}" for label, count in list(trial.foreign.items())[:5])
        more = f" and {len(trial.foreign) - 5} more" if len(trial.foreign) > 5 else ""
        said.append(f"labels that are no route count as out of scope: {told}{more}")
    for tried in trial.layers:
        said += [f"layer {tried.place.id!r} failed {count:,} times: {why}" for why, count in tried.faults.items()]
    return [*said, *(remark for remark in trial.profile.remarks if remark.startswith("layer "))]


def read_share(text: str, option: str) -> float:
    """`2%`, `2 %` or `0.02`."""
    said = text.strip()
    try:
        share = float(said.removesuffix("%")) / 100 if said.endswith("%") else float(said)
    except ValueError:
        share = float("nan")
    if not 0.0 < share < 1.0:
        raise QueryError(f"{option} {text!r}: a share between 0 and 1, such as 2% or 0.02")
    return share


def told(share: float) -> str:
    """`2%`, `99.5%`"""
    return f"{100 * share:.6g}%"
