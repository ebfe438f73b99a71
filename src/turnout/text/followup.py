"""Does a question depend on the turns before it? A linear classifier over a few dozen features.

The rules of `reference` find words that point back. Most follow-ups have none: "any pets allowed?", "is the battery any
good?". They are short, name little that is new, take a thing for granted or compare without saying with what; a
question that names its own subject stands alone. No single feature is enough, so each has a weight, fitted on
conversations written for this purpose (`seeds/conversations`) and on questions of the seed sets, which stand alone.
`followup.toml` has the words of each language and the weights; no weight is set by hand.

Invariant: the answer is a function of the text and the turns before it; both are read up to a limit, in linear time. A
text in a language without a table depends on nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import log1p
from typing import Final, NamedTuple

from .fold import fold
from .words import Words, match_phrase, read_table

# Characters read of a text. The longest of 700 follow-ups written as examples has 60.
WINDOW: Final = 400
# How many of the last turns are read, and how much of each: a question seldom refers to more than two answers.
TURNS: Final = 4
TURN_WINDOW: Final = 1_000
# Words with the same first letters count as the same: painting, painted. Five letters tell most stems apart.
STEM: Final = 5
# Most words of a short question; twice as many characters in Chinese and Japanese.
SHORT: Final = 7
# The thresholds of the features about lengths and numbers of names.
LENGTHS: Final = (2, 4, 6, 8, 11)
COUNTS: Final = (0, 1, 2, 3)

_HAN: Final = r"\u3400-\u9fff々"
_KANA: Final = r"\u3040-\u30ff"
_words: Final = re.compile(rf"[{_HAN}{_KANA}]|(?:qu|[cdjlmnst])'(?=\w)|[^\W_]+(?:'[^\W_]+)*").findall
_is_east_asian: Final = re.compile(rf"[{_HAN}{_KANA}]").match
_kana: Final = re.compile(rf"[{_KANA}]").search
_runs: Final = re.compile(rf"[{_HAN}]+|[\u30a0-\u30ff]{{2,}}|[a-z0-9]{{2,}}").findall
_capitals: Final = re.compile(r"(?<=[\w,;:] )[A-ZÀ-Þ][^\W_]+").findall
_other_script: Final = re.compile(r"[\u0370-\u1cff\uac00-\ud7ff]").search
_EDGES: Final = " ?!.¿¡。？！…,;:"
_BRINGING: Final = frozenset('\n:"=')
_OPERATORS: Final = frozenset("+-*/^%x×÷·")
_SUM: Final = _OPERATORS | frozenset("0123456789.,()= ")
_WESTERN: Final = ("en", "es", "de", "fr")


_tables: Final = {code: Words(code, "followup") for code in (*_WESTERN, "zh", "ja")}


@cache
def _weights() -> dict[str, float]:
    return read_table("weights", "followup")


def leans(text: str, history: Sequence[str], *, past: bool = False) -> bool:
    """Whether a text in which no word points back needs these turns. `past`: it asks about a past event without naming
    its subject."""
    measured = measure(text, history, past=past) if history else {}
    weights = _weights()
    return bool(measured) and sum(weights.get(name, 0.0) * value for name, value in measured.items()) >= 0.0


class _Text(NamedTuple):
    flat: str
    """The folded text without punctuation around it."""
    words: list[str]
    code: str
    """The language."""

    @property
    def unspaced(self) -> bool:
        return self.code in ("zh", "ja")


def read_text(text: str) -> _Text | None:
    """The words of a text and its language; None if it has no words, another script or only arithmetic."""
    # Cut twice, so that invisible characters, which folding drops, take no room from visible ones.
    flat = fold(text[: 4 * WINDOW]).text[:WINDOW].strip(_EDGES)
    words = _words(flat)
    if not words or _other_script(flat) or _is_sum(flat):
        return None
    if 2 * sum(1 for word in words if _is_east_asian(word)) > len(words):
        return _Text(flat, words, "ja" if _kana(flat) else "zh")
    votes = {code: _vote(_tables[code], text, words) for code in _WESTERN}
    # The first of equals is English.
    return _Text(flat, words, max(votes, key=votes.__getitem__))


def _is_sum(flat: str) -> bool:
    """Whether the text is only numbers and operators, whose result depends on no earlier turn."""
    return _SUM.issuperset(flat) and not _OPERATORS.isdisjoint(flat)


def _vote(table: Words, text: str, words: list[str]) -> int:
    return sum(word in table.plain for word in words) + sum(mark in text.lower() for mark in table.marks)


def measure(text: str, history: Sequence[str], *, past: bool = False) -> dict[str, float]:
    """The features by name; empty for a text that cannot be read."""
    read = read_text(text)
    return dict(_measure(read, text, history, past=past)) if read is not None else {}


def _measure(read: _Text, text: str, history: Sequence[str], *, past: bool) -> Iterator[tuple[str, float]]:
    table = _tables[read.code]
    earlier = fold(" ".join(turn[:TURN_WINDOW] for turn in history[-TURNS:])).text
    known = {word[:STEM] for word in _words(earlier)}
    named = _names(read, table)
    old = {name for name in named if (name in earlier if read.unspaced else name in known)}
    new = len(named) - len(old)
    length = len(read.words) / 2 if read.unspaced else len(read.words)
    signs = _signs(read, table)
    short, little = length <= SHORT, new <= 1

    yield "always", 1.0
    yield read.code, 1.0
    yield "length", log1p(length)
    for most in LENGTHS:
        yield f"length <= {most}", float(length <= most)
    for most in COUNTS:
        yield f"named <= {most}", float(len(named) <= most)
        yield f"new <= {most}", float(new <= most)
    yield "old", float(bool(old))
    yield "old >= 2", float(len(old) >= 2)
    yield "past", float(past)
    for sign, found in signs.items():
        yield sign, float(found)
        yield f"{sign}, short", float(found and short)
        yield f"{sign}, little new", float(found and little)
    whole = not (signs["pronoun"] or signs["other"] or signs["opening"] or signs["edit"] or signs["reply"])
    yield "names itself", float(whole and new >= 2 and not signs["article"])
    yield "names one thing", float(whole and new == 1 and not signs["ends definite"])
    yield "defines", float(_begins(read, table.defining) and new >= 1 and whole and not signs["article first"])
    yield "definite old", float(any(name in known for name in _definite(read, table)))
    yield "definite old alone", float(any(name in known for name in _definite(read, table)) and not signs["within"])
    yield "ordinal", float(_has_ordinal(read, table, known))
    seen = text[:WINDOW] if text.isprintable() else "".join(filter(str.isprintable, text[: 4 * WINDOW]))[:WINDOW]
    # In German every noun has a capital.
    capitals = [] if read.code == "de" else [fold(name).text[:STEM] for name in _capitals(seen)]
    yield "new name", float(any(name not in earlier for name in capitals))
    yield "old name", float(any(name in earlier for name in capitals))
    yield "digits", float(any(character.isdigit() for character in read.flat))
    yield "question mark", float("?" in text or "？" in text)
    yield "brings", float(not _BRINGING.isdisjoint(text[: 4 * WINDOW]))
    yield "asked back", float(history[-1].rstrip()[-1:] in ("?", "？") and length <= 4)
    yield "fragment", float(not signs["asking"] and not signs["edit"] and length <= 4)


def _signs(read: _Text, table: Words) -> dict[str, bool]:
    words = read.words
    return {
        "pronoun": _has(read, table.pronoun) or any(_is_pronoun(words, at, table) for at in range(len(words))),
        "other": _has(read, table.other),
        "opening": _begins(read, table.opening),
        "reply": _begins(read, table.reply),
        "edit": _begins(read, table.edit),
        "asking": _has(read, table.asking) if read.unspaced else _begins(read, table.asking),
        "own": _has(read, table.own),
        "comparing": _has(read, table.comparing),
        "me": _has(read, table.me),
        "within": _has(read, table.within)
        if read.unspaced
        else any(word in table.within and len(after) > 2 for word, after in pairwise(words)),
        "article": not table.article.isdisjoint(words),
        "article first": any(word in table.article for word in words[2:3]),
        "ends definite": any(word in table.article for word in words[-3:-1]),
    }


def _has(read: _Text, words: frozenset[str]) -> bool:
    return any(word in read.flat for word in words) if read.unspaced else not words.isdisjoint(read.words)


def _begins(read: _Text, openings: frozenset[str]) -> bool:
    return read.flat.startswith(tuple(openings)) if read.unspaced else match_phrase(read.words, openings) > 0


def _is_pronoun(words: list[str], at: int, table: Words) -> bool:
    """Whether an article stands for a noun: "wie richte ich den ein", "on peut la faire"."""
    if words[at] not in table.article or not table.after_pronoun:
        return False
    return at + 1 == len(words) or words[at + 1] in table.after_pronoun


def find_names(text: str) -> set[str]:
    """The stems of the words that name something; for Chinese and Japanese, runs of characters."""
    read = read_text(text)
    return _names(read, _tables[read.code]) if read is not None else set()


def _names(read: _Text, table: Words) -> set[str]:
    if not read.unspaced:
        return {word[:STEM] for word in read.words if len(word) > 1 and word not in table.plain}
    flat = read.flat
    for plain in sorted(table.plain, key=len, reverse=True):
        flat = flat.replace(plain, " ")
    least = 2 if read.code == "zh" else 1
    return {run for run in _runs(flat) if len(run) >= least}


def _definite(read: _Text, table: Words) -> list[str]:
    words = read.words
    return [after[:STEM] for word, after in pairwise(words) if word in table.article]


def _has_ordinal(read: _Text, table: Words, known: set[str]) -> bool:
    """Whether an ordinal refers to something mentioned before: "the second one"; not "the first helicopter"."""
    if read.unspaced:
        return _has(read, table.ordinal)
    words = [*read.words, ""]
    return any(
        word in table.ordinal and (not after or after in table.plain or after in table.other or after[:STEM] in known)
        for word, after in pairwise(words)
    )
