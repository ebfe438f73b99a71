"""Parses the arguments, runs the command, and reports every error as a sentence.

A command's module is imported only when the command runs, so that help is quick.

Exit codes: 0 done, which a command also says by returning nothing; 1 the command found something wrong (a failed check,
rows without a decision); 2 it could not be done as asked (usage, configuration, query, file); 70 a bug; 130
interrupted; 141 the reader of the output went away.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Group, Parameter, UnknownOptionError, UnusedCliTokensError

from turnout import __version__
from turnout.apps.app import MakesApp, installed_apps
from turnout.config.champion import IdleModelWarning
from turnout.config.name import OldNameWarning
from turnout.core.errors import TurnoutError, suggest

from .draw.screen import abandon_stdout, complain, make_printable
from .option import STDIN, clean
from .table import COMMANDS, REMOVED, RENAMED, SUBCOMMANDS, Command

HELP = "Decides what happens next with every question that reaches an LLM application, and says why."

BUG, INTERRUPTED, PIPE_CLOSED = 70, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return guarded(lambda: run_command(sys.argv[1:] if argv is None else argv))


def guarded(action: Callable[[], int]) -> int:
    """The action's exit code; an error becomes a sentence on stderr, never a traceback."""
    make_printable()
    try:
        with warnings.catch_warnings():
            for category in (IdleModelWarning, OldNameWarning):
                warnings.simplefilter("always", category)
            # A command may load a profile several times; each of its warnings is shown once.
            complain_once = functools.cache(complain)
            warnings.showwarning = lambda message, *_: complain_once(str(message))
            code = action()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as ending:
        # Rich, which prints our output and Cyclopts' help, turns a closed pipe into SystemExit.
        if not isinstance(ending, BrokenPipeError) and not isinstance(ending.__context__, BrokenPipeError):
            raise
        abandon_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except TurnoutError as error:
        complain(str(error))
        return 2
    except OSError as error:
        if error.filename is None:  # no file of the user's: the output itself cannot be written
            abandon_stdout()
        reason = "stdout is closed" if error.errno == errno.EBADF else error.strerror or error
        complain(f"{error.filename or 'output'}: {reason}")
        return 2
    except Exception as error:  # a bug in Turnout must not look like a mistake of the user's
        if os.environ.get("TURNOUT_DEBUG"):
            raise
        complain(f"this is a bug in Turnout: {type(error).__name__}: {error} (TURNOUT_DEBUG=1 shows where)")
        return BUG
    return code


def build(apps: Sequence[MakesApp] = ()) -> App:
    app = App(
        name="turnout",
        help=HELP,
        help_epilogue=examples(*(commands[0].examples[0] for commands in COMMANDS.values())),
        help_format="plaintext",
        version=f"turnout {__version__}",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        # Most options have no default worth showing, and most flags no opposite.
        default_parameter=Parameter(negative=(), show_default=False),
    )
    app["--help"].group = app["--version"].group = Group("Options", sort_key=len(COMMANDS) + 1)
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for order, command in enumerate(commands):
            register(app, command, order, group)
    group = Group("Applications", sort_key=len(COMMANDS))
    for installed in apps:
        for offered in installed.commands:
            app.command(offered.run, name=offered.name, group=group)
    return app


def register(app: App, command: Command, order: int, group: Group) -> None:
    """Add a command, imported when it runs. One with subcommands is an App, which has its own examples."""
    place = f"turnout.cli.commands.{command.name}"
    if command.name in SUBCOMMANDS:
        app.command(f"{place}:app", name=command.name, help=command.help, sort_key=order, group=group)
    else:
        app.command(
            f"{place}:{command.name}",
            name=command.name,
            help=command.help,
            help_epilogue=examples(*command.examples),
            sort_key=order,
            group=group,
        )


def examples(*lines: str) -> str:
    """The end of a help text."""
    return "\n".join(("Examples:", *(f"  {line}" for line in lines)))


def examples_of(name: str) -> str:
    """The examples of the command with this name."""
    return examples(*next(one.examples for group in COMMANDS.values() for one in group if one.name == name))


def show_paragraphs(app: App) -> None:
    """Show the docstrings of an app's commands as paragraphs in the help, not with the source's line breaks."""
    for name in app:
        if not name.startswith("-"):
            paragraphs = app[name].help.split("\n\n")
            app[name].help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def run_command(argv: Sequence[str]) -> int:
    arguments = [STDIN if argument == "-" else argument for argument in argv]
    if arguments and arguments[0] in RENAMED:
        old, new = arguments[0], RENAMED[arguments[0]]
        complain(f"turnout {old} is now turnout {' '.join(new)}; the old name will be removed in the next version")
        arguments[:1] = new
    if arguments and arguments[0] in REMOVED:
        complain(f"turnout {arguments[0]} was removed: {REMOVED[arguments[0]]}")
        return 2
    # Finding the installed applications takes time, and Turnout's own commands do not need them.
    ours = {command.name for commands in COMMANDS.values() for command in commands}
    apps = () if arguments and arguments[0] in ours else installed_apps()
    try:
        code = build(apps)(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        first = arguments[0] if arguments else ""
        if first.startswith("-") and not error.command_chain:
            near = suggest(first, ("--help", "--version"))
            complain(f"unknown option {clean(first)!r}{near} (see turnout --help)")
        else:
            complain(_usage_message(error))
        return 2
    return code if isinstance(code, int) else 0


def _usage_message(error: CycloptsError) -> str:
    error.verbose = False
    chain = " ".join(("turnout", *(error.command_chain or ())))
    hint = f"(see {chain} --help)"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        extra = error.unused_tokens[0]
        known = [name for name in (error.app or ()) if not name.startswith("-")]
        if known:
            return f"{chain} has no command {extra!r}{suggest(extra, known)} {hint}"
        return f"unexpected argument {extra!r}: put a text of several words in quotes {hint}"
    message = str(error).strip().replace(STDIN, "-")
    if isinstance(error, UnknownOptionError) and chain.endswith(("route", "explain")):
        message += " A text that begins with '-' goes after '--'."
    return f"{message} {hint}"
