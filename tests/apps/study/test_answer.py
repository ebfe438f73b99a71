"""Sentences leave when they are finished, no more of them than allowed, and what is stored is what was said."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.study.reader import Page, reading
from turnout.apps.caller import Budget, Caller
from turnout.apps.event import Failed
from turnout.apps.study.answer import AnswerSentences, SpokenSentence
from turnout.apps.study.ask import NotAnswered, RouteChosen, StudyAnswer, StudyQuestion
from turnout.apps.study.notes import NotePassage
from turnout.testing import Fault, Reply, ScriptedProvider
from turnout.text.sentence import limit

LONG = "Osmosis is the flow of water, e.g. through a membrane. It needs no energy. " + "More follows here. " * 40
NOTES = (
    NotePassage("The Krebs cycle yields two ATP.", "a.md", (), 0, 31),
    NotePassage("Osmosis needs no energy.", "b.md", (), 0, 24),
)


def test_the_cap_stops_the_model_and_what_is_stored_was_emitted(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply(LONG, chunk_delay_s=0.01)
        async with reading(tmp_path, provider) as reader:
            said, capped_at, last = [], 0.0, None
            async for event in reader.app.ask(StudyQuestion("Define osmosis", Page()), reader.caller):
                if isinstance(event, SpokenSentence):
                    said.append(event.text)
                    capped_at = time.monotonic()
                last = event
            assert isinstance(last, StudyAnswer)
            assert "".join(said) == last.text == limit(LONG, 2)
            assert (last.sentences, last.capped) == (2, True)
            _, turns = reader.app.sessions.begin("", "default")
            assert turns[0].answer == last.text
            for _ in range(100):
                if provider.requests[0].closed_at is not None:
                    break
                await asyncio.sleep(0.01)
            assert provider.requests[0].is_abandoned
            assert (provider.requests[0].closed_at or 9e9) - capped_at < 0.25
            outcome = reader.store.records("").outcome(last.decision)
            assert outcome is not None
            assert (outcome.ended, outcome.slot) == ("answered", "main")
            assert outcome.extra["sentences"] == 2

    asyncio.run(run())


def test_a_sentence_leaves_when_it_is_finished(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply(["One is here. T", "wo comes late."], chunk_delay_s=0.3)
        async with reading(tmp_path, provider) as reader:
            asked = StudyQuestion("Summarize this page", Page())
            events = [(time.monotonic(), event) async for event in reader.app.ask(asked, reader.caller)]
            first, second = (at for at, event in events if isinstance(event, SpokenSentence))
            assert second - first > 0.2

    asyncio.run(run())


def test_a_reader_who_leaves_has_what_was_said_remembered(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply(LONG, chunk_delay_s=0.01)
        async with reading(tmp_path, provider) as reader:
            events = reader.app.ask(StudyQuestion("Walk me through this page", Page()), reader.caller)
            said = ""
            async for event in events:
                if isinstance(event, SpokenSentence):
                    said = event.text
                    break
            await events.aclose()
            _, turns = reader.app.sessions.begin("", "default")
            assert turns[0].answer == said
            row = next(iter(reader.store.records("").decisions()))
            outcome = reader.store.records("").outcome(row.id)
            assert outcome is not None
            assert outcome.ended == "cancelled"

    asyncio.run(run())


@pytest.mark.parametrize("reply", [Reply("no", status=500), Reply("no", status=400), Reply(fault=Fault("reset"))])
def test_a_model_that_does_not_answer_is_said_so(reply: Any, tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = reply
        async with reading(tmp_path, provider) as reader:
            chosen, failed = await reader.events("Define osmosis")
            assert isinstance(chosen, RouteChosen)
            assert isinstance(failed, Failed)
            assert "fake/main" in failed.reason
            assert reader.app.sessions.begin("", "default")[1] == []

    asyncio.run(run())


def test_an_answer_that_breaks_off_is_no_whole_one(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("One is here. Two is he", fault=Fault("cut", "after_delta", after=5))
        async with reading(tmp_path, provider) as reader:
            *_, first, last = await reader.events("Walk me through this page", Page())
            assert isinstance(last, Failed)
            assert "broke off" in last.reason
            _, turns = reader.app.sessions.begin("", "default")
            assert isinstance(first, SpokenSentence)
            assert turns[0].answer.endswith(first.text)
            row = next(iter(reader.store.records("").decisions()))
            outcome = reader.store.records("").outcome(row.id)
            assert outcome is not None
            assert outcome.ended == "failed"

    asyncio.run(run())


def test_notes_that_are_not_there_hinder_no_answer(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        async with reading(tmp_path, provider) as reader:
            (reader.vault / "Biology.md").unlink()
            reader.vault.rmdir()
            assert (await reader.ask("Define osmosis")).text
            assert (await reader.ask("What do my notes say about the Krebs cycle?")).text

    asyncio.run(run())


def test_a_budget_that_does_not_cover_it_is_said(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        async with reading(tmp_path, provider) as reader:
            poor = reader._replace(caller=Caller("k", "", frozenset(("ask",)), Budget(1e-9)))
            failed = (await poor.events("Define osmosis"))[-1]
            assert isinstance(failed, NotAnswered)
            assert failed.status == 402
            assert provider.requests == []

    asyncio.run(run())


def spoken(text: str, size: int, most: int | None = None) -> AnswerSentences:
    speaking = AnswerSentences(most, NOTES)
    for at in range(0, len(text), size):
        speaking.feed(text[at : at + size])
    speaking.finish()
    return speaking


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "said", "cited"),
    [
        ("The Krebs cycle yields two ATP [1]. Fine.", "The Krebs cycle yields two ATP [1]. Fine.", [1]),
        ("The Krebs cycle yields two ATP. [1] Fine.", "The Krebs cycle yields two ATP. [1] Fine.", [1]),
        ("The Krebs cycle yields ten ATP [1]. Fine.", "The Krebs cycle yields ten ATP. [unsupported] Fine.", []),
        ("The Krebs cycle yields ten ATP. [1] Fine.", "The Krebs cycle yields ten ATP. Fine.", []),
        ("Does it yield ten ATP? [1]. Fine.", "Does it yield ten ATP? Fine.", []),
        ("Osmosis needs no energy [2][7].", "Osmosis needs no energy [2].", [2]),
    ],
)
def test_a_citation_that_does_not_hold_is_never_said(size: int, text: str, said: str, cited: list[int]) -> None:
    speaking = spoken(text, size)
    assert " ".join(speaking.text.split()) == said
    assert [one.number for one in speaking.cited()] == cited


@given(st.text(alphabet="ab. !?[]12\n", max_size=80), st.integers(1, 5), st.none() | st.integers(1, 3))
def test_pieces_of_any_size_say_the_same(text: str, size: int, most: int | None) -> None:
    assert spoken(text, size, most).text == spoken(text, 1000, most).text
