"""The command line: `app` runs it, `table` lists the commands, `commands` has one file each, `draw` their pictures.

`main` and the exit codes are `app`'s, and imported when they are asked for: this package alone brings no terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import BUG, INTERRUPTED, PIPE_CLOSED, guarded, main

__all__ = ["BUG", "INTERRUPTED", "PIPE_CLOSED", "guarded", "main"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    from . import app

    return getattr(app, name)
