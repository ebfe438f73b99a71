"""What a database does for a search index: it proposes passages for stems, and for a vector. The index ranks them
again, so a proposal need only be roughly in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnout.store.backend import Backend, Transaction, Values

from . import sql


class IndexCandidate(NamedTuple):
    """A proposed passage, with the fields of its document."""

    key: int
    start: int
    text: str
    id: str
    title: str
    lang: str
    attributes: str
    updated_ms: int | None


# Weight of the mean cosine of a passage's windows against the best of them: a passage that is all about the question
# comes before one that only mentions it. 0.5 finds fewer of the questions that `WINDOW` was set with.
MEAN = 0.3
COLUMNS = "p.key, p.start, p.text, d.id, d.title, d.lang, d.attributes, d.updated_ms"


class Tables(ABC):
    """The tables of one index. Methods run inside a transaction of `backend`."""

    backend: Backend
    vectors: bool
    """Whether it can store vectors."""

    @abstractmethod
    def set_stems(self, changes: Transaction, key: int, stems: Sequence[str]) -> None:
        """Store the stems that a passage is found by."""

    @abstractmethod
    def frequencies(self, reads: Transaction, stems: Sequence[str]) -> dict[str, int]:
        """The number of passages that contain each stem."""

    @abstractmethod
    def propose(
        self, reads: Transaction, weights: Mapping[str, float], average: float, filters: Values, limit: int
    ) -> list[IndexCandidate]:
        """The best passages that contain any of the stems."""

    @abstractmethod
    def set_vectors(self, changes: Transaction, key: int, embedder: str, vectors: Sequence[Any]) -> None:
        """Store the vectors of a passage's windows, at least one."""

    @abstractmethod
    def without_vector(
        self, reads: Transaction, embedder: str, langs: Sequence[str], after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        """Passages after a key that have no vector of this embedder: key, title and text, by key."""

    @abstractmethod
    def nearest(
        self, reads: Transaction, revision: str, embedder: str, vector: Any, filters: Values, limit: int
    ) -> list[tuple[IndexCandidate, float]]:
        """The passages with the nearest windows, each with its combined cosine (see `MEAN`)."""

    def delete_passage(self, changes: Transaction, key: int) -> None:
        if self.vectors:
            changes.change(sql.DELETE_VECTOR, {"key": key})
        changes.change(sql.DELETE_PASSAGE, {"key": key})
