"""`turnout export`: what is in the log is in the file, in either format, and who says so is kept apart."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet
import pytest

from full_store import COMPOUND
from old_rows import backdate, ms
from stored_decisions import ask, taught
from toml_router import unlearnt
from turnout import Query
from turnout.store import Outcome, Store, export, open_store

Run = Callable[..., Any]
COLUMNS = [
    *("id", "text", "label", "label_by", "human", "human_by", "teacher", "route", "confidence", "by", "outcome"),
    *("profile", "profile_hash", "session", "ended", "slot", "model", "cost_usd", "created_at"),
]


@pytest.fixture
def log() -> Iterator[Store]:
    """The decision log the commands of a test use, open beside them."""
    with open_store() as store:
        yield store


@pytest.fixture
def labelled(log: Store) -> dict[str, str]:
    """Decisions with every kind of label; the id of each."""
    made = {
        "plain": unlearnt("assist").route_sync(Query("zxqv brmpf?", session="s")),
        "taught": taught("second", "taught one"),
        "right": taught("second", "a human agrees"),
        "should": taught("second", "a human knows better"),
        "wrong": taught("second", "a human only knows that it is wrong"),
        "changed": taught("second", "a human changes her mind"),
    }
    for decision in made.values():
        log.record(decision)
    log.settle(made["plain"], Outcome(slot="main", model="m-1", cost_usd=0.25))
    records = log.records()
    records.judge(made["right"].id, "right", by="ada")
    records.judge(made["should"].id, "wrong", should_be="third", by="bob")
    records.judge(made["wrong"].id, "wrong", by="ada")
    records.judge(made["changed"].id, "wrong", should_be="third", by="ada")
    records.judge(made["changed"].id, "right", by="eve")
    return {name: decision.id for name, decision in made.items()}


def rows_of(ran: Any) -> list[dict[str, Any]]:
    assert ran.code == 0, ran
    return [json.loads(line) for line in ran.out.splitlines()]


class Label(NamedTuple):
    id: str
    label: str | None
    label_by: str
    human: str | None
    human_by: str | None
    teacher: str | None


LABELS = [
    Label("plain", None, "none", None, None, None),
    Label("taught", "second", "teacher", None, None, "second"),
    Label("right", "second", "human", "second", "ada", "second"),
    Label("should", "third", "human", "third", "bob", "second"),
    Label("wrong", None, "none", None, "ada", "second"),
    Label("changed", "second", "human", "second", "eve", "second"),
]


@pytest.mark.parametrize("case", LABELS, ids=lambda case: case.id)
def test_who_says_what(case: Label, labelled: dict[str, str], run: Run) -> None:
    found = {row["id"]: row for row in rows_of(run("export"))}
    assert len(found) == len(LABELS)
    row = found[labelled[case.id]]
    assert list(row) == COLUMNS
    assert {name: row[name] for name in case._fields[1:]} == {name: getattr(case, name) for name in case._fields[1:]}


def test_a_row_says_what_was_decided_and_what_came_of_it(labelled: dict[str, str], run: Run) -> None:
    row = next(row for row in rows_of(run("export")) if row["id"] == labelled["plain"])
    assert (row["text"], row["route"], row["by"], row["outcome"]) == ("zxqv brmpf?", "RETRIEVAL", "fallback", "F-")
    assert (row["profile"], row["session"], row["ended"], row["slot"]) == ("assist", "s", "answered", "main")
    assert (row["model"], row["cost_usd"], row["confidence"]) == ("m-1", 0.25, 0.5)
    assert abs((datetime.now(UTC) - datetime.fromisoformat(row["created_at"])).total_seconds()) < 60


@pytest.mark.parametrize("name", ["out.parquet", "out.PQ", "out.jsonl", "out.ndjson"])
def test_both_formats_have_the_same_rows(name: str, labelled: dict[str, str], run: Run, tmp_path: Path) -> None:
    file = tmp_path / name
    ran = run("export", str(file))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "6 rows, 3 labelled by a human, 1 by a teacher\n"
    if name.lower().endswith(("parquet", "pq")):
        table = pyarrow.parquet.read_table(file)
        assert table.column_names == COLUMNS
        assert str(table.schema.field("confidence").type) == "double"
        found = table.to_pylist()
    else:
        found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert found == rows_of(run("export"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", name]


def test_a_format_by_name(labelled: dict[str, str], run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    assert "what it is to be does not show from its ending: use .jsonl or .parquet" in run("export", str(file)).err
    assert run("export", str(file), "--format", "parquet").code == 0
    assert pyarrow.parquet.read_table(file).num_rows == 6
    assert run("export", str(file), "--format", "jsonl").code == 0
    assert len(file.read_text(encoding="utf-8").splitlines()) == 6


def test_parquet_goes_out_in_groups(run: Run, log: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are, one group is all that is held."""
    monkeypatch.setattr(export, "GROUP_ROWS", 10)
    for number in range(25):
        log.record(ask(f"question {number}"))
    log.flush()
    assert run("export", str(tmp_path / "a.parquet")).code == 0
    found = pyarrow.parquet.ParquetFile(tmp_path / "a.parquet")
    assert [found.metadata.row_group(number).num_rows for number in range(found.num_row_groups)] == [10, 10, 5]
    monkeypatch.setattr(export, "GROUP_CHARACTERS", 20)
    assert run("export", str(tmp_path / "b.parquet")).code == 0
    assert pyarrow.parquet.ParquetFile(tmp_path / "b.parquet").num_row_groups > 10


def test_parts_are_examples_of_their_own(run: Run, log: Store) -> None:
    whole = ask(COMPOUND, "sources")
    log.record(whole)
    log.flush()
    texts = {row["id"]: row["text"] for row in rows_of(run("export"))}
    assert texts == {one.id: one.query.text for one in (whole, *whole.parts)}


class Filter(NamedTuple):
    id: str
    argv: tuple[str, ...]
    found: list[str]


FILTERS = [
    Filter("all", (), ["old", "new", "study", "taught"]),
    Filter("profile", ("-p", "assist"), ["old", "new"]),
    Filter("since", ("--since", "2026-11-02"), ["new", "study", "taught"]),
    Filter("until", ("--until", "2026-11-02"), ["old"]),
    Filter("tenant", ("--tenant", "acme"), ["hers"]),
    Filter("labelled", ("--labelled",), ["taught"]),
    Filter("limit", ("--limit", "2"), ["old", "new"]),
    Filter("limit counts what is written", ("--limit", "2", "--labelled"), ["taught"]),
]


@pytest.mark.parametrize("case", FILTERS, ids=lambda case: case.id)
def test_filters(case: Filter, run: Run, log: Store) -> None:
    backdate(log, ask("old", "assist"), ms("2026-11-01T08:30"))
    backdate(log, ask("new", "assist"), ms("2026-11-03T08:30"))
    for decision in (ask("study", "study"), taught("second", "taught"), ask("hers", "assist", tenant="acme")):
        backdate(log, decision, ms("2026-11-04T08:30"), **({"teacher": "second"} if decision.by == "llm" else {}))
    assert [row["text"] for row in rows_of(run("export", *case.argv))] == case.found


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("off", "2 of 2 rows have no text"),
        ("hash", "2 of 2 rows have no text"),
        ("snippet", "2 of 2 rows have only the beginning of a text"),
    ],
)
def test_rows_without_text_are_kept_and_counted(level: str, said: str, run: Run) -> None:
    with open_store(text=level) as store:  # type: ignore[arg-type]
        for text in ("one", "two"):
            store.record(ask(text))
    ran = run("export")
    assert [row["text"] for row in rows_of(ran)] == (["one", "two"] if level == "snippet" else [None, None])
    assert said in ran.err
    assert 'text = "full" in [store] of turnout.toml keeps' in ran.err


def test_an_empty_result_is_a_file_without_rows(run: Run, log: Store, tmp_path: Path) -> None:
    log.record(ask("one"))
    log.flush()
    ran = run("export", str(tmp_path / "a.parquet"), "-p", "assist")
    assert ran.code == 0
    assert "none of 1 decision matches" in ran.err
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert (table.num_rows, table.column_names) == (0, COLUMNS)


class RefusedCase(NamedTuple):
    id: str
    argv: tuple[str, ...]
    said: str


@pytest.mark.parametrize(
    "case",
    [
        RefusedCase("limit", ("--limit", "0"), "--limit 0: at least 1 is needed"),
        RefusedCase("since", ("--since", "soon"), "--since 'soon' is not a time"),
        RefusedCase("format", ("--format", "csv"), "csv"),
        RefusedCase("folder", ("nowhere/a.jsonl",), "there is no folder"),
        RefusedCase("ending", ("a.csv",), "use .jsonl or .parquet, or --format"),
    ],
    ids=lambda case: case.id,
)
def test_what_cannot_be_done(case: RefusedCase, run: Run, log: Store) -> None:
    log.record(ask("one"))
    log.flush()
    ran = run("export", *case.argv)
    assert (ran.code, ran.out) == (2, "")
    assert case.said in ran.err


def test_without_a_log_nothing_is_made(run: Run, tmp_path: Path) -> None:
    ran = run("export", str(tmp_path / "a.jsonl"))
    assert ran.code == 2
    assert "no decision log here yet" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_there_is_a_sentence(
    run: Run, labelled: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = run("export", str(tmp_path / "a.parquet"))
    assert ran.code == 2
    assert ran.err.startswith("turnout: Parquet needs pyarrow: ")
    assert ran.err.endswith("pip install 'turnout[parquet]', or export .jsonl\n")
    assert not (tmp_path / "a.parquet").exists()
    assert run("export").code == 0


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_an_interrupted_export_leaves_what_was_there(
    name: str, run: Run, labelled: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"precious")
    seen: list[object] = []

    def interrupt(label: object) -> dict[str, Any]:
        seen.append(label)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return dict.fromkeys(COLUMNS, "x") | {"confidence": 0.5, "cost_usd": None}

    monkeypatch.setattr(export, "row_of", interrupt)
    assert run("export", str(tmp_path / name)).code == 130
    assert (tmp_path / name).read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "log"]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_through_a_pipe(form: str, labelled: dict[str, str], process: Callable[..., Any]) -> None:
    done = process("export", "--format", form)
    assert done.returncode == 0, done.stderr
    if form == "parquet":
        assert pyarrow.parquet.read_table(io.BytesIO(done.stdout)).num_rows == 6
    else:
        assert done.stdout.count(b"\n") == 6


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_reader_that_goes_away_is_no_disaster(form: str, log: Store) -> None:
    for number in range(3000):
        log.record(ask(f"question {number}"))
    log.flush()
    command = [sys.executable, "-W", "error", "-m", "turnout.cli", "export", "--format", form]
    ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
    assert ran.stdout is not None
    assert ran.stderr is not None
    ran.stdout.read(1)
    ran.stdout.close()
    said = ran.stderr.read()
    ran.stderr.close()
    assert ran.wait(60) == 141, said
    assert b"Traceback" not in said


def test_parquet_is_not_for_a_terminal(run: Run, labelled: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    ran = run("export", "--format", "parquet")
    assert (ran.code, ran.out) == (2, "")
    assert "Parquet is not for a terminal" in ran.err
