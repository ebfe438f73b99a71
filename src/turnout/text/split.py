"""Splits a compound question into parts: "check the weather and are the lights on" is two, "cats and dogs" is one.

A cut is made at a conjunction or a comma if both sides ask something, each with one of the caller's trigger phrases or
with a verb or question word of its own, and if the second can be understood alone (see `clause`). So lists, names, noun
pairs and comparisons stay whole, and so does a story with the question it leads to. When in doubt, nothing is cut: a
question too long is answered better than half a question. Sentences with question marks (`split_questions`) are parts
only if the caller can answer each of them, because two such sentences are often one question.

Invariant: parts are stretches of the text, in order; only conjunctions, punctuation and white space are between them;
splitting a part again gives the part. Only the first `WINDOW` characters are read and at most `MOST` parts are made;
the rest stays with the last part. So time is linear up to the window and constant beyond it.
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

# Parts run concurrently, and each may cost an LLM call.
MOST: Final = 16
# Several times the longest question in the public datasets this was measured on; a longer text is a document.
WINDOW: Final = 4_096


def triggers(matcher: Matcher, ids: Container[int] | None = None) -> Hits:
    """The trigger test for a compiled set of patterns, or for those with these ids."""

    def hits(text: str) -> bool:
        found = matcher.scan(fold(text).text)
        return bool(found) if ids is None else any(one in ids for one in found)

    return hits


def split(text: str, hits: Hits | None = None, *, most: int = MOST) -> list[str]:
    """The parts of a question in order: only itself unless it is compound, none if it is blank."""
    return _parts(text, hits, most, statement=False)


def split_questions(text: str, hits: Hits, knows: Hits, *, most: int = MOST) -> list[str]:
    """The questions of a text, if each can be understood alone and `knows` accepts each; else the whole text.

    Statements go with the question before them, and at the beginning with the first question.
    """
    question = text.strip()
    whole = unquoted(question)
    window = whole[:WINDOW]
    if len(asking(window)) < 2:
        return [question] if question else []
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
        return [question]
    parts = [_without_joint(whole[start:end]) for start, end in pairwise((*cuts, len(whole)))]
    return parts if all(knows(part[:WINDOW]) for part in parts) else [question]


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
    """The text before its first question after a conjunction, which need not ask anything, and that question or ""."""
    first, rest, *_ = (*_parts(text, hits, 2, statement=True), "", "")
    return first, rest


def _parts(text: str, hits: Hits | None, most: int, *, statement: bool) -> list[str]:
    whole = text.strip()
    window = whole[:WINDOW]
    folded = fold(window).text
    # A cut needs a conjunction or comma, and no comparison. RE2 finds out four times as fast as `re`.
    if signs().scan(folded) != (0,):
        return [whole] if folded or whole != window else []
    question, whole = whole, unquoted(whole)
    window = whole[:WINDOW]
    clauses = bind(read_clauses(window, hits))
    cuts = find_cuts(window, clauses, hits, most, statement=statement)
    if not cuts:
        return [question]
    starts = [clauses[cut].start for cut in (0, *cuts)]
    ends = [clauses[cut - 1].end for cut in cuts]
    ends.append(clauses[-1].end if len(whole) == len(window) else len(whole))
    return [whole[start:end].rstrip(MARKS) for start, end in zip(starts, ends, strict=True)]
