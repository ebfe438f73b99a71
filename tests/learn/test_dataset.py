"""Examples: whatever a row is, it is used, counted or reported, and who says so stays with it."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import old_rows
from stored_decisions import taught
from turnout.core.errors import BadExamples
from turnout.learn.dataset import (
    BELIEVED,
    Example,
    Examples,
    folded,
    gather,
    hash_examples,
    read_examples,
    read_log,
    row_key,
)
from turnout.learn.rows import SHOWN
from turnout.store import Store, open_store

ROUTES = ("BILLING", "TECHNICAL")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class ReadCase(NamedTuple):
    id: str
    name: str
    content: str | bytes
    rows: list[tuple[str, str, str]]
    """Text, label, by."""


TWO = [("I want a refund", "BILLING", "human"), ("It crashes", "TECHNICAL", "human")]
LINES = '{"text": "I want a refund", "label": "BILLING"}\n{"text": "It crashes", "label": "TECHNICAL"}\n'
GOOD = [
    ReadCase("jsonl", "a.jsonl", LINES, TWO),
    ReadCase(
        "byte order mark and CRLF",
        "a.jsonl",
        b"\xef\xbb\xbf" + LINES.replace("\n", "\r\n\r\n").encode().rstrip(),
        TWO,
    ),
    ReadCase("csv", "a.csv", "text,label\nI want a refund,BILLING\nIt crashes,TECHNICAL\n", TWO),
    ReadCase(
        "csv of a spreadsheet",
        "a.csv",
        b"\xef\xbb\xbflabel;text\r\nBILLING;I want a refund\r\nTECHNICAL;It crashes\r\n",
        TWO,
    ),
    ReadCase("tabs", "a.tsv", "id\ttext\tlabel\n7\tI want a refund\tBILLING\n8\tIt crashes\tTECHNICAL", TWO),
    ReadCase("pipes", "a.csv", "text | label\nI want a refund|BILLING\nIt crashes|TECHNICAL\n", TWO),
    ReadCase(
        "a question of two lines",
        "a.csv",
        'text,label\n"It crashes,\nalways",TECHNICAL\n',
        [("It crashes,\nalways", "TECHNICAL", "human")],
    ),
    ReadCase(
        "who says so",
        "a.csv",
        "text,label,label_by\nx,BILLING,teacher\ny,BILLING,outcome\nz,BILLING,seed\n",
        [("x", "BILLING", "teacher"), ("y", "BILLING", "outcome"), ("z", "BILLING", "seed")],
    ),
    ReadCase("a row for no route", "a.jsonl", '{"text": "sing", "label": "oos"}', [("sing", "oos", "human")]),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.id)
def test_files_are_read(case: ReadCase, tmp_path: Path) -> None:
    found = read_examples(write(tmp_path, case.name, case.content), routes=ROUTES)
    assert [(row.text, row.label, row.by) for row in found.rows] == case.rows
    assert found.remarks == ()


class Bad(NamedTuple):
    id: str
    name: str
    content: str | bytes
    line: str
    said: str


BAD = [
    Bad("not json", "a.jsonl", '{"text": "a", "label": "BILLING"}\n{"text": \n', ":2", "not JSON"),
    Bad("not an object", "a.jsonl", "[1, 2]", ":1", "not a JSON object but [1, 2]"),
    Bad("not utf-8", "a.jsonl", b'{"text": "caf\xe9", "label": "BILLING"}', ":1", "not JSON"),
    Bad("nested too deeply", "a.jsonl", "[" * 100_000, ":1", "not JSON"),
    Bad("text is a number", "a.jsonl", '{"text": 7, "label": "BILLING"}', ":1", "'text' must be text, found int 7"),
    Bad("label is a list", "a.jsonl", '{"text": "a", "label": ["BILLING"]}', ":1", "'label' must be text, found list"),
    Bad("no text", "a.jsonl", '{"txt": "a", "label": "BILLING"}', ":1", "no field 'text', did you mean 'txt'?"),
    Bad("no label", "a.jsonl", '{"text": "a", "intent": "BILLING"}', ":1", "no field 'label' (it has: text, intent)"),
    Bad("empty text", "a.jsonl", '{"text": " ", "label": "BILLING"}', ":1", "the text is empty"),
    Bad("empty label", "a.csv", "text,label\na,\n", ":2", "the label is empty"),
    Bad(
        "unknown label",
        "a.jsonl",
        '{"text": "a", "label": "BILING"}',
        ":1",
        "'BILING' is not a route, did you mean 'BILLING'?",
    ),
    Bad(
        "far from any label",
        "a.jsonl",
        '{"text": "a", "label": "weather"}',
        ":1",
        "is not a route (routes: BILLING, TECHNICAL; oos for none",
    ),
    Bad(
        "unknown speaker",
        "a.jsonl",
        '{"text": "a", "label": "BILLING", "label_by": "humans"}',
        ":1",
        "did you mean 'human'?",
    ),
    Bad("no time", "a.jsonl", '{"text": "a", "label": "BILLING", "created_at": "noon"}', ":1", "is not a time"),
    Bad("empty file", "a.jsonl", "", "", "no rows in it"),
    Bad("blank file", "a.jsonl", "\n\n", "", "no rows in it"),
    Bad("empty csv", "a.csv", "", "", "no rows in it"),
    Bad("csv without rows", "a.csv", "text,label\n", "", "no rows in it"),
    Bad("csv without a column", "a.csv", "text,intent\na,b\n", ":1", "no column 'label'"),
    Bad("csv with a cell too many", "a.csv", "text,label\na,b,BILLING\n", ":2", "3 cells in 2 columns"),
    Bad("csv without a cell", "a.csv", "label,text\nBILLING\n", ":2", "the text is empty"),
    Bad("csv not utf-8", "a.csv", b"text,label\ngood,BILLING\ncaf\xe9,BILLING\n", ":3", "save the file as UTF-8"),
    Bad(
        "line of a record after one of two lines", "a.csv", 'text,label\n"a\nb",BILLING\nc,X\n', ":4", "is not a route"
    ),
    Bad("not parquet", "a.parquet", b"hello", "", "not Parquet"),
    Bad("not there", "b/a.jsonl", b"", "", "cannot be read"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_bad_row_is_named_with_its_place(case: Bad, tmp_path: Path) -> None:
    path = tmp_path / case.name
    if path.parent == tmp_path:
        write(tmp_path, case.name, case.content)
    with pytest.raises(BadExamples) as raised:
        read_examples(path, routes=ROUTES)
    (problem,) = raised.value.problems
    assert problem.where == f"{path}{case.line}"
    assert case.said in problem.message


def test_every_bad_row_of_every_file_is_counted_and_some_are_shown(tmp_path: Path) -> None:
    rows = ['{"text": "good", "label": "BILLING"}', *['{"text": "bad", "label": "X"}'] * 30]
    first, second = (write(tmp_path, name, "\n".join(rows)) for name in ("1.jsonl", "2.jsonl"))
    with pytest.raises(BadExamples) as raised:
        read_examples([first, second], routes=ROUTES)
    assert len(raised.value.problems) == 60
    said = str(raised.value)
    assert said.count("\n") == SHOWN
    assert f"{first}:2" in said
    assert said.endswith("… and 40 more like these: 60 in all")


def test_a_line_too_long_to_take_in_is_one_bad_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.learn.rows.MAX_LINE_BYTES", 100)
    good = '{"text": "good", "label": "BILLING"}'
    path = write(tmp_path, "a.jsonl", f"{good}\n{{'text': '{'x' * 5000}\n{good}\n")
    with pytest.raises(BadExamples) as raised:
        read_examples(path)
    assert [problem.where for problem in raised.value.problems] == [f"{path}:2"]
    path = write(tmp_path, "a.csv", f"text,label\n{'x' * 5000},BILLING\ny,BILLING\n")
    with pytest.raises(BadExamples, match=r"a\.csv:2: the line is longer"):
        read_examples(path)


EXPORTED = {
    "id": "1",
    "text": "hello",
    "label": "BILLING",
    "label_by": "human",
    "human": "BILLING",
    "human_by": "ada",
    "teacher": "TECHNICAL",
    "route": "TECHNICAL",
    "confidence": 0.5,
    "by": "llm",
    "outcome": "L-",
    "profile": "mine",
    "profile_hash": "0" * 16,
    "session": "s1",
    "ended": None,
    "slot": None,
    "model": None,
    "cost_usd": None,
    "created_at": "2026-11-01T08:30:00.000Z",
}


def export_rows() -> list[dict[str, object]]:
    return [
        EXPORTED,
        EXPORTED | {"id": "2", "text": None},
        EXPORTED | {"id": "3", "label": None, "label_by": "none", "human": None, "teacher": None},
        EXPORTED | {"id": "4", "human": None, "human_by": None, "label_by": "teacher", "label": "TECHNICAL"},
        EXPORTED | {"id": "5", "profile": "another"},
    ]


def test_an_export_keeps_teacher_and_human_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, export_rows())))
    found = read_examples(path, routes=ROUTES, profile="mine")
    assert [(row.id, row.label, row.by, row.who, row.weight) for row in found.rows] == [
        ("1", "BILLING", "human", "ada", 1.0),
        ("4", "TECHNICAL", "teacher", "", 0.5),
    ]
    assert found.rows[0].session == "s1"
    assert found.rows[0].at == 1793521800000
    assert found.skipped == {"its text was not kept": 1, "it has no label": 1, "of another profile": 1}
    assert "1 of 5 rows skipped: its text was not kept" in found.remarks
    assert any("agree on 0 of 1" in said for said in found.remarks)
    assert found.by() == {"human": 1, "teacher": 1}
    assert found.counts() == {"BILLING": 1, "TECHNICAL": 1}


def test_parquet_is_read_as_jsonl_is(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(export_rows()), tmp_path / "a.parquet")
    lines = write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, export_rows())))
    one, other = (read_examples(path, routes=ROUTES, profile="mine") for path in (tmp_path / "a.parquet", lines))
    assert [row.where for row in one.rows] == [f"{tmp_path / 'a.parquet'} row {number}" for number in (1, 4)]
    assert hash_examples(one.rows) == hash_examples(other.rows)
    assert one.skipped == other.skipped


# --- the log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "log.db")) as store:
        yield store


def test_the_log_is_read_without_an_export(log: Store) -> None:
    made = [taught("second", "taught one", session="s1"), taught("second", "corrected"), taught("second", "wrong")]
    for decision in made:
        log.record(decision)
    records = log.records()
    records.judge(made[1].id, "wrong", should_be="third", by="bob")
    records.judge(made[2].id, "wrong", by="bob")
    found = read_log(records, profile=made[0].profile.name, routes=("second", "third"))
    assert [(row.text, row.label, row.by, row.who, row.session) for row in found.rows] == [
        ("taught one", "second", "teacher", "", "s1"),
        ("corrected", "third", "human", "bob", None),
    ]
    assert found.skipped == {"it has no label": 1}
    assert all(row.at > old_rows.ms("2020-01-01") for row in found.rows)
    old = read_log(records, profile=made[0].profile.name, routes=("third",))
    assert [row.label for row in old.rows] == ["third"]
    assert any("not a route of" in why for why in old.skipped)


def test_texts_that_were_not_kept_are_counted(tmp_path: Path) -> None:
    for level in ("hash", "snippet"):
        (tmp_path / "turnout.toml").write_text(f'[store]\ntext = "{level}"\n')
        with open_store(str(tmp_path / f"{level}.db"), config=str(tmp_path / "turnout.toml")) as store:
            made = [taught("second", text) for text in ("short and whole", "a longer one " * 20)]
            for decision in made:
                store.record(decision)
            found = read_log(store.records(), profile=made[0].profile.name)
        if level == "hash":
            assert found.skipped == {"its text was not kept": 2}
            assert any('text = "full"' in said for said in found.remarks)
        else:
            assert [row.text for row in found.rows] == ["short and whole"]
            assert found.skipped == {"only the beginning of the text was kept": 1}


# --- what a set of examples is

rows = st.lists(st.builds(Example, st.text(max_size=8), st.sampled_from("ab"), st.sampled_from(BELIEVED)), max_size=20)


@given(rows, st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order(found: list[Example], order: random.Random) -> None:
    mixed = order.sample(found, len(found))
    assert hash_examples(found) == hash_examples(mixed)


@given(rows)
def test_the_hash_tells_one_row_more(found: list[Example]) -> None:
    assert hash_examples([*found, Example("new", "a")]) != hash_examples(found)


def test_the_hash_tells_text_label_and_speaker_and_nothing_else() -> None:
    base = Example("Hello there", "a")
    same = [Example("  hello   THERE", "a"), Example("Hello there", "a", id="7", where="x:1", session="s")]
    other = [Example("Hello", "a"), Example("Hello there", "b"), Example("Hello there", "a", by="teacher")]
    assert {hash_examples([row]) for row in same} == {hash_examples([base])}
    assert hash_examples([base]) not in {hash_examples([row]) for row in other}
    assert row_key(base) == row_key(same[0]) != row_key(other[1])


def test_folding_is_that_of_the_layers_with_single_spaces() -> None:
    assert folded("Ｈello\t\u200b  “World”\n") == 'hello "world"'


def test_several_become_one() -> None:
    one = Examples((Example("a", "x"),), ("said",), {"why": 1})
    found = gather(one, Examples(), one)
    assert (len(found), found.remarks, found.skipped) == (2, ("said",), {"why": 2})
    assert (found.texts, found.labels) == (["a", "a"], ["x", "x"])
