"""A secret that does not show itself: not in a repr, a log line, JSON or a traceback's locals as text."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from turnout.core.errors import ConfigError, Problem

# Fewer characters of a secret than this tell nobody anything.
RUN = 8


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
        """A text of somebody's who was told the secret, without it: not even eight characters of it in a row."""
        size = min(RUN, len(self._value))
        if not self._runs or not any(text[at : at + size] in self._runs for at in range(len(text) - size + 1)):
            return text
        parts: list[str] = []
        end = 0
        for at in range(len(text) - size + 1):
            if text[at : at + size] in self._runs:
                if at > end or not parts:
                    parts += (text[end:at], "***")
                end = at + size
        return "".join((*parts, text[end:]))

    def __repr__(self) -> str:
        return "***"

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
            raise ConfigError([Problem(where, 'a key is { env = "NAME" } or { file = "PATH" }')])
        if self.env is not None:
            value = os.environ.get(self.env, "")
        else:
            path = Path(self.file or "").expanduser()
            value = path.read_text(encoding="utf-8") if path.is_file() else ""
        value = value.strip()
        if any(ord(character) < 33 or ord(character) > 126 for character in value):
            raise ConfigError([Problem(where, f"{self.place} holds a key with spaces or control characters")])
        return Secret(value) if value else None

    @property
    def place(self) -> str:
        return f"${self.env}" if self.env is not None else str(self.file)
