"""`turnout init`: make a profile from labelled texts, ready to serve; without any, a small profile to change."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.config.load import is_shipped
from turnout.config.starter import CASES, WORDS, words_profile
from turnout.core.errors import LearnError, QueryError
from turnout.runtime.load import embedder_for_training
from turnout.text.control import escape_json
from turnout.text.count import counted

from ..application import needing
from ..draw.screen import console, visible
from ..labelled import EmbedderOption, HoldOutOption, check_readable, read_hold_out, refuse_overwriting
from ..option import STDIN, ConfigOption, FileOption, NumberOption, clean, hint, user_name
from ..stream import phases
from .train import print_report

if TYPE_CHECKING:
    from turnout.learn.begin import LearntProfile

_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*").fullmatch
# Characters of the example question in a printed command.
QUOTED = 60


def init(
    name: Annotated[str, Parameter(name="NAME", help="What the profile is called; its file is NAME.toml.")],
    /,
    *,
    source: Annotated[
        FileOption, Parameter(name="--from", help="Labelled texts: CSV or TSV with a header, or JSONL.")
    ] = None,
    text: Annotated[
        str | None, Parameter(metavar="COLUMN", help="The column of texts; needed only if it is not clear.")
    ] = None,
    label: Annotated[
        str | None, Parameter(metavar="COLUMN", help="The column of labels; each label becomes a route.")
    ] = None,
    fallback: Annotated[
        str | None,
        Parameter(
            metavar="ROUTE", help="The route for unknown questions: a label, or a new route; by default `other`."
        ),
    ] = None,
    embedder: EmbedderOption = "auto",
    seed: Annotated[NumberOption, Parameter(help="Divides the rows.")] = 0,
    held_out: HoldOutOption = "20%",
    out: Annotated[str, Parameter(name=("--out", "-o"), metavar="DIR", help="The folder to write to.")] = ".",
    force: Annotated[bool, Parameter(help="Overwrite files, and the student of a profile of that name.")] = False,
    config: ConfigOption = None,
) -> None:
    if not _name(name):
        raise QueryError(f"{name!r} is not a name: use letters, digits, '_' and '-', a letter or digit first")
    if is_shipped(name):
        raise QueryError(f"{name!r} is the name of a shipped profile: choose another, or extend it in a file of yours")
    folder = File(out)
    file, cases = folder / f"{name}.toml", folder / f"{name}.cases.jsonl"
    if source is None:
        if (text, label, fallback) != (None, None, None):
            raise QueryError("--text, --label and --fallback are about the rows of a file: name it with --from FILE")
        refuse_overwriting(file, cases, force=force)
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(words_profile(name, cases.name), encoding="utf-8", newline="\n")
        cases.write_bytes(b"".join(escape_json(msgspec.json.encode(case)) + b"\n" for case in CASES))
        _print_words(os.fspath(file), os.fspath(cases))
        return
    if source == STDIN:
        raise QueryError("--from reads a file twice: write what you pipe in into one, and name that")
    refuse_overwriting(file, force=force)
    share = read_hold_out(held_out)
    route = clean(fallback).strip() if fallback is not None else None
    if route is not None and not (route and route.isprintable()):
        raise QueryError(f"--fallback {fallback!r} is not a name for a route")
    check_readable((source,))
    with needing("this needs", "learn"):
        from turnout.learn.begin import begin, own_champion
        from turnout.learn.table import read_table

        if (serving := own_champion(name)) is not None and not force:
            raise LearnError(
                f"a student of a profile {name!r} serves already ({serving}): choose another name, add rows to that "
                f"one (turnout train FILE -p {name}), or say --force to begin anew"
            )
        table = read_table(source, text=text, label=label)
        vectors = embedder_for_training(embedder, config)
        with phases() as say:
            made = begin(
                name,
                table,
                file,
                fallback=route,
                embedder=vectors,
                seed=seed,
                share=share,
                who=user_name(),
                say=say,
            )
    _print_learnt(made, name if folder == File() else os.fspath(file))


def _print_words(profile: str, cases: str) -> None:
    screen = console()
    words = sum(map(len, WORDS.values()))
    screen.say((visible(profile), "bold"), f"  {counted(len(WORDS), 'route')}, {counted(words, 'phrase')}")
    screen.say((visible(cases), "bold"), f"  {counted(len(CASES), 'golden case')}")
    screen.say("a small help desk to change; with labelled texts of your own, --from FILE trains a student")
    screen.say((f"next: {hint('check', profile, '--cases')}", "dim"))


def _print_learnt(made: LearntProfile, profile: str) -> None:
    screen = console()
    table, report = made.table, made.training.report
    routes = counted(len(table.routes), "label")
    screen.say(
        (visible(os.fspath(made.file)), "bold"),
        f"  {routes} of {visible(table.label)!r}, learnt from {visible(table.text)!r} in {visible(table.file)}; ",
        f"the rest goes to {visible(made.fallback)!r}",
    )
    screen.print()
    print_report(report, made.training.noted.screened.quarantined)
    whole = report.end_to_end
    if whole:
        accuracy = f"right on {whole['accuracy']:.1%} of {whole['rows']:,.0f} held-out rows, fallback included"
        baseline = f"always saying the most frequent label: {whole['majority']:.1%}"
        style = "bold green" if whole["accuracy"] > whole["majority"] else "bold yellow"
        screen.say((accuracy, style), (f" ({baseline})", "dim"))
    if made.wants_vectors:
        screen.say("With few rows a label, sentence vectors help most: install the embedder (turnout-build-minilm),")
        screen.say(f"then do this again with --force ({hint('embed', 'list')} says what is installed)")
    example = next(
        (row.text for row in table.examples.rows if len(row.text) <= QUOTED and row.text.isprintable()), "a question"
    )
    columns = (("--text", table.text), ("--label", table.label))
    renamed = [word for option, name in columns if name != option.removeprefix("--") for word in (option, name)]
    code = f"import turnout; print(turnout.load({_quote(profile)}).route_sync({_quote(example)}).route)"
    screen.print()
    screen.say("It serves now:")
    for words in (
        ("route", example, "-p", profile),
        ("serve", "-p", profile),
        ("train", "more.csv", *renamed, "-p", profile, "--promote"),
    ):
        screen.say(f"  {hint(*words)}")
    screen.say(f"  python -c {visible(shlex.quote(code))}")


def _quote(text: str) -> str:
    """The text in double quotes: the shell's are single."""
    return escape_json(msgspec.json.encode(text)).decode()
