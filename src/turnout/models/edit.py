"""Changes one slot in the user's settings file and leaves every other line of it as it is."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from turnout.config.load import SETTINGS, settings_file
from turnout.core.errors import ConfigError, Problem

from .slot import DEFAULT_TIERS, SlotFile, make_slot

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")


def set_slot(slot: str, model: str, base_url: str | None, config: str | os.PathLike[str] | None = None) -> Path:
    """Fill a slot with a model; the file that says so now. What cannot be used is refused and changes nothing."""
    if not _NAME.match(slot):
        raise ConfigError([Problem(repr(slot), "a slot's name is letters, digits, - and _")])
    make_slot(slot, SlotFile(model, base_url=base_url))
    file = settings_file(config) or _default_file()
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    changed = edited(text, slot, model, base_url, fresh="models" not in tomllib.loads(text))
    tomllib.loads(changed)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(file.name + ".new")
    new.write_text(changed, encoding="utf-8")
    new.replace(file)
    return file


def edited(text: str, slot: str, model: str, base_url: str | None, *, fresh: bool) -> str:
    """The settings with this slot. The first slot a user names brings the default tiers along: naming one must not
    take the others away."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.strip() == f"[models.{slot}]"), None)
    wanted = {"model": model} | ({"base_url": base_url} if base_url is not None else {})
    if head is None:
        others = {name: tier for name, tier in DEFAULT_TIERS.items() if name != slot} if fresh else {}
        for name, tier in others.items():
            lines += ["", f"[models.{name}]", f'model = "{tier}"']
        lines += ["", f"[models.{slot}]", *(f'{key} = "{value}"' for key, value in wanted.items())]
        return "\n".join(lines).lstrip("\n") + "\n"
    end = next((i for i in range(head + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    body = [line for line in lines[head + 1 : end] if not re.match(r"\s*(?:model|base_url)\s*=", line)]
    told = [f'{key} = "{value}"' for key, value in wanted.items()]
    return "\n".join([*lines[: head + 1], *told, *body, *lines[end:]]) + "\n"


def _default_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "turnout" / SETTINGS
