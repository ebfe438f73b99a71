"""The words people read: the published signal texts, the fallback's reason, and the router switched off."""

from pathlib import Path

import pytest

import turnout
from corpora.measure import router
from toml_router import unlearnt

SUBSTRING = [
    ("What is 2+2?", ["short (3 tokens)", "simple (what is)"]),
    ("hello", ["short (1 tokens)", "simple (hello)"]),
    ("define photosynthesis", ["short (5 tokens)", "code (def)", "simple (define)"]),
    ("function class", ["short (3 tokens)", "code (function, class)"]),
    ("async await const return", ["short (6 tokens)", "code (async, await, const)"]),
    (
        "prove it step by step",
        ["reasoning override (2 markers)", "short (5 tokens)", "reasoning (prove, step by step)"],
    ),
    ("kubernetes database", ["short (4 tokens)", "technical (kubernetes, database)"]),
    ("a poem", ["short (1 tokens)", "creative (poem)"]),
    ("step 3", ["short (1 tokens)", "multi-step"]),
    ("so? and? why? when?", ["short (4 tokens)", "4 questions"]),
    ("build and create", ["short (4 tokens)", "imperative (build, create)"]),
    ("at least, at most", ["short (4 tokens)", "constraints (at most, at least)"]),
    ("yaml", ["short (1 tokens)", "format (yaml)"]),
    ("see attached", ["short (3 tokens)", "references (attached)"]),
    ("never do not avoid", ["short (4 tokens)", "negation (do not, avoid, never)"]),
    ("photonics", ["short (2 tokens)", "domain-specific (photonics)"]),
    # At its lower level the agentic signal names two words, at its upper one three.
    ("fix, debug, iterate", ["short (4 tokens)", "agentic (fix, debug)"]),
    ("fix, debug, iterate, verify", ["short (6 tokens)", "agentic (fix, debug, iterate)"]),
]


@pytest.mark.parametrize(("text", "shown"), SUBSTRING)
def test_signals_shown_to_people(text: str, shown: list[str]) -> None:
    reasons = router("tiers-seed").route_sync(text).reasons
    published = ("signals.", "override.")
    assert [reason.text for reason in reasons if reason.code.startswith(published)] == shown


@pytest.mark.parametrize("profile", ["tiers", "tiers-seed"])
def test_ambiguous_is_said(profile: str) -> None:
    decision = unlearnt(profile).route_sync("Write a function to sort an array in JavaScript")
    assert "ambiguous (conf=0.54) → needs LLM classification" in [reason.text for reason in decision.reasons]


STUDY_FALLBACK = [
    ("What is complexity in this context?", "fallback:low_conf(local=0.59,llm=na)"),
    ("What does the term on the far right mean?", "fallback:low_conf(local=0.59,llm=na)"),
    ("Rome, briefly", "fallback:low_conf(local=0.54,llm=na)"),
]


@pytest.mark.parametrize(("text", "said"), STUDY_FALLBACK)
def test_study_fallback_says_what_was_seen(text: str, said: str) -> None:
    assert router("study-seed").route_sync(text).reasons[0].text == said


def test_no_signal_is_said() -> None:
    assert "no_signal" in router("study-seed").route_sync("Why?").reasons[0].text


def test_study_switched_off(tmp_path: Path) -> None:
    settings = tmp_path / "turnout.toml"
    settings.write_text("[study]\nenable_query_router = false\n", encoding="utf-8")
    decision = turnout.load("study", config=settings).route_sync("Define macroeconomics")
    assert (decision.route, decision.confidence, decision.by) == ("general_contextual", 1.0, "default")


RAISED = [
    # (setting, question accepted by default)
    ("router_local_confidence_threshold = 0.9", "Explain photosynthesis very concisely"),
    ("router_local_margin_threshold = 0.3", "Explain the definition in the top left"),
]


@pytest.mark.parametrize(("setting", "question"), RAISED)
def test_raising_a_threshold_asks_the_model_more(tmp_path: Path, setting: str, question: str) -> None:
    settings = tmp_path / "turnout.toml"
    settings.write_text(f"[study-seed]\n{setting}\n", encoding="utf-8")
    assert router("study-seed").route_sync(question).outcome == "S-"
    assert turnout.load("study-seed", config=settings).route_sync(question).outcome == "Fl"
