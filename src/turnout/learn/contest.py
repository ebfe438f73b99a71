"""A challenger and the champion, each in its place in the same profile, and what is known about either.

Both are read and built as the profile's student would be; only the folder differs. What they are compared on stands
beside the challenger since it was trained: rows neither has learnt from, and what the screen made of the new ones.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path as File

from msgspec import Struct

from turnout.config.cases import Case, read_cases
from turnout.config.champion import champion_digest, find_model
from turnout.config.check import layer_id
from turnout.config.learning import LearnSettings
from turnout.config.load import apply_settings, read_chain, settings_file
from turnout.config.resolve import build
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError, PromotionRefused
from turnout.core.profile import Profile
from turnout.core.router import Router

from . import registry
from .dataset import Example, read_seeds, row_key
from .layer import GAIN, TRAINED, find_layer
from .promote import Evidence, Promotion, examine, examine_gains, place_of, promote
from .registry import Candidate
from .shadow import kept
from .train import Noted, read_noted


class Contest(Struct, frozen=True):
    profile: str
    """The profile's own name, which the shelf knows it by."""
    layer: str
    kind: str
    challenger: Candidate
    champion: str
    """A digest, or `shipped`."""
    new: Router
    old: Router | None
    """None where nothing serves yet."""
    cases: list[Case]


def open_contest(
    profile: str | os.PathLike[str],
    *,
    layer: str | None = None,
    digest: str | None = None,
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
) -> Contest:
    """The challenger of that digest, or the newest, and the champion; neither is served by this."""
    plain = build_with(profile, None, None, embedder=embedder, config=config)
    name, entry = find_layer(plain.name, plain.resolved["layers"], TRAINED, layer)
    challenger = registry.find_candidate(plain.name, name, digest)
    if challenger.champion:
        raise LearnError(f"{challenger.digest} serves already: name another, or train one (turnout train -p {profile})")
    old = Router(plain) if find_model(dict(plain.resolved), name, None) is not None else None
    if old is not None:
        place_of(old, name)  # a champion that is there and cannot be asked is not the same as none
    cases = read_chain(profile).cases
    return Contest(
        plain.name,
        name,
        entry["kind"],
        challenger,
        champion_digest(plain.name, name),
        Router(build_with(profile, name, challenger.folder, embedder=embedder, config=config)),
        old,
        read_cases(cases) if cases is not None and cases.is_file() else [],
    )


def contend(
    profile: str | os.PathLike[str],
    *,
    settings: LearnSettings,
    layer: str | None = None,
    digest: str | None = None,
    accept: tuple[str, ...] = (),
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
    check: bool = False,
    force: bool = False,
    who: str = "",
    why: str = "",
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Promotion:
    """Hold a challenger against the champion and, unless this is only a `check`, let it serve if it passes."""
    contest = open_contest(profile, layer=layer, digest=digest, embedder=embedder, config=config)
    evidence = gather_evidence(contest, accept)
    examined = examine_gains if contest.kind == GAIN else examine
    found = examined(evidence, contest.challenger.digest, contest.champion, settings, progress)
    if check:
        return found
    # Refused: the report says why.
    with contextlib.suppress(PromotionRefused):
        found, _ = promote(found, contest.challenger, who=who, why=why, force=force)
        registry.discard(contest.profile, contest.layer, keep=settings.keep_models)
    return found


def build_with(
    profile: str | os.PathLike[str],
    layer: str | None,
    folder: File | None,
    *,
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
) -> Profile:
    """The profile with the model of that folder in a layer's place; without a folder, as it is."""
    chain = read_chain(profile)
    document, remarks = apply_settings(chain, settings_file(config))
    if folder is not None:
        for entry in document.tree["layers"]:
            if layer_id(entry) != layer:
                continue
            if "model" in entry or "artefact" in entry:
                said = "no promotion reaches it: take `model` and `artefact` out of its table"
                raise LearnError(f"the profile {profile} names the model of its layer {layer!r} itself, so {said}")
            entry["model"] = str(folder.absolute())
    return build(document, remarks, embedder=embedder, beside=chain.beside)


def gather_evidence(contest: Contest, accept: tuple[str, ...] = ()) -> Evidence:
    """What is held against the challenger, or for it."""
    profile, layer, challenger = contest.profile, contest.layer, contest.challenger
    noted = read_noted(profile, layer, challenger.digest)
    before = read_noted(profile, layer, contest.champion)
    # Held out by the same rule both times; a row that changed sides all the same is no fair judge.
    learnt = set(before.learnt) if before is not None else set()
    rows = [row for row in noted.held if row_key(row) not in learnt] if noted is not None else []
    metrics = challenger.summary.metrics
    crossed = None
    if isinstance(metrics.get("accuracy"), float | int) and isinstance(metrics.get("rows"), float | int):
        count = int(metrics["rows"])
        crossed = round(metrics["accuracy"] * count), count
    return Evidence(
        metrics=metrics,
        new=contest.new,
        old=contest.old,
        layer=layer,
        rows=rows,
        cases=contest.cases,
        screened=noted.screened if noted is not None else None,
        fresh=noted.screened.kept if noted is not None else (),
        known=_known(profile, before, contest.new.profile.routes),
        accept=accept,
        cross_validated=crossed,
        shadow=kept(profile, layer, challenger.digest),
    )


def _known(profile: str, before: Noted | None, routes: tuple[str, ...]) -> list[Example]:
    """What the champion has seen, as far as its text is there: seeds, and what came with its own training."""
    seeds = list(read_seeds(profile, routes).rows)
    return [*seeds, *before.held, *before.screened.kept] if before is not None else seeds


def champion_router(
    profile: str | os.PathLike[str],
    *,
    layer: str | None = None,
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
) -> tuple[Router, str, str | None]:
    """The profile as it serves, its student's layer, and what the shelf calls the model there; None where none is."""
    built = build_with(profile, None, None, embedder=embedder, config=config)
    name, _ = find_layer(built.name, built.resolved["layers"], TRAINED, layer)
    served = any(placed.id == name and placed.call is not None for placed in built.layers)
    return Router(built), name, champion_digest(built.name, name) if served else None
