"""`turnout train --outcomes`: which model answered right in, a layer that picks the cheapest good enough out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import msgspec

from turnout.core.profile import Profile

from ..draw.screen import console, visible, write_json
from ..labelled import needing_learn, read_number
from ..option import hint
from ..stream import phases
from .student import let_serve, print_promotion, promotion_form
from .train import AimOptions, print_figures, print_head

if TYPE_CHECKING:
    from turnout.core.embed import Embeds
    from turnout.learn.gain import GainTraining
    from turnout.learn.promote import Promotion


def train_from_outcomes(
    profile: Profile,
    name: str,
    source: str,
    layer: str | None,
    embedder: Embeds | None,
    seed: int,
    out: str | None,
    options: AimOptions,
    *,
    promote: bool,
    json: bool,
    config: str | None,
) -> int:
    """Train, and let it serve if that was asked for and every check of `turnout student promote` says it may; `name`
    is the profile as it stands on the command line."""
    with needing_learn(name):
        from turnout.learn.frontier import aim_for
        from turnout.learn.gain import train_gains
    said = {name: text for name, text in asdict(options).items() if text is not None}
    aim = aim_for(**{name: read_number(text, f"--{name.replace('_', '-')}") for name, text in said.items()})
    with phases() as say:
        found = train_gains(
            profile,
            source,
            layer=layer,
            aim=aim,
            embedder=embedder,
            seed=seed,
            out=File(out) if out is not None else None,
            say=say,
        )
    held: Promotion | None = None
    if promote:
        manifest = found.manifest
        held = let_serve(name, manifest.digest, manifest.layer, config, why="turnout train --promote")
    serves = held is not None and held.promoted
    if json:
        form = msgspec.to_builtins(found.manifest) | {"folder": str(found.folder), "remarks": found.fitted.remarks}
        report = {"promotion": promotion_form(held)} if held is not None else {}
        write_json(form | {"serves": serves} | report)
    else:
        _print(found)
        if held is not None:
            console().print()
            print_promotion(held, name, asked=True)
        else:
            _print_next(found, name, on_shelf=out is None)
    return 0 if serves or not promote else 1


def _print(found: GainTraining) -> None:
    screen, manifest = console(), found.manifest
    embedder = manifest.embedder.name if manifest.embedder is not None else None
    print_head(screen, manifest.profile, manifest.layer, embedder, f"Aim: {manifest.aim}")
    for said in found.fitted.remarks:
        screen.say((f"  {visible(said)}", "dim"))
    screen.print()
    print_figures(screen, figures(manifest.tiers, found.manifest.metrics))
    screen.print()
    screen.say(f"{manifest.digest} in {visible(str(found.folder))}")


def _print_next(found: GainTraining, name: str, *, on_shelf: bool) -> None:
    if on_shelf:
        promote = hint("student", "promote", "-p", name, "--layer", found.manifest.layer)
        said = f"It does not serve yet: {promote} checks it and lets it serve."
    else:
        said = "Nothing serves it: without --out it is a candidate, and --promote lets it serve."
    console().say(said)


def figures(tiers: Sequence[str], metrics: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What a figure is called, what it is and what it means; what could not be measured is left out."""

    def said(name: str) -> str:
        value = metrics.get(name)
        return "unknown" if value is None else f"{value:.1%}"

    yield "questions", f"{metrics['rows']:,}", "with an outcome for every tier, judged by heads that had not seen them"
    ends = (
        f"the cheapest tier alone {said('quality_cheapest')}, the most expensive alone {said('quality_most_expensive')}"
    )
    yield "quality", said("quality"), ends
    yield "kept", said("kept"), f"of that gap; 95 % interval {said('kept_low')} to {said('kept_high')}"
    yield "for", said("cost_share"), "of what the most expensive tier costs more than the cheapest"
    yield "calibration error", said("ece"), "how far its confidence is from the truth"
    if metrics.get("passed") is not None:
        yield "passed on", said("passed"), "of questions like these, and whatever is unlike them"
    if metrics.get("apgr") is not None:
        yield "APGR", f"{metrics['apgr']:.3f}", "0.5 is chance, 1 is perfect"
    for tier, share in zip(tiers, metrics.get("shares") or (), strict=False):
        yield tier, f"{share:.1%}", "of the questions"
