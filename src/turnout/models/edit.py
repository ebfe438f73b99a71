"""Changes or removes one slot in the user's settings file and keeps every other line.

The file is edited as text, so that comments stay. The result is parsed and must differ in this slot alone; a file whose
layout the edit does not understand is not changed.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from turnout.config.document import MOST_BYTES, from_source, read_source
from turnout.config.settings import own_settings_file, save_settings, settings_file
from turnout.config.write import toml_text, toml_value
from turnout.core.errors import ConfigError, Problem, suggest

from .slot import DEFAULT_TIERS, SlotFile, make_slot, read_table

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_TABLE = re.compile(r"\s*\[")


def set_slot(slot: str, model: str, base_url: str | None, config: str | os.PathLike[str] | None = None) -> Path:
    """Fill a slot with a model; returns the settings file. A slot that cannot be used is refused, without a change."""
    if not _NAME.match(slot):
        raise ConfigError([Problem(repr(slot), "a slot's name is letters, digits, - and _")])
    if not model.isprintable():
        raise ConfigError([Problem(f"models.{slot}", f"model {model!r} has characters no model's name has")])
    make_slot(slot, SlotFile(model, base_url=base_url))
    file = settings_file(config) or own_settings_file()
    text = read_source(file, MOST_BYTES) if os.path.lexists(file) else ""
    from_source(text, file.name)
    before = _slots(text)
    fields = {"model": model} | ({"base_url": base_url} if base_url is not None else {})
    wanted = dict(before) if before else {name: {"model": tier} for name, tier in DEFAULT_TIERS.items()}
    old = before.get(slot)
    old = old if isinstance(old, dict) else {}
    kept = {key: value for key, value in old.items() if key not in ("model", "base_url")}
    wanted[slot] = kept | fields
    changed = edited(text, slot, fields, fresh=not before)
    if not _has_slots(changed, wanted):
        why = f"models.{slot} is written in a way this command cannot change: change it there, to {fields}"
        raise ConfigError([Problem(str(file), why)])
    document = from_source(changed, file.name)
    # Checked with the fields it keeps, above all its key.
    read_table(document, {slot: document.tree["models"][slot]})
    save_settings(file, changed)
    return file


def unset_slot(slot: str, config: str | os.PathLike[str] | None = None) -> Path:
    """Remove a slot from the settings; the file that was changed."""
    file = settings_file(config) or own_settings_file()
    text = read_source(file, MOST_BYTES) if os.path.lexists(file) else ""
    from_source(text, file.name)
    slots = _slots(text)
    if slot not in slots:
        raise ConfigError([Problem(str(file), f"there is no slot {slot[:80]!r} in it{suggest(slot, slots)}")])
    changed = removed(text, slot)
    if not _has_slots(changed, {name: entry for name, entry in slots.items() if name != slot}):
        problem = f"models.{slot} is written in a way this command cannot change: remove it there"
        raise ConfigError([Problem(str(file), problem)])
    save_settings(file, changed)
    return file


def removed(text: str, slot: str) -> str:
    """The settings without this slot. Comments at the end of its table may belong to the next one, and stay."""
    lines = text.split("\n")
    name = re.escape(slot)
    table = rf'\s*\[\s*models\s*\.\s*(["\']?){name}\1\s*(?:\.[^\]]*)?\]\s*(?:#.*)?\Z'
    while (head := _find(lines, table)) is not None:
        end = _end(lines, head)
        while lines[end - 1].strip()[:1] in ("", "#"):
            end -= 1
        while end < len(lines) - 1 and not lines[end].strip():
            end += 1
        del lines[head:end]
    short = _find_short(lines, name)
    if short is not None:
        del lines[short]
    return "\n".join(lines)


def edited(text: str, slot: str, fields: dict[str, str], *, fresh: bool) -> str:
    """The settings with this slot. With `fresh`, the default tiers are written too: they apply only while no slot is
    configured, and naming one must not remove the others."""
    # Not `splitlines`, which also splits at U+0085 and U+2028: those do not end a line in TOML.
    lines = text.removesuffix("\n").split("\n") if text else []
    pairs = [f"{key} = {toml_text(value)}" for key, value in fields.items()]
    head = _find(lines, rf'\s*\[\s*models\s*\.\s*(["\']?){slot}\1\s*\]\s*(?:#.*)?\Z')
    if head is not None:
        end = _end(lines, head)
        body = [line for line in lines[head + 1 : end] if not re.match(r"\s*(?:model|base_url)\s*=", line)]
        return "\n".join([*lines[: head + 1], *pairs, *body, *lines[end:]]) + "\n"
    short = _find_short(lines, slot)
    if short is not None:
        value = toml_value(fields["model"] if len(fields) == 1 else fields)
        return "\n".join([*lines[:short], f"{slot} = {value}", *lines[short + 1 :]]) + "\n"
    others = {name: tier for name, tier in DEFAULT_TIERS.items() if name != slot} if fresh else {}
    for name, tier in others.items():
        lines += ["", f"[models.{name}]", f"model = {toml_text(tier)}"]
    lines += ["", f"[models.{slot}]", *pairs]
    return "\n".join(lines).lstrip("\n") + "\n"


def _find_short(lines: list[str], slot: str) -> int | None:
    """The line of a slot in the table `[models]`."""
    table = _find(lines, r"\s*\[\s*models\s*\]\s*(?:#.*)?\Z")
    return _find(lines, rf"\s*{slot}\s*=", table + 1, _end(lines, table)) if table is not None else None


def _find(lines: list[str], pattern: str, start: int = 0, end: int | None = None) -> int | None:
    found = re.compile(pattern)
    return next((i for i in range(start, len(lines) if end is None else end) if found.match(lines[i])), None)


def _end(lines: list[str], head: int) -> int:
    """The line after the table that begins at `head`."""
    return next((i for i in range(head + 1, len(lines)) if _TABLE.match(lines[i])), len(lines))


def _slots(text: str) -> dict[str, Any]:
    """The slots of a settings file, each as a table."""
    table = tomllib.loads(text).get("models", {})
    if not isinstance(table, dict):
        return {}
    return {name: {"model": entry} if isinstance(entry, str) else entry for name, entry in table.items()}


def _has_slots(text: str, slots: dict[str, Any]) -> bool:
    try:
        return _slots(text) == slots
    except tomllib.TOMLDecodeError:
        return False
