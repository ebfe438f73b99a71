"""Web search: SearXNG's JSON, and, where the settings allow the public web, the pages it found.

Two searches, the question and another wording of it; what they find is ranked by the question. A search whose engines
all failed is a failure and not an empty result.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime

from turnout.apps.page import readable_text
from turnout.apps.searxng import SearxngResults
from turnout.core.errors import NetError
from turnout.net.deadline import Deadline
from turnout.net.public import Page, PublicWeb
from turnout.text.page import plain

from .fetch import Site, health_of
from .source import Cause, Empty, Failure, Health, Passage, Result, SourceAnswer, SourceQuestion
from .terms import fit, language_of, search_terms, words_of
from .wording import rephrase

# A page of results has some thirty, and a long article some thousand lines.
MOST_RESULTS, MOST_LINES = 100, 20_000
# How many results an answer is made of.
SHOWN = 5
# A shorter question is its own search term.
REPHRASED_WORDS = 3
# Of a page that is shown, and of one that is read: its library takes up to 6 s for a megabyte of tables, and nine pages
# of ten are shorter than this.
PAGE_CHARACTERS, READ_BYTES = 1500, 256 * 1024
# Where a search engine put a result counts for so much beside how well its text fits.
FIRST_PLACE = 0.25
# An address that is shown: one that holds a line's end says more than where something is.
_leads = re.compile(r"https?://[^\s\x00-\x20\x7f-\x9f]+\Z", re.IGNORECASE).match


class Web:
    def __init__(
        self,
        site: Site,
        public: PublicWeb | None = None,
        pages: int = 3,
        description: str = "",
    ) -> None:
        self.name = site.name
        self.description = description or "a web search: recent events, products, anything the others do not have"
        self._site = site
        self._public = public
        self._pages = pages

    async def ask(self, question: SourceQuestion) -> Result:
        queries = [question.text.strip()]
        lang = language_of(words_of(question.text), question.lang)
        terms = search_terms(question.text, lang)
        if len(question.text.split()) >= REPHRASED_WORDS:
            other = await rephrase(question) or " ".join(terms)
            queries += [other] if other and other.casefold() != queries[0].casefold() else []
        searches = await asyncio.gather(*(self._search(query, question.lang) for query in queries))
        found: dict[str, Passage] = {}
        for results in searches:
            for one in results if isinstance(results, list) else []:
                found.setdefault(one.url, one)
        if not found:
            return next((one for one in searches if isinstance(one, Failure)), Empty(queries[0]))
        best = _rank(terms, lang, list(found.values()))[:SHOWN]
        if self._public is not None:
            best[: self._pages] = await asyncio.gather(*(self._read(one, terms, lang) for one in best[: self._pages]))
        text = "\n\n".join(f"{one.title}\n{one.text}\n{one.url}" for one in best)
        return SourceAnswer(text, tuple(best))

    async def check(self) -> Health:
        # A search: many servers have a page but do not allow JSON.
        return await health_of(self._search(self.name, ""))

    def words(self) -> Sequence[str]:
        return ()

    async def _search(self, query: str, lang: str) -> list[Passage] | Failure:
        params: dict[str, str | int] = {"q": query, "format": "json"}
        params |= {"language": lang} if lang else {}
        got = await self._site.json("/search", SearxngResults, params)
        if isinstance(got, Failure):
            return got
        if not got.results and got.unresponsive_engines:
            names = ", ".join(
                str(one[0]) if isinstance(one, list) and one else str(one) for one in got.unresponsive_engines
            )
            return self._site.failed(Cause.UNREACHABLE, f"its engines did not answer ({names[:120]}): see its settings")
        return [
            Passage(plain(one.content or ""), plain(one.title), one.url, _moment(one.publishedDate), 1 / place)
            for place, one in enumerate(got.results[:MOST_RESULTS], 1)
            if _leads(one.url)
        ]

    async def _read(self, found: Passage, terms: Sequence[str], lang: str) -> Passage:
        """The result with the part of its page that fits; as it was, if the page cannot be read."""
        assert self._public is not None  # noqa: S101 - asked for only where there is one
        try:
            page = await self._public.get(found.url, Deadline.after(self._site.timeout_s))
        except NetError:
            return found
        text = await self._site.capacity.read(_read_page, page, terms, lang)
        return Passage(text or found.text, found.title, found.url, found.at, found.score)


def _read_page(page: Page, terms: Sequence[str], lang: str) -> str:
    text = readable_text(page, READ_BYTES)
    return _fitting_part(text, terms, lang) if text else ""


def _fitting_part(text: str, terms: Sequence[str], lang: str) -> str:
    """From the line before the one that fits best."""
    lines = text.split("\n", MOST_LINES)[:MOST_LINES]
    fits = fit(terms, lines, lang)
    best = max(range(len(lines)), key=lambda at: fits[at])
    return "\n".join(lines[max(0, best - 1) :])[:PAGE_CHARACTERS].strip()


def _rank(terms: Sequence[str], lang: str, found: Sequence[Passage]) -> list[Passage]:
    fits = fit(terms, [f"{one.title} {one.text}" for one in found], lang)
    scored = [
        Passage(one.text, one.title, one.url, one.at, fits + FIRST_PLACE * one.score)
        for one, fits in zip(found, fits, strict=True)
    ]
    return sorted(scored, key=lambda one: -one.score)


def _moment(said: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(said) if said else None
    except ValueError:
        return None
