"""An answer on its way to the reader: whole sentences, no more than the policy allows, each citation checked before it
leaves.

Invariant: what is stored is what was emitted, to the character; a citation of the notes that does not hold is never
said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnout.apps.event import Event
from turnout.search.citation import apply
from turnout.text.sentence import SentenceStream, split

from .notes import NotePassage

_MARKS = re.compile(r"\s*(?:\[\d{1,2}\]){1,8}")
_NUMBER = re.compile(r"\[(\d{1,2})\]")


class SpokenSentence(Event, frozen=True, tag="sentence"):
    """A sentence that is finished: it can be spoken now."""

    number: int
    """From 1."""
    text: str


class NoteCitation(Event, frozen=True, tag="citation"):
    """What a number in an answer stands for."""

    number: int
    file: str
    heading: tuple[str, ...]
    start: int
    end: int


class Speaking:
    """Text in pieces of any size becomes sentences; `full` once no more are allowed."""

    def __init__(self, max_sentences: int | None, notes: Sequence[NotePassage]) -> None:
        self._stream = SentenceStream(max_sentences)
        self._notes = notes
        self._sections = [note.text for note in notes]
        self._before = ""
        self.said: list[SpokenSentence] = []

    @property
    def full(self) -> bool:
        return self._stream.full

    @property
    def text(self) -> str:
        """All that was emitted."""
        return "".join(sentence.text for sentence in self.said)

    def feed(self, piece: str) -> list[SpokenSentence]:
        return self._take(self._stream.feed(piece))

    def finish(self) -> list[SpokenSentence]:
        return self._take(self._stream.finish())

    def cited(self) -> list[NoteCitation]:
        """The notes that the answer cites."""
        numbers = sorted({int(number) for number in _NUMBER.findall(self.text)}) if self._notes else []
        there = [(number, self._notes[number - 1]) for number in numbers if 0 < number <= len(self._notes)]
        return [NoteCitation(number, one.file, one.heading, one.start, one.end) for number, one in there]

    def _take(self, whole: str) -> list[SpokenSentence]:
        made: list[SpokenSentence] = []
        for sentence in split(whole):
            text = self._check(sentence) if self._notes else sentence
            self._before = sentence
            # Of a sentence that was a citation alone its stop may be left: that is nothing to say.
            if text and (text == sentence or any(map(str.isalnum, text))):
                made.append(SpokenSentence(len(self.said) + len(made) + 1, text))
        self.said += made
        return made

    def _check(self, sentence: str) -> str:
        """The sentence with the citations that hold. Some models put one behind the stop: it is the sentence's before
        it, which has left already, and is checked with that."""
        marks = _MARKS.match(sentence)
        behind = ""
        if marks is not None and self._before:
            bare = self._before.rstrip()
            kept = apply(f"{bare}{marks[0].strip()}", self._sections).sentences[-1].kept
            behind = "".join(f"[{number}]" for number in kept)
            gap = marks[0][: len(marks[0]) - len(marks[0].lstrip())]
            behind = f"{gap}{behind}" if behind else ""
            sentence = sentence[marks.end() :]
        return behind + (apply(sentence, self._sections).render() if sentence else "")
