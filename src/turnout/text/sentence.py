"""Finds sentence ends, in a whole text or a stream, and enforces "at most N sentences".

Invariant: an end is reported only when no later text could change it, and depends on a bounded window around the stop,
never on how the text is cut into chunks. So a stream emits exactly `limit(text, n)`, and time is linear in the length.
The text is never rewritten: `"".join(split(text)) == text`.

A sentence ends
- at a stop (`. ! ? …` and similar), with its closing quotes, brackets and citations, before white space (`。！？।` need
  no white space);
- after an abbreviation, an initial or an ellipsis, only if what follows looks like a beginning (see `ending`);
- at a blank line, at the end of a heading, and at a newline before a list item, a heading or a fenced block;
- before the next number or letter of a list within a line: "1. Mix it 2. Bake it" is two;
- after a web or mail address, if a capitalised word follows;
- after a fenced block, which is one unit; an unclosed fence never ends.
A stretch without letters or digits ("---", "...", an emoji) belongs to the next sentence. When in doubt, a sentence
continues: one sentence too many is better than half a sentence.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from .ending import (
    BACK,
    CLOSERS,
    EMOTICON,
    LISTS,
    OPENERS,
    STOPS,
    SUPERSCRIPTS,
    UNSPACED,
    UNSPACED_SET,
    is_end,
    needs_of_words,
)

# Every repeat below is bounded, far above what prose needs. Each chunk reads the same window again, so without bounds a
# stream of single characters would take quadratic time. A gap wider than its bound is layout.
_KEPT: Final = 256
_FENCE_END_LENGTH: Final = 128
_AFTER_STOP: Final = f"[{re.escape(STOPS + CLOSERS)}]"
_CITATION: Final = r"(?:\[\^?\d{1,3}\]|“(?=\s|\Z))"
# "What?Then" and "over.The end" lack a space; "asyncio.Queue" is one word.
_STOP: Final = (
    rf"[{STOPS}](?:(?<=[{UNSPACED}])|(?![^\W_{SUPERSCRIPTS}])|(?<=[a-z0-9][.!?])(?=[A-Z]))"
    rf"{_AFTER_STOP}{{0,24}}(?:{_CITATION}{_AFTER_STOP}{{0,4}}){{0,4}}(?:[ ]{EMOTICON}(?=\s|\Z))?"
)
# Both are matched at their last character, so that no chunk can end inside: the bracket of "2)", the start of an
# address.
_BRACKET: Final = r"\)(?:(?<=[\s(][0-9a-z]\))|(?<=[\s(][0-9]{2}\)))"
_ADDRESS: Final = r"/(?:(?<=\bhttp://)|(?<=\bhttps://))|\.(?<=\bwww\.)|(?<=\w)@"
_PAUSE: Final = re.compile(rf"(?:\n|({_ADDRESS})|{_STOP}|{_BRACKET})(?=(\s{{0,64}})(\S{{0,24}}))")
_AFTER_ADDRESS: Final = re.compile(r"(\s{1,64})(\S{0,24})")
_SPACE: Final = re.compile(r"\s")
_DOT_BULLETS: Final = "•⁃‣◦"
_BULLET: Final = rf"(?:[-*+–—{_DOT_BULLETS}]|#{{1,6}})"
# The number or letter before the stop or bracket of a list item, with the gap before it.
_ITEM: Final = re.compile(rf"(?:\A|\s)\s{{0,7}}(?:[{_DOT_BULLETS}] ?)?(\(?)(\d{{1,3}}|[a-z])\Z")
_ITEM_BACK: Final = 14
_BEFORE_LETTER: Final = f"({_DOT_BULLETS}"
_LINE: Final = re.compile(rf"((?:\s|>){{0,64}})({_BULLET}[^\S\n])?(\S{{0,24}})")
_NUMBER: Final = re.compile(
    rf"[*_{_DOT_BULLETS}]{{0,3}}(?:(?:\d{{1,3}}|[a-z]|[ivx]{{2,4}})\.\)?|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}})\))[*_]{{0,3}}"
)
# "J." may begin a wrapped line as well as a list item: no end before it, and none after it.
_INITIAL: Final = re.compile(r"[*_]{0,3}(?:[A-Z]|[IVX]{2,4})\.[*_]{0,3}")
_MARKER_SO_FAR: Final = re.compile(
    rf"{_BULLET}|[*_{_DOT_BULLETS}]{{0,3}}\(?[0-9a-zA-Z]{{0,4}}[.)]{{0,2}}[*_]{{0,3}}|`+|~+"
)
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_FENCE_END: Final = re.compile(r"\n(?:[^\S\n]|>){0,32}(`{3,32}|~{3,32})[^\S\n]{0,32}(?=\n)")
_WORD_CHARACTER: Final = re.compile(r"[^\W_]")


def split(text: str) -> list[str]:
    """The sentences of `text`, each with the white space that follows it."""
    cuts = [0]
    for end in _Scanner(text, final=True).ends():
        cut = end
        while cut < len(text) and text[cut].isspace():
            cut += 1
        cuts.append(cut)
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return [text[start:end] for start, end in pairwise(cuts)]


def limit(text: str, max_sentences: int | None) -> str:
    """The first `max_sentences` of `text`; if there are that many, without white space after the last."""
    stream = SentenceStream(max_sentences)
    return stream.feed(text) + stream.finish()


class SentenceStream:
    """Takes text in chunks of any size and returns it in whole sentences; `full` once the cap is reached."""

    def __init__(self, max_sentences: int | None = None) -> None:
        if max_sentences is not None and max_sentences < 1:
            raise ValueError(f"max_sentences is {max_sentences}; it must be at least 1, or None for no cap")
        self._left = max_sentences
        self._scanner = _Scanner("", final=False)
        self._held: list[str] = []  # the part of the open sentence that the scanner has dropped
        self._start = 0  # where the rest of that sentence begins in the scanner's text

    @property
    def full(self) -> bool:
        return self._left == 0

    def feed(self, chunk: str) -> str:
        """The text that can be emitted after this chunk."""
        return "".join(self.take_sentences(chunk))

    def finish(self) -> str:
        """The text that can be emitted at the end of the stream."""
        return "".join(self.take_rest())

    def take_sentences(self, chunk: str) -> list[str]:
        """The sentences that are complete after this chunk, each with the white space before it."""
        if self.full:
            return []
        self._scanner.text += chunk
        out: list[str] = []
        for end in self._scanner.ends():
            out.append(self._take(end))
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    out[-1] = out[-1].rstrip()
                    return out
        # Not after every chunk, because it copies the text that is kept.
        if (gone := self._scanner.pos - BACK) > _KEPT:
            if gone > self._start:
                self._held.append(self._scanner.text[self._start : gone])
            self._start = max(0, self._start - gone)
            self._scanner.forget(gone)
        return out

    def take_rest(self) -> list[str]:
        """The remaining sentences at the end of the stream, and the rest of the text, perhaps only white space."""
        self._scanner.final = True
        out = self.take_sentences("")
        if self._left == 0:
            return out
        rest = self._take(len(self._scanner.text))
        if self._left == 1 and rest and not rest.isspace():
            self._left = 0
            rest = rest.rstrip()
        return [*out, rest] if rest else out

    def _take(self, end: int) -> str:
        sentence = "".join(self._held) + self._scanner.text[self._start : end]
        self._held.clear()
        self._start = end
        return sentence


# Results of a step that found no end; offsets are never negative.
_MOVED: Final = -1
_WAIT: Final = -2


class _Scanner:
    """Scans `text` once and reports sentence ends; until `final`, text may be appended between two scans."""

    def __init__(self, text: str, *, final: bool) -> None:
        self.text = text
        self.final = final
        self.pos = 0
        self._line_start = True
        self._heading = False
        self._fence = ""
        self._fence_opening = False
        self._has_word = False
        self._searched = 0
        self._begin = 0
        """Where the sentence begins; negative if that text was dropped."""
        self._address = False
        self._address_start = 0
        self._next_item = ("", 0)
        """The mark and the number of the next item of the list in this line."""

    def ends(self) -> Iterator[int]:
        """Each end in the text so far, until the next one needs more text."""
        while True:
            if self._fence:
                end = self._in_fence()
            elif self._line_start:
                end = self._at_line_start()
            elif self._address:
                end = self._in_address()
            else:
                end = self._in_line()
            if end == _WAIT:
                return
            if end != _MOVED and self._worded(end):
                self._has_word = False
                self._begin = end
                yield end

    def forget(self, count: int) -> None:
        """Drop the first `count` characters, which no later decision needs."""
        self._worded(count)
        self.text = self.text[count:]
        self.pos -= count
        self._searched -= count
        self._begin -= count
        self._address_start -= count

    def _worded(self, end: int) -> bool:
        if end > self._searched:
            self._has_word = self._has_word or _WORD_CHARACTER.search(self.text, self._searched, end) is not None
            self._searched = end
        return self._has_word

    def _in_line(self) -> int:
        text = self.text
        for pause in _PAUSE.finditer(text, self.pos):
            run, address, gap, head = pause.group(0, 1, 2, 3)
            if run == "\n":
                self.pos = pause.end()
                self._line_start = True
                ends_heading, self._heading = self._heading, False
                return pause.start() if ends_heading else _MOVED
            if address:
                self._address = True
                self.pos = self._address_start = pause.end()
                return _MOVED
            settled = self.final or pause.end(3) < len(text)
            # A stop inside a word or a number: "3.14", "example.org", "f(x.y)".
            if settled and not gap and head and not head[0].isupper() and UNSPACED_SET.isdisjoint(run):
                continue
            item = _item_before(pause)
            verdict = self._is_item(item, pause, settled) if item else False
            if verdict is False and run != ")":
                item, verdict = None, is_end(pause, settled)
                if verdict and self._opens_with_time(pause):
                    verdict = False
            if verdict is None:
                self.pos = pause.start()
                return _WAIT
            if verdict:
                self.pos = pause.end()
                return item.start() if item else self.pos
        self.pos = len(text)
        return _WAIT

    def _is_item(self, item: re.Match[str], pause: re.Match[str], settled: bool) -> bool | None:
        """Whether a number or letter marks an item: at the beginning of a sentence, next in its list, or first after a
        colon. None as long as it is not certain that words follow."""
        run, gap, head = pause.group(0, 2, 3)
        mark, number = item[1] + run, int(item[2]) if item[2].isdecimal() else ord(item[2])
        is_next = (mark, number) == self._next_item
        is_first = number in (1, ord("a")) and item.string[: item.start()][-1:] == ":"
        if not (is_next or is_first or not self._worded(item.start())):
            return False
        lead = head.lstrip(OPENERS)
        if not lead:
            return None if not settled else False
        if not gap or not lead[0].isalnum():
            return False
        self._next_item = (mark, number + 1)
        return True

    def _opens_with_time(self, pause: re.Match[str]) -> bool:
        """Whether the sentence so far is only a time: "At 5 a.m. Mr. Smith", "By Jan. Apple had"."""
        if pause[0] != "." or pause.start() - self._begin > BACK:
            return False
        first, *rest = self.text[max(self._begin, 0) : pause.start()].split() or [""]
        return (
            len(rest) in (1, 2) and first in LISTS.before_time and needs_of_words().get(rest[-1].lower()) == "capital"
        )

    def _in_address(self) -> int:
        """Scan to the end of an address, which is white space; stops before it belong to the sentence."""
        text = self.text
        space = _SPACE.search(text, self.pos)
        if space is None:
            self.pos = len(text)
            return _WAIT
        at = self.pos = space.start()
        after = _AFTER_ADDRESS.match(text, at)
        assert after  # noqa: S101  (it begins with the space)
        if not self.final and after.end() == len(text):
            return _WAIT
        self._address = False
        low = max(at - BACK, 0)
        bare = text[low:at].rstrip(STOPS + CLOSERS)
        # Not back to the start of the address, or "www." would be matched again.
        self.pos = max(low + len(bare), self._address_start)
        lead = after[2].lstrip(OPENERS)
        # "https://example.org API" is one thing, "https://example.org It" two, and so are two addresses.
        begins = (lead[:1].isupper() and lead[1:2].islower()) or lead.startswith(("http://", "https://"))
        return at if begins and self.pos == at and bare[-1:] not in ",;:" else _MOVED

    def _at_line_start(self) -> int:
        start = self.pos
        line = _LINE.match(self.text, start)
        assert line  # noqa: S101  (all of the pattern is optional)
        indent, bullet, head = line.groups()
        if "\n" in indent:
            self.pos += indent.rindex("\n") + 1
            self._heading = False
            self._next_item = ("", 0)
            return start
        if bullet:
            # A number or a fence may follow, so this is still the line start; a bullet alone is no sentence.
            self.pos = line.end(2)
            self._heading = bullet[0] == "#"
            return start
        # Do not wait for a head that cannot become a marker, or text without spaces would be held back.
        settled = self.final or line.end() < len(self.text)
        if not settled and (not head or _MARKER_SO_FAR.fullmatch(head)):
            return _WAIT
        self._line_start = False
        self.pos = line.start(3)
        if fence := _FENCE.match(head):
            self._fence, self._fence_opening = fence[0], True
            self.pos += fence.end()
            return start
        if _NUMBER.fullmatch(head):
            self.pos = line.end()
            if item := _ITEM.search(marked := head.strip("*_").rstrip(".)")):
                number = int(item[2]) if item[2].isdecimal() else ord(item[2])
                self._next_item = (item[1] + head.strip("*_")[len(marked) :], number + 1)
            return start
        if _INITIAL.fullmatch(head):
            self.pos = line.end()
        return _MOVED

    def _in_fence(self) -> int:
        text = self.text
        if self._fence_opening:
            newline = text.find("\n", self.pos)
            line_end = len(text) if newline < 0 else newline
            # Backticks later on the opening line make it inline code: ```like this```.
            if self._fence[0] == "`" and (tick := text.find("`", self.pos, line_end)) >= 0:
                self._fence = ""
                self.pos = tick
                return _MOVED
            self.pos = line_end
            if newline < 0:
                return _WAIT
            self._fence_opening = False
        for fence in _FENCE_END.finditer(text, self.pos):
            if fence[1].startswith(self._fence):
                self._fence = ""
                self.pos = fence.end()
                return self.pos
        newline = text.rfind("\n", max(self.pos, len(text) - _FENCE_END_LENGTH))
        self.pos = len(text) if newline < 0 else newline
        return _WAIT


def _item_before(pause: re.Match[str]) -> re.Match[str] | None:
    """The number or letter before a stop or bracket that makes it a list marker, if there is one."""
    start = pause.start()
    if pause[0] not in (".", ")", ".)") or not (mark := pause.string[start - 1 : start]).isalnum():
        return None
    # Most words end in a letter, and a letter marks an item only if it stands alone.
    before = pause.string[start - 2 : start - 1]
    if mark.isalpha() and not (before in _BEFORE_LETTER or before.isspace()):
        return None
    return _ITEM.search(pause.string, max(0, start - _ITEM_BACK), start)
