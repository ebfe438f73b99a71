"""`turnout calibrate`: all gates of a cascade at once, with a bound on the errors they let through."""

from __future__ import annotations

import math
import shlex
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from turnout.core.errors import QueryError
from turnout.core.profile import Profile
from turnout.text.count import counted

from ..draw.screen import Glyphs, console, glyphs_for, visible, width_of, write_json
from ..draw.shape import Rail, bar
from ..labelled import ModelOption, read_share, told
from ..option import DEFAULT_PROFILE, STDIN, ConfigOption, JsonOption, ProfileOption, hint
from ..stream import progressing
from .promote import embedder_here, needing_learn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from turnout.learn.calibrate import Calibration
    from turnout.learn.gate import Count, GateChoice, GatePoint
    from turnout.runtime.estimate import QuestionCost

# Points of the curve on the screen; --json has all of them.
SHOWN = 10
BAR = 24


def calibrate(
    source: Annotated[
        str,
        Parameter(
            name="FILE", help='Labelled questions, {"text", "label"} a row; a label that is no route is out of scope.'
        ),
    ],
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    max_error: Annotated[
        str, Parameter(name="--max-error", metavar="SHARE", help="Of what local layers decide, so much may be wrong.")
    ] = "2%",
    confidence: Annotated[str, Parameter(name="--confidence", metavar="SHARE", help="How sure that must be.")] = "95%",
    seed: Annotated[
        int, Parameter(name="--seed", metavar="N", help="Draws the questions that choose from those that test.")
    ] = 0,
    model: ModelOption = None,
    out: Annotated[
        str | None,
        Parameter(name=("--out", "-o"), metavar="FILE", help="Write a profile that extends the old one."),
    ] = None,
    force: Annotated[
        bool, Parameter(name="--force", negative=(), show_default=False, help="Overwrite a file that is there.")
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    limit, sure = read_share(max_error, "--max-error"), read_share(confidence, "--confidence")
    if seed < 0:
        raise QueryError(f"--seed {seed}: at least 0 is needed")
    if out is not None and File(out).exists() and not force:
        raise QueryError(f"{out} would be overwritten: choose another name, or say --force")
    if source == STDIN:
        raise QueryError("labelled questions are read from a file: write what you pipe in into one, and name that")
    with needing_learn():
        from turnout.learn.calibrate import calibrate as choose
        from turnout.runtime.estimate import cost_of_rest
    options = ["-p", profile, "--max-error", max_error, "--confidence", confidence, "--seed", str(seed)]
    options += ["--model", model] if model is not None else []
    with progressing("questions") as progress:
        found = choose(
            profile,
            source,
            max_error=limit,
            confidence=sure,
            seed=seed,
            model=model,
            out=File(out) if out is not None else None,
            command=shlex.join(["turnout", "calibrate", source, *options]),
            embedder=embedder_here(),
            config=config,
            progress=progress,
        )
    cost = cost_of_rest(found.profile, found.trial.texts, config)
    if json:
        write_json(msgspec.json.encode(_form(found, cost)))
    else:
        _print(found, cost, asked=out)
    return 0 if found.choice.gates is not None else 1


def _form(found: Calibration, cost: QuestionCost | None) -> Any:
    from turnout.learn.calibrate import changed_gates, spell_settings

    profile, choice, provenance = found.profile, found.choice, found.provenance
    rest = 1 - choice.tested.coverage
    return {
        "profile": profile.name,
        "profile_hash": profile.hash,
        "rows": provenance.rows,
        "out_of_scope": provenance.foreign,
        "data_hash": provenance.data_hash,
        "max_error": choice.max_error,
        "confidence": 1 - choice.delta,
        "seed": choice.seed,
        "proven": choice.gates is not None,
        "gates": {
            name: {"old": old, "new": None if new > 1 else new}
            for name, (old, new) in changed_gates(profile, choice).items()
        },
        "tested": _counted(choice.tested),
        "error_at_most": choice.ceiling,
        "before": _counted(provenance.before),
        "layers": choice.shares,
        "curve": [
            {
                "gates": [None if gate > 1 else gate for gate in point.gates],
                **_counted(point.tested),
                "p_value": point.p_value,
                "proven": point.proven,
            }
            for point in choice.path
        ],
        "goes_on": {
            "share": rest,
            "to": cost.layer if cost is not None else "fallback",
            "usd_per_1000": cost.usd * rest * 1000 if cost is not None and cost.usd is not None else None,
        },
        "rows_needed": choice.rows_needed,
        "settings": spell_settings(profile, choice),
        "written": str(found.written) if found.written is not None else None,
    }


def _counted(count: Count) -> dict[str, Any]:
    return {
        "rows": count.rows,
        "decided": count.decided,
        "wrong": count.wrong,
        "coverage": count.coverage,
        "error": count.error if count.decided else None,
    }


# --- on the screen


def _print(found: Calibration, cost: QuestionCost | None, *, asked: str | None) -> None:
    from rich.text import Text

    from turnout.learn.calibrate import changed_gates, overriding, spell_settings

    profile, choice, provenance = found.profile, found.choice, found.provenance
    screen = console()
    glyphs, width = glyphs_for(screen), width_of(screen)
    outside = f", {provenance.foreign:,} out of scope" if provenance.foreign else ""
    head = f"  {counted(provenance.rows, 'question')}{outside}"
    screen.print(Text.assemble((visible(profile.name), "bold"), (f" {profile.hash}", "dim"), head))
    for remark in found.remarks:
        screen.print(Rail(Text(visible(remark), "yellow"), "  "), width=width)
    screen.print(Rail(_curve(choice, provenance.before, glyphs), "  "), width=width)
    tested = choice.tested
    if choice.gates is None:
        _apologise(screen, choice)
        return
    said = (
        f"{tested.coverage:.1%} decided here; {tested.wrong:,} of {tested.decided:,} wrong ({tested.error:.2%}), "
        f"at {told(1 - choice.delta)} confidence at most {choice.ceiling:.2%}"
    )
    screen.print(Text(said, "bold green"))
    screen.print(Rail(_layers(profile, choice, glyphs), "  "), width=width)
    for line in _rest(1 - tested.coverage, 1 - provenance.before.coverage, cost):
        screen.print(line, soft_wrap=True)
    names = list(changed_gates(profile, choice))
    lines = spell_settings(profile, choice)
    if found.written is not None:
        screen.print(Text(f"next: {hint('check', str(found.written), '--cases')}", "dim"), soft_wrap=True)
        for remark in overriding(profile, names):
            warning = f"{remark}: it goes before {found.written}, so change it there as well"
            screen.print(Text(visible(warning), "yellow"), soft_wrap=True)
    elif lines:
        screen.print(Text("for your turnout.toml (or --out FILE.toml writes a profile):", "dim"))
        for line in lines:
            screen.print(Text(f"  {visible(line)}"), soft_wrap=True)
    elif names:
        screen.print(Text("--out FILE.toml writes them as a profile that extends this one", "dim"))
    if asked is not None and not names:
        screen.print(Text("no layer has a gate to choose: the profile stays as it is", "yellow"))


def _apologise(screen: Console, choice: GateChoice) -> None:
    from rich.text import Text

    tested = choice.tested
    limit, sure = told(choice.max_error), told(1 - choice.delta)
    if math.isnan(choice.least_error):
        said = "no local layer decides any of these questions"
    else:
        said = (
            f"an error of at most {limit} cannot be shown at {sure} confidence: of {tested.rows:,} questions that "
            f"test, the most promising gates decide {tested.decided:,}, {tested.wrong:,} of them wrong"
        )
    screen.print(Text(said, "bold yellow"), soft_wrap=True)
    if choice.rows_needed is not None:
        screen.print(f"about {choice.rows_needed:,} labelled questions like these would show it", soft_wrap=True)
    elif not math.isnan(choice.least_error):
        screen.print(
            f"more questions would not help: at best {choice.least_error:.2%} of what is decided is wrong. Train the "
            "layer, mend the rules, or allow more errors",
            soft_wrap=True,
        )


def _curve(choice: GateChoice, before: Count, glyphs: Glyphs) -> Table:
    """What may be decided at which price in errors, on the questions that test."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", "right", "right"):
        grid.add_column(justify=justify, no_wrap=True)
    grid.add_row(*(Text(name, "dim") for name in ("", "decided", "", "wrong", "at most")))
    chosen = None
    if choice.gates is not None:
        chosen = next(point for point in choice.path if point.gates == choice.gates)
    for point in pick_points(choice, chosen):
        mine = point is chosen
        style = "green" if point.proven else "dim"
        _row(
            grid,
            f"{glyphs.arrow} chosen" if mine else "",
            point.tested,
            choice.delta,
            glyphs,
            f"bold {style}" if mine else style,
        )
    _row(grid, "now", before, choice.delta, glyphs, "cyan")
    return grid


def _row(grid: Table, name: str, count: Count, delta: float, glyphs: Glyphs, style: str) -> None:
    from rich.text import Text

    from turnout.learn.bound import ceiling_of

    error = f"{count.error:.2%}" if count.decided else "none"
    most = f"{ceiling_of(count.wrong, count.decided, delta):.2%}"
    grid.add_row(
        Text(name, style), Text(f"{count.coverage:.1%}", style), bar(count.coverage, BAR, glyphs, style), error, most
    )


def pick_points(choice: GateChoice, chosen: GatePoint | None) -> list[GatePoint]:
    """Some points of the path, evenly spread over what they decide, the chosen one among them."""
    path = [point for point in choice.path if point.tested.decided]
    if not path:
        return []
    top = max(point.tested.coverage for point in path)
    picked: list[GatePoint] = []
    for step in range(1, SHOWN + 1):
        near = min(path, key=lambda point: abs(point.tested.coverage - top * step / SHOWN))
        if near not in picked:
            picked.append(near)
    if chosen is not None and chosen not in picked and chosen.tested.decided:
        # In place of its neighbour, so that the picture keeps its length.
        nearest = min(picked, key=lambda point: abs(point.tested.coverage - chosen.tested.coverage))
        picked[picked.index(nearest)] = chosen
    return sorted(picked, key=lambda point: point.tested.coverage)


def _layers(profile: Profile, choice: GateChoice, glyphs: Glyphs) -> Table:
    from rich.table import Table
    from rich.text import Text

    from turnout.learn.calibrate import changed_gates

    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "right"):
        grid.add_column(justify=justify, no_wrap=True)
    changed = changed_gates(profile, choice)
    for share in choice.shares:
        gate = "no gate"
        if share.id in changed:
            was, now = changed[share.id]
            gate = f"gate {was:g} {glyphs.arrow} {'closed' if now > 1 else f'{now:g}'}"
        wrong = f"{share.wrong:,} of {share.decided:,} wrong" if share.decided else "decides nothing"
        part = share.decided / choice.tested.rows
        grid.add_row(Text(visible(share.id), "bold"), Text(gate, "cyan"), f"{part:.1%}", Text(wrong, "dim"))
    return grid


def _rest(share: float, before: float, cost: QuestionCost | None) -> list[str]:
    if cost is None:
        return [f"{share:.1%} go to the fallback (before: {before:.1%})"]
    lines = [
        f"{share:.1%} go on to {visible(cost.layer)} (before: {before:.1%}), each up to {cost.deadline_ms:,.0f} ms"
    ]
    if cost.usd is not None:
        per = cost.usd * 1000
        lines.append(f"about ${per * share:.4f} for 1,000 questions (before: ${per * before:.4f}), at list price")
    return lines
