"""A question is answered as its type says: searched or not, by which model, with citations that were checked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apps.assist.conftest import DOCS, FENCE, Assistant, assisting, write_docs
from postgres_server import PostgresServer
from turnout.apps.assist.app import Action, AssistApp, follow_policy
from turnout.apps.assist.event import AssistAnswer, DocCitation, Retrieved, TypeDecided
from turnout.apps.assist.library import shared_place
from turnout.apps.assist.prompt import ACCOUNT, CODE, CODE_ALONE, FROM_PASSAGES, GO_ON
from turnout.apps.event import Failed, Token
from turnout.core.decision import Decision
from turnout.core.errors import Refused
from turnout.runtime.runtime import Runtime
from turnout.store import open_store
from turnout.testing import Fault, Reply

ASKED = "How often is a request retried?"


def run(folder: Path, scenario: Callable[[Assistant], Awaitable[Any]], **more: Any) -> Any:
    async def whole() -> Any:
        async with assisting(folder, **more) as assistant:
            return await scenario(assistant)

    return asyncio.run(whole())


def test_an_answer_cites_file_heading_and_span(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        bot.main.script(Reply("A request is retried five times [1]. It is painted green [1]. Ask me more."))
        found = await bot.ask(ASKED)
        assert found.answer == ("A request is retried five times [1]. It is painted green. [unsupported] Ask me more.")
        assert (found.query_type, found.retrieval, found.model, found.unsupported) == ("RETRIEVAL", True, "x/main", 1)
        (one,) = found.citations
        assert (one.library, one.version, one.file, one.heading) == (
            "client",
            "2.0",
            "client.md",
            ("Client", "Retries"),
        )
        assert DOCS["2.0"][one.start : one.end] == one.text
        outcome = bot.outcome(found.decision_id)
        assert (outcome.ended, outcome.slot, outcome.retrieval, outcome.sources) == (
            "answered",
            "main",
            True,
            ("client@2.0",),
        )
        assert bot.breaches(found.decision_id) == set()

    run(tmp_path, scenario)


class SentCase(NamedTuple):
    """What reaches a model, message by message."""

    id: str
    question: str
    declared: str | None
    context: dict[str, str]
    slot: str
    messages: list[tuple[str, str]]


def quoted(head: str, text: str) -> str:
    return f"{head}\n{FENCE}\n{text}\n{FENCE}"


RETRIES = quoted(
    "[1] client 2.0 › client.md › Client › Retries",
    "A request is retried five times. Set max_retries to change that.",
)
TIMEOUTS = quoted(
    "[2] client 2.0 › client.md › Client › Timeouts", "A request may take 30 seconds. Pass timeout to change that."
)


def first(passage: str) -> str:
    return passage.replace("[2]", "[1]")


def second(passage: str) -> str:
    return passage.replace("[1]", "[2]")


EVERYTHING = {
    "selected_text": "client.get(url)",
    "editor_content": "import client\nclient.get(url)",
    "extra_context": "usage: 80 %",
    "user_info": "Ada",
}
SELECTED = quoted("Selected in the user's editor:", EVERYTHING["selected_text"])
EDITOR = quoted("Open in the user's editor:", EVERYTHING["editor_content"])
PLATFORM = quoted("Data of the platform:", "usage: 80 %") + "\n\n" + quoted("The user:", "Ada")
SENT = [
    SentCase(
        "documentation",
        ASKED,
        None,
        EVERYTHING,
        "main",
        [
            ("system", FROM_PASSAGES),
            ("user", "\n\n".join((SELECTED, EDITOR, RETRIES, TIMEOUTS, f"Question: {ASKED}"))),
        ],
    ),
    SentCase(
        "code",
        ASKED,
        "CODE_GENERATION",
        {},
        "main",
        [("system", CODE), ("user", "\n\n".join((RETRIES, TIMEOUTS, f"Question: {ASKED}")))],
    ),
    SentCase(
        "code that is in no document",
        "Write a function that reverses a string",
        "CODE_GENERATION",
        {},
        "main",
        [("system", CODE_ALONE), ("user", "Write a function that reverses a string")],
    ),
    SentCase(
        "conversation",
        "Say that again, shorter",
        "CONVERSATIONAL",
        EVERYTHING,
        "small",
        [
            ("system", GO_ON),
            ("user", "Before?"),
            ("assistant", "Before."),
            ("user", f"{SELECTED}\n\nQuestion: Say that again, shorter"),
        ],
    ),
    SentCase(
        "platform",
        "How much of my quota is left?",
        None,
        EVERYTHING,
        "small",
        [("system", ACCOUNT), ("user", f"{PLATFORM}\n\nQuestion: How much of my quota is left?")],
    ),
    SentCase(
        "a follow-up",
        "And how do I change it?",
        "RETRIEVAL",
        {},
        "main",
        [
            ("system", FROM_PASSAGES),
            ("user", "Before?"),
            ("assistant", "Before."),
            ("user", "\n\n".join((first(TIMEOUTS), second(RETRIES), "Question: And how do I change it?"))),
        ],
    ),
]


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
def test_a_model_is_sent_what_its_type_allows(tmp_path: Path, case: SentCase) -> None:
    async def scenario(bot: Assistant) -> None:
        bot.small.script(Reply("Before."))
        await bot.ask("Before?", declared="CONVERSATIONAL")
        assert bot.store.flush(10.0)
        bot.small.default = bot.main.default = Reply("Well.")
        await bot.ask(case.question, declared=case.declared, **case.context)
        provider = bot.main if case.slot == "main" else bot.small
        sent = provider.requests[-1].body["messages"]
        assert [(one["role"], one["content"]) for one in sent] == case.messages

    run(tmp_path, scenario, **({"least": 0.0} if case.id == "a follow-up" else {}))


def test_the_editor_is_not_what_is_classified(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        found = await bot.ask(
            ASKED, selected_text="show my quota", editor_content="you are a direct and concise assistant"
        )
        assert found.query_type == "RETRIEVAL"

    run(tmp_path, scenario)


def test_this_is_what_is_selected(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        found = await bot.events("What does this do?", declared="RETRIEVAL", selected_text="pass(timeout(30))")
        (one,) = [event for event in found if isinstance(event, Retrieved)]
        assert one.passages[0].heading == ("Client", "Timeouts")

    run(tmp_path, scenario, models=False)


class Version(NamedTuple):
    id: str
    question: str
    context: dict[str, str]
    version: str
    said: str


VERSIONS = [
    Version("the newest", ASKED, {}, "2.0", "five"),
    Version("named in the question", "How often is a request retried in client 1.0?", {}, "1.0", "three"),
    Version("named by the caller", ASKED, {"version": "1.0"}, "1.0", "three"),
    Version("by both", "How often is a request retried in 2.0?", {"version": "1.0"}, "1.0", "three"),
]


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case.id)
def test_the_right_version_answers(tmp_path: Path, case: Version) -> None:
    async def scenario(bot: Assistant) -> None:
        found = await bot.ask(case.question, **case.context)
        assert {one.version for one in found.citations} == {case.version}
        assert case.said in found.citations[0].text
        assert found.model == ""
        assert found.answer.startswith(f"[1] client {case.version} › client.md")

    run(tmp_path, scenario, models=False)


class Refusing(NamedTuple):
    id: str
    question: str
    context: dict[str, str]
    refused: str
    said: str


REFUSING = [
    Refusing("not in the documents", "Who painted the Mona Lisa?", {}, "not_in_documents", "not in these documents"),
    Refusing("no such version", "How often does client 7.1 retry?", {}, "no_such_version", "client 7.1 is not among"),
]


@pytest.mark.parametrize("case", REFUSING, ids=lambda case: case.id)
def test_what_is_not_there_is_said_to_be(tmp_path: Path, case: Refusing) -> None:
    async def scenario(bot: Assistant) -> None:
        found = await bot.ask(case.question, declared="RETRIEVAL", **case.context)
        assert (found.refused, found.citations) == (case.refused, ())
        assert case.said in found.answer
        assert bot.main.received == 0

    run(tmp_path, scenario)


def test_a_model_may_say_that_it_is_not_there(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        bot.main.script(Reply("NOT IN THESE DOCUMENTS."))
        events = await bot.events(ASKED)
        assert [event.text for event in events if isinstance(event, Token)] == ["That is not in these documents."]
        assert events[-1].refused == "not_in_documents"

    run(tmp_path, scenario)


def test_an_unknown_library_and_an_unknown_type_are_refused(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        with pytest.raises(Refused, match=r"'clent'.*did you mean 'client'") as error:
            await bot.ask(ASKED, library="clent")
        assert error.value.status == 404
        with pytest.raises(Refused, match="'clent'"):
            await bot.ask("Thank you!", library="clent")
        with pytest.raises(Refused, match="'FOO'") as error:
            await bot.ask(ASKED, declared="FOO")
        assert error.value.status == 422

    run(tmp_path, scenario, models=False)


def test_events_come_in_order_and_code_is_not_cited(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        code = "```python\nx = list[1]\nprint(x[9])\n```\n\n"
        bot.main.script(Reply([*f"{code}A request is retried five times [1]."], chunk_delay_s=0.0005))
        events = await bot.events(ASKED, declared="CODE_GENERATION")
        assert list(dict.fromkeys(map(type, events))) == [TypeDecided, Retrieved, Token, DocCitation, AssistAnswer]
        assert events[2].text.startswith(code)
        assert events[-1].answer == "".join(event.text for event in events if isinstance(event, Token))

    run(tmp_path, scenario)


class BrokenCase(NamedTuple):
    id: str
    question: str
    reply: Reply
    last: type
    ended: str


DOWN = Reply(status=400)
BROKEN = [
    BrokenCase("the passages answer for a model that does not", ASKED, DOWN, AssistAnswer, "failed"),
    BrokenCase("nothing answers for the conversation", "thanks!", DOWN, Failed, "failed"),
    BrokenCase("it breaks off", ASKED, Reply("A request is", fault=Fault("cut", "after_delta")), Failed, "failed"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_model_that_fails(tmp_path: Path, case: BrokenCase) -> None:
    async def scenario(bot: Assistant) -> None:
        bot.main.default = bot.small.default = case.reply
        events = await bot.events(case.question)
        assert type(events[-1]) is case.last
        (first,) = [event for event in events if isinstance(event, TypeDecided)]
        assert bot.outcome(first.decision_id).ended == case.ended

    run(tmp_path, scenario)


def always_search(decision: Decision) -> Action:
    return Action(True, follow_policy(decision).slot)


def always_main(decision: Decision) -> Action:
    return Action(bool(decision.policy.retrieval), "main")


def always_small(decision: Decision) -> Action:
    return Action(bool(decision.policy.retrieval), "conversational")


class Violation(NamedTuple):
    """A program that does not do what its policy says."""

    id: str
    question: str
    plan: Callable[[Decision], Action]
    broken: set[tuple[str, str]]


VIOLATIONS = [
    Violation("as the policy says", "How much of my quota is left?", follow_policy, set()),
    Violation("searched for an account", "How much of my quota is left?", always_search, {("RC-04", "retrieval")}),
    Violation("searched to chat", "thanks!", always_search, {("RC-04", "retrieval")}),
    Violation("main for an account", "How much of my quota is left?", always_main, {("RC-05b", "model")}),
    Violation("the small model for documents", ASKED, always_small, {("RC-05", "model")}),
]


@pytest.mark.parametrize("case", VIOLATIONS, ids=lambda case: case.id)
def test_the_contract_is_judged_on_what_happened(tmp_path: Path, case: Violation) -> None:
    async def scenario(bot: Assistant) -> None:
        found = await bot.ask(case.question)
        assert bot.breaches(found.decision_id) == case.broken

    run(tmp_path, scenario, plan=case.plan, least=0.0)


def test_main_stands_in_where_no_small_model_is_configured(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        found = await bot.ask("How much of my quota is left?")
        assert (found.model, bot.outcome(found.decision_id).slot) == ("x/main", "conversational")
        assert bot.breaches(found.decision_id) == set()

    run(tmp_path, scenario, conversational=False)


def test_six_intents_at_most_and_none_for_a_question_that_stands_alone(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        last = ""
        for _ in range(8):
            found = await bot.ask(ASKED)
            assert bot.store.flush(10.0)
            last = found.decision_id
        found = await bot.ask("thanks!")
        extra = bot.outcome(found.decision_id).extra
        assert (extra["classifier_history"], extra["continues"]) == (6, last)
        assert bot.breaches(found.decision_id) == set()

    run(tmp_path, scenario, models=False)


def test_a_folder_without_a_version_is_followed(tmp_path: Path) -> None:
    async def scenario(bot: Assistant) -> None:
        folder = write_docs(tmp_path, "1.0")
        bot.libraries.ingest(folder, "mine")
        (folder / "client.md").write_text("# Client\n\nPenguins are supported since today.\n", encoding="utf-8")
        await asyncio.sleep(0.3)
        found = await bot.ask("Are penguins supported in mine?", declared="RETRIEVAL")
        assert "Penguins are supported" in found.citations[0].text
        old = await bot.ask("How often does client 1.0 retry a request?", declared="RETRIEVAL")
        assert "three times" in old.citations[0].text

    run(tmp_path, scenario, models=False)


def test_servers_that_share_a_database_share_their_libraries(tmp_path: Path, postgres: PostgresServer) -> None:
    """What one of them ingests, by the command or by itself, the others find: the index is where the store is."""

    async def run(url: str) -> None:
        with open_store(url, config="") as first, open_store(url, config="") as second:
            one = AssistApp(Runtime(first, profile="assist", config=""))
            other = AssistApp(Runtime(second, profile="assist", config=""))
            there = (await one.libraries()).ingest(write_docs(tmp_path, "1.0"), "client", "1.0")[0]
            assert [found.name for found in (await other.libraries()).editions()] == [there.name]
            await one.close()
            await other.close()

    with postgres.database() as url:
        asyncio.run(run(url))
    assert shared_place(str(tmp_path / "log.db")) is None
