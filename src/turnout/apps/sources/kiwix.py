"""The offline encyclopedia: books of Kiwix, wherever they stand (`shelf`).

A search joins words with AND, so that a whole question finds nothing. Terms are joined with OR where the search knows
that word (libzim up to 8), and are looked for one by one and in groups where it does not; what is found is ranked
again, by title and by how well the text of each page fits the terms.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from turnout.text.fold import fold
from turnout.text.page import read_html

from .fetch import health_of, parsed
from .shelf import BOOKS, RESULTS, Bookshelf, Found, Searched
from .source import Empty, Failure, Health, Passage, Result, SourceAnswer, SourceQuestion
from .terms import fit, language_of, neighbours, search_terms, stems, words_of
from .wording import choose_books, other_phrasings

# Of the results of a search the best how many are read.
READ = 10
# How many terms are looked for one by one; a question has three to six.
TERMS = 8
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


class Kiwix:
    def __init__(self, shelf: Bookshelf, books: Sequence[str] = (), description: str = "") -> None:
        """`books`: by default all that the shelf has."""
        self.name = shelf.name
        self.description = description or "an offline encyclopedia: facts, people, places, history, how things work"
        self._shelf = shelf
        self._books = tuple(books)
        self._knows_or: bool | None = None
        """Whether "or" is a word of its searches; None: not known yet."""

    async def ask(self, question: SourceQuestion) -> Result:
        lang = language_of(words_of(question.text), question.lang)
        terms = search_terms(question.text, lang)
        books = self._books or await self._shelf.books()
        if isinstance(books, Failure):
            return books
        chosen = (await choose_books(question, books) if len(books) > 1 else ()) or books
        sought = (*terms, *await _more_terms(question, terms))
        searches = await asyncio.gather(*(self._find(sought, book) for book in chosen[:BOOKS])) if terms else []
        found = [one for results in searches if not isinstance(results, Failure) for one in results]
        if not found:
            failed = next((one for one in searches if isinstance(one, Failure)), None)
            return failed or Empty(_any_of(sought))
        passages = await self._read(terms, lang, _best(terms, lang, found)[:READ])
        text = "\n\n".join(f"{one.title}\n{one.text}" for one in passages)
        return SourceAnswer(text, tuple(passages))

    async def check(self) -> Health:
        return await health_of(self._shelf.books())

    def words(self) -> Sequence[str]:
        return ()

    async def _find(self, terms: Sequence[str], book: str) -> list[Found] | Failure:
        """The pages of a book with any of the terms."""
        if self._knows_or is False:
            return await self._find_each(terms, book)
        joined = await self._shelf.search(_any_of(terms), book)
        if isinstance(joined, Failure):
            return joined
        if self._knows_or or len(terms) == 1 or len(joined.found) >= RESULTS:
            return joined.found
        each = await self._find_each(terms, book)
        if isinstance(each, Failure) or not each:
            return joined.found
        # A search that knows "or" has found them all.
        self._knows_or = {one.path for one in each} <= {one.path for one in joined.found}
        return joined.found if self._knows_or else each

    async def _find_each(self, terms: Sequence[str], book: str) -> list[Found] | Failure:
        """First the pages with all terms that are known, then without the most frequent, and so on to the rarest alone;
        in the end those with any other."""
        alone = await asyncio.gather(*(self._shelf.search(term, book) for term in terms[:TERMS]))
        known: list[tuple[Searched, str]] = []
        for one, term in zip(alone, terms, strict=False):
            if isinstance(one, Failure):
                return one
            if one.found:
                known.append((one, term))
        known.sort(key=lambda pair: pair[0].total)
        rare = [term for _, term in known]
        groups = [" ".join(rare[:size]) for size in range(len(rare), 1, -1)]
        together = await asyncio.gather(*(self._shelf.search(group, book) for group in groups))
        lists = [*(one for one in together if isinstance(one, Searched)), *(one for one, _ in known)]
        unique = {one.path: one for each in reversed(lists) for one in reversed(each.found)}
        first = {one.path: None for each in lists for one in each.found}
        return [unique[path]._replace(place=at) for at, path in enumerate(list(first)[:RESULTS], 1)]

    async def _read(self, terms: Sequence[str], lang: str, found: Sequence[Found]) -> list[Passage]:
        """The best stretch of each page, the best page first; what cannot be read is left with its excerpt."""
        bodies = await asyncio.gather(*(self._shelf.page(one.path) for one in found))
        # A page may have megabytes: not on the event loop.
        return await self._shelf.capacity.read(self._rank, terms, lang, found, bodies)

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
            # Most pages begin with their title, which stands above the passage already.
            body = page[1:] if page[:1] == (one.title,) else page
            text = _stretch(terms, lang, body) if body else one.excerpt
            passages.append(Passage(text, one.title, self._shelf.address(one.path), score=score))
        return passages

    def _paragraphs(self, body: bytes | Failure) -> tuple[str, ...]:
        if isinstance(body, Failure):
            return ()
        page = parsed(self.name, read_html, body.decode("utf-8", "replace"))
        return () if isinstance(page, Failure) else page.paragraphs


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(terms)


async def _more_terms(question: SourceQuestion, terms: Sequence[str]) -> list[str]:
    """For a question that is one term, those of other phrasings."""
    others = await other_phrasings(question) if len(terms) == 1 else []
    more = dict.fromkeys(term for other in others for term in search_terms(other, question.lang))
    return [term for term in more if term not in terms]


def _best(terms: Sequence[str], lang: str, found: Sequence[Found]) -> list[Found]:
    """Ranked by title and excerpt; among equals as the server ranked them. A page that two books have comes once."""
    score = {
        one: _title_score(terms, lang, one.title) + EXCERPT * (fits + FIRST_PLACE / one.place)
        for one, fits in zip(found, fit(terms, [one.excerpt for one in found], lang), strict=True)
    }
    # Where there are no excerpts, pages of one title are told apart by their path in the book.
    unique = {(one.title, one.excerpt or one.path.partition("/")[2]): one for one in found}.values()
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
