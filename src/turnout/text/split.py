"""A compound question as its parts: "check the weather and are the lights on" is two, "cats and dogs" is one.

A cut is made at a conjunction or a comma when both sides ask something, each by a trigger phrase of the caller's or
by a verb or question word of its own, and the second can be understood alone (`clause` says when). So lists, names,
noun pairs and comparisons stay whole, and so does a story with the question it leads to. In doubt nothing is cut: a
question too long is answered better than half a question. Where one question mark follows another (`split_questions`)
the sentences are parts if the caller knows an answer to each of them: much of what is asked twice is one question.

Invariant: parts are stretches of the text, in order; only conjunctions, punctuation and white space lie between them;
a part split again is itself. Only the first `WINDOW` characters are looked at and at most `MOST` parts are made; the
rest stays with the last part. So time is linear up to the window and constant beyond it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise
from typing import Final

from .boundary import find_cuts
from .fold import fold
from .joint import Clause, Hits, bind, joins, joint_starts, read_clauses, signs
from .lex import MARKS, Lexeme, asking, read_words, unquoted
from .match import Matcher
from .reference import find_reference

# Parts run at the same time and each may cost an LLM call; more are not asked at once.
MOST: Final = 16
# Several times the longest question in the public sets this was measured on; what is longer is a document.
WINDOW: Final = 4_096


def triggers(matcher: Matcher, ids: Container[int] | None = None) -> Hits:
    """The trigger test of a compiled set of patterns, or of those of its patterns that `ids` holds."""

    def hits(text: str) -> bool:
        found = matcher.scan(fold(text).text)
        return bool(found) if ids is None else any(one in ids for one in found)

    return hits


def split(text: str, hits: Hits | None = None, *, most: int = MOST) -> list[str]:
    """The parts of a question in order: itself alone unless it is compound, nothing if it is blank."""
    return _parts(text, hits, most, told=False)


def split_questions(text: str, hits: Hits, knows: Hits, *, most: int = MOST) -> list[str]:
    """The questions of a text, if each can be understood alone and `knows` says of each that it has an answer.

    What is stated goes with the question before it, and before the first with the first. Nothing is cut otherwise.
    """
    asked = text.strip()
    whole = unquoted(asked)
    window = whole[:WINDOW]
    if len(asking(window)) < 2:
        return [asked] if asked else []
    tokens, quoted = read_words(window)
    opening = [at for at, token in enumerate(tokens) if token.opens and not {at - 1, at} <= quoted]
    cuts = [0]
    since = False
    for start, end in pairwise((0, *(tokens[at].start for at in opening), len(window))):
        sentence = window[start:end]
        if since and len(cuts) < most and _asks_alone(sentence, hits):
            cuts.append(start)
        since = since or bool(asking(sentence))
    if len(cuts) < 2:
        return [asked]
    parts = [_without_joint(whole[start:end]) for start, end in pairwise((*cuts, len(whole)))]
    return parts if all(knows(part[:WINDOW]) for part in parts) else [asked]


def _asks_alone(sentence: str, hits: Hits) -> bool:
    tokens, _ = read_words(sentence)
    tokens = [token for token in tokens[_joint_length(tokens) :] if token.word and token.word != ","]
    if not tokens:
        return False
    clause = Clause(tokens, frozenset(), opens=True, hit=hits(sentence))
    return clause.asks and not find_reference(sentence)


def _without_joint(part: str) -> str:
    """A part without the conjunction it begins with: "And is the door locked?"."""
    tokens, _ = read_words(part[:WINDOW])
    length = _joint_length(tokens)
    return part[tokens[length].start :].rstrip(MARKS) if length < len(tokens) else part


def _joint_length(tokens: Sequence[Lexeme]) -> int:
    words = [token.word for token in tokens]
    at = 0
    while at < len(words) and words[at] in joint_starts() and (length := joins(words, at)):
        at += length
    return at


def split_off(text: str, hits: Hits | None = None) -> tuple[str, str]:
    """A text that need not ask anything, and what is asked behind its first conjunction; blank if nothing is."""
    first, rest, *_ = (*_parts(text, hits, 2, told=True), "", "")
    return first, rest


def _parts(text: str, hits: Hits | None, most: int, *, told: bool) -> list[str]:
    whole = text.strip()
    window = whole[:WINDOW]
    folded = fold(window).text
    # Most questions join nothing, and RE2 says so in a quarter of the time that `re` takes.
    if signs().scan(folded) != (0,):
        return [whole] if folded or whole != window else []
    asked, whole = whole, unquoted(whole)
    window = whole[:WINDOW]
    clauses = bind(read_clauses(window, hits))
    cuts = find_cuts(window, clauses, hits, most, told=told)
    if not cuts:
        return [asked]
    starts = [clauses[cut].start for cut in (0, *cuts)]
    ends = [clauses[cut - 1].end for cut in cuts]
    ends.append(clauses[-1].end if len(whole) == len(window) else len(whole))
    return [whole[start:end].rstrip(MARKS) for start, end in zip(starts, ends, strict=True)]
