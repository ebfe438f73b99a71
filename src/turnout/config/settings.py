"""What a user sets once for everything: the tables of `turnout.toml` that are not a profile's."""

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

from .check import Found, conform
from .document import Tree, read

SETTINGS = "turnout.toml"
Days = Annotated[int, Meta(ge=0)]
Settings = TypeVar("Settings", bound=Struct)


class FromEnv(Struct, frozen=True, forbid_unknown_fields=True):
    """A secret's place: the name of an environment variable."""

    env: str


class StoreSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The table `[store]`."""

    url: str | FromEnv | None = None
    """A path, `sqlite:///PATH` or `postgresql://…`; one with a password only as `{ env = "NAME" }`."""
    durability: Literal["batched", "strict"] = "batched"
    text: Literal["off", "hash", "snippet", "full"] | None = None
    """How much of a user's text is kept; by default full on loopback and hash in public."""
    keep_days: Days = 0
    """Decisions older than this are deleted; 0 keeps them."""
    text_days: Days = 0
    """Texts older than this are removed from their rows; 0 keeps them."""
    spool_bytes: Annotated[int, Meta(ge=65_536)] = 256 * 1024 * 1024
    """How much may wait for a database that does not answer: some 200,000 decisions."""
    log_commands: bool = True
    """Whether `turnout route` logs its decisions."""


def settings_file(config: str | os.PathLike[str] | None = None) -> Path | None:
    """The user's settings file, if there is one."""
    if config is not None:
        return Path(config) if os.fspath(config) else None
    if named := os.environ.get("TURNOUT_CONFIG"):
        return Path(named)
    path = own_settings_file()
    # Unlike the methods of a path, these fail for no reason a file system or a user's home can give.
    return path if os.path.isfile(path) else None


def own_settings_file() -> Path:
    """Where a user's settings are by default, whether or not there are any yet."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(home)) / "turnout" / SETTINGS


def save_settings(file: Path, text: str) -> None:
    """Replace a settings file: a reader sees the old text or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(file.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def store_settings(config: str | os.PathLike[str] | None = None) -> StoreSettings:
    """The user's settings for the store."""
    return read_settings("store", StoreSettings, config, _find_password)


def read_settings(
    name: str,
    wanted: type[Settings],
    config: str | os.PathLike[str] | None = None,
    check: Callable[[Any], Iterable[Found]] = lambda table: (),
) -> Settings:
    """A table of the user's settings file, or a ConfigError with every mistake in it; `check` finds more of them."""
    file = settings_file(config)
    if file is None:
        return wanted()
    document = read(file)
    table = document.tree.get(name, {})
    found = [
        *_misspelt(document.tree, name, wanted),
        *conform(table, inspect.type_info(wanted), (name,)),
        *check(table),
    ]
    if found:
        raise ConfigError([document.problem(path, message) for path, message in found])
    return msgspec.convert(table, wanted)


def _misspelt(tree: Tree, name: str, wanted: type[Struct]) -> Iterator[Found]:
    """Tables that are nearly called so and speak of the same things. Others are profiles': `load` knows those."""
    for other, table in tree.items():
        near = suggest(other, (name,)) if other != name and isinstance(table, dict) else ""
        if near and not table.keys().isdisjoint(wanted.__struct_fields__):
            yield (other,), f"no such table{near}"


def _find_password(table: Any) -> Iterator[Found]:
    url = table.get("url") if isinstance(table, dict) else None
    if isinstance(url, str) and holds_password(url):
        yield ("store", "url"), 'a password does not belong in a file: url = { env = "DATABASE_URL" }'


def holds_password(url: str) -> bool:
    """Whether a URL says a password, before its host or among its options."""
    return _PASSWORD.search(url) is not None


_PASSWORD = re.compile(r"://[^/:@]*:[^@]*@|[?&][^=&]*password=", re.IGNORECASE)


def store_url(url: str | None = None, settings: StoreSettings | None = None) -> str:
    """Where the store is: what the caller says, else `TURNOUT_DB`, else the settings, else the user's data folder."""
    if named := url or os.environ.get("TURNOUT_DB"):
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
