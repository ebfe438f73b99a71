"""The five agents of an audit as data: how each is asked (`agents.toml`), and what it must answer.

An answer that does not keep to its structure is asked for once more, with what is wrong with it; then the audit ends.
The writer repeats the verdict it was given: an answer under another verdict is not an answer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from .card import CardConfidence, ClaimVerdict, read_type

AGENTS = ("topic_finder", "source_checker", "adversarial_checker", "writing_agent", "publisher")
# As the specification has it.
SHORT_WORDS = 150

# Names of ours and values that stand in tell a model nothing; the least lengths some providers refuse, and we check.
UNTOLD = ("title", "default", "minLength", "minItems")

Text = Annotated[str, Meta(min_length=1)]


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent is asked."""

    slot: str
    temperature: float
    max_tokens: int
    timeout_s: float
    prompt: str


class AgentOutput(Struct, frozen=True):
    """What an agent answers."""

    def faults(self) -> list[str]:
        """What is wrong with it beyond its structure."""
        return [
            f"{name} is blank"
            for name in self.__struct_fields__
            if isinstance(said := getattr(self, name), str) and name not in self.may_be_blank and not said.strip()
        ]

    @property
    def may_be_blank(self) -> tuple[str, ...]:
        return ()


class Topic(AgentOutput, frozen=True):
    claim_text: Text
    claimant: Text
    why_matters: Text
    claim_type_category: Text
    category_tags: Annotated[tuple[str, ...], Meta(min_length=1)]

    def faults(self) -> list[str]:
        known = read_type(self.claim_type_category) is not None
        wrong = [] if known else [f"claim_type_category {self.claim_type_category[:40]!r} is no type"]
        return super().faults() + wrong


class FoundSource(Struct, frozen=True):
    citation: Text
    url: str = ""
    quote_text: str = ""
    usage_context: str = ""


class FoundEvidence(AgentOutput, frozen=True):
    primary_sources: tuple[FoundSource, ...] = ()
    scholarly_sources: tuple[FoundSource, ...] = ()
    evidence_summary: str = ""
    next_search: str = ""

    @property
    def may_be_blank(self) -> tuple[str, ...]:
        return ("next_search", "evidence_summary") if self.next_search.strip() else ("next_search",)


class Judgement(AgentOutput, frozen=True):
    verdict: ClaimVerdict
    confidence_level: CardConfidence
    confidence_explanation: Text
    techniques: tuple[str, ...]
    counterevidence: Text
    verification_notes: Text


class WrittenAnswer(AgentOutput, frozen=True):
    verdict: ClaimVerdict
    short_answer: Text
    deep_answer: Text
    why_persists: Annotated[tuple[str, ...], Meta(min_length=1)]

    def faults(self) -> list[str]:
        words = len(self.short_answer.split())
        long = [f"short_answer has {words} words, at most {SHORT_WORDS}"] if words > SHORT_WORDS else []
        return super().faults() + long


class Closing(AgentOutput, frozen=True):
    audit_summary: Text
    limitations: Annotated[tuple[str, ...], Meta(min_length=1)]
    change_verdict_if: Text


OUTPUTS: Mapping[str, type[AgentOutput]] = {
    "topic_finder": Topic,
    "source_checker": FoundEvidence,
    "adversarial_checker": Judgement,
    "writing_agent": WrittenAnswer,
    "publisher": Closing,
}


@cache
def agents() -> Mapping[str, Agent]:
    """Every agent by its name."""
    text = resources.files("turnout.apps.claims").joinpath("agents.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Agent])


@cache
def schema_of(name: str) -> Mapping[str, Any]:
    """The JSON schema of what an agent answers, whole in itself: every member is asked for and no other is taken."""
    (found,), parts = msgspec.json.schema_components([OUTPUTS[name]], ref_template="{name}")
    whole: Mapping[str, Any] = _closed(found, parts)
    return whole


def _closed(schema: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_closed(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _closed(parts[schema["$ref"]], parts)
    kept = {key: _closed(value, parts) for key, value in schema.items() if key not in UNTOLD}
    if "properties" in kept:
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept


def read_output(name: str, text: str) -> AgentOutput | str:
    """What an agent answered; what is wrong with it, if something is."""
    try:
        found: AgentOutput = msgspec.json.decode(_object_of(text), type=OUTPUTS[name])
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        return f"it is not what was asked for: {error}"
    return "; ".join(found.faults()) or found


def _object_of(text: str) -> str:
    """The JSON object in a reply: some models put it into a block, or say something before it."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text
