"""The polarity guard: whether a question contradicts the claim of a card. Text alone; similarity has no say.

Same topic, same type, same structure is not yet the same claim: a negated predicate, swapped roles, another number,
date or name in the same place refuse an exact match. Silence on either side does not: "Did the flood happen?" matches
the card that says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

from msgspec import Struct

from turnout.search.number import DAY, DECADE, MONTH, Number, agree
from turnout.search.vocabulary import lists

from .reading import NOT, UNTRUE, Reading, Word, read, same_key

ContradictionKind = Literal["negation", "opposite", "roles", "number", "name"]
# Whole numbers between these that measure nothing are years.
YEARS: Final = (1000, 2100)
# Words behind "by" that name the one who did it: "by the late President Obama".
AGENT: Final = 5
# What turns a word into its opposite.
UN: Final = ("un", "in", "im", "il", "ir", "non", "dis")
# Two texts that have so much in common, in one order, are copies of each other but for what was changed in them.
COPY: Final = 0.6
# The same for their words in any order.
SAME_WORDS: Final = 0.8
# So many words at most are put in the place of others; more are another way to say it.
SWAPPED: Final = 2
# Longer ones are not compared word by word.
LONGEST_COPY: Final = 200


class Contradiction(Struct, frozen=True):
    """What a question and a card do not agree about."""

    kind: ContradictionKind
    said: str
    """In the question."""
    held: str
    """In the card's claim."""

    def __str__(self) -> str:
        return f"{self.kind}: the question says {self.said!r}, the card {self.held!r}"


def contradicts(asked: str, claim: str) -> Contradiction | None:
    """What keeps a question, or a claim, from being the claim of a card; None if nothing does."""
    question, card = read(asked), read(claim)
    found = (
        _number(question.numbers, card.numbers),
        _negation(question, card),
        _opposite(question, card),
        _name(question, card),
        _roles(question, card),
        _copy(question, card),
    )
    return next((one for one in found if one is not None), None)


# --- numbers and dates


def _kind(number: Number) -> str:
    """Numbers of two kinds do not stand in one place."""
    if number.unit.startswith((MONTH, DAY)):
        return number.unit[:3]
    is_year = not number.unit and not number.hedge and YEARS[0] <= number.value <= YEARS[1]
    if number.unit == DECADE or (is_year and number.value == int(number.value)):
        return "year"
    return number.unit or "count"


def _number(asked: Sequence[Number], held: Sequence[Number]) -> Contradiction | None:
    """A number that the card does not have, while it has another of the kind that the question does not have."""
    extra = [one for one in asked if not _has(held, one)]
    left = [one for one in held if not _has(asked, one)]
    for one in extra:
        for other in left:
            if _kind(one) == _kind(other):
                return Contradiction("number", one.spelled, other.spelled)
    return None


def _has(numbers: Sequence[Number], wanted: Number) -> bool:
    return any(agree(one, wanted) or agree(wanted, one) for one in numbers)


# --- negation and opposites


def _negation(question: Reading, card: Reading) -> Contradiction | None:
    for one, other in _matched(question, card):
        if one.denied != other.denied and one.sign != other.sign:
            return Contradiction("negation", _spell(one), _spell(other))
    if len(question.denials) % 2 != len(card.denials) % 2:
        less, more = (card, question) if question.denials else (question, card)
        # What one side denies the other may put into a verb of its own: "refuses to", "banned".
        verbs = (word for word in less.words if word.raw.lower() in lists("en").denial)
        if UNTRUE in more.denials or not any(not _stands(verb, more) for verb in verbs):
            return Contradiction("negation", ", ".join(question.denials), ", ".join(card.denials))
    return None


def _spell(word: Word) -> str:
    return f"not {word.raw}" if word.denied else word.raw


def _opposite(question: Reading, card: Reading) -> Contradiction | None:
    for one, other in _matched(question, card):
        if one.sign != other.sign and not one.denied and not other.denied:
            return Contradiction("opposite", one.raw, other.raw)
    for one in question.words:
        for other in card.words:
            if _is_un(one.raw, other.raw) or _is_un(other.raw, one.raw):
                return Contradiction("opposite", one.raw, other.raw)
    return None


def _is_un(one: str, other: str) -> bool:
    """Whether one is the other with a "un-" before it."""
    low, plain = one.lower(), other.lower()
    return any(low.startswith(un) and low[len(un) :] == plain for un in UN)


def _matched(question: Reading, card: Reading) -> Iterator[tuple[Word, Word]]:
    """Words of both, each pair that is one word; of a word that stands both ways on one side, none."""
    for word in question.words:
        alike = [other for other in card.words if other.key == word.key]
        if alike and len({other.sign for other in alike}) == 1:
            mine = {one.sign for one in question.words if one.key == word.key}
            if len(mine) == 1:
                yield word, alike[0]


# --- names


def _name(question: Reading, card: Reading) -> Contradiction | None:
    """Another name in the same place: beside the same word."""
    extra = [at for at, word in enumerate(question.words) if not _stands(word, card)]
    left = [at for at, word in enumerate(card.words) if not _stands(word, question)]
    for one in extra:
        for other in left:
            mine, theirs = question.words[one], card.words[other]
            if _are_names(mine, theirs) and _is_one_place(question, one, extra, card, other, left):
                return Contradiction("name", mine.raw, theirs.raw)
    return None


def _stands(word: Word, reading: Reading) -> bool:
    return any(same_key(word.key, other.key) for other in reading.words)


def _are_names(one: Word, other: Word) -> bool:
    return (one.name and (other.name or other.first)) or (other.name and one.first)


def _is_one_place(
    question: Reading, one: int, extra: Sequence[int], card: Reading, other: int, left: Sequence[int]
) -> bool:
    """Whether the nearest word that both have is the same on one side of both names."""
    for step in (-1, 1):
        mine, theirs = one + step, other + step
        while mine in extra and question.words[mine].name:
            mine += step
        while theirs in left and card.words[theirs].name:
            theirs += step
        inside = 0 <= mine < len(question.words) and 0 <= theirs < len(card.words)
        if inside and same_key(question.words[mine].key, card.words[theirs].key):
            return True
    return False


# --- roles


def _roles(question: Reading, card: Reading) -> Contradiction | None:
    """Who did it to whom, turned round: two words that stand on the other side of a third, and of each other. One that
    stands behind the "by" of a passive did it, wherever it stands."""
    places = _places(question, card)
    same = len(places) >= SAME_WORDS * max(len(question.keys), len(card.keys))
    shared = sorted(places, key=lambda pair: pair[0].at)
    for low, (c1, q1) in enumerate(shared):
        for high in range(low + 2, len(shared)):
            c2, q2 = shared[high]
            four = (c1, c2, q1, q2)
            if not any(one.name for one in four) or (not same and any(one.beside for one in four)):
                continue
            turned = _is_agent(card, c1, c2) != _is_agent(question, q1, q2)
            for verb, asked in shared[low + 1 : high]:
                swapped = q1.at < asked.at < q2.at if turned else q2.at < asked.at < q1.at
                if swapped and not (verb.name or asked.name) and (not turned or ((c1.name or c1.first) and c2.name)):
                    said = (q1, asked, q2) if turned else (q2, asked, q1)
                    return Contradiction("roles", _join(said), _join((c1, verb, c2)))
    return None


def _places(question: Reading, card: Reading) -> list[tuple[Word, Word]]:
    """The words that each side has once, in the card and in the question."""
    found = []
    for word in card.words:
        twins = [other for other in question.words if other.key == word.key]
        if len(twins) == 1 and sum(other.key == word.key for other in card.words) == 1:
            found.append((word, twins[0]))
    return found


def _is_agent(reading: Reading, *words: Word) -> bool:
    return any(0 < word.at - by <= AGENT for word in words for by in reading.by_at)


def _join(words: Sequence[Word]) -> str:
    return " ".join(word.raw for word in words)


# --- copies


def _copy(question: Reading, card: Reading) -> Contradiction | None:
    """Of two texts that are nearly the same, what was put in the place of a name, a number, or of nothing: a "not"."""
    one, other = question.line, card.line
    if not one or not other or max(len(one), len(other)) > LONGEST_COPY:
        return None
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.quick_ratio() < COPY or matcher.ratio() < COPY:
        return None
    marked = question.marked | card.marked
    gone: set[str] = set()
    new: set[str] = set()
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        said, held = one[a:b], other[c:d]
        new.update(said)
        gone.update(held)
        if (said.count(NOT) + held.count(NOT)) % 2:
            return Contradiction("negation", " ".join(said), " ".join(held))
        named = bool(marked.intersection(said) and marked.intersection(held))
        if said and held and (named or (len(said) <= SWAPPED and len(held) <= SWAPPED and not question.titled)):
            kind: ContradictionKind = "number" if any(key[0].isdigit() for key in said) else "name"
            return Contradiction(kind, " ".join(said), " ".join(held))
    names = {word.key for word in (*question.words, *card.words) if word.name}
    moved = sorted(new & gone & names)
    if bool(question.by_at) == bool(card.by_at) and (
        len(moved) > 1 or any(_passes(key, one, other, names) for key in moved)
    ):
        return Contradiction("roles", " ".join(moved), " ".join(moved))
    return None


def _passes(key: str, one: Sequence[str], other: Sequence[str], names: set[str]) -> bool:
    """Whether a name that stands elsewhere has passed another name and a word that is none."""
    here, there = one.index(key), other.index(key)
    before = set(one[:here]) & set(other[there + 1 :])
    behind = set(one[here + 1 :]) & set(other[:there])
    return any(passed & names and passed - names for passed in (before, behind))
