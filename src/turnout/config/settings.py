"""What a user sets once for everything: the tables of `turnout.toml` that are not a profile's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from turnout.core.errors import ConfigError

from .document import read
from .load import settings_file

Days = Annotated[int, Meta(ge=0)]


class FromEnv(Struct, frozen=True, forbid_unknown_fields=True):
    """A secret's place: the name of an environment variable."""

    env: str


class StoreSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The table `[store]`."""

    url: str | FromEnv | None = None
    """A path, `sqlite:///PATH` or `postgresql://…`; one with a password only as `{ env = "NAME" }`."""
    durability: Literal["batched", "strict"] = "batched"
    text: Literal["off", "hash", "snippet", "full"] | None = None
    """How much of a user's text is kept; full on loopback and hash in public unless told."""
    keep_days: Days = 0
    """Decisions older than this are deleted; 0 keeps them."""
    text_days: Days = 0
    """Texts older than this are removed from their rows; 0 keeps them."""
    spool_bytes: Annotated[int, Meta(ge=65_536)] = 256 * 1024 * 1024
    """How much may wait for a database that does not answer: some 200,000 decisions."""
    log_commands: bool = True
    """Whether `turnout route` logs its decisions."""


def store_settings(config: str | os.PathLike[str] | None = None) -> StoreSettings:
    """The user's settings for the store."""
    file = settings_file(config)
    if file is None:
        return StoreSettings()
    document = read(file)
    table: Any = document.tree.get("store", {})
    try:
        found = msgspec.convert(table, StoreSettings)
    except msgspec.ValidationError as error:
        raise ConfigError([document.problem(("store",), str(error))]) from None
    if isinstance(found.url, str) and "://" in found.url and urlsplit(found.url).password:
        said = 'a password does not belong in a file: url = { env = "DATABASE_URL" }'
        raise ConfigError([document.problem(("store", "url"), said)])
    return found


def store_url(url: str | None = None, settings: StoreSettings | None = None) -> str:
    """Where the store is: what the caller says, else `TURNOUT_DB`, else the settings, else the user's data folder."""
    if url:
        return url
    named = os.environ.get("TURNOUT_DB")
    if named:
        return named
    said = settings.url if settings is not None else None
    if isinstance(said, FromEnv):
        return os.environ.get(said.env) or ""
    return said or str(data_folder() / "turnout.db")


def data_folder() -> Path:
    """Where this system wants a user's data."""
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/turnout").expanduser()
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "turnout"
