"""The one search index of Turnout: full text in every language, and vectors in the languages their embedder knows.

Many threads and processes may search while one writes. An update happens as a whole or not at all, a batch of documents
at a time; what has not changed is not written again. Vectors are made outside the transaction and after it, so that a
slow embedder holds up no writer, and one that fails leaves an index that finds by words.

Invariant: an embedder has a vote only on questions, and on documents, in a language it knows; in others the order is
that of full text alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from turnout.core.embed import Embeds
from turnout.store.backend import Transaction
from turnout.store.store import bring_up, connect
from turnout.text.language import guess

from . import sql
from .analysis import read_words, stem, version
from .cut import cut
from .document import Changes, Filters, Hit, IndexDocument, Results, Vote, Voting, from_ms, spread, to_ms
from .fuse import VECTORS, fuse
from .rank import Fit, Judge, Statistics, read_question, weigh
from .sqlite import SqliteTables
from .tables import IndexCandidate, Tables

# Characters of a passage. A sentence embedder reads some 500; see `benchmarks/search.py` for other sizes.
PASSAGE = 900
# Characters of a window: what of a passage gets a vector of its own. A vector of several subjects points to none of
# them: of 400 questions to manual pages (of the half of NL2Bash that was tuned on) vectors of whole passages find
# 17.5 % first, of 450 characters 15.5 %, of 250 characters 20.5 %; of 150 two more, for half as many vectors again.
# An index may have its own: `open_index(…, window=150)`.
WINDOW = 250
# Documents written in one transaction: long enough to be quick, short enough that other writers get their turn.
BATCH = 100
# Passages a list proposes for the judge to read, and how many at most where a few documents fill them.
POOL = 50
LARGEST_POOL = 800
# A question is read in its own language and in so many of the index's: more would look for more stems than words.
LANGUAGES = 4
ENGLISH = frozenset(("en",))
T = TypeVar("T")


class Index:
    """One index. Thread-safe; blocking: an application awaits it in a thread."""

    def __init__(
        self, tables: Tables, embedder: Embeds | None = None, knows: frozenset[str] = ENGLISH, window: int = WINDOW
    ) -> None:
        """`knows`: the languages the embedder was trained on. `window`: characters that get a vector of their own."""
        if window < 1:
            raise ValueError(f"window={window}: a vector is of at least 1 character; {WINDOW} is the usual size")
        self.tables = tables
        self.embedder = embedder
        self.knows = knows
        self.window = window
        # Vectors of another embedder, or of windows of another size, are not compared with.
        self._vectors_of = f"{embedder.name} {window}" if embedder is not None else ""
        self._statistics = Statistics("", 0, 0.0, ())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.tables.backend.close()

    # --- writing

    def upsert(self, documents: Iterable[IndexDocument]) -> Changes:
        """Write what is new and what has changed."""
        added = changed = unchanged = 0
        for batch in _batches(documents):
            with self.tables.backend.transaction() as changes:
                changes.change(sql.NEXT_REVISION, {})
                last = int(changes.read(sql.LAST_PASSAGE, {})[0][0])
                for document in batch:
                    was = self._put(changes, document)
                    added += was is None
                    changed += was is True
                    unchanged += was is False
            self.fill_vectors(after=last)
        return Changes(added, changed, unchanged)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents; how many there were."""
        deleted = 0
        for batch in _batches(ids):
            with self.tables.backend.transaction() as changes:
                changes.change(sql.NEXT_REVISION, {})
                for ident in batch:
                    for key, *_ in changes.read(sql.FIND, {"id": ident}):
                        for passage, _ in changes.read(sql.PASSAGES_OF, {"key": key}):
                            self.tables.delete_passage(changes, passage)
                        changes.change(sql.DELETE_ATTRIBUTES, {"key": key})
                        deleted += changes.change(sql.DELETE_DOCUMENT, {"key": key})
        return deleted

    def fill_vectors(self, *, after: int = 0) -> int:
        """Make the vectors that are missing; how many. After another embedder or size of windows was chosen, that is
        all of them."""
        if self.embedder is None or not self.tables.vectors:
            return 0
        made, name, langs = 0, self._vectors_of, sorted(self.knows)
        while True:
            with self.tables.backend.reading() as reads:
                found = self.tables.without_vector(reads, name, langs, after, BATCH)
            if not found:
                return made
            windows = [
                (key, f"{title}\n{said}" if title else said)
                for key, title, text in found
                for _, said in cut(text, self.window) or [(0, "")]
            ]
            rows = self.embedder.embed([said for _, said in windows])
            by_passage: dict[int, list[Any]] = {}
            for (key, _), row in zip(windows, rows, strict=True):
                by_passage.setdefault(key, []).append(row)
            with self.tables.backend.transaction() as changes:
                changes.change(sql.NEXT_REVISION, {})
                for key, vectors in by_passage.items():
                    self.tables.set_vectors(changes, key, name, vectors)
            made += len(found)
            after = found[-1][0]

    def _put(self, changes: Transaction, document: IndexDocument) -> bool | None:
        """Whether a document has changed; None if it is new."""
        title, text = _clean(document.title), _clean(document.text)
        document = replace(document, title=title, text=text)
        found = changes.read(sql.FIND, {"id": document.id})
        updated_ms, digest = to_ms(document.updated_at), document.hash()
        if found and found[0][1] == digest:
            if found[0][4] != updated_ms:
                changes.change(sql.TOUCH, {"key": found[0][0], "updated_ms": updated_ms})
            return False
        lang = document.lang or guess(f"{title}\n{text}")
        attributes = spread(document.attributes)
        row = {
            "title": title,
            "lang": lang,
            "attributes": msgspec.json.encode(attributes).decode(),
            "updated_ms": updated_ms,
            "hash": digest,
        }
        kept: dict[str, int] = {}
        if found:
            key, _, old_title, old_lang, _ = found[0]
            changes.change(sql.CHANGE_DOCUMENT, {"key": key, **row})
            changes.change(sql.DELETE_ATTRIBUTES, {"key": key})
            for passage, said in changes.read(sql.PASSAGES_OF, {"key": key}):
                # What says the same keeps its stems and its vector.
                if (old_title, old_lang) == (title, lang) and said not in kept:
                    kept[said] = passage
                else:
                    self.tables.delete_passage(changes, passage)
        else:
            key = changes.read(sql.ADD_DOCUMENT, {"id": document.id, **row})[0][0]
        changes.many(sql.ADD_ATTRIBUTE, [(key, name, value) for name, values in attributes.items() for value in values])
        for start, said in cut(text, PASSAGE) or [(0, "")]:
            if (passage := kept.pop(said, None)) is not None:
                changes.change(sql.MOVE_PASSAGE, {"key": passage, "start": start})
                continue
            stems = _stems(title, said, lang)
            passage = changes.read(
                sql.ADD_PASSAGE, {"document": key, "start": start, "text": said, "length": len(stems)}
            )[0][0]
            self.tables.set_stems(changes, passage, stems)
        for passage in kept.values():
            self.tables.delete_passage(changes, passage)
        return True if found else None

    def change_note(self, name: str, rewrite: Callable[[str], str]) -> None:
        """Replace what is noted under a name, by what `rewrite` makes of it; writers take turns."""
        with self.tables.backend.transaction() as changes:
            changes.change(sql.NEXT_REVISION, {})
            found = changes.read(sql.SETTING, {"name": f"note {name}"})
            changes.change(sql.SET, {"name": f"note {name}", "setting": rewrite(found[0][0] if found else "")})

    # --- reading

    def note(self, name: str) -> str:
        """What is noted under a name: the one that fills an index keeps beside it what it was filled from."""
        found = self.tables.backend.read(sql.SETTING, {"name": f"note {name}"})
        return str(found[0][0]) if found else ""

    def count(self) -> int:
        """How many documents there are."""
        return int(self.tables.backend.read(sql.COUNT, {})[0][0])

    def ids(self) -> list[str]:
        """The ids of all documents."""
        return [ident for (ident,) in self.tables.backend.read(sql.IDS, {})]

    def search(
        self,
        query: str,
        *,
        lang: str = "",
        filters: Filters | None = None,
        limit: int = 10,
        vectors: float = VECTORS,
    ) -> Results:
        """The documents that answer best, each with its best passage. Any word of the question may find one. `vectors`
        is what a vote by vectors counts, one by full text being 1."""
        values = (filters or Filters()).values()
        with self.tables.backend.reading() as reads:
            known = self._read_statistics(reads)
            lang = lang or guess(query) or (known.langs[0] if len(known.langs) == 1 else "")
            asked = read_question(query, lang, known.langs[:LANGUAGES])
            if not asked or not known.passages or limit < 1:
                return Results((), lang, tuple(one.word for one in asked), self._voting(reads, lang))
            stems = sorted({each for one in asked for each in one.stems})
            frequencies = self.tables.frequencies(reads, stems)
            weights = weigh(asked, frequencies, known.passages)
            judge = Judge(asked, weights, known.average)
            by_stem = {each: weight for one, weight in zip(asked, weights, strict=True) for each in one.stems}
            sought = {each: weight for each, weight in by_stem.items() if frequencies.get(each)}
            by_text = self._by_text(reads, sought, known.average, values, limit, judge)
            voting = self._voting(reads, lang)
            by_vector: dict[str, tuple[IndexCandidate, float]] = {}
            if voting == "voted" and self.embedder is not None:
                vector = self.embedder.embed([query])[0]
                for one, cosine in self.tables.nearest(
                    reads, known.revision, self._vectors_of, vector, values, max(POOL, limit)
                ):
                    by_vector.setdefault(one.id, (one, cosine))
        hits = []
        for ident, score, votes in fuse(
            {ident: fit.score for ident, (_, fit) in by_text.items()},
            {ident: cosine for ident, (_, cosine) in by_vector.items()},
            vectors,
        )[:limit]:
            if ident in by_text:
                one, fit = by_text[ident]
            else:
                one = by_vector[ident][0]
                fit = judge.rate(f"{one.title}\n{one.text}", one.lang)
            hits.append(_hit(one, fit, score, votes))
        unknown = sum(
            weight
            for one, weight in zip(asked, weights, strict=True)
            if not any(frequencies.get(each) for each in one.stems)
        )
        words = tuple(one.word for one in asked)
        return Results(tuple(hits), lang, words, voting, unknown / sum(weights), known.passages)

    def nearest(self, text: str, *, limit: int = 10) -> list[tuple[str, float]]:
        """The documents that mean the same, by id with the cosine of their best passage; none without vectors."""
        if self.embedder is None:
            return []
        vector = self.embedder.embed([text])[0]
        with self.tables.backend.reading() as reads:
            revision = self._read_statistics(reads).revision
            if not self.tables.vectors or not reads.read(sql.HAS_VECTORS, {"embedder": self._vectors_of}):
                return []
            found = self.tables.nearest(reads, revision, self._vectors_of, vector, Filters().values(), limit)
        best: dict[str, float] = {}
        for one, cosine in found:
            best.setdefault(one.id, cosine)
        return list(best.items())

    def _by_text(
        self,
        reads: Transaction,
        sought: Mapping[str, float],
        average: float,
        values: Mapping[str, Any],
        limit: int,
        judge: Judge,
    ) -> dict[str, tuple[IndexCandidate, Fit]]:
        """Each document's best passage, the best document first."""
        pool = max(POOL, limit)
        found = self.tables.propose(reads, sought, average, values, pool) if sought else []
        # Where the passages of a few long documents fill the pool, others get their chance in a larger one.
        while len(found) == pool and len({one.id for one in found}) < limit and pool < LARGEST_POOL:
            pool *= 4
            found = self.tables.propose(reads, sought, average, values, pool)
        best: dict[str, tuple[IndexCandidate, Fit]] = {}
        for one in found:
            fit = judge.rate(f"{one.title}\n{one.text}", one.lang)
            if one.id not in best or fit.score > best[one.id][1].score:
                best[one.id] = (one, fit)
        return dict(sorted(best.items(), key=lambda item: (-item[1][1].score, item[0])))

    def _voting(self, reads: Transaction, lang: str) -> Voting:
        if self.embedder is None:
            return "no embedder"
        if lang not in self.knows:
            return "other language"
        there = self.tables.vectors and reads.read(sql.HAS_VECTORS, {"embedder": self._vectors_of})
        return "voted" if there else "no vectors"

    def _read_statistics(self, reads: Transaction) -> Statistics:
        """Counted anew after a write only."""
        found = reads.read(sql.SETTING, {"name": "revision"})
        revision = found[0][0] if found else ""
        if revision != self._statistics.revision:
            passages, average = reads.read(sql.SIZES, {})[0]
            langs = tuple(lang for (lang,) in reads.read(sql.LANGUAGES, {}))
            self._statistics = Statistics(revision, passages, float(average), langs)
        return self._statistics

    def _bring_up(self) -> None:
        """Passages whose stems were made by another version are read anew."""
        bring_up(self.tables.backend)
        found = self.tables.backend.read(sql.SETTING, {"name": "analysis"})
        if found and found[0][0] == version():
            return
        with self.tables.backend.transaction() as changes:
            changes.change(sql.NEXT_REVISION, {})
            after = 0
            while rows := changes.read(sql.ALL_PASSAGES, {"after": after, "limit": BATCH}):
                for key, title, lang, text in rows:
                    stems = _stems(title, text, lang)
                    changes.change(sql.SET_LENGTH, {"key": key, "length": len(stems)})
                    self.tables.set_stems(changes, key, stems)
                after = rows[-1][0]
            changes.change(sql.SET, {"name": "analysis", "setting": version()})


def open_index(
    url: str | os.PathLike[str],
    name: str = "index",
    *,
    embedder: Embeds | None = None,
    knows: Iterable[str] = ENGLISH,
    window: int = WINDOW,
) -> Index:
    """Open or create an index: a path, `sqlite:///PATH` (a file for each index) or `postgresql://…` (where `name` tells
    one from another). `knows`: the languages of the embedder. `window`: characters of a passage that get a vector of
    their own."""
    url = os.fspath(url)
    tables: Tables
    if url.startswith(("postgres://", "postgresql://")):
        from .postgres import PostgresTables

        tables = PostgresTables(url, name)
    else:
        backend, _ = connect(url)
        tables = SqliteTables(Path(backend.where))
    index = Index(tables, embedder, frozenset(knows), window)
    with contextlib.ExitStack() as opened:
        opened.callback(index.close)
        index._bring_up()
        opened.pop_all()
    return index


def _hit(one: IndexCandidate, fit: Fit, score: float, votes: tuple[Vote, ...]) -> Hit:
    return Hit(
        id=one.id,
        title=one.title,
        lang=one.lang,
        text=one.text,
        start=one.start,
        score=score,
        coverage=fit.coverage,
        votes=votes,
        attributes=msgspec.json.decode(one.attributes, type=dict[str, list[str]]),
        updated_at=from_ms(one.updated_ms),
    )


def _stems(title: str, text: str, lang: str) -> list[str]:
    """A passage is found by the title of its document, too."""
    return [stem(word, lang) for word in read_words(f"{title}\n{text}")]


def _clean(text: str) -> str:
    """Without what a database does not take, and as long as before: offsets stay right."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _batches(items: Iterable[T]) -> Iterator[Sequence[T]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
