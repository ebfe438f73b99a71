"""Guesses the language of a text: by its script, else by its function words.

The guess is cheap, and empty if it is not sure: for a title of two names, say, or for words that several languages
share. `stop.toml` has the words.
"""

from __future__ import annotations

import re
from functools import cache

from .fold import fold
from .words import Words, read_table

# The first sentences are enough.
WINDOW = 1_000
# One function word that no other language has suffices, as in a question of three words. A word counts in equal shares
# for the languages that have it, so one that two languages share gives neither of them a lead.
ENOUGH = 1.0
AHEAD = 0.5

WRITTEN = ("en", "es", "de", "fr", "it", "pt", "nl", "sv")
"""The languages with a list of function words."""
ASKED = ("es", "de")
"""The languages with a list of question words."""

# If several languages share a script: the most common one, and letters that only another one has.
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]")),
    ("ko", re.compile("[\uac00-\ud7ff\u1100-\u11ff]")),
    ("uk", re.compile("[іїєґ]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("fa", re.compile("[پچژگ]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
)
_words = re.compile(r"[^\W\d_]+").findall
_latin = re.compile(r"[a-z\u00c0-\u024f]").findall
_other = re.compile(r"[^\W\d_a-z\u00aa-\u024f]").findall


def stop_words(lang: str) -> frozenset[str]:
    """A language's function words; empty if there is no list."""
    return Words(lang, "stop").words if lang in WRITTEN else frozenset()


def asking_words(lang: str) -> frozenset[str]:
    """The words of its questions that say nothing about their subject; empty if there is no list."""
    return Words(lang, "stop").asking if lang in ASKED else frozenset()


def guess(text: str) -> str:
    """The code of the language, such as `en`; empty if not sure."""
    seen = fold(text[:WINDOW]).text
    # Latin letters count a quarter, so that a name in them does not outweigh a Japanese sentence.
    if len(other := _other(seen)) * 4 > len(_latin(seen)):
        return _by_script("".join(other))
    scores = dict.fromkeys(WRITTEN, 0.0)
    # Each word once: a list of places in Los Angeles is not Spanish.
    for word in set(_words(seen)):
        of = _languages().get(word, ())
        for lang in of:
            scores[lang] += 1 / len(of)
    for lang, letters in _letters().items():
        scores[lang] += not letters.isdisjoint(seen)
    first, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
    sure = scores[first] >= ENOUGH and scores[first] - scores[second] >= AHEAD
    return first if sure else ""


def _by_script(letters: str) -> str:
    counts = {code: len(pattern.findall(letters)) for code, pattern in _SCRIPTS}
    # One kana, or one letter that Russian or Arabic lacks, decides within its script.
    for special, script in (("ja", "zh"), ("uk", "ru"), ("fa", "ar")):
        counts[special] += counts[script] if counts[special] else 0
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else ""


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """The languages that have each function word."""
    found: dict[str, tuple[str, ...]] = {}
    for lang in WRITTEN:
        for word in stop_words(lang):
            found[word] = (*found.get(word, ()), lang)
    return found


@cache
def _letters() -> dict[str, frozenset[str]]:
    """Letters and signs that only one of the languages has."""
    return {lang: frozenset(read_table(lang, "stop").get("letters", "")) for lang in WRITTEN}
