"""A table of sources: the name and state of each, and what it knows or what is wrong with it."""

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
    """A row for each source and each name in `health`."""
    table = headed({"source": "bold", "": "", "ms": "right", "what it knows, or what is wrong": "wrap"})
    for name in dict.fromkeys((*sources, *health)):
        one = health.get(name, Health("", ""))
        mark = {"ok": glyphs.yes, "error": glyphs.fault}.get(one.status, glyphs.dot)
        state = Text(f"{mark} {one.status.replace('_', ' ')}".rstrip(), _STYLES.get(one.status, "dim"))
        # A source without its token is among the sources, but cannot be asked.
        knows = sources[name].description if name in sources and one.status in _ASKABLE else one.said
        table.add_row(visible(name), state, f"{one.ms:.0f}" if one.ms else "", visible(knows))
    return table
