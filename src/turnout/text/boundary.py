"""Decides which conjunctions and commas separate two questions, and which continue the first one.

A cut needs a question on both sides, and the second must be understandable alone. Invariant: the decision for a clause
depends only on the text since the last cut and on that clause, so time is linear in the number of clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .clause import LISTS, Mood, begins_with, has_content, is_nominal
from .framing import is_framed
from .joint import JOINING, PLAIN, Clause, Hits

_ALSO: Final = frozenset({"also"})
_COMMA: Final = frozenset({","})
# The first words of a noun phrase, which name its subject.
_HEAD: Final = 3
_LISTED: Final = frozenset({"and", "y", ","})
# Most content words of a further question about the same subject: "where should I stop for overnight stays".
_ASPECT: Final = 3
_WHAT: Final = frozenset({"what", "which", "who"})
_IS: Final = frozenset({"is", "are", "was", "were"})
# Words between "give" and its object.
_TO_ME: Final = frozenset({"me", "us", "with"})
# Conjunctions that introduce another subject or a later step.
_APART: Final = frozenset({"also", "then"})


class OpenClauses:
    """The clauses since the last cut."""

    first: Clause
    last: Clause
    mood: Mood
    relative: bool  # describes what a thing does
    lists_examples: bool
    lists_steps: bool  # "follow these steps: …"

    def __init__(self, clause: Clause) -> None:
        self.start = clause.start
        self.hit = False
        self._begin(clause)
        self.take(clause)

    def take(self, clause: Clause) -> None:
        if clause.opens:
            self._begin(clause)
        self.last = clause
        self.hit = self.hit or clause.hit
        self.relative = self.relative or _is_relative(clause.words)
        self.lists_steps = self.lists_steps or any(
            token.seen.endswith(":") and token.word in JOINING.announcing for token in clause.tokens
        )
        self.lists_examples = self.lists_examples or any(pair == ("such", "as") for pair in pairwise(clause.words))
        if self.mood.asks or clause.mood is Mood.FRAGMENT:
            return
        if not clause.mood.asks or has_content(clause.words):
            self.mood = clause.mood

    def _begin(self, clause: Clause) -> None:
        # Only the current sentence counts: "Can you help? I lost my card and need a new one" asks once.
        self.first = self.last = clause
        self.mood = Mood.FRAGMENT
        self.relative = self.lists_examples = self.lists_steps = False


def find_cuts(text: str, clauses: Sequence[Clause], hits: Hits | None, most: int, *, statement: bool) -> list[int]:
    """The indexes of the clauses that begin a new part. In a `statement`, no question is needed before the cut."""
    cuts: list[int] = []
    closed = _closed(clauses)
    _mark_written(clauses)
    left: OpenClauses | None = None
    for at, right in enumerate(clauses):
        if left is None:
            left = OpenClauses(right)
            continue
        parts = bool(right.joint) and len(cuts) + 1 < most and right.asks and not _goes_on(left, right)
        if parts and not statement:
            parts = _is_asked(text, left, right) and _is_series(left, right, closed=closed[at])
        if parts and not right.stands:
            parts = _names_itself(text, left, right, hits)
        if parts:
            cuts.append(at)
            left = OpenClauses(right)
        else:
            left.take(right)
    return cuts


def _mark_written(clauses: Sequence[Clause]) -> None:
    """Set `written` on the clauses of each sentence that ends with a punctuation mark."""
    written = False
    for clause in reversed(clauses):
        clause.written = written = clause.ends or written
        if clause.opens:
            written = False


def _closed(clauses: Sequence[Clause]) -> list[bool]:
    """For each clause, whether a later conjunction closes the series it is in: "…, play jazz and call Ann"."""
    closed = [False] * len(clauses)
    for at in range(len(clauses) - 2, -1, -1):
        after = clauses[at + 1]
        closed[at] = not after.opens and (closed[at + 1] or (after.joint != _COMMA and after.asks))
    return closed


def _goes_on(left: OpenClauses, right: Clause) -> bool:
    """Whether what follows the conjunction still belongs to the clause before it."""
    if left.last.words[-1] in JOINING.unfinished:
        return True
    if right.mood is not Mood.COMMAND:
        # "…, which includes the price" describes what came before.
        describes = right.joint == _COMMA and right.words[0] == "which"
        # "Sources such as journals, news outlets and …": neither an example nor the end of a list is a question.
        example = not right.mood.asks and is_nominal(right.words) and (left.lists_examples or _is_listed(left, right))
        # "I want a change and need …" and "users who … and want …" have one subject.
        bare_wish = begins_with(right.words, LISTS.bare_wishes) and (
            begins_with(left.first.words, LISTS.wishers) or "who" in left.last.words[1:]
        )
        more = right.mood is Mood.WISH and (bare_wish or "appreciate" in right.words or _wishes_more(left, right))
        return describes or example or more or right.words[0] == "or" or _asks_more(left, right)
    if right.joint == _ALSO:
        # "Does the bank also offer loans".
        return left.mood is Mood.QUESTION
    if not right.joint <= _LISTED:
        return False
    if left.relative or (right.yields and not (left.hit or right.hit)) or _is_step(left, right):
        return True
    if right.joint not in PLAIN:
        return False
    return begins_with(left.first.words, LISTS.serial) or _asks_how(left) or _is_verb_pair(left.last.words, right)


def _is_listed(left: OpenClauses, right: Clause) -> bool:
    """Whether a noun phrase ends a list that belongs to one question: "the price, times and availability for
    tomorrow"; not "the weather, the headlines and any outages", where each has its own trigger."""
    before = left.last
    listed = bool(before.joint) and not before.opens and not before.hit and not before.mood.asks
    return listed and is_nominal(before.words) and before.joint | right.joint >= _COMMA


def _wishes_more(left: OpenClauses, right: Clause) -> bool:
    """Whether a second wish of a written sentence adds to the first: "I want a phone and I need a lot of storage."."""
    return left.mood is Mood.WISH and right.written and right.joint <= _LISTED and not (left.hit or right.hit)


def _asks_more(left: OpenClauses, right: Clause) -> bool:
    """Whether a written question continues what was said before it: "… and what was the final score?", "… and where
    should I stop?", "could you give me the names?"; not one that names its own subject or has many content words."""
    if not right.written or left.hit or right.hit or right.mood is not Mood.QUESTION or len(right.words) < 4:
        return False
    asked, verb, subject = right.words[:3]
    if asked in LISTS.modals and verb == "you":
        given = next((word for word in right.words[3:] if word not in _TO_ME), "")
        return given == "the" and right.joint.isdisjoint(_APART)
    if not begins_with(right.words, LISTS.question_words):
        return False
    same = subject in LISTS.wishers if verb in LISTS.modals else asked in _WHAT and verb in _IS and subject == "the"
    names = any(token.seen[:1].isupper() for token in right.tokens[1:] if token.word not in LISTS.wishers)
    return same and not names and sum(word not in LISTS.hollow for word in right.words) <= _ASPECT


def _is_step(left: OpenClauses, right: Clause) -> bool:
    """Whether a command is a further step of one request: in a list of steps, in one sentence about a given thing, or
    as the second verb of "could you …"; unless it asks for something new ("and suggest a hotel")."""
    if left.lists_steps:
        return True
    if not right.written or left.hit or right.hit:
        return False
    if left.mood is Mood.WISH or not JOINING.given.isdisjoint((*left.first.words, *left.last.words)):
        return True
    heads = (*pairwise(left.first.words), *pairwise(left.last.words))
    asked = any(word in LISTS.modals and after == "you" for word, after in heads)
    return asked and JOINING.new.isdisjoint(right.words[1:4])


def _is_relative(words: Sequence[str]) -> bool:
    """Whether a bare verb would continue a relative clause: "a tool that can sort mail", "where I can find"."""
    return not JOINING.fit.isdisjoint(words) or any(
        word in JOINING.relatives and words[at] not in LISTS.hollow and words[at + 2] in JOINING.ables
        for at, word in enumerate(words[1:-1])
    )


def _asks_how(left: OpenClauses) -> bool:
    """Whether a bare verb would continue the question: "how do I log in", "is it possible to pay"."""
    head = left.last.words[:6]
    if left.mood is not Mood.QUESTION:
        return False
    return "possible" in head or (
        begins_with(head, LISTS.question_words) and not {"i", "we", "to"}.isdisjoint(head[1:4])
    )


def _is_verb_pair(left: Sequence[str], right: Clause) -> bool:
    """Whether two verbs share an object: "find and play a waltz"."""
    # "Could you decode and explain".
    if len(left) > 2 and left[-2] == "you" and left[-3] in LISTS.modals:
        return True
    if left[-1] not in LISTS.commands or not begins_with(right.words, LISTS.commands):
        return False
    # "Avísame" includes its object.
    complete = "y" in right.joint and left[-1].endswith("me")
    return not complete and (len(left) == 1 or left[-2] in JOINING.before_verbs or left[-2].endswith("ly"))


def _is_asked(text: str, left: OpenClauses, right: Clause) -> bool:
    """Whether something is asked before the conjunction."""
    # "I am off this weekend and I would like to know …" is a story, even if it has a trigger phrase.
    story = left.mood is Mood.STATEMENT and begins_with(left.first.words, LISTS.wishers)
    if left.mood.asks or (left.hit and not story) or is_framed(text[left.start : left.last.end]):
        return True
    if left.mood is Mood.STATEMENT:
        return not right.joint.isdisjoint(JOINING.adding)
    # "Humidity in Dublin and find my keys": a noun phrase next to a command is a request of its own.
    return (
        right.stands
        and right.joint != _COMMA
        and (right.mood is not Mood.WISH or begins_with(right.words, LISTS.wishers))
        and not begins_with(left.first.words, LISTS.prepositions)
        and sum(word not in LISTS.hollow for word in left.last.words) >= 2
    )


def _is_series(left: OpenClauses, right: Clause, *, closed: bool) -> bool:
    """Whether a mere comma separates two questions; otherwise one clause may be the background of the other."""
    if right.joint != _COMMA:
        return True
    if begins_with(left.last.words, LISTS.subordinators):
        return False
    if left.hit and right.hit:
        return True
    return closed or (left.mood is right.mood and left.mood in (Mood.QUESTION, Mood.COMMAND))


def _names_itself(text: str, left: OpenClauses, right: Clause, hits: Hits | None) -> bool:
    """Whether a noun phrase has its own trigger ("any news") and not a shared head noun ("Iran and Israel news")."""
    if right.mood is not Mood.FRAGMENT or right.joint not in PLAIN:
        return True
    if left.hit:
        # "The weather and the latest headlines", but not "news and market data for the options that Google has".
        return hits is not None and hits(text[right.start : right.tokens[:_HEAD][-1].end])
    first = right.tokens[1 if right.words[0] in LISTS.determiners and len(right.tokens) > 1 else 0]
    return hits is not None and hits(text[right.start : first.end])
