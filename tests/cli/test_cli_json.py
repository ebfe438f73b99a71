"""Whatever prints JSON, or exports: no question, name or path in it can steer the terminal that shows it."""

import ast
import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import turnout
from turnout.runtime.rows import read_row, text_of
from turnout.store import open_store

Run = Callable[..., Any]
CLI = Path(turnout.__file__).parent / "cli"
# A colour by C1, a line turned around, hidden text in tags, a line end no editor shows, a joiner, DEL.
STEER = "\x9b31m\u202egnp\u202c\U000e0041\U000e0042\u2028a\u200db\x7f\x85"
QUESTION = f"Define entropy {STEER}"
DOCUMENTS = str(Path(__file__).parents[2] / "docs" / "rubrics")


def clean(out: str) -> str:
    unsafe = [one for one in out if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Cn") and one != "\n"]
    assert not unsafe, [hex(ord(one)) for one in unsafe]
    return out


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


PROFILE = f"""\
name = "odd"
description = "{STEER.encode("unicode_escape").decode().replace(chr(92) + "x", chr(92) + "u00")}"
routes = ["A", "B"]
fallback = {{ route = "A" }}
[[layers]]
id = "rules"
kind = "rules.v1"
[[layers.rules]]
id = "one"
route = "B"
when = {{ any = ["entropy"] }}
text = "it asks for {STEER.encode("unicode_escape").decode().replace(chr(92) + "x", chr(92) + "u00")}"
[policy.A]
[policy.B]
"""


@pytest.fixture
def world(tmp_path: Path, run: Run) -> Path:
    """A profile, questions and a log, with such characters in all of them."""
    (tmp_path / "odd.toml").write_text(PROFILE, encoding="utf-8")
    rows = [{"text": f"{QUESTION} {n}", "id": f"{STEER}{n}", "label": "AB"[n % 2]} for n in range(4)]
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    with open_store():
        pass
    session = str(tmp_path / f"s{STEER}")
    assert run("route", QUESTION, "-p", str(tmp_path / "odd.toml"), "--session", session).code == 0
    decided = run("batch", str(tmp_path / "rows.jsonl"), "-p", str(tmp_path / "odd.toml"), "--with-text").out
    (tmp_path / "decided.jsonl").write_text(decided, encoding="utf-8")
    return tmp_path


# What is run with --json, and whether the characters are in what it says.
COMMANDS: dict[str, tuple[tuple[str, ...], bool]] = {
    "route:route": (("route", QUESTION, "-p", "{odd}", "--json"), True),
    "ask:ask": (("ask", QUESTION, "--json"), True),
    "sources:list_sources": (("sources", "list", "--json"), False),
    "sources:try_sources": (("sources", "test", "--json"), False),
    "claims:ask_claims": (("claims", "ask", f"Can you put that more simply? {STEER}", "--no-audit", "--json"), False),
    "claims:list_claims": (("claims", "list", "--json"), False),
    "claims:show_claim": (("claims", "show", "matthew-copied-mark", "--json"), False),
    "claims:search_claims": (("claims", "search", f"Did Matthew copy Mark? {STEER}", "--json"), False),
    "claims:claim_feedback": (("claims", "feedback", "last", "wrong", "--note", STEER, "--json"), True),
    "claims_library:import_cards": (("claims", "import", "--starter", "--json"), False),
    "claims_library:hide": (("claims", "hide", "matthew-copied-mark", "--json"), False),
    "claims_library:unhide": (("claims", "unhide", "matthew-copied-mark", "--json"), False),
    "claims_library:delete": (("claims", "delete", "matthew-copied-mark", "--json"), False),
    "claims_library:backfill_types": (("claims", "backfill-types", "--json"), False),
    "study:ask": (("study", "ask", QUESTION, "--json"), False),
    "study:list_memory": (("study", "memory", "list", "--json"), False),
    "study:savings": (("study", "savings", "--json"), False),
    "assist:ingest": (("assist", "ingest", DOCUMENTS, "--library", "here", "--json"), False),
    "assist:list_libraries": (("assist", "list", "--json"), False),
    "assist:ask": (("assist", "ask", QUESTION, "--json"), False),
    "explain:explain": (("explain", QUESTION, "-p", "{odd}", "--json"), True),
    "log:log": (("log", "--json"), True),
    "show:show": (("show", "last", "--json"), True),
    "stats:stats": (("stats", "--json"), False),
    "contract:report": (("contract", "report", "--json"), False),
    "diff:diff": (("diff", "{odd}", "study", "{rows}", "--json"), True),
    "diff:diff, recorded": (("diff", "{decided}", "-p", "study", "--json"), False),
    "feedback:feedback": (("feedback", "last", "wrong", "--note", STEER, "--json"), True),
    "profiles:list_profiles": (("profiles", "--json"), False),
    "profiles:show": (("profiles", "show", "{odd}", "--json"), True),
    "keys:create": (("keys", "create", f"name{STEER}", "--json"), True),
    "keys:list_keys": (("keys", "list", "--json"), True),
    "keys:update": (("keys", "update", "{key}", "--per-minute", "3", "--json"), True),
    "models:list_models": (("models", "list", "--json"), False),
    "db:info": (("db", "info", "--json"), False),
    "embed:list_embedders": (("embed", "list", "--json"), False),
    "evaluate:evaluate": (("evaluate", "{rows}", "-p", "{odd}", "--json"), False),
    "contract:flips": (("contract", "flips", "-p", "{odd}", "--from", "{rows}", "--json"), False),
    "student:rollback": (("student", "rollback", "-p", "assist", "--history", "--json"), False),
}
# These take a trained model or minutes; that they print by the one function is the other test's.
NOT_RUN = {
    *("calibrate:calibrate", "study:end", "student:drift", "student:shadow", "student:promote", "train:train"),
    *("embed:install_embedder", "embed:embed_text", "claims_library:calibrate", "claims_audit:audit"),
}


def printers() -> set[str]:
    """Every command that has --json."""
    found = set()
    for path in (CLI / "commands").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                told = [one.annotation for one in node.args.kwonlyargs]
                if any(isinstance(one, ast.Name) and one.id in ("JsonOption", "StudentOptions") for one in told):
                    found.add(f"{path.stem}:{node.name}")
    return found


def test_every_command_with_json_is_in_the_table() -> None:
    assert printers() == {name.partition(",")[0] for name in COMMANDS} | NOT_RUN


@pytest.mark.alike(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_json_steers_nothing(name: str, world: Path, run: Run) -> None:
    argv, carries = COMMANDS[name]
    key = ""
    if name in ("keys:list_keys", "keys:update"):
        key = json.loads(run(*COMMANDS["keys:create"][0]).out)["id"]
    if name == "claims:claim_feedback":
        assert run("route", QUESTION, "-p", "claims").code == 0
    places = {"{key}": key, "{odd}": str(world / "odd.toml"), "{rows}": str(world / "rows.jsonl")}
    places["{decided}"] = str(world / "decided.jsonl")
    ran = run(*(places.get(one, one) for one in argv))
    assert ran.out, ran
    values = [json.loads(line) for line in clean(ran.out).splitlines()]
    said = " ".join(text for value in values for text in texts(value))
    if carries:
        assert any(one in said for one in (STEER, STEER.replace("\x7f", "").replace("\x85", ""))), "the very same text"


def test_an_export_steers_nothing_and_reads_back(world: Path, run: Run, tmp_path: Path) -> None:
    ran = run("export")
    (row,) = [json.loads(line) for line in clean(ran.out).splitlines()]
    assert row["text"] == QUESTION
    assert row["session"] == str(world / f"s{STEER}")
    assert run("export", str(tmp_path / "out.jsonl")).code == 0
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == ran.out
    again = run("batch", str(tmp_path / "out.jsonl"), "-p", str(world / "odd.toml"), "--with-text")
    assert json.loads(again.out)["text"] == QUESTION, "what reads an export reads what was asked"
    (example,) = read_examples(str(tmp_path / "out.jsonl"))
    assert example == QUESTION


def read_examples(path: str) -> list[str]:
    """As everything that takes JSONL reads it."""
    return [text_of(read_row(line), "text") for line in Path(path).read_bytes().splitlines()]


def test_a_batch_steers_nothing_and_reads_back(world: Path, run: Run) -> None:
    ran = run("batch", str(world / "rows.jsonl"), "-p", str(world / "odd.toml"), "--with-text")
    rows = [json.loads(line) for line in clean(ran.out).splitlines()]
    assert [row["text"] for row in rows] == [f"{QUESTION} {n}" for n in range(4)]
    assert [row["id"] for row in rows] == [f"{STEER}{n}" for n in range(4)]
    again = run("batch", "-", "-p", str(world / "odd.toml"), "--with-text", stdin=ran.out.encode())
    assert [json.loads(line)["text"] for line in again.out.splitlines()] == [row["text"] for row in rows]


def test_a_table_that_steers_makes_a_profile_that_does_not(run: Run, tmp_path: Path) -> None:
    """Neither its texts, its labels nor the names of its columns reach a screen or a file as they are."""
    rows = [{f"q{STEER}": f"{word} {STEER} {number}", "label": word} for word in ("one", "two") for number in range(20)]
    rows += [{f"q{STEER}": f"three {number}", "label": f"three{STEER}"} for number in range(9)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = run("init", "mine", "--from", str(file), "--text", f"q{STEER}", "--out", str(tmp_path), "--embedder", "none")
    assert ran.code == 0, ran.err
    assert not {*"\x9b\u202e\u202c\u2028\x7f\x85"} & {*ran.out}
    assert "9 rows left out: the label is not a name" in ran.out
    clean((tmp_path / "mine.toml").read_text(encoding="utf-8"))


# --- by construction

# Functions whose JSON becomes a part of a text for people, which `visible` shows.
SHOWN = {"contract.py", "show.py"}
ESCAPES = ("write_json", "escape_json")


def bare_json(path: Path) -> Iterator[str]:
    """Calls that make JSON and hand it to nothing that escapes it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name not in ("msgspec.json.encode", "json.dumps", "msgspec.json.format") and not name.endswith(".json"):
            continue
        above: ast.AST | None = node
        while above is not None:
            if isinstance(above, ast.Call) and ast.unparse(above.func) in ESCAPES:
                break
            above = parents.get(above)
        if above is None:
            yield f"{path.name}:{node.lineno} {name}"


def test_whatever_makes_json_hands_it_to_what_escapes_it() -> None:
    found = {one for path in CLI.rglob("*.py") if path.name not in SHOWN for one in bare_json(path)}
    # `write_json` itself escapes what it makes. The parts of a batch's line are escaped when they are joined, a
    # report's form by the command that prints it, and rows to compare are read by our own processes.
    found = {one for one in found if not one.startswith("screen.py")}
    # What `init` writes without a table is the same for everybody, and the line to try is shown by `visible`.
    joined = {one for one in found if one.startswith(("rows.py", "train.py", "compare.py", "init.py"))}
    assert found == joined
    assert len(joined) <= 9
    for name in SHOWN:
        assert "visible" in (CLI / "commands" / name).read_text(encoding="utf-8")


def test_only_two_places_write_bytes_to_stdout() -> None:
    users = {path.name for path in CLI.rglob("*.py") if "stdout.buffer" in path.read_text(encoding="utf-8")}
    assert users == {"screen.py", "stream.py"}
