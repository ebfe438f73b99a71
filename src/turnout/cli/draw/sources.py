"""Sources in a table: what each is called, whether it can be asked, and what it knows or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from turnout.apps.sources.source import Health, Source

from .screen import Glyphs, visible
from .shape import headed

_STYLES = {"ok": "green", "not_configured": "dim", "error": "red"}
_ASKABLE = ("", "ok", "configured")


def source_table(sources: Mapping[str, Source], health: Mapping[str, Health], glyphs: Glyphs) -> Table:
    """A row for each name in `health`, which is empty for sources that nothing is said of."""
    table = headed({"source": "bold", "": "", "ms": "right", "what it knows, or what is wrong": "wrap"})
    for name in dict.fromkeys((*sources, *health)):
        found = health.get(name, Health("", ""))
        mark = {"ok": glyphs.yes, "error": glyphs.fault}.get(found.status, glyphs.unasked)
        state = Text(f"{mark} {found.status.replace('_', ' ')}".rstrip(), _STYLES.get(found.status, "dim"))
        # One whose token is missing is among the sources, and knows nothing.
        knows = sources[name].description if name in sources and found.status in _ASKABLE else found.said
        table.add_row(visible(name), state, f"{found.ms:.0f}" if found.ms else "", visible(knows))
    return table
