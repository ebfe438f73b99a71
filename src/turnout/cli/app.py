"""The table of commands. A command's module is imported when the command runs, so that help is quick."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, UnknownOptionError, UnusedCliTokensError

from turnout import __version__
from turnout.core.errors import suggest

from .question import STDIN
from .screen import complain

HELP = """\
Decides what happens next with every question that reaches an LLM application, and says why."""

EXAMPLES = """\
Examples:
  turnout route "Define entropy" -p study
  turnout explain "Prove step by step that sqrt(2) is irrational"
  turnout batch questions.jsonl -p tiers -o decisions.jsonl
  turnout check my-profile.toml --cases"""

_COMMANDS = (
    ("route", "Decide what happens with one question."),
    ("explain", "Draw how a decision came about, and what would change it."),
    ("batch", "Decide a whole JSONL file, on all cores."),
    ("profiles", "List the profiles that ship with Turnout, or show one."),
    ("check", "Find every mistake in a profile; run its golden cases."),
    ("doctor", "See what is installed here, what is missing, and what to do."),
)


def build() -> App:
    app = App(
        name="turnout",
        help=HELP,
        help_epilogue=EXAMPLES,
        help_format="plaintext",
        version=f"turnout {__version__}",
        result_action="return_value",
    )
    commands = Group("Commands", sort_key=0)
    app["--help"].group = app["--version"].group = Group("Options", sort_key=1)
    for order, (name, text) in enumerate(_COMMANDS):
        target = "app" if name == "profiles" else name
        app.command(f"turnout.cli.{name}:{target}", name=name, help=text, group=commands, sort_key=order)
    return app


def run_command(argv: Sequence[str]) -> int:
    tokens = [STDIN if token == "-" else token for token in argv]
    try:
        code = build()(tokens, exit_on_error=False, print_error=False)
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
    if isinstance(error, UnknownOptionError):
        said += " A text that begins with '-' goes after '--'."
    return f"{said} {hint}"
