"""Sessions end by call or by themselves, are remembered and forgotten; the page that was missing is a correction."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from apps.study.reader import MINUTE_S, Page, reading
from turnout.apps.caller import Budget, Caller
from turnout.apps.study.again import is_look
from turnout.apps.study.ask import StudyAnswer, StudyQuestion
from turnout.apps.study.memory import summarize
from turnout.apps.study.savings import total
from turnout.core.errors import Refused
from turnout.store.study import StudyTurn
from turnout.testing import Reply, ScriptedProvider


def sent(provider: ScriptedProvider) -> str:
    return str(provider.requests[-1].body["messages"])


def test_a_session_ends_after_half_an_hour_and_is_remembered(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("Mendel crossed peas in Brno.")
        async with reading(tmp_path, provider) as reader:
            await reader.ask("Walk me through this page on Mendel", Page())
            reader.clock.now_s += 29 * MINUTE_S
            await reader.ask("Is that important?")
            assert "crossed peas" in sent(provider), "the session goes on"
            reader.clock.now_s += 31 * MINUTE_S
            await reader.ask("What did we say about Mendel?")
            assert len(provider.requests[-1].body["messages"]) == 2, "a new session has no history"
            assert "What was studied before" in sent(provider)
            assert "crossed peas" in sent(provider)
            assert [one.name for one in reader.app.sessions.remembered("")] == ["default"]

    asyncio.run(run())


def test_what_is_forgotten_is_gone(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("Mendel crossed peas in Brno.")
        async with reading(tmp_path, provider) as reader:
            await reader.ask("Walk me through this page on Mendel", Page(), session="biology")
            ended = reader.app.sessions.end("", "biology")
            assert ended is not None
            assert "Mendel crossed peas in Brno." in (ended.summary or "")
            assert reader.app.sessions.end("", "biology") is None
            assert reader.app.sessions.find("", "Who was Mendel?")
            assert reader.app.sessions.forget("", ended.id[-8:]) == 1
            assert not reader.app.sessions.find("", "Who was Mendel?")
            assert reader.app.sessions.remembered("") == []
            assert reader.app.sessions.forget("", "all") == 0

    asyncio.run(run())


def test_a_model_sums_up_what_has_ended_and_is_paid(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("Mendel crossed peas in Brno.")
        async with reading(tmp_path, provider) as reader:
            await reader.ask("Walk me through this page on Mendel", Page(), session="biology")
            provider.default = Reply("The reader learnt how heredity works.")
            ended = await reader.app.end("biology", reader.caller)
            assert ended is not None
            assert ended.summary == "The reader learnt how heredity works."
            assert "Mendel crossed peas in Brno." in sent(provider)
            assert [one.summary for one in reader.app.sessions.remembered("")] == [ended.summary]
            found = reader.app.sessions.find("", "How does heredity work?")
            assert ended.summary in [one.text for one in found]
            costs = {row.text: row.cost_usd for row in reader.store.records("").labels()}
            assert costs["Sum up this session"], "it is in the log, with what it cost"

    asyncio.run(run())


def test_an_idle_session_is_summed_up_after_the_next_answer(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        async with reading(tmp_path, provider) as reader:
            await reader.ask("Walk me through this page on Mendel", Page())
            reader.clock.now_s += 31 * MINUTE_S
            provider.script(Reply("An answer of its own."), Reply("It was about heredity."))
            assert (await reader.ask("What is osmosis?")).text == "An answer of its own."
            await asyncio.gather(*reader.app._summing)
            assert [one.summary for one in reader.app.sessions.remembered("")] == ["It was about heredity."]

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["no answer", "no money", "no model", "no words"])
def test_without_a_model_s_words_a_summary_is_what_was_said(
    tmp_path: Path, provider: ScriptedProvider, fault: str
) -> None:
    async def run() -> None:
        provider.default = Reply("Mendel crossed peas in Brno.")
        async with reading(tmp_path, None if fault == "no model" else provider) as reader:
            await reader.ask("Walk me through this page on Mendel")
            provider.default = Reply("no", status=500) if fault == "no answer" else Reply("")
            budget = Budget(0.0) if fault == "no money" else Budget()
            ended = await reader.app.end("default", Caller("", "", frozenset(("ask",)), budget))
            assert ended is not None
            assert "Walk me through this page on Mendel" in (ended.summary or "")

    asyncio.run(run())


def test_readers_do_not_see_each_other(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("Mendel crossed peas in Brno.")
        async with reading(tmp_path, provider) as reader:
            others = [Caller("", name, frozenset(("ask",)), Budget()) for name in ("ann", "bob")]
            for caller in others:
                async for _ in reader.app.ask(StudyQuestion(f"Tell {caller.tenant} of Mendel on this page"), caller):
                    pass
                reader.app.sessions.end(caller.tenant, "default")
            for caller in others:
                found = reader.app.sessions.find(caller.tenant, "What of Mendel was on the page?")
                assert found
                assert all(caller.tenant in one.id for one in found)
            assert reader.app.sessions.find("", "What of Mendel was on the page?") == ()

    asyncio.run(run())


def test_where_no_text_is_kept_sessions_live_in_the_process(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("Zanzibar is an archipelago.")
        async with reading(tmp_path, provider, text="hash") as reader:
            await reader.ask("Walk me through this page", Page())
            await reader.ask("Is that important?")
            assert "Zanzibar" in sent(provider)
            reader.app.sessions.end("", "default")
            await reader.ask("What was on the page about the archipelago?")
            assert "Zanzibar" not in sent(provider)
            assert reader.store.flush()
        assert b"Zanzibar" not in b"".join(
            one.read_bytes() for one in tmp_path.rglob("*") if one.is_file() and one.suffix != ".toml"
        )

    asyncio.run(run())


def test_remembering_can_be_asked_for_all_the_same(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        async with reading(tmp_path, provider, "remember = true\nidle_minutes = 5", text="hash") as reader:
            await reader.ask("Walk me through this page", Page())
            reader.clock.now_s += 6 * MINUTE_S
            assert len(reader.app.sessions.remembered("")) == 1

    asyncio.run(run())


def test_looking_at_the_page_asks_again_and_corrects(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        async with reading(tmp_path, provider) as reader:
            with pytest.raises(Refused, match="ask one first"):
                await reader.ask("Look at the page!", Page())
            page = Page()
            first = await reader.ask("What is resonance?", page)
            assert (first.route, page.read) == ("standalone_definition", 0)
            again = await reader.ask("Please look at the page.", page)
            assert (again.route, again.again, page.read) == ("page_grounded_definition", first.decision, 1)
            assert provider.requests[-1].body["messages"][-1]["content"][0]["text"] == "What is resonance?"
            third = await reader.ask("", page, look=True)
            assert third.route == "general_contextual"
            assert reader.store.flush()
            records = reader.store.records("")
            words = records.feedback(first.decision)
            assert [(one.verdict, one.should_be, one.by) for one in words] == [
                ("wrong", "page_grounded_definition", "reader")
            ]
            labels = {label.id: label.human for label in records.labels(profile="study")}
            assert labels[first.decision] == "page_grounded_definition", "training sees the correction"
            found = total(records.searches("study"))
            assert (found.answers, found.regretted) == (3, 2)
            # The image of the first answer, at 3 dollars a million tokens.
            assert first.saving.usd == pytest.approx(1_700 * 3e-6)
            assert found.left_out_tokens == sum(one.saving.left_out.total for one in (first, again, third))

    asyncio.run(run())


@pytest.mark.parametrize(
    "text", ["look at the page", "Look at the page again!", "No, please check the page.", "READ THE PAGE"]
)
def test_a_reader_says_so_in_words(text: str) -> None:
    assert is_look(text)


@pytest.mark.parametrize("text", ["Look at the page and sum it up", "What is on the page?", "page", "look"])
def test_a_question_is_no_such_word(text: str) -> None:
    assert not is_look(text)


def test_a_follow_up_gets_the_conversation(tmp_path: Path, provider: ScriptedProvider) -> None:
    async def run() -> None:
        provider.default = Reply("Noether proved it in 1915.")
        async with reading(tmp_path, provider) as reader:
            alone = await reader.ask("What is Noether's theorem?")
            follow: StudyAnswer = await reader.ask("Who discovered it?")
            assert (alone.route, follow.route) == ("standalone_definition", "general_contextual")
            row = reader.store.records("").get(follow.decision)
            assert "followup.context" in row.body

    asyncio.run(run())


def test_a_summary_is_made_of_what_was_said() -> None:
    turns = [
        StudyTurn("1", "What is osmosis?", "Osmosis is the flow of water. It needs no energy.", "r", 1),
        StudyTurn("2", "Thanks", "You are welcome.", "r", 2),
    ]
    assert summarize(turns).startswith("What is osmosis? Osmosis is the flow of water.")
    assert summarize([]) == ""
