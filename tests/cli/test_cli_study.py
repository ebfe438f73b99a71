"""`turnout study`, with the demonstration model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnout.cli import main

PNG = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("TURNOUT_DB", "turnout.db")
    (tmp_path / "page.png").write_bytes(PNG)
    (tmp_path / "page.gif").write_bytes(b"GIF89a")


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["study", *arguments]) == code
    said = capsys.readouterr()
    return said.out if code == 0 else said.err


def test_ask_look_end_remember_forget(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(run(capsys, "ask", "Define osmosis", "--image", "page.gif", "--json"))
    assert (answer["route"], answer["saving"]["left_out"]) == ("standalone_definition", {"image": 1700})
    assert "page_grounded_definition" in run(capsys, "ask", "look at the page", "--image", "page.png")
    assert "general_contextual" in run(capsys, "ask", "--look", "--image", "page.png")
    assert json.loads(run(capsys, "savings", "--json"))["regretted"] == 2
    assert "3 answers" in run(capsys, "savings")
    assert "Define osmosis" in run(capsys, "end")
    (session,) = json.loads(run(capsys, "memory", "list", "--json"))
    assert session["id"][-8:] in run(capsys, "memory")
    assert run(capsys, "memory", "forget", session["id"]) == "1 session forgotten\n"
    assert "Nothing is remembered" in run(capsys, "memory", "list")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ask", "Summarize this page", "--image", "page.gif"), "neither JPEG nor PNG nor WebP"),
        (("ask", "Summarize this page", "--image", "gone.png"), "there is no such file"),
        (("ask", "Define osmosis", "--notes", "gone"), "there is no such folder"),
        (("ask", "look at the page"), "ask one first"),
        (("end", "nothing"), "there is no open session 'nothing'"),
        (("memory", "forget", "nothing"), "no session 'nothing' is remembered"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in run(capsys, *arguments, code=2)


def test_no_log_remembers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "ask", "Define osmosis", "--no-log")
    assert "Nothing is remembered" in run(capsys, "memory", "list")
