"""Whose fault a refusal is: what one tenant's request provokes is told to it, and costs its neighbours nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import pytest

from gateway.bench import Bench, bench_of
from turnout.models.generate import conceal
from turnout.models.provider import Wire
from turnout.models.refusal import STATUSES, Refusal, read_refusal, rule_for
from turnout.models.slot import SlotFile, make_slot
from turnout.models.wire.format import read_members
from turnout.models.wire.named import names_something
from turnout.testing import Reply

TIMES = 6


def refusal(message: str = "no such thing", **error: Any) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": "invalid_request_error"} | error})


class Row(NamedTuple):
    status: int
    plain: Literal["client", "next"]
    named: Literal["client", "next"]
    """The same of a request that names something of the provider's."""
    opens: bool = False
    """Five of them open the breaker all tenants share."""
    body: bytes = refusal()
    id: str = ""


CLIENT = (400, 405, 406, 411, 413, 414, 415, 422, 431)
ABOUT_NAMES = (404, 409, 410, 423, 424)
NEVER_COUNTED = (403, 408, 412, 417, 418, 451, 498, 501)
COUNTED = (401, 402, 429, 500, 502, 503, 504, 520, 529)
ROWS = [
    *(Row(status, "client", "client") for status in CLIENT),
    *(Row(status, "next", "client") for status in ABOUT_NAMES),
    *(Row(status, "next", "next") for status in NEVER_COUNTED),
    *(Row(status, "next", "next", opens=True) for status in COUNTED),
    Row(404, "next", "next", body=refusal(code="model_not_found"), id="404-model-by-code"),
    Row(404, "next", "next", body=refusal(param="model"), id="404-model-by-param"),
    Row(404, "next", "next", body=refusal("model: simple-model", type="not_found_error"), id="404-model-by-name"),
    Row(404, "next", "client", body=refusal("no response resp_simple-model2"), id="404-almost-the-model"),
    Row(404, "next", "next", body=refusal("Invalid URL", code="unknown_url"), id="404-path"),
    Row(404, "next", "next", body=b'{"detail":"Not Found"}', id="404-path-of-fastapi"),
    Row(404, "next", "next", body=b"<html>nginx</html>", id="404-page"),
    Row(404, "next", "next", body=b"", id="404-empty"),
    Row(409, "next", "client", body=b'{"error":"locked"}', id="409-a-word"),
    Row(429, "next", "next", body=refusal("Request too large for gpt-x: Limit 1, Requested 2"), id="429-too-large"),
    Row(429, "next", "next", opens=True, body=refusal("Rate limit reached: Limit 1, Used 1"), id="429-too-often"),
]


def state(bench: Bench) -> str:
    return bench.gateway.models.breaker(bench.gateway.models.slots.slots["simple"]).state


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id or str(row.status))
def test_who_hears_of_a_refusal_and_whether_it_counts(tmp_path: Path, row: Row) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            # As an answer of its own format and in one piece: the first slot always says this, the second works.
            bench.providers["simple"].default = Reply(status=row.status, body=row.body)
            for named, expected in ((False, row.plain), (True, row.named)):
                bench.forget()
                for number in range(TIMES):
                    more = {"previous_response_id": f"resp_{number}"} if named else {}
                    told = await bench.ask("simple", f"question {number}", wire="openai-responses", **more)
                    assert told.status == (row.status if expected == "client" else 200)
                    if expected == "client":
                        assert "x-turnout-slot" not in told.headers
                assert state(bench) == ("open" if row.opens else "closed")
                assert ("medium" in bench.asked) is (expected == "next")
                attempts = bench.outcome(told).extra["attempts"]
                assert attempts[0]["ended"] == ("breaker" if row.opens else "status")
                assert row.opens or attempts[0]["status"] == row.status

    asyncio.run(scenario())


def test_every_row_of_the_table_has_its_reason_and_its_test() -> None:
    assert set(STATUSES) <= {row.status for row in ROWS}
    assert all(len(status.why) > 10 for status in STATUSES.values())
    for row in ROWS:
        found = rule_for(read_refusal(row.status, row.body), "simple-model")
        assert (found.ends == "here", found.counts) == (row.plain == "client", row.opens)


def test_the_documentation_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/models.md").read_text("utf-8")
    section = page.partition("### Whose fault a status is")[2].partition("\n## ")[0]
    written = {}
    for line in section.splitlines():
        first, who, counted, *_ = [cell.strip() for cell in line.strip("|").split("|")] + [""] * 3
        ends = "if named" if "if the request names" in who else "here" if who == "the client" else "next"
        if first.startswith("another"):
            continue
        written |= {int(found): (ends, counted.startswith("yes")) for found in re.findall(r"\d{3}", first)}
    listed = {status: (row.ends, row.counts) for status, row in STATUSES.items() if status < 500 or not row.counts}
    assert {status: written[status] for status in listed} == listed


def test_five_that_name_what_is_not_there_move_no_neighbour(tmp_path: Path) -> None:
    """One tenant's made-up ids sent all tenants to a model ten times the price."""

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            gone = Reply(status=404, body=refusal("Previous response with id 'resp_x' not found.", code="gone"))
            bench.providers["simple"].script(*[gone] * 5)
            for _ in range(5):
                told = await bench.ask("simple", wire="openai-responses", previous_response_id="resp_x")
                assert told.status == 404
                assert told.json["error"]["message"].startswith("Previous response with id 'resp_x' not found.")
            assert set(bench.asked) == {"simple"}
            neighbour = await bench.ask("simple", "another tenant's question")
            assert (neighbour.status, neighbour.slot) == (200, "simple")

    asyncio.run(scenario())


def test_a_refused_probe_leaves_the_breaker_as_it_was(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            breaker = bench.gateway.models.breaker(bench.gateway.models.slots.slots["simple"])
            for status in (400, 404, 409, 403):
                while breaker.state == "closed":
                    breaker.failed()
                breaker._since = -1e9
                assert breaker.state == "half-open"
                bench.providers["simple"].script(Reply(status=status, body=refusal()))
                await bench.ask("simple")
                assert (breaker.state, breaker._probing) == ("half-open", None), "neither well nor ill, and free"
            assert (await bench.ask("simple")).slot == "simple"
            assert breaker.state == "closed"

    asyncio.run(scenario())


# --- an error inside an answer


class Inside(NamedTuple):
    id: str
    error: dict[str, Any]
    status: int
    """The client gets; 200: from the next one."""
    opens: bool = False


INSIDE = [
    Inside("server", {"code": "server_error", "message": "oh"}, 200, opens=True),
    Inside("nameless", {"message": "oh"}, 200, opens=True),
    Inside("busy", {"code": "rate_limit_exceeded", "message": "oh"}, 200, opens=True),
    Inside("overloaded", {"type": "overloaded_error", "message": "oh"}, 200, opens=True),
    Inside("prompt", {"code": "invalid_prompt", "message": "flagged"}, 400),
    Inside("picture", {"code": "failed_to_download_image", "message": "no picture"}, 400),
    Inside("policy", {"code": "image_content_policy_violation", "message": "no"}, 400),
    Inside("by-number", {"code": 400, "message": "no"}, 400),
    Inside("by-type", {"code": None, "type": "invalid_request_error", "message": "no"}, 400),
    Inside("too-large", {"type": "request_too_large", "message": "no"}, 413),
    Inside("moderated", {"code": 403, "message": "flagged"}, 200),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", INSIDE, ids=lambda case: case.id)
def test_an_error_inside_an_answer_is_judged_the_same(tmp_path: Path, case: Inside, stream: bool) -> None:
    raw = msgspec.json.encode({"id": "resp_1", "status": "failed", "error": case.error})
    kind = "application/json"
    if stream:
        failed = msgspec.json.encode({"type": "response.failed", "response": {"error": case.error}})
        raw = b'event: response.created\ndata: {"response":{}}\n\nevent: response.failed\ndata: ' + failed + b"\n\n"
        kind = "text/event-stream"

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["simple"].default = Reply(body=raw, headers={"content-type": kind})
            for number in range(TIMES):
                told = await bench.ask("simple", f"question {number}", wire="openai-responses", stream=stream)
                assert told.status == case.status
            assert state(bench) == ("open" if case.opens else "closed")
            if case.status != 200:
                error = told.json["error"]
                assert error["message"].startswith(case.error["message"])
                assert error["code"] == case.error.get("code")
                assert bench.asked == ["simple"] * TIMES

    asyncio.run(scenario())


# --- the provider's names


class KeptCase(NamedTuple):
    id: str
    wire: Wire
    said: dict[str, Any]
    told: dict[str, Any]


LIMIT = {"message": "too long", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
KEPT = [
    KeptCase("chat", "openai-chat", LIMIT, LIMIT),
    KeptCase("responses", "openai-responses", LIMIT, LIMIT),
    KeptCase("null", "openai-chat", LIMIT | {"code": None, "param": None}, LIMIT | {"code": None, "param": None}),
    KeptCase("number", "openai-chat", LIMIT | {"code": 400}, LIMIT | {"code": 400}),
    KeptCase(
        "odd", "openai-chat", LIMIT | {"code": [1], "param": {}, "type": 7}, LIMIT | {"code": None, "param": None}
    ),
    KeptCase("huge", "openai-chat", LIMIT | {"code": 10**30}, LIMIT | {"code": None}),
    KeptCase("messages", "anthropic-messages", {"type": "billing_error", "message": "no"}, {"type": "billing_error"}),
    KeptCase("messages-without", "anthropic-messages", {"message": "no"}, {"type": "invalid_request_error"}),
]


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.id)
def test_a_providers_names_for_an_error_are_kept(tmp_path: Path, case: KeptCase) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            body = msgspec.json.encode({"type": "error", "error": case.said})
            bench.providers["simple"].default = Reply(status=400, body=body)
            told = await bench.ask("simple", wire=case.wire)
            assert told.status == 400
            error = told.json["error"]
            assert error["message"].startswith(case.said["message"])
            for name in case.told.keys() - {"message"}:
                assert error[name] == case.told[name]

    asyncio.run(scenario())


def test_what_a_provider_says_of_its_place_is_not_passed_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            provider = bench.providers["simple"]
            where = f"{provider.origin}/v1/chat/completions"
            said = {"message": f"POST {where} to 127.0.0.1:{provider.port}: no", "code": where, "param": where}
            provider.default = Reply(status=400, body=msgspec.json.encode({"error": said | {"type": where}}))
            told = await bench.ask("simple")
            assert told.json["error"]["message"].startswith("POST the provider/v1/chat/completions to the provider: no")
            assert b"127.0.0.1" not in told.body
            assert str(provider.port).encode() not in told.body
            provider.default = Reply(headers={"x-request-id": f"req-1@127.0.0.1:{provider.port}"})
            told = await bench.ask("simple")
            assert told.headers["x-request-id"] == "req-1@the provider"

    asyncio.run(scenario())


def test_where_a_silent_provider_is_is_for_the_operator(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            for provider in bench.providers.values():
                provider.refuse()
            told = await bench.ask("reasoning")
            error = told.json["error"]["message"]
            assert error.startswith("no model answered: reasoning-co/reasoning-model could not be reached")
            assert b"127.0.0.1" not in told.body
            (first, *_) = bench.outcome(told).extra["attempts"]
            assert "127.0.0.1" in first["detail"], "who runs it is told where"

    asyncio.run(scenario())


class Place(NamedTuple):
    url: str
    said: str
    shown: str


PLACES = [
    Place("https://api.acme.com/v1", "https://api.acme.com/v1/x failed", "the provider/v1/x failed"),
    Place("https://api.acme.com/v1", "API.ACME.COM:443 refused", "the provider refused"),
    Place("https://api.acme.com/v1", "see docs.acme.com or xapi.acme.com", "see docs.acme.com or xapi.acme.com"),
    Place("http://10.0.0.3:8080/v1", "connect to 10.0.0.3:8080 timed out", "connect to the provider timed out"),
    Place("http://10.0.0.3:8080/v1", "version 110.0.0.35", "version 110.0.0.35"),
    Place("http://[::1]:8080/v1", "http://[::1]:8080/v1 is down", "the provider/v1 is down"),
    Place("http://ollama:11434/v1", "ollama is ollama/llama at ollama:11434", "ollama is ollama/llama at the provider"),
    Place("http://ollama:11434/v1", "http://ollama/api", "the provider/api"),
]


@pytest.mark.parametrize("case", PLACES, ids=lambda case: case.said)
def test_a_place_is_concealed_and_nothing_else(case: Place) -> None:
    assert conceal(make_slot("simple", SlotFile("acme/x", base_url=case.url)), case.said) == case.shown


# --- what names something


def content(part: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [part]}]}


NAMES: list[tuple[dict[str, Any], bool]] = [
    ({"previous_response_id": "resp_1"}, True),
    ({"previous_response_id": None}, False),
    ({"conversation": {"id": "conv_1"}}, True),
    ({"prompt": {"id": "pmpt_1"}}, True),
    ({"container": "container_1"}, True),
    ({"mcp_servers": [{"type": "url", "url": "https://x"}]}, True),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, True),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]}, True),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y.png"}]}]}, True),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;,"}]}]}, False),
    ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, True),
    ({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, True),
    ({"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]}, True),
    ({"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, False),
    ({"tools": [{"type": "mcp", "server_url": "https://x"}]}, True),
    ({"tools": [{"type": "function", "parameters": {"properties": {"file_id": {"type": "string"}}}}]}, False),
    (content({"type": "image_url", "image_url": {"url": "https://x/y.png"}}), True),
    (content({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}), False),
    (content({"type": "file", "file": {"file_id": "file-1"}}), True),
    (content({"type": "document", "source": {"type": "file", "file_id": "file_1"}}), True),
    (content({"type": "image", "source": {"type": "url", "url": "https://x"}}), True),
    (content({"type": "text", "text": 'what is "file_id": "file-1" and "url": "https://x"?'}), False),
    ({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]}, True),
    (content({"type": "text", "text": "hello"}), False),
]


@pytest.mark.parametrize(("body", "names"), NAMES, ids=lambda one: str(one)[:60])
def test_what_a_request_names(body: dict[str, Any], names: bool) -> None:
    for raw in (msgspec.json.encode(body), msgspec.json.format(msgspec.json.encode(body), indent=2)):
        assert names_something(read_members(raw)) is names
        # The same, with its letters escaped.
        spelt = raw.replace(b"file_id", b"\\u0066ile_id").replace(b"url", b"\\u0075rl")
        assert names_something(read_members(spelt)) is names


@pytest.mark.parametrize("raw", [b"", b"[]", b'"x"', b"null", b'{"error":7}', b'{"error":{"message":7}}', b"[" * 9999])
def test_any_body_is_a_refusal(raw: bytes) -> None:
    found = read_refusal(404, raw)
    assert found == Refusal(404)
    assert rule_for(found, "m", names=True).ends == "next"
