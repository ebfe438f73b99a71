"""MiniLM's forward pass in plain NumPy and double precision: slow, short, and written from the paper's formulas.

It shares no line with the graph that is served, so that the two cannot share a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

_erf = np.vectorize(math.erf)


@threadpool_limits.wrap(limits=1)  # on cores that others use, too, small products on many threads wait for one another
def forward(weights: Mapping[str, Any], ids: Sequence[int]) -> Any:
    """The unit vector of a text's token ids."""

    def weight(name: str) -> Any:
        return np.asarray(weights[name], np.float64)

    def dense(x: Any, name: str) -> Any:
        return x @ weight(f"{name}.weight").T + weight(f"{name}.bias")

    def norm(x: Any, name: str) -> Any:
        deviation = np.sqrt(x.var(axis=1, keepdims=True) + 1e-12)
        return (x - x.mean(axis=1, keepdims=True)) / deviation * weight(f"{name}.weight") + weight(f"{name}.bias")

    x = np.asarray(weights["embeddings.word_embeddings.weight"][list(ids)], np.float64)
    x = x + weight("embeddings.position_embeddings.weight")[: len(ids)]
    x = x + weight("embeddings.token_type_embeddings.weight")[0]
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        query, key, value = (dense(x, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.empty_like(x)
        for start in range(0, 384, 32):
            head = slice(start, start + 32)
            score = np.exp(query[:, head] @ key[:, head].T / math.sqrt(32))
            mixed[:, head] = score / score.sum(axis=1, keepdims=True) @ value[:, head]
        x = norm(x + dense(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = dense(x, f"{at}intermediate.dense")
        inner = inner * 0.5 * (1 + _erf(inner / math.sqrt(2)))
        x = norm(x + dense(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)
