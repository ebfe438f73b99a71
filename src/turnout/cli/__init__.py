"""The command line: `app` runs it, `table` lists the commands, `commands` has one file each, `draw` their pictures."""

from __future__ import annotations

from .app import guarded, main

__all__ = ["guarded", "main"]
