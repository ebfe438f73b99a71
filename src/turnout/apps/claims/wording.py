"""The wordings of a card: its claim and the other ways to ask it that it carries, in any language.

A question that says what one of them says, in words that the card has, asks for the card. Of English the guard is asked
as well. Of other languages no grammar is known at all, so there the words must stand in the order of a wording, and be
denied as often.

Invariant: a word that no wording of the card has makes it another question.
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
# Of the words of a wording, so many stand in a question that repeats it: it may leave out one of four. With two thirds
# "Was Matthew written before Mark?" passes for "Did the writer of Matthew borrow from Mark?".
REPEATED: Final = 0.75

# The same in languages of which the order of the words is all that is known; it must be the same.
IN_ORDER: Final = 0.66
# Words of a question that may mean the same as others of the card, and wordings in which those are looked for.
RESPELLED: Final = 2
RESPELLED_FROM: Final = 3
# What says nothing where a wording is repeated word for word.
PLAIN: Final = frozenset(("a", "an", "the", "really", "actually", "truly"))

# What people say around a claim: who told them, and whether that is so. Only so much of either end is looked at.
EDGE: Final = 120
_INTERJECTION: Final = re.compile(
    r"\A(?:(?:so|ok|okay|hey|hi|well|um|wait|and|but|no way|hmm|lol|wow|seriously|honestly|please)\b"
    r"[\s,.!…:-]{1,5}){1,4}",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"\A(?:(?:i|we)(?:'ve|'d| have| had)?(?: (?:just|once|always|often|recently|also|keep|kept)){0,3} "
    r"(?:heard|hear|hearing|read|reading|saw|was told|were told|learned|learnt|was taught|were taught|wonder"
    r"|was wondering)"
    r"(?: (?:somewhere|once|online|at school|in school|on tv|on the internet|people say|someone say)){0,2}"
    r"|(?:my|our|a|some) [\w' ]{1,30}? (?:says?|said|claims?|claimed|insists?|told (?:me|us)|tells (?:me|us)|swears?)"
    r"|(?:people|everyone|everybody|they|some|many|somebody|someone)(?: (?:always|often|all|keep|keeps)){0,2} "
    r"(?:say|says|said|saying|claim|claims|tell me|tells me|told me|told us|tell us)"
    r"|(?:is|was) it (?:really |actually |in fact |indeed )?(?:true|right|correct|a fact|the case|so)(?= that )"
    r"|(?:isn't|is not|wasn't) it (?:true|a fact|the case)"
    r"|true or false|fact or myth|quick question|fact check|tell me|can you tell me|do you know)"
    r"(?: that| if| whether)?[\s,.:;…-]{1,5}",
    re.IGNORECASE,
)
# A letter that stands for something; initials do not.
_LETTER: Final = re.compile(r"\b[B-HJ-Z]\b(?![.'])")
# An apostrophe that many leave out.
_SLOPPY: Final = re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|would|could|should|ca)nt\b", re.IGNORECASE)
_ENDING: Final = re.compile(
    r"(?:[,.;!?…]{1,5}|\s-{1,2}|\s)\s?(?:"
    r"(?:is|was|are|isn't|wasn't|aren't|does|do|did) (?:that|this|it|they|he|she)(?: (?:really|actually))?"
    r" (?:right|true|correct|so|legit|real|a fact|the case|hold up|hold true|a myth|accurate)"
    r"|(?:is there )?(?:any truth|anything) to (?:it|that|this)|true or (?:false|not)|fact or (?:myth|fiction)"
    r"|right|correct|true|yes or no|or (?:not|what|no))\s?[?.!…]{0,5}\s?\Z",
    re.IGNORECASE,
)


def wordings(card: Card) -> Iterator[tuple[str, str]]:
    """What a card says or asks, each with its language; its claim first."""
    yield card.lang, card.claim_text
    for lang, texts in card.questions.items():
        for text in texts:
            yield lang, text


def language_of(question: str) -> str:
    """The language of a question. One that begins like an English one is, and one too short to tell is read as such."""
    first = question.replace("’", "'").lower().split()
    return ENGLISH if first and first[0] in known().asks else guess(question) or ENGLISH


def bare(question: str) -> str:
    """A question without what stands around it: who told it, and whether that is so."""
    text = _SLOPPY.sub(r"\1n't", " ".join(question.replace("’", "'").split()))
    for edge in (_INTERJECTION, _OPENING, _INTERJECTION):
        text = edge.sub("", text[:EDGE]) + text[EDGE:]
    asks = f"{text[:-EDGE]}{_ENDING.sub('', text[-EDGE:])}"
    text = text if asks == text else f"{asks.rstrip(' ,.;?!…')}?"
    return text if any(map(str.isalnum, text)) else question


def nearest(question: str, card: Card) -> str:
    """The English wording that shares most with a question, and of several that do one that it does not deny; the
    claim, if there is no other."""
    if not card.questions.get(ENGLISH):
        return card.claim_text
    ranked = _rank(question, card)
    first = [text for share, text in ranked if share == ranked[0][0]]
    return next((text for text in first if contradicts(question, text) is None), first[0])


def contradiction(question: str, card: Card) -> Contradiction | None:
    """What keeps a question that is only near from being a card's: what denies its claim, or the wording that is
    nearest."""
    return contradicts(question, card.claim_text) or contradicts(question, nearest(question, card))


def repeats(question: str, card: Card, lang: str) -> str:
    """The wording of a card that a question repeats; empty if it repeats none."""
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
        # What denies a wording denies those that are less like it, whether or not that can be seen there.
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
    """A text word for word, but for articles and what only asks."""
    return [word for word in read_words(text) if word not in PLAIN]


def _denies_as_often(found: Contradiction, asked: ClaimReading, held: ClaimReading) -> bool:
    """Whether both deny, another word each: "do not believe anything comes after it", "believe nothing comes"."""
    return found.kind == "negation" and asked.line.count(NOT) == held.line.count(NOT) > 0


def _renames(found: Contradiction | None, asked: ClaimReading, text: str) -> bool:
    """Whether a name stands in the place of a name. A word of the card's own in the place of another is a way to say
    it."""
    return found is not None and _has_name(asked, found.said) and _has_name(read(text), found.held)


def _has_name(reading: ClaimReading, said: str) -> bool:
    told = said.split()
    return any(word.name and (word.raw in told or word.key in told) for word in reading.words)


def _says_as_much(question: str, text: str) -> bool:
    """Whether a question says what a wording does, as far as words and their order tell: no name is left out,
    and what stands behind neither "in" nor "of" stands in the same order, unless one is a passive."""
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
    """What a word is called among others."""
    return next((word.key for word in words if same_key(key, word.key)), "")


def stance(text: str) -> tuple[bool, bool]:
    """Whether it is about what somebody says, means or believes; and whether about what should be. Both are other
    claims than what is so."""
    words = read_words(text)
    return any(word in known().attributes for word in words), any(word in known().demands for word in words)


def _order(text: str) -> frozenset[str]:
    """What a claim says of before and after, more and less: small words that turn it round."""
    return known().turns.intersection(read_words(text))


def unknown_words(question: str, card: Card) -> list[str]:
    """The words of a question that no English wording of a card has."""
    texts = [text for lang, text in wordings(card) if lang == ENGLISH]
    readings = [read(text) for text in texts]
    unknown = [word.raw for word in read(question).words if not any(stands(word, one) for one in readings)]
    # "Vitamin D" is not "vitamin C", though no letter is a word.
    return unknown + sorted(set(_LETTER.findall(question)).difference(*map(_LETTER.findall, texts)))


def known_share(question: str, card: Card) -> float:
    """How many words of a question stand in any English wording of a card, 0 to 1."""
    unknown = len(unknown_words(question, card))
    return max(0.0, 1 - unknown / (len(read(question).words) or 1))


def is_brief(question: str, card: Card) -> bool:
    """Whether a question says no more than a claim does: then each of its words is part of what is asked. A longer
    text tells other things, too, whatever it claims."""
    return len(read(question).words) <= MORE * len(read(nearest(question, card)).words)


def respell(question: str, card: Card, alike: Callable[[str, Sequence[str]], str]) -> str:
    """A question with the card's own words in the place of those that mean the same; as it is where one means
    something else. `alike` tells which of several words, if any, means the same as another."""
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
    """How many words of a wording stand in a question, 0 to 1."""
    asked, held = read(question).keys, read(text).keys
    return _both(asked, held) / (len(held) or 1)


def _rank(question: str, card: Card) -> list[tuple[float, str]]:
    """The English wordings by how much they share with a question; of those that are alike the claim first."""
    asked = read(question).keys
    texts = [text for lang, text in wordings(card) if lang == ENGLISH] or [card.claim_text]
    shares = [2 * _both(asked, held) / (len(asked) + len(held) or 1) for held in (read(text).keys for text in texts)]
    return sorted(zip(shares, texts, strict=True), key=lambda pair: -pair[0])


def _both(asked: frozenset[str], held: frozenset[str]) -> int:
    return sum(any(same_key(key, other) for other in asked) for key in held)


def _denies_claim(question: str, card: Card) -> bool:
    """Whether it has another number than the claim, or the opposite of one of its words, whatever the wording."""
    found = contradicts(question, card.claim_text)
    return found is not None and found.kind in ("number", "opposite")


# --- other languages


def _repeats_words(question: str, card: Card, lang: str) -> str:
    texts = [text for told, text in wordings(card) if told == lang]
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
    """The stems that carry something, in order, and how many of them deny."""
    lists = Words(lang, "claims")
    small = (stop_words(lang) - lists.kept) | lists.filler
    words = [word for word in read_words(text) if word not in small]
    return tuple(stem(word, lang) for word in words), sum(word in lists.negation for word in words)
