"""An answer while it is written: whole sentences, at most as many as the policy allows, with checked citations.

Invariant: the stored text is exactly what was emitted; a citation that the notes do not support is never emitted.
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
    """A finished sentence, which can be spoken now."""

    number: int
    """From 1."""
    text: str


class NoteCitation(Event, frozen=True, tag="citation"):
    """The passage of the notes that a number in an answer stands for."""

    number: int
    file: str
    heading: tuple[str, ...]
    start: int
    end: int


class AnswerSentences:
    """Turns pieces of text into sentences; `full` once no more are allowed."""

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
        known = [(number, self._notes[number - 1]) for number in numbers if 0 < number <= len(self._notes)]
        return [NoteCitation(number, one.file, one.heading, one.start, one.end) for number, one in known]

    def _take(self, whole: str) -> list[SpokenSentence]:
        first = len(self.said)
        for sentence in split(whole):
            text = self._check(sentence) if self._notes else sentence
            self._before = sentence
            # Of a sentence that was only a citation, the stop may be left: it is not emitted.
            if text and (text == sentence or any(map(str.isalnum, text))):
                self.said.append(SpokenSentence(len(self.said) + 1, text))
        return self.said[first:]

    def _check(self, sentence: str) -> str:
        """The sentence with its supported citations. Some models put a citation after the stop: it belongs to the
        sentence before, which was emitted already, and is checked with that."""
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
