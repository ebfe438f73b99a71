"""Every hint is a command that works where it is printed: spelled right, quoted, for the same log and settings."""

import ast
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnout
from turnout.cli.app import build
from turnout.cli.draw.screen import as_typed_here
from turnout.cli.option import StoreOptions, hint
from turnout.cli.table import RENAMED

Run = Callable[..., Any]
SOURCE = Path(turnout.__file__).parent


class Case(NamedTuple):
    id: str
    argv: tuple[str, ...]
    """A command that prints a hint; `{db}` is a log, `{toml}` a profile of one's own."""
    said: str
    """The hint, as it stands in the output; words in capitals are filled in."""


CASES = [
    Case("no log", ("log", "--db", "{db}"), "turnout route 'a question' --db {db}"),
    Case("no log, stats", ("stats", "--db", "{db}"), "turnout route 'a question' --db {db}"),
    Case("no log, info", ("db", "info", "--db", "{db}"), "turnout route 'a question' --db {db}"),
    Case("init", ("init", "desk", "-o", "{folder}"), "turnout check '{folder}/desk.toml' --cases"),
    Case("no keys", ("keys", "list", "--db", "{db}"), "turnout keys create NAME --db {db}"),
    Case("no such key", ("keys", "revoke", "x", "--db", "{db}"), "turnout keys create NAME --db {db}"),
    Case("models", ("models", "list"), "turnout models set simple ollama/llama3.2"),
    Case(
        "backup", ("db", "backup", "{folder}/my copy.db", "--db", "{full}"), "turnout db restore '{folder}/my copy.db'"
    ),
    Case("feedback", ("feedback", "last", "wrong", "--db", "{full}"), "turnout feedback {id} ROUTE --db {full}"),
]


@pytest.fixture
def places(tmp_path: Path, run: Run) -> dict[str, str]:
    folder = tmp_path / "a folder"
    folder.mkdir()
    full = f"{tmp_path}/full.db"
    ran = run("route", "hello", "--db", full, "--json")
    ident = re.search(r'"id":"(\w+)"', ran.out)
    assert ident is not None
    return {"db": f"{tmp_path}/new.db", "full": full, "folder": str(folder), "id": ident[1]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_printed_can_be_typed(
    case: Case, places: dict[str, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNOUT_DB")
    said = case.said.format(**places)
    ran = run(*(word.format(**places) for word in case.argv))
    assert said in " ".join((ran.out + ran.err).split())
    program, *words = shlex.split(said)
    assert program == "turnout"
    filled = {"NAME": "alice", "ROUTE": "MEDIUM"}
    monkeypatch.setenv("TURNOUT_DB", places["folder"] + "/restored.db")
    assert run(*(filled.get(word, word) for word in words)).code == 0


def test_a_hint_is_quoted_and_names_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hint("check", "it's.toml") == """turnout check 'it'"'"'s.toml'"""
    assert StoreOptions("a b.db", "c.toml").hint("log") == "turnout log --db 'a b.db' --config c.toml"
    monkeypatch.setenv("TURNOUT_DB", "a b.db")
    assert StoreOptions("a b.db").hint("log") == "turnout log"
    assert "\x1b" not in hint("check", "\x1b[31m")


@pytest.mark.parametrize("url", ["postgresql://me:secret@db/x", "postgresql://db/x?password=secret"])
def test_a_hint_shows_no_password(url: str) -> None:
    assert StoreOptions(url).hint("log") == "turnout log --db URL"
    assert StoreOptions("postgresql://db/x").hint("log") == "turnout log --db postgresql://db/x"


# --- every command that any text of ours names


def named() -> Iterator[tuple[str, str]]:
    """What follows `turnout` in the strings of the source, as far as it may be a command."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                parts = node.values
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
            for found in re.finditer(r"(?<![\w./-])turnout ((?:[a-z-]+ ?)+)", text):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", found[1].strip()


def test_every_command_that_is_named_exists() -> None:
    app = build()
    known = {name for name in app if not name.startswith("-")}
    seen = set()
    for where, words in named():
        first, *rest = words.split()
        if first.startswith("--") or first == "import":  # the program's own options; Python
            continue
        assert first not in RENAMED, (where, words)
        assert first in known, (where, words)
        inner = [name for name in app[first] if not name.startswith("-")]
        if inner and rest and not rest[0].startswith("-") and rest[0] not in inner:
            assert rest[0] in ("says", "shows", "list", "X"), (where, words)
        options = [word for word in rest if word.startswith("--")]
        command = app[first][rest[0]] if inner and rest and rest[0] in inner else app[first]
        if options:
            takes = {name for argument in command.assemble_argument_collection() for name in argument.names}
            assert set(options) <= takes, (where, words)
        seen.add(first)
    assert len(seen) > 10


def test_a_program_the_shell_does_not_find_is_named_as_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/turnout", "serve"])
    monkeypatch.setenv("PATH", "")
    assert hint("log") == ".venv/bin/turnout log"
    monkeypatch.setattr("sys.argv", ["/somewhere/pytest"])
    assert hint("log") == "turnout log"


def test_where_the_shell_does_not_find_turnout_commands_name_their_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/turnout"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = as_typed_here("none (see turnout log); turnout-build-minilm; Turnout, or turnout itself: pip install x")
    assert said.startswith("none (see .venv/bin/turnout log); .venv/bin/turnout-build-minilm; Turnout, or turnout")
    assert said.endswith("install x")
    assert "; pip install" not in said
    assert ": pip install" not in said
    monkeypatch.setattr(shutil, "which", lambda name: os.path.join(os.path.dirname(sys.executable), name))
    assert as_typed_here("turnout log: pip install x") == "turnout log: pip install x"
