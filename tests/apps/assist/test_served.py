"""Over HTTP and MCP: JSON and events, mistakes, the tools that documentation clients know, the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apps.assist.conftest import CALLER, assisting, write_docs
from secured_server import RawResponse, call
from serving import RunningServer, serving
from turnout.cli import main

ASKED = "How often is a request retried?"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for version in ("1.0", "2.0"):
        assert (
            main(["assist", "ingest", str(write_docs(tmp_path, version)), "--library", "client", "--version", version])
            == 0
        )
    return tmp_path


@pytest.fixture
def served(home: Path) -> Iterator[RunningServer]:
    with serving(home, "") as found:
        yield found


def ask(served: RunningServer, **body: Any) -> RawResponse:
    return call(served.url, "POST", "/v1/assist/ask", {"session_id": "s", **body})


def test_a_question_and_its_answer(served: RunningServer) -> None:
    found = ask(served, query=ASKED, version="1.0").json
    assert (found["event"], found["query_type"], found["retrieval"]) == ("answer", "RETRIEVAL", True)
    (one,) = found["citations"][:1]
    assert (one["version"], one["file"], one["heading"]) == ("1.0", "client.md", ["Client", "Retries"])
    assert served.store.flush(10.0)
    assert served.store.records("").outcome(found["decision_id"]).retrieval is True
    assert [turn.role for turn in served.store.records("").turns("s")] == ["user", "assistant"]


def test_events(served: RunningServer) -> None:
    got = ask(served, query=ASKED, stream=True)
    assert got.headers["content-type"] == "text/event-stream"
    names = [line[7:] for line in got.body.decode().split("\n") if line.startswith("event: ")]
    assert names == ["decided", "retrieved", "token", "answer"]
    last = json.loads(got.body.decode().strip().split("data: ")[-1])
    assert last["decision_id"] == got.headers["x-turnout-decision"]


class Wrong(NamedTuple):
    id: str
    body: dict[str, Any]
    status: int
    said: str


WRONG = [
    Wrong("type", {"query": "x", "query_type": "FOO"}, 422, "FOO"),
    Wrong("blank", {"query": "  "}, 422, "blank"),
    Wrong("unknown field", {"query": "x", "colour": 1}, 422, "colour"),
    Wrong("no question", {}, 422, "query"),
    Wrong("library", {"query": ASKED, "library": "clent"}, 404, "did you mean 'client'"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_mistakes(served: RunningServer, case: Wrong) -> None:
    got = ask(served, **case.body)
    assert got.status == case.status
    assert case.said in got.json["error"]["message"]


def test_platform_data_may_be_json(served: RunningServer) -> None:
    found = ask(served, query="How much of my quota is left?", extra_context={"left": 12}, user_info={"id": 7}).json
    assert (found["query_type"], found["retrieval"]) == ("PLATFORM", False)


def test_libraries_are_listed(served: RunningServer) -> None:
    found = call(served.url, "GET", "/v1/assist/libraries").json["libraries"]
    assert [one["id"] for one in found] == ["/local/client/1.0", "/local/client/2.0"]


def test_tools(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="needs the extra: pip install 'turnout[mcp]'")
    from turnout.apps.mcp import make_server

    async def scenario() -> None:
        async with (
            assisting(tmp_path, models=False) as bot,
            mcp.Client(make_server(bot.app.tools, CALLER)) as client,
        ):
            listed = (await client.list_tools()).tools
            assert {tool.name: sorted(tool.input_schema["required"]) for tool in listed} == {
                "resolve-library-id": ["libraryName"],
                "query-docs": ["libraryId", "query"],
            }

            async def said(name: str, **given: str) -> str:
                return str((await client.call_tool(name, given)).content[0].text)

            resolved = await said("resolve-library-id", libraryName="Client", query=ASKED)
            assert resolved.index("/local/client/2.0") < resolved.index("/local/client/1.0")
            assert "five times" in await said("query-docs", libraryId="/local/client", query=ASKED)
            assert "three times" in await said("query-docs", libraryId="/local/client/1.0", query=ASKED)
            assert "9.9 is not among" in await said("query-docs", libraryId="/local/client/9.9", query=ASKED)
            assert "was not ingested" in await said("query-docs", libraryId="/local/nope", query=ASKED)
            assert "No library like 'x'" in await said("resolve-library-id", libraryName="x")

    asyncio.run(scenario())


def test_the_command_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["assist", "ask", ASKED, "--no-log", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["version"] for one in found["citations"]} == {"2.0"}
    assert main(["assist", "list", "--json"]) == 0
    assert [one["version"] for one in json.loads(capsys.readouterr().out)] == ["1.0", "2.0"]
    assert main(["assist", "ask", "How often does client 7.1 retry?", "--no-log"]) == 1
    assert "7.1 is not among the documents; there is 1.0, 2.0" in capsys.readouterr().out
    assert main(["assist", "forget", "client", "--version", "1.0"]) == 0
    assert main(["assist", "forget", "client", "--version", "1.0"]) == 2
    assert main(["assist", "ingest", str(home / "nope")]) == 2
    assert "there is no folder" in capsys.readouterr().err
