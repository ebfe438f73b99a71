"""What a user sets once for everything: the tables of `turnout.toml` that are not a profile's."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, inspect

from turnout.core.errors import ConfigError, Problem, suggest

from .check import conform
from .document import Document, read
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
    problems = [
        *misspelt(document, "store", StoreSettings),
        *(document.problem(path, said) for path, said in conform(table, inspect.type_info(StoreSettings), ("store",))),
    ]
    url = table.get("url") if isinstance(table, dict) else None
    if isinstance(url, str) and holds_password(url):
        said = 'a password does not belong in a file: url = { env = "DATABASE_URL" }'
        problems.append(document.problem(("store", "url"), said))
    if problems:
        raise ConfigError(problems)
    return msgspec.convert(table, StoreSettings)


def misspelt(document: Document, name: str, kind: type[Struct]) -> list[Problem]:
    """Tables that are nearly called so and speak of the same things. Others are profiles': `load` knows those."""
    return [
        document.problem((other,), f"no such table{near}")
        for other, table in document.tree.items()
        if other != name and (near := suggest(other, (name,)))
        if isinstance(table, dict) and not table.keys().isdisjoint(kind.__struct_fields__)
    ]


def holds_password(url: str) -> bool:
    """Whether a URL says a password, before its host or among its options."""
    return _PASSWORD.search(url) is not None


_PASSWORD = re.compile(r"://[^/:@]*:[^@]*@|[?&][^=&]*password=", re.IGNORECASE)


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
        return Path(os.path.expanduser("~/Library/Application Support/turnout"))
    return Path(os.path.expanduser(os.environ.get("XDG_DATA_HOME") or "~/.local/share")) / "turnout"
