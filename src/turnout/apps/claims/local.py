"""The response mode without a model: hybrid search, the type of the question, its form and the polarity guard.

Invariant: unsure is novel. An exact match needs the form of a claim, the gate, the type, and no contradiction; every
choice has a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from turnout.core.verdict import Reason
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
from .reading import known, read
from .wording import ENGLISH, bare, contradiction, is_brief, language_of, nearest, repeats, respell, stance, wordings

ClaimMode = Literal["exact_match", "contextual", "novel_claim"]
ClaimForm = Literal["claim", "alternative", "comparison", "clarification", "open", "vague", "greeting"]

# The most cards a synthesis rests on, and how many of those shown last "this" may mean.
SYNTHESISED: Final = 3
MEANT: Final = 2
# A question that is not near a claim as a whole is about it if it has this many of its words: a comparison has two
# subjects.
ABOUT: Final = 2
# A longer question names its subject.
VAGUE_WORDS: Final = 9

_WORDS: Final = re.compile(r"[^\W_]+(?:'[^\W\d_]+)?")


class ClaimChoice(Struct, frozen=True):
    """The response a question gets."""

    mode: ClaimMode
    confidence: float
    reasons: tuple[Reason, ...]
    """Never empty."""
    cards: tuple[str, ...] = ()
    """Ids: the card that matches, or those a synthesis rests on; none for a new audit."""
    claim_type: ClaimType | None = None
    candidates: tuple[ClaimCandidate, ...] = ()
    asks_back: Literal["", "unclear", "greeting"] = ""
    """Why the user is asked for a claim instead of an audit: the question refers to something that was never shown, or
    it is only a greeting."""
    claim_text: str = ""
    """The claim to audit, if an agent worded it; empty: the question."""
    context: str = ""


def decide_locally(question: str, library: ClaimLibrary, shown: Sequence[str] = ()) -> ClaimChoice:
    """The mode of a question that stands alone, or follows the cards `shown` in this session (their ids, the last one
    last). Blocking."""
    kind, _ = type_of(question)
    form = form_of(question)
    if form == "greeting":
        reason = Reason("cards.greeting", "it greets or thanks and makes no claim: ask for one")
        return ClaimChoice("contextual", 1.0, (reason,), asks_back="greeting")
    if form == "vague":
        return _follow(question, kind, shown)
    if form in ("comparison", "clarification"):
        gate = library.gate()
        near = [one for one in library.search(question, floor=False) if _is_about(question, one, gate)]
        return _relate(form, kind, tuple(near), shown)
    question = bare(question)
    candidates = tuple(library.search(question))
    if form != "claim":
        why = "it proposes another explanation" if form == "alternative" else "it asks for more than yes or no"
        return _novel(kind, candidates, f"{why}: that is a claim of its own")
    if not candidates:
        # In a small library a rare word weighs next to nothing, though it may name the subject.
        candidates = tuple(library.search(question, floor=False))
    if not candidates:
        return _novel(kind, candidates, "no card is near")
    return _match(question, kind, candidates, library)


def form_of(question: str) -> ClaimForm:
    """What a question does: states a claim or asks about one, compares, clarifies, proposes, asks openly, greets."""
    words = _WORDS.findall(fold(question).text.replace("’", "'"))
    lists = known()
    if _is_greeting(words):
        return "greeting"
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


def _is_greeting(words: Sequence[str]) -> bool:
    """Whether the words are greetings, thanks and what goes with them, and nothing else."""
    at = 0
    while at < len(words) and (length := match_phrase(words, known().greeting, at)):
        at += length
    return 0 < at == len(words)


def _has(words: Sequence[str], phrases: frozenset[str]) -> bool:
    return any(match_phrase(words, phrases, at) for at in range(len(words)))


def _names(words: Sequence[str]) -> bool:
    """Whether it names a subject: a word that is neither small nor one that asks about cards."""
    naming_nothing = known().small | known().please | _asking()
    return any(word not in naming_nothing for word in words)


def _follow(question: str, kind: ClaimType, shown: Sequence[str]) -> ClaimChoice:
    if not shown:
        reason = Reason(
            "cards.unclear", f"{question[:80]!r} means a card that was shown, and none was: ask what is meant"
        )
        return ClaimChoice("contextual", 0.0, (reason,), claim_type=kind, asks_back="unclear")
    meant = tuple(dict.fromkeys(reversed(shown)))[:MEANT]
    return _choice("contextual", 1.0, "it asks about what was shown last", kind, (), meant)


def _is_about(question: str, candidate: ClaimCandidate, gate: ClaimGate) -> bool:
    """Whether a question is about a card: near enough, or with enough of the claim's words."""
    claim = read(candidate.card.claim_text)
    ignored = known().please | known().happens | _asking()
    named = [word for word in read(question).words if word.raw.lower() not in ignored]
    shared = {word.key for word in named if stands(word, claim)}
    near = candidate.similarity is not None and is_near(candidate, gate)
    return len(shared) >= ABOUT or (bool(shared) and (near or len(shared) == len(named)))


@cache
def _asking() -> frozenset[str]:
    """The words that ask about cards."""
    lists = known()
    return frozenset(word for phrase in (*lists.vague, *lists.clarify, *lists.compare) for word in phrase.split())


def _relate(
    form: ClaimForm, kind: ClaimType, candidates: tuple[ClaimCandidate, ...], shown: Sequence[str]
) -> ClaimChoice:
    """A synthesis of the cards that are near; a comparison also takes the card shown last."""
    near = [one.card.id for one in candidates]
    if not near:
        return _novel(kind, candidates, f"it is a {form}, and no card is near")
    cards = [*near[:SYNTHESISED], *shown[-1:]] if form == "comparison" else near[:1]
    reason = f"it is a {form} of cards"
    return _choice("contextual", candidates[0].score, reason, kind, candidates, tuple(dict.fromkeys(cards)))


def _match(
    question: str, kind: ClaimType, candidates: tuple[ClaimCandidate, ...], library: ClaimLibrary
) -> ClaimChoice:
    """The card whose wording the question repeats; else the first card of the question's type that does not contradict
    it, if it is near enough and nothing is in doubt."""

    def exact(card: Card, score: float, why: str) -> ClaimChoice:
        reason = f"{card.id} makes the same claim: {why}"
        return _choice("exact_match", score, reason, card.claim_type_category, candidates, (card.id,))

    lang = language_of(question)
    for at, one in enumerate(candidates):
        # Words are embedded for the first card only: each card has others, and embedding takes longer than the search.
        asked = question if at or lang != ENGLISH else respell(question, one.card, library.alike)
        if (wording := repeats(asked, one.card, lang)) and not find_doubt(asked, one.card, wording, lang):
            return exact(one.card, 1.0, f"it is asked as {wording!r} there, nothing denied")
    if lang != ENGLISH:
        why = f"{candidates[0].card.id} has no such wording in the language of the question ({lang})"
        return _novel(kind, candidates, f"{why}, and only English ones are compared otherwise")
    alike = [one for one in candidates if is_alike(question, kind, one)]
    if not alike:
        held = candidates[0].card.claim_type_category
        return _novel(kind, candidates, f"it asks a question of the type {kind}, the nearest card one of {held}")
    # A card that denies the question makes another claim, however near it is; the one that affirms it may come next.
    denied = {one.card.id: found for one in alike if (found := contradiction(question, one.card))}
    affirming = [one for one in alike if one.card.id not in denied]
    if not affirming:
        return _novel(kind, candidates, f"{alike[0].card.id} says something else ({denied[alike[0].card.id]})")
    best = affirming[0]
    features = compare(question, affirming)
    gate = library.gate(best.similarity is not None)
    score = gate.score(features)
    happened = _asks_whether_it_happened(question, affirming)
    if not gate.admits(features) and not happened:
        if nearer := denied.get(alike[0].card.id):
            return _novel(kind, candidates, f"{alike[0].card.id} says something else ({nearer})")
        why = f"{best.card.id} is not near enough: {score:.2f}, an exact match needs {gate.threshold:.2f}"
        return _novel(kind, candidates, why)
    if is_brief(question, best.card) and not happened:
        return _novel(kind, candidates, f"{best.card.id} is near, and says it in no such words")
    if doubt := find_doubt(question, best.card):
        return _novel(kind, candidates, f"{best.card.id} may say something else: {doubt}")
    near = "the one that says whether it happened" if happened else f"{score:.2f}, {gate.threshold:.2f} is enough"
    return exact(best.card, score, f"{near}; the same type, nothing denied")


def refuses(question: str, candidate: ClaimCandidate) -> bool:
    """Whether a card cannot answer the question however near it is: another type, a contradiction, a doubt."""
    if not is_alike(question, type_of(question)[0], candidate) or contradiction(question, candidate.card):
        return True
    return bool(find_doubt(question, candidate.card))


def _asks_whether_it_happened(question: str, alike: Sequence[ClaimCandidate]) -> bool:
    """Whether a question only asks if something happened, and the first of these cards alone says that it did."""
    words = read(question).words
    named = [word for word in words if word.raw.lower() not in known().happens]
    affirms = [all(stands(word, read(nearest(question, one.card))) for word in named) for one in alike]
    return 0 < len(named) < len(words) and affirms[0] and affirms.count(True) == 1


def find_doubt(question: str, card: Card, wording: str = "", lang: str = ENGLISH) -> str:
    """What a question has that the card may not mean, though nothing contradicts it: a number that no wording has, a
    name that the card does not mention, a denial in other words. Empty if there is none, and for other languages."""
    if lang != ENGLISH:
        return ""
    asked, held = read(question), read(wording or nearest(question, card))
    texts = [text for text_lang, text in wordings(card) if text_lang == ENGLISH]
    numbers = [number for text in texts for number in read(text).numbers]
    for one in asked.numbers:
        if not any(agree(one, other) or agree(other, one) for other in numbers):
            return f"its claim says nothing of {one.spelled!r}"
    mentioned = (*texts, card.claimant, card.short_answer, card.deep_answer, *card.category_tags)
    for word in asked.words:
        if word.name and not any(stands(word, read(text)) for text in mentioned):
            return f"it says nothing of {word.raw!r}"
    if stance(question) != stance(wording or nearest(question, card)):
        return "one is about who says it or what should be, the other about what is so"
    denials = lists("en").denial | known().doubt
    for word in asked.words:
        if word.raw.lower() in denials and not any(stands(word, read(text)) for text in texts):
            return f"{word.raw!r} may deny it"
    for word in held.words:
        if word.raw.lower() in denials and not stands(word, asked):
            return f"{word.raw!r} may deny it"
    return ""


def is_alike(question: str, kind: ClaimType, candidate: ClaimCandidate) -> bool:
    """Whether a question may be of a card's type: its words point to the same type, or they point to none and the
    claim's words are not sure of another."""
    held = candidate.card.claim_type_category
    if asks_alike(kind, held):
        return True
    if asks_alike(kind, ClaimType.HISTORICAL):
        return weigh_types(candidate.card.claim_text)[held] < SURE
    return asks_alike(kind, type_of(candidate.card.claim_text)[0])


def _novel(kind: ClaimType, candidates: tuple[ClaimCandidate, ...], why: str) -> ClaimChoice:
    score = candidates[0].score if candidates else 0.0
    return _choice("novel_claim", 1.0 - score, why, kind, candidates)


def _choice(
    mode: ClaimMode,
    score: float,
    why: str,
    kind: ClaimType,
    candidates: tuple[ClaimCandidate, ...],
    cards: tuple[str, ...] = (),
) -> ClaimChoice:
    confidence = max(0.0, min(1.0, score))
    return ClaimChoice(mode, confidence, (Reason(f"cards.{mode}", why),), cards, kind, candidates)
