"""Safe output to the terminal: any text can be printed, and no text can control the terminal.

Questions and file names come from strangers. Control characters in them are made visible, so that no text can move the
cursor, recolour the screen or reverse the reading direction.
"""

from __future__ import annotations

import io
import os
import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnout.text.control import BIDI, SEPARATORS, escape_json

if TYPE_CHECKING:
    from turnout.store import Logged

    from .shape import Screen

_SHOWN: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x0A: "↵",
    0x09: " ",
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *map(ord, BIDI + SEPARATORS), *range(0xD800, 0xE000)), "\ufffd"),
}


def visible(text: str) -> str:
    """The text with a visible character for each control character."""
    return text if text.isascii() and text.isprintable() else text.translate(_SHOWN)


def visible_lines(text: str) -> str:
    """The same, but line breaks stay."""
    return "\n".join(map(visible, text.split("\n")))


def make_printable() -> None:
    """Let stdout and stderr replace characters that their encoding lacks.

    A closed stderr drops everything. A closed stdout fails on the first write, so that output is never lost silently,
    while a command that writes to a file still works.
    """
    for name, errors in (("stdout", "replace"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_WRONLY)
            setattr(sys, name, open(nowhere, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def abandon_stdout() -> None:
    """Redirect stdout to nowhere once its reader is gone: the interpreter still flushes it on exit, which must not
    fail."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file of the operating system
        stdout = 1
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stdout)
    os.close(nowhere)


def complain(message: str) -> None:
    """Print an error or a warning on stderr."""
    print("turnout:", visible_lines(as_typed_here(message)).replace("\n", "\n         "), file=sys.stderr)


def as_typed_here(message: str) -> str:
    """The message with commands that work here, where the shell may not find `turnout`."""
    from ..option import program
    from ..table import COMMANDS

    if program() == "turnout":
        return with_pip(message)
    names = "|".join(command.name for group in COMMANDS.values() for command in group)
    pattern = rf"(?<![\w./-])turnout(?=-build-minilm| (?:{names})\b)"
    return with_pip(re.sub(pattern, lambda _: program(), message))


def with_pip(message: str) -> str:
    """The message with an installer for this Python: the shell's `pip` may belong to another."""
    if "pip install" not in message:
        return message
    import importlib.util
    import shutil

    python = os.path.relpath(sys.executable) if sys.executable.startswith(os.getcwd() + os.sep) else sys.executable
    if os.path.dirname(shutil.which("pip") or "") == os.path.dirname(sys.executable):
        return message
    has_pip = importlib.util.find_spec("pip") is not None
    command = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return message.replace("pip install", command)


def write_json(value: object) -> None:
    """Write a line of JSON to stdout, with control characters escaped. Bytes are JSON already."""
    encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    sys.stdout.flush()
    sys.stdout.buffer.write(escape_json(encoded) + b"\n")
    sys.stdout.buffer.flush()


def console(*, stderr: bool = False) -> Screen:
    from .shape import Screen

    return Screen(stderr=stderr)


class Glyphs(NamedTuple):
    """The characters a picture is drawn with."""

    accepted: str = "●─▶"
    held: str = "◐"
    passed: str = "○"
    fault: str = "✕"
    rail: str = "│"
    leave: str = "╰─▶"
    line: str = "─"
    edge: str = "┼"
    here: str = "●"
    full: str = "█"
    left_half: str = "▌"
    right_half: str = "▐"
    track: str = "━"
    rest: str = "╌"
    need: str = "┃"
    dot: str = "·"
    arrow: str = "→"
    minus: str = "−"
    micro: str = "µs"
    quotes: tuple[str, str] = ("“", "”")
    dots: str = "…"
    yes: str = "✓"
    no: str = "✗"
    branch: str = "├─"
    corner: str = "╰─"


PLAIN = Glyphs(
    accepted="*->",
    held="o",
    passed=".",
    fault="x",
    rail="|",
    leave="`->",
    line="-",
    edge="+",
    here="O",
    full="#",
    left_half="#",
    right_half="#",
    track="=",
    rest=".",
    need="|",
    dot="-",
    arrow="->",
    minus="-",
    micro="us",
    quotes=('"', '"'),
    dots="...",
    yes="ok",
    no="not met",
    branch="|-",
    corner="`-",
)


def quoted(text: str, glyphs: Glyphs, most: int | None = None) -> str:
    """The text in quotes, cut to `most` characters."""
    opening, closing = glyphs.quotes
    shown = text if most is None or len(text) <= most else f"{text[: most - 1]}{glyphs.dots}"
    return f"{opening}{visible(shown)}{closing}"


def format_value(value: object, glyphs: Glyphs) -> str:
    """A value of a policy for people to read."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return visible(f" {glyphs.arrow} ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def clock(created_ms: int) -> str:
    """A date and time in full, in local time."""
    return datetime.fromtimestamp(created_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def missing_text(row: Logged, dots: str) -> str:
    """The placeholder for a text that was not kept."""
    return f"(hash {row.digest[:8]}{dots})" if row.digest else "(not kept)"


def dollars(amount: float | None) -> str:
    """An amount of money: in cents, or, below a cent, with as many digits as it takes. Unknown is not zero."""
    if amount is None:
        return "unknown"
    if amount == 0 or abs(amount) >= 0.01:
        return f"{'-' * (amount < 0)}${abs(amount):,.2f}"
    return f"{'-' * (amount < 0)}${abs(amount):.2g}" if abs(amount) >= 1e-4 else f"${amount:.1e}"
