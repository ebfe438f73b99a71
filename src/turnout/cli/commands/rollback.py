"""`turnout student rollback`: the champion before this one serves again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.config.champion import SHIPPED, champion_digest, shipped_model
from turnout.config.load import read_chain
from turnout.learn import registry
from turnout.learn.layer import find_trained

from ..draw.screen import console, glyphs_for, visible, write_json
from ..option import DEFAULT_PROFILE, ConfigOption, JsonOption, ProfileOption, user_name
from .promote import LayerOption

if TYPE_CHECKING:
    from rich.console import Console

# Changes that are listed; with --json, all are.
LISTED = 20


def rollback(
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    layer: LayerOption = None,
    history: Annotated[
        bool,
        Parameter(name="--history", negative=(), show_default=False, help="Only list who served when, and why."),
    ] = False,
    why: Annotated[str, Parameter(name="--why", help="A word for the history.", show_default=False)] = "",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    name, own = _place(profile, layer)
    change = None if history else registry.rollback(name, own, who=user_name(), why=why)
    changes = registry.read_history(name, own)
    serving = champion_digest(name, own)
    if json:
        write_json(msgspec.json.encode({"profile": name, "layer": own, "champion": serving, "changes": changes}))
        return 0
    screen = console()
    if change is not None:
        to, was = (_said(digest, name, own) for digest in (change.to, change.was))
        screen.print(f"{visible(name)} {visible(own)}: {to} serves again, instead of {was}", soft_wrap=True)
    elif not changes:
        screen.print(f"{visible(name)} {visible(own)}: {_said(serving, name, own)} serves, and no other ever did")
    else:
        _print(screen, changes)
        screen.print(f"{_said(serving, name, own)} serves")
    return 0


def _place(profile: str, layer: str | None) -> tuple[str, str]:
    """The profile's own name and its trained layer: without building it, which a broken champion may prevent."""
    document = read_chain(profile).document
    entries = [entry for entry in document.tree.get("layers", ()) if isinstance(entry, dict)]
    name = str(document.tree.get("name", ""))
    return name, find_trained(name, entries, layer)[0]


def _said(digest: str, name: str, layer: str) -> str:
    if digest != SHIPPED:
        return f"model {digest}"
    return "the shipped model" if shipped_model(name, layer) is not None else "no model"


def _print(screen: Console, changes: list[registry.ChampionChange]) -> None:
    from rich.table import Table
    from rich.text import Text

    glyphs = glyphs_for(screen)
    grid = Table.grid(padding=(0, 2))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    for change in changes[-LISTED:]:
        moved = Text.assemble(change.was[:8], f" {glyphs.arrow} ", (change.to[:8], "bold"))
        grid.add_row(Text(change.at, "dim"), change.kind, moved, Text(visible(f"{change.who}  {change.why}".strip())))
    screen.print(grid)
