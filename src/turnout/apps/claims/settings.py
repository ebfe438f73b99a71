"""The table `[claims.audit]` of the user's settings: where an audit may search and which pages it may fetch.

Without it an audit searches nothing and fetches nothing, and its sources stay unverified.
"""

from __future__ import annotations

import os
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, inspect

from turnout.config.check import Found, conform
from turnout.config.document import Document, read
from turnout.config.settings import settings_file
from turnout.core.errors import ConfigError, EgressRefused, suggest
from turnout.models.proxy import read_proxy
from turnout.net.client import Client
from turnout.net.egress import Egress, origin_of
from turnout.net.public import PublicWeb
from turnout.net.transport import Transport

from .research import SEARCHES, Search, SearxngSearch
from .verify import PageReader

WHERE = ("claims", "audit")


class AuditSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    search: str = ""
    """The address of a SearXNG that allows JSON."""
    private: bool = False
    """Its host may resolve to a private address."""
    public_web: bool = False
    """Pages named as sources may be fetched, to verify them."""
    searches: Annotated[int, Meta(ge=0, le=20)] = SEARCHES
    """The most searches of one audit."""


def read_audit_settings(document: Document) -> AuditSettings:
    """The table in a settings file; raises ConfigError with every mistake."""
    claims = document.tree.get("claims", {})
    tables = claims if isinstance(claims, dict) else {}
    table = tables.get("audit", {})
    mistakes: list[Found] = list(conform(table, inspect.type_info(AuditSettings), WHERE))
    mistakes += [
        (("claims", name), f"no such table{suggest(name, WHERE[1:])}")
        for name, other in tables.items()
        if name != WHERE[1] and isinstance(other, dict)
    ]
    if mistakes:
        raise ConfigError([document.problem(path, message) for path, message in mistakes])
    return msgspec.convert(table, AuditSettings)


class Reach(NamedTuple):
    """The search and the page reader of an audit, opened. Used inside one running event loop."""

    search: Search | None = None
    read: PageReader | None = None
    searches: int = SEARCHES
    client: Client | None = None
    """What `search` is asked with."""

    async def close(self) -> None:
        for one in (self.client, self.read):
            if one is not None:
                await one.close()


def open_reach(
    config: str | os.PathLike[str] | None = None,
    *,
    transport: Transport | None = None,
    public: Transport | None = None,
) -> Reach:
    """Open what `[claims.audit]` allows; raises ConfigError."""
    file = settings_file(config)
    document = read(file) if file is not None else Document({}, {}, "")
    settings, proxy = read_audit_settings(document), read_proxy(document)
    reader = PageReader(PublicWeb(public, proxy)) if settings.public_web else None
    if not settings.search:
        return Reach(None, reader, settings.searches)
    parts = urlsplit(settings.search)
    try:
        origin = origin_of(f"{parts.scheme}://{parts.netloc}", private=settings.private)
    except EgressRefused as error:
        raise ConfigError([document.problem((*WHERE, "search"), str(error))]) from None
    client = Client(Egress(frozenset((origin,)), proxy), transport)
    return Reach(SearxngSearch(client, origin, parts.path), reader, settings.searches, client)
