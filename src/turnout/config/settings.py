"""The user's settings: the tables of `turnout.toml` that are not for a profile."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, inspect

from turnout.core.errors import ConfigError, suggest
from turnout.core.policy import Count
from turnout.text.file import write_bytes

from .check import Found, conform
from .document import Tree, read

SETTINGS = "turnout.toml"
Settings = TypeVar("Settings", bound=Struct)


class FromEnv(Struct, frozen=True, forbid_unknown_fields=True):
    """A secret in an environment variable."""

    env: str


class StoreSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The table `[store]`."""

    url: str | FromEnv | None = None
    """A path, `sqlite:///PATH` or `postgresql://…`; with a password only as `{ env = "NAME" }`."""
    durability: Literal["batched", "strict"] = "batched"
    text: Literal["off", "hash", "snippet", "full"] | None = None
    """How much of a user's text is kept; by default full on loopback and hash in public."""
    keep_days: Count = 0
    """Decisions older than this are deleted; 0 keeps them."""
    text_days: Count = 0
    """Texts older than this are removed from their rows; 0 keeps them."""
    spool_bytes: Annotated[int, Meta(ge=65_536)] = 256 * 1024 * 1024
    """How much may wait while the database does not answer: some 200,000 decisions."""
    log_commands: bool = True
    """Whether `turnout route` logs its decisions."""


def settings_file(config: str | os.PathLike[str] | None = None) -> Path | None:
    """The user's settings file, if there is one."""
    if config is not None:
        return Path(config) if os.fspath(config) else None
    if named := os.environ.get("TURNOUT_CONFIG"):
        return Path(named)
    path = own_settings_file()
    # Unlike the methods of Path, these never raise, whatever the file system or the home folder.
    return path if os.path.isfile(path) else None


def own_settings_file() -> Path:
    """Where a user's settings are by default, even if the file does not exist yet."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(home)) / "turnout" / SETTINGS


def save_settings(file: Path, text: str) -> None:
    """Replace a settings file; a concurrent reader sees the old text or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, text.encode())


def store_settings(config: str | os.PathLike[str] | None = None) -> StoreSettings:
    """The user's settings for the store."""
    return read_settings("store", StoreSettings, config, _find_password)


def read_settings(
    name: str,
    wanted: type[Settings],
    config: str | os.PathLike[str] | None = None,
    check: Callable[[Any], Iterable[Found]] = lambda table: (),
) -> Settings:
    """A table of the user's settings file; raises a ConfigError with every mistake. `check` adds checks of its own."""
    file = settings_file(config)
    if file is None:
        return wanted()
    document = read(file)
    table = document.tree.get(name, {})
    mistakes = [
        *_misspelt(document.tree, name, wanted),
        *conform(table, inspect.type_info(wanted), (name,)),
        *check(table),
    ]
    if mistakes:
        raise ConfigError([document.problem(path, message) for path, message in mistakes])
    return msgspec.convert(table, wanted)


def _misspelt(tree: Tree, name: str, wanted: type[Struct]) -> Iterator[Found]:
    """Tables with a similar name and at least one of the same keys. `load` checks the tables of profiles."""
    for other, table in tree.items():
        near = suggest(other, (name,)) if other != name and isinstance(table, dict) else ""
        if near and not table.keys().isdisjoint(wanted.__struct_fields__):
            yield (other,), f"no such table{near}"


def _find_password(table: Any) -> Iterator[Found]:
    url = table.get("url") if isinstance(table, dict) else None
    if isinstance(url, str) and holds_password(url):
        yield ("store", "url"), 'a password does not belong in a file: url = { env = "DATABASE_URL" }'


def holds_password(url: str) -> bool:
    """Whether a URL contains a password, before its host or among its options."""
    return _PASSWORD.search(url) is not None


_PASSWORD = re.compile(r"://[^/:@]*:[^@]*@|[?&][^=&]*password=", re.IGNORECASE)


def store_url(url: str | None = None, settings: StoreSettings | None = None) -> str:
    """Where the store is: the caller's URL, else `TURNOUT_DB`, else the settings, else the user's data folder."""
    if named := url or os.environ.get("TURNOUT_DB"):
        return named
    configured = settings.url if settings is not None else None
    if isinstance(configured, FromEnv):
        return os.environ.get(configured.env) or ""
    return configured or str(data_folder() / "turnout.db")


def data_folder() -> Path:
    """The system's folder for Turnout's data."""
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Application Support/turnout"))
    return Path(os.path.expanduser(os.environ.get("XDG_DATA_HOME") or "~/.local/share")) / "turnout"
