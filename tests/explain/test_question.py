"""The question as it is shown: what matched is found where it stands, however it is written."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from toml_router import router_of, unlearnt
from turnout.explain.explanation import DOTS, HEAD, TAIL, explain, question_of

TIERS = unlearnt("tiers")


def test_matched_words_are_found_where_they_stand() -> None:
    question = explain(
        TIERS.route_sync("Ｗrite  A é-fünction, then FUNCTIONS prove\u00a0it: the theorem’s proof")
    ).question
    marked = {question.excerpt[span.start : span.end] for span in question.spans}
    assert {"FUNCTIONS", "prove", "theorem", "proof"} <= marked
    assert question.matched("signals.codePresence") == "FUNCTIONS"
    assert question.matched("signals.nonesuch") == ""


def test_words_beyond_ascii_are_found_too() -> None:
    router = router_of(
        'name = "cafés"\nroutes = ["a", "b"]\nfallback = { route = "b" }\n[policy.a]\n[policy.b]\n'
        '[[layers]]\nkind = "rules.v1"\n[[layers.rules]]\nid = "r"\nroute = "a"\nwhen = { any = ["café"] }\n'
    )
    question = explain(router.route_sync("Ein  CAFÉ, bitte")).question
    assert question.matched("rule.r") == "CAFÉ"


def test_only_what_fired_is_marked() -> None:
    """A pattern of a layer that was not asked is a hit, and no reason."""
    decision = TIERS.route_sync("Prove the theorem step by step")
    explained = explain(decision)
    fired = {reason.code for step in explained.trace for reason in step.fired}
    assert explained.question.spans
    assert {span.code for span in explained.question.spans} <= fired


class Length(NamedTuple):
    id: str
    characters: int
    cut: bool


@pytest.mark.parametrize(
    "case",
    [
        Length("blank", 0, False),
        Length("short", HEAD, False),
        Length("just", HEAD + TAIL + 20, False),
        Length("long", 5000, True),
    ],
    ids=lambda case: case.id,
)
def test_long_words_are_cut_in_the_middle(case: Length) -> None:
    words = "ab" * (case.characters // 2)
    question = question_of(f"  {words}\n")
    assert question.length == len(words)
    assert bool(question.cut) == case.cut
    if case.cut:
        assert question.excerpt[question.cut] == DOTS
        assert question.excerpt == f"{words[:HEAD]} {DOTS} {words[-TAIL:]}"
    else:
        assert question.excerpt == words
