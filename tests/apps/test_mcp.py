"""Turnout as tools of a model: the official client against `turnout mcp`, and what it is told of mistakes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="needs the extra: pip install 'turnout[mcp]'")

from apps.sources.asked import SourcesDouble, scripted  # noqa: E402
from secured_server import clean_environment  # noqa: E402
from turnout.apps.caller import Budget, Caller  # noqa: E402
from turnout.apps.decide.app import DecideApp  # noqa: E402
from turnout.apps.mcp import make_server  # noqa: E402
from turnout.apps.sources import app as app_module  # noqa: E402
from turnout.apps.sources.app import SourcesApp  # noqa: E402
from turnout.runtime.runtime import Runtime  # noqa: E402

CALLER = Caller("", "", frozenset(("ask", "route")), Budget())


def called(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """What the official client gets from a server in the same process."""

    async def ask() -> list[Any]:
        runtime = Runtime(config="")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                app_module, "open_sources", lambda config: SourcesDouble(scripted(forecast="Sunny.", ha="Locked."))
            )
            app = SourcesApp(runtime)
        async with mcp.Client(make_server([*DecideApp(runtime).tools, *app.tools], CALLER)) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == ["route", "ask", "search"]
            assert all(tool.input_schema["type"] == "object" for tool in listed)
            found = [await client.call_tool(name, given) for name, given in calls]
        await runtime.close()
        return found

    return asyncio.run(ask())


def test_tools_answer() -> None:
    asked, searched, routed = called(
        ("ask", {"question": "check the weather and also are the lights on"}),
        ("search", {"query": "weather", "source": "ha"}),
        ("route", {"text": "weather", "profile": "sources"}),
    )
    assert asked.content[0].text == "check the weather\nSunny.\n\nare the lights on\nLocked."
    assert json.loads(searched.content[0].text)["source_used"] == "ha"
    assert json.loads(routed.content[0].text)["route"] == "forecast"


def test_route_heeds_everything_that_its_schema_offers() -> None:
    turns = [{"role": "user", "content": "x"}]
    deduced, capped, wrong = called(
        ("route", {"text": "prove that 2 is prime", "profile": "tiers", "declared": "REASONING"}),
        ("route", {"text": "prove that 2 is prime", "profile": "tiers", "declared": "REASONING", "ceiling": "MEDIUM"}),
        ("route", {"text": "and now?", "profile": "tiers", "turns": turns}),
    )
    assert json.loads(deduced.content[0].text)["route"] == "REASONING"
    assert json.loads(capped.content[0].text)["route"] == "MEDIUM"
    assert wrong.is_error
    assert "content" in wrong.content[0].text


def test_mistakes_are_said_where_the_model_reads_them() -> None:
    wrong = called(
        ("search", {"query": "x", "source": "hal"}),
        ("search", {"query": "x", "base_url": "http://example.org"}),
        ("route", {"text": "x", "profile": "nope"}),
        ("ask", {"question": " "}),
        ("spell", {}),
    )
    assert all(one.is_error for one in wrong)
    said = ("did you mean 'ha'", "base_url", "nope", "blank", "no tool 'spell'")
    assert all(words in one.content[0].text for words, one in zip(said, wrong, strict=True))


def test_the_command_over_its_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean_environment(monkeypatch, tmp_path)
    import os

    async def ask() -> Any:
        command = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "turnout.cli", "mcp"], env=dict(os.environ)
        )
        async with mcp.Client(command) as client:
            return await client.call_tool("ask", {"question": "weather"})

    assert "forecast is not configured" in asyncio.run(ask()).content[0].text
