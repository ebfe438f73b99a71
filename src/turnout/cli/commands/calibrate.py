"""`turnout calibrate`: choose all gates of a profile together, with a bound on the errors they let through."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from turnout.config.name import DEFAULT_PROFILE
from turnout.runtime.load import open_embedder
from turnout.text.count import counted

from ..draw.screen import Glyphs, console, visible, write_json
from ..draw.shape import Screen, bar, columns
from ..labelled import ModelOption, check_files, needing_learn, percentage, read_share
from ..option import ConfigOption, FileOption, JsonOption, NumberOption, ProfileOption, ShareOption, check_least, hint
from ..stream import progressing

if TYPE_CHECKING:
    from turnout.learn.calibrate import Calibration
    from turnout.learn.gate import Count, GateChoice, GatePoint
    from turnout.runtime.estimate import QuestionCost

# Points of the curve that are listed; --json has all.
SHOWN = 10
UNCONDITIONAL = "a bound on all decisions together, as questions come: a single route or kind of question may do worse"
BAR = 24


def calibrate(
    source: Annotated[
        str,
        Parameter(
            name="FILE",
            help='Labelled questions, {"text", "label"} a row; a label that is not a route is out of scope.',
        ),
    ],
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    max_error: Annotated[ShareOption, Parameter(help="The share of local decisions that may be wrong.")] = "2%",
    confidence: Annotated[ShareOption, Parameter(help="How sure that must be.")] = "95%",
    seed: Annotated[NumberOption, Parameter(help="Draws the questions that choose from those that test.")] = 0,
    model: ModelOption = None,
    out: Annotated[
        FileOption, Parameter(name=("--out", "-o"), help="Write a profile that extends the old one.")
    ] = None,
    force: Annotated[bool, Parameter(help="Overwrite an existing file.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    error_limit, wanted_confidence = read_share(max_error, "--max-error"), read_share(confidence, "--confidence")
    check_least("--seed", seed, 0)
    check_files(source, out, force=force)
    with needing_learn(profile):
        from turnout.learn.calibrate import calibrate as choose
        from turnout.runtime.estimate import cost_of_rest
    options = ["-p", profile, "--max-error", max_error, "--confidence", confidence, "--seed", str(seed)]
    options += ["--model", model] if model is not None else []
    with progressing("questions") as progress:
        found = choose(
            profile,
            source,
            max_error=error_limit,
            confidence=wanted_confidence,
            seed=seed,
            model=model,
            out=File(out) if out is not None else None,
            command=shlex.join(["turnout", "calibrate", source, *options]),
            embedder=open_embedder(config, local=True),
            config=config,
            progress=progress,
        )
    cost = cost_of_rest(found.profile, found.trial.texts, config)
    if json:
        write_json(_form(found, cost))
    else:
        _print(found, cost, asked=out)
    return 0 if found.choice.gates is not None else 1


def _form(found: Calibration, cost: QuestionCost | None) -> dict[str, Any]:
    from turnout.learn.calibrate import changed_gates, spell_settings

    profile, choice = found.profile, found.choice
    rest = 1 - choice.tested.coverage
    gates = {name: {"old": old, "new": _open(new)} for name, (old, new) in changed_gates(profile, choice).items()}
    curve = [
        {"gates": list(map(_open, point.gates))}
        | _count_form(point.tested)
        | {"p_value": point.p_value, "proven": point.proven}
        for point in choice.path
    ]
    return {
        "profile": profile.name,
        "profile_hash": profile.hash,
        "rows": len(found.trial.labels),
        "out_of_scope": found.foreign,
        "data_hash": found.data_hash,
        "max_error": choice.max_error,
        "confidence": 1 - choice.delta,
        "seed": choice.seed,
        "proven": choice.gates is not None,
        "gates": gates,
        "tested": _count_form(choice.tested),
        "error_at_most": choice.ceiling,
        "before": _count_form(found.before),
        "layers": choice.shares,
        "curve": curve,
        "goes_on": {
            "share": rest,
            "to": cost.layer if cost is not None else "fallback",
            "usd_per_1000": cost.usd * rest * 1000 if cost is not None and cost.usd is not None else None,
        },
        "rows_needed": choice.rows_needed,
        "settings": spell_settings(profile, choice),
        "written": str(found.written) if found.written is not None else None,
    }


def _open(gate: float) -> float | None:
    """The gate as a number; None if nothing passes it."""
    return None if gate > 1 else gate


def _count_form(count: Count) -> dict[str, Any]:
    numbers = {name: getattr(count, name) for name in ("rows", "decided", "wrong", "coverage")}
    return numbers | {"error": count.error if count.decided else None}


# --- on the screen


def _print(found: Calibration, cost: QuestionCost | None, *, asked: str | None) -> None:
    from turnout.learn.calibrate import changed_gates, overriding, spell_settings

    profile, choice = found.profile, found.choice
    screen = console()
    outside = f", {found.foreign:,} out of scope" if found.foreign else ""
    head = f"  {counted(len(found.trial.labels), 'question')}{outside}"
    screen.say((visible(profile.name), "bold"), (f" {profile.hash}", "dim"), head)
    for remark in found.remarks:
        screen.inset(Text(visible(remark), "yellow"))
    screen.inset(_curve(choice, found.before, screen.glyphs))
    tested = choice.tested
    if choice.gates is None:
        _explain_failure(screen, choice)
        return
    result = (
        f"{tested.coverage:.1%} decided here; {tested.wrong:,} of {tested.decided:,} wrong ({tested.error:.2%}), "
        f"at {percentage(1 - choice.delta)} confidence at most {choice.ceiling:.2%}"
    )
    screen.say((result, "bold green"))
    screen.say((UNCONDITIONAL, "dim"))
    changed = changed_gates(profile, choice)
    screen.inset(_layers(choice, changed, screen.glyphs))
    for line in _rest(1 - tested.coverage, 1 - found.before.coverage, cost):
        screen.say(line)
    lines = spell_settings(profile, choice)
    if found.written is not None:
        screen.say((f"next: {hint('check', str(found.written), '--cases')}", "dim"))
        for remark in overriding(profile, list(changed)):
            screen.say((visible(f"{remark}: it goes before {found.written}, so change it there as well"), "yellow"))
    elif lines:
        screen.say(("for your turnout.toml (or --out FILE.toml writes a profile):", "dim"))
        for line in lines:
            screen.say(f"  {visible(line)}")
    elif changed:
        screen.say(("--out FILE.toml writes them as a profile that extends this one", "dim"))
    if asked is not None and not changed:
        screen.say(("no layer has a gate to choose: the profile stays as it is", "yellow"))


def _explain_failure(screen: Screen, choice: GateChoice) -> None:
    """Say why nothing could be proven, and what may help."""
    tested = choice.tested
    if math.isnan(choice.least_error):
        screen.say(("no local layer decides any of these questions", "bold yellow"))
    else:
        unproven = (
            f"an error of at most {percentage(choice.max_error)} cannot be shown at {percentage(1 - choice.delta)} "
            f"confidence: of {tested.rows:,} questions that test, the most promising gates decide {tested.decided:,}, "
            f"{tested.wrong:,} of them wrong"
        )
        screen.say((unproven, "bold yellow"))
    if choice.rows_needed is not None:
        screen.say(f"about {choice.rows_needed:,} labelled questions like these would show it")
    elif choice.least_error < choice.max_error:
        screen.say(
            f"more questions may help: the safest gates are wrong in {choice.least_error:.2%} of what they decide"
        )
    elif not math.isnan(choice.least_error):
        best = f"more questions would not help: at best {choice.least_error:.2%} of what is decided is wrong."
        screen.say(f"{best} Train the layer, mend the rules, or allow more errors")


def _curve(choice: GateChoice, before: Count, glyphs: Glyphs) -> Table:
    """The shares that can be decided, and their errors on the questions that test."""
    from turnout.learn.bound import ceiling_of

    grid = columns("", "right", "", "right", "right")
    grid.add_row(*(Text(name, "dim") for name in ("", "decided", "", "wrong", "at most")))
    chosen = next((point for point in choice.path if point.gates == choice.gates), None)
    rows = []
    for point in pick_points(choice, chosen):
        name, bold = (f"{glyphs.arrow} chosen", "bold ") if point is chosen else ("", "")
        rows.append((name, point.tested, f"{bold}{'green' if point.proven else 'dim'}"))
    for name, count, style in (*rows, ("now", before, "cyan")):
        error = f"{count.error:.2%}" if count.decided else "none"
        most = f"{ceiling_of(count.wrong, count.decided, choice.delta):.2%}"
        share = Text(f"{count.coverage:.1%}", style)
        grid.add_row(Text(name, style), share, bar(count.coverage, BAR, glyphs, style), error, most)
    return grid


def pick_points(choice: GateChoice, chosen: GatePoint | None) -> list[GatePoint]:
    """Some points of the path, evenly spread by coverage, with the chosen one among them."""
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
        # It replaces its neighbour, so that the picture keeps its length.
        nearest = min(picked, key=lambda point: abs(point.tested.coverage - chosen.tested.coverage))
        picked[picked.index(nearest)] = chosen
    return sorted(picked, key=lambda point: point.tested.coverage)


def _layers(choice: GateChoice, changed: Mapping[str, tuple[float, float]], glyphs: Glyphs) -> Table:
    grid = columns("bold", "cyan", "right", "right dim")
    for share in choice.shares:
        gate = "no gate"
        if share.id in changed:
            was, now = changed[share.id]
            gate = f"gate {was:g} {glyphs.arrow} {'closed' if now > 1 else f'{now:g}'}"
        wrong = f"{share.wrong:,} of {share.decided:,} wrong" if share.decided else "decides nothing"
        grid.add_row(visible(share.id), gate, f"{share.decided / choice.tested.rows:.1%}", wrong)
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
