"""A card in the index: its claim and each of its questions are documents of their own.

So a card is as near to a question as its nearest wording, in any language. Invariant: a document's id alone tells the
card.
"""

from __future__ import annotations

from typing import Final

from turnout.search import IndexDocument

from .card import Card
from .wording import wordings

# The owner of cards for all tenants; a tenant's name has only letters and digits.
ALL: Final = "*"
# Separates the id of a card from the number of a question; no id has it.
QUESTION: Final = "\x1e"


def documents_of(card: Card) -> list[IndexDocument]:
    """The documents of a card. Its answer is not one of them: it is about more than the claim."""
    attributes = {"type": card.claim_type_category.value, "verdict": card.verdict.value, "owner": card.tenant or ALL}
    return [
        IndexDocument(ident, text, lang=lang, attributes=attributes, updated_at=card.created_at)
        for ident, (lang, text) in zip(document_ids(card), wordings(card), strict=True)
    ]


def document_ids(card: Card) -> list[str]:
    questions = sum(map(len, card.questions.values()))
    return [card.id, *(f"{card.id}{QUESTION}{at}" for at in range(questions))]


def card_of(ident: str) -> str:
    return ident.partition(QUESTION)[0]
