"""Decides whether a stop ends its sentence: the word before it determines what must follow.

A pure function of a bounded window: some two dozen characters before the stop, the gap after it, and the next word. As
long as that word is incomplete, the answer may be that it cannot be decided yet.
"""

import re
from functools import cache
from typing import Final, Literal

from .words import Words

# What must follow a stop for it to end the sentence:
#   nothing  after an ordinary word: "It fell."
#   capital  after an abbreviation that is often last, an ellipsis, a variable: "5 p.m. Then", not "5 p.m. today"
#   starter  after one that is seldom last, an acronym, an initial: "the U.S. The law", not "the U.S. Congress"
#   break    after one that is never last: "Dr. No" continues, unless a new paragraph begins
Needs = Literal["nothing", "capital", "starter", "break"]


LISTS: Final = Words("sentence", "en", "es")


@cache
def needs_of_words() -> dict[str, Needs]:
    """What must follow each abbreviation."""
    return {
        **dict.fromkeys(LISTS.often_last, "capital"),
        **dict.fromkeys(LISTS.seldom_last, "starter"),
        **dict.fromkeys(LISTS.never_last, "break"),
    }


_DOTS: Final = ".…"
_STRONG: Final = "!?؟۔։።‼⁇⁈⁉‽"
UNSPACED: Final = "。！？｡।॥။។"  # stops that end a sentence without white space after them
STOPS: Final = _DOTS + _STRONG + UNSPACED
# Emphasis and invisible marks are not quotes: "**Dr.** Smith" must not read like a quoted "Dr."
_HOLLOW: Final = "*_\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
SUPERSCRIPTS: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
CLOSERS: Final = _HOLLOW + SUPERSCRIPTS + "\"'”’»›)]}」』）】》〉｣`"
OPENERS: Final = _HOLLOW + "\"'“‘«‹„‚([{「『（【《〈｢`¿¡<"
UNSPACED_SET: Final = frozenset(UNSPACED)
_CERTAIN_SET: Final = frozenset(_STRONG + UNSPACED)

# How many characters before a stop are read.
BACK: Final = 24
EMOTICON: Final = r"[:;=][-'^]?[)(DPp/|*]"
_EMOTICON_SO_FAR: Final = re.compile(rf"[:;=][-'^]?|{EMOTICON}")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LAST_WORD: Final = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*\Z")
_ACRONYM: Final = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")


def is_end(pause: re.Match[str], settled: bool) -> bool | None:
    """Whether this stop ends a sentence; None if what follows is too short to tell and not yet `settled`."""
    run, gap, head = pause.group(0, 2, 3)
    if not gap:
        if not settled and (not head or head[0] == "["):
            return None
        if run in (".", "?", "!") and head[:1].isupper():
            return _begins(head, run, _needed_after(run, pause.string, pause.start())) if settled else None
        # 「…。」と is reported speech inside its sentence.
        return bool(head) and not UNSPACED_SET.isdisjoint(run) and not (run[-1] in "」』" and head[0] == "と")
    needs = _needed_after(run.partition(" ")[0], pause.string, pause.start())
    if needs == "break":
        return False
    # A line end settles it at once, so that a stream need not wait for the next line.
    if needs == "nothing" and run[-1] in STOPS and "\n" in gap:
        return True
    if not head:
        return True if settled else None
    if (head[0] == "." and run[0] == ".") or (not settled and _EMOTICON_SO_FAR.fullmatch(head)):
        return False if head[0] == "." else None  # ". . ." continues, and ":)" belongs to the sentence
    if needs == "nothing" and run[-1] in STOPS:
        return not (head[0].islower() and run == "!" and _last_word(pause) in LISTS.exclaiming)
    lead = head.lstrip(OPENERS)
    if not lead:
        return None if not settled else False
    if needs == "nothing":
        return not (lead[0].islower() or lead[0] in ",;:–—")
    if needs == "capital":
        if lead[0].islower() or not lead[0].isalpha():
            return False
        # "well . . . I mean": this "I" is no sign of a beginning.
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
    return word[0] in LISTS.starters and not (word.end() == 1 and lead[1:2] == ".")


def _begins(head: str, run: str, needs: Needs) -> bool:
    """Whether a word directly after a stop, without a space, begins a sentence."""
    if run != ".":
        return head[1:2].islower() or head[1:2] in ("'", "’")
    if needs != "nothing" or len(head) == 1:
        return False
    return head in LISTS.starters or (head[-1] == "." and needs_of_words().get(head[:-1].lower()) == "break")


def _last_word(pause: re.Match[str]) -> str:
    start = pause.start()
    found = _LAST_WORD.search(pause.string, max(0, start - BACK), start)
    return found[0] if found else ""


def _needed_after(run: str, text: str, at: int) -> Needs:
    if run == ".":
        return _needed_after_word(text, at)
    if not _CERTAIN_SET.isdisjoint(run):
        return "nothing"
    if run[0] == "…" or run[1] in _DOTS:
        # "[...]" marks omitted words.
        return "break" if at and text[at - 1] == "[" and "]" in run else "capital"
    needs = _needed_after_word(text, at)
    quoted = run[1:].strip(_HOLLOW) != ""
    return "nothing" if quoted and needs != "capital" else needs


def _needed_after_word(text: str, at: int) -> Needs:
    low = at - BACK if at > BACK else 0
    space = text.rfind(" ", low, at)
    token = text[low if space < 0 else space + 1 : at]
    if known := needs_of_words().get(token):
        return known
    if not token.isalnum():
        if not token or token[-1].isspace():
            # A stop separated from its word ends the sentence; a separated ellipsis may not.
            return "capital" if text[low:at].rstrip()[-1:] in ("", *_DOTS) else "nothing"
        last = _LAST_WORD.search(token)
        if last is None:
            return "nothing"
        token = last[0]
    if len(token) == 1 and token.lower() != token.upper():
        # "You and I. Did" is a pronoun, "Albert I. Jones" an initial.
        before = text[low:at].split()[-2:-1] if token == "I" else []  # noqa: S105 - a word
        return "starter" if token.isupper() and not (before and before[0].islower()) else "capital"
    if known := needs_of_words().get(token.lower()):
        return known
    # In "Tuesday.Mr. Smith" the space is missing where the sentence ended.
    return "starter" if _ACRONYM.fullmatch(token) else needs_of_words().get(token.rpartition(".")[2].lower(), "nothing")
