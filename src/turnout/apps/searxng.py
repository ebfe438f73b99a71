"""The part of SearXNG's JSON response that applications read."""

from __future__ import annotations

from msgspec import Struct


class SearxngResult(Struct, frozen=True):
    url: str = ""
    title: str = ""
    content: str | None = ""
    publishedDate: str | None = None  # noqa: N815 - SearXNG's name


class SearxngResults(Struct, frozen=True):
    results: list[SearxngResult]
    unresponsive_engines: list[object] = []
