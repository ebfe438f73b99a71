"""A whole card, to change in one field or another."""

from __future__ import annotations

from typing import Any

import msgspec

from turnout.apps.claims.card import Card, CardConfidence, CardSource, ClaimType, ClaimVerdict


def card(ident: str = "moon-cheese", claim: str = "The Moon is made of cheese.", **fields: Any) -> Card:
    made: dict[str, Any] = {
        "id": ident,
        "claim_text": claim,
        "claim_type_category": ClaimType.SCIENTIFIC,
        "verdict": ClaimVerdict.FALSE,
        "short_answer": "No.",
        "deep_answer": "It is rock.",
        "confidence_level": CardConfidence.HIGH,
        "claimant": "A proverb",
        "why_persists": ("It is funny.",),
        "confidence_explanation": "Samples were brought back.",
        "sources": (CardSource("Apollo samples", url="https://example.org/rocks"),),
        "category_tags": ("moon",),
        "limitations": ("Only the near side was sampled.",),
        "change_verdict_if": "Cheese were found.",
    }
    return Card(**(made | fields))


def form(*cards: Card) -> Any:
    """What cards say, whether in lists or in tuples."""
    return msgspec.json.decode(msgspec.json.encode(cards))
