"""The agents' answers without a model: an audit that runs end to end offline and says that nothing was looked up. Its
card is marked as a demonstration."""

from __future__ import annotations

from .agent import AgentOutput, Closing, FoundEvidence, FoundSource, Judgement, Topic, WrittenAnswer
from .card import CardConfidence, ClaimVerdict

SAID = "This is a demonstration: no model is configured, and nothing was looked up. "
NEXT = "Name a model in turnout.toml, or set a provider's key, and audit the claim again."


def demo_output(agent: str, claim: str) -> AgentOutput:
    """The answer of an agent: only the claim in it varies."""
    match agent:
        case "topic_finder":
            return Topic(claim, "not looked up (demonstration)", SAID + NEXT, "epistemology", ("demonstration",))
        case "source_checker":
            none = FoundSource("No source: the demonstration model reads none", usage_context=NEXT)
            return FoundEvidence(scholarly_sources=(none,), evidence_summary=SAID + NEXT)
        case "adversarial_checker":
            return Judgement(
                ClaimVerdict.DEPENDS,
                CardConfidence.LOW,
                SAID + "The verdict stands for none.",
                (),
                SAID + "There may be any.",
                "Nothing was verified.",
            )
        case "writing_agent":
            short = f"{SAID}It says nothing about whether “{claim[:200]}” is right. {NEXT}"
            deep = f"{short} Five agents ran in their order, and each answer was stored before the next began."
            return WrittenAnswer(ClaimVerdict.DEPENDS, short, deep, ("not looked up (demonstration)",))
        case _:
            return Closing(SAID + NEXT, ("A demonstration is no audit.",), "A real audit of the claim.")
