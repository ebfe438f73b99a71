"""The one way to let a model serve: held against the champion by every check that applies to it.

What the two are compared on stands beside the challenger since it was trained: rows neither has learnt from, and what
the screen made of the new ones. The champion is replaced in one step, and only if it is still the one compared.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from msgspec.structs import replace

from turnout.config.champion import SHIPPED
from turnout.config.learning import LearnSettings, learn_settings
from turnout.core.embed import Embeds
from turnout.core.errors import PromotionRefused

from .contest import Contest, open_contest
from .dataset import Example, read_seeds, row_key
from .examine import Promotion, PromotionEvidence, examine
from .registry import ChampionChange, RegisteredModel, discard, set_champion
from .shadow import kept
from .train import TrainingRecord, read_record


def promote(
    profile: str | os.PathLike[str],
    *,
    settings: LearnSettings | None = None,
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
    settings = settings or learn_settings(config)
    contest = open_contest(profile, layer=layer, digest=digest, embedder=embedder, config=config)
    evidence = gather_evidence(contest, accept)
    found = examine(evidence, contest.challenger.digest, contest.champion, settings, progress)
    if check:
        return found
    # Refused: the report says why.
    with contextlib.suppress(PromotionRefused):
        found, _ = let_serve(found, contest.challenger, who=who, why=why, force=force)
        discard(contest.profile, contest.layer, keep=settings.keep_models)
    return found


def let_serve(
    found: Promotion, model: RegisteredModel, *, who: str = "", why: str = "", force: bool = False
) -> tuple[Promotion, ChampionChange | None]:
    """Let the challenger serve, if it passed or is forced; else PromotionRefused with the report."""
    if not found.passed and not force:
        count = len(found.failed)
        raise PromotionRefused(
            f"{found.challenger} was not promoted, {count} check{'s' * (count != 1)} failed: "
            + "; ".join(f"{one.check} ({one.value}, needs {one.limit}; {one.setting})" for one in found.failed),
            found,
        )
    forced = force and not found.passed
    said = why or ("forced: " + ", ".join(check.check for check in found.failed) if forced else "every check passed")
    metrics = {check.check: check.value for check in found.checks}
    change = set_champion(
        found.profile,
        found.layer,
        SHIPPED if model.shipped else model.digest,
        who=who,
        why=said,
        metrics=metrics,
        instead_of=found.champion,
    )
    return replace(found, promoted=True, forced=forced), change


def gather_evidence(contest: Contest, accept: tuple[str, ...] = ()) -> PromotionEvidence:
    """What is held against the challenger, or for it."""
    profile, layer, challenger = contest.profile, contest.layer, contest.challenger
    noted = read_record(profile, layer, challenger.digest)
    before = read_record(profile, layer, contest.champion)
    # Held out by the same rule both times; a row that changed sides all the same is no fair judge.
    learnt = set(before.learnt) if before is not None else set()
    rows = [row for row in noted.held if row_key(row) not in learnt] if noted is not None else []
    metrics = challenger.summary.metrics
    crossed = None
    if isinstance(metrics.get("accuracy"), float | int) and isinstance(metrics.get("rows"), float | int):
        count = int(metrics["rows"])
        crossed = round(metrics["accuracy"] * count), count
    return PromotionEvidence(
        kind=contest.kind,
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


def _known(profile: str, before: TrainingRecord | None, routes: tuple[str, ...]) -> list[Example]:
    """What the champion has seen, as far as its text is there: seeds, and what came with its own training."""
    seeds = list(read_seeds(profile, routes).rows)
    return [*seeds, *before.held, *before.screened.kept] if before is not None else seeds
