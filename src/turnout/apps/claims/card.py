"""A claim card: what was claimed, the verdict of its audit, and the sources it rests on. Values alone.

A card that is kept is whole: `missing` names what one still lacks, and nothing publishes one that lacks anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace


class ClaimType(StrEnum):
    """What kind of question a claim answers. Two questions about one topic are two claims where their types differ."""

    HISTORICAL = "historical"
    SCIENTIFIC = "scientific"
    EPISTEMOLOGY = "epistemology"
    INTERPRETATION = "interpretation"
    ETHICS = "ethics"
    DOCTRINAL = "doctrinal"
    INSTITUTIONAL = "institutional"
    LINGUISTIC = "linguistic"


ALIASES = {
    "history": ClaimType.HISTORICAL,
    "science": ClaimType.SCIENTIFIC,
    "empirical": ClaimType.SCIENTIFIC,
    "epistemological": ClaimType.EPISTEMOLOGY,
    "epistemic": ClaimType.EPISTEMOLOGY,
    "philosophical": ClaimType.EPISTEMOLOGY,
    "interpretive": ClaimType.INTERPRETATION,
    "interpretative": ClaimType.INTERPRETATION,
    "hermeneutical": ClaimType.INTERPRETATION,
    "prophecy": ClaimType.INTERPRETATION,
    "ethical": ClaimType.ETHICS,
    "moral": ClaimType.ETHICS,
    "theological": ClaimType.DOCTRINAL,
    "doctrine": ClaimType.DOCTRINAL,
    "institution": ClaimType.INSTITUTIONAL,
    "organizational": ClaimType.INSTITUTIONAL,
    "political": ClaimType.INSTITUTIONAL,
    "textual": ClaimType.LINGUISTIC,
    "translation": ClaimType.LINGUISTIC,
    "language": ClaimType.LINGUISTIC,
    "etymological": ClaimType.LINGUISTIC,
}


def read_type(name: str) -> ClaimType | None:
    """A type by its name or one of the other names it goes by; None if it is no type's."""
    folded = name.strip().lower()
    known = ALIASES.get(folded)
    return known or next((one for one in ClaimType if one.value == folded), None)


def asks_alike(one: ClaimType, other: ClaimType) -> bool:
    """Whether two types ask the same kind of question: historical and scientific both ask whether it happens."""
    factual = (ClaimType.HISTORICAL, ClaimType.SCIENTIFIC)
    return one == other or (one in factual and other in factual)


class ClaimVerdict(StrEnum):
    TRUE = "True"
    MISLEADING = "Misleading"
    FALSE = "False"
    UNFALSIFIABLE = "Unfalsifiable"
    DEPENDS = "Depends on Definitions"


class CardConfidence(StrEnum):
    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"


Verification = Literal["unverified", "verified", "failed", "imported"]
"""`verified` is what this installation looked up itself; `imported`, what the publisher of an imported card says that
it verified."""


class CardSource(Struct, frozen=True, omit_defaults=True):
    """What a card rests on. Its address and its quote are unverified until they were looked at."""

    citation: str
    kind: Literal["primary", "scholarly"] = "scholarly"
    url: str = ""
    quote_text: str = ""
    usage_context: str = ""
    url_status: Verification = "unverified"
    quote_status: Verification = "unverified"

    def as_imported(self) -> CardSource:
        """The same, from another's card."""
        url, quote = ("imported" if said == "verified" else said for said in (self.url_status, self.quote_status))
        return replace(self, url_status=url, quote_status=quote)


class AgentAudit(Struct, frozen=True, omit_defaults=True):
    """What one agent of the audit wrote."""

    agent: str
    output: Mapping[str, Any]
    model: str = ""
    elapsed_ms: float = 0.0
    at: datetime | None = None


class Card(Struct, frozen=True, omit_defaults=True):
    id: str
    claim_text: str
    claim_type_category: ClaimType
    verdict: ClaimVerdict
    short_answer: str
    deep_answer: str
    confidence_level: CardConfidence
    questions: Mapping[str, Sequence[str]] = {}
    """Other ways to say or to ask the very same, by language: a question that repeats one means this card."""
    claimant: str = ""
    why_matters: str = ""
    confidence_explanation: str = ""
    evidence_summary: str = ""
    why_persists: Sequence[str] = ()
    sources: Sequence[CardSource] = ()
    techniques: Sequence[str] = ()
    category_tags: Sequence[str] = ()
    limitations: Sequence[str] = ()
    audit_summary: str = ""
    change_verdict_if: str = ""
    agent_audit: Sequence[AgentAudit] = ()
    lang: str = "en"
    visible: bool = True
    demo: bool = False
    """Made by the demonstration model: it shows how an audit goes, and says nothing of the claim."""
    tenant: str = ""
    """Whose audit made it; empty for a card that is for all who may ask."""
    publisher: str = ""
    """Who published it, where it was imported and says so."""
    twin_of: str = ""
    """The card that says the same, where there is one."""
    created_at: datetime | None = None
    extra: Mapping[str, Any] = {}
    """What an import brought that is not ours: it goes out again as it came."""


# What a reader of a card looks for. `techniques` may be empty: not every claim is argued for with tricks.
WHOLE = (
    "id",
    "claim_text",
    "claimant",
    "short_answer",
    "deep_answer",
    "why_persists",
    "confidence_explanation",
    "sources",
    "category_tags",
    "limitations",
    "change_verdict_if",
)
# Without these there is nothing to show. What others publish as ClaimReview rarely has more.
ESSENTIAL = ("id", "claim_text", "short_answer", "deep_answer")


def missing(card: Card, fields: Sequence[str] = WHOLE) -> list[str]:
    """The fields that a card should have and that are empty."""
    return [name for name in fields if _is_blank(getattr(card, name))]


def _is_blank(said: str | Sequence[object]) -> bool:
    return not (said.strip() if isinstance(said, str) else said)
