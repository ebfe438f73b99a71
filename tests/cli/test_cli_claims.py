"""`turnout claims ask` and `feedback`: the mode, the answer and why, in a session, as JSON; what is wrong is said."""

import json
from pathlib import Path

import pytest

from apps.claims.chatting import CARDS, GATE, bare_library
from cli.conftest import Run
from turnout.store import open_store


@pytest.fixture
def cards(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "log" / "turnout.db"))
    with bare_library(store) as library:
        library.keep_gate(GATE)
        library.put_all(CARDS)
    store.close()


QUESTION = "Did a global flood cover the entire Earth?"


def test_a_card_answers(cards: None, run: Run) -> None:
    ran = run("claims", "ask", QUESTION)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("exact_match ")
    assert "Verdict: False (High confidence)" in ran.out
    assert "No global flood ever covered the Earth." in ran.out
    told = json.loads(run("claims", "ask", QUESTION, "--json").out)
    assert (told["mode"], told["response"]["id"]) == ("exact_match", "flood")
    assert told["reasoning"]


def test_a_session_is_remembered(cards: None, run: Run, tmp_path: Path) -> None:
    file = str(tmp_path / "my chat.jsonl")
    run("claims", "ask", QUESTION, "--session", file)
    run("claims", "ask", "Did Matthew copy Mark?", "--session", file)
    ran = run("claims", "ask", "Which is more likely?", "--session", file)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("contextual ")
    assert "not audited" in ran.out
    assert len(Path(file).read_text(encoding="utf-8").splitlines()) == 6


def test_a_new_claim_is_audited(run: Run) -> None:
    ran = run("claims", "ask", "Did the Council of Nicaea add books to the Bible?", "--no-audit")
    assert (ran.code, "A new claim" in ran.out) == (0, True), ran.err
    ran = run("claims", "ask", "Did the Council of Nicaea add books to the Bible?")
    assert ran.code == 0, ran.err
    assert "demonstration model" in ran.out


def test_what_is_meant_is_asked(run: Run) -> None:
    ran = run("claims", "ask", "Can you put that more simply?")
    assert (ran.code, "What do you mean?" in ran.out) == (0, True)


def test_feedback(cards: None, run: Run) -> None:
    ident = json.loads(run("claims", "ask", QUESTION, "--json").out)["decision_id"]
    assert "exact_match is right" in run("claims", "feedback", ident, "right").out
    ran = run("claims", "feedback", "last", "novel_claim", "--card", "mark", "--note", "too far", "--json")
    assert (json.loads(ran.out)["should_be"], json.loads(ran.out)["note"]) == ("novel_claim", "card mark too far")
    run("route", "hello")
    ran = run("claims", "feedback", "last", "right")
    assert (ran.code, "turnout feedback takes it" in ran.err) == (2, True)


def test_what_is_wrong_is_said(run: Run) -> None:
    assert "2,001 characters, at most 2,000" in run("claims", "ask", "x" * 2001).err
    assert run("claims", "ask", "  ").code == 2
    assert run("claims", "feedback", "last", "maybe").code == 2


def test_a_profile_alone_says_that_it_looks_at_no_cards(run: Run) -> None:
    assert "turnout claims ask 'Did the flood happen?'" in run("route", "Did the flood happen?", "-p", "claims").err
    assert run("route", "hello").err == ""


def test_a_session_that_cannot_be_kept_is_refused_before_anything_is_asked(run: Run) -> None:
    ran = run("claims", "ask", QUESTION, "--session", "/nope/chat.jsonl")
    assert (ran.code, ran.out, "there is no folder /nope" in ran.err) == (2, "", True)


def test_cards_are_hidden_and_deleted(cards: None, run: Run, tmp_path: Path) -> None:
    assert run("claims", "hide", "flood", "mark").out == "hidden: flood, mark\n"
    assert [line.split()[0] for line in run("claims", "list").out.splitlines()] == ["inspired"]
    assert len(run("claims", "list", "--hidden").out.splitlines()) == 3
    assert "turnout claims unhide flood" in run("claims", "show", "flood").out
    assert json.loads(run("claims", "ask", QUESTION, "--no-audit", "--json").out)["mode"] == "novel_claim"
    assert json.loads(run("claims", "unhide", "flood", "--json").out) == {"visible": ["flood"]}
    assert json.loads(run("claims", "ask", QUESTION, "--json").out)["mode"] == "exact_match"
    ran = run("claims", "delete", "flood", "flod")
    assert (ran.code, "did you mean 'flood'?" in ran.err) == (2, True)
    assert run("claims", "delete", "flood").code == 0
    assert run("claims", "show", "flood").code == 2
    file = tmp_path / "cards.jsonl"
    assert f"1 card written to {file}" in run("claims", "export", str(file)).err.replace("\n", "")
    assert json.loads(run("claims", "export").out)["id"] == "inspired"
    # What was hidden here is not shown again because it is imported again.
    run("claims", "hide", "inspired")
    assert run("claims", "import", str(file)).code == 0
    assert run("claims", "list").out == ""
    file.write_text("no card\n", encoding="utf-8")
    assert f"{file}: nothing was imported" in run("claims", "import", str(file)).err.replace("\n", "")


def test_the_log_shows_the_modes(cards: None, run: Run) -> None:
    for text in (QUESTION, QUESTION, "Can you put that more simply?"):
        run("claims", "ask", text)
    out = run("stats", "-p", "claims").out
    assert "exact_match" in out
    assert "67%" in out.replace(" ", "")
    found = json.loads(run("stats", "-p", "claims", "--json").out)
    assert found["routes"] == {"exact_match": 2, "contextual": 1}
    assert "cards.unclear" in run("show", "last", "--json").out


def test_the_library_is_looked_into(cards: None, run: Run) -> None:
    assert [line.split()[0] for line in run("claims", "list").out.splitlines()] == ["flood", "inspired", "mark"]
    assert [one["id"] for one in json.loads(run("claims", "list", "--type", "theological", "--json").out)] == [
        "inspired"
    ]
    assert "A global flood covered the entire Earth." in run("claims", "show", "flood").out
    assert json.loads(run("claims", "show", "mark", "--json").out)["verdict"] == "True"
    assert run("claims", "search", "a global flood").out.startswith("flood ")
    assert json.loads(run("claims", "search", "a global flood", "-n", "1", "--json").out)[0]["id"] == "flood"
    wrong = {
        ("show", "flod"): "did you mean 'flood'?",
        ("list", "--type", "historcal"): "did you mean 'historical'?",
        ("search", "x", "-n", "0"): "at least 1",
    }
    for words, said in wrong.items():
        ran = run("claims", *words)
        assert (ran.code, said in ran.err) == (2, True), ran.err
    ran = run("claims", "search", "quantum chromodynamics")
    assert (ran.code, "no card is near enough" in ran.out) == (1, True)
