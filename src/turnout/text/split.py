"""A compound question as its parts: "check the weather and are the lights on" is two, "cats and dogs" is one.

A cut is made at a conjunction or a comma when both sides ask something, each by a trigger phrase of the caller's or by a
verb or question word of its own, and the second can be understood alone (`clause` says when). So lists, names, noun
pairs and comparisons stay whole, and so does a story with the question it leads to. In doubt nothing is cut: a question
too long is answered better than half a question.

Invariant: parts are stretches of the text, in order; only conjunctions, punctuation and white space lie between them;
a part split again is itself. Only the first `WINDOW` characters are looked at and at most `MOST` parts are made; the
rest stays with the last part. So time is linear up to the window and constant beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, NamedTuple

from .clause import COMMANDS, DETERMINERS, HOLLOW, SERIAL, Mood, begins_with, has_content, judge, leans
from .fold import fold
from .framing import is_framed
from .match import Matcher
from .sentence import split as split_sentences

Hits = Callable[[str], bool]
"""Whether a stretch of the question, as the user wrote it, holds a trigger phrase."""

# Parts run at the same time and each may cost an LLM call; nobody asks more at once.
MOST: Final = 16
# Several times the longest question in the public sets this was measured on; what is longer is a document.
WINDOW: Final = 4_096

_ENGLISH: Final = frozenset({"and", "also", "plus", "then"})
_CONJUNCTIONS: Final = _ENGLISH | frozenset({"también", "tambien", "además", "ademas", "luego"})
# Of several words, by the first. "In addition to" belongs to the noun behind it.
_LONG: Final = {"as": ("as", "well", "as"), "in": ("in", "addition")}
_PLAIN: Final = (frozenset({"and"}), frozenset({"y"}))
_COMMA: Final = frozenset({","})

_compares: Final = re.compile(
    r"\b(?:compar(?:e[sd]?|ing|isons?|ar|a|ame|ando)|vs|versus|both|either|neither|between|ambos|ambas|entre)\b"
).search
_may_join: Final = re.compile(r",|\b(?:and|also|plus|then|as\s+well\s+as|in\s+addition|y|luego)\b", re.IGNORECASE).search

# One expression, though the second word could begin a command.
_PAIRS: Final = frozenset(
    """rock roll/search rescue/search find/drag drop/cut paste/copy paste/trial error/hide seek/show tell/plug play/
    stop go/pick choose/buy sell/park ride/wait see/hit run/touch go/come go/track trace/read write/start stop/
    open close/check see/look see/pause resume/try find/try get""".replace("\n", "").split("/")
)
# A side that ends so is not finished.
_UNFINISHED: Final = frozenset("the a an my your our their to of el la los las un una mi su de".split())
# Before a verb that goes on behind the conjunction: "how can I hold and exchange money".
_BEFORE_VERBS: Final = frozenset("to i you we me us please just not".split())

_tokens: Final = re.compile(r"[,，]|[^\s,，]+(?:(?<=[0-9]),(?=[0-9])[^\s,，]+)*").finditer
_may_end: Final = re.compile(r"[.?!…。？！]['\")\]”’]*\s|\n").search
_EDGES: Final = "\"'`()[]{}<>“”‘’‚„«»¿¡.?!…:;*_–—-/"
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
_DANGLING: Final = " \t\r\n,，;:–—-"


class _Token(NamedTuple):
    word: str  # folded and bare; "," for a comma, nothing for mere punctuation
    start: int
    end: int
    opens: bool = False  # a sentence begins with it
    quoted: bool = False


class _Clause:
    """A stretch without conjunction, comma or sentence end, or several that belong together."""

    def __init__(self, words: list[str], span: tuple[int, int], joint: frozenset[str], *, opens: bool, hit: bool) -> None:
        self.words = words
        self.start, self.end = span
        self.joint = joint  # the conjunctions and commas before it
        self.opens = opens  # a sentence begins with it
        self.hit = hit
        self.mood = judge(words)
        self.leans = leans(words)
        # A trigger phrase is enough to be understood, but "let me know if it is down" still hangs on what came before.
        self.asks = (hit and self.mood is not Mood.COMMAND) if self.leans else (hit or self.mood.asks)

    def __add__(self, other: _Clause) -> _Clause:
        span = (self.start, other.end)
        return _Clause(self.words + other.words, span, self.joint, opens=self.opens, hit=self.hit or other.hit)


class _Left:
    """What has been read since the last cut. Moods are those of the sentence that is being read."""

    def __init__(self, clause: _Clause, text: str) -> None:
        self.text = text
        self.hit = self.framed = False
        self.take(clause)

    def take(self, clause: _Clause) -> None:
        if clause.opens or not hasattr(self, "first"):
            self.first = clause
            self.mood = Mood.FRAGMENT
        self.last = clause
        self.hit = self.hit or clause.hit
        self.framed = self.framed or is_framed(self.text[clause.start : clause.end])
        if not self.mood.asks and (has_content(clause.words) or not clause.mood.asks):
            self.mood = clause.mood


def triggers(matcher: Matcher, ids: Container[int] | None = None) -> Hits:
    """The trigger test of a compiled set of patterns, or of those of its patterns that `ids` names."""

    def hits(text: str) -> bool:
        found = matcher.scan(fold(text).text)
        return bool(found) if ids is None else any(one in ids for one in found)

    return hits


def split(text: str, hits: Hits | None = None, *, most: int = MOST) -> list[str]:
    """The parts of a question in order: itself alone unless it is compound, nothing if it is blank."""
    return _parts(text, hits, most, told=False)


def split_off(text: str, hits: Hits | None = None) -> tuple[str, str]:
    """A text that need not ask anything, and what is asked behind its first conjunction; blank if nothing is."""
    first, rest = (*_parts(text, hits, 2, told=True), "", "")[:2]
    return first, rest


def _parts(text: str, hits: Hits | None, most: int, *, told: bool) -> list[str]:
    whole = text.strip()
    window = whole[:WINDOW]
    if window.isascii() and not _may_join(window):
        return [whole] if whole else []
    if _compares(fold(window).text):
        return [whole]
    clauses = _bound(window, list(_clauses(window, hits)))
    cuts = _cuts(window, clauses, hits, most, told=told)
    if not cuts:
        return [whole]
    starts = [clauses[cut].start for cut in (0, *cuts)]
    ends = [clauses[cut - 1].end for cut in cuts]
    ends.append(clauses[-1].end if len(whole) == len(window) else len(whole))
    return [whole[start:end].rstrip(_DANGLING) for start, end in zip(starts, ends, strict=True)]


def _read(text: str) -> list[_Token]:
    openings = set()
    if _may_end(text):
        end = 0
        for sentence in split_sentences(text):
            openings.add(end)
            end += len(sentence)
    tokens: list[_Token] = []
    opened, closing = -1, ""
    for found in _tokens(text):
        raw = found[0]
        word = raw.lower() if raw.isascii() and raw.isalnum() else ("," if raw in ",，" else fold(raw).text.strip(_EDGES))
        tokens.append(_Token(word, found.start(), found.end(), found.start() in openings))
        # A quotation counts once it is closed: an apostrophe before a word may be anything.
        if opened < 0 and raw[0] in _QUOTES:
            opened, closing = len(tokens) - 1, _QUOTES[raw[0]]
        if opened >= 0 and raw.rstrip(".?!…:;").endswith(closing) and (opened < len(tokens) - 1 or len(raw) > 1):
            tokens[opened:] = [token._replace(quoted=True) for token in tokens[opened:]]
            opened = -1
    return tokens


def _clauses(text: str, hits: Hits | None) -> Iterator[_Clause]:
    tokens = _read(text)
    joint: set[str] = set()
    words: list[str] = []
    start = end = at = 0
    opens = False

    def clause() -> _Clause:
        hit = hits is not None and hits(text[start:end])
        return _Clause(words, (start, end), frozenset(joint), opens=opens, hit=hit)

    while at < len(tokens):
        token = tokens[at]
        length = _joins(tokens, at)
        if words and (length or token.opens):
            yield clause()
            joint, words, opens = set(), [], False
        opens = opens or token.opens
        if length:
            joint.update(one.word for one in tokens[at : at + length])
            at += length
            continue
        if token.word:
            if not words:
                start = token.start
            words.append(token.word)
            end = token.end
        at += 1
    if words:
        yield clause()


def _joins(tokens: Sequence[_Token], at: int) -> int:
    """How many tokens from here on are one conjunction or comma."""
    token = tokens[at]
    word = token.word
    if token.quoted:
        return 0
    if word == "," or word in _CONJUNCTIONS:
        return 1
    after = tokens[at + 1].word if at + 1 < len(tokens) else ","
    if word == "y":
        # The letter stands in English lists: "x, y and z".
        before = tokens[at - 1].word if at else ""
        return 0 if after == "," or after in _ENGLISH or before in _ENGLISH else 1
    if word in _LONG:
        phrase = _LONG[word]
        length = len(phrase)
        following = tokens[at + length].word if at + length < len(tokens) else ""
        if tuple(one.word for one in tokens[at : at + length]) == phrase and (word != "in" or following != "to"):
            return length
    return 0


def _bound(text: str, clauses: list[_Clause]) -> list[_Clause]:
    """The clauses, those that no cut may part made one: names, fixed pairs, a noun with the noun phrase it shares."""
    found: list[_Clause] = []
    for clause in clauses:
        if found and not clause.opens and clause.joint in _PLAIN:
            before = found[-1]
            if _are_names(text, before, clause) or f"{before.words[-1]} {clause.words[0]}" in _PAIRS or _shares(before, clause):
                found[-1] = before + clause
                continue
        found.append(clause)
    return found


def _are_names(text: str, left: _Clause, right: _Clause) -> bool:
    """"Phoenix and Kingman", "Mark and Will Smith"; capitals throughout are no evidence."""
    before, *_ = text[left.start : left.end].rsplit(None, 1)[::-1]
    after, *more = text[right.start : right.end].split(None, 2)
    if not (_is_capital(before) and _is_capital(after)) or (_is_shouted(before) and _is_shouted(after)):
        return False
    if left.words[-1] in HOLLOW or right.words[0] == "i":
        return False
    opener = right.words[0] in HOLLOW or right.words[0] in COMMANDS
    return not opener or (bool(more) and _is_capital(more[0]) and right.words[1] not in HOLLOW)


def _is_capital(word: str) -> bool:
    return word.strip(_EDGES)[:1].isupper()


def _is_shouted(word: str) -> bool:
    return word.isupper()


def _shares(left: _Clause, right: _Clause) -> bool:
    """A bare noun behind a comma, joined to what goes on: "…, and Iran and Israel news"."""
    return (
        bool(left.joint)
        and left.joint not in _PLAIN
        and left.mood is Mood.FRAGMENT
        and not left.hit
        and right.mood not in (Mood.QUESTION, Mood.COMMAND)
    )


def _cuts(text: str, clauses: Sequence[_Clause], hits: Hits | None, most: int, *, told: bool) -> list[int]:
    """The clauses that begin a part of their own."""
    cuts: list[int] = []
    if not clauses:
        return cuts
    closed = _closed(clauses)
    left = _Left(clauses[0], text)
    for at, clause in enumerate(clauses[1:], 1):
        if len(cuts) + 1 < most and clause.joint and _is_cut(left, clause, hits, text, closed=closed[at], told=told):
            cuts.append(at)
            left = _Left(clause, text)
        else:
            left.take(clause)
    return cuts


def _closed(clauses: Sequence[_Clause]) -> list[bool]:
    """Whether a conjunction closes the series that a clause is in: "…, play jazz and call Ann"."""
    closed = [False] * len(clauses)
    for at in range(len(clauses) - 2, -1, -1):
        after = clauses[at + 1]
        if not after.opens and after.joint:
            closed[at] = closed[at + 1] if after.joint == _COMMA else after.asks
    return closed


def _is_cut(left: _Left, right: _Clause, hits: Hits | None, text: str, *, closed: bool, told: bool) -> bool:
    if not right.asks or left.last.words[-1] in _UNFINISHED:
        return False
    by_grammar = right.mood.asks and not right.leans
    if told:
        return True
    if right.joint == _COMMA and not closed:
        # Without a conjunction the first is the story to the second, unless both are of one kind.
        if not (left.hit and right.hit) and not (left.mood is right.mood and left.mood in (Mood.QUESTION, Mood.COMMAND)):
            return False
    if not (left.mood.asks or left.hit or left.framed):
        named = left.mood is Mood.FRAGMENT and by_grammar and right.mood is not Mood.WISH
        if not named or sum(word not in HOLLOW for word in left.last.words) < 2:
            return False
    if right.mood is Mood.COMMAND:
        if right.joint == frozenset({"also"}) and left.mood is Mood.QUESTION:
            return False
        if right.joint in _PLAIN and (begins_with(left.first.words, SERIAL) or _is_verb_pair(left.last.words, right.words)):
            return False
    if not by_grammar and right.mood is Mood.FRAGMENT and right.joint in _PLAIN and not left.hit:
        return _names_first(right, hits, text)
    return True


def _is_verb_pair(left: Sequence[str], right: Sequence[str]) -> bool:
    return left[-1] in COMMANDS and (len(left) == 1 or left[-2] in _BEFORE_VERBS) and begins_with(right, COMMANDS)


def _names_first(right: _Clause, hits: Hits | None, text: str) -> bool:
    """Whether the trigger begins the noun phrase ("any news"); else its head may be shared ("Iran and Israel news")."""
    first = text[right.start : right.end].split(None, 2)
    count = 2 if right.words[0] in DETERMINERS else 1
    return hits is not None and hits(" ".join(first[:count]))
