"""The five agents of an audit as data: how each is asked (`agents.toml`), and the structure of its answer.

An answer with the wrong structure is asked for once more, with the error; then the audit ends. The writer must repeat
the verdict it was given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from turnout.apps.converse import json_object

from .card import CardConfidence, ClaimVerdict, read_type

# The specification's limit of a short answer.
SHORT_WORDS = 150

# Left out of the schema a model sees: titles and defaults are no help to it, and some providers refuse minimum lengths,
# which are checked here anyway.
LEFT_OUT = ("title", "default", "minLength", "minItems")

Text = Annotated[str, Meta(min_length=1)]


class Agent(Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent is asked."""

    slot: str
    temperature: float
    max_tokens: int
    timeout_s: float
    prompt: str


class AgentOutput(Struct, frozen=True):
    """An agent's answer."""

    def faults(self) -> list[str]:
        """What is wrong with its content."""
        texts = {name: value for name in self.__struct_fields__ if isinstance(value := getattr(self, name), str)}
        return [
            f"{name} is blank" for name, text in texts.items() if name not in self.may_be_blank and not text.strip()
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
        wrong = [] if known else [f"claim_type_category {self.claim_type_category[:40]!r} is not a type"]
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
AGENTS = tuple(OUTPUTS)


@cache
def agents() -> Mapping[str, Agent]:
    """The agents by name."""
    text = resources.files("turnout.apps.claims").joinpath("agents.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Agent])


@cache
def schema_of(name: str) -> Mapping[str, Any]:
    """The JSON schema of an agent's answer, without references; every member is required and no other is allowed."""
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
    kept = {key: _closed(value, parts) for key, value in schema.items() if key not in LEFT_OUT}
    if "properties" in kept:
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept


def read_output(name: str, text: str) -> AgentOutput | str:
    """An agent's answer, or what is wrong with it."""
    try:
        found: AgentOutput = msgspec.json.decode(json_object(text), type=OUTPUTS[name])
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        return f"it is not what was asked for: {error}"
    return "; ".join(found.faults()) or found
