"""`turnout diff` of recorded decisions: the same profile decides the same again; another one is compared."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout
from toml_router import LOCAL
from turnout.core.query import Query
from turnout.store import open_store

Run = Callable[..., Any]
TEXTS = ["hello", "Prove the theorem step by step", "Write a poem about the sea", "", "zxcv\x1b[31m"]


@pytest.fixture(autouse=True)
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": n, "text": text}) for n, text in enumerate(TEXTS)]
    Path("q.jsonl").write_text("\n".join([*rows, "nonsense", ""]))
    assert run("batch", "q.jsonl", "-p", LOCAL, "--with-text", "-o", "d.jsonl").code == 1


def changed(**fields: Any) -> None:
    """Record something else for the first row."""
    first, *rest = Path("d.jsonl").read_text().splitlines()
    row = json.loads(first)
    row["decision"] |= fields
    Path("d.jsonl").write_text("\n".join([json.dumps(row), *rest, ""]))


def test_batch_writes_the_text_only_when_told(run: Run) -> None:
    kept = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
    assert [row.get("text") for row in kept] == [*TEXTS, None]
    plain = run("batch", "q.jsonl", "-p", LOCAL).out
    assert all("text" not in json.loads(line) for line in plain.splitlines())


def test_the_same_profile(run: Run) -> None:
    ran = run("diff", "d.jsonl", "-p", LOCAL)
    assert ran.code == 0, ran
    assert "5 decisions of this profile, all the same again" in ran.out
    assert "1 row had no decision to compare with" in ran.out
    assert "another" not in ran.out


@pytest.mark.parametrize(
    ("field", "value"),
    [("routes", ["COMPLEX"]), ("outcome", "Sh"), ("confidence", 0.123), ("by", "rules")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_difference_is_an_error(field: str, value: object, run: Run) -> None:
    changed(**{field: value})
    ran = run("diff", "d.jsonl", "-p", LOCAL)
    assert ran.code == 1
    assert "1 of 5 decisions of this profile differ, which none may" in ran.out
    assert "row 1  0  “hello”" in ran.out
    found = json.loads(run("diff", "d.jsonl", "-p", LOCAL, "--json").out)
    assert (found["replayed"], found["differing"], found["rows"], found["changed"]) == (5, 1, 6, 0)
    assert found["differences"][0]["text"] == "hello"


def test_ids_times_and_reasons_may_differ(run: Run) -> None:
    changed(id="x", elapsed_us=1e9, reasons=[], trace=[])
    assert run("diff", "d.jsonl", "-p", LOCAL).code == 0


def test_another_profile_is_compared(run: Run) -> None:
    ran = run("diff", "d.jsonl", "-p", "tiers-seed")
    assert ran.code == 0
    assert f"decided by another profile: {turnout.load_profile(LOCAL, config='').hash}" in ran.out
    assert "1 of 5 questions get another route now, 20.0%" in ran.out
    assert "MEDIUM → SIMPLE" in ran.out
    assert "no_signal: nothing in the" in ran.out
    assert "\x1b" not in ran.out
    found = json.loads(run("diff", "d.jsonl", "-p", "tiers-seed", "--json").out)
    assert (found["replayed"], found["changed"], found["skipped"]) == (0, 1, 1)
    assert list(found["hashes"].values()) == [5]


def test_decisions_of_both(run: Run) -> None:
    more = run("batch", "q.jsonl", "-p", "tiers-seed", "--with-text").out
    ran = run("diff", "-", "-p", LOCAL, stdin=Path("d.jsonl").read_bytes() + more.encode())
    assert ran.code == 0
    assert "5 decisions of this profile, all the same again" in ran.out
    assert "1 of 5 questions get another route now" in ran.out


def test_parts_are_compared_too(run: Run) -> None:
    Path("s.jsonl").write_text(json.dumps({"text": "what is the weather in Paris and who won the game"}) + "\n")
    rows = run("batch", "s.jsonl", "-p", "sources", "--with-text").out
    assert json.loads(rows)["decision"]["parts"]
    assert run("diff", "-", "-p", "sources", stdin=rows.encode()).code == 0


def test_without_text_it_says_how(run: Run) -> None:
    rows = run("batch", "q.jsonl", "-p", LOCAL).out
    ran = run("diff", "-", "-p", LOCAL, stdin=rows.encode())
    assert ran.code == 2
    assert "row 1 has no text to decide again: make the file with turnout batch --with-text" in ran.err


def test_rows_that_are_no_decisions(run: Run) -> None:
    decision = json.loads(Path("d.jsonl").read_text().splitlines()[0])["decision"]
    rows = [
        "[]",
        json.dumps({"text": "a question"}),
        json.dumps({"text": "x", "decision": {}}),
        json.dumps({"text": "x", "decision": {**decision, "outcome": "??"}}),
        json.dumps({"text": "x", "decision": {**decision, "routes": []}}),
        json.dumps({"text": 1, "decision": decision}),
    ]
    ran = run("diff", "-", "-p", LOCAL, stdin="\n".join(rows).encode())
    assert ran.code == 1
    assert "6 of 6 rows could not be read, such as" in ran.out
    assert "row 2: neither a decision nor an error" in ran.out
    assert "row 3: its decision cannot be read" in ran.out


def test_an_empty_file(run: Run) -> None:
    ran = run("diff", "-", stdin=b"")
    assert ran.code == 0
    assert "no decisions to compare with" in ran.out


def test_refused(run: Run) -> None:
    assert "none.jsonl: No such file" in run("diff", "none.jsonl").err
    assert "did you mean 'tiers'?" in run("diff", "d.jsonl", "-p", "teirs").err
    assert "at least 0 is needed" in run("diff", "d.jsonl", "--limit", "-2").err


# --- from the log


def log(*texts: str, profile: str = LOCAL, **query: Any) -> None:
    with open_store() as store:
        for text in texts:
            store.record(turnout.load(profile, config="").route_sync(Query(text, **query)))


def test_the_log_is_decided_again(run: Run) -> None:
    log(*TEXTS)
    log("Prove it", ceiling="SIMPLE")
    log("hello", profile="assist")  # another profile's decisions are no business of this one
    ran = run("diff", "--from-log", "-p", LOCAL)
    assert (ran.code, ran.err) == (0, "")
    assert "6 decisions of this profile, all the same again" in ran.out
    found = json.loads(run("diff", "--from-log", "-p", LOCAL, "--json").out)
    assert (found["replayed"], found["differing"], found["skipped"], found["rows"]) == (6, 0, 0, 6)


def test_a_logged_decision_that_comes_out_differently(run: Run, tmp_path: Path) -> None:
    log("hello")
    with sqlite3.connect(tmp_path / "log" / "turnout.db") as db:
        db.execute("update decisions set body = replace(body, '\"SIMPLE\"', '\"COMPLEX\"')")
    ran = run("diff", "--from-log", "-p", LOCAL)
    assert ran.code == 1
    assert "1 of 1 decision of this profile differ" in ran.out


def test_two_profiles_on_logged_questions(run: Run) -> None:
    log(*TEXTS)
    ran = run("diff", LOCAL, "tiers-seed", "--from-log", "--since", "1h")
    assert ran.code == 0
    assert "1 of 5 questions get another route, 20.0%" in ran.out


def test_what_cannot_be_decided_again_is_counted(run: Run, tmp_path: Path) -> None:
    log("hello")
    with open_store(text="hash") as store:
        store.record(turnout.load(LOCAL, config="").route_sync("hello"))
    log("Prove the theorem step by step")
    with sqlite3.connect(tmp_path / "log" / "turnout.db") as db:
        db.execute("update decisions set body = replace(body, 'signals.v1', 'llm.v1') where question like 'Prove%'")
    ran = run("diff", "--from-log", "-p", LOCAL)
    assert ran.code == 0, ran
    assert "1 row had no text to decide again" in ran.out
    assert "1 row took a model, which is not asked again" in ran.out


def test_an_empty_log(run: Run) -> None:
    assert "no decision log" in run("diff", "--from-log").err
    log("hello", profile="assist")
    ran = run("diff", "--from-log", "-p", LOCAL)
    assert (ran.code, ran.out) == (0, "none of 1 decision matches: leave out a filter\n")
