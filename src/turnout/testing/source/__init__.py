"""Doubles of the servers that sources ask: each speaks its published protocol on loopback, and fails on demand.

>>> import asyncio
>>> from turnout.testing.source import KumaDouble
>>> async def main():
...     async with KumaDouble({"Plex": 1, "Downloads": 0}) as kuma:
...         return kuma.url.startswith("http://127.0.0.1:")
>>> asyncio.run(main())
True
"""

from __future__ import annotations

from .feed import Article, FeedDouble, FreshRssDouble
from .home import HomeDouble
from .kiwix import Book, KiwixDouble
from .kuma import KumaDouble
from .meteo import Day, MeteoDouble
from .searx import SearxDouble, WebResult
from .server import TROUBLES, JsonDouble, SourceDouble, Trouble

__all__ = [
    "TROUBLES",
    "Article",
    "Book",
    "Day",
    "FeedDouble",
    "FreshRssDouble",
    "HomeDouble",
    "JsonDouble",
    "KiwixDouble",
    "KumaDouble",
    "MeteoDouble",
    "SearxDouble",
    "SourceDouble",
    "Trouble",
    "WebResult",
]
