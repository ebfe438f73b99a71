"""Doubles for embedders: one that counts words, and the answer a server of `/v1/embeddings` would give."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from turnout.testing import Received, Reply

# Few enough to read, many enough that a dozen words rarely fall together.
WIDTH = 64


class WordEmbeds:
    """Satisfies `Embeds`: texts that share words are near one another. Needs NumPy and nothing else."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self.name = f"words-{width}"

    def embed(self, texts: Sequence[str], /) -> Any:
        import numpy as np

        rows = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode("utf-8", "replace")) % self.width] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def embeddings(request: Received) -> Reply:
    """An entry for a `ScriptedProvider`: the word vectors of what was asked, of length 2 and last text first.

    Servers do both: what they say is neither always in order nor always of length 1.
    """
    asked = request.body or {}
    texts = asked.get("input", [])
    texts = [texts] if isinstance(texts, str) else texts
    rows = [
        {"object": "embedding", "index": index, "embedding": (2 * row).tolist()}
        for index, row in enumerate(WordEmbeds().embed(texts))
    ]
    usage = {"prompt_tokens": len(request.raw) // 4, "total_tokens": len(request.raw) // 4}
    said = {"object": "list", "model": asked.get("model", ""), "data": rows[::-1], "usage": usage}
    return Reply(body=msgspec.json.encode(said))
