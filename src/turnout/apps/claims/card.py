"""A claim card: the claim, the verdict of its audit, and its sources. Values only.

A stored card is complete: `missing` names the fields it lacks, and a card that lacks any is not published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace


class ClaimType(StrEnum):
    """The kind of question a claim answers. Questions of different types about one topic are different claims."""

    HISTORICAL = "historical"
    SCIENTIFIC = "scientific"
    EPISTEMOLOGY = "epistemology"
    INTERPRETATION = "interpretation"
    ETHICS = "ethics"
    DOCTRINAL = "doctrinal"
    INSTITUTIONAL = "institutional"
    LINGUISTIC = "linguistic"


ALIASES = {
    ClaimType.HISTORICAL: ("history",),
    ClaimType.SCIENTIFIC: ("science", "empirical"),
    ClaimType.EPISTEMOLOGY: ("epistemological", "epistemic", "philosophical"),
    ClaimType.INTERPRETATION: ("interpretive", "interpretative", "hermeneutical", "prophecy"),
    ClaimType.ETHICS: ("ethical", "moral"),
    ClaimType.DOCTRINAL: ("theological", "doctrine"),
    ClaimType.INSTITUTIONAL: ("institution", "organizational", "political"),
    ClaimType.LINGUISTIC: ("textual", "translation", "language", "etymological"),
}


def read_type(name: str) -> ClaimType | None:
    """A type by its name or an alias; None if there is none."""
    folded = name.strip().lower()
    return next((kind for kind, aliases in ALIASES.items() if folded in (kind.value, *aliases)), None)


def asks_alike(one: ClaimType, other: ClaimType) -> bool:
    """Whether two types ask the same kind of question: historical and scientific both ask if something happens."""
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
"""`verified`: checked by this installation. `imported`: verified according to the publisher of an imported card."""


class CardSource(Struct, frozen=True, omit_defaults=True):
    """A source of a card. Its address and its quotation start as unverified."""

    citation: str
    kind: Literal["primary", "scholarly"] = "scholarly"
    url: str = ""
    quote_text: str = ""
    usage_context: str = ""
    url_status: Verification = "unverified"
    quote_status: Verification = "unverified"

    def as_imported(self) -> CardSource:
        """The source as an imported card has it."""
        url, quote = ("imported" if one == "verified" else one for one in (self.url_status, self.quote_status))
        return replace(self, url_status=url, quote_status=quote)


class AgentAudit(Struct, frozen=True, omit_defaults=True):
    """The output of one agent of the audit."""

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
    """Other wordings of the same claim or question, by language: a question that repeats one means this card."""
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
    """Made by the demonstration model: it shows how an audit works and says nothing about the claim."""
    tenant: str = ""
    """The tenant that had it audited; empty for a card that all tenants see."""
    publisher: str = ""
    """The publisher an imported card names."""
    twin_of: str = ""
    """An older card that makes the same claim."""
    created_at: datetime | None = None
    extra: Mapping[str, Any] = {}
    """Other fields of an import: an export writes them unchanged."""


# The fields of a complete card. `techniques` may be empty: not every claim is argued for with tricks.
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
# Without these there is nothing to show. A ClaimReview of another publisher rarely has more.
ESSENTIAL = ("id", "claim_text", "short_answer", "deep_answer")


def missing(card: Card, fields: Sequence[str] = WHOLE) -> list[str]:
    """Which of these fields are empty or blank in a card."""
    values = {name: getattr(card, name) for name in fields}
    return [name for name, value in values.items() if not (value.strip() if isinstance(value, str) else value)]
