"""Questions as matrices: n-grams as serving reads them, and one vector each where there is an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout.core.embed import Embeds
from turnout.core.errors import LearnError
from turnout.text.ngram import Ngrams

Floats = npt.NDArray[Any]
Say = Callable[[str, float], None]
"""Hears what is being done, and how much of it is done, from 0 to 1."""

# Enough texts at once that asking costs little beside the work, few enough that progress is seen.
AT_ONCE = 256


def count_ngrams(folded: Sequence[str], ngrams: Ngrams, dtype: Any = np.float64) -> Any:
    """A sparse matrix, a row for each text and a column for each bucket."""
    from scipy.sparse import csr_matrix

    ends, buckets, values = [0], [], []
    for text in folded:
        fell, how_much = ngrams.of(text)
        buckets += fell
        values += how_much
        ends.append(len(buckets))
    parts = (np.array(values, dtype), np.array(buckets, np.int32), np.array(ends, np.int32))
    counted = csr_matrix(parts, shape=(len(folded), ngrams.buckets))
    counted.sort_indices()
    return counted


def embed_texts(folded: Sequence[str], embedder: Embeds, say: Say | None = None) -> Floats:
    """A vector for each text."""
    found: list[Floats] = []
    for start in range(0, len(folded), AT_ONCE):
        asked = list(folded[start : start + AT_ONCE])
        part = np.asarray(embedder.embed(asked), np.float32)
        # An embedder elsewhere knows its width once it has answered.
        if part.shape != (len(asked), embedder.width) or not np.isfinite(part).all():
            raise LearnError(f"{embedder.name} gave vectors of shape {part.shape}, or such as are not finite")
        found.append(part)
        if say is not None:
            say("embedding", min(1.0, (start + AT_ONCE) / len(folded)))
    return np.concatenate(found)
