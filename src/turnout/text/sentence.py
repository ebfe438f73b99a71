"""Where a sentence ends: one scanner, fed in pieces or at once, that enforces "at most N sentences".

Invariant: an end is reported only when no later text could change it, and it depends on a bounded window around the
stop, never on how the text was cut into chunks. So what a stream emits equals `limit(text, n)` to the character, and
time is linear in the length. The text itself is never rewritten: `"".join(split(text)) == text`.

A sentence ends
- at a stop (`. ! ? …` and kin) with its closing quotes, brackets, citations, before white space; `。！？।` need none;
- there, after an abbreviation, an initial or an ellipsis, only if what follows looks like a beginning (see `Needs`);
- at a blank line, at the end of a heading, and at a newline before a list item, a heading or a fenced block;
- before the next number or letter of a list that goes on in its line: "1. Mix it 2. Bake it" is two;
- behind a web or mail address, if a capitalised word follows;
- behind a fenced block, which is one unit whatever stops its code has; a fence left open never ends.
A stretch without letter or digit ("---", "...", an emoji) is no sentence but the opening of the next. When in doubt the
text runs on: a sentence too many is a smaller fault than half a sentence.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final, Literal

from .words import Words

# What must follow a stop for it to end the sentence:
#   nothing  after an ordinary word: "It fell."
#   capital  after an abbreviation that often comes last, an ellipsis, a variable: "5 p.m. Then", not "5 p.m. today"
#   starter  after one that seldom does, an acronym, an initial: "the U.S. The law", not "the U.S. Congress"
#   break    after one that never does: "Dr. No" runs on, short of a new paragraph
Needs = Literal["nothing", "capital", "starter", "break"]


_LISTS: Final = Words("sentence", "en", "es")


@cache
def _needs() -> dict[str, Needs]:
    """What each abbreviation needs."""
    return {
        **dict.fromkeys(_LISTS.often_last, "capital"),
        **dict.fromkeys(_LISTS.seldom_last, "starter"),
        **dict.fromkeys(_LISTS.never_last, "break"),
    }


_DOTS: Final = ".…"
_STRONG: Final = "!?؟۔։።‼⁇⁈⁉‽"
_UNSPACED: Final = "。！？｡।॥။។"  # stops that end a sentence without white space after them
_STOPS: Final = _DOTS + _STRONG + _UNSPACED
# Emphasis and invisible marks close nothing: "**Dr.** Smith" must not read like a quoted "Dr."
_HOLLOW: Final = "*_\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_SUPERSCRIPTS: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_CLOSERS: Final = _HOLLOW + _SUPERSCRIPTS + "\"'”’»›)]}」』）】》〉｣`"
_OPENERS: Final = _HOLLOW + "\"'“‘«‹„‚([{「『（【《〈｢`¿¡<"
_UNSPACED_SET: Final = frozenset(_UNSPACED)
_CERTAIN_SET: Final = frozenset(_STRONG + _UNSPACED)

# Every repeat below is bounded, far above prose and small enough to look at again with each chunk: text that has to be
# seen twice is what would make a stream of single characters quadratic. A gap wider than its bound is layout.
_BACK: Final = 24
_KEPT: Final = 256
_FENCE_END_LENGTH: Final = 128
_AFTER_STOP: Final = f"[{re.escape(_STOPS + _CLOSERS)}]"
_CITATION: Final = r"(?:\[\^?\d{1,3}\]|“(?=\s|\Z))"
_EMOTICON: Final = r"[:;=][-'^]?[)(DPp/|*]"
# "What?Then" and "over.The end" have lost their space; "asyncio.Queue" never had one.
_STOP: Final = (
    rf"[{_STOPS}](?:(?<=[{_UNSPACED}])|(?![^\W_{_SUPERSCRIPTS}])|(?<=[a-z0-9][.!?])(?=[A-Z]))"
    rf"{_AFTER_STOP}{{0,24}}(?:{_CITATION}{_AFTER_STOP}{{0,4}}){{0,4}}(?:[ ]{_EMOTICON}(?=\s|\Z))?"
)
# Each is met at its last character, so that no chunk can end inside it: the bracket of "2)", what makes an address.
_BRACKET: Final = r"\)(?:(?<=[\s(][0-9a-z]\))|(?<=[\s(][0-9]{2}\)))"
_ADDRESS: Final = r"/(?:(?<=\bhttp://)|(?<=\bhttps://))|\.(?<=\bwww\.)|(?<=\w)@"
_PAUSE: Final = re.compile(rf"(?:\n|(?P<address>{_ADDRESS})|{_STOP}|{_BRACKET})(?=(\s{{0,64}})(\S{{0,24}}))")
_AFTER_ADDRESS: Final = re.compile(r"(\s{1,64})(\S{0,24})")
_SPACE: Final = re.compile(r"\s")
_DOT_BULLETS: Final = "•⁃‣◦"
_BULLET: Final = rf"(?:[-*+–—{_DOT_BULLETS}]|#{{1,6}})"
# What stands before the stop or bracket of an item of a list, with the gap before it.
_ITEM: Final = re.compile(rf"(?:\A|\s)\s{{0,7}}(?:[{_DOT_BULLETS}] ?)?(\(?)(\d{{1,3}}|[a-z])\Z")
_ITEM_BACK: Final = 14
_LINE: Final = re.compile(rf"((?:\s|>){{0,64}})({_BULLET}[^\S\n])?(\S{{0,24}})")
_NUMBER: Final = re.compile(
    rf"[*_{_DOT_BULLETS}]{{0,3}}(?:(?:\d{{1,3}}|[a-z]|[ivx]{{2,4}})\.\)?|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}})\))[*_]{{0,3}}"
)
# "J." may open a wrapped line as well as a list item: no end before it, and none after it.
_INITIAL: Final = re.compile(r"[*_]{0,3}(?:[A-Z]|[IVX]{2,4})\.[*_]{0,3}")
_MARKER_SO_FAR: Final = re.compile(
    rf"{_BULLET}|[*_{_DOT_BULLETS}]{{0,3}}\(?[0-9a-zA-Z]{{0,4}}[.)]{{0,2}}[*_]{{0,3}}|`+|~+"
)
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_FENCE_END: Final = re.compile(r"\n(?:[^\S\n]|>){0,32}(`{3,32}|~{3,32})[^\S\n]{0,32}(?=\n)")
_WORD_CHARACTER: Final = re.compile(r"[^\W_]")
_EMOTICON_SO_FAR: Final = re.compile(rf"[:;=]|{_EMOTICON}")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LAST_WORD: Final = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*\Z")
_ACRONYM: Final = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")


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
    """The first `max_sentences` of `text`; at the cap the last one loses its trailing white space."""
    stream = SentenceStream(max_sentences)
    return stream.feed(text) + stream.finish()


class SentenceStream:
    """Takes text in chunks of any size, gives it back in whole sentences, and is `full` once the cap is reached."""

    def __init__(self, max_sentences: int | None = None) -> None:
        if max_sentences is not None and max_sentences < 1:
            raise ValueError(f"max_sentences is {max_sentences}; it must be at least 1, or None for no cap")
        self._left = max_sentences
        self._scanner = _Scanner("", final=False)
        self._held: list[str] = []  # the open sentence, as far as the scanner has forgotten it
        self._start = 0  # where the rest of it begins in the scanner's text

    @property
    def full(self) -> bool:
        return self._left == 0

    def feed(self, chunk: str) -> str:
        """What may be emitted now."""
        return "".join(self.read(chunk))

    def finish(self) -> str:
        """What may be emitted now that no more text will come."""
        return "".join(self.read_rest())

    def read(self, chunk: str) -> list[str]:
        """The sentences that are certain now, each with the white space before it."""
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
        # In steps, not with every character: to forget is to copy what is kept.
        if (gone := self._scanner.pos - _BACK) > _KEPT:
            if gone > self._start:
                self._held.append(self._scanner.text[self._start : gone])
            self._start = max(0, self._start - gone)
            self._scanner.forget(gone)
        return out

    def read_rest(self) -> list[str]:
        """The same, now that no more text will come; at last what is no whole sentence, perhaps white space alone."""
        self._scanner.final = True
        out = self.read("")
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


# What a step found when it found no end; offsets are never negative.
_MOVED: Final = -1
_WAIT: Final = -2


class _Scanner:
    """Walks `text` once and reports sentence ends; until `final`, `text` may grow between two walks."""

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
        """Where the sentence begins; below 0 if that is forgotten."""
        self._address = False
        self._address_start = 0
        self._next_item = ("", 0)
        """How the next item of the list in this line is marked, and its number."""

    def ends(self) -> Iterator[int]:
        """Each end in the text so far; stops where the text is used up or the next end needs more of it."""
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
        """Drop `count` characters that no later decision can look at."""
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
            if pause[0] == "\n":
                self.pos = pause.end()
                self._line_start = True
                ends_heading, self._heading = self._heading, False
                return pause.start() if ends_heading else _MOVED
            if pause["address"]:
                self._address = True
                self.pos = self._address_start = pause.end()
                return _MOVED
            settled = self.final or pause.end(3) < len(text)
            item = _item_before(pause)
            verdict = self._is_item(item, pause, settled) if item else False
            if verdict is False and pause[0] != ")":
                item, verdict = None, _is_end(pause, settled)
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
        """Whether a number or letter marks an item: that with which a sentence begins, the next of its list, the first
        behind a colon. None while it is not certain that words follow it."""
        run, gap, head = pause.group(0, 2, 3)
        mark, number = item[1] + run, int(item[2]) if item[2].isdecimal() else ord(item[2])
        is_next = (mark, number) == self._next_item
        is_first = number in (1, ord("a")) and item.string[: item.start()][-1:] == ":"
        if not (is_next or is_first or not self._worded(item.start())):
            return False
        lead = head.lstrip(_OPENERS)
        if not lead:
            return None if not settled else False
        if not gap or not lead[0].isalnum():
            return False
        self._next_item = (mark, number + 1)
        return True

    def _opens_with_time(self, pause: re.Match[str]) -> bool:
        """Whether the sentence has no more than a time yet: "At 5 a.m. Mr. Smith", "By Jan. Apple had"."""
        if pause[0] != "." or pause.start() - self._begin > _BACK:
            return False
        first, *rest = self.text[max(self._begin, 0) : pause.start()].split() or [""]
        return len(rest) in (1, 2) and first in _LISTS.before_time and _needs().get(rest[-1].lower()) == "capital"

    def _in_address(self) -> int:
        """An address ends at white space; stops at its end are the sentence's."""
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
        low = max(at - _BACK, 0)
        bare = text[low:at].rstrip(_STOPS + _CLOSERS)
        # Not back to what made it an address: "www." is met once.
        self.pos = max(low + len(bare), self._address_start)
        lead = after[2].lstrip(_OPENERS)
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
            # What follows may be a number or a fence, so the line still starts; a bullet alone is no sentence.
            self.pos = line.end(2)
            self._heading = bullet[0] == "#"
            return start
        # A head that cannot become a marker is let through at once, lest text without spaces be held back.
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


def _is_end(pause: re.Match[str], settled: bool) -> bool | None:
    """Whether this stop ends a sentence; None while what follows it is not `settled` and too short to tell."""
    run, gap, head = pause.group(0, 2, 3)
    if not gap:
        if not settled and (not head or head[0] == "["):
            return None
        if run in (".", "?", "!") and head[:1].isupper():
            return _begins(head, run, _needed_after(run, pause.string, pause.start())) if settled else None
        # 「…。」と is reported speech inside its sentence.
        return bool(head) and not _UNSPACED_SET.isdisjoint(run) and not (run[-1] in "」』" and head[0] == "と")
    needs = _needed_after(run.partition(" ")[0], pause.string, pause.start())
    if needs == "break":
        return False
    # A line that ends here is as good as a beginning: whoever listens need not wait for the next one.
    if needs == "nothing" and run[-1] in _STOPS and "\n" in gap:
        return True
    if not head:
        return True if settled else None
    if (head[0] == "." and run[0] == ".") or (not settled and _EMOTICON_SO_FAR.fullmatch(head)):
        return False if head[0] == "." else None  # ". . ." goes on, and ":)" is the sentence's
    if needs == "nothing" and run[-1] in _STOPS:
        return not (head[0].islower() and run == "!" and _last_word(pause) in _LISTS.exclaiming)
    lead = head.lstrip(_OPENERS)
    if not lead:
        return None if not settled else False
    if needs == "nothing":
        return not (lead[0].islower() or lead[0] in ",;:–—")
    if needs == "capital":
        if lead[0].islower() or not lead[0].isalpha():
            return False
        # "well . . . I mean": it has no other capital to begin with.
        is_apart = run == "." and pause.string[pause.start() - 1 : pause.start()].isspace()
        if is_apart and lead[0] == "I" and lead[1:2] in ("", "'", "’"):
            return None if len(lead) == 1 and not settled else False
        # "z. B. Haus", "44 a. C.": the capital belongs to the abbreviation.
        return None if len(lead) == 1 and not settled else lead[1:2] != "."
    word = _LETTERS.match(lead)
    if word is None:
        return False
    if word.end() == len(lead) and not settled:
        return None
    # "U.S. A. Smith": one letter with a stop is an initial.
    return word[0] in _LISTS.starters and not (word.end() == 1 and lead[1:2] == ".")


def _item_before(pause: re.Match[str]) -> re.Match[str] | None:
    """The number or letter that a stop or bracket makes a marker, if that is what it stands behind."""
    start = pause.start()
    if pause[0] not in (".", ")", ".)") or not pause.string[start - 1 : start].isalnum():
        return None
    return _ITEM.search(pause.string, max(0, start - _ITEM_BACK), start)


def _begins(head: str, run: str, needs: Needs) -> bool:
    """Whether a word behind a stop begins a sentence although no space is between them."""
    if run != ".":
        return head[1:2].islower() or head[1:2] in ("'", "’")
    if needs != "nothing" or len(head) == 1:
        return False
    return head in _LISTS.starters or (head[-1] == "." and _needs().get(head[:-1].lower()) == "break")


def _last_word(pause: re.Match[str]) -> str:
    start = pause.start()
    found = _LAST_WORD.search(pause.string, max(0, start - _BACK), start)
    return found[0] if found else ""


def _needed_after(run: str, text: str, at: int) -> Needs:
    if run == ".":
        return _needed_after_word(text, at)
    if not _CERTAIN_SET.isdisjoint(run):
        return "nothing"
    if run[0] == "…" or run[1] in _DOTS:
        # "[...]" stands for words that were left out.
        return "break" if at and text[at - 1] == "[" and "]" in run else "capital"
    needs = _needed_after_word(text, at)
    quoted = run[1:].strip(_HOLLOW) != ""
    return "nothing" if quoted and needs != "capital" else needs


def _needed_after_word(text: str, at: int) -> Needs:
    low = at - _BACK if at > _BACK else 0
    space = text.rfind(" ", low, at)
    token = text[low if space < 0 else space + 1 : at]
    if known := _needs().get(token):
        return known
    if not token.isalnum():
        if not token or token[-1].isspace():
            # A stop apart from its word ends what an ellipsis apart from it may not.
            return "capital" if text[low:at].rstrip()[-1:] in ("", *_DOTS) else "nothing"
        last = _LAST_WORD.search(token)
        if last is None:
            return "nothing"
        token = last[0]
    if len(token) == 1 and token.lower() != token.upper():
        # "You and I. Did" is a pronoun, "Albert I. Jones" an initial.
        before = text[low:at].split()[-2:-1] if token == "I" else []  # noqa: S105 - a word
        return "starter" if token.isupper() and not (before and before[0].islower()) else "capital"
    if known := _needs().get(token.lower()):
        return known
    # In "Tuesday.Mr. Smith" the space is missing where the sentence ended.
    return "starter" if _ACRONYM.fullmatch(token) else _needs().get(token.rpartition(".")[2].lower(), "nothing")
