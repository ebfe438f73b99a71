"""The agents of an audit: what each may answer, what is looked up of it, when searching ends."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from apps.claims.auditing import CLAIM, scripted, search_in, straight
from turnout.apps.claims.audit import Auditor, StepResult
from turnout.apps.claims.card import Card, ClaimType
from turnout.apps.claims.verify import PageReader
from turnout.core.errors import Unreachable
from turnout.net.public import PublicWeb
from turnout.testing.audit import AgentScript, PageTransport, good_answer

PAGE = "https://site.example/a"
TEXT = "The oldest copies agree word for word in most of the shared passages."


def run(script: AgentScript, **reach: Any) -> Card | StepResult:
    async def scenario() -> Card | StepResult:
        async with scripted(script) as models:
            return await straight(Auditor(models, **reach))

    return asyncio.run(scenario())


def altered(agent: str, **fields: Any) -> dict[str, Any]:
    return good_answer(agent, CLAIM, "") | fields


class Bad(NamedTuple):
    id: str
    agent: str
    answer: Any
    said: str
    """What the reason names."""


BAD = [
    Bad("no JSON", "topic_finder", "I think that", "not what was asked for"),
    Bad("another object", "topic_finder", {"claim": "x"}, "claim_text"),
    Bad(
        "no such type",
        "topic_finder",
        altered("topic_finder", claim_type_category="weather"),
        "'weather' is not a type",
    ),
    Bad("a blank field", "topic_finder", altered("topic_finder", claimant="  "), "claimant is blank"),
    Bad("no such verdict", "adversarial_checker", altered("adversarial_checker", verdict="Rather"), "Rather"),
    Bad("another verdict", "writing_agent", altered("writing_agent", verdict="True"), "the verdict is 'Misleading'"),
    Bad("too long", "writing_agent", altered("writing_agent", short_answer="word " * 151), "151 words, at most 150"),
    Bad("no limits", "publisher", altered("publisher", limitations=[]), "limitations"),
    Bad("deep", "publisher", "[" * 100_000, "not what was asked for"),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_a_bad_answer_is_asked_for_once_more(bad: Bad) -> None:
    """The second one counts; after two of them the audit ends, and says why."""
    script = AgentScript({bad.agent: [bad.answer, good_answer(bad.agent, CLAIM, "")]})
    assert isinstance(run(script), Card)
    assert script.asked.count(bad.agent) == 2
    script = AgentScript({bad.agent: bad.answer})
    failed = run(script)
    assert isinstance(failed, StepResult)
    assert failed.step == bad.agent
    assert bad.said in failed.failed
    assert script.asked.count(bad.agent) == 2


def test_another_name_of_a_type_is_that_type() -> None:
    card = run(AgentScript({"topic_finder": altered("topic_finder", claim_type_category="Theological")}))
    assert isinstance(card, Card)
    assert card.claim_type_category == ClaimType.DOCTRINAL


class SaidCase(NamedTuple):
    id: str
    quote: str
    url: str
    url_status: str
    quote_status: str


SAID = [
    SaidCase("word for word", TEXT, PAGE, "verified", "verified"),
    SaidCase("a word altered", TEXT.replace("oldest", "first"), PAGE, "verified", "unverified"),
    SaidCase("no such page", TEXT, f"{PAGE}/b", "failed", "unverified"),
    SaidCase("a private place", TEXT, "http://127.0.0.1/admin", "failed", "unverified"),
    SaidCase("metadata", TEXT, "http://169.254.169.254/latest/meta-data/", "failed", "unverified"),
    SaidCase("no address", TEXT, "", "unverified", "unverified"),
]


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.id)
def test_what_a_source_says_is_looked_up(said: SaidCase) -> None:
    source = {"citation": "A", "url": said.url, "quote_text": said.quote, "usage_context": ""}
    script = AgentScript({"source_checker": altered("source_checker", scholarly_sources=[source])})
    web = PageTransport({PAGE: f"<html><body><p>{TEXT}</p></body></html>"})
    card = run(script, read=PageReader(PublicWeb(web)))
    assert isinstance(card, Card)
    assert [(one.url_status, one.quote_status) for one in card.sources] == [(said.url_status, said.quote_status)]
    assert {url.split("/")[2] for url in web.fetched} <= {"site.example"}


class Stop(NamedTuple):
    id: str
    wanted: list[str]
    """What the source checker asks for, answer by answer."""
    most: int
    made: int


STOPS = [
    Stop("enough at once", [""], 5, 1),
    Stop("one more", ["b", ""], 5, 2),
    Stop("never enough", ["b", "c", "d", "e", "f", "g", "h"], 5, 5),
    Stop("the same again", ["b", "B "], 5, 2),
    Stop("a limit of two", ["b", "c", "d"], 2, 2),
    Stop("none allowed", ["b"], 0, 0),
]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.id)
def test_searching_ends(stop: Stop) -> None:
    made: list[str] = []

    async def search(query: str) -> Any:
        made.append(query)
        return await search_in({f"https://site.example/{len(made)}": ""})(query)

    answers: list[Any] = [altered("source_checker", next_search=query) for query in stop.wanted]
    card = run(AgentScript({"source_checker": answers}), search=search, searches=stop.most)
    assert isinstance(card, Card)
    assert len(made) == stop.made
    assert made[:1] == [CLAIM][: stop.made]


def test_a_search_that_fails_ends_searching_and_not_the_audit() -> None:
    async def search(query: str) -> Any:
        raise Unreachable("nobody is there")

    assert isinstance(run(AgentScript(), search=search), Card)
