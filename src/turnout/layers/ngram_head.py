"""The word head of students of the first version: hashed n-grams, with a row of bytes each. No longer trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnout.text.ngram import Ngrams

from .term_head import FEW, WordResult

if TYPE_CHECKING:
    from .npz import Array


class NgramHead:
    """The weights of n-grams, added up by NumPy."""

    def __init__(self, ngrams: Ngrams, labels: int, arrays: Mapping[str, Array]) -> None:
        import numpy as np

        self._np = np
        self._few = labels <= FEW
        self.ngrams = ngrams
        rows = arrays["ngram_rows"]
        # The extra row of zeros is for all n-grams that were never seen.
        self._row = np.full(ngrams.buckets, len(rows), np.int32)
        self._row[rows] = np.arange(len(rows), dtype=np.int32)
        self._weights = np.concatenate([arrays["ngram_weights"], np.zeros((1, labels), np.int8)])
        self._scales = np.concatenate([arrays["ngram_scales"], np.zeros(1, np.float32)])
        self._bias = arrays["ngram_bias"]
        self._unknown = len(rows)

    def hear(self, folded: str, characters: int | None = None) -> WordResult:
        np = self._np
        text = folded[:characters][: self.ngrams.characters]
        buckets, values = self.ngrams.of(text)
        scores, known = self._bias, 0.0
        if buckets:
            rows = self._row[np.array(buckets, np.intp)]
            given = np.array(values, np.float32)
            known = float((given * given) @ (rows < self._unknown).astype(np.float32))
            scores = scores + (given * self._scales[rows]) @ self._weights[rows].astype(np.float32)
        return WordResult(text, scores.tolist() if self._few else scores, known)

    def pushes(self, text: str, best: int, second: int) -> list[tuple[str, float]]:
        np = self._np
        buckets, values = self.ngrams.of(text)
        if not buckets:
            return []
        rows = self._row[np.array(buckets, np.intp)]
        apart = self._weights[rows, best].astype(np.float32) - self._weights[rows, second].astype(np.float32)
        each = np.array(values, np.float32) * apart * self._scales[rows]
        return self.ngrams.share_out(text, dict(zip(buckets, each.tolist(), strict=True)))

    def lean(self, _text: str, best: int, second: int) -> float:
        return float(self._bias[best] - self._bias[second])
