"""What a sentence states, as far as its words tell: its subject matter, its numbers, and what it negates.

Words are compared by key: endings are cut off, synonyms share a key, and an opposite is the key negated. There is no
grammar and no model: a word counts as negated within a few words of a negation in the same clause. Time is linear in
the length.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from msgspec import Struct

from turnout.text.fold import fold
from turnout.text.match import UNSPACED
from turnout.text.sentence import split

from .number import DAY, DECADE, MONTH, PATTERN, VERSION, Number, read_number
from .vocabulary import DENIED, NOT_SO, SO, key_of, lists, months, strip_accents, units

# A line with a date and at most this many words is a dateline: "Originally published June 1, 2018 at 1:49 pm".
DATELINE: Final = 4
# Months that are also other words count only beside a number.
_AMBIGUOUS_MONTHS: Final = frozenset({"may", "march", "mar", "mars", "mai", "marz", "sept", "jan", "dec", "sep"})
_CURRENCIES: Final = frozenset({"usd", "eur", "gbp", "jpy"})
# Endings of ordinals in digits: 1st, 2nd, 3rd, 4th.
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th"})
_OF_A_MONTH: Final = _ORDINALS | {"of", "de", "er", "del"}

_TOKEN: Final = re.compile(
    r"(?P<iso>\b\d{4}([-./])\d\d\2\d\d)(?!\d)|(?P<day>\b\d{1,2}([./])\d{1,2}\4\d{4})(?!\d)"
    rf"|(?P<number>(?:(?<![\w.,])-)?(?:{PATTERN}))|(?P<unspaced>[{UNSPACED}])"
    rf"|(?P<word>[^\W\d_{UNSPACED}]+(?:\d\w*|(?:'[^\W\d_]+)*))"
    r"|(?P<sign>°[cf]?|[%$€£¥])|(?P<stop>[,;:()\[\]\"\n.!?|]|(?<=\s)-(?=\s))"
)
_FIRST_WORD: Final = re.compile(r"[^\W\d_]{3,12}")
_DAY_LAST: Final = re.compile(r"\b\d{1,2}\.\s+\Z")


class Statement(Struct, frozen=True):
    """What a sentence states."""

    words: dict[str, int]
    """By key, how the word occurs: SO, NOT_SO or both, and whether it is DENIED."""
    numbers: tuple[Number, ...]
    negated: tuple[frozenset[str], ...]
    """The words that each negation reaches."""
    heads: frozenset[str]
    """The main word of each negation: "open" in "is not open to cars"."""
    is_dateline: bool
    """It is little more than a date, which then applies to the lines around it."""
    spelled: dict[str, str]
    """By key, the first word as it was written, folded."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it; "am 5. Mai" is not cut."""
    joined: list[str] = []
    for sentence in split(text):
        if joined and is_month_of(joined[-1], sentence):
            joined[-1] += sentence
        else:
            joined.append(sentence)
    return joined


def is_month_of(before: str, sentence: str) -> bool:
    """Whether the text before ends with a day ("am 5.") whose month begins the sentence."""
    word = _FIRST_WORD.match(sentence)
    return bool(word and _DAY_LAST.search(before[-8:]) and strip_accents(word[0].lower()) in months())


def read_statement(text: str, lang: str) -> Statement:
    return _Reader(text, lang).read()


class _Token(Struct):
    text: str
    """Without accents."""
    raw: str
    kind: str
    clause: int
    joined: bool
    """No character is between it and the token before."""


def _day(token: _Token) -> int:
    """The token as a day of a month; 0 if it cannot be one."""
    return int(token.text) if token.kind == "number" and len(token.text) <= 2 and 1 <= int(token.text) <= 31 else 0


def _date(year: int, month: int, day: int, spelled: str) -> list[Number]:
    units = ("", MONTH, f"{DAY}{month}")
    return [Number(value, unit, spelled=spelled) for value, unit in zip((year, month, day), units, strict=True)]


class _Reader:
    """Reads one sentence."""

    def __init__(self, text: str, lang: str) -> None:
        self.lang, self.lists = lang, lists(lang)
        self.asks = text.rstrip(' \n"”»)').endswith("?")
        self.tokens = self._tokenize(fold(text).text)

    def _tokenize(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        clause = end = 0
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            if kind == "stop":
                clause += 1
                continue
            joined = match.start() == end
            end = match.end()
            pieces = [match[0]]
            if kind == "word" and "'" in match[0]:
                # "isn't" negates, "company's" is "company", "l'eau" and "n'est" are two words each.
                pieces = ["not"] if match[0].endswith("n't") else match[0].split("'")
            for piece in pieces:
                word = strip_accents(piece)
                if word in self.lists.breaks:
                    clause += 1
                tokens.append(_Token(word, piece, kind, clause, joined))
        return tokens

    def read(self) -> Statement:
        numbers = self._numbers()
        words: dict[str, int] = {}
        spelled: dict[str, str] = {}
        reached, scopes = self._negations(self.lists.negation)
        denied, _ = self._negations(self.lists.denial)
        keys: list[str] = []
        for at, token in enumerate(self.tokens):
            key, sign = "", SO
            if token.kind in ("word", "unspaced") and self._is_content(at):
                key, sign = key_of(token.text, self.lang)
                if at in reached:
                    sign = SO + NOT_SO - sign
                words[key] = words.get(key, 0) | sign | (DENIED if at in denied else 0)
                spelled.setdefault(key, token.text)
            keys.append(key)
        negated = tuple(frozenset(keys[at] for at in scope if keys[at]) for scope in scopes)
        is_dateline = len(words) <= DATELINE and any(number.unit.startswith(DAY) for number in numbers)
        return Statement(words, numbers, negated, self._heads(scopes, keys), is_dateline, spelled)

    def _heads(self, scopes: list[list[int]], keys: list[str]) -> frozenset[str]:
        """The first content word after each negation, or the last before it."""
        heads: set[str] = set()
        for scope in scopes:
            content = (keys[at] for at in scope if keys[at] and self.tokens[at].text not in self.lists.light)
            heads.update(islice(content, 1))
        return frozenset(heads)

    def _is_content(self, at: int) -> bool:
        word, known = self.tokens[at].text, self.lists
        if word in known.particle:
            after = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
            return after is None or after.clause != self.tokens[at].clause
        if word in known.opposite:
            return True
        if len(word) == 1 and word.isascii():
            return False
        return not (word in known.plain or word in known.negation or word in known.number or word in known.scale)

    def _negations(self, cues: frozenset[str]) -> tuple[set[int], list[list[int]]]:
        """The negated tokens, and the tokens that each negation reaches."""
        left, right = self.lists.reach
        reached: set[int] = set()
        scopes = []
        # "Didn't it fall out?" denies nothing.
        tokens = [] if self.asks else self.tokens
        for at, token in enumerate(tokens):
            if token.raw not in cues or token.kind != "word":
                continue
            after = tokens[at + 1] if at + 1 < len(tokens) else None
            if after and (
                f"{token.text} {after.text}" in self.lists.no_negation
                or (token.text == "no" and after.kind == "number")
            ):
                continue
            near = (*range(at + 1, min(len(tokens), at + right + 1)), *range(at - 1, max(-1, at - left - 1), -1))
            scope = [other for other in near if tokens[other].clause == token.clause]
            reached.update(scope)
            scopes.append(scope)
        return reached, scopes

    def _numbers(self) -> tuple[Number, ...]:
        numbers: list[Number] = []
        at = 0
        while at < len(self.tokens):
            more, at = self._number(at, numbers)
            numbers += more
        return tuple(numbers)

    def _number(self, at: int, before: list[Number]) -> tuple[list[Number], int]:
        """The numbers that begin at a token, given those before it, and the token to continue with."""
        token, known = self.tokens[at], self.lists
        if token.kind == "iso":
            year, month, day = map(int, re.split("[-./]", token.text))
            return _date(year, month, day, token.text), at + 1
        if token.kind == "day":
            one, two, year = map(int, re.split("[./]", token.text))
            day, month = (two, one) if "/" in token.text and self.lang == "en" else (one, two)
            return _date(year, month, day, token.text), at + 1
        if token.kind == "word" and token.text in known.month:
            return self._month(at, before)
        if token.kind == "number":
            read = read_number(token.text.lstrip("-"), comma=self.lang != "en")
            if read is None:
                return [Number(0, VERSION + token.text, spelled=token.text)], at + 1
            value, grain = read
            return self._finish(at, at + 1, -value if token.text[0] == "-" else value, grain)
        if token.kind == "word" and token.text in known.number:
            value, end = self._spelled_out(at)
            return self._finish(at, end, value, 0.0)
        return [], at + 1

    def _month(self, at: int, before: list[Number]) -> tuple[list[Number], int]:
        """A month, with the day before or after it: 5 May, the 5th of May, May 5."""
        name = self.tokens[at].text
        month = self.lists.month[name]
        if at + 1 < len(self.tokens) and (day := _day(self.tokens[at + 1])):
            return [Number(month, MONTH, spelled=name), Number(day, f"{DAY}{month}", spelled=f"{name} {day}")], at + 2
        for back in range(at - 1, max(-1, at - 4), -1):
            if (day := _day(self.tokens[back])) and before and before[-1].value == day:
                before[-1] = Number(day, f"{DAY}{month}", spelled=f"{day} {name}")
                return [Number(month, MONTH, spelled=name)], at + 1
            if self.tokens[back].text not in _OF_A_MONTH:
                break
        beside = at + 1 < len(self.tokens) and self.tokens[at + 1].kind == "number"
        if name in _AMBIGUOUS_MONTHS and not beside:
            return [], at + 1
        return [Number(month, MONTH, spelled=name)], at + 1

    def _spelled_out(self, at: int) -> tuple[float, int]:
        """The value of a number in words and the token after it: "two hundred and fifty"."""
        known, value = self.lists, self.lists.number[self.tokens[at].text]
        at += 1
        while at < len(self.tokens):
            word = self.tokens[at].text
            if word == known.joint and value >= 100 and at + 1 < len(self.tokens):
                word = self.tokens[at + 1].text
            more = known.number.get(word, 0)
            hundreds, tens = value >= 100 and value % 100 == 0, value % 100 >= 20 and value % 10 == 0
            if known.scale.get(word) == 100 and value < 100:
                value *= 100
            elif (hundreds and 0 < more < 100) or (tens and 0 < more < 10):
                value += more
            else:
                break
            at += 1 + (self.tokens[at].text == known.joint)
        return value, at

    def _finish(self, start: int, at: int, value: float, grain: float) -> tuple[list[Number], int]:
        """The number with the hedge, scale and unit around it."""
        known, tokens, named = self.lists, self.tokens, units()
        before = tokens[start - 1] if start else None
        spelled = " ".join(token.text for token in tokens[start:at])
        unit = named.get(before.text, "") if before and before.kind == "sign" else ""
        if unit and start > 1:
            before = tokens[start - 2]
        hedge = known.hedge.get(before.text, "") if before else ""
        if before and before.text in known.than and start > 1:
            hedge = known.compared.get(tokens[start - 2].text, "")
        rounded = 0.0
        after = tokens[at] if at < len(tokens) else None
        if after and after.joined and (after.text in _ORDINALS or after.text == "s"):
            if after.text == "s" and value % 10 == 0:
                unit = DECADE
            at += 1
        scale = known.scale.get(after.text, 0.0) if after else 0.0
        if after and after.text == "m" and unit in _CURRENCIES:
            scale = 1e6
        if scale:
            value, rounded = value * scale, grain * scale
            spelled += f" {after.text}" if after else ""
            at += 1
        after = tokens[at] if at < len(tokens) else None
        if after and not unit and after.text in named:
            unit = named[after.text]
        return [Number(value, unit, hedge, rounded, spelled)], at
