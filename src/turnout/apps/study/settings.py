"""The reader's settings in the table `[study]` of `turnout.toml`, which also has settings of the profile."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, inspect

from turnout.config.check import conform
from turnout.config.document import read
from turnout.config.load import APP_KEYS
from turnout.config.settings import data_folder, settings_file
from turnout.core.errors import ConfigError

from .session import IDLE_MINUTES

TABLE = "study"
TENANT = "{tenant}"
_SAFE = re.compile(r"[^\W_][\w-]{0,100}")


class StudySettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The settings of the table `[study]` that the profile does not read."""

    notes: str | None = None
    """A folder of Markdown. `{tenant}` in it stands for the key's tenant; without it all readers share the notes."""
    remember: bool | None = None
    """Whether the store keeps sessions with their texts; by default if the log keeps texts in full."""
    idle_minutes: Annotated[int, Meta(ge=1)] = IDLE_MINUTES
    """A session ends after this time without a question."""
    slot: str = "main"
    """The model slot that answers if the route names none."""
    max_tokens: Annotated[int, Meta(ge=16)] = 1_000
    """The most tokens of an answer."""


def study_settings(config: str | os.PathLike[str] | None = None) -> StudySettings:
    """The reader's settings; raises ConfigError with every mistake."""
    file = settings_file(config)
    if file is None:
        return StudySettings()
    document = read(file)
    table: Any = document.tree.get(TABLE, {})
    own = {key: table[key] for key in APP_KEYS[TABLE] if key in table} if isinstance(table, dict) else {}
    if found := list(conform(own, inspect.type_info(StudySettings), (TABLE,))):
        raise ConfigError([document.problem(path, message) for path, message in found])
    return msgspec.convert(own, StudySettings)


def notes_folder(configured: str, tenant: str) -> Path | None:
    """The folder of a reader's notes; None if its path needs a tenant whose name is empty or unsafe in a path."""
    if TENANT in configured:
        if _SAFE.fullmatch(tenant) is None:
            return None
        configured = configured.replace(TENANT, tenant)
    return Path(os.path.expanduser(configured)).absolute()


def index_file(kind: str, where: str) -> Path:
    """The file of an index, outside of what it indexes, from which it can be rebuilt."""
    folder = data_folder() / "study"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{kind}-{sha256(where.encode()).hexdigest()[:16]}.db"
