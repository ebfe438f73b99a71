"""What the specification says must hold, without a model: the cards and the words of the question decide."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.claims.chatting import CARDS, FLOOD, Chat, NotedPipeline, anyone, chatting, run
from turnout.apps.claims.answer import AuditStarted
from turnout.apps.claims.app import ClaimQuestion
from turnout.apps.claims.card import Card
from turnout.apps.claims.synthesis import Synthesis
from turnout.core.errors import StoreUnavailable
from turnout.core.query import Turn


class TurnCase(NamedTuple):
    """A question of a conversation, and what it gets."""

    question: str
    mode: str
    cards: tuple[str, ...] = ()
    is_unclear: bool = False


class Case(NamedTuple):
    id: str
    cards: tuple[Card, ...]
    asked: tuple[TurnCase, ...]


CASES = [
    Case("flood", (FLOOD,), (TurnCase("Did the flood happen?", "exact_match", ("flood",)),)),
    Case("hidden evidence", (FLOOD,), (TurnCase("Could God have hidden the flood evidence?", "novel_claim"),)),
    Case(
        "another explanation",
        CARDS,
        (
            TurnCase("Did Matthew copy Mark?", "exact_match", ("mark",)),
            TurnCase("Couldn't divine inspiration explain it instead?", "novel_claim"),
        ),
    ),
    Case("other roles", CARDS, (TurnCase("Did Mark copy Matthew?", "novel_claim"),)),
    Case("nicaea", CARDS, (TurnCase("Did the Council of Nicaea add books to the Bible?", "novel_claim"),)),
    Case("isaiah", CARDS, (TurnCase("Does Isaiah 53 predict Jesus?", "novel_claim"),)),
    Case("no cards at all", (), (TurnCase("Did the flood happen?", "novel_claim"),)),
    Case(
        "which is more likely",
        CARDS,
        (
            TurnCase("Did Matthew copy Mark?", "exact_match", ("mark",)),
            TurnCase("Did the flood happen?", "exact_match", ("flood",)),
            TurnCase("Which is more likely?", "contextual", ("mark", "flood")),
        ),
    ),
    Case(
        "relates",
        CARDS,
        (
            TurnCase("Did Matthew copy Mark?", "exact_match", ("mark",)),
            TurnCase("How does this relate to the global flood?", "contextual", ("mark", "flood")),
        ),
    ),
    Case(
        "difference",
        CARDS,
        (
            TurnCase(
                "What's the difference between the global flood and Matthew copying Mark?",
                "contextual",
                ("flood", "mark"),
            ),
        ),
    ),
    Case(
        "why", CARDS, (TurnCase("Why do people believe a global flood covered the Earth?", "contextual", ("flood",)),)
    ),
    Case(
        "simpler",
        CARDS,
        (
            TurnCase("Did Matthew copy Mark?", "exact_match", ("mark",)),
            TurnCase("Can you put that more simply?", "contextual", ("mark",)),
        ),
    ),
    Case("simpler than nothing", CARDS, (TurnCase("Can you put that more simply?", "contextual", (), True),)),
    Case(
        "greetings",
        CARDS,
        (
            TurnCase("Hello!", "contextual", (), True),
            TurnCase("Did Matthew copy Mark?", "exact_match", ("mark",)),
            TurnCase("Great, thanks", "contextual", (), True),
        ),
    ),
]


@pytest.mark.parametrize("has_session", [True, False], ids=["session", "history"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_must_hold(tmp_path: Path, case: Case, has_session: bool) -> None:
    """With a session that is remembered, and with nothing but what the client says was said."""

    async def talk(chat: Chat) -> Any:
        turns: list[Turn] = []
        told = []
        for number, one in enumerate(case.asked):
            found = await chat.ask(one.question, turns, "s" if has_session else f"s{number}")
            turns += [Turn("user", one.question), Turn("assistant", found.result)]
            told.append((found, chat.row(found.decision_id)))
        return told

    told = run(tmp_path, case.cards, talk, own_gate=False)
    for one, (found, row) in zip(case.asked, told, strict=True):
        assert (found.mode, row["mode_selected"]) == (one.mode, one.mode), (one.question, found.reasoning)
        assert found.reasoning
        assert row["reasoning"] == found.reasoning
        assert set(json.loads(row["claim_cards_referenced"])) == set(one.cards), found.reasoning
        if one.mode == "exact_match":
            assert isinstance(found.response, Card)
            assert found.response.id == one.cards[0]
        elif one.mode == "contextual":
            assert isinstance(found.response, Synthesis)
            assert (found.response.audited, found.response.needs_clarification) == (False, one.is_unclear)
            assert {card.id for card in found.response.source_cards} == set(one.cards)
        else:
            assert isinstance(found.response, AuditStarted)


def test_another_process_knows_what_a_session_has_seen(tmp_path: Path) -> None:
    async def first(chat: Chat) -> Any:
        return [await chat.ask(text) for text in ("Did Matthew copy Mark?", "Did the flood happen?")]

    run(tmp_path, CARDS, first, own_gate=False)
    told = run(tmp_path, CARDS, lambda chat: chat.ask("Which is more likely?"), own_gate=False)
    assert told.mode == "contextual"
    assert {card.id for card in told.response.source_cards} == {"mark", "flood"}


def test_a_card_answers_where_no_event_can_be_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Away(NotedPipeline):
        async def emit(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailable("the database is away")

    async def talk(chat: Chat) -> Any:
        chat.app._pipeline = Away()
        return await chat.ask("Did Matthew copy Mark?")

    assert run(tmp_path, CARDS, talk, own_gate=False).mode == "exact_match"
    assert "cannot be kept" in caplog.text


def test_a_question_that_is_left_is_in_the_log(tmp_path: Path) -> None:
    async def talk(chat: Chat) -> Any:
        events = chat.app.ask(ClaimQuestion("Did Matthew copy Mark?", (), "s"), anyone())
        await anext(events)
        await events.aclose()
        assert chat.store.flush(10)
        found = next(iter(chat.store.records("").decisions()))
        outcome = chat.store.records("").outcome(found.id)
        return chat.row(found.id), outcome

    row, outcome = run(tmp_path, CARDS, talk, own_gate=False)
    assert (row["mode_selected"], outcome.ended) == ("novel_claim", "cancelled")
    assert "before it was decided" in row["reasoning"]


def test_an_exact_match_takes_no_time(tmp_path: Path) -> None:
    async def talk(chat: Chat) -> list[float]:
        await chat.ask("Did the flood happen?")
        took = []
        for _ in range(20):
            began = time.perf_counter()
            told = await chat.ask("Did the flood happen?")
            took.append(time.perf_counter() - began)
            assert told.mode == "exact_match"
        return took

    took = run(tmp_path, CARDS, talk, own_gate=False)
    assert sorted(took)[len(took) // 2] < 0.05


TURNS = st.lists(st.builds(Turn, st.sampled_from(("user", "assistant", "system")), st.text(max_size=80)), max_size=4)
VOCABULARY = "did the flood happen Matthew copy Mark not why which is more likely than it that what if God"
WORDS = st.lists(st.sampled_from(VOCABULARY.split()), min_size=1, max_size=9).map(" ".join)
QUESTIONS = st.one_of(st.text(min_size=1, max_size=200).filter(str.strip), WORDS)


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with chatting(tmp_path_factory.mktemp("chat"), CARDS) as found:
        loop = asyncio.new_event_loop()
        yield found, loop
        loop.run_until_complete(found.app.runtime.models.client.close())
        loop.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=QUESTIONS, turns=TURNS, session=st.sampled_from(("a", "b", "c")))
def test_every_question_has_a_reason(chat: Any, question: str, turns: list[Turn], session: str) -> None:
    """Whatever is asked: one mode, one row, a reason that says something; cards that exist where cards are named."""
    talking, loop = chat
    question = question.encode("utf-8", "replace").decode()
    told = loop.run_until_complete(talking.ask(question, turns, session))
    row = talking.row(told.decision_id)
    assert told.mode == row["mode_selected"]
    assert told.reasoning.strip()
    assert row["reasoning"].strip()
    assert set(json.loads(row["claim_cards_referenced"])) <= {card.id for card in CARDS}
    if told.mode == "contextual":
        assert told.response.source_cards or told.response.needs_clarification
