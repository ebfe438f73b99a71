"""The index in a file: SQLite's FTS5 for words, a matrix in memory for vectors. Only vectors need an installed package,
NumPy, which every embedder needs too."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from turnout.store.backend import Transaction, Values
from turnout.store.sqlite import Sqlite

from .document import to_json
from .tables import COLUMNS, MEAN, IndexCandidate, Tables

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# A document passes a filter on an attribute if it has the attribute with one of the values.
_FILTERS = """
  (:langs is null or d.lang in (select value from json_each(:langs)))
  and (:since is null or d.updated_ms >= :since)
  and (:until is null or d.updated_ms < :until)
  and not exists (
    select 1 from json_each(:attributes) f where not exists (
      select 1 from attributes a
      where a.document = d.key and a.name = f.key and a.value in (select value from json_each(f.value))
    )
  )
"""
# `cross join` keeps the order of ranks, so that no more passages are looked up than are wanted.
PROPOSE = f"""
select {COLUMNS} from postings
cross join passages p on p.key = postings.rowid
cross join documents d on d.key = p.document
where postings match :query and {_FILTERS}
order by postings.rank limit :limit
"""  # noqa: S608 - of constants
FREQUENCIES = """
select term, doc from vocabulary where term in (select value from json_each(:stems))
"""
SET_STEMS = """
insert or replace into postings (rowid, stems) values (:key, :stems)
"""
DELETE_STEMS = """
delete from postings where rowid = :key
"""
SET_VECTOR = """
insert or replace into vectors (passage, embedder, vector) values (:key, :embedder, :vector)
"""
WITHOUT_VECTOR = """
select p.key, d.title, p.text from passages p join documents d on d.key = p.document
where p.key > :after and d.lang in (select value from json_each(:langs))
  and not exists (select 1 from vectors v where v.passage = p.key and v.embedder = :embedder)
order by p.key limit :limit
"""
VECTOR_KEYS = """
select passage from vectors where embedder = :embedder order by passage
"""
VECTORS = """
select passage, vector from vectors where embedder = :embedder and passage > :after order by passage limit 500
"""
VECTOR_BYTES = """
select coalesce(sum(length(vector)), 0) from vectors where embedder = :embedder and passage > :after
"""
ALLOWED = f"""
select p.key from passages p join documents d on d.key = p.document where {_FILTERS} order by p.key
"""  # noqa: S608 - of constants
PASSAGES = f"""
select {COLUMNS} from passages p join documents d on d.key = p.document
where p.key in (select value from json_each(:keys))
"""  # noqa: S608 - of constants
NO_FILTERS: Values = {"attributes": "{}", "langs": None, "since": None, "until": None}


class IndexFile(Sqlite):
    steps = "turnout.search.migrations"


class SqliteTables(Tables):
    vectors = True

    def __init__(self, path: Path) -> None:
        self.backend = IndexFile(path)
        self._matrix: _Matrix | None = None
        self._mask: tuple[object, Array] | None = None
        self._lock = threading.Lock()

    def set_stems(self, changes: Transaction, key: int, stems: Sequence[str]) -> None:
        changes.change(SET_STEMS, {"key": key, "stems": " ".join(stems)})

    def delete_passage(self, changes: Transaction, key: int) -> None:
        changes.change(DELETE_STEMS, {"key": key})
        super().delete_passage(changes, key)

    def frequencies(self, reads: Transaction, stems: Sequence[str]) -> dict[str, int]:
        return dict(reads.read(FREQUENCIES, {"stems": to_json(stems)}))

    def propose(
        self, reads: Transaction, weights: Mapping[str, float], average: float, filters: Values, limit: int
    ) -> list[IndexCandidate]:
        # Stems are letters and digits: in quotes none is an operator.
        query = " OR ".join(f'"{stem}"' for stem in weights)
        return [IndexCandidate(*row) for row in reads.read(PROPOSE, {"query": query, "limit": limit, **filters})]

    def set_vectors(self, changes: Transaction, key: int, embedder: str, vectors: Sequence[Any]) -> None:
        joined = b"".join(vector.astype("<f4").tobytes() for vector in vectors)
        changes.change(SET_VECTOR, {"key": key, "embedder": embedder, "vector": joined})

    def without_vector(
        self, reads: Transaction, embedder: str, langs: Sequence[str], after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        values: Values = {"embedder": embedder, "langs": to_json(langs), "after": after, "limit": limit}
        return [(key, title, text) for key, title, text in reads.read(WITHOUT_VECTOR, values)]

    def nearest(
        self, reads: Transaction, revision: str, embedder: str, vector: Any, filters: Values, limit: int
    ) -> list[tuple[IndexCandidate, float]]:
        import numpy as np

        matrix = self._load(reads, revision, embedder, len(vector))
        if not len(matrix.keys):
            return []
        windows = matrix.rows @ np.asarray(vector, np.float32)
        starts = np.concatenate([[0], np.cumsum(matrix.counts)[:-1]])
        means = np.add.reduceat(windows, starts) / matrix.counts
        near = (1 - MEAN) * np.maximum.reduceat(windows, starts) + MEAN * means
        if filters != NO_FILTERS:
            near = np.where(self._admitted(reads, matrix, filters), near, -np.inf)
        # Only those that can be among the first are sorted.
        least = -np.inf if len(near) <= limit else np.partition(near, len(near) - limit)[len(near) - limit]
        first = np.flatnonzero(near >= least)
        best = first[np.argsort(-near[first], kind="stable")][:limit]
        found = {int(matrix.keys[at]): float(near[at]) for at in best if np.isfinite(near[at])}
        passages = (IndexCandidate(*row) for row in reads.read(PASSAGES, {"keys": to_json(list(found))}))
        return sorted(((one, found[one.key]) for one in passages), key=lambda pair: (-pair[1], pair[0].key))

    def _admitted(self, reads: Transaction, matrix: _Matrix, filters: Values) -> Array:
        """Which passages of the matrix a filter admits. The last mask is cached: most callers always use one filter."""
        import numpy as np

        cached = (matrix.embedder, matrix.revision, tuple(sorted(filters.items())))
        with self._lock:
            if self._mask is None or self._mask[0] != cached:
                allowed = np.array([key for (key,) in reads.read(ALLOWED, filters)], np.int64)
                self._mask = (cached, np.isin(matrix.keys, allowed))
            return self._mask[1]

    def _load(self, reads: Transaction, revision: str, embedder: str, width: int) -> _Matrix:
        """The vectors as of this transaction. Keys are never reused, so that only new rows are read and deleted ones
        dropped."""
        with self._lock:
            matrix = self._matrix
            if matrix is None or matrix.embedder != embedder:
                self._matrix = matrix = _read_matrix(embedder, revision, width, reads, 0)
            elif matrix.revision != revision:
                self._matrix = matrix = matrix.follow(reads, revision)
            return matrix


class _Matrix(Struct, frozen=True):
    """The vectors of all windows, passage after passage."""

    embedder: str
    revision: str
    keys: Array
    """Of the passages."""
    counts: Array
    """How many windows each has."""
    rows: Array

    def follow(self, reads: Transaction, revision: str) -> _Matrix:
        """The matrix at a later revision."""
        import numpy as np

        width = self.rows.shape[1]
        stored = np.array([key for (key,) in reads.read(VECTOR_KEYS, {"embedder": self.embedder})], np.int64)
        last = int(self.keys[-1]) if len(self.keys) else 0
        new = _read_matrix(self.embedder, revision, width, reads, last)
        kept = np.isin(self.keys, stored)
        if kept.sum() + len(new.keys) != len(stored):
            # A vector was made late, for a passage older than the last.
            return _read_matrix(self.embedder, revision, width, reads, 0)
        if not len(self.keys):
            return new
        if kept.all() and not len(new.keys):
            return replace(self, revision=revision)
        counts = np.concatenate([self.counts[kept], new.counts])
        rows = np.empty((int(counts.sum()), width), np.float32)
        of_old = len(rows) - len(new.rows)
        np.compress(np.repeat(kept, self.counts), self.rows, axis=0, out=rows[:of_old])
        rows[of_old:] = new.rows
        return _Matrix(self.embedder, revision, np.concatenate([self.keys[kept], new.keys]), counts, rows)


def _read_matrix(embedder: str, revision: str, width: int, reads: Transaction, after: int) -> _Matrix:
    """The vectors of passages after a key, except those of another width. They are read in chunks: all rows at once
    would be in memory twice."""
    import numpy as np

    size = 4 * width
    total = reads.read(VECTOR_BYTES, {"embedder": embedder, "after": after})[0][0] // size
    rows, at = np.empty((total, width), np.float32), 0
    keys: list[int] = []
    counts: list[int] = []
    while found := reads.read(VECTORS, {"embedder": embedder, "after": after}):
        for key, blob in found:
            if blob and len(blob) % size == 0:
                count = len(blob) // size
                rows[at : at + count] = np.frombuffer(blob, "<f4").reshape(-1, width)
                keys.append(key)
                counts.append(count)
                at += count
        after = found[-1][0]
    return _Matrix(embedder, revision, np.array(keys, np.int64), np.array(counts, np.int64), rows[:at])
