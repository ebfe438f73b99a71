"""The user's news: FreshRSS through its Google Reader API, or plain RSS and Atom feeds.

Terms of the question are searched in titles and summaries; a question about the news in general gets the newest. The
answer also names a feed that cannot be read.
"""

from __future__ import annotations

import asyncio
import re
from calendar import timegm
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from turnout.models.secret import Secret
from turnout.text.page import plain

from .fetch import Site, health_of, parsed
from .source import Cause, Empty, Failure, Health, Passage, Result, Source, SourceAnswer, SourceQuestion
from .terms import fit, language_of, search_terms, words_of

# Articles that are searched, and articles that are shown.
LOOKED_THROUGH, SHOWN = 200, 8
SUMMARY_CHARACTERS = 300
# Of one feed, which its library parses at half a megabyte a second; most have some 100 kB, with whole articles 1 MB.
FEED_BYTES = 2 * 1024 * 1024
# The path of the API of FreshRSS.
API = "/api/greader.php"
# Words that ask for news in general.
ASKING = frozenset(
    (
        *("check", "get", "catch", "pull", "news", "headline", "headlines", "feed", "feeds", "rss", "article"),
        *("articles", "story", "stories", "unread", "latest", "recent", "new", "newest", "today", "day", "week"),
        *("morning", "top", "breaking", "update", "updates", "happening", "happened", "world", "read", "anything"),
        *("something", "noticias", "nachrichten"),
    )
)


_end = re.compile(rb"(?i)</(?:\w+:)?(?:rss|feed|rdf|channel)\s*>\s*(?:<!--.*-->)?$").search


class _Link(Struct, frozen=True):
    href: str = ""


class _Content(Struct, frozen=True):
    content: str = ""


class _Origin(Struct, frozen=True):
    title: str = ""


class _Item(Struct, frozen=True):
    title: str = ""
    published: float = 0.0
    canonical: list[_Link] = []
    alternate: list[_Link] = []
    summary: _Content = _Content()
    origin: _Origin = _Origin()


class _Stream(Struct, frozen=True):
    items: list[_Item]


class FreshRss:
    """FreshRSS. Logging in with the API password gives a token for the requests."""

    def __init__(self, site: Site, user: str, password: Secret) -> None:
        self._site = site
        self._login = user, password
        self._auth = ""

    async def articles(self) -> list[Passage] | Failure:
        got = await self._read()
        if isinstance(got, Failure) and got.why is Cause.DENIED:
            self._auth = ""  # the token may have been revoked: try once more with a new one
            got = await self._read()
        if isinstance(got, Failure):
            return got
        stream = self._site.read(got, _Stream)
        return stream if isinstance(stream, Failure) else [_article(item) for item in stream.items]

    async def _read(self) -> bytes | Failure:
        if not self._auth:
            user, password = self._login
            body = urlencode({"Email": user, "Passwd": password.reveal()}).encode()
            form = {"content-type": "application/x-www-form-urlencoded"}
            got = await self._site.send("POST", f"{API}/accounts/ClientLogin", body=body, headers=form)
            if isinstance(got, Failure):
                return got
            lines = dict(line.split("=", 1) for line in got.decode("utf-8", "replace").splitlines() if "=" in line)
            auth = lines.get("Auth", "")
            if not auth or not auth.isprintable():
                return self._site.misread("no token")
            self._auth = auth
        path = f"{API}/reader/api/0/stream/contents/user/-/state/com.google/reading-list"
        headers = {"authorization": f"GoogleLogin auth={self._auth}"}
        return await self._site.send("GET", path, {"n": LOOKED_THROUGH, "output": "json"}, headers=headers)


def _article(item: _Item) -> Passage:
    link = next((one.href for one in (*item.canonical, *item.alternate) if one.href), "")
    text = plain(item.summary.content)[:SUMMARY_CHARACTERS]
    title = plain(item.title) + (f" ({item.origin.title})" if item.origin.title else "")
    return Passage(text, title, link, _moment(item.published))


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


class PlainFeed:
    """The URL of an RSS or Atom feed."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def articles(self) -> list[Passage] | Failure:
        body = await self._site.get("", limit=FEED_BYTES)
        if isinstance(body, Failure):
            return body
        feed = await self._site.capacity.read(parsed, self._site.name, read_feed, body)
        return self._site.misread(f"no whole feed at {self._site.path or '/'}") if feed is None else feed


def read_feed(body: bytes) -> list[Passage] | None:
    """The articles of a feed; None if it is not a feed, or incomplete. Raises whatever the library raises."""
    import feedparser

    # As a file object: bytes that look like a URL or a file name would be opened.
    feed: Any = feedparser.parse(BytesIO(body), sanitize_html=False, resolve_relative_uris=False)
    # The library accepts broken feeds, also one whose end is missing.
    if not feed.get("version") or not _end(body.rstrip()[-64:]):
        return None
    return [
        Passage(
            plain(entry.get("summary", ""))[:SUMMARY_CHARACTERS],
            plain(entry.get("title", "")) + (f" ({plain(feed.feed.title)})" if feed.feed.get("title") else ""),
            entry.get("link", ""),
            _moment(timegm(when)) if when else None,
        )
        for entry in feed.entries[:LOOKED_THROUGH]
        for when in (entry.get("published_parsed") or entry.get("updated_parsed"),)
    ]


class News(Source):
    def __init__(self, name: str, feeds: Sequence[FreshRss | PlainFeed], description: str = "") -> None:
        self.name = name
        self.description = description or "the user's news feeds"
        self._feeds = tuple(feeds)

    async def ask(self, question: SourceQuestion) -> Result:
        read = await asyncio.gather(*(feed.articles() for feed in self._feeds))
        failed = [one for one in read if isinstance(one, Failure)]
        if failed and len(failed) == len(read):
            return failed[0]
        articles = [one for articles in read if not isinstance(articles, Failure) for one in articles]
        chosen = choose(articles, question)
        if not chosen:
            return Empty()
        note = f"{len(failed)} of {len(read)} feeds could not be read: {failed[0].said}" if failed else ""
        return SourceAnswer("\n".join(map(_line, chosen)), tuple(chosen), note=note)

    async def check(self) -> Health:
        async def first_failure() -> Failure | None:
            read = await asyncio.gather(*(feed.articles() for feed in self._feeds))
            return next((one for one in read if isinstance(one, Failure)), None)

        return await health_of(first_failure())


def choose(articles: Sequence[Passage], question: SourceQuestion) -> list[Passage]:
    """The articles that fit the question, best first; for a question about news in general, the newest."""
    since = question.since
    fresh = [one for one in articles if since is None or one.at is None or one.at > since]
    fresh.sort(key=lambda one: -(one.at.timestamp() if one.at else 0.0))
    lang = language_of(words_of(question.text), question.lang)
    terms = [term for term in search_terms(question.text, lang) if term not in ASKING]
    if not terms:
        return fresh[:SHOWN]
    fits = fit(terms, [f"{one.title} {one.title} {one.text}" for one in fresh], lang)
    fitting = [replace(one, score=score) for score, one in zip(fits, fresh, strict=True) if score > 0]
    return sorted(fitting, key=lambda one: -one.score)[:SHOWN]


def _line(article: Passage) -> str:
    when = f"{article.at:%Y-%m-%d %H:%M} " if article.at else ""
    return f"- {when}{article.title}" + (f": {article.text}" if article.text else "")
