"""`turnout schema`: what a profile file may say, for editors."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Annotated

from cyclopts import Parameter

from turnout.config.schema import profile_schema

from .question import STDIN
from .screen import console, visible, write_bytes


def schema(
    *,
    out: Annotated[
        str,
        Parameter(name=("--out", "-o"), help="Where it goes; `-` is stdout.", show_default=False, metavar="FILE"),
    ] = STDIN,
) -> int:
    text = json.dumps(profile_schema(), indent=2, ensure_ascii=False)
    if out == STDIN:
        write_bytes(text.encode())
        return 0
    File(out).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    screen = console()
    screen.print(f"{visible(out)} is written. Make this the first line of a profile beside it:", soft_wrap=True)
    screen.print(f"#:schema ./{visible(File(out).name)}", soft_wrap=True)
    return 0
