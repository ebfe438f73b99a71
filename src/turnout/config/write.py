"""Writes TOML: strings, keys and values of the settings and profile files that Turnout creates.

Invariant: `tomllib` reads back the same value, whatever characters it has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from turnout.core.errors import ConfigError, Problem

_bare = re.compile(r"[A-Za-z0-9_-]+").fullmatch
# TOML strings cannot contain raw control characters. U+0085, U+2028 and U+2029 are allowed, but end a line for many
# editors and for Python's `splitlines`.
_escaped = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_lone = re.compile("[\ud800-\udfff]")

Value = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]


def toml_text(text: str) -> str:
    """A quoted string on one line."""
    if lone := _lone.search(text):
        raise ConfigError([Problem(repr(text[:60]), f"has {lone[0]!r}, half of a character, which TOML cannot hold")])
    return f'"{_escaped.sub(_escape, text)}"'


def toml_key(name: str) -> str:
    """One part of a key, quoted if necessary."""
    return name if _bare(name) else toml_text(name)


def toml_value(value: Value) -> str:
    """A value on one line; a table becomes an inline table."""
    match value:
        case str():
            return toml_text(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"{value}"
        case Mapping():
            return f"{{ {', '.join(f'{toml_key(key)} = {toml_value(item)}' for key, item in value.items())} }}"
        case _:
            return f"[{', '.join(map(toml_value, value))}]"


def toml_comment(text: str) -> str:
    """A comment of one line; unprintable characters (of a file name, say) become `?`."""
    return f"# {''.join(letter if letter.isprintable() else '?' for letter in text)}"


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"
