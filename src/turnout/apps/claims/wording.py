"""The wordings of a card: its claim and its questions, in any language.

A question that repeats a wording, in words that the card has, asks for the card. In English the polarity guard must
agree. In other languages the words must have the order of the wording and as many denials.

Invariant: a word that no wording of the card has makes it a different question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

from turnout.search.analysis import read_words, stem
from turnout.text.language import guess, stop_words
from turnout.text.words import Words, read_table

from .card import Card, asks_alike
from .contradiction import Contradiction, stands
from .kind import type_of
from .polarity import MORE, contradicts
from .reading import NOT, ClaimReading, Word, known, read, same_key

ENGLISH: Final = "en"
# The share of a wording's words in a question that repeats it: one of four may be missing. With two thirds "Was Matthew
# written before Mark?" passes for "Did the writer of Matthew borrow from Mark?".
REPEATED: Final = 0.75

# The same for other languages, where the words must also be in order.
IN_ORDER: Final = 0.66
# Unknown words of a question that may be synonyms of the card's, and wordings in which those are looked for.
RESPELLED: Final = 2
RESPELLED_FROM: Final = 3
# Words that do not count when a wording is repeated word for word.
PLAIN: Final = frozenset(("a", "an", "the", "really", "actually", "truly"))

# Phrases around a claim: who told it, and whether it is true. They are looked for in this many characters at each end.
EDGE: Final = 120
# A letter that names something, such as a vitamin; initials do not.
_LETTER: Final = re.compile(r"\b[B-HJ-Z]\b(?![.'])")
# Contractions without their apostrophe.
_SLOPPY: Final = re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|would|could|should|ca)nt\b", re.IGNORECASE)


def wordings(card: Card) -> Iterator[tuple[str, str]]:
    """The language and the text of each wording of a card, its claim first."""
    yield card.lang, card.claim_text
    for lang, texts in card.questions.items():
        for text in texts:
            yield lang, text


def language_of(question: str) -> str:
    """The language of a question; English if it begins with an English auxiliary or is too short to tell."""
    first = question.replace("’", "'").lower().split()
    return ENGLISH if first and first[0] in known().asks else guess(question) or ENGLISH


def bare(question: str) -> str:
    """A question without phrases around its claim: who told it, and whether it is true."""
    text = _SLOPPY.sub(r"\1n't", " ".join(question.replace("’", "'").split()))
    interjection, opening, ending = _edges()
    for edge in (interjection, opening, interjection):
        text = edge.sub("", text[:EDGE]) + text[EDGE:]
    asks = f"{text[:-EDGE]}{ending.sub('', text[-EDGE:])}"
    text = text if asks == text else f"{asks.rstrip(' ,.;?!…')}?"
    return text if any(map(str.isalnum, text)) else question


@cache
def _edges() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Interjections and openings before a claim, and the ending after it."""
    heard = rf"(?: {_any_of('often')}){{0,3}} {_any_of('heard')}(?: {_any_of('heard_where')}){{0,2}}"
    say = rf"(?: {_any_of('people_often')}){{0,2}} {_any_of('people_say')}"
    opening = (
        rf"(?:i|we)(?:'ve|'d| have| had)?{heard}",
        rf"(?:my|our|a|some) [\w' ]{{1,30}}? {_any_of('somebody_says')}",
        rf"{_any_of('people')}{say}",
        rf"(?:is|was) it (?:{_any_of('indeed')} )?{_any_of('so')}(?= that )",
        _any_of("opening"),
    )
    ending = (
        rf"{_any_of('tag_verb')} {_any_of('tag_subject')}(?: (?:really|actually))? {_any_of('tag')}",
        r"(?:is there )?(?:any truth|anything) to (?:it|that|this)",
        _any_of("ending"),
    )
    return (
        re.compile(rf"\A(?:{_any_of('interjection')}\b[\s,.!…:-]{{1,5}}){{1,4}}", re.IGNORECASE),
        re.compile(rf"\A(?:{'|'.join(opening)})(?: that| if| whether)?[\s,.:;…-]{{1,5}}", re.IGNORECASE),
        re.compile(rf"(?:[,.;!?…]{{1,5}}|\s-{{1,2}}|\s)\s?(?:{'|'.join(ending)})\s?[?.!…]{{0,5}}\s?\Z", re.IGNORECASE),
    )


def _any_of(name: str) -> str:
    """A pattern for any phrase of a list, trying longer ones first."""
    phrases = sorted(getattr(known(), name), key=lambda phrase: (-len(phrase), phrase))
    return f"(?:{'|'.join(map(re.escape, phrases))})"


def nearest(question: str, card: Card) -> str:
    """The English wording that shares most with a question, if possible one that it does not contradict; the claim, if
    there is no other."""
    if not card.questions.get(ENGLISH):
        return card.claim_text
    ranked = _rank(question, card)
    first = [text for share, text in ranked if share == ranked[0][0]]
    return next((text for text in first if contradicts(question, text) is None), first[0])


def contradiction(question: str, card: Card) -> Contradiction | None:
    """How a question contradicts a card's claim or its nearest wording, if it does."""
    return contradicts(question, card.claim_text) or contradicts(question, nearest(question, card))


def repeats(question: str, card: Card, lang: str) -> str:
    """The wording of a card that a question repeats; empty if there is none."""
    if lang != ENGLISH:
        return _repeats_words(question, card, lang)
    asked = read(question)
    ranked = _rank(question, card)
    if same := next((text for _, text in ranked if _plain(text) == _plain(question)), ""):
        return same
    if not asked.words or unknown_words(question, card) or _denies_claim(question, card):
        return ""
    kind = type_of(question)[0]
    denied = 0.0
    for share, text in ranked:
        # A question that contradicts a wording also contradicts less similar ones, though it may not show there.
        if share < denied:
            return ""
        if returned(question, text) < REPEATED:
            continue
        found = contradicts(question, text)
        if found is not None and found.kind != "name" and not _denies_as_often(found, asked, read(text)):
            denied = share
        elif _says_as_much(question, text) and asks_alike(kind, type_of(text)[0]) and not _renames(found, asked, text):
            return text
    return ""


def _plain(text: str) -> list[str]:
    """The words of a text without articles and the like."""
    return [word for word in read_words(text) if word not in PLAIN]


def _denies_as_often(found: Contradiction, asked: ClaimReading, held: ClaimReading) -> bool:
    """Whether both have as many denials, of other words: "do not believe anything comes", "believe nothing comes"."""
    return found.kind == "negation" and asked.line.count(NOT) == held.line.count(NOT) > 0


def _renames(found: Contradiction | None, asked: ClaimReading, text: str) -> bool:
    """Whether a name replaces a name. Another word of the card in place of one is only another wording."""
    return found is not None and _has_name(asked, found.said) and _has_name(read(text), found.held)


def _has_name(reading: ClaimReading, phrase: str) -> bool:
    words = phrase.split()
    return any(word.name and (word.raw in words or word.key in words) for word in reading.words)


def _says_as_much(question: str, text: str) -> bool:
    """Whether a question says what a wording says, by its words and their order: no name is missing, and words after
    neither "in" nor "of" are in the same order, unless one of the two is a passive."""
    asked, held = read(question), read(text)
    if stance(question) != stance(text) or _order(question) != _order(text):
        return False
    if any(word.name and not stands(word, asked) for word in held.words):
        return False
    if bool(asked.by_at) != bool(held.by_at):
        return True
    here = [word for word in asked.words if not word.beside]
    there = [word for word in held.words if not word.beside]
    mine = [key for word in here if (key := _key_in(word.key, there))]
    return mine == [word.key for word in there if word.key in mine] or len(set(mine)) < len(mine)


def _key_in(key: str, words: Sequence[Word]) -> str:
    """The key of the same word among others; empty if there is none."""
    return next((word.key for word in words if same_key(key, word.key)), "")


def stance(text: str) -> tuple[bool, bool]:
    """Whether a text is about what somebody says, means or believes, and whether it is about what should be. Both are
    different claims from what is so."""
    words = read_words(text)
    return any(word in known().attributes for word in words), any(word in known().demands for word in words)


def _order(text: str) -> frozenset[str]:
    """Small words that reverse a claim, such as "before" and "after", "more" and "less"."""
    return known().turns.intersection(read_words(text))


def unknown_words(question: str, card: Card) -> list[str]:
    """The words of a question that no English wording of a card has."""
    texts = [text for lang, text in wordings(card) if lang == ENGLISH]
    readings = [read(text) for text in texts]
    unknown = [word.raw for word in read(question).words if not any(stands(word, one) for one in readings)]
    # "Vitamin D" is not "vitamin C", though no letter is a word.
    return unknown + sorted(set(_LETTER.findall(question)).difference(*map(_LETTER.findall, texts)))


def known_share(question: str, card: Card) -> float:
    """The share of a question's words that any English wording of a card has, 0 to 1."""
    unknown = len(unknown_words(question, card))
    return max(0.0, 1 - unknown / (len(read(question).words) or 1))


def is_brief(question: str, card: Card) -> bool:
    """Whether a question is about as long as the claim, so that each of its words matters. A longer text says other
    things too."""
    return len(read(question).words) <= MORE * len(read(nearest(question, card)).words)


def respell(question: str, card: Card, alike: Callable[[str, Sequence[str]], str]) -> str:
    """A question with synonyms replaced by the card's words; unchanged if one of its words has none. `alike` returns
    the synonym of a word among others, or an empty string."""
    unknown = unknown_words(question, card)
    asked = read(question)
    if not 0 < len(unknown) <= RESPELLED or any(word.raw in unknown and word.name for word in asked.words):
        return question
    near = [read(text) for _, text in _rank(question, card)[:RESPELLED_FROM]]
    missing = {word.raw.lower() for one in near for word in one.words if not word.name and not stands(word, asked)}
    for word in unknown:
        if not (other := alike(word.lower(), sorted(missing))):
            return question
        question = re.sub(rf"\b{re.escape(word)}\b", other, question)
    return question


def returned(question: str, text: str) -> float:
    """The share of a wording's words that a question has, 0 to 1."""
    asked, held = read(question).keys, read(text).keys
    return _both(asked, held) / (len(held) or 1)


def _rank(question: str, card: Card) -> list[tuple[float, str]]:
    """The English wordings by how much they share with a question; among equals the claim comes first."""
    asked = read(question).keys
    texts = [text for lang, text in wordings(card) if lang == ENGLISH] or [card.claim_text]
    shares = [2 * _both(asked, held) / (len(asked) + len(held) or 1) for held in (read(text).keys for text in texts)]
    return sorted(zip(shares, texts, strict=True), key=lambda pair: -pair[0])


def _both(asked: frozenset[str], held: frozenset[str]) -> int:
    return sum(any(same_key(key, other) for other in asked) for key in held)


def _denies_claim(question: str, card: Card) -> bool:
    """Whether a question has another number than the claim, or the opposite of one of its words."""
    found = contradicts(question, card.claim_text)
    return found is not None and found.kind in ("number", "opposite")


# --- other languages


def _repeats_words(question: str, card: Card, lang: str) -> str:
    texts = [text for text_lang, text in wordings(card) if text_lang == lang]
    if lang not in _read_in() or not texts:
        return ""
    asked, denied = _line(question, lang)
    known_words = {key for text in texts for key in _line(text, lang)[0]}
    if not asked or not known_words.issuperset(asked):
        return ""
    for text in texts:
        held, held_denied = _line(text, lang)
        shared = [key for key in held if key in asked]
        in_order = shared == [key for key in asked if key in held]
        if in_order and denied == held_denied and len(set(shared)) >= IN_ORDER * len(set(held)):
            return text
    return ""


@cache
def _read_in() -> frozenset[str]:
    return frozenset(lang for lang in ("de", "es", "fr", "pt") if read_table(lang, "claims"))


@lru_cache(maxsize=4096)
def _line(text: str, lang: str) -> tuple[tuple[str, ...], int]:
    """The stems of the content words, in order, and the number of denials."""
    lists = Words(lang, "claims")
    small = (stop_words(lang) - lists.kept) | lists.filler
    words = [word for word in read_words(text) if word not in small]
    return tuple(stem(word, lang) for word in words), sum(word in lists.negation for word in words)
