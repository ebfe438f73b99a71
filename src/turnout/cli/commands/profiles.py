"""`turnout profiles`: what ships with Turnout, and what one profile says once everything is resolved."""

from __future__ import annotations

from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from turnout.config.load import find, read_chain, shipped
from turnout.runtime.load import load_profile

from ..app import examples_of
from ..draw.profile_page import page
from ..draw.screen import console, glyphs_for, width_of, write_json
from ..draw.shape import Rail
from ..option import DEFAULT_PROFILE, ConfigOption, JsonOption, ProfileArgument

app = App(name="profiles", help_epilogue=examples_of("profiles"))


@app.default
def list_profiles(*, json: JsonOption = False) -> int:
    """List the profiles that ship with Turnout."""
    trees = {name: read_chain(name).document.tree for name in shipped()}
    if json:
        rows = [
            {
                "name": name,
                "routes": tree.get("routes"),
                "layers": [str(entry.get("kind")) for entry in tree.get("layers", ())],
                "description": tree.get("description", ""),
            }
            for name, tree in trees.items()
        ]
        write_json(rows)
        return 0

    from turnout.config.check import layer_id

    screen = console()
    arrow = f" {glyphs_for(screen).arrow} "
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("routes", no_wrap=True)
    table.add_column("layers")
    table.add_column("description", ratio=1)
    for name, tree in trees.items():
        layers = [layer_id(entry) for entry in tree.get("layers", ())]
        routes = "\n".join(tree.get("routes", ()))
        table.add_row(Text(name), routes, arrow.join(layers), str(tree.get("description", "")), end_section=True)
    screen.print(Rail(table, ""), width=width_of(screen))
    return 0


@app.command
def show(
    name: ProfileArgument = DEFAULT_PROFILE,
    /,
    *,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show a profile as it is used: after `extends` and your settings.

    With --json: {"name", "hash", "file", "remarks", "profile"}, the last being everything it says.
    """
    profile = load_profile(name, config=config, local=True)
    if json:
        whole = {"name": profile.name, "hash": profile.hash, "file": str(find(name)), "remarks": profile.remarks}
        write_json({**whole, "profile": profile.resolved})
        return 0

    screen = console()
    screen.print(page(profile, glyphs_for(screen)), width=width_of(screen))
    return 0
