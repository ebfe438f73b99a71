"""Adds one source to the user's settings file and leaves its other lines as they are.

The table is appended as text, so that comments stay, after it has been validated. The changed file is parsed to make
sure that it has the old settings and the new table.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnout.config.document import MOST_BYTES, from_source, read_source
from turnout.config.settings import own_settings_file, save_settings, settings_file
from turnout.config.write import Value, toml_value
from turnout.core.errors import ConfigError, Problem, suggest

from .settings import make_one
from .source import Source
from .tables import KINDS, RESERVED, TABLE

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")


class AddedSource(NamedTuple):
    source: Source
    """An Unconfigured source, if its token is missing."""
    file: Path
    """The changed settings file."""


def add_source(name: str, entry: Mapping[str, Value], config: str | os.PathLike[str] | None = None) -> AddedSource:
    """Add `[sources.NAME]`. An invalid one is refused and changes nothing."""
    _check_names(name, str(entry.get("kind") or name))
    file = settings_file(config) or own_settings_file()
    text = read_source(file, MOST_BYTES) if os.path.lexists(file) else ""
    before = from_source(text, file.name)
    table = before.tree.get(TABLE, {})
    if isinstance(table, dict) and name in table:
        problem = "is there already: change it in that file, or add another under its own name with --kind"
        raise ConfigError([before.problem((TABLE, name), problem)])
    source = make_one(name, entry, file.name)
    changed = appended(text, name, entry)
    if not _adds(before.tree, changed, name, entry):
        problem = f"sources are written in a way this command cannot add to: add {name} there, as {toml_value(entry)}"
        raise ConfigError([Problem(str(file), problem)])
    save_settings(file, changed)
    return AddedSource(source, file)


def appended(text: str, name: str, entry: Mapping[str, Value]) -> str:
    """The settings followed by the table."""
    lines = [f"[{TABLE}.{name}]", *(f"{key} = {toml_value(value)}" for key, value in entry.items())]
    before = text if not text or text.endswith("\n") else f"{text}\n"
    return before + ("\n" if before.strip() else "") + "\n".join(lines) + "\n"


def _check_names(name: str, kind: str) -> None:
    if not _NAME.match(name):
        raise ConfigError([Problem(repr(name[:80]), "a source's name is letters, digits, - and _, a letter first")])
    if name in RESERVED:
        raise ConfigError([Problem(repr(name), f"means something else to turnout ask --source: name it my-{name}")])
    if kind not in KINDS:
        problem = f"is not a kind of source{suggest(kind, KINDS)}: say --kind, one of {', '.join(KINDS)}"
        raise ConfigError([Problem(repr(kind[:80]), problem)])


def _adds(before: Mapping[str, Any], changed: str, name: str, entry: Mapping[str, Value]) -> bool:
    table = before.get(TABLE, {})
    if not isinstance(table, dict):
        return False
    try:
        return tomllib.loads(changed) == {**before, TABLE: {**table, name: dict(entry)}}
    except tomllib.TOMLDecodeError:
        return False
