"""Makes sources from their tables in the settings, and collects the origins they may connect to.

All mistakes are reported at once, each with its key.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from turnout.config.check import Found
from turnout.config.document import Document
from turnout.config.settings import data_folder
from turnout.core.errors import ConfigError, EgressRefused, suggest
from turnout.models.secret import Secret, SecretPlace
from turnout.net.client import Client
from turnout.net.egress import Origin, is_exposed, origin_of
from turnout.net.public import PublicWeb
from turnout.search import Index, open_index

from . import tables
from .changes import ChangesSource, FolderSnapshots, WatchedSource
from .fetch import Capacity, Site
from .files import Files
from .forecast import Forecast, Town
from .ha import HomeAssistant
from .http_json import HttpJson, Pointers
from .kiwix import Kiwix
from .news import FreshRss, News, PlainFeed
from .shelf import Bookshelf, KiwixServer
from .source import Cause, Failure, Health, Source, SourceQuestion
from .tables import TABLE, SourceFile, read_tables
from .uptime import Uptime
from .web import Web
from .zim import ZimFiles

# Replaces an invalid origin until all mistakes are reported.
_NOWHERE = Origin("http", "nowhere.invalid", 80)


class UnconfiguredSource(Source):
    """A source that cannot be asked, and says why."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self.description = ""
        self._failure = Failure(Cause.NOT_CONFIGURED, problem)

    async def ask(self, question: SourceQuestion) -> Failure:
        return self._failure

    async def check(self) -> Health:
        return Health("not_configured", self._failure.said)


class TokenMissing(Exception):
    """The environment variable or file of a source's token is missing or empty."""


class Maker:
    """Makes sources, and collects their origins and the mistakes in their tables."""

    def __init__(self, client: Client, public: PublicWeb, folder: Path) -> None:
        """`folder`: of the settings file; paths in it are relative to that."""
        self.client = client
        self.public = public
        self.origins: set[Origin] = set()
        self._folder = folder
        self._mistakes: list[Found] = []
        self.capacities: dict[str, Capacity] = {}
        """Of each source that is asked over the network."""

    def make_all(self, document: Document) -> dict[str, Source]:
        """Every source of the settings; raises ConfigError with every mistake in them."""
        files, self._mistakes = read_tables(document)
        sources: dict[str, Source] = {}
        # A source that watches others is made last, but keeps its place.
        for name, entry in sorted(files.items(), key=lambda one: isinstance(one[1], tables.ChangesFile)):
            try:
                sources[name] = self.make(name, entry, sources)
            except TokenMissing as missing:
                sources[name] = UnconfiguredSource(name, str(missing))
        if self._mistakes:
            in_order = sorted(self._mistakes, key=lambda one: document.place(one[0]).line or 0)
            raise ConfigError([document.problem(path, problem) for path, problem in in_order])
        return {name: sources[name] for name in files}

    def make(self, name: str, entry: SourceFile, others: Mapping[str, Source]) -> Source:
        """Raises TokenMissing."""
        description = entry.description
        match entry:
            case tables.KiwixFile():
                return Kiwix(self._shelf(name, entry), entry.books, description)
            case tables.NewsFile():
                return self._news(name, entry)
            case tables.WebFile():
                public = self.public if entry.public_web else None
                return Web(self.site(name, entry, entry.url), public, entry.pages, description)
            case tables.ForecastFile():
                at = entry.place
                place = at if isinstance(at, str) else Town(at.name, at.latitude, at.longitude)
                geocoder = self.site(name, entry, entry.geocoding, "geocoding")
                return Forecast(self.site(name, entry, entry.url), geocoder, place, entry.units, description)
            case tables.HaFile():
                token = self._token(name, entry, entry.url, entry.token)
                bearer = ("authorization", Secret(f"Bearer {token.reveal()}"))
                return HomeAssistant(self.site(name, entry, entry.url, credential=bearer), token, description)
            case tables.UptimeFile():
                login = None
                if entry.token is not None:
                    key = self._token(name, entry, entry.url, entry.token)
                    login = ("authorization", Secret(f"Basic {b64encode(f':{key.reveal()}'.encode()).decode()}"))
                return Uptime(self.site(name, entry, entry.url, credential=login), entry.page, description)
            case tables.HttpJsonFile():
                return self._http_json(name, entry)
            case tables.FilesFile():
                folder = self._folder / os.path.expanduser(entry.folder)
                return Files(name, folder, partial(_open_index, name), description)
            case tables.ChangesFile():
                return self._changes(name, entry, others)
            case _:
                raise AssertionError(f"{type(entry).__name__} is of no kind")

    def site(
        self,
        name: str,
        entry: SourceFile,
        url: str,
        *key: str | int,
        credential: tuple[str, Secret] | None = None,
    ) -> Site:
        """The site of a URL at a key of the table, by default `url`."""
        at = key or ("url",)
        try:
            origin, path = _locate(url, entry.private)
        except EgressRefused as error:
            self._note(str(error), name, *at)
            origin, path = _NOWHERE, ""
        if credential is not None and not entry.plain_http and is_exposed(origin) and origin is not _NOWHERE:
            problem = (
                f"its token would go to {origin} unencrypted: use https, private = true for a host of your own "
                "network, or plain_http = true if that is meant"
            )
            self._note(problem, name, *at)
        self.origins.add(origin)
        capacity = self.capacities.setdefault(name, Capacity())
        return Site(name, self.client, origin, path, credential, entry.plain_http, entry.timeout_s, capacity)

    def _note(self, problem: str, *path: str | int) -> None:
        self._mistakes.append(((TABLE, *path), problem))

    def _token(self, name: str, entry: SourceFile, url: str, place: SecretPlace) -> Secret:
        """Read a token that is sent to a URL; raises TokenMissing."""
        try:
            token = place.read(f"{TABLE}.{name}.token")
        except ConfigError as error:
            for problem in error.problems:
                self._note(problem.message, name, "token")
            return Secret("")
        if token is None:
            # Checks now where the token would be sent.
            self.site(name, entry, url, credential=("x-unused", Secret("")))
            raise TokenMissing(f"{name} has no token: {place.place} is missing or empty")
        return token

    def _shelf(self, name: str, entry: tables.KiwixFile) -> Bookshelf:
        misread = any(path[:2] == (TABLE, name) for path, _ in self._mistakes)
        if (entry.url is None) is not bool(entry.zim) and not misread:
            self._note("needs url (kiwix-serve) or zim (a list of ZIM files), one of the two", name)
        if entry.url is not None:
            return KiwixServer(self.site(name, entry, entry.url))
        files = [self._folder / os.path.expanduser(file) for file in entry.zim]
        return ZimFiles(name, files, self.capacities.setdefault(name, Capacity()))

    def _news(self, name: str, entry: tables.NewsFile) -> Source:
        feeds: list[FreshRss | PlainFeed] = [
            PlainFeed(self.site(name, entry, url, "feeds", at)) for at, url in enumerate(entry.feeds)
        ]
        if entry.url is None and not feeds:
            self._note("needs url (FreshRSS) or feeds (a list of addresses)", name)
        if entry.url is not None and (not entry.user or entry.token is None):
            self._note("FreshRSS needs user and token (its API password)", name)
        elif entry.url is not None and entry.token is not None:
            password = self._token(name, entry, entry.url, entry.token)
            # The password is sent in a body; whether others could read it is checked as for a header.
            site = self.site(name, entry, entry.url, credential=("x-unused", password))
            feeds.append(FreshRss(replace(site, credential=None), entry.user, password))
        return News(name, feeds, entry.description)

    def _http_json(self, name: str, entry: tables.HttpJsonFile) -> Source:
        for key in ("text", "items", "title", "link", "at"):
            if (pointer := getattr(entry, key)) and pointer[0] != "/":
                self._note(f"{pointer[:40]!r} is no JSON pointer: write it like /results/0/text", name, key)
        token = (entry.header, self._token(name, entry, entry.url, entry.token)) if entry.token is not None else None
        site = self.site(name, entry, entry.url, credential=token)
        pointers = Pointers(entry.text, entry.items, entry.title, entry.link, entry.at)
        return HttpJson(replace(site, path=""), site.path, pointers, entry.description)

    def _changes(self, name: str, entry: tables.ChangesFile, others: Mapping[str, Source]) -> Source:
        for at, watched in enumerate(entry.watch):
            if watched not in others:
                self._note(f"there is no source {watched[:40]!r}{suggest(watched, others)}", name, "watch", at)
        compared = (HomeAssistant, Uptime, News, Forecast)
        names = entry.watch or [other for other, source in others.items() if isinstance(source, compared)]
        known = [others[one] for one in names if one in others]
        watching = [WatchedSource(one, "this week" if isinstance(one, Forecast) else "") for one in known]
        folder = Path(os.path.expanduser(entry.folder)) if entry.folder else data_folder() / "changes"
        return ChangesSource(name, watching, FolderSnapshots(folder), entry.description, entry.every_s)


def _open_index(name: str) -> Index:
    """The index of a folder source, in a file of its own."""
    folder = data_folder() / "search"
    folder.mkdir(parents=True, exist_ok=True)
    return open_index(folder / f"{name}.db")


def _locate(url: str, private: bool) -> tuple[Origin, str]:
    """The origin of a configured URL, and its path with the query; raises EgressRefused."""
    scheme, mark, rest = url.partition("://")
    end = next((at for at, one in enumerate(rest) if one in "/?#"), len(rest))
    origin = origin_of(f"{scheme}{mark}{rest[:end]}", private=private)
    path = rest[end:].partition("#")[0]
    path = path if path.startswith("/") or not path else f"/{path}"
    return origin, path if "?" in path or "{" in path else path.rstrip("/")
