"""A secret that is never shown: not in a repr, a log line, JSON or the locals of a traceback.

Code that handles a key's bytes raises no error; it returns what is wrong with them, and its caller raises. An error
raised there could carry the key: a UnicodeDecodeError has the bytes it could not decode.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from turnout.core.conceal import HIDDEN, looks_secret
from turnout.core.errors import ConfigError, Problem
from turnout.text.file import read_bytes, reason_of

# Fewer consecutive characters of a secret than this give nothing away.
RUN = 8
# No server accepts a longer header.
MOST_BYTES = 64 * 1024

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BAD = re.compile(rb"[^\x21-\x7e]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Secret:
    """Holds a value that only `reveal` returns."""

    __slots__ = ("_runs", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        size = min(RUN, len(value))
        self._runs = frozenset(value[at : at + size] for at in range(len(value) - size + 1)) if value else frozenset()

    def reveal(self) -> str:
        return self._value

    def hide(self, text: str) -> str:
        """The text without the secret, not even eight consecutive characters of it."""
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
    """Where a secret is: in an environment variable or in a file, never in the configuration itself."""

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
            # It must not be shown, as `place` would be where a key is missing.
            raise ConfigError([Problem(where, f"this looks like a key itself, not like the name of one: {HOW}")])
        return found

    @property
    def place(self) -> str:
        return f"${self.env}" if self.env is not None else str(self.file)


HOW = 'a key is { env = "NAME" } or { file = "PATH" }'


def _in_variable(name: str) -> Secret | str | None:
    if not _VARIABLE.fullmatch(name):
        return f"what follows env is not the name of a variable (letters, digits and _): {HOW}"
    # Bytes that are not UTF-8 become lone surrogates, which cannot be encoded otherwise.
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
    """The key in these bytes, or what is wrong with them, without any of the bytes."""
    if raw.startswith(_UTF16_MARKS):
        return f"{place} is UTF-16 text: save it as plain text (UTF-8)"
    raw = raw.removeprefix(b"\xef\xbb\xbf").strip()
    bad = _BAD.search(raw)
    if bad is None:
        return Secret(raw.decode("ascii")) if raw else None
    if bad[0] in b"\r\n":
        return f"{place} holds several lines: a key is one line"
    if bad[0] > b"\x7f":
        return f"{place} holds a key with a character that is not ASCII (byte {bad.start()}): copy it again"
    return f"{place} holds a key with spaces or control characters (byte {bad.start()}): copy it again"
