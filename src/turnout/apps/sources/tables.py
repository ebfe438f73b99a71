"""The tables `[sources.NAME]` of the user's settings.

They are validated strictly, like all tables: every mistake is reported at once, with its line and a suggestion. A table
never contains a token, only a reference to it: `{ env = "NAME" }` or `{ file = "PATH" }`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, inspect

from turnout.config.check import Found, conform
from turnout.config.document import Document
from turnout.core.errors import ConfigError, suggest
from turnout.models.secret import SecretPlace

Seconds = Annotated[float, Meta(gt=0.0, le=600.0)]
TABLE = "sources"
# Values for a caller's `source` that are not names.
RESERVED = ("auto", "fusion")


class SourceFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The keys of every table."""

    kind: str = ""
    """By default the table's name."""
    description: str = ""
    """One line that tells a model what it knows."""
    timeout_s: Seconds = 10.0
    private: bool = False
    """Its host may resolve to a private address."""
    plain_http: bool = False
    """Its token may be sent to a public address over http, where others can read it."""


class KiwixFile(SourceFile, frozen=True):
    url: str | None = None
    """kiwix-serve."""
    zim: tuple[str, ...] = ()
    """ZIM files on this machine, instead."""
    books: tuple[str, ...] = ()
    """By default all."""


class NewsFile(SourceFile, frozen=True):
    url: str | None = None
    """FreshRSS."""
    user: str = ""
    token: SecretPlace | None = None
    """FreshRSS's API password."""
    feeds: tuple[str, ...] = ()
    """URLs of RSS or Atom feeds."""


class WebFile(SourceFile, frozen=True):
    url: str
    public_web: bool = False
    """The pages in the results may be read."""
    pages: Annotated[int, Meta(ge=1, le=10)] = 3


class Coordinates(Struct, frozen=True, forbid_unknown_fields=True):
    latitude: Annotated[float, Meta(ge=-90.0, le=90.0)]
    longitude: Annotated[float, Meta(ge=-180.0, le=180.0)]
    name: str = "here"


class ForecastFile(SourceFile, frozen=True):
    place: str | Coordinates
    units: Literal["metric", "imperial"] = "metric"
    url: str = "https://api.open-meteo.com"
    geocoding: str = "https://geocoding-api.open-meteo.com"


class HaFile(SourceFile, frozen=True):
    url: str
    token: SecretPlace


class UptimeFile(SourceFile, frozen=True):
    url: str
    token: SecretPlace | None = None
    """An API key, for the metrics."""
    page: Annotated[str, Meta(pattern=r"^[\w.-]*$")] = ""
    """The name of a status page, instead."""


class ChangesFile(SourceFile, frozen=True):
    watch: tuple[str, ...] = ()
    """Names of sources; by default all that can be compared."""
    every_s: Annotated[float, Meta(ge=60.0)] = 3600.0
    folder: str = ""
    """For snapshots; by default in the user's data folder."""


class HttpJsonFile(SourceFile, frozen=True):
    url: str
    """With the placeholders `{question}` or `{terms}`."""
    text: str
    """JSON pointers to the text, and to the list, a title, a link and a date."""
    items: str = ""
    title: str = ""
    link: str = ""
    at: str = ""
    header: str = "authorization"
    token: SecretPlace | None = None
    """The complete value of that header."""


class FilesFile(SourceFile, frozen=True):
    folder: str


KINDS: dict[str, type[SourceFile]] = {
    "kiwix": KiwixFile,
    "news": NewsFile,
    "web": WebFile,
    "forecast": ForecastFile,
    "ha": HaFile,
    "uptime": UptimeFile,
    "changes": ChangesFile,
    "http-json": HttpJsonFile,
    "files": FilesFile,
}


def read_tables(document: Document) -> tuple[dict[str, SourceFile], list[Found]]:
    """The readable tables, and every mistake in any; raises ConfigError if `sources` is not a table."""
    table: Any = document.tree.get(TABLE, {})
    mistakes: list[Found] = list(_misspelt(document))
    files: dict[str, SourceFile] = {}
    if not isinstance(table, dict):
        raise ConfigError([document.problem((TABLE,), "must be a table of sources: [sources.kiwix]")])
    for name, entry in table.items():
        if not isinstance(entry, dict) and name not in KINDS:
            continue  # a setting of the profile `sources`, which validates it
        here = list(_mistakes(name, entry))
        mistakes += here
        if (file := _readable(name, entry, here)) is not None:
            files[name] = file
    return files, mistakes


def _readable(name: str, entry: Any, mistakes: Sequence[Found]) -> SourceFile | None:
    """The table without its wrong keys, if it can be read then, so that further mistakes are found."""
    if not isinstance(entry, dict) or (kind := entry.get("kind") or name) not in KINDS:
        return None
    keys = {path[2] for path, _ in mistakes if len(path) > 2}
    try:
        return msgspec.convert({key: value for key, value in entry.items() if key not in keys}, KINDS[kind])
    except msgspec.ValidationError:
        return None


def _misspelt(document: Document) -> Iterator[Found]:
    for other, table in document.tree.items():
        near = suggest(other, (TABLE,)) if other != TABLE and isinstance(table, dict) else ""
        if near and any(
            isinstance(entry, dict) and {"kind", "url", "folder"} & entry.keys() for entry in table.values()
        ):
            yield (other,), f"no such table{near}"


def _mistakes(name: str, entry: Any) -> Iterator[Found]:
    where = (TABLE, name)
    if not isinstance(entry, dict):
        yield where, "must be a table"
        return
    if name in RESERVED:
        yield where, f"means something else where a source is named (`--source {name}`): call it my-{name}"
    kind = entry.get("kind") or name
    if kind not in KINDS:
        near = suggest(str(kind), KINDS)
        at = (*where, "kind") if "kind" in entry else where
        yield at, f"kind {str(kind)[:40]!r} is not known{near} (one of {', '.join(KINDS)})"
        return
    token = entry.get("token")
    # Anything but a reference may be the token itself, and is not shown.
    if token is not None and not (isinstance(token, dict) and all(isinstance(value, str) for value in token.values())):
        yield (*where, "token"), 'a token does not belong in a file: token = { env = "NAME" } or { file = "PATH" }'
        return
    yield from conform(entry, inspect.type_info(KINDS[kind]), where)
