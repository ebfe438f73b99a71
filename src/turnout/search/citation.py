"""The one check of citations: what a written answer says stands in the section it cites, or the citation goes.

An answer is taken apart into sentences with the sections they cite, `[1]`, `[2][3]`, `[1, 2]`; each citation is kept if
its section supports the sentence, by itself or together with the others cited. The outcome is a value that a terminal,
an HTTP answer and a page show each in their way. Nothing is read or asked.

Invariant: apart from citations nothing of an answer is changed, lost or moved: if all are kept, its text is the same.
An answer that comes in pieces is checked by the same steps, and to the same end, however it was cut.
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
from .support import (
    Claim,
    PassagePlace,
    ReadPassage,
    Supported,
    Unsupported,
    Why,
    check,
    read_claim,
    read_passage,
    weigh,
)
from .vocabulary import GUESSED_FROM, guess_language

__all__ = ["CitationStream", "PassagePlace", "Status", "Supported", "Unsupported", "Why", "apply", "check", "parse"]

# Sections that one sentence may cite; more are no citation but a list.
MOST_CITED: Final = 8
# How much more of a sentence sections must have together for those to be kept that do not support it alone.
ADDED: Final = 0.1
# Characters of passages that are compared with one answer, over all its sentences: three hundred sentences that cite
# eight sections of 1,500 characters each, and a few seconds of work at worst.
MOST_COMPARED: Final = 4_000_000
# What a sentence is followed by whose citations are all gone.
UNSUPPORTED: Final = " [unsupported]"

_NUMBERS: Final = r"\^?\d{1,3}(?:\s?[,;–-]\s?\^?\d{1,3}){0,16}"
# With the white space before it, and with the address that makes it a link in Markdown.
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
    """A citation as it stands in a sentence."""

    start: int
    end: int
    sections: tuple[int, ...]
    """Their numbers, from 1."""


class Sentence(Struct, frozen=True):
    """A sentence of an answer as it was written."""

    text: str
    """With the white space that follows it: the texts joined are the answer."""
    marks: tuple[Mark, ...] = ()
    is_code: bool = False
    """A fenced block: nothing in it is a citation."""

    @property
    def cited(self) -> tuple[int, ...]:
        """The sections it cites, each once."""
        return tuple(dict.fromkeys(number for mark in self.marks for number in mark.sections))

    @property
    def plain(self) -> str:
        """What it says: without citations, addresses, and what makes it an item of a list."""
        pieces, end = [], 0
        for mark in self.marks:
            pieces.append(self.text[end : mark.start])
            end = mark.end
        text = " ".join([*pieces, self.text[end:]])
        return _LINK.sub("]", _BULLET.sub("", text)).strip()


class Status(StrEnum):
    """What is known of a sentence."""

    SUPPORTED = "supported"
    """By at least one section that it cites."""
    UNSUPPORTED = "unsupported"
    """By none of them."""
    UNCITED = "uncited"
    """It cites nothing, and was not checked."""


class CheckedCitation(Struct, frozen=True):
    """A section that a sentence cites, and what became of it. Places in it are places in `sections`."""

    section: int
    """Its number, from 1."""
    result: Supported | Unsupported


class CheckedSentence(Struct, frozen=True):
    """A sentence of which every citation was checked."""

    text: str
    """Without the citations that were dropped."""
    status: Status
    citations: tuple[CheckedCitation, ...] = ()
    """All that it had."""

    def render(self, mark: str = UNSUPPORTED) -> str:
        """As text, followed by `mark` if its citations are all gone."""
        if self.status != Status.UNSUPPORTED:
            return self.text
        bare = self.text.rstrip()
        return f"{bare}{mark}{self.text[len(bare) :]}"

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(one.section for one in self.citations if isinstance(one.result, Supported))

    @property
    def dropped(self) -> tuple[CheckedCitation, ...]:
        return tuple(one for one in self.citations if isinstance(one.result, Unsupported))


class CheckedAnswer(Struct, frozen=True):
    """An answer, sentence by sentence."""

    sentences: tuple[CheckedSentence, ...]

    def render(self, mark: str = UNSUPPORTED) -> str:
        """As text, with `mark` behind each sentence whose citations are all gone."""
        return "".join(one.render(mark) for one in self.sentences)


def parse(answer: str) -> tuple[Sentence, ...]:
    """The sentences of an answer, with the sections each cites."""
    stream = _Sentences()
    return (*stream.feed(answer), *stream.finish())


def apply(answer: str, sections: Sequence[str]) -> CheckedAnswer:
    """The answer without the citations that its sections do not bear out; the first section is number 1."""
    stream = CitationStream(sections)
    return CheckedAnswer((*stream.feed(answer), *stream.finish()))


class CitationStream:
    """The same for an answer that comes in pieces: each sentence once it is certain that no citation of its own
    follows, which some models put behind the full stop."""

    def __init__(self, sections: Sequence[str]) -> None:
        self._lang = guess_language("\n".join(sections[:1]))
        self._shelf = _Shelf(sections, self._lang)
        self._sentences = _Sentences()
        self._said = ""
        """As much of the answer as its language is guessed from."""
        self._guessed = 0
        """How long that was when it was last guessed: each time twice as much, so that time stays linear."""

    def feed(self, text: str) -> list[CheckedSentence]:
        return [self._check(sentence) for sentence in self._sentences.feed(text)]

    def finish(self) -> list[CheckedSentence]:
        return [self._check(sentence) for sentence in self._sentences.finish()]

    def _check(self, sentence: Sentence) -> CheckedSentence:
        if len(self._said) < GUESSED_FROM:
            self._said += sentence.text
            if len(self._said) >= 2 * self._guessed:
                self._guessed, self._lang = len(self._said), guess_language(self._said, self._lang)
        return _check_sentence(sentence, self._shelf, self._lang)


class _Sentences:
    """The sentences of an answer that comes in pieces, each with the citations behind its stop: "It is big. [1] Rome is
    old." The last one is held back."""

    def __init__(self) -> None:
        self._stream = SentenceStream()
        self._held = ""

    def feed(self, text: str) -> list[Sentence]:
        return [_read_sentence(whole) for piece in self._stream.take_sentences(text) if (whole := self._take(piece))]

    def finish(self) -> list[Sentence]:
        found = [_read_sentence(whole) for piece in self._stream.take_rest() if (whole := self._take(piece))]
        held, self._held = self._held, ""
        return [*found, _read_sentence(held)] if held else found

    def _take(self, piece: str) -> str:
        """Hold a piece back, or as much of it as does not belong to the one that is held; that, if it is whole."""
        cut = _belonging(self._held, piece)
        self._held += piece[:cut]
        if cut == len(piece):
            return ""
        whole, self._held = self._held, piece[cut:]
        return whole


def _belonging(before: str, text: str) -> int:
    """How many characters of a text belong to the sentence before it."""
    if not before:
        return 0
    space = len(text) - len(text.lstrip())
    end = before[-8:] + text[:space]
    if is_month_of(end, text[space:]):
        return len(text)
    marks = _MARKS_FIRST.match(text, space) if not end.endswith("\n") else None
    # In "[1] says so" the citation is a word of the sentence.
    return marks.end() if marks and not text[marks.end() : marks.end() + 1].islower() else space


class _Shelf:
    """The sections, each read when it is first cited, and how much more may be compared."""

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


def _check_sentence(sentence: Sentence, shelf: _Shelf, lang: str) -> CheckedSentence:
    cited = sentence.cited
    if not cited:
        return CheckedSentence(sentence.text, Status.UNCITED)
    citations = tuple(_judge(read_claim(sentence.plain, lang), cited, shelf))
    kept = {one.section for one in citations if isinstance(one.result, Supported)}
    status = Status.SUPPORTED if kept else Status.UNSUPPORTED
    return CheckedSentence(_drop(sentence, kept), status, citations)


def _judge(claim: Claim, cited: Sequence[int], shelf: _Shelf) -> Iterator[CheckedCitation]:
    """What each section does for a claim: by itself, or with the others where together they have more of it."""
    too_many = Unsupported(Why.TOO_LONG, f"It was not checked: a sentence cites {MOST_CITED} sections at most.")
    found = {number: shelf.find(number) if at < MOST_CITED else too_many for at, number in enumerate(cited)}
    there = {number: passage for number, passage in found.items() if isinstance(passage, ReadPassage)}
    results = {number: _place(weigh(claim, [passage]), [number]) for number, passage in there.items()}
    together = _place(weigh(claim, list(there.values())), list(there))
    alone = max((result.score for result in results.values() if isinstance(result, Supported)), default=-1.0)
    if isinstance(together, Supported) and together.score >= alone + ADDED:
        for number in there:
            mine = tuple(place for place in together.where if place.passage == number - 1)
            if mine and isinstance(results[number], Unsupported):
                results[number] = Supported(together.score, mine)
    for number, passage in found.items():
        yield CheckedCitation(number, results[number] if isinstance(passage, ReadPassage) else passage)


def _place(result: Supported | Unsupported, numbers: Sequence[int]) -> Supported | Unsupported:
    """The same, its places counted by the sections of the answer."""
    if isinstance(result, Unsupported):
        return result
    return replace(result, where=tuple(replace(place, passage=numbers[place.passage] - 1) for place in result.where))


def _drop(sentence: Sentence, kept: set[int]) -> str:
    """The sentence with the citations of these sections only."""
    text, pieces, end = sentence.text, [], 0
    gap = ""
    for mark in sentence.marks:
        # The white space before a citation that goes is that of the next one in the row.
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
        return Sentence(text, is_code=True)
    code = [span for match in _CODE.finditer(text) for span in range(*match.span())] if "`" in text else []
    inside = frozenset(code)
    marks = (
        Mark(match.start(), match.end(), numbers)
        for match in _MARK.finditer(text)
        if match.end() - 1 not in inside and (numbers := _read_numbers(match[1] or match[2] or match[3]))
    )
    return Sentence(text, tuple(marks))


def _read_numbers(spelled: str) -> tuple[int, ...]:
    """The sections a mark names: "1, 3-5" is four. 0 is none: `list[0]` is no citation."""
    numbers: list[int] = []
    for first, last in _RANGE.findall(spelled):
        numbers += range(int(first), min(int(last or first), int(first) + MOST_CITED) + 1)
    return tuple(dict.fromkeys(number for number in numbers if number))
