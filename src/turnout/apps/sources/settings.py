"""The sources of the user's settings, ready to be asked.

The origins of all of them are what the sources' client may connect to, and only a source that says `public_web = true`
reads pages outside the configuration. A source whose token is missing is there all the same, and says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import json

from turnout.config.document import Document, read
from turnout.config.settings import data_folder, settings_file
from turnout.models.proxy import read_proxy
from turnout.net.client import Client
from turnout.net.egress import Egress
from turnout.net.public import PublicWeb
from turnout.net.transport import Transport
from turnout.search import Index, open_index

from .changes import ChangesSource
from .fetch import Capacity
from .files import Files
from .make import Maker, Unconfigured
from .source import Source
from .tables import TABLE


class Sources:
    """The sources of the settings, and what they connect with. Used inside one running event loop."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        client: Client,
        public: PublicWeb,
        tables: Mapping[str, object] | None = None,
        capacities: Iterable[Capacity] = (),
    ) -> None:
        self.sources = sources
        written = {name: table for name, table in (tables or {}).items() if isinstance(table, dict)}
        self.stamps = {name: json.encode(table, order="sorted").decode() for name, table in written.items()}
        """What the settings say of each: who was asked elsewhere gave other answers."""
        self.kinds = {name: str(table.get("kind") or name) for name, table in written.items()}
        first = {kind: name for name, kind in reversed(self.kinds.items())}
        self.by_kind = {kind: name for kind, name in first.items() if kind not in written}
        """The first source of each kind that none is named after."""
        self._client = client
        self._public = public
        self._capacities = tuple(capacities)

    def find(self, name: str) -> Source:
        """The source of that name; one that says that it is not configured, if it is not."""
        return self.sources.get(name) or Unconfigured(name)

    @property
    def configured(self) -> list[str]:
        return [name for name, source in self.sources.items() if not isinstance(source, Unconfigured)]

    async def take_snapshots(self) -> None:
        """Keep what `changes` compares with, until cancelled."""
        await asyncio.gather(*(one.keep_taking() for one in self.sources.values() if isinstance(one, ChangesSource)))

    async def close(self) -> None:
        for source in self.sources.values():
            if isinstance(source, Files):
                source.close()
        for capacity in self._capacities:
            capacity.close()
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
    maker = Maker(Client(egress, transport), PublicWeb(public, proxy), index or _open_index, _folder_of(file))
    sources = maker.make_all(document)
    egress.allow(frozenset(maker.origins), proxy)
    tables = document.tree.get(TABLE, {})
    return Sources(sources, maker.client, maker.public, tables, maker.capacities.values())


def make_one(name: str, entry: Mapping[str, object], file: str) -> Source:
    """A source as its table alone describes it, to see whether it can be; raises ConfigError with every mistake."""
    maker = Maker(Client(Egress()), PublicWeb(), _open_index, _folder_of(file))
    return maker.make_all(Document({TABLE: {name: dict(entry)}}, {}, file))[name]


def _folder_of(file: str | Path | None) -> Path:
    return Path(file).parent if file else Path()


def _open_index(name: str) -> Index:
    """A file of its own for each folder that is searched."""
    folder = data_folder() / "search"
    folder.mkdir(parents=True, exist_ok=True)
    return open_index(folder / f"{name}.db")
