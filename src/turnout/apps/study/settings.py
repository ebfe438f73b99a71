"""What a reader sets once, in the table `[study]` of `turnout.toml`; the router's own settings stand there too."""

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
    """The table `[study]`, but for what the profile reads of it."""

    notes: str | None = None
    """A folder of Markdown. `{tenant}` in it stands for whose key is used: without it all readers share the notes."""
    remember: bool | None = None
    """Whether sessions and what was said in them are kept in the store; by default if the log keeps texts in full."""
    idle_minutes: Annotated[int, Meta(ge=1)] = IDLE_MINUTES
    """A session in which nothing is asked for so long has ended."""
    slot: str = "main"
    """The model slot that answers where a route names none."""
    max_tokens: Annotated[int, Meta(ge=16)] = 1_000
    """Of an answer."""


def study_settings(config: str | os.PathLike[str] | None = None) -> StudySettings:
    """The reader's settings, or a ConfigError with every mistake in them."""
    file = settings_file(config)
    if file is None:
        return StudySettings()
    document = read(file)
    table: Any = document.tree.get(TABLE, {})
    own = {key: table[key] for key in APP_KEYS[TABLE] if key in table} if isinstance(table, dict) else {}
    if found := list(conform(own, inspect.type_info(StudySettings), (TABLE,))):
        raise ConfigError([document.problem(path, message) for path, message in found])
    return msgspec.convert(own, StudySettings)


def notes_folder(said: str, tenant: str) -> Path | None:
    """The folder of a reader's notes; None where a reader can have none: a name that could lead elsewhere, or none at
    all, never becomes part of a path."""
    if TENANT in said:
        if _SAFE.fullmatch(tenant) is None:
            return None
        said = said.replace(TENANT, tenant)
    return Path(os.path.expanduser(said)).absolute()


def index_file(kind: str, where: str) -> Path:
    """Where the index of something is: it can be made again from that, and so is no part of it."""
    folder = data_folder() / "study"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{kind}-{sha256(where.encode()).hexdigest()[:16]}.db"
