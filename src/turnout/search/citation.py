"""Checks the citations of a written answer: one that its section does not support is dropped.

An answer is split into sentences with the sections they cite, `[1]`, `[2][3]`, `[1, 2]`; a citation is kept if its
section supports the sentence, alone or together with the others cited. The result is a value that a terminal, an HTTP
answer and a page each render in their own way. Nothing here does I/O.

Invariant: only citations are removed; if all are kept, the text is unchanged. An answer that is streamed gives the same
result, however it was cut into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turnout.text.sentence import SentenceStream

from .statement import is_month_of
from .support import Claim, ReadPassage, Supported, Unsupported, Why, check, read_claim, read_passage, weigh
from .vocabulary import GUESSED_FROM, guess_language

__all__ = ["CitationStream", "Status", "Supported", "Unsupported", "Why", "apply", "check", "parse"]

# Sections that one sentence may cite; more than this is a list rather than a citation.
MOST_CITED: Final = 8
# How much more of a sentence all sections must support together than the best one alone, for those to be kept that do
# not support it by themselves.
ADDED: Final = 0.1
# Characters of passages that are compared with one answer, over all its sentences: three hundred sentences that cite
# eight sections of 1,500 characters each, and a few seconds of work at worst.
MOST_COMPARED: Final = 4_000_000
# Appended to a sentence that has lost all its citations.
UNSUPPORTED: Final = " [unsupported]"

_NUMBERS: Final = r"\^?\d{1,3}(?:\s?[,;–-]\s?\^?\d{1,3}){0,16}"
# With the white space before it, and with the URL that makes it a Markdown link.
_MARK: Final = re.compile(
    rf"[ \t\u00a0]{{0,4}}(?:\[\[({_NUMBERS})\]\]|\[({_NUMBERS})\]|【({_NUMBERS})(?:†[^】\n]{{0,80}})?】)"
    r"(?:\(https?://[^\s()]{0,2000}\))?"
)
_MARKS_FIRST: Final = re.compile(rf"(?:{_MARK.pattern}){{1,8}}\s*")
_CODE: Final = re.compile(r"`[^`\n]{1,2000}`")
_RANGE: Final = re.compile(r"(\d+)(?:\s?[–-]\s?\^?(\d+))?")
_BULLET: Final = re.compile(r"\A\s*(?:[-*+•#>]{1,6}\s+|\(?\d{1,3}[.)]\s+){1,4}")
_LINK: Final = re.compile(r"\]\([^\s()]{0,2000}\)")


class Mark(Struct, frozen=True):
    """A citation in a sentence."""

    start: int
    end: int
    sections: tuple[int, ...]
    """The cited numbers, from 1."""


class Sentence(Struct, frozen=True):
    """A sentence of an answer as it was written."""

    text: str
    """Includes the white space after it: the texts joined are the answer."""
    marks: tuple[Mark, ...] = ()

    @property
    def cited(self) -> tuple[int, ...]:
        """The sections it cites, each once."""
        return tuple(dict.fromkeys(number for mark in self.marks for number in mark.sections))

    @property
    def plain(self) -> str:
        """The text without citations, URLs and list markers."""
        pieces, end = [], 0
        for mark in self.marks:
            pieces.append(self.text[end : mark.start])
            end = mark.end
        text = " ".join([*pieces, self.text[end:]])
        return _LINK.sub("]", _BULLET.sub("", text)).strip()


class Status(StrEnum):
    """The outcome for a sentence."""

    SUPPORTED = "supported"
    """At least one cited section supports it."""
    UNSUPPORTED = "unsupported"
    """No cited section supports it."""
    UNCITED = "uncited"
    """It cites nothing and was not checked."""


class CheckedCitation(Struct, frozen=True):
    """A cited section and whether it supports the sentence. `PassagePlace.passage` counts the answer's sections."""

    section: int
    """Its number, from 1."""
    result: Supported | Unsupported


class CheckedSentence(Struct, frozen=True):
    """A sentence with its citations checked."""

    text: str
    """Without the dropped citations."""
    status: Status
    citations: tuple[CheckedCitation, ...] = ()
    """Kept and dropped ones."""

    def render(self, mark: str = UNSUPPORTED) -> str:
        """The text, followed by `mark` if all its citations were dropped."""
        if self.status != Status.UNSUPPORTED:
            return self.text
        bare = self.text.rstrip()
        return f"{bare}{mark}{self.text[len(bare) :]}"

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(one.section for one in self.citations if isinstance(one.result, Supported))


class CheckedAnswer(Struct, frozen=True):
    """An answer, sentence by sentence."""

    sentences: tuple[CheckedSentence, ...]

    def render(self, mark: str = UNSUPPORTED) -> str:
        """The text, with `mark` after each sentence that lost all its citations."""
        return "".join(one.render(mark) for one in self.sentences)


def parse(answer: str) -> tuple[Sentence, ...]:
    """The sentences of an answer, with the sections each cites."""
    stream = _SentenceReader()
    return (*stream.feed(answer), *stream.finish())


def apply(answer: str, sections: Sequence[str]) -> CheckedAnswer:
    """The answer without the citations that its sections do not support; the first section is number 1."""
    stream = CitationStream(sections)
    return CheckedAnswer((*stream.feed(answer), *stream.finish()))


class CitationStream:
    """Checks a streamed answer. A sentence is returned once it is certain that no citation of it follows: some models
    put them after the full stop."""

    def __init__(self, sections: Sequence[str]) -> None:
        self._lang = guess_language("\n".join(sections[:1]))
        self._sections = _Sections(sections, self._lang)
        self._sentences = _SentenceReader()
        self._sample = ""
        """The beginning of the answer, from which its language is guessed."""
        self._guessed = 0
        """Length of the sample at the last guess. It doubles from guess to guess, so that time stays linear."""

    def feed(self, text: str) -> list[CheckedSentence]:
        return [self._check(sentence) for sentence in self._sentences.feed(text)]

    def finish(self) -> list[CheckedSentence]:
        return [self._check(sentence) for sentence in self._sentences.finish()]

    def _check(self, sentence: Sentence) -> CheckedSentence:
        if len(self._sample) < GUESSED_FROM:
            self._sample += sentence.text
            if len(self._sample) >= 2 * self._guessed:
                self._guessed, self._lang = len(self._sample), guess_language(self._sample, self._lang)
        return _check_sentence(sentence, self._sections, self._lang)


class _SentenceReader:
    """Reads sentences from a streamed answer, each with the citations after its full stop: "It is big. [1] Rome is
    old." The last sentence is held back."""

    def __init__(self) -> None:
        self._stream = SentenceStream()
        self._held = ""

    def feed(self, text: str) -> list[Sentence]:
        return [_read_sentence(whole) for piece in self._stream.take_sentences(text) if (whole := self._take(piece))]

    def finish(self) -> list[Sentence]:
        sentences = [_read_sentence(whole) for piece in self._stream.take_rest() if (whole := self._take(piece))]
        held, self._held = self._held, ""
        return [*sentences, _read_sentence(held)] if held else sentences

    def _take(self, piece: str) -> str:
        """Hold a piece back; returns the sentence held before, once the piece shows that it is complete."""
        cut = _belonging(self._held, piece)
        self._held += piece[:cut]
        if cut == len(piece):
            return ""
        whole, self._held = self._held, piece[cut:]
        return whole


def _belonging(before: str, text: str) -> int:
    """How many leading characters of a text belong to the sentence before it."""
    if not before:
        return 0
    space = len(text) - len(text.lstrip())
    end = before[-8:] + text[:space]
    if is_month_of(end, text[space:]):
        return len(text)
    marks = _MARKS_FIRST.match(text, space) if not end.endswith("\n") else None
    # In "[1] says so" the citation is part of the next sentence.
    return marks.end() if marks and not text[marks.end() : marks.end() + 1].islower() else space


class _Sections:
    """The sections of an answer, each read when it is first cited, up to `MOST_COMPARED` characters in all."""

    def __init__(self, sections: Sequence[str], lang: str) -> None:
        self._sections = sections
        self._lang = lang
        self._read: dict[int, ReadPassage] = {}
        self._left = MOST_COMPARED

    def find(self, number: int) -> ReadPassage | Unsupported:
        if not 1 <= number <= len(self._sections):
            return Unsupported(Why.NO_SECTION, f"There is no section {number}; there are {len(self._sections)}.")
        self._left -= len(self._sections[number - 1])
        if self._left < 0:
            return Unsupported(
                Why.TOO_LONG, f"It was not checked: the answer cites more than {MOST_COMPARED} characters."
            )
        if number not in self._read:
            self._read[number] = read_passage(self._sections[number - 1], self._lang)
        return self._read[number]


def _check_sentence(sentence: Sentence, sections: _Sections, lang: str) -> CheckedSentence:
    cited = sentence.cited
    if not cited:
        return CheckedSentence(sentence.text, Status.UNCITED)
    citations = tuple(_judge(read_claim(sentence.plain, lang), cited, sections))
    kept = {one.section for one in citations if isinstance(one.result, Supported)}
    status = Status.SUPPORTED if kept else Status.UNSUPPORTED
    return CheckedSentence(_drop(sentence, kept), status, citations)


def _judge(claim: Claim, cited: Sequence[int], sections: _Sections) -> Iterator[CheckedCitation]:
    """Whether each section supports a claim: alone, or with the others if they support more of it together."""
    too_many = Unsupported(Why.TOO_LONG, f"It was not checked: a sentence cites {MOST_CITED} sections at most.")
    found = {number: sections.find(number) if at < MOST_CITED else too_many for at, number in enumerate(cited)}
    passages = {number: passage for number, passage in found.items() if isinstance(passage, ReadPassage)}
    results = {number: _place(weigh(claim, [passage]), [number]) for number, passage in passages.items()}
    together = _place(weigh(claim, list(passages.values())), list(passages))
    alone = max((result.score for result in results.values() if isinstance(result, Supported)), default=-1.0)
    if isinstance(together, Supported) and together.score >= alone + ADDED:
        for number in passages:
            where = tuple(place for place in together.where if place.passage == number - 1)
            if where and isinstance(results[number], Unsupported):
                results[number] = Supported(together.score, where)
    for number, passage in found.items():
        yield CheckedCitation(number, results[number] if isinstance(passage, ReadPassage) else passage)


def _place(result: Supported | Unsupported, numbers: Sequence[int]) -> Supported | Unsupported:
    """The result with its passages counted as the answer counts sections."""
    if isinstance(result, Unsupported):
        return result
    return replace(result, where=tuple(replace(place, passage=numbers[place.passage] - 1) for place in result.where))


def _drop(sentence: Sentence, kept: set[int]) -> str:
    """The sentence with only the citations of these sections."""
    text, pieces, end = sentence.text, [], 0
    gap = ""
    for mark in sentence.marks:
        # A dropped citation leaves the white space before it to the next one in the row.
        gap = gap if mark.start == end else ""
        written = text[mark.start : mark.end]
        gap = gap or written[: len(written) - len(written.lstrip())]
        staying = [number for number in mark.sections if number in kept]
        pieces.append(text[end : mark.start])
        if staying:
            whole = len(staying) == len(mark.sections)
            pieces += [gap, written.lstrip() if whole else "".join(f"[{number}]" for number in staying)]
            gap = ""
        end = mark.end
    return "".join([*pieces, text[end:]])


def _read_sentence(text: str) -> Sentence:
    if text.lstrip(" >").startswith(("```", "~~~")):
        return Sentence(text)  # nothing in a fenced block is a citation
    code = {at for match in _CODE.finditer(text) for at in range(*match.span())}
    marks = (
        Mark(match.start(), match.end(), numbers)
        for match in _MARK.finditer(text)
        if match.end() - 1 not in code and (numbers := _read_numbers(match[1] or match[2] or match[3]))
    )
    return Sentence(text, tuple(marks))


def _read_numbers(spelled: str) -> tuple[int, ...]:
    """The sections a mark names: "1, 3-5" names four. 0 is not one: `list[0]` is no citation."""
    numbers: list[int] = []
    for first, last in _RANGE.findall(spelled):
        numbers += range(int(first), min(int(last or first), int(first) + MOST_CITED) + 1)
    return tuple(dict.fromkeys(number for number in numbers if number))
