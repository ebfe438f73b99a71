"""The table of commands. A command's module is imported when the command runs, so that help is quick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyclopts import App, CycloptsError, Group, UnknownOptionError, UnusedCliTokensError

from turnout import __version__
from turnout.core.errors import suggest

from .question import STDIN
from .screen import complain

HELP = "Decides what happens next with every question that reaches an LLM application, and says why."


class Command(NamedTuple):
    """A row of the table. The help stands here because reading it must not cost an import."""

    name: str
    help: str
    """The first sentence is the one in the list of commands."""
    examples: tuple[str, ...]


COMMANDS = (
    Command(
        "route",
        "Decide what happens with one question.",
        (
            'turnout route "Define entropy" -p study',
            "git log -1 --format=%B | turnout route --json",
            'turnout route "And the second one?" --session chat.jsonl',
        ),
    ),
    Command(
        "explain",
        "Draw how a decision came about, and what would change it.\n\n"
        "Every layer with its time, what fired and how much it adds, scores, gates, the policy that follows, and which "
        "route it would be without one signal.",
        (
            'turnout explain "Prove step by step that sqrt(2) is irrational"',
            'turnout explain "Define entropy" -p study',
        ),
    ),
    Command(
        "plan",
        "Draw what a question asks for, part by part.\n\n"
        "Each part of a compound question with its role, its words, its routes and sources, and who decided it. A "
        "question that is not split is its only part.",
        (
            'turnout plan "Summarise the report, then translate it into French"',
            'turnout plan "Define entropy" -p study --json | jq .parts',
        ),
    ),
    Command(
        "batch",
        "Decide a whole JSONL file, on all cores.\n\n"
        'Every row gives exactly one row, in order: {"row", "id" if it had one, "decision"}, or {"row", "error"}. '
        "Local layers only: no model is asked. The exit code is 1 if some row could not be decided.",
        (
            "turnout batch questions.jsonl -p tiers -o decisions.jsonl",
            "zcat logs.gz | turnout batch - --field prompt | jq .decision.route",
        ),
    ),
    Command(
        "profiles",
        "List the profiles that ship with Turnout, or show one.",
        ("turnout profiles", "turnout profiles show study", "turnout profiles show tiers --json | jq .profile.routes"),
    ),
    Command(
        "check",
        "Find every mistake in a profile; run its golden cases.\n\n"
        "Each mistake with file, line and suggestion. The exit code is 1 if there is one, or if a case that must hold "
        "does not.",
        ("turnout check my-profile.toml", "turnout check tiers --cases", "turnout check tiers --cases mine.jsonl"),
    ),
    Command(
        "doctor",
        "See what is installed here, what is missing, and what to do.\n\n"
        "The exit code is 1 only if something is broken.",
        ("turnout doctor",),
    ),
)

GROUPS = frozenset({"profiles"})
"""Commands that have commands of their own."""


def epilogue(name: str | None = None) -> str:
    """The examples that end a command's help; the first of each for the list of commands."""
    lines = [
        line
        for command in COMMANDS
        for line in (command.examples if name else command.examples[:1])
        if name in (None, command.name)
    ]
    return "\n".join(("Examples:", *(f"  {line}" for line in lines)))


def build() -> App:
    app = App(
        name="turnout",
        help=HELP,
        help_epilogue=epilogue(),
        help_format="plaintext",
        version=f"turnout {__version__}",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    app["--help"].group = app["--version"].group = Group("Options", sort_key=1)
    for order, command in enumerate(COMMANDS):
        name = command.name
        if name in GROUPS:  # an App, which brings its own examples
            app.command(f"turnout.cli.{name}:app", name=name, help=command.help, sort_key=order)
        else:
            target = f"turnout.cli.{name}:{name}"
            app.command(target, name=name, help=command.help, help_epilogue=epilogue(name), sort_key=order)
    return app


def run_command(argv: Sequence[str]) -> int:
    arguments = [STDIN if argument == "-" else argument for argument in argv]
    try:
        code = build()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        complain(_sentence(error))
        return 2
    return code if isinstance(code, int) else 0


def _sentence(error: CycloptsError) -> str:
    error.verbose = False
    chain = " ".join(("turnout", *(error.command_chain or ())))
    hint = f"(see {chain} --help)"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        extra = error.unused_tokens[0]
        known = [name for name in (error.app or ()) if not name.startswith("-")]
        if known:
            return f"{chain} has no command {extra!r}{suggest(extra, known)} {hint}"
        return f"unexpected argument {extra!r}: put a text of several words in quotes {hint}"
    said = str(error).strip().replace(STDIN, "-")
    if isinstance(error, UnknownOptionError) and chain.endswith(("route", "explain")):
        said += " A text that begins with '-' goes after '--'."
    return f"{said} {hint}"
