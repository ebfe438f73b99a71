"""`turnout check`: all mistakes in a profile at once, and whether its golden cases hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path as File
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from turnout.config.cases import Case, Result, codes_of, read_cases, run_cases
from turnout.config.load import find, read_chain
from turnout.config.name import DEFAULT_PROFILE
from turnout.core.errors import ConfigError, QueryError, UnknownProfile
from turnout.core.profile import Profile
from turnout.core.router import Router
from turnout.runtime.load import load_profile
from turnout.text.count import counted

from ..draw.screen import console, visible
from ..draw.shape import Screen, columns
from ..option import ConfigOption, ProfileArgument


def check(
    profile: ProfileArgument = DEFAULT_PROFILE,
    /,
    *,
    cases: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=(0, 1), metavar="[FILE]", help="Run golden cases: those of FILE, else the profile's own."
        ),
    ] = None,
    every: Annotated[bool, Parameter(name="--all", help="List measured cases that are wrong, too.")] = False,
    config: ConfigOption = None,
) -> int:
    screen = console()
    path = find(profile)
    if not path.is_file():
        raise QueryError(f"{path}: there is no such file")
    try:
        loaded = load_profile(profile, config=config, local=True)
        rows = _cases(profile, cases[0] if cases else None) if cases is not None else None
    except UnknownProfile:
        raise
    except ConfigError as error:
        return _print_problems(screen, error)
    failed = 0 if rows is None else _run(screen, loaded, rows, every=every)
    verdict = " is fine"
    if failed:
        verdict = f" has {counted(failed, 'case')} that must hold and {'does' if failed == 1 else 'do'} not"
    screen.say((loaded.name, "bold"), verdict, (f"  {path.name} {loaded.hash}", "dim"))
    screen.inset(_overview(loaded, screen.glyphs.arrow, _note_on_cases(profile)))
    return 1 if failed else 0


def _print_problems(screen: Screen, error: ConfigError) -> int:
    for problem in error.problems:
        screen.say((visible(problem.where), "bold"), f": {visible(problem.message)}")
    screen.say((counted(len(error.problems), "problem"), "bold red"))
    return 1


def _overview(profile: Profile, arrow: str, note: str) -> Table:
    grid = columns("dim", "right", "fold")
    patterns = profile.patterns
    kinds = Counter(pattern.kind for pattern in patterns)
    grid.add_row("routes", str(len(profile.routes)), ", ".join(profile.routes))
    grid.add_row("layers", str(len(profile.layers)), f" {arrow} ".join(place.id for place in profile.layers))
    grid.add_row("patterns", str(len(patterns)), ", ".join(f"{count} {name}" for name, count in kinds.most_common()))
    remarks = [*profile.remarks, *([note] if note else [])]
    for number, remark in enumerate(remarks):
        grid.add_row("" if number else "remarks", "" if number else str(len(remarks)), Text(visible(remark), "yellow"))
    return grid


def _note_on_cases(profile: str) -> str:
    path = read_chain(profile).cases
    return f"its golden cases, {path}, are not there" if path is not None and not path.is_file() else ""


def _cases(profile: str, named: str | None) -> list[Case]:
    path = File(named) if named is not None else read_chain(profile).cases
    if path is None:
        raise QueryError(f'{profile} names no golden cases: add cases = "file.jsonl" to it, or --cases FILE')
    try:
        return read_cases(path)
    except ConfigError as error:
        if named is not None and not path.is_file():  # the option is wrong, not the profile
            raise QueryError(str(error)) from None
        raise


def _run(screen: Screen, profile: Profile, cases: Iterable[Case], *, every: bool) -> int:
    """Print the cases that do not hold, the counts, and the signals no case fired; returns how many `must` cases
    fail."""
    router = Router(profile)
    arrow = screen.glyphs.arrow
    # By whether the case must hold.
    passed: Counter[bool] = Counter()
    total: Counter[bool] = Counter()
    wrong: Counter[str] = Counter()
    seen: set[str] = set()
    for case in cases:
        total[case.must] += 1
        try:
            (result,) = run_cases(router, (case,))
        except QueryError as error:
            _print_miss(screen, case, [f"refused: {error}"])
            continue
        seen |= _codes(result)
        passed[case.must] += not result.misses
        if result.misses and (case.must or every):
            _print_miss(screen, case, result.misses)
        if not case.must and result.decision.route != case.route:
            wrong[f"{case.route} {arrow} {result.decision.route}"] += 1
    grid = columns("dim", "fold")
    failed = total[True] - passed[True]
    grid.add_row("must", Text(f"{passed[True]} of {total[True]} hold", "bold red" if failed else "bold green"))
    if total[False]:
        grid.add_row("measured", f"{passed[False]} of {total[False]} right, {passed[False] / total[False]:.1%}")
    for number, (kind, count) in enumerate(wrong.most_common()):
        grid.add_row("" if number else "wrong", f"{count:4}  {kind}")
    codes = codes_of(profile)
    never = [code for code in codes if code not in seen]
    grid.add_row("coverage", f"{len(codes) - len(never)} of {len(codes)} signals and rules fired")
    if never:
        grid.add_row("never", Text(", ".join(never), "yellow"))
    screen.inset(grid)
    return failed


def _codes(result: Result) -> set[str]:
    """The codes of all reasons, in every layer and around the layers, for the question and its parts."""
    decisions = (result.decision, *result.decision.parts)
    fired = [reasons for one in decisions for reasons in (one.reasons, *(step.reasons for step in one.steps))]
    return {reason.code for reasons in fired for reason in reasons}


def _print_miss(screen: Screen, case: Case, misses: Iterable[str]) -> None:
    label, style = ("FAILED", "bold red") if case.must else ("missed", "yellow")
    text = case.text or next((turn.text for turn in reversed(case.turns) if turn.role == "user"), "")
    shown = text if len(text) <= 70 else f"{text[:67]}{screen.glyphs.dots}"
    screen.say(("  " + label, style), f"  {visible(case.id)}  ", (visible(shown), "dim"))
    for miss in misses:
        screen.say(f"          {visible(miss)}")
    if case.why:
        screen.say((f"          ({visible(case.why)})", "dim"))
