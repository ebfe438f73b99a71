"""`turnout ask`: the plan before anything is asked, the answer, who gave it, and a session that is understood."""

import asyncio
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from apps.sources.asked import SourcesDouble, scripted
from cli.conftest import Run
from turnout.apps.event import FellBack, PartStarted, SourceAnswered, SourceFailed, SourceSlow
from turnout.apps.sources import app as app_module
from turnout.apps.sources.source import Cause, Empty, Failure, Health
from turnout.cli.draw.ask import Progress
from turnout.cli.draw.screen import PLAIN
from turnout.cli.draw.sources import source_table
from turnout.testing.scripted_source import ScriptedSource


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> dict[str, ScriptedSource]:
    found = scripted(forecast="Sunny.", kiwix=Empty(), web="W.", ha="Locked.")
    monkeypatch.setattr(app_module, "open_sources", lambda config: SourcesDouble(found))
    return found


def test_an_answer_and_who_gave_it(run: Run, sources: dict[str, ScriptedSource]) -> None:
    ran = run("ask", "who was Ada Lovelace")
    assert (ran.code, ran.err) == (0, "")
    first, *_, last = ran.out.strip().splitlines()
    assert first == "W."
    assert "kiwix  empty" in last
    assert "web  0.0 s" in last
    assert "cached" not in last
    assert "forecast  cached" in [run("ask", "weather"), run("ask", "weather")][1].out


def test_it_is_logged_once(run: Run, sources: dict[str, ScriptedSource]) -> None:
    assert run("ask", "check the weather and also are the lights on").code == 0
    assert len(run("log", "--json").out.splitlines()) == 1
    assert run("ask", "weather", "--no-log").code == 0
    assert len(run("log", "--json").out.splitlines()) == 1


def test_nobody_is_asked_for_a_plan(run: Run, sources: dict[str, ScriptedSource]) -> None:
    ran = run("ask", "--plan", "if the garage door is open, close it and check the news")
    assert ran.code == 0
    for words in (
        "condition",
        "the garage door is open",
        "ha",
        "remainder",
        "news",
        "not configured",
        "else web",
        "then",
    ):
        assert words in ran.out
    assert not any(source.calls for source in sources.values())
    plan = json.loads(run("ask", "--plan", "--json", "weather").out)
    assert plan["parts"][0]["sources"] == [{"name": "forecast"}]
    assert "decision" not in str(plan)  # there is none in the log


def test_a_source_by_name_and_several(run: Run, sources: dict[str, ScriptedSource]) -> None:
    assert json.loads(run("ask", "weather", "--source", "ha", "--json").out)["source_used"] == "ha"
    assert json.loads(run("ask", "weather", "--fuse", "ha", "web", "--json").out)["source_used"] == "fusion"
    ran = run("ask", "weather", "--source", "hal")
    assert (ran.code, "did you mean 'ha'" in ran.err) == (2, True)


WRONG = {
    "a source and others to fuse": (
        ("--source", "kiwix", "--fuse", "ha"),
        "--source kiwix and --fuse exclude",
    ),
    "too many": (("--fuse", "ha", "web", "kiwix", "forecast", "news"), "--fuse names 5 sources: 4 are asked together"),
    "a session in no folder": (("--session", "nowhere/chat.jsonl"), "there is no folder nowhere: make it first"),
    "a session that is a folder": (("--session", "."), "this is a folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_nobody_is_asked_what_is_wrong_from_the_start(run: Run, sources: dict[str, ScriptedSource], name: str) -> None:
    options, said = WRONG[name]
    ran = run("ask", "weather", *options)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not any(source.calls for source in sources.values())


def test_why_a_source_failed_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Failure(Cause.UNREACHABLE, "forecast: nothing listens there: is it running?")
    monkeypatch.setattr(app_module, "open_sources", lambda config: SourcesDouble(scripted(forecast=failed)))
    ran = run("ask", "weather")
    assert (ran.code, ran.out.strip().splitlines()[-1]) == (1, failed.said)


def test_nobody_answered(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "open_sources", lambda config: SourcesDouble({}))
    ran = run("ask", "weather")
    assert (ran.code, "forecast is not configured" in ran.out) == (1, True)


def test_a_session_is_understood_and_grows(run: Run, sources: dict[str, ScriptedSource], tmp_path: Path) -> None:
    file = str(tmp_path / "chat.jsonl")
    run("ask", "Will it rain in Paris?", "--session", file)
    told = json.loads(run("ask", "and tomorrow?", "--session", file, "--json").out)
    assert told["standalone"] == "Will it rain in Paris tomorrow?"
    turns = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    logged = [json.loads(line) for line in run("log", "--json").out.splitlines()]
    assert {row["session"] for row in logged} == {file}


def test_text_from_a_source_cannot_steer_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "open_sources", lambda config: SourcesDouble(scripted(forecast="a\x1b[2Jb\nc")))
    ran = run("ask", "weather")
    assert "\x1b" not in ran.out
    assert ran.out.startswith("a␛[2Jb\nc\n")


def test_progress_has_a_line_for_each_source() -> None:
    async def lines() -> str:
        progress = Progress(PLAIN)
        progress.note(PartStarted(0, "q", "part", ("kiwix", "ha")))
        progress.note(PartStarted(1, "r", "part", ("forecast",)))
        progress.note(SourceFailed(0, "kiwix", 100.0, "empty", ""))
        progress.note(FellBack(0, "kiwix", "web"))
        progress.note(SourceAnswered(0, "ha", 1.0, True))
        progress.note(SourceSlow(1, "forecast", 15_000.0))
        out = Console(file=io.StringIO(), width=80)
        out.print(progress)
        return out.file.getvalue()  # type: ignore[attr-defined, no-any-return]

    found = [line.rstrip() for line in asyncio.run(lines()).splitlines()]
    assert found == [
        "1  x kiwix  empty  0.1 s",
        "1  ok ha  cached",
        "1  . web  0.0 s",
        "2  x forecast  slow  15.0 s",
    ]


def test_sources_in_a_table() -> None:
    sources = scripted(ha="x", web="x")
    health = {
        "ha": Health("ok", "", 12.0),
        "web": Health("error", "no answer within 5 s"),
        "news": Health("not_configured", "add it"),
    }
    out = Console(file=io.StringIO(), width=80)
    out.print(source_table(sources, health, PLAIN))
    said = [" ".join(line.split()) for line in out.file.getvalue().splitlines()[2:]]  # type: ignore[attr-defined]
    assert said == ["ha ok ok 12 what ha knows", "web x error no answer within 5 s", "news - not configured add it"]
