"""The search index: full text in every language, and vectors in the languages their embedder knows.

Many threads and processes may search while one writes. Documents are written in batches, each in one transaction;
unchanged ones are not written again. Vectors are made after the transaction, so that a slow embedder does not block
other writers, and after a failing one the index still finds by words.

Invariant: an embedder has a vote only on questions and documents in a language it knows; others are ordered by full
text alone.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import json
from msgspec.structs import replace

from turnout.core.embed import Embeds
from turnout.store.backend import Transaction
from turnout.store.store import bring_up, connect
from turnout.text.language import guess

from . import sql
from .analysis import read_words, stem, version
from .cut import cut
from .document import Changes, Filters, Hit, IndexDocument, Results, Vote, Voting, from_ms, spread, to_json, to_ms
from .fuse import VECTORS, fuse
from .rank import Fit, Judge, Statistics, read_question, weigh
from .sqlite import SqliteTables
from .tables import IndexCandidate, Tables

# Characters of a passage. A sentence embedder reads some 500; see `benchmarks/search.py` for other sizes.
PASSAGE = 900
# Characters of a window, a part of a passage that gets a vector of its own. A vector of several subjects points to none
# of them: of 400 questions to manual pages (of the half of NL2Bash that was tuned on) vectors of whole passages find
# 17.5 % first, of 450 characters 15.5 %, of 250 characters 20.5 %; of 150 two more, for half as many vectors again.
# An index may have its own: `open_index(…, window=150)`.
WINDOW = 250
# Documents written in one transaction: enough to be quick, few enough that other writers get their turn.
BATCH = 100
# Passages that the database proposes for ranking, and the most there may be where a few documents fill the pool.
POOL = 50
LARGEST_POOL = 800
# A question is read in its own language and in this many of the index's; more would search for more stems than words.
LANGUAGES = 4
ENGLISH = frozenset(("en",))
T = TypeVar("T")


class Index:
    """Thread-safe, and blocking: an application awaits it in a thread."""

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
        # Vectors of another embedder, or of windows of another size, are ignored.
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
        """Write new and changed documents."""
        outcomes: Counter[bool | None] = Counter()
        for batch in _batches(documents):
            with self.tables.backend.transaction() as changes:
                changes.change(sql.NEXT_REVISION, {})
                last = int(changes.read(sql.LAST_PASSAGE, {})[0][0])
                outcomes.update(self._put(changes, document) for document in batch)
            self.fill_vectors(after=last)
        return Changes(added=outcomes[None], changed=outcomes[True], unchanged=outcomes[False])

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents; returns how many there were."""
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
        """Make the missing vectors (all of them after a change of embedder or window); returns how many passages got
        theirs."""
        if self.embedder is None or not self.tables.vectors:
            return 0
        made, name, langs = 0, self._vectors_of, sorted(self.knows)
        while True:
            with self.tables.backend.reading() as reads:
                passages = self.tables.without_vector(reads, name, langs, after, BATCH)
            if not passages:
                return made
            windows = [
                (key, f"{title}\n{part}" if title else part)
                for key, title, text in passages
                for _, part in cut(text, self.window) or [(0, "")]
            ]
            embedded = self.embedder.embed([text for _, text in windows])
            by_passage: dict[int, list[Any]] = {}
            for (key, _), vector in zip(windows, embedded, strict=True):
                by_passage.setdefault(key, []).append(vector)
            with self.tables.backend.transaction() as changes:
                changes.change(sql.NEXT_REVISION, {})
                for key, vectors in by_passage.items():
                    self.tables.set_vectors(changes, key, name, vectors)
            made += len(passages)
            after = passages[-1][0]

    def _put(self, changes: Transaction, document: IndexDocument) -> bool | None:
        """Whether a document has changed; None if it is new."""
        title, text = _clean(document.title), _clean(document.text)
        document = replace(document, title=title, text=text)
        stored = changes.read(sql.FIND, {"id": document.id})
        updated_ms, digest = to_ms(document.updated_at), document.hash()
        if stored and stored[0][1] == digest:
            if stored[0][4] != updated_ms:
                changes.change(sql.TOUCH, {"key": stored[0][0], "updated_ms": updated_ms})
            return False
        lang = document.lang or guess(f"{title}\n{text}")
        attributes = spread(document.attributes)
        row = {
            "title": title,
            "lang": lang,
            "attributes": to_json(attributes),
            "updated_ms": updated_ms,
            "hash": digest,
        }
        kept: dict[str, int] = {}
        if stored:
            key, _, old_title, old_lang, _ = stored[0]
            changes.change(sql.CHANGE_DOCUMENT, {"key": key, **row})
            changes.change(sql.DELETE_ATTRIBUTES, {"key": key})
            for passage, passage_text in changes.read(sql.PASSAGES_OF, {"key": key}):
                # An unchanged passage keeps its stems and its vector.
                if (old_title, old_lang) == (title, lang) and passage_text not in kept:
                    kept[passage_text] = passage
                else:
                    self.tables.delete_passage(changes, passage)
        else:
            key = changes.read(sql.ADD_DOCUMENT, {"id": document.id, **row})[0][0]
        changes.many(sql.ADD_ATTRIBUTE, [(key, name, value) for name, values in attributes.items() for value in values])
        for start, passage_text in cut(text, PASSAGE) or [(0, "")]:
            if (passage := kept.pop(passage_text, None)) is not None:
                changes.change(sql.MOVE_PASSAGE, {"key": passage, "start": start})
                continue
            stems = _stems(title, passage_text, lang)
            added = {"document": key, "start": start, "text": passage_text, "length": len(stems)}
            passage = changes.read(sql.ADD_PASSAGE, added)[0][0]
            self.tables.set_stems(changes, passage, stems)
        for passage in kept.values():
            self.tables.delete_passage(changes, passage)
        return True if stored else None

    def change_note(self, name: str, rewrite: Callable[[str], str]) -> None:
        """Pass the note of a name through `rewrite`; writers take turns."""
        with self.tables.backend.transaction() as changes:
            changes.change(sql.NEXT_REVISION, {})
            rows = changes.read(sql.SETTING, {"name": f"note {name}"})
            changes.change(sql.SET, {"name": f"note {name}", "setting": rewrite(rows[0][0] if rows else "")})

    # --- reading

    def note(self, name: str) -> str:
        """A text stored beside the documents: code that fills an index notes there what it was filled from."""
        rows = self.tables.backend.read(sql.SETTING, {"name": f"note {name}"})
        return str(rows[0][0]) if rows else ""

    def count(self) -> int:
        """The number of documents."""
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
        """The documents that answer best, each with its best passage. A document need not contain every word of the
        question. `vectors` is the weight of a vote by vectors; one by full text has 1."""
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
            present = {each: weight for each, weight in by_stem.items() if frequencies.get(each)}
            by_text = self._by_text(reads, present, known.average, values, limit, judge)
            voting = self._voting(reads, lang)
            by_vector = self._by_vector(reads, query, values, max(POOL, limit)) if voting == "voted" else {}
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
        """The documents nearest in meaning, by id with the cosine of their best passage; none without vectors."""
        with self.tables.backend.reading() as reads:
            near = self._by_vector(reads, text, Filters().values(), limit)
        return [(ident, cosine) for ident, (_, cosine) in near.items()]

    def _by_vector(
        self, reads: Transaction, text: str, values: Mapping[str, Any], limit: int
    ) -> dict[str, tuple[IndexCandidate, float]]:
        """Each document's nearest passage with its cosine, the nearest document first; none without vectors."""
        if self.embedder is None or not self._has_vectors(reads):
            return {}
        revision, vector = self._read_statistics(reads).revision, self.embedder.embed([text])[0]
        best: dict[str, tuple[IndexCandidate, float]] = {}
        for one, cosine in self.tables.nearest(reads, revision, self._vectors_of, vector, values, limit):
            best.setdefault(one.id, (one, cosine))
        return best

    def _by_text(
        self,
        reads: Transaction,
        weights: Mapping[str, float],
        average: float,
        values: Mapping[str, Any],
        limit: int,
        judge: Judge,
    ) -> dict[str, tuple[IndexCandidate, Fit]]:
        """Each document's best passage, the best document first."""
        pool = max(POOL, limit)
        passages = self.tables.propose(reads, weights, average, values, pool) if weights else []
        # If passages of a few long documents fill the pool, a larger one makes room for others.
        while len(passages) == pool and len({one.id for one in passages}) < limit and pool < LARGEST_POOL:
            pool *= 4
            passages = self.tables.propose(reads, weights, average, values, pool)
        best: dict[str, tuple[IndexCandidate, Fit]] = {}
        for one in passages:
            fit = judge.rate(f"{one.title}\n{one.text}", one.lang)
            if one.id not in best or fit.score > best[one.id][1].score:
                best[one.id] = (one, fit)
        return dict(sorted(best.items(), key=lambda item: (-item[1][1].score, item[0])))

    def _voting(self, reads: Transaction, lang: str) -> Voting:
        if self.embedder is None:
            return "no embedder"
        if lang not in self.knows:
            return "other language"
        return "voted" if self._has_vectors(reads) else "no vectors"

    def _has_vectors(self, reads: Transaction) -> bool:
        return self.tables.vectors and bool(reads.read(sql.HAS_VECTORS, {"embedder": self._vectors_of}))

    def _read_statistics(self, reads: Transaction) -> Statistics:
        """Cached until the next write."""
        rows = reads.read(sql.SETTING, {"name": "revision"})
        revision = rows[0][0] if rows else ""
        if revision != self._statistics.revision:
            passages, average = reads.read(sql.SIZES, {})[0]
            langs = tuple(lang for (lang,) in reads.read(sql.LANGUAGES, {}))
            self._statistics = Statistics(revision, passages, float(average), langs)
        return self._statistics

    def _bring_up(self) -> None:
        """Apply migrations, and make all stems again if another version of the analysis made them."""
        bring_up(self.tables.backend)
        rows = self.tables.backend.read(sql.SETTING, {"name": "analysis"})
        if rows and rows[0][0] == version():
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
    """Open or create an index: a path or `sqlite:///PATH` (one file for each index), or `postgresql://…` (one schema
    for each `name`). `knows`: the languages of the embedder. `window`: characters that get a vector of their own."""
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
        attributes=json.decode(one.attributes, type=dict[str, list[str]]),
        updated_at=from_ms(one.updated_ms),
    )


def _stems(title: str, text: str, lang: str) -> list[str]:
    """A passage is also found by the title of its document."""
    return [stem(word, lang) for word in read_words(f"{title}\n{text}")]


def _clean(text: str) -> str:
    """Replaces characters that databases reject, one by one, so that offsets stay right."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _batches(items: Iterable[T]) -> Iterator[Sequence[T]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
