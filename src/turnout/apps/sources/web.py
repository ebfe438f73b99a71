"""Web search through SearXNG, and, if the settings allow the public web, the pages in its results.

It searches for the question and for another wording of it, and ranks all results by the question. A search whose
engines all failed is a failure, not an empty result.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from msgspec.structs import replace

from turnout.apps.page import readable_text
from turnout.apps.searxng import SearxngResults
from turnout.core.errors import NetError
from turnout.net.deadline import Deadline
from turnout.net.public import Page, PublicWeb
from turnout.text.page import plain

from .fetch import Site, health_of, read_time
from .source import Cause, Empty, Failure, Health, Passage, Result, Source, SourceAnswer, SourceQuestion
from .terms import fit, language_of, search_terms, words_of
from .wording import rephrase

# A page of results has some thirty, and a long article some thousand lines.
MOST_RESULTS, MOST_LINES = 100, 20_000
# Results in an answer.
SHOWN = 5
# A shorter question is not reworded.
REPHRASED_WORDS = 3
# Of a page: what is shown, and what is read. The library takes up to 6 s for a megabyte of tables, and nine pages of
# ten are shorter than this.
PAGE_CHARACTERS, READ_BYTES = 1500, 256 * 1024
# The weight of the search engine's first place beside the fit of the text.
FIRST_PLACE = 0.25
# Line ends and control characters in an address could forge text around it.
_is_address = re.compile(r"https?://[^\s\x00-\x20\x7f-\x9f]+\Z", re.IGNORECASE).match


class Web(Source):
    def __init__(self, site: Site, public: PublicWeb | None = None, pages: int = 3, description: str = "") -> None:
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
        passages: dict[str, Passage] = {}
        for results in searches:
            for one in results if isinstance(results, list) else []:
                passages.setdefault(one.url, one)
        if not passages:
            return next((one for one in searches if isinstance(one, Failure)), Empty())
        best = _rank(terms, lang, list(passages.values()))[:SHOWN]
        if self._public is not None:
            best[: self._pages] = await asyncio.gather(*(self._read(one, terms, lang) for one in best[: self._pages]))
        text = "\n\n".join(f"{one.title}\n{one.text}\n{one.url}" for one in best)
        return SourceAnswer(text, tuple(best))

    async def check(self) -> Health:
        # By a search: many servers have a home page but do not allow JSON.
        return await health_of(self._search(self.name, ""))

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
            Passage(plain(one.content or ""), plain(one.title), one.url, read_time(one.publishedDate), 1 / place)
            for place, one in enumerate(got.results[:MOST_RESULTS], 1)
            if _is_address(one.url)
        ]

    async def _read(self, result: Passage, terms: Sequence[str], lang: str) -> Passage:
        """The result with the best part of its page; unchanged if the page cannot be read."""
        assert self._public is not None  # noqa: S101 - callers check
        try:
            page = await self._public.get(result.url, Deadline.after(self._site.timeout_s))
        except NetError:
            return result
        text = await self._site.capacity.read(_read_page, page, terms, lang)
        return replace(result, text=text) if text else result


def _read_page(page: Page, terms: Sequence[str], lang: str) -> str:
    """The text of a page from the line before the one that fits best; empty if there is none."""
    lines = readable_text(page, READ_BYTES).split("\n", MOST_LINES)[:MOST_LINES]
    fits = fit(terms, lines, lang)
    best = max(range(len(lines)), key=lambda at: fits[at])
    return "\n".join(lines[max(0, best - 1) :])[:PAGE_CHARACTERS].strip()


def _rank(terms: Sequence[str], lang: str, passages: Sequence[Passage]) -> list[Passage]:
    fits = fit(terms, [f"{one.title} {one.text}" for one in passages], lang)
    scored = [replace(one, score=score + FIRST_PLACE * one.score) for one, score in zip(passages, fits, strict=True)]
    return sorted(scored, key=lambda one: -one.score)
