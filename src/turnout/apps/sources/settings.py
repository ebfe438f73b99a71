"""Opens the sources of the user's settings.

Their client may connect to the origins in the settings only; other pages are read only for a source with `public_web =
true`. A source whose token is missing is opened too, and reports that when it is asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import json

from turnout.config.document import Document, read
from turnout.config.settings import settings_file
from turnout.models.proxy import read_proxy
from turnout.net.client import Client
from turnout.net.egress import Egress
from turnout.net.public import PublicWeb

from .changes import ChangesSource
from .fetch import Capacity
from .files import Files
from .make import Maker, UnconfiguredSource
from .source import Source
from .tables import TABLE


class Sources:
    """The sources of the settings with their connections. Used inside one running event loop."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        client: Client,
        public: PublicWeb,
        tables: Mapping[str, object],
        capacities: Iterable[Capacity],
    ) -> None:
        self.sources = sources
        written = {name: table for name, table in tables.items() if isinstance(table, dict)}
        self.stamps = {name: json.encode(table, order="sorted").decode() for name, table in written.items()}
        """The settings of each source, since one with other settings gives other answers."""
        self.kinds = {name: str(table.get("kind") or name) for name, table in written.items()}
        first = {kind: name for name, kind in reversed(self.kinds.items())}
        self.by_kind = {kind: name for kind, name in first.items() if kind not in written}
        """The first source of each kind that no source is named after."""
        self._client = client
        self._public = public
        self._capacities = tuple(capacities)

    @property
    def configured(self) -> list[str]:
        return [name for name, source in self.sources.items() if not isinstance(source, UnconfiguredSource)]

    async def take_snapshots(self) -> None:
        """Take the snapshots of `changes` until cancelled."""
        await asyncio.gather(*(one.keep_taking() for one in self.sources.values() if isinstance(one, ChangesSource)))

    async def close(self) -> None:
        for source in self.sources.values():
            if isinstance(source, Files):
                source.close()
        for capacity in self._capacities:
            capacity.close()
        await self._client.close()
        await self._public.close()


def open_sources(config: str | os.PathLike[str] | None = None) -> Sources:
    """The sources of the user's settings; raises ConfigError with every mistake in them."""
    file = settings_file(config)
    document = read(file) if file is not None else Document({}, {}, "")
    proxy = read_proxy(document)
    egress = Egress(frozenset(), proxy)
    maker = Maker(Client(egress), PublicWeb(proxy=proxy), file.parent if file is not None else Path())
    sources = maker.make_all(document)
    egress.allow(frozenset(maker.origins), proxy)
    tables = document.tree.get(TABLE, {})
    return Sources(sources, maker.client, maker.public, tables, maker.capacities.values())


def make_one(name: str, entry: Mapping[str, object], file: str) -> Source:
    """A source from its table alone, to validate it; raises ConfigError with every mistake."""
    maker = Maker(Client(Egress()), PublicWeb(), Path(file).parent)
    return maker.make_all(Document({TABLE: {name: dict(entry)}}, {}, file))[name]
