"""Merges the answers of several sources: repetitions are left out, long answers cut, and each labelled by its source.

A source is left out if at least 60 % of its sentences are in a longer answer; sentences are compared without case,
typography and punctuation. Invariant: the order stays, and the longest answer is always included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from turnout.text.fold import fold
from turnout.text.sentence import split

from .source import Passage, SourceAnswer

# The specification's numbers.
CONTAINED: Final = 0.6
SECTION_CHARACTERS: Final = 1500
# Sentences that are compared; of a longer answer, its beginning.
COMPARED: Final = 200
# An opening bracket, perhaps after invisible characters.
_labelled: Final = re.compile(
    r"[\s\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\U000e0000-\U000e0fff]*[\[\u3010\u3014\u301a\u27e6\uff3b]"
).match
_signs: Final = re.compile(r"[^\w\s]+")


class FusedSection(Struct, frozen=True):
    """The contribution of one source."""

    source: str
    text: str
    passages: tuple[Passage, ...] = ()


def fuse(answers: Sequence[tuple[str, SourceAnswer]]) -> list[FusedSection]:
    """The sections of the answers; a single one is not cut."""
    kept = [answers[place] for place in _distinct([answer.text for _, answer in answers])]
    texts = [answer.text.strip() if len(kept) == 1 else cut(answer.text.strip()) for _, answer in kept]
    return [FusedSection(source, text, answer.passages) for (source, answer), text in zip(kept, texts, strict=True)]


def _distinct(texts: Sequence[str]) -> list[int]:
    """The places of the texts that are not contained in a longer one."""
    plain = [_plain(text) for text in texts]
    # The longest first; of equally long ones the first.
    order = sorted(range(len(texts)), key=lambda place: (-len(plain[place]), place))
    kept: list[int] = []
    for place in order:
        sentences = [one for sentence in split(texts[place])[:COMPARED] if (one := _plain(sentence).strip())]
        inside = max((sum(f" {one} " in plain[other] for one in sentences) for other in kept), default=0)
        if not kept or not sentences or inside < CONTAINED * len(sentences):
            kept.append(place)
    return sorted(kept)


def _plain(text: str) -> str:
    return f" {' '.join(_signs.sub(' ', fold(text).text).split())} "


def cut(text: str, most: int = SECTION_CHARACTERS) -> str:
    """The beginning of a text, up to the end of a line; if the first line is too long, up to the end of a word."""
    if len(text) <= most:
        return text
    if text[most] == "\n":
        return text[:most].rstrip()
    head = text[:most]
    line = head.rfind("\n")
    if line > 0 and (kept := head[:line].rstrip()):
        return kept
    word = head[: most - 1].rfind(" ")
    return f"{head[: word if word > 0 else most - 1].rstrip()}…"


def quote(text: str) -> str:
    """Marks lines that begin like a label, so that a page cannot pass its text off as another source's."""
    return "\n".join(f"> {line}" if _labelled(line) else line for line in text.splitlines())


def label(sections: Sequence[FusedSection]) -> str:
    """The sections one below the other, each under its number and source."""
    return "\n\n".join(f"[{number}] {one.source}\n{quote(one.text)}" for number, one in enumerate(sections, 1))
