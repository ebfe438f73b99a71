"""The polarity guard: whether a question contradicts the claim of a card, by text alone, whatever the similarity.

Two claims of one topic, type and structure may still differ: a negated predicate, swapped roles, or another number,
date or name in the same place rule out an exact match. What only one side mentions does not: "Did the flood happen?"
matches a card that says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from turnout.search.number import DAY, DECADE, MONTH, Number, agree
from turnout.search.vocabulary import lists
from turnout.text.sentence import split

from .contradiction import Contradiction, ContradictionKind, is_short_for, stands
from .reading import LONGEST, NOT, SIGNATURE, UNTRUE, ClaimReading, Word, known, read, same_key
from .role import find_roles

# Whole numbers in this range without a unit are years.
YEARS: Final = (1000, 2100)
# Sentences of a text of several.
SEVERAL: Final = 2
# A question with this many times the claim's words says other things too.
MORE: Final = 1.5
# Such a question contradicts the claim only if it has this share of its words.
SPOKEN: Final = 0.5
# Prefixes that make the opposite of a word.
UN: Final = ("un", "in", "im", "il", "ir", "non", "dis")
# Two texts that share this much in the same order are edited copies of each other.
COPY: Final = 0.6
# With this share, each word that only one copy has replaces one that only the other has.
CLOSE: Final = 0.75
# At most so many words replace others; more are another wording.
SWAPPED: Final = 3
# Longer texts are not compared word by word.
LONGEST_COPY: Final = 200


def contradicts(asked: str, claim: str) -> Contradiction | None:
    """The first contradiction between a question, or a claim, and the claim of a card; None if there is none."""
    whole, card = read(asked), read(claim)
    question = whole if len(split(claim[:LONGEST])) >= SEVERAL else _part(asked, whole, card)
    brief = len(question.words) <= MORE * len(card.words)
    if not brief and len(question.keys & card.keys) < SPOKEN * len(card.keys):
        # A long question with too little of the claim to deny it.
        return _number(question.numbers, card.numbers)
    found = (
        _number(question.numbers, card.numbers),
        _negation(question, card),
        _opposite(question, card),
        _name(question, card),
        find_roles(question, card),
        _copy(question, card),
    )
    return next((one for one in found if one is not None), None)


def _part(asked: str, whole: ClaimReading, card: ClaimReading) -> ClaimReading:
    """The sentence that shares most with the claim: the other sentences of a text do not deny it."""
    sentences = split(SIGNATURE.sub("", asked[:LONGEST])) if len(whole.words) > len(card.words) else []
    if len(sentences) < SEVERAL:
        return whole
    readings = [read(sentence) for sentence in sentences]
    return max(readings, key=lambda one: len(one.keys & card.keys))


# --- numbers and dates


def _kind(number: Number) -> str:
    """What a number counts; numbers of different kinds do not contradict each other."""
    if number.unit.startswith((MONTH, DAY)):
        return number.unit[:3]
    is_year = not number.unit and not number.hedge and YEARS[0] <= number.value <= YEARS[1]
    if number.unit == DECADE or (is_year and number.value == int(number.value)):
        return "year"
    return number.unit or "count"


def _number(asked: Sequence[Number], held: Sequence[Number]) -> Contradiction | None:
    """A number that only the question has, while only the card has another one of its kind."""
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


def _negation(question: ClaimReading, card: ClaimReading) -> Contradiction | None:
    for one, other in _matched(question, card):
        if one.denied != other.denied and one.sign != other.sign:
            return Contradiction("negation", _spell(one), _spell(other))
    # A much longer question may deny something else.
    brief = len(question.words) <= MORE * len(card.words)
    if brief and len(question.denials) % 2 != len(card.denials) % 2:
        less, more = (card, question) if question.denials else (question, card)
        # The other side may express the denial by a verb: "refuses to", "banned".
        verbs = (word for word in less.words if word.raw.lower() in lists("en").denial)
        if UNTRUE in more.denials or not any(not stands(verb, more) for verb in verbs):
            return Contradiction("negation", ", ".join(question.denials), ", ".join(card.denials))
    return None


def _spell(word: Word) -> str:
    return f"not {word.raw}" if word.denied else word.raw


def _opposite(question: ClaimReading, card: ClaimReading) -> Contradiction | None:
    for one, other in _matched(question, card):
        if one.sign != other.sign and not one.denied and not other.denied:
            return Contradiction("opposite", one.raw, other.raw)
    for one in question.words:
        for other in card.words:
            if _is_un(one.raw, other.raw) or _is_un(other.raw, one.raw):
                return Contradiction("opposite", one.raw, other.raw)
    return None


def _is_un(one: str, other: str) -> bool:
    """Whether one word is the other with a prefix such as "un-"."""
    low, plain = one.lower(), other.lower()
    return any(low.startswith(un) and low[len(un) :] == plain for un in UN)


def _matched(question: ClaimReading, card: ClaimReading) -> Iterator[tuple[Word, Word]]:
    """Pairs of the same word on both sides, except words that one side both denies and affirms."""
    for word in question.words:
        alike = [other for other in card.words if other.key == word.key]
        if alike and len({other.sign for other in alike}) == 1:
            mine = {one.sign for one in question.words if one.key == word.key}
            if len(mine) == 1:
                yield word, alike[0]


# --- names


def _name(question: ClaimReading, card: ClaimReading) -> Contradiction | None:
    """Different names in the same place."""
    extra = [at for at, word in enumerate(question.words) if not stands(word, card)]
    left = [at for at, word in enumerate(card.words) if not stands(word, question)]
    for one in extra:
        for other in left:
            mine, theirs = question.words[one], card.words[other]
            if _are_names(mine, theirs) and _is_one_place(question, one, extra, card, other, left):
                return Contradiction("name", mine.raw, theirs.raw)
    return None


def _are_names(one: Word, other: Word) -> bool:
    titles = known().title
    return one.name and (other.name or other.first) and not {one.raw.lower(), other.raw.lower()} & titles


def _is_one_place(
    question: ClaimReading, one: int, extra: Sequence[int], card: ClaimReading, other: int, left: Sequence[int]
) -> bool:
    """Whether both names follow the same preposition, or stand next to the same word."""
    before = question.words[one].behind
    if before and before == card.words[other].behind and before in known().preposition:
        return True
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


# --- copies


def _copy(question: ClaimReading, card: ClaimReading) -> Contradiction | None:
    """In two nearly equal texts, a replaced name or number, swapped names, or an added or missing "not"."""
    one, other = question.line, card.line
    if not one or not other or max(len(one), len(other)) > LONGEST_COPY:
        return None
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if set(one) == set(other) and matcher.ratio() < CLOSE and not question.by_at and not card.by_at:
        return Contradiction("roles", " ".join(one), " ".join(other))
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
        if is_short_for(said, held) or is_short_for(held, said):
            continue
        named = bool(marked.intersection(said) and marked.intersection(held))
        # A word that the other text has elsewhere was moved, not replaced.
        only = [key for key in said if key not in other], [key for key in held if key not in one]
        few = all(0 < len(keys) <= SWAPPED for keys in only) and not question.titled
        if named or few:
            kind: ContradictionKind = "number" if any(key[0].isdigit() for key in said) else "name"
            return Contradiction(kind, " ".join(said), " ".join(held))
    elsewhere, new, gone = new & gone, new.difference(other), gone.difference(one)
    short = is_short_for(sorted(new), [key for key in other if key in gone])
    if matcher.ratio() >= CLOSE and new and gone and not short and not question.titled:
        return Contradiction("name", " ".join(sorted(new)), " ".join(sorted(gone)))
    names = {word.key for word in (*question.words, *card.words) if word.name}
    moved = sorted(elsewhere & names)
    if bool(question.by_at) == bool(card.by_at) and (
        len(moved) > 1 or any(_passes(key, one, other, names) for key in moved)
    ):
        return Contradiction("roles", " ".join(moved), " ".join(moved))
    return None


def _passes(key: str, one: Sequence[str], other: Sequence[str], names: set[str]) -> bool:
    """Whether a moved name changed places with another name and with a word that is not a name."""
    here, there = one.index(key), other.index(key)
    before = set(one[:here]) & set(other[there + 1 :])
    behind = set(one[here + 1 :]) & set(other[:there])
    return any(passed & names and passed - names for passed in (before, behind))
