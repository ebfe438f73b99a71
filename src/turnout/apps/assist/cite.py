"""Checks the citations of an answer while it is written, sentence by sentence.

A sentence is held until no citation of it can follow, and a block of code until it is complete: nothing in it is a
citation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnout.search.citation import CheckedAnswer, Status, apply, parse
from turnout.text.sentence import SentenceStream

_fence = re.compile(r"^[ >]*(?:```|~~~)", re.MULTILINE)


class CitedText:
    """Takes text in pieces and returns it with checked citations."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._passages = passages
        self._stream = SentenceStream()
        self._held = ""
        self.cited: set[int] = set()
        """The numbers of the passages that support the text so far."""
        self.unsupported = 0

    def feed(self, text: str) -> str:
        self._held += self._stream.feed(text)
        if len(_fence.findall(self._held)) % 2:
            return ""
        *whole, last = (sentence.text for sentence in parse(self._held)) if self._held else ("",)
        self._held = last
        return self._check("".join(whole))

    def finish(self) -> str:
        held, self._held = self._held + self._stream.finish(), ""
        return self._check(held)

    def _check(self, text: str) -> str:
        if not text or not self._passages:
            return text
        checked: CheckedAnswer = apply(text, self._passages)
        for sentence in checked.sentences:
            self.cited.update(sentence.kept)
            self.unsupported += sentence.status == Status.UNSUPPORTED
        return checked.render()
