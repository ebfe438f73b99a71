"""Cuts a long text into passages of whole sentences that can be found and cited one by one.

Invariant: the passages cover the text in order and without a gap, so that each offset is exact.
"""

from __future__ import annotations

from turnout.text.sentence import split


def cut(text: str, size: int) -> list[tuple[int, str]]:
    """Each passage with its offset. None is longer than `size`; blank ones are left out.

    A paragraph that ends in the second half of a passage ends the passage, so that paragraphs stay together.
    """
    passages: list[tuple[int, str]] = []
    start = end = 0
    for sentence in split(text):
        for piece in _split_long(sentence, size):
            if end > start and end + len(piece) - start > size:
                passages.append((start, text[start:end]))
                start = end
            end += len(piece)
        if 2 * (end - start) >= size and text[start:end].endswith("\n\n"):
            passages.append((start, text[start:end]))
            start = end
    passages.append((start, text[start:end]))
    return [(at, passage) for at, passage in passages if passage.strip()]


def _split_long(sentence: str, size: int) -> list[str]:
    """The sentence, in pieces if it is longer than a passage may be: cut at a space where there is one nearby."""
    pieces = []
    while len(sentence) > size:
        at = max(sentence.rfind(" ", size // 2, size), sentence.rfind("\n", size // 2, size)) + 1 or size
        pieces.append(sentence[:at])
        sentence = sentence[at:]
    return [*pieces, sentence]
