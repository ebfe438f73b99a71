"""`turnout train --outcomes`: learn from models' right and wrong answers which model is good enough."""

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
    """Train a gain layer and, with --promote, let it serve if it passes every check. `name` is the profile as typed."""
    with needing_learn(name):
        from turnout.learn.frontier import aim_for
        from turnout.learn.gain import train_gains
    given = {option: text for option, text in asdict(options).items() if text is not None}
    aim = aim_for(**{option: read_number(text, f"--{option.replace('_', '-')}") for option, text in given.items()})
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
    promotion: Promotion | None = None
    if promote:
        manifest = found.manifest
        promotion = let_serve(name, manifest.digest, manifest.layer, config, why="turnout train --promote")
    serves = promotion is not None and promotion.promoted
    if json:
        form = msgspec.to_builtins(found.manifest) | {"folder": str(found.folder), "remarks": found.fitted.remarks}
        report = {"promotion": promotion_form(promotion)} if promotion is not None else {}
        write_json(form | {"serves": serves} | report)
    else:
        _print(found)
        if promotion is not None:
            console().print()
            print_promotion(promotion, name, asked=True)
        else:
            _print_next(found, name, on_shelf=out is None)
    return 0 if serves or not promote else 1


def _print(found: GainTraining) -> None:
    screen, manifest = console(), found.manifest
    embedder = manifest.embedder.name if manifest.embedder is not None else None
    print_head(screen, manifest.profile, manifest.layer, embedder, f"Aim: {manifest.aim}")
    for remark in found.fitted.remarks:
        screen.say((f"  {visible(remark)}", "dim"))
    screen.print()
    print_figures(screen, figures(manifest.tiers, found.manifest.metrics))
    screen.print()
    screen.say(f"{manifest.digest} in {visible(str(found.folder))}")


def _print_next(found: GainTraining, name: str, *, on_shelf: bool) -> None:
    if on_shelf:
        promote = hint("student", "promote", "-p", name, "--layer", found.manifest.layer)
        console().say(f"It does not serve yet: {promote} checks it and lets it serve.")
    else:
        console().say("Nothing serves it: without --out it is a candidate, and --promote lets it serve.")


def figures(tiers: Sequence[str], metrics: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The name, value and meaning of each figure; what could not be measured is left out."""

    def share(name: str) -> str:
        value = metrics.get(name)
        return "unknown" if value is None else f"{value:.1%}"

    yield "questions", f"{metrics['rows']:,}", "with an outcome for every tier, judged by heads that had not seen them"
    cheapest, most_expensive = share("quality_cheapest"), share("quality_most_expensive")
    yield "quality", share("quality"), f"the cheapest tier alone {cheapest}, the most expensive alone {most_expensive}"
    yield "kept", share("kept"), f"of that gap; 95 % interval {share('kept_low')} to {share('kept_high')}"
    yield "for", share("cost_share"), "of what the most expensive tier costs more than the cheapest"
    yield "calibration error", share("ece"), "how far its confidence is from the truth"
    if metrics.get("passed") is not None:
        yield "passed on", share("passed"), "of questions like these, and whatever is unlike them"
    if metrics.get("apgr") is not None:
        yield "APGR", f"{metrics['apgr']:.3f}", "0.5 is chance, 1 is perfect"
    for tier, part in zip(tiers, metrics.get("shares") or (), strict=False):
        yield tier, f"{part:.1%}", "of the questions"
