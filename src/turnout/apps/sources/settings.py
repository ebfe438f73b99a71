"""The sources of the user's settings, ready to be asked.

The origins of all of them are what the sources' client may connect to, and only a source that says `public_web = true`
reads pages that nobody configured. A source whose token is missing is there all the same, and says so.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import json
from msgspec.structs import replace

from turnout.config.document import Document, read
from turnout.config.settings import data_folder, settings_file
from turnout.core.errors import ConfigError, EgressRefused, Problem, suggest
from turnout.models.proxy import read_proxy
from turnout.models.secret import Secret, SecretPlace
from turnout.net.client import Client
from turnout.net.egress import Egress, Origin, is_exposed, origin_of
from turnout.net.public import PublicWeb
from turnout.net.transport import Transport
from turnout.search import Index, open_index

from . import tables
from .changes import QUESTIONS, Changes, FolderSnapshots, Watched
from .fetch import Site
from .files import Files
from .forecast import Forecast, Place
from .ha import HomeAssistant
from .http_json import HttpJson, Pointers
from .kiwix import Kiwix
from .news import FreshRss, News, PlainFeed
from .source import Failed, Health, Question, Source, Why
from .tables import TABLE, SourceFile, read_tables
from .uptime import Uptime
from .web import Web


class Unconfigured:
    """A source that cannot be asked, and says why."""

    def __init__(self, name: str, said: str = "") -> None:
        self.name = name
        self.description = ""
        self._failed = Failed(
            Why.NOT_CONFIGURED, said or f"{name} is not configured: add [sources.{name}] to turnout.toml"
        )

    async def ask(self, question: Question) -> Failed:
        return self._failed

    async def check(self) -> Health:
        return Health("not_configured", self._failed.said)

    def words(self) -> Sequence[str]:
        return ()


class Sources:
    """The sources of the settings, and what they connect with. Used inside one running event loop."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        client: Client,
        public: PublicWeb,
        tables: Mapping[str, object] | None = None,
    ) -> None:
        self.sources = sources
        written = {name: table for name, table in (tables or {}).items() if isinstance(table, dict)}
        self.stamps = {name: json.encode(table, order="sorted").decode() for name, table in written.items()}
        """What the settings say of each: who was asked elsewhere gave other answers."""
        kinds = {str(table.get("kind") or name): name for name, table in reversed(written.items())}
        self.by_kind = {kind: name for kind, name in kinds.items() if kind not in written}
        """The first source of each kind that none is named after."""
        self._client = client
        self._public = public

    def find(self, name: str) -> Source:
        """The source of that name; one that says that it is not configured, if it is not."""
        return self.sources.get(name) or Unconfigured(name)

    @property
    def configured(self) -> list[str]:
        return [name for name, source in self.sources.items() if not isinstance(source, Unconfigured)]

    async def take_snapshots(self) -> None:
        """Keep what `changes` compares with, until cancelled."""
        await asyncio.gather(*(one.keep_taking() for one in self.sources.values() if isinstance(one, Changes)))

    async def close(self) -> None:
        for source in self.sources.values():
            if isinstance(source, Files):
                source.close()
        await self._client.close()
        await self._public.close()


def open_sources(
    config: str | os.PathLike[str] | None = None,
    *,
    index: Callable[[str], Index] | None = None,
    transport: Transport | None = None,
    public: Transport | None = None,
) -> Sources:
    """The sources of the user's settings; raises ConfigError with every mistake in them.

    `index` makes what a folder's passages are found with.
    """
    file = settings_file(config)
    document = read(file) if file is not None else Document({}, {}, "")
    proxy = read_proxy(document)
    egress = Egress(frozenset(), proxy)
    maker = _Maker(Client(egress, transport), PublicWeb(public, proxy), index or _open_index, _folder_of(file))
    sources = maker.make_all(document)
    egress.allow(frozenset(maker.origins), proxy)
    return Sources(sources, maker.client, maker.public, document.tree.get(TABLE, {}))


def make_one(name: str, entry: Mapping[str, object], file: str) -> Source:
    """A source as its table alone describes it, to see whether it can be; raises ConfigError with every mistake."""
    maker = _Maker(Client(Egress()), PublicWeb(), _open_index, _folder_of(file))
    return maker.make_all(Document({TABLE: {name: dict(entry)}}, {}, file))[name]


def _folder_of(file: str | Path | None) -> Path:
    return Path(file).parent if file else Path()


def _open_index(name: str) -> Index:
    """A file of its own for each folder that is searched."""
    folder = data_folder() / "search"
    folder.mkdir(parents=True, exist_ok=True)
    return open_index(folder / f"{name}.db")


class _Maker:
    """Makes sources, and notes where they lead."""

    def __init__(self, client: Client, public: PublicWeb, index: Callable[[str], Index], folder: Path) -> None:
        """`folder`: of the settings file, which paths in it begin at."""
        self._folder = folder
        self.client = client
        self.public = public
        self.origins: set[Origin] = set()
        self._index = index

    def make_all(self, document: Document) -> dict[str, Source]:
        """Every source of the settings; raises ConfigError with every mistake in them."""
        files = read_tables(document)
        problems: list[Problem] = []
        sources: dict[str, Source] = {}
        # What watches the others comes last, but stays where it stands.
        for name, entry in sorted(files.items(), key=lambda one: isinstance(one[1], tables.ChangesFile)):
            try:
                sources[name] = self.make(name, entry, sources)
            except ConfigError as error:
                problems += [document.problem((TABLE, name), problem.message) for problem in error.problems]
        if problems:
            raise ConfigError(problems)
        return {name: sources[name] for name in files}

    def make(self, name: str, entry: SourceFile, others: Mapping[str, Source]) -> Source:
        said = entry.description
        match entry:
            case tables.KiwixFile():
                return Kiwix(self.site(name, entry, entry.url), entry.books, said)
            case tables.NewsFile():
                return self._news(name, entry)
            case tables.WebFile():
                public = self.public if entry.public_web else None
                return Web(self.site(name, entry, entry.url), public, entry.pages, said)
            case tables.ForecastFile():
                told = entry.place
                place = told if isinstance(told, str) else Place(told.name, told.latitude, told.longitude)
                geocoder = self.site(name, entry, entry.geocoding)
                return Forecast(self.site(name, entry, entry.url), geocoder, place, entry.units, said)
            case tables.HaFile():
                token = entry.token.read(f"{TABLE}.{name}.token")
                if token is None:
                    return self._without(name, entry, entry.url, entry.token)
                bearer = ("authorization", Secret(f"Bearer {token.reveal()}"))
                return HomeAssistant(self.site(name, entry, entry.url, bearer), token, said)
            case tables.UptimeFile():
                if entry.token is None:
                    return Uptime(self.site(name, entry, entry.url), entry.page, said)
                key = entry.token.read(f"{TABLE}.{name}.token")
                if key is None:
                    return self._without(name, entry, entry.url, entry.token)
                login = ("authorization", Secret(f"Basic {b64encode(f':{key.reveal()}'.encode()).decode()}"))
                return Uptime(self.site(name, entry, entry.url, login), entry.page, said)
            case tables.HttpJsonFile():
                return self._http_json(name, entry)
            case tables.FilesFile():
                folder = self._folder / os.path.expanduser(entry.folder)
                return Files(name, folder, partial(self._index, name), said)
            case tables.ChangesFile():
                return self._changes(name, entry, others)
            case _:
                raise AssertionError(f"{type(entry).__name__} is of no kind")

    def site(self, name: str, entry: SourceFile, url: str, credential: tuple[str, Secret] | None = None) -> Site:
        origin, path = _locate(url, entry.private, f"{TABLE}.{name}")
        if credential is not None and not entry.plain_http and is_exposed(origin):
            said = (
                f"its token would go to {origin} unencrypted: use https, private = true for a host of your own "
                "network, or plain_http = true if that is meant"
            )
            raise ConfigError([Problem(f"{TABLE}.{name}", said)])
        self.origins.add(origin)
        return Site(name, self.client, origin, path, credential, entry.plain_http, entry.timeout_s)

    def _news(self, name: str, entry: tables.NewsFile) -> Source:
        where = f"{TABLE}.{name}"
        feeds: list[FreshRss | PlainFeed] = [PlainFeed(self.site(name, entry, url)) for url in entry.feeds]
        if entry.url is None and not feeds:
            raise ConfigError([Problem(where, "needs url (FreshRSS) or feeds (a list of addresses)")])
        if entry.url is not None:
            if not entry.user or entry.token is None:
                raise ConfigError([Problem(where, "FreshRSS needs user and token (its API password)")])
            password = entry.token.read(f"{where}.token")
            if password is None:
                return self._without(name, entry, entry.url, entry.token)
            # The password goes into a body; who can read that is checked as for a header.
            site = self.site(name, entry, entry.url, ("x-unused", password))
            feeds.append(FreshRss(replace(site, credential=None), entry.user, password))
        return News(name, feeds, entry.description)

    def _http_json(self, name: str, entry: tables.HttpJsonFile) -> Source:
        token = entry.token.read(f"{TABLE}.{name}.token") if entry.token is not None else None
        if entry.token is not None and token is None:
            return self._without(name, entry, entry.url, entry.token)
        bad = [
            key for key in ("text", "items", "title", "link", "at") if (said := getattr(entry, key)) and said[0] != "/"
        ]
        if bad:
            said = f"{bad[0]} = {getattr(entry, bad[0])[:40]!r} is no JSON pointer: write it like /results/0/text"
            raise ConfigError([Problem(f"{TABLE}.{name}", said)])
        site = self.site(name, entry, entry.url, (entry.header, token) if token is not None else None)
        pointers = Pointers(entry.text, entry.items, entry.title, entry.link, entry.at)
        return HttpJson(replace(site, path=""), site.path, pointers, entry.description)

    def _changes(self, name: str, entry: tables.ChangesFile, others: Mapping[str, Source]) -> Source:
        unknown = [watched for watched in entry.watch if watched not in others]
        if unknown:
            near = suggest(unknown[0], others)
            raise ConfigError([Problem(f"{TABLE}.{name}", f"watch: there is no source {unknown[0]!r}{near}")])
        compared = (HomeAssistant, Uptime, News, Forecast)
        names = entry.watch or [other for other, source in others.items() if isinstance(source, compared)]
        kinds = {HomeAssistant: "ha", Uptime: "uptime", News: "news", Forecast: "forecast"}
        watched = [Watched(others[one], QUESTIONS.get(kinds.get(type(others[one]), ""), "")) for one in names]
        folder = Path(os.path.expanduser(entry.folder)) if entry.folder else data_folder() / "changes"
        return Changes(name, watched, FolderSnapshots(folder), entry.description, entry.every_s)

    def _without(self, name: str, entry: SourceFile, url: str, place: SecretPlace) -> Source:
        """A source whose token is missing. Where that would go is checked before it is there."""
        self.site(name, entry, url, ("x-unused", Secret("")))
        return Unconfigured(name, f"{name} has no token: {place.place} is missing or empty")


def _locate(url: str, private: bool, where: str) -> tuple[Origin, str]:
    """The origin of a configured URL, and its path with what is asked for there."""
    scheme, mark, rest = url.partition("://")
    end = next((at for at, one in enumerate(rest) if one in "/?#"), len(rest))
    try:
        origin = origin_of(f"{scheme}{mark}{rest[:end]}", private=private)
    except EgressRefused as error:
        raise ConfigError([Problem(where, str(error))]) from None
    path = rest[end:].partition("#")[0]
    path = path if path.startswith("/") or not path else f"/{path}"
    return origin, path if "?" in path or "{" in path else path.rstrip("/")
