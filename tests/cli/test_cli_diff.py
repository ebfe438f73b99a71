"""`turnout diff`: every question is counted once, under the routes both profiles really give it."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout
from turnout.runtime import rows

Run = Callable[..., Any]

OLD = """\
name = "old"
routes = ["YES", "NO", "MAYBE"]
fallback = { route = "NO" }

[[layers]]
kind = "rules.v1"
[[layers.rules]]
id = "greeting"
route = "YES"
when = { any = ["hello", "hi"] }
text = "somebody greets"

[[layers.rules]]
id = "doubt"
route = "MAYBE"
when = { any = ["perhaps"] }

[policy.YES]
[policy.NO]
max_sentences = 2
[policy.MAYBE]
"""
NEW = (
    OLD.replace('"old"', '"new"')
    .replace('"hello", "hi"', '"hello", "bye"')
    .replace("max_sentences = 2", "image = true")
)
QUESTIONS = ["hello", "hi there", "bye", "perhaps", "zxcv", "hi\x1b[31m again"]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.toml").write_text(OLD)
    Path("new.toml").write_text(NEW)
    Path("q.jsonl").write_text(
        "".join(json.dumps({"id": f"q{n}", "text": text}) + "\n" for n, text in enumerate(QUESTIONS)) + "nonsense\n"
    )


def test_what_changes(run: Run) -> None:
    ran = run("diff", "old.toml", "new.toml", "q.jsonl")
    assert ran.code == 1  # for the row that is nonsense
    assert ran.err == ""
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[0].startswith("old ")
    assert "→ new " in lines[0]
    assert lines[1] == "3 of 6 questions get another route, 50.0%"
    assert "routes YES → NO 2 33.3% ██████▌" in lines
    assert "NO → YES 1 16.7% ███▌" in lines
    assert "outcomes R- → F- 2 33.3% a hard rule → the fallback" in lines
    assert "row 2 q1 “hi there”" in lines
    assert "old YES R- 1.00 rules somebody greets" in lines
    assert "new NO F- 0.50 fallback no layer had a verdict" in lines
    assert "row 6 q5 “hi␛[31m again”" in lines
    assert "1 of 7 rows could not be read, such as" in lines
    assert "policy NO max_sentences 2 → nothing; image nothing → yes" in lines
    assert "\x1b" not in ran.out


def test_json(run: Run) -> None:
    found = json.loads(run("diff", "old.toml", "new.toml", "q.jsonl", "--json", "--limit", "2").out)
    assert found["old"] == {"profile": "old", "profile_hash": turnout.load_profile("old.toml").hash}
    assert (found["rows"], found["errors"], found["changed"], found["share"]) == (7, 1, 3, 0.5)
    assert found["routes"][0] == {"old": "YES", "new": "NO", "count": 2}
    assert sum(entry["count"] for entry in found["routes"]) == 6
    assert sum(entry["count"] for entry in found["outcomes"]) == 6
    assert found["policies"] == {"NO": {"max_sentences": [2, None], "image": [None, True]}}
    assert [(change["row"], change["id"], change["text"]) for change in found["changes"]] == [
        (2, "q1", "hi there"),
        (3, "q2", "bye"),
    ]
    change = found["changes"][0]
    assert (change["old"]["route"], change["new"]["route"]) == ("YES", "NO")
    assert change["old"]["reasons"] == ["somebody greets"]


def test_nothing_changes(run: Run) -> None:
    ran = run("diff", "old.toml", "old.toml", "q.jsonl")
    assert "0 of 6 questions get another route, 0.0%" in ran.out
    assert "routes" not in ran.out
    assert run("diff", "old.toml", "old.toml", "-", stdin=b"").out.splitlines()[1].startswith("0 of 0 questions")


def test_rows_that_cannot_be_read_are_an_error(run: Run) -> None:
    Path("binary").write_bytes(b"\x7fELF\x00\xff\n\xfe")
    ran = run("diff", "old.toml", "new.toml", "binary")
    assert ran.code == 1
    assert "2 of 2 rows could not be read, such as" in ran.out
    assert "0 of 0" not in ran.out
    ran = run("diff", "old.toml", "new.toml", "-", "--field", "nope", stdin=b'{"text":"hi"}\n')
    assert ran.code == 1
    assert "1 of 1 row could not be read, such as" in ran.out
    ran = run("diff", "old.toml", "new.toml", "-", "--json", stdin=b"{}\n" + b'{"text":"hi"}\n')
    assert (ran.code, json.loads(ran.out)["errors"]) == (1, 1)
    assert run("diff", "old.toml", "new.toml", "-", stdin=b'{"text":"hi"}\n').code == 0


def test_limit_and_field_and_stdin(run: Run) -> None:
    ran = run("diff", "old.toml", "new.toml", "-", "--field", "q", "--limit", "1", stdin=b'{"q":"hi"}\n' * 5)
    assert "row 1  “hi”" in ran.out
    assert "row 2" not in ran.out
    assert "and 4 more (--limit lists them)" in ran.out


def test_many_processes_count_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("many.jsonl").write_text("".join(json.dumps({"text": QUESTIONS[n % 5]}) + "\n" for n in range(200)))
    alone = run("diff", "old.toml", "new.toml", "many.jsonl", "--workers", "1", "--json").out
    monkeypatch.setattr(rows, "CHUNK_ROWS", 40)
    assert run("diff", "old.toml", "new.toml", "many.jsonl", "--workers", "2", "--json").out == alone
    assert len(json.loads(alone)["changes"]) == 20


def test_counts_agree_with_the_routers(run: Run) -> None:
    file = Path(turnout.config.load.shipped_file("tiers")).parent / "cases" / "tiers.jsonl"
    texts = [json.loads(line).get("text", "") for line in file.read_text().splitlines()]
    Path("tiers.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    found = json.loads(run("diff", "tiers", "tiers-seed", "tiers.jsonl", "--json", "--workers", "1").out)
    one, other = turnout.load("tiers", config=""), turnout.load("tiers-seed", config="")
    expected = Counter((one.route_sync(text).route, other.route_sync(text).route) for text in texts)
    assert {(entry["old"], entry["new"]): entry["count"] for entry in found["routes"]} == expected


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("old.toml", "none.toml", "q.jsonl"), "none.toml: cannot be read"),
        (("old.toml", "teirs", "q.jsonl"), "did you mean 'tiers'?"),
        (("old.toml", "new.toml", "none.jsonl"), "none.jsonl: No such file"),
        (("old.toml", "new.toml"), "2 arguments: write OLD NEW IN to compare two profiles, or IN alone"),
        ((), "nothing to compare: name what turnout batch --with-text has written, or add --from-log"),
        (("old.toml", "--from-log"), "1 argument: write OLD NEW --from-log to compare two profiles"),
        (("old.toml", "new.toml", "q.jsonl", "--from-log"), "3 arguments"),
        (("old.toml", "new.toml", "q.jsonl", "--limit", "-1"), "at least 0 is needed"),
        (("old.toml", "new.toml", "q.jsonl", "--workers", "0"), "at least 1 is needed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refused(argv: tuple[str, ...], said: str, run: Run) -> None:
    ran = run("diff", *argv)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""
