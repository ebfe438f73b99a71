"""The command line: `app` runs it, `table` lists the commands, `commands` has one file each, `draw` their pictures.

`app.main` is imported when it is first asked for: importing this package alone does not import the terminal libraries.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "main":
        raise AttributeError(name)
    from .app import main

    return main
