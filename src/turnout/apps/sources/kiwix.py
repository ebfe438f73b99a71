"""The offline encyclopedia: Kiwix books, from a server or from files (`shelf`).

A search joins words with AND, so that a whole question finds nothing. Terms are joined with OR if the search supports
that (libzim up to 8), and otherwise searched one by one and in groups. Results are ranked again, by title and by how
well the text of each page fits the terms.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import chain, islice

from turnout.text.fold import fold
from turnout.text.page import read_html

from .fetch import health_of, parsed
from .shelf import BOOKS, RESULTS, BookHits, Bookshelf, PageHit
from .source import Empty, Failure, Health, Passage, Result, Source, SourceAnswer, SourceQuestion
from .terms import fit, language_of, neighbours, search_terms, stems, words_of
from .wording import choose_books, other_phrasings

# Pages that are read of the results.
READ = 10
# Terms that are searched one by one; a question has three to six.
TERMS = 8
# Passages of an answer, and the length of each: fusion keeps 1,500 characters of a source.
SHOWN, PASSAGE_CHARACTERS = 3, 1500
# The weight of the server's own first place beside the fit of a text (the server knows how rare a word is in the whole
# book), and of terms that are neighbours both in the question and in the text. Chosen on every other question of XQuAD,
# R@1 en/es/de: the server's order 93.9 / 91.1 / 88.9, fit alone 92.4 / 90.9 / 90.1, all of them 94.5 / 92.9 / 90.8; on
# the other questions 95.0 / 92.3 / 90.9.
FIRST_PLACE, NEIGHBOURS = 0.1, 0.15
# The specification's scores.
EXACT_TITLE, STEM_TITLE, TITLE_WORD, EXCERPT, LIST_PAGE = 20.0, 15.0, 5.0, 10.0, -10.0

_list_page = re.compile(r"(?:list|lists|outline|index|timeline|category|disambiguation) of\b|\(disambiguation\)").search


class Kiwix(Source):
    def __init__(self, shelf: Bookshelf, books: Sequence[str] = (), description: str = "") -> None:
        """`books`: by default all of the shelf."""
        self.name = shelf.name
        self.description = description or "an offline encyclopedia: facts, people, places, history, how things work"
        self._shelf = shelf
        self._books = tuple(books)
        self._knows_or: bool | None = None
        """Whether searches support OR; None if not known yet."""

    async def ask(self, question: SourceQuestion) -> Result:
        lang = language_of(words_of(question.text), question.lang)
        terms = search_terms(question.text, lang)
        books = self._books or await self._shelf.books()
        if isinstance(books, Failure):
            return books
        chosen = (await choose_books(question, books) if len(books) > 1 else ()) or books
        more = await _more_terms(question, terms)
        searches = (
            await asyncio.gather(*(self._find((*terms, *more), book) for book in chosen[:BOOKS])) if terms else []
        )
        hits = [one for results in searches if not isinstance(results, Failure) for one in results]
        if not hits:
            return next((one for one in searches if isinstance(one, Failure)), Empty())
        passages = await self._read(terms, lang, _best(terms, lang, hits)[:READ])
        text = "\n\n".join(f"{one.title}\n{one.text}" for one in passages)
        return SourceAnswer(text, tuple(passages))

    async def check(self) -> Health:
        return await health_of(self._shelf.books())

    async def _find(self, terms: Sequence[str], book: str) -> list[PageHit] | Failure:
        """The pages of a book with any of the terms."""
        if self._knows_or is False:
            return await self._find_each(terms, book)
        joined = await self._shelf.search(" OR ".join(terms), book)
        if isinstance(joined, Failure):
            return joined
        if self._knows_or or len(terms) == 1 or len(joined.hits) >= RESULTS:
            return joined.hits
        each = await self._find_each(terms, book)
        if isinstance(each, Failure) or not each:
            return joined.hits
        # A search that supports OR has found them all.
        self._knows_or = {one.path for one in each} <= {one.path for one in joined.hits}
        return joined.hits if self._knows_or else each

    async def _find_each(self, terms: Sequence[str], book: str) -> list[PageHit] | Failure:
        """First the pages with all terms that occur at all, then those without the most frequent, and so on to the two
        rarest; last those with a single one."""
        alone = await asyncio.gather(*(self._shelf.search(term, book) for term in terms[:TERMS]))
        known: list[tuple[BookHits, str]] = []
        for one, term in zip(alone, terms, strict=False):
            if isinstance(one, Failure):
                return one
            if one.hits:
                known.append((one, term))
        known.sort(key=lambda pair: pair[0].total)
        rare = [term for _, term in known]
        groups = [" ".join(rare[:size]) for size in range(len(rare), 1, -1)]
        together = await asyncio.gather(*(self._shelf.search(group, book) for group in groups))
        lists = [*(one for one in together if isinstance(one, BookHits)), *(one for one, _ in known)]
        unique: dict[str, PageHit] = {}
        for hit in chain.from_iterable(one.hits for one in lists):
            unique.setdefault(hit.path, hit)
        return [hit._replace(place=at) for at, hit in enumerate(islice(unique.values(), RESULTS), 1)]

    async def _read(self, terms: Sequence[str], lang: str, hits: Sequence[PageHit]) -> list[Passage]:
        """The best part of each page, the best page first; of a page that cannot be read, its excerpt."""
        bodies = await asyncio.gather(*(self._shelf.page(one.path) for one in hits))
        # In a thread: a page may have megabytes.
        return await self._shelf.capacity.read(self._rank, terms, lang, hits, bodies)

    def _rank(
        self, terms: Sequence[str], lang: str, hits: Sequence[PageHit], bodies: Sequence[bytes | Failure]
    ) -> list[Passage]:
        pages = [self._paragraphs(body) for body in bodies]
        texts = [" ".join(page) if page else one.excerpt for one, page in zip(hits, pages, strict=True)]
        judged = zip(hits, pages, fit(terms, texts, lang), neighbours(terms, texts, lang), strict=True)
        scored: list[tuple[float, PageHit, tuple[str, ...]]] = []
        for one, page, fits, near in judged:
            of_text = fits + FIRST_PLACE / one.place + NEIGHBOURS * near
            scored.append((_title_score(terms, lang, one.title) + EXCERPT * of_text, one, page))
        scored.sort(key=lambda one: -one[0])
        passages = []
        for score, one, page in scored[:SHOWN]:
            # Most pages begin with their title, which the passage has already.
            body = page[1:] if page[:1] == (one.title,) else page
            text = _stretch(terms, lang, body) if body else one.excerpt
            passages.append(Passage(text, one.title, self._shelf.address(one.path), score=score))
        return passages

    def _paragraphs(self, body: bytes | Failure) -> tuple[str, ...]:
        if isinstance(body, Failure):
            return ()
        page = parsed(self.name, read_html, body.decode("utf-8", "replace"))
        return () if isinstance(page, Failure) else page.paragraphs


async def _more_terms(question: SourceQuestion, terms: Sequence[str]) -> list[str]:
    """For a question of one term, those of other phrasings."""
    others = await other_phrasings(question) if len(terms) == 1 else []
    more = dict.fromkeys(term for other in others for term in search_terms(other, question.lang))
    return [term for term in more if term not in terms]


def _best(terms: Sequence[str], lang: str, hits: Sequence[PageHit]) -> list[PageHit]:
    """Ranked by title and excerpt; equal ones stay in the server's order. A page of two books comes once."""
    score = {
        one: _title_score(terms, lang, one.title) + EXCERPT * (fits + FIRST_PLACE / one.place)
        for one, fits in zip(hits, fit(terms, [one.excerpt for one in hits], lang), strict=True)
    }
    # Without excerpts, pages of the same title are distinguished by their path in the book.
    unique = {(one.title, one.excerpt or one.path.partition("/")[2]): one for one in hits}.values()
    return sorted(unique, key=lambda one: -score[one])


def _title_score(terms: Sequence[str], lang: str, title: str) -> float:
    words = words_of(title.partition("(")[0]) or words_of(title)
    listed = LIST_PAGE if _list_page(fold(title).text) else 0.0
    if words == list(terms):
        return EXACT_TITLE + listed
    stemmed, wanted = stems(words, lang), stems(terms, lang)
    if stemmed == wanted:
        return STEM_TITLE + listed
    # A word counts less in a long title: "Mercury" is the planet, "Mercury Theatre on the Air" is not.
    return TITLE_WORD * sum(word in wanted for word in stemmed) / max(1, len(stemmed)) + listed


def _stretch(terms: Sequence[str], lang: str, paragraphs: Sequence[str]) -> str:
    """As many consecutive paragraphs as may be shown, from the one before the best on."""
    fits = fit(terms, paragraphs, lang)
    best = max(range(len(paragraphs)), key=lambda at: fits[at])
    text = ""
    for paragraph in paragraphs[max(0, best - 1) :]:
        if text and len(text) + len(paragraph) >= PASSAGE_CHARACTERS:
            break
        text += f"{paragraph}\n"
    return text.strip()[:PASSAGE_CHARACTERS]
