"""The table `[claims.audit]` of the user's settings: where an audit may look.

Without it an audit searches nothing and fetches nothing, and its sources stay unverified.
"""

from __future__ import annotations

import os
from typing import Annotated
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
    """Pages that sources name may be fetched, to verify them."""
    searches: Annotated[int, Meta(ge=0, le=20)] = SEARCHES
    """The most that one audit makes."""


def read_audit_settings(config: str | os.PathLike[str] | None = None) -> AuditSettings:
    """What the settings say; raises ConfigError with every mistake."""
    return _read(_document(config))


def _document(config: str | os.PathLike[str] | None) -> Document:
    file = settings_file(config)
    return read(file) if file is not None else Document({}, {}, "")


def _read(document: Document) -> AuditSettings:
    claims = document.tree.get("claims", {})
    table = claims.get("audit", {}) if isinstance(claims, dict) else {}
    found: list[Found] = list(conform(table, inspect.type_info(AuditSettings), WHERE))
    others = claims if isinstance(claims, dict) else {}
    found += [
        (("claims", name), f"no such table{suggest(name, WHERE[1:])}")
        for name, table in others.items()
        if name != WHERE[1] and isinstance(table, dict)
    ]
    if found:
        raise ConfigError([document.problem(path, said) for path, said in found])
    return msgspec.convert(table, AuditSettings)


class Reach:
    """Where an audit may look, opened. Used inside one running event loop."""

    def __init__(
        self,
        search: Search | None = None,
        read: PageReader | None = None,
        searches: int = SEARCHES,
        client: Client | None = None,
    ) -> None:
        self.search = search
        self.read = read
        self.searches = searches
        self._client = client

    async def close(self) -> None:
        for one in (self._client, self.read):
            if one is not None:
                await one.close()


def open_reach(
    config: str | os.PathLike[str] | None = None,
    *,
    transport: Transport | None = None,
    public: Transport | None = None,
) -> Reach:
    """What `[claims.audit]` allows; raises ConfigError."""
    document = _document(config)
    settings, proxy = _read(document), read_proxy(document)
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
