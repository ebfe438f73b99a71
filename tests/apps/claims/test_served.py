"""The chat over HTTP and its sessions over WebSockets, on both servers, with audits that are really made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import aiohttp
import pytest
from msgspec.structs import replace

from apps.claims.chatting import CARDS, bare_library
from secured_server import call, clean_environment
from serving import SERVERS, RunningServer, serving

QUIET = "[server]\nlag_s = 60.0\nwait_s = 10.0\ndrain_s = 1.0\n"
NOVEL = "Did the Council of Nicaea add books to the Bible?"


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        clean_environment(patch, folder)
        with serving(folder, QUIET, server=request.param) as found:
            with bare_library(found.store) as library:
                library.put_all(CARDS)
            yield found


async def follow(served: RunningServer, session: str, until: str, connected: asyncio.Event | None = None) -> list[Any]:
    """What a client is told of a session, up to an event."""
    told: list[Any] = []
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{served.url}/ws/pipeline/{session}") as opened:
        if connected is not None:
            connected.set()
        async with asyncio.timeout(30):
            async for message in opened:
                event = json.loads(message.data)
                if event["event"] != "ping":
                    told.append(event)
                if event["event"] == until:
                    break
    return told


async def ask(served: RunningServer, question: str, session: str, **more: Any) -> dict[str, Any]:
    body = {"question": question, "session_id": session, **more}
    async with aiohttp.ClientSession() as client, client.post(f"{served.url}/api/chat/ask", json=body) as got:
        assert got.status == 200, await got.text()
        found: dict[str, Any] = await got.json()
        return found


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def test_before_during_and_after(served: RunningServer) -> None:
    """Whenever a client connects, it is told all, in order, once."""

    async def main() -> tuple[dict[str, Any], list[list[Any]]]:
        connected = asyncio.Event()
        before = asyncio.ensure_future(follow(served, "whole", "claim_card_ready", connected))
        await connected.wait()
        told = await ask(served, NOVEL, "whole")
        during = asyncio.ensure_future(follow(served, "whole", "claim_card_ready"))
        lists = [await before, await during]
        lists.append(await follow(served, "whole", "claim_card_ready"))
        return told, lists

    told, lists = asyncio.run(main())
    assert (told["mode"], told["session_id"]) == ("novel_claim", "whole")
    assert told["response"]["session_id"] == "whole"
    assert told["reasoning"]
    assert lists[0] == lists[1] == lists[2]
    assert [event["sequence"] for event in lists[0]] == list(range(1, len(lists[0]) + 1))
    found = names(lists[0])
    assert found[:4] == ["context_analysis_started", "routing_started", "routing_completed", "pipeline_started"]
    assert found[-2:] == ["pipeline_completed", "claim_card_ready"]
    assert found.count("agent_started") == found.count("agent_completed") == 5
    card = call(served.url, "GET", f"/api/claims/{lists[0][-1]['claim_card_id']}")
    assert card.status == 200
    assert card.json["demo"] is True


def test_two_hundred_at_once(served: RunningServer) -> None:
    async def main() -> list[list[Any]]:
        asking = asyncio.ensure_future(ask(served, "Can you put that more simply?", "crowd"))
        listening = [follow(served, "crowd", "contextual_response_completed") for _ in range(200)]
        lists = await asyncio.gather(*listening)
        await asking
        return list(lists)

    lists = asyncio.run(main())
    assert len(lists) == 200
    assert all(one == lists[0] for one in lists)
    assert names(lists[0])[-2:] == ["contextual_response_started", "contextual_response_completed"]


class Refusal(NamedTuple):
    id: str
    body: Any
    said: str


REFUSALS = [
    Refusal("nothing", {}, "question"),
    Refusal("blank", {"question": "  "}, "question: it is blank"),
    Refusal("too long", {"question": "x" * 2001}, "question: it has 2,001 characters, at most 2,000"),
    Refusal("no text", {"question": 7}, "question"),
    Refusal("too many turns", {"question": "x?", "conversation_history": [{"role": "user", "content": "x"}] * 51},
            "conversation_history: 51 messages, at most 50"),
    Refusal("another role", {"question": "x?", "conversation_history": [{"role": "tool", "content": "x"}]}, "role"),
    Refusal("no content", {"question": "x?", "conversation_history": [{"role": "user"}]}, "content"),
    Refusal("unknown field", {"question": "x?", "base_url": "http://evil.example"}, "base_url"),
    Refusal("a session that leads elsewhere", {"question": "x?", "session_id": "../x"}, "session_id"),
    Refusal("a session without a name", {"question": "x?", "session_id": ""}, "session_id"),
    Refusal("no JSON", b"{", "truncated"),
    Refusal("half a character", b'{"question": "\\ud800"}', ""),
    Refusal("deep", b'{"question":' * 10_000, ""),
]  # fmt: skip


def test_what_is_not_taken(served: RunningServer) -> None:
    for case in REFUSALS:
        got = call(served.url, "POST", "/api/chat/ask", case.body)
        assert got.status == 422, (case.id, got.body)
        assert case.said in got.json["error"]["message"], (case.id, got.body)


def test_limits_are_included(served: RunningServer) -> None:
    history = [{"role": "assistant", "content": "x" * 5000}] * 50
    asked = ("that? " * 400)[:2000]
    got = call(served.url, "POST", "/api/chat/ask", {"question": asked, "conversation_history": history})
    assert got.status == 200, got.body


def test_cards_are_listed_shown_and_found(served: RunningServer) -> None:
    listed = call(served.url, "GET", "/api/claims?type=theological").json
    assert [one["id"] for one in listed["claims"] if one["id"] in {card.id for card in CARDS}] == ["inspired"]
    first = call(served.url, "GET", "/api/claims?limit=1").json
    assert len(first["claims"]) == 1
    after = call(served.url, "GET", f"/api/claims?limit=1&after={first['next']}").json
    assert after["claims"][0]["id"] > first["claims"][0]["id"]
    assert call(served.url, "GET", "/api/claims/mark").json["verdict"] == "True"
    assert call(served.url, "GET", "/api/claims/none").status == 404
    found = call(served.url, "GET", "/api/claims/search?q=global%20flood").json["candidates"]
    assert found[0]["id"] == "flood"
    for path in ("search", "search?q=", "search?q=x&limit=0", "search?q=x&type=y"):
        assert call(served.url, "GET", f"/api/claims/{path}").status == 422, path
    for path in ("?type=nonsense", "?verdict=Maybe", "?limit=1000", "?limit=x"):
        assert call(served.url, "GET", f"/api/claims{path}").status == 422, path


def test_a_card_is_hidden_shown_and_deleted(served: RunningServer) -> None:
    with bare_library(served.store) as library:
        library.put(replace(CARDS[0], id="spare", claim_text="Spare wheels are round."))
    asked = "/api/claims/search?q=spare%20wheels%20round"

    def found() -> list[str]:
        return [one["id"] for one in call(served.url, "GET", asked).json["candidates"]]

    assert found() == ["spare"]
    assert call(served.url, "POST", "/api/claims/spare/hide").json == {"id": "spare", "visible": False}
    assert (found(), call(served.url, "GET", "/api/claims/spare").status) == ([], 404)
    assert call(served.url, "POST", "/api/claims/spare/unhide").status == 200
    assert found() == ["spare"]
    deleted = [call(served.url, "POST", "/api/claims/spare/delete").json["deleted"] for _ in range(2)]
    assert (deleted, found()) == ([True, False], [])
    assert call(served.url, "POST", "/api/claims/spare/hide").status == 404


def test_feedback_is_what_training_sees(served: RunningServer) -> None:
    made = call(served.url, "POST", "/api/chat/ask", {"question": "Can you put that more simply?"}).json
    ident = made["decision_id"]
    right = {"decision_id": ident, "right": True}
    assert call(served.url, "POST", "/api/chat/feedback", right).status == 201
    wrong = {"decision_id": ident, "right": False, "should_be": "exact_match", "card_id": "flood", "note": "it was"}
    assert call(served.url, "POST", "/api/chat/feedback", wrong).json["note"] == "card flood it was"
    records = served.store.records("")
    label = next(one for one in records.labels(profile="claims") if one.id == ident)
    assert (label.text, label.human) == ("Can you put that more simply?", "exact_match")
    refused = [
        ({"decision_id": "none", "right": True}, 404),
        ({"decision_id": ident, "right": True, "should_be": "contextual"}, 422),
        ({"decision_id": ident, "right": False, "should_be": "other"}, 422),
        ({"decision_id": ident}, 422),
    ]
    for body, status in refused:
        assert call(served.url, "POST", "/api/chat/feedback", body).status == status, body
    other = call(served.url, "POST", "/v1/route", {"text": "hello"}).json["id"]
    assert call(served.url, "POST", "/api/chat/feedback", {"decision_id": other, "right": True}).status == 404


def test_events_over_http(served: RunningServer) -> None:
    body = {"question": "Can you put that more simply?", "stream": True}
    got = call(served.url, "POST", "/api/chat/ask", body)
    events = [line[7:] for line in got.body.decode().splitlines() if line.startswith("event: ")]
    assert events[0] == "context_analysis_started"
    assert events[-1] == "claim_answer"


def test_it_is_a_model_of_the_gateway(served: RunningServer) -> None:
    listed = [one["id"] for one in call(served.url, "GET", "/v1/models").json["data"]]
    assert "claims" in listed
    messages = [{"role": "user", "content": "Can you put that more simply?"}]
    got = call(served.url, "POST", "/v1/chat/completions", {"model": "claims", "messages": messages})
    assert got.json["choices"][0]["message"]["content"].startswith("What do you mean?")
    messages = [{"role": "user", "content": "Does Isaiah 53 predict Jesus?"}]
    got = call(served.url, "POST", "/v1/chat/completions", {"model": "claims", "messages": messages, "stream": True})
    assert "topic_finder" in got.body.decode()
    assert "demonstration model" in got.body.decode()


def test_origin(served: RunningServer) -> None:
    async def connect(origin: str) -> int:
        async with aiohttp.ClientSession() as client:
            try:
                async with client.ws_connect(f"{served.url}/ws/pipeline/s", headers={"origin": origin}):
                    return 101
            except aiohttp.WSServerHandshakeError as refused:
                return refused.status

    found = [asyncio.run(connect(origin)) for origin in (served.url, "https://evil.example", "null")]
    assert found == [101, 403, 403]
