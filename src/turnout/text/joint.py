"""Conjunctions and commas, and the clauses between them.

A clause is a stretch without conjunction, comma or sentence end, or several that must not be separated: names ("Phoenix
and Kingman"), fixed pairs, joined nouns. Invariant: clauses are in order and do not overlap, and only conjunctions,
commas and punctuation are between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from .clause import LISTS, Mood, begins_with, judge, leans
from .framing import is_framed
from .lex import EDGES, Lexeme, read_words
from .match import Matcher, Phrase, Regex
from .words import Words, match_phrase

Hits = Callable[[str], bool]
"""Whether a stretch of the question, as the user wrote it, holds a trigger phrase."""

JOINING: Final = Words("split", "en", "es")
_ENGLISH: Final = Words("split", "en")
# "And" in each language, the plainest conjunction.
PLAIN: Final = (frozenset({"and"}), frozenset({"y"}))


class Clause:
    """A stretch without conjunction, comma or sentence end, or several such that belong together."""

    def __init__(self, tokens: list[Lexeme], joint: frozenset[str], *, opens: bool, hit: bool) -> None:
        self.tokens = tokens
        self.joint = joint  # the conjunctions and commas before it
        self.opens = opens  # a sentence begins with it
        self.hit = hit
        self.written = False  # its sentence ends with a mark; known once all have been read
        self.words = [token.word for token in tokens]
        self.mood = judge(self.words)
        leaning = leans(self.words)
        self.stands = self.mood.asks and (not leaning or _is_colloquial(self.words))
        # A trigger phrase can be understood alone, but "let me know if it is down" needs what came before.
        self.asks = self.stands or (hit and not (leaning and self.mood is Mood.COMMAND))

    @property
    def yields(self) -> bool:
        """Whether it asks for a result of the clause before: "… and provide key insights"."""
        if begins_with(self.words, JOINING.giving):
            return not JOINING.outcomes.isdisjoint(self.words)
        new = not {"me", "us", "some", "any"}.isdisjoint(self.words[:4]) and JOINING.outcomes.isdisjoint(self.words)
        return begins_with(self.words, JOINING.yielding) and not new

    @property
    def ends(self) -> bool:
        """Whether a punctuation mark ends the sentence here; then another question would be a sentence of its own."""
        return self.tokens[-1].seen.rstrip("'\")]”’").endswith((".", "?", "!"))

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @classmethod
    def of(cls, run: Sequence[Clause]) -> Clause:
        """Several clauses as one."""
        if len(run) == 1:
            return run[0]
        tokens = [token for clause in run for token in clause.tokens]
        return cls(tokens, run[0].joint, opens=run[0].opens, hit=any(clause.hit for clause in run))


def _is_colloquial(words: Sequence[str]) -> bool:
    return words[0] in ("what's", "whats") and match_phrase(words, JOINING.colloquial, 1) > 0


@cache
def signs() -> Matcher:
    """Finds conjunctions, commas and comparisons."""
    conjunctions = "|".join(sorted(JOINING.conjunctions | {"y"})).replace(" ", r"\s+")
    return Matcher([Regex(rf",|\b(?:{conjunctions})\b"), Phrase(tuple(sorted(JOINING.comparing)))])


def read_clauses(text: str, hits: Hits | None) -> Iterator[Clause]:
    tokens, quoted = read_words(text)
    words, starts = [token.word for token in tokens], joint_starts()
    held: list[Lexeme] = []
    joint: set[str] = set()
    opens = False
    first = True

    def clause() -> Clause:
        hit = hits is not None and hits(text[held[0].start : held[-1].end])
        # A conjunction at the very beginning joins nothing.
        return Clause(held, frozenset(() if first else joint), opens=opens, hit=hit)

    at = 0
    while at < len(tokens):
        token = tokens[at]
        length = joins(words, at) if token.word in starts and at not in quoted else 0
        # "Please also …": such words alone are no clause.
        leading = length and held and all(one.word in LISTS.please for one in held)
        if held and (length or token.opens) and not leading:
            yield clause()
            held, joint, opens, first = [], set(), False, False
        opens = opens or token.opens
        if length:
            joint.update(words[at : at + length])
        elif token.word and token.word != ",":
            held.append(token)
        at += length or 1
    if held:
        yield clause()


@cache
def joint_starts() -> frozenset[str]:
    """The first words of all conjunctions, and the comma."""
    return frozenset({",", "y"} | {phrase.split()[0] for phrase in JOINING.conjunctions})


def joins(words: Sequence[str], at: int) -> int:
    """How many words from here on are a conjunction or comma."""
    if words[at] == ",":
        return 1
    if words[at] == "y":
        # In English it is a letter: "x, y and z".
        before = words[at - 1] if at else ""
        after = words[at + 1] if at + 1 < len(words) else ","
        return 0 if after == "," or after in _ENGLISH.conjunctions or before in _ENGLISH.conjunctions else 1
    return match_phrase(words, JOINING.conjunctions, at)


def bind(clauses: Iterator[Clause]) -> list[Clause]:
    """The clauses; those that must not be separated are merged."""
    runs: list[list[Clause]] = []
    for clause in clauses:
        if runs and not clause.opens and clause.joint in PLAIN and _belong(runs[-1][0], runs[-1][-1], clause):
            runs[-1].append(clause)
        else:
            runs.append([clause])
    return list(map(Clause.of, runs))


def _belong(first: Clause, left: Clause, right: Clause) -> bool:
    """Whether a clause belongs to the one before it, in a run that begins with `first`."""
    if f"{left.words[-1]}+{right.words[0]}" in JOINING.pairs or _are_names(left, right):
        return True
    if right.mood in (Mood.QUESTION, Mood.COMMAND) or begins_with(right.words, LISTS.wishers):
        return False
    # After a comma, a bare noun belongs to what "and" joins to it: "…, and Iran and Israel news".
    return bool(first.joint) and first.joint not in PLAIN and _is_noun(first) and _is_noun(left)


def _is_noun(clause: Clause) -> bool:
    return clause.mood is Mood.FRAGMENT and not clause.hit and not is_framed(" ".join(clause.words))


def _are_names(left: Clause, right: Clause) -> bool:
    """Whether a conjunction is between names: "Phoenix and Kingman", "Mark and Will Smith"."""
    before, after = left.tokens[-1], right.tokens[0]
    if not (_is_capital(before) and _is_capital(after)) or before.word in LISTS.hollow or after.word == "i":
        return False
    if before.seen.isupper() and after.seen.isupper():
        # All capitals: not necessarily names.
        return False
    # "Find me" and "Is it" are no names, but Will Smith and Google are.
    following = right.tokens[1] if len(right.tokens) > 1 else None
    if after.word in LISTS.hollow:
        return following is not None and _is_capital(following) and following.word not in LISTS.hollow
    return after.word not in LISTS.commands or following is None or following.word not in LISTS.after_verbs


def _is_capital(token: Lexeme) -> bool:
    return token.seen.strip(EDGES)[:1].isupper()
