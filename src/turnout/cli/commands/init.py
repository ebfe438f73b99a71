"""`turnout init`: from a few example questions to a profile that can be run, checked and improved."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as File
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from turnout.config.load import is_shipped
from turnout.config.propose import RouteExample
from turnout.config.starter import DEMONSTRATION, MissedExample, Starter, make_starter
from turnout.core.errors import QueryError
from turnout.runtime.rows import read_texts
from turnout.text.count import counted

from ..draw.screen import Glyphs, console, quoted, visible
from ..draw.shape import columns
from ..option import STDIN, clean, hint
from ..stream import reading

_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*").fullmatch
# How many phrases of a route are shown; all of them are in the file.
SHOWN = 6
# How many examples that cannot be told apart are listed; all of them are in the cases.
LISTED = 20


def init(
    name: Annotated[str, Parameter(name="NAME", help="What the profile is called; its file is NAME.toml.")],
    /,
    *,
    route: Annotated[
        list[str] | None,
        Parameter(metavar="ROUTE=QUESTION", help="An example question of a route; give as many as you like."),
    ] = None,
    source: Annotated[
        str | None,
        Parameter(name="--from", metavar="FILE", help='Examples as JSONL: {"text", "route"} a row; `-` reads stdin.'),
    ] = None,
    out: Annotated[str, Parameter(name=("--out", "-o"), metavar="DIR", help="The folder to write to.")] = ".",
    force: Annotated[bool, Parameter(help="Overwrite files that are there.")] = False,
) -> int:
    if not _name(name):
        raise QueryError(f"{name!r} is no name: letters, digits, '_' and '-', a letter or digit first")
    if is_shipped(name):
        raise QueryError(f"{name!r} is the name of a shipped profile: choose another, or extend it in a file of yours")
    examples = list(dict.fromkeys([*_given(route or ()), *_read(source)]))
    if not examples and source is not None:
        raise QueryError(f"{_told(source)}: no examples in it")
    _demand_different(example.route for example in examples)
    folder = File(out)
    profile, cases = folder / f"{name}.toml", folder / f"{name}.cases.jsonl"
    there = [str(path) for path in (profile, cases) if path.exists()]
    if there and not force:
        raise QueryError(f"{' and '.join(there)} would be overwritten: choose another name, or say --force")
    starter = make_starter(name, examples or DEMONSTRATION, cases.name)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in ((profile, starter.profile), (cases, starter.cases)):
        path.write_text(text, encoding="utf-8", newline="\n")
    _print(starter, os.fspath(profile), os.fspath(cases), demonstration=not examples)
    return 0


def _told(source: str) -> str:
    return "stdin" if source == STDIN else source


def _demand_different(routes: Iterable[str]) -> None:
    """Callers name routes without regard to case, so no two may differ in that alone."""
    seen: dict[str, str] = {}
    for route in routes:
        if (other := seen.setdefault(route.casefold(), route)) != route:
            raise QueryError(f"routes {other!r} and {route!r} differ only in case: spell them alike")


def _given(pairs: Sequence[str]) -> Iterator[RouteExample]:
    for pair in pairs:
        route, sign, text = pair.partition("=")
        if not sign:
            raise QueryError(f'--route {pair!r}: write ROUTE=QUESTION, such as --route "billing=I want a refund"')
        yield _example(text, route, f"--route {pair!r}")


def _read(source: str | None) -> Iterator[RouteExample]:
    if source is None:
        return
    with reading(source) as (file, _):
        for where, (text, route) in read_texts(file, f"{_told(source)}:", "text", "route"):
            yield _example(text, route, where)


def _example(text: str, route: str, where: str) -> RouteExample:
    route = clean(route).strip()
    if not route or not route.isprintable():
        raise QueryError(f"{where}: {route!r} is no name for a route")
    if not text.strip():
        raise QueryError(f"{where}: the question is blank")
    return RouteExample(clean(text).strip(), route)


def _print(starter: Starter, profile: str, cases: str, *, demonstration: bool) -> None:

    screen = console()
    phrases = sum(len(phrases) for proposal in starter.proposals.values() for phrases in proposal)
    total, measured = starter.cases.count("\n"), len(starter.missed)
    screen.say((visible(profile), "bold"), f"  {counted(len(starter.routes), 'route')}, {counted(phrases, 'phrase')}")
    screen.say((visible(cases), "bold"), f"  {counted(total, 'golden case')}, {total - measured} of them must hold")
    grid = columns("", "wrap")
    for route in starter.routes:
        telling = starter.proposals[route].telling
        more = f" and {len(telling) - SHOWN} more" if len(telling) > SHOWN else ""
        shown = ", ".join(telling[:SHOWN]) + more if telling else "no phrase of its own was found"
        grid.add_row(Text(visible(route), "bold cyan"), Text(visible(shown), "" if telling else "yellow"))
    screen.inset(grid)
    for line in _apologies(starter.missed, screen.glyphs):
        screen.say(line)
    if demonstration:
        screen.say("a demonstration: give it examples of your own with --route or --from")
    screen.say((f"next: {hint('check', profile, '--cases')}", "dim"))


def _apologies(missed: Sequence[MissedExample], glyphs: Glyphs) -> Iterator[str]:
    if not missed:
        return
    yield f"{len(missed)} of the examples cannot be told apart by these phrases, so they are measured (must: false):"
    for example, decided in missed[:LISTED]:
        yield f"  {quoted(example.text, glyphs, 70)} is {visible(example.route)}, decided as {visible(decided)}"
    if len(missed) > LISTED:
        yield f"  and {len(missed) - LISTED:,} more: the cases with a `why`"
