"""The Context Analyzer: what a follow-up becomes, by its own words and by a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.claims.chatting import CARDS, Chat, anyone, router_settings, run
from turnout.apps.claims.analyzer import ANSWER_CHARACTERS, analyze, analyze_locally, cut_history
from turnout.apps.claims.choose import router_slot, signals_in, undecided
from turnout.apps.ledger import Ledger
from turnout.core.query import Query, Turn
from turnout.runtime.load import load_profile
from turnout.testing import ScriptedProvider
from turnout.testing.reply import ScriptedReply

PROFILE = load_profile("claims", config="", local=True)
SIGNALS = signals_in(PROFILE)
MATTHEW = (Turn("user", "Did Matthew copy Mark?"), Turn("assistant", "Yes, most scholars think so."))


def is_alternative(text: str) -> bool:
    return "alternative" in SIGNALS(text)


class Case(NamedTuple):
    id: str
    question: str
    text: str
    is_alternative: bool = False
    points: str = ""
    turns: tuple[Turn, ...] = MATTHEW


CASES = [
    Case("no history", "Did Matthew copy Mark?", "Did Matthew copy Mark?", turns=()),
    Case("no history, points", "Which is more likely?", "Which is more likely?", points="comparative", turns=()),
    Case("no question before", "Is that so?", "Is that so?", points="deictic", turns=(Turn("assistant", "Hello."),)),
    Case(
        "another explanation",
        "Couldn't divine inspiration explain it instead?",
        "Couldn't divine inspiration explain it instead? (about: Did Matthew copy Mark)",
        True,
    ),
    Case("what if", "What if God hid it?", "What if God hid it? (about: Did Matthew copy Mark)", True),
    Case("what if, whole", "What if the flood was local?", "What if the flood was local?", True),
    Case("stands alone", "Did the flood happen?", "Did the flood happen?"),
    Case(
        "compares",
        "Which is more likely?",
        "Which is more likely? (about: Did Matthew copy Mark)",
        points="comparative",
    ),
    Case(
        "relates",
        "How does this relate to the flood?",
        "How does this relate to the flood? (about: Did Matthew copy Mark)",
        points="deictic",
    ),
    Case(
        "simpler",
        "Can you put that more simply?",
        "Can you put that more simply? (about: Did Matthew copy Mark)",
        points="deictic",
    ),
    Case("why", "Why?", "Why? (about: Did Matthew copy Mark)", points="ellipsis"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_by_its_words(case: Case) -> None:
    found = analyze_locally(case.question, case.turns, is_alternative)
    assert (found.text, found.is_alternative, found.points) == (case.text, case.is_alternative, case.points)


def test_what_is_read_of_a_conversation() -> None:
    turns = [Turn("user" if number % 2 == 0 else "assistant", str(number) * 2000) for number in range(10)]
    read = cut_history(turns)
    assert [turn.text[0] for turn in read] == list("456789")
    assert {len(turn.text) for turn in read if turn.role == "assistant"} == {ANSWER_CHARACTERS}
    assert {len(turn.text) for turn in read if turn.role == "user"} == {2000}


@given(
    st.text(max_size=300),
    st.lists(st.tuples(st.sampled_from(("user", "assistant")), st.text(max_size=200)), max_size=8),
)
def test_any_text_has_a_question(text: str, turns: list[tuple[str, str]]) -> None:
    found = analyze_locally(text, [Turn(*turn) for turn in turns], is_alternative)
    assert found.text.strip() or not text.strip()
    if not any(role == "user" and said.strip() for role, said in turns[-6:]):
        assert found.text == text


def rewritten(folder: Path, reply: ScriptedReply, question: str = "Which is more likely?") -> Any:
    """What a model's reply makes of a question, and what the model was asked."""
    with ScriptedProvider.in_thread(reply) as provider:

        async def talk(chat: Chat) -> Any:
            models, query = chat.app.runtime.models, Query(question)
            slot = router_slot(PROFILE, models.slots)
            with Ledger(None, models.slots).open(undecided(PROFILE, query), anyone()) as account:
                return await analyze(question, MATTHEW, account, models, slot, is_alternative)

        return run(folder, CARDS, talk, router_settings(provider)), provider.requests


def test_a_model_rewrites(tmp_path: Path) -> None:
    said = {"question": "Is it more likely that Matthew copied Mark, or the other way round?", "alternative": False}
    found, requests = rewritten(tmp_path, ScriptedReply(json.dumps(said)))
    assert (found.text, found.is_alternative, found.by) == (said["question"], False, "fake/claims_router")
    asked = requests[0].body["messages"][1]["content"]
    assert "user: Did Matthew copy Mark?" in asked
    assert asked.strip().splitlines()[-2] == "user: Which is more likely?"


@pytest.mark.parametrize(
    "reply",
    [
        ScriptedReply("I cannot."),
        ScriptedReply("{}"),
        ScriptedReply('{"question": "  "}'),
        ScriptedReply(json.dumps({"question": "x" * 3000})),
        ScriptedReply("no", status=500),
        ScriptedReply('{"question": 7}'),
    ],
    ids=["chatty", "empty", "blank", "endless", "failed", "no text"],
)
def test_what_a_model_says_wrongly_changes_nothing(tmp_path: Path, reply: ScriptedReply) -> None:
    found, _ = rewritten(tmp_path, reply)
    assert (found.text, found.by) == ("Which is more likely? (about: Did Matthew copy Mark)", "")


def test_a_model_cannot_deny_another_explanation(tmp_path: Path) -> None:
    said = ScriptedReply(json.dumps({"question": "Did Matthew copy Mark?", "alternative": False}))
    found, _ = rewritten(tmp_path, said, "Couldn't divine inspiration explain it instead?")
    assert found.is_alternative
