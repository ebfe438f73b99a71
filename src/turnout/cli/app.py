"""From what was typed to the command that runs. Its module is imported only then, so that help is quick."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, UnknownOptionError, UnusedCliTokensError

from turnout import __version__
from turnout.apps.app import MakesApp, installed_apps
from turnout.core.errors import suggest

from .draw.screen import complain
from .question import STDIN, clean
from .table import COMMANDS, RENAMED, SUBCOMMANDS, Command, examples

HELP = "Decides what happens next with every question that reaches an LLM application, and says why."


def build(apps: Sequence[MakesApp] = ()) -> App:
    app = App(
        name="turnout",
        help=HELP,
        help_epilogue=examples(*(commands[0] for commands in COMMANDS.values())),
        help_format="plaintext",
        version=f"turnout {__version__}",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    app["--help"].group = app["--version"].group = Group("Options", sort_key=len(COMMANDS) + 1)
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for order, command in enumerate(commands):
            register(app, command, order, group)
    offered = [command for one in apps for command in one.commands]
    group = Group("Applications", sort_key=len(COMMANDS))
    for found in offered:
        app.command(found.run, name=found.name, group=group)
    return app


def register(app: App, command: Command, order: int, group: Group | None = None) -> None:
    """Add a command that is imported when it runs. One with commands of its own is an App, which has its examples."""
    place = f"turnout.cli.commands.{command.name}"
    if command.name in SUBCOMMANDS:
        app.command(f"{place}:app", name=command.name, help=command.help, sort_key=order, group=group)
    else:
        app.command(
            f"{place}:{command.name}",
            name=command.name,
            help=command.help,
            help_epilogue=examples(command),
            sort_key=order,
            group=group,
        )


def run_command(argv: Sequence[str]) -> int:
    arguments = [STDIN if argument == "-" else argument for argument in argv]
    if arguments and arguments[0] in RENAMED:
        old, new = arguments[0], RENAMED[arguments[0]]
        complain(f"turnout {old} is now turnout {' '.join(new)}; the old name goes in the next version")
        arguments[:1] = new
    # Looked for only where they matter: whoever names a command of our own does not wait for it.
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
