"""`turnout profiles`: list the profiles that ship with Turnout, or show one as it is used."""

from __future__ import annotations

from cyclopts import App
from rich.text import Text

from turnout.config.check import layer_id
from turnout.config.load import find, read_chain, shipped
from turnout.config.name import DEFAULT_PROFILE
from turnout.runtime.load import load_profile

from ..app import examples_of
from ..draw.profile_page import page
from ..draw.screen import console, write_json
from ..draw.shape import headed
from ..option import ConfigOption, JsonOption, ProfileArgument

app = App(name="profiles", help_epilogue=examples_of("profiles"))


@app.default
def list_profiles(*, json: JsonOption = False) -> None:
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
        return
    screen = console()
    arrow = f" {screen.glyphs.arrow} "
    table = headed({"name": "bold", "routes": "", "layers": "wrap", "description": "wrap"})
    for name, tree in trees.items():
        layers = [layer_id(entry) for entry in tree.get("layers", ())]
        routes = "\n".join(tree.get("routes", ()))
        table.add_row(Text(name), routes, arrow.join(layers), str(tree.get("description", "")), end_section=True)
    screen.inset(table, "")


@app.command
def show(
    name: ProfileArgument = DEFAULT_PROFILE,
    /,
    *,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show a profile as it is used: after `extends` and your settings.

    With --json: {"name", "hash", "file", "remarks", "profile"}, the last being everything it says.
    """
    profile = load_profile(name, config=config, local=True)
    if json:
        whole = {"name": profile.name, "hash": profile.hash, "file": str(find(name)), "remarks": profile.remarks}
        write_json({**whole, "profile": profile.resolved})
        return

    screen = console()
    screen.print(page(profile, screen.glyphs), width=screen.room)
