"""`turnout schema`: what a profile file may say, for editors."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Annotated

from cyclopts import Parameter

from turnout.config.schema import profile_schema
from turnout.text.control import escape_json

from ..draw.screen import console, visible, write_json
from ..option import STDIN


def schema(
    *,
    out: Annotated[str, Parameter(name=("--out", "-o"), help="Where it goes; `-` is stdout.", metavar="FILE")] = STDIN,
) -> None:
    encoded = escape_json(json.dumps(profile_schema(), indent=2, ensure_ascii=False).encode())
    if out == STDIN:
        write_json(encoded)
        return
    File(out).write_bytes(encoded + b"\n")
    screen = console()
    screen.say(f"{visible(out)} is written. Make this the first line of a profile beside it:")
    screen.say(f"#:schema ./{visible(File(out).name)}")
