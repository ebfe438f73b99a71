"""The offline encyclopedia: kiwix-serve, of both generations of its URLs.

It joins the words of a query with AND, so that a whole question finds nothing: terms are joined with OR, and what comes
back is ranked again, by title and by how well the text of each page fits the terms. Where a page is, is what the search
says ("/book/page" or "/content/book/page"), so that no generation need be told from the other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from turnout.text.fold import fold
from turnout.text.page import plain, read_html, read_xml

from .fetch import Site, health_of, parsed
from .source import Cause, Empty, Failure, Health, Passage, Result, SourceAnswer, SourceQuestion
from .terms import fit, language_of, neighbours, search_terms, stems, words_of
from .wording import choose_books, other_phrasings

# How many results are ranked again, and of those the best how many are read whole.
RESULTS, READ = 25, 10
# Of a list of results or books; 25 results have some 30 kB.
XML_BYTES = 1024 * 1024
# Of each page that is read; ten of them take three seconds at worst. Of the longest articles it is the first half.
READ_BYTES = 512 * 1024
# How many books are searched at once; a shelf has hundreds, and each search costs the server a few milliseconds.
BOOKS = 12
# How many passages an answer is made of, and how long each may be: what fusion keeps of a source is 1,500 characters.
SHOWN, PASSAGE_CHARACTERS = 3, 1500
# What the server's own first place is worth beside the fit of a text (it knows how rare a word is in the whole book),
# and what it is worth if terms that are neighbours in the question are in the text. Chosen on every other question of
# XQuAD, R@1 en/es/de: the server's order 93.9 / 91.1 / 88.9, fit alone 92.4 / 90.9 / 90.1, all of them 94.5 / 92.9 /
# 90.8; on the questions between those 95.0 / 92.3 / 90.9.
FIRST_PLACE, NEIGHBOURS = 0.1, 0.15
# The specification's scores.
EXACT_TITLE, STEM_TITLE, TITLE_WORD, EXCERPT, LIST_PAGE = 20.0, 15.0, 5.0, 10.0, -10.0

_list_page = re.compile(r"(?:list|lists|outline|index|timeline|category|disambiguation) of\b|\(disambiguation\)").search
_ATOM = "{http://www.w3.org/2005/Atom}"


class Found(NamedTuple):
    """A result of a search."""

    title: str
    path: str
    excerpt: str
    place: int
    """Among the results of its search, from 1."""


class Kiwix:
    def __init__(self, site: Site, books: Sequence[str] = (), description: str = "") -> None:
        self.name = site.name
        self.description = description or "an offline encyclopedia: facts, people, places, history, how things work"
        self._site = site
        self._books = tuple(books)

    async def ask(self, question: SourceQuestion) -> Result:
        lang = language_of(words_of(question.text), question.lang)
        terms = search_terms(question.text, lang)
        books = self._books or await self._catalogue()
        if isinstance(books, Failure):
            return books
        chosen = (await choose_books(question, books) if len(books) > 1 else ()) or books
        pattern = " OR ".join((*terms, *await _more_terms(question, terms)))
        searches = await asyncio.gather(*(self._search(pattern, book) for book in chosen[:BOOKS])) if terms else []
        found = [one for results in searches if not isinstance(results, Failure) for one in results]
        if not found:
            failed = next((one for one in searches if isinstance(one, Failure)), None)
            return failed or Empty(pattern)
        passages = await self._read(terms, lang, _best(terms, lang, found)[:READ])
        text = "\n\n".join(f"{one.title}\n{one.text}" for one in passages)
        return SourceAnswer(text, tuple(passages))

    async def check(self) -> Health:
        return await health_of(self._catalogue())

    def words(self) -> Sequence[str]:
        return ()

    async def _catalogue(self) -> tuple[str, ...] | Failure:
        """The names of the books there are; an empty name is all of them, for a server that does not tell."""
        body = await self._site.get("/catalog/v2/entries", {"count": BOOKS}, limit=XML_BYTES)
        if isinstance(body, Failure) and body.why is not Cause.ERROR:
            return body
        if isinstance(body, Failure):
            # Before 3.2 there was no such page; whether there is a server at all is told by its first.
            first = await self._site.get("/")
            if isinstance(first, Failure):
                return first
            is_kiwix = b"kiwix" in first[:READ_BYTES].lower()
            return ("",) if is_kiwix else self._site.misread("neither a catalogue nor a page of kiwix-serve")
        feed = await self._site.capacity.read(parsed, self.name, read_xml, body)
        if isinstance(feed, Failure):
            return feed
        if feed.tag != f"{_ATOM}feed":
            return self._site.misread("no catalogue of books")
        links = [
            link.get("href", "")
            for entry in feed.iter(f"{_ATOM}entry")
            for link in entry.iter(f"{_ATOM}link")
            if link.get("type") == "text/html"
        ]
        return tuple(link.rstrip("/").rpartition("/")[2] for link in links if link) or ("",)

    async def _search(self, pattern: str, book: str) -> list[Found] | Failure:
        params: dict[str, str | int] = {"pattern": pattern, "format": "xml", "pageLength": RESULTS}
        params |= {"content": book} if book else {}
        body = await self._site.get("/search", params, limit=XML_BYTES)
        return body if isinstance(body, Failure) else await self._site.capacity.read(parsed, self.name, _results, body)

    async def _read(self, terms: Sequence[str], lang: str, found: Sequence[Found]) -> list[Passage]:
        """The best stretch of each page, the best page first; what cannot be read is left with its excerpt."""
        bodies = await asyncio.gather(*(self._site.get(f"/{one.path}") for one in found))
        # A page may have megabytes: not on the event loop.
        return await self._site.capacity.read(self._rank, terms, lang, found, bodies)

    def _rank(
        self, terms: Sequence[str], lang: str, found: Sequence[Found], bodies: Sequence[bytes | Failure]
    ) -> list[Passage]:
        pages = [self._paragraphs(body) for body in bodies]
        texts = [" ".join(page) if page else one.excerpt for one, page in zip(found, pages, strict=True)]
        judged = zip(found, pages, fit(terms, texts, lang), neighbours(terms, texts, lang), strict=True)
        scored: list[tuple[float, Found, tuple[str, ...]]] = []
        for one, page, fits, near in judged:
            of_text = fits + FIRST_PLACE / one.place + NEIGHBOURS * near
            scored.append((_title_score(terms, lang, one.title) + EXCERPT * of_text, one, page))
        scored.sort(key=lambda one: -one[0])
        passages = []
        for score, one, page in scored[:SHOWN]:
            text = _stretch(terms, lang, page) if page else one.excerpt
            passages.append(Passage(text, one.title, f"{self._site.origin}{one.path}", score=score))
        return passages

    def _paragraphs(self, body: bytes | Failure) -> tuple[str, ...]:
        if isinstance(body, Failure):
            return ()
        page = parsed(self.name, read_html, body[:READ_BYTES].decode("utf-8", "replace"))
        return () if isinstance(page, Failure) else page.paragraphs


async def _more_terms(question: SourceQuestion, terms: Sequence[str]) -> list[str]:
    """For a question that is one term, those of other phrasings."""
    others = await other_phrasings(question) if len(terms) == 1 else []
    more = dict.fromkeys(term for other in others for term in search_terms(other, question.lang))
    return [term for term in more if term not in terms]


def _results(body: bytes) -> list[Found]:
    found: list[Found] = []
    for item in read_xml(body).iter("item"):
        link = item.findtext("link") or ""
        path = quote(urlsplit(link).path, safe="/%:@!$&'()*+,;=~-._")
        if path.startswith("/"):
            described = item.find("description")
            excerpt = " ".join("".join(described.itertext()).split()) if described is not None else ""
            title = plain(item.findtext("title") or "")
            found.append(Found(title, path, plain(excerpt), len(found) + 1))
    return found


def _best(terms: Sequence[str], lang: str, found: Sequence[Found]) -> list[Found]:
    """Ranked by title and excerpt; among equals as the server ranked them. A page that two books have comes once."""
    score = {
        one: _title_score(terms, lang, one.title) + EXCERPT * (fits + FIRST_PLACE / one.place)
        for one, fits in zip(found, fit(terms, [one.excerpt for one in found], lang), strict=True)
    }
    unique = {(one.title, one.excerpt): one for one in found}.values()
    return sorted(unique, key=lambda one: -score[one])


def _title_score(terms: Sequence[str], lang: str, title: str) -> float:
    words = words_of(title.partition("(")[0]) or words_of(title)
    listed = LIST_PAGE if _list_page(fold(title).text) else 0.0
    if words == list(terms):
        return EXACT_TITLE + listed
    stemmed, wanted = stems(words, lang), stems(terms, lang)
    if stemmed == wanted:
        return STEM_TITLE + listed
    # Of a long title a word says less: "Mercury" alone is the planet, "Mercury Theatre on the Air" is not.
    return TITLE_WORD * sum(word in wanted for word in stemmed) / max(1, len(stemmed)) + listed


def _stretch(terms: Sequence[str], lang: str, paragraphs: Sequence[str]) -> str:
    """As many paragraphs in a row as may be shown, beginning with the one that fits best, or the one before it."""
    fits = fit(terms, paragraphs, lang)
    best = max(range(len(paragraphs)), key=lambda at: fits[at])
    text = ""
    for paragraph in paragraphs[max(0, best - 1) :]:
        if text and len(text) + len(paragraph) >= PASSAGE_CHARACTERS:
            break
        text += f"{paragraph}\n"
    return text.strip()[:PASSAGE_CHARACTERS]
