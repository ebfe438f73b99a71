"""A card as a ClaimReview, the form in which fact checkers publish (schema.org, JSON-LD).

An export writes the fields that ClaimReview has, and the whole card under `turnout:card`, so that importing it again
gives the same card. Another publisher's review becomes a card with the fields it has; the review itself is kept and
exported unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from .card import Card, CardConfidence, CardSource, ClaimVerdict
from .kind import GUESSED, type_of

CONTEXT = {"@vocab": "https://schema.org/", "turnout": "urn:turnout:claims:"}
CARD = "turnout:card"
REVIEW = "claim_review"
"""The key of another publisher's review in `extra`."""
# Verdicts on ClaimReview's scale from 1 (false) to 5 (true); "Unfalsifiable" has no place on it.
RATINGS = {ClaimVerdict.FALSE: 1, ClaimVerdict.MISLEADING: 2, ClaimVerdict.DEPENDS: 3, ClaimVerdict.TRUE: 5}
# Names that checkers give their verdicts; the longest name in a rating counts.
NAMES = {
    ClaimVerdict.MISLEADING: (
        "mostly false",
        "mostly true",
        "half true",
        "partly",
        "mixture",
        "missing context",
        "out of context",
        "misleading",
        "exaggerated",
    ),
    ClaimVerdict.UNFALSIFIABLE: ("unproven", "unverifiable", "unfalsifiable"),
    ClaimVerdict.DEPENDS: ("depends",),
    ClaimVerdict.FALSE: ("not true", "incorrect", "false", "fake", "hoax", "pants on fire", "wrong"),
    ClaimVerdict.TRUE: ("true", "correct", "accurate"),
}


def is_review(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("@type")
    return kind == "ClaimReview" or (isinstance(kind, list) and "ClaimReview" in kind)


def to_review(card: Card) -> dict[str, Any]:
    """A card in schema.org's terms, with the card itself."""
    theirs = card.extra.get(REVIEW)
    rest = {name: value for name, value in card.extra.items() if name != REVIEW}
    form = msgspec.to_builtins(msgspec.structs.replace(card, extra=rest))
    if isinstance(theirs, Mapping):
        # Unchanged, with our card added, so that changes made here are not lost.
        return {**theirs, CARD: form}
    rating: dict[str, Any] = {"@type": "Rating", "alternateName": card.verdict.value}
    if card.verdict in RATINGS:
        rating |= {"ratingValue": RATINGS[card.verdict], "bestRating": 5, "worstRating": 1}
    item: dict[str, Any] = {"@type": "Claim", "name": card.claim_text}
    if card.claimant:
        item["author"] = {"@type": "Organization", "name": card.claimant}
    review = {
        "@context": CONTEXT,
        "@type": "ClaimReview",
        "identifier": card.id,
        "claimReviewed": card.claim_text,
        "inLanguage": card.lang,
        "itemReviewed": item,
        "reviewRating": rating,
        "abstract": card.short_answer,
        "reviewBody": card.deep_answer,
        "keywords": list(card.category_tags),
        "citation": [{"@type": "CreativeWork", "name": one.citation, "url": one.url} for one in card.sources],
        CARD: form,
    }
    return review | ({"datePublished": card.created_at.isoformat()} if card.created_at else {})


def from_review(entry: dict[str, Any]) -> Card:
    """A card from a review; raises ValidationError or ValueError with a sentence."""
    foreign = {name: value for name, value in entry.items() if name != CARD}
    publisher = _text(_object(entry.get("author")).get("name"))
    if CARD in entry:
        card = msgspec.convert(entry[CARD], Card)
        if {name: value for name, value in to_review(card).items() if name != CARD} == foreign:
            return card
        publisher = card.publisher or publisher
        return msgspec.structs.replace(card, publisher=publisher, extra={**card.extra, REVIEW: foreign})
    claim = _text(entry.get("claimReviewed"))
    if not claim:
        raise ValueError("a ClaimReview says in claimReviewed what was claimed; this one does not")
    item, rating = _object(entry.get("itemReviewed")), _object(entry.get("reviewRating"))
    called = _text(rating.get("alternateName")) or _text(rating.get("name"))
    verdict = read_verdict(called, rating.get("ratingValue"), rating.get("bestRating"), rating.get("worstRating"))
    if verdict is None:
        said = f"reviewRating.alternateName {called[:80]!r}" if called else "reviewRating"
        raise ValueError(f"{said} tells no verdict: say one of {', '.join(ClaimVerdict)}")
    body = _text(entry.get("reviewBody")) or _text(entry.get("description"))
    checker = publisher or "the publisher"
    rated = f"{checker} rated this claim {called or verdict.value!r}."
    url = _text(entry.get("url"))
    return Card(
        # Not its own identifier: one of our cards may have the same.
        id=_id_of(claim, url),
        claim_text=claim,
        claim_type_category=type_of(claim)[0],
        verdict=verdict,
        short_answer=_text(entry.get("abstract")) or body or rated,
        deep_answer=body or rated,
        confidence_level=CardConfidence.LOW,
        confidence_explanation="It was taken over from another checker and not audited here.",
        claimant=_text(_object(item.get("author")).get("name")),
        sources=(CardSource(citation=f"{checker}: {claim}", url=url),) if url else (),
        publisher=publisher,
        lang=(_text(entry.get("inLanguage")) or "en").split("-")[0].lower(),
        extra={REVIEW: foreign, GUESSED: True},
    )


def read_verdict(called: str, value: object, best: object, worst: object) -> ClaimVerdict | None:
    """The verdict of a rating: by its name, otherwise by its place on its scale."""
    low = called.lower()
    if exact := next((one for one in ClaimVerdict if one.value.lower() == low.strip()), None):
        return exact
    named = [(len(name), verdict) for verdict, names in NAMES.items() for name in names if name in low]
    if named:
        return max(named, key=lambda one: one[0])[1]
    scale = [_number(one) for one in (value, best, worst)]
    at, top, bottom = scale[0], scale[1] if scale[1] is not None else 5.0, scale[2] if scale[2] is not None else 1.0
    if at is None or top <= bottom or not bottom <= at <= top:
        return None
    share = (at - bottom) / (top - bottom)
    return ClaimVerdict.TRUE if share == 1 else ClaimVerdict.FALSE if share == 0 else ClaimVerdict.MISLEADING


def _id_of(claim: str, url: str) -> str:
    return "review-" + hashlib.sha256(f"{url}\n{claim}".encode("utf-8", "replace")).hexdigest()[:16]


def _object(value: object) -> Mapping[str, Any]:
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None
