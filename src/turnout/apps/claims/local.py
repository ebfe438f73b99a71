"""The response mode without a model: hybrid search, the type of the question, its form and the polarity guard.

Invariant: unsure is novel. An exact match needs the form of a claim, the gate, the type, and no contradiction; every
decision says why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from turnout.search.number import agree
from turnout.search.vocabulary import lists
from turnout.text.fold import fold
from turnout.text.words import match_phrase

from .card import Card, ClaimType, asks_alike
from .contradiction import stands
from .gate import ClaimGate
from .kind import SURE, type_of, weigh_types
from .library import ClaimCandidate, ClaimLibrary, is_near
from .match import compare
from .reading import Word, known, read
from .wording import ENGLISH, bare, contradiction, is_brief, language_of, nearest, repeats, respell, stance, wordings

ClaimMode = Literal["exact_match", "contextual", "novel_claim"]
ClaimForm = Literal["claim", "alternative", "comparison", "clarification", "open", "vague"]

# Cards that a synthesis rests on at most, and those of the ones shown before that "this" may mean.
SYNTHESISED: Final = 3
MEANT: Final = 2
# Words of a claim that a question about it says, where it is not near as a whole: a comparison speaks of two.
ABOUT: Final = 2
# A longer question names what it means, whatever else it says.
VAGUE_WORDS: Final = 9

_WORDS: Final = re.compile(r"[^\W_]+(?:'[^\W\d_]+)?")


class ClaimDecision(Struct, frozen=True):
    """What a question gets."""

    mode: ClaimMode
    cards: tuple[str, ...]
    """Ids: the one that matches, or those a synthesis rests on; none for a new audit."""
    claim_type: ClaimType
    confidence: float
    reasons: tuple[str, ...]
    """Never empty."""
    candidates: tuple[ClaimCandidate, ...]
    unclear: bool = False
    """It means something that was shown, and nothing was: the next step is to ask what is meant, not an audit."""


def decide_locally(question: str, library: ClaimLibrary, shown: Sequence[str] = ()) -> ClaimDecision:
    """The mode of a question that stands for itself, or follows the cards `shown` in this session (their ids, the
    last shown last). Blocking."""
    kind, _ = type_of(question)
    form = form_of(question)
    if form == "vague":
        return _follow(question, kind, shown)
    if form in ("comparison", "clarification"):
        gate = library.gate()
        near = [one for one in library.search(question, floor=False) if _is_about(question, one, gate)]
        return _relate(form, kind, tuple(near), shown)
    question = bare(question)
    candidates = tuple(library.search(question))
    if form != "claim":
        said = "it proposes another explanation" if form == "alternative" else "it asks for more than yes or no"
        return _novel(kind, candidates, f"{said}: that is a claim of its own")
    if not candidates:
        # One word may say what is meant, and in a small library it tells next to nothing.
        candidates = tuple(library.search(question, floor=False))
    if not candidates:
        return _novel(kind, candidates, "no card is near")
    return _match(question, kind, candidates, library)


def form_of(question: str) -> ClaimForm:
    """What a question does: states a claim or asks whether it is so; or compares, clarifies, proposes, asks openly."""
    words = [word.replace("’", "'") for word in _WORDS.findall(fold(question).text.replace("’", "'"))]
    lists = known()
    if len(words) <= VAGUE_WORDS and _has(words, lists.vague) and not _names(words):
        return "vague"
    if match_phrase(words, lists.begins):
        return "alternative"
    if _has(words, lists.compare):
        return "comparison"
    if _has(words, lists.clarify):
        return "clarification"
    if _has(words, lists.alternative):
        return "alternative"
    return "open" if words and words[0] in lists.wh and "?" in question else "claim"


def _has(words: Sequence[str], phrases: frozenset[str]) -> bool:
    return any(match_phrase(words, phrases, at) for at in range(len(words)))


def _names(words: Sequence[str]) -> bool:
    """Whether it says what it is about: a word that is neither small nor one of those that ask about cards."""
    lists = known()
    return any(word not in lists.small and not _asks(word) and word not in lists.please for word in words)


def _follow(question: str, kind: ClaimType, shown: Sequence[str]) -> ClaimDecision:
    if not shown:
        said = f"{question[:80]!r} means a card that was shown, and none was: ask what is meant"
        return ClaimDecision("novel_claim", (), kind, 0.0, (said,), (), unclear=True)
    meant = tuple(dict.fromkeys(reversed(shown)))[:MEANT]
    return ClaimDecision("contextual", meant, kind, 1.0, ("it asks about what was shown last",), ())


def _is_about(question: str, one: ClaimCandidate, gate: ClaimGate) -> bool:
    """Whether a question is about a card: as near as a candidate must be, or it says enough of the claim's words."""
    claim = read(one.card.claim_text)
    lists = known()
    told = lists.please | lists.happens
    named = [word for word in read(question).words if word.raw.lower() not in told and not _asks(word.raw)]
    said = {word.key for word in named if stands(word, claim)}
    near = one.similarity is not None and is_near(one, gate)
    return len(said) >= ABOUT or (bool(said) and (near or len(said) == len(named)))


def _asks(word: str) -> bool:
    """Whether a word is one of those that ask about cards."""
    return word.lower() in _asking()


@cache
def _asking() -> frozenset[str]:
    lists = known()
    return frozenset(word for phrase in (*lists.vague, *lists.clarify, *lists.compare) for word in phrase.split())


def _relate(
    form: ClaimForm, kind: ClaimType, candidates: tuple[ClaimCandidate, ...], shown: Sequence[str]
) -> ClaimDecision:
    """A synthesis of the cards that are near; what was shown last belongs to it where it compares."""
    near = [one.card.id for one in candidates]
    if not near:
        return _novel(kind, candidates, f"it is a {form}, and no card is near")
    most = SYNTHESISED if form == "comparison" else 1
    cards = tuple(dict.fromkeys((*near[:most], *(tuple(shown)[-1:] if form == "comparison" else ()))))
    return ClaimDecision("contextual", cards, kind, candidates[0].score, (f"it is a {form} of cards",), candidates)


def _match(
    question: str, kind: ClaimType, candidates: tuple[ClaimCandidate, ...], library: ClaimLibrary
) -> ClaimDecision:
    """The card whose wording the question repeats; else the first card of the question's type that does not deny it,
    if it is near enough and nothing is in doubt."""
    lang = language_of(question)
    for at, one in enumerate(candidates):
        # Words are embedded for the first alone: each card has others, and they take longer than the search.
        asked = question if at or lang != ENGLISH else respell(question, one.card, library.alike)
        if (wording := repeats(asked, one.card, lang)) and not find_doubt(asked, one.card, wording, lang):
            said = f"{one.card.id} makes the same claim: it is asked as {wording!r} there, nothing denied"
            return ClaimDecision("exact_match", (one.card.id,), one.card.claim_type_category, 1.0, (said,), candidates)
    if lang != ENGLISH:
        said = f"{candidates[0].card.id} has no such wording in the language of the question ({lang})"
        return _novel(kind, candidates, f"{said}, and only English ones are compared otherwise")
    alike = [one for one in candidates if is_alike(question, kind, one)]
    if not alike:
        held = candidates[0].card.claim_type_category
        return _novel(kind, candidates, f"it asks a question of the type {kind}, the nearest card one of {held}")
    # What denies the question is another claim, however near: the card that affirms it may stand right behind.
    denied = {one.card.id: found for one in alike if (found := contradiction(question, one.card))}
    says_so = [one for one in alike if one.card.id not in denied]
    if not says_so:
        return _novel(kind, candidates, f"{alike[0].card.id} says something else ({denied[alike[0].card.id]})")
    best = says_so[0]
    features = compare(question, says_so)
    gate = library.gate(best.similarity is not None)
    score = gate.score(features)
    happened = _asks_whether_it_happened(question, says_so)
    if not gate.admits(features) and not happened:
        if nearer := denied.get(alike[0].card.id):
            return _novel(kind, candidates, f"{alike[0].card.id} says something else ({nearer})")
        said = f"{best.card.id} is not near enough: {score:.2f}, an exact match needs {gate.threshold:.2f}"
        return _novel(kind, candidates, said)
    if is_brief(question, best.card) and not happened:
        return _novel(kind, candidates, f"{best.card.id} is near, and says it in no such words")
    if doubt := find_doubt(question, best.card):
        return _novel(kind, candidates, f"{best.card.id} may say something else: {doubt}")
    near = "the one that says whether it happened" if happened else f"{score:.2f}, {gate.threshold:.2f} is enough"
    said = f"{best.card.id} makes the same claim: {near}; the same type, nothing denied"
    return ClaimDecision("exact_match", (best.card.id,), best.card.claim_type_category, score, (said,), candidates)


def refuses(question: str, candidate: ClaimCandidate) -> bool:
    """Whether a card is not the question's however near it is: another type, a contradiction, a doubt."""
    if not is_alike(question, type_of(question)[0], candidate) or contradiction(question, candidate.card):
        return True
    return bool(find_doubt(question, candidate.card))


def _names_what_happened(question: str) -> list[Word]:
    """What a question names that asks nothing but whether there was such a thing; nothing if it asks for more."""
    words = read(question).words
    named = [word for word in words if word.raw.lower() not in known().happens]
    return named if len(named) < len(words) else []


def _asks_whether_it_happened(question: str, alike: Sequence[ClaimCandidate]) -> bool:
    """Whether it asks if there was such a thing, and the first card is the one of its type that says there was."""
    named = _names_what_happened(question)
    says = [all(stands(word, read(nearest(question, one.card))) for word in named) for one in alike]
    return bool(named) and says[0] and says.count(True) == 1


def find_doubt(question: str, card: Card, wording: str = "", lang: str = ENGLISH) -> str:
    """What does not contradict a card and yet may make another claim of it: a number that its claim does not have, a
    name that it nowhere has, a denial in other words. Empty if there is none, or in a language of which nothing is
    known."""
    if lang != ENGLISH:
        return ""
    asked, held = read(question), read(wording or nearest(question, card))
    said = [text for told, text in wordings(card) if told == ENGLISH]
    numbers = [number for text in said for number in read(text).numbers]
    for one in asked.numbers:
        if not any(agree(one, other) or agree(other, one) for other in numbers):
            return f"its claim says nothing of {one.spelled!r}"
    told = (*said, card.claimant, card.short_answer, card.deep_answer, *card.category_tags)
    for word in asked.words:
        if word.name and not any(stands(word, read(text)) for text in told):
            return f"it says nothing of {word.raw!r}"
    if stance(question) != stance(wording or nearest(question, card)):
        return "one is about who says it or what should be, the other about what is so"
    denials = lists("en").denial | known().doubt
    for word in asked.words:
        if word.raw.lower() in denials and not any(stands(word, read(text)) for text in said):
            return f"{word.raw!r} may deny it"
    for word in held.words:
        if word.raw.lower() in denials and not stands(word, asked):
            return f"{word.raw!r} may deny it"
    return ""


def is_alike(question: str, kind: ClaimType, candidate: ClaimCandidate) -> bool:
    """Whether a question is of a card's type, as far as words tell: they tell the same of both, or nothing of the
    question and nothing for sure of the card's claim."""
    held = candidate.card.claim_type_category
    if asks_alike(kind, held):
        return True
    if asks_alike(kind, ClaimType.HISTORICAL):
        return weigh_types(candidate.card.claim_text)[held] < SURE
    return asks_alike(kind, type_of(candidate.card.claim_text)[0])


def _novel(kind: ClaimType, candidates: tuple[ClaimCandidate, ...], said: str) -> ClaimDecision:
    score = candidates[0].score if candidates else 0.0
    return ClaimDecision("novel_claim", (), kind, max(0.0, 1.0 - score), (said,), candidates)
