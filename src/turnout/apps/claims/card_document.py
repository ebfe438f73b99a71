"""A card as the index has it: its claim, and each of its questions, as a document of its own.

So a card is as near to a question as the nearest of its wordings, each in its language. Invariant: of a document the
card can be told by its id alone.
"""

from __future__ import annotations

from typing import Final

from turnout.search import IndexDocument

from .card import Card
from .wording import wordings

# Whose a card is that is for all: no tenant's name, which has letters and digits.
ALL: Final = "*"
# Stands between the id of a card and the number of one of its questions: no id has it.
QUESTION: Final = "\x1e"


def documents_of(card: Card) -> list[IndexDocument]:
    """A card is found by its claim and by the other ways to ask it: what its answer says is about more than that."""
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
