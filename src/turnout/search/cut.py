"""A long text as passages that can be found and cited one by one: whole sentences, as many as fit.

Invariant: the passages are the text, in order and without a gap, so that a passage's offset is exact.
"""

from __future__ import annotations

from turnout.text.sentence import split


def cut(text: str, size: int) -> list[tuple[int, str]]:
    """Where each passage begins, and its text. None is longer than `size`; blank ones are left out.

    A paragraph that ends in the second half of a passage ends the passage: what belongs together stays together.
    """
    found: list[tuple[int, str]] = []
    start = end = 0
    for sentence in split(text):
        for piece in _short(sentence, size):
            if end > start and end + len(piece) - start > size:
                found.append((start, text[start:end]))
                start = end
            end += len(piece)
        if 2 * (end - start) >= size and text[start:end].endswith("\n\n"):
            found.append((start, text[start:end]))
            start = end
    found.append((start, text[start:end]))
    return [(at, passage) for at, passage in found if passage.strip()]


def _short(sentence: str, size: int) -> list[str]:
    """A sentence, in pieces where it is longer than a passage may be: at a space, if one is near."""
    pieces = []
    while len(sentence) > size:
        at = max(sentence.rfind(" ", size // 2, size), sentence.rfind("\n", size // 2, size)) + 1 or size
        pieces.append(sentence[:at])
        sentence = sentence[at:]
    return [*pieces, sentence]
