"""A secret that does not show itself: not in a repr, a log line, JSON or a traceback's locals as text.

No error is raised where a key's bytes are at hand: what is wrong with them is a value, and the code that raises has
only that. A UnicodeDecodeError, for one, carries all that it could not decode.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from turnout.core.conceal import HIDDEN, looks_secret
from turnout.core.errors import ConfigError, Problem
from turnout.text.file import read_bytes, reason_of

# Fewer characters of a secret than this give nothing away.
RUN = 8
# No server takes a header that is longer.
MOST_BYTES = 64 * 1024

_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_BAD = re.compile(rb"[^\x21-\x7e]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Secret:
    """Holds a value that only `reveal` gives away."""

    __slots__ = ("_runs", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        size = min(RUN, len(value))
        self._runs = frozenset(value[at : at + size] for at in range(len(value) - size + 1)) if value else frozenset()

    def reveal(self) -> str:
        return self._value

    def hide(self, text: str) -> str:
        """A text from a place that was told the secret, without it: not even eight characters of it in a row."""
        size = min(RUN, len(self._value))
        if not self._runs or not any(text[at : at + size] in self._runs for at in range(len(text) - size + 1)):
            return text
        parts: list[str] = []
        end = 0
        for at in range(len(text) - size + 1):
            if text[at : at + size] in self._runs:
                if at > end or not parts:
                    parts += (text[end:at], HIDDEN)
                end = at + size
        return "".join((*parts, text[end:]))

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)


class SecretPlace(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a secret is: in an environment variable or in a file. Never in the configuration itself."""

    env: str | None = None
    file: str | None = None

    def read(self, where: str) -> Secret | None:
        """The secret; None if the variable is unset, the file missing or either of them empty."""
        if (self.env is None) == (self.file is None):
            raise ConfigError([Problem(where, HOW)])
        found = _in_variable(self.env) if self.env is not None else _in_file(self.file or "")
        if isinstance(found, str):
            raise ConfigError([Problem(where, found)])
        if found is None and looks_secret(self.env or self.file or ""):
            # Shown nowhere, and least of all as the place where a key is missing.
            raise ConfigError([Problem(where, f"this looks like a key itself, not like the name of one: {HOW}")])
        return found

    @property
    def place(self) -> str:
        return f"${self.env}" if self.env is not None else str(self.file)


HOW = 'a key is { env = "NAME" } or { file = "PATH" }'


def _in_variable(name: str) -> Secret | str | None:
    if not _VARIABLE.fullmatch(name):
        return f"what follows env is no name of a variable (letters, digits and _): {HOW}"
    # Bytes that are not UTF-8 come as lone surrogates, which would be an error of their own.
    return _key(os.environ.get(name, "").encode("utf-8", "surrogateescape"), f"${name}")


def _in_file(name: str) -> Secret | str | None:
    try:
        raw = read_bytes(Path(os.path.expanduser(name)), MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{name if not looks_secret(name) else HIDDEN}: the key cannot be read: {reason_of(error)}"
    return _key(raw, name)


def _key(raw: bytes, place: str) -> Secret | str | None:
    """The key that these bytes are, or what is wrong with them: not a byte of them is in that."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return f"{place} is {encoding} text: save it as plain text (UTF-8)"
    raw = raw.removeprefix(b"\xef\xbb\xbf").strip()
    bad = _BAD.search(raw)
    if bad is None:
        return Secret(raw.decode("ascii")) if raw else None
    if bad[0] in b"\r\n":
        return f"{place} holds several lines: a key is one line"
    if bad[0] > b"\x7f":
        return f"{place} holds a key with a character that is not ASCII (byte {bad.start()}): copy it again"
    return f"{place} holds a key with spaces or control characters (byte {bad.start()}): copy it again"
