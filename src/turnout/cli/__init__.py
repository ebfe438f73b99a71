"""The command line: `app` runs it, `table` lists the commands, `commands` has one file each, `draw` their pictures.

`main` imports `app` when it is called: importing this package alone does not import the terminal libraries.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from .app import main

    return main(argv)
