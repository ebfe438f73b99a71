"""`turnout init`: what serves afterwards was judged by rows it had not seen; or it is said why nothing does."""

import csv
import io
import json
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnout
from turnout.cli.commands import init as command
from turnout.config.cases import read_cases
from turnout.config.champion import SHIPPED, champion_digest, shelf_of
from turnout.core.errors import LearnError
from turnout.learn import registry
from turnout.learn.rows import read_head
from turnout.learn.table import MOST_ROWS, choose_columns, read_table

Run = Callable[..., Any]

WORDS = {
    "Billing": "invoice refund card payment receipt charge price bill discount money",
    "Délai de livraison": "parcel courier delivery track address shipped box late arrive post",
    "技術": "crash error login screen update install button page loading password",
}
OTHERS = ["please", "my", "the", "a", "with", "again", "today", "why", "is", "when", "can", "you", "help", "since"]
Rows = list[tuple[str, str]]


def tickets(count: int = 40, seed: int = 0, labels: Any = WORDS) -> Rows:
    chance = random.Random(seed)
    rows = [
        (" ".join(chance.choices(words.split(), k=3) + chance.choices(OTHERS, k=3)), label)
        for label, words in labels.items()
        for _ in range(count)
    ]
    chance.shuffle(rows)
    return rows


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(rows: Rows, name: str = "tickets.csv", columns: tuple[str, str] = ("subject", "queue")) -> str:
    if name.endswith(".jsonl"):
        Path(name).write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
        return name
    text = io.StringIO()
    out = csv.writer(text, delimiter="\t" if name.endswith(".tsv") else ",")
    out.writerow(("id", *columns, "note"))
    out.writerows((number, *row, "none") for number, row in enumerate(rows))
    Path(name).write_text(text.getvalue())
    return name


def init(run: Run, *argv: str, name: str = "shop") -> Any:
    return run("init", name, *argv, "--embedder", "none")


@pytest.mark.parametrize("file", ["tickets.csv", "tickets.tsv", "tickets.jsonl"])
def test_from_a_table_to_a_profile_that_serves(file: str, run: Run) -> None:
    ran = init(run, "--from", write(tickets(), file), "--text", "subject", "--label", "queue")
    assert ran.code == 0, ran.err
    assert "shop.toml  3 labels of 'queue', learnt from 'subject'" in ran.out
    assert "fallback included" in ran.out
    digest = champion_digest("shop", "student")
    assert digest != SHIPPED
    for name in ("shop", "shop.toml"):
        router = turnout.load(name)
        decision = router.route_sync("a refund of the invoice to my card")
        assert (decision.route, decision.by) == ("Billing", "student")
        assert router.route_sync("ωξψ ζηθ").route == "other", "what it does not know"
    assert router.profile.routes == (*sorted(WORDS), "other")
    assert (
        json.loads(run("route", "parcel late courier today why is", "-p", "shop", "--json").out)["route"]
        == "Délai de livraison"
    )
    assert run("check", "shop").code == 0
    changes = registry.read_history("shop", "student")
    assert [(change.to, change.why) for change in changes] == [(digest, f"turnout init from {file}")]


def test_what_is_printed_next_works_as_it_stands(run: Run) -> None:
    out = init(run, "--from", write(tickets())).out
    said = [line.strip() for line in out.partition("It serves now:")[2].splitlines() if line.strip()]
    assert [line.split()[:2] for line in said] == [
        ["turnout", "route"],
        ["turnout", "serve"],
        ["turnout", "train"],
        ["python", "-c"],
    ]
    assert said[2] == "turnout train more.csv --text subject --label queue -p shop --promote"
    for line, start in ((said[0], "turnout"), (said[3], "python")):
        here = f"{sys.executable} -m turnout.cli" if start == "turnout" else sys.executable
        ran = subprocess.run(
            ["/bin/sh", "-c", line.replace(start, here, 1)], capture_output=True, check=False, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert any(label in ran.stdout for label in WORDS)


def test_figures_are_of_rows_it_had_not_seen(run: Run) -> None:
    """Of labels that mean nothing, nothing can be learnt; a student judged by its own rows would look well."""
    chance = random.Random(5)
    rows = [(text, chance.choice(["a", "b"])) for text, _ in tickets(60)]
    out = init(run, "--from", write(rows)).out
    (line,) = [line for line in out.splitlines() if line.startswith("right on ")]
    right = float(line.split()[2].rstrip("%"))
    assert right < 70
    assert "always saying the most frequent label" in line
    report = read_report()
    assert report["whole_accuracy"] == pytest.approx(right / 100, abs=0.001)


def read_report() -> dict[str, float]:
    folder = shelf_of("shop", "student") / champion_digest("shop", "student")
    metrics: dict[str, float] = json.loads((folder / "manifest.json").read_text())["metrics"]
    return metrics


def test_all_rows_are_learnt_in_the_end(run: Run) -> None:
    init(run, "--from", write(tickets()))
    folder = shelf_of("shop", "student") / champion_digest("shop", "student")
    manifest = json.loads((folder / "manifest.json").read_text())
    table = read_table("tickets.csv")
    assert sum(manifest["counts"].values()) > 0.95 * len(table.examples.rows), "but for near duplicates"


def test_the_loop_goes_on_from_there(run: Run) -> None:
    init(run, "--from", write(tickets()))
    Path("turnout.toml").write_text("[learn]\nshadow_decisions = 0\nmax_loss = 0.3\nmin_accuracy = 0.5\n")
    more = write(tickets(60, seed=7), "more.csv")
    argv = ("--text", "subject", "--label", "queue", "-p", "shop", "--promote", "--config", "turnout.toml")
    ran = run("train", "tickets.csv", more, *argv, "--embedder", "none")
    assert ran.code == 0, ran.out
    assert "serves now" in ran.out
    assert len(registry.read_history("shop", "student")) == 2


class Columns(NamedTuple):
    id: str
    head: str
    found: tuple[str, str] | str
    """The columns, or what is said."""
    text: str | None = None
    label: str | None = None


ASKED = "Say --text; its columns are 'subject', 'body', 'queue'"
COLUMNS = [
    Columns("as they are usually called", "id,text,label", ("text", "label")),
    Columns("the plainest wins", "text,title,label,category", ("text", "label")),
    Columns("in any case", "Text,LABEL,x", ("Text", "LABEL")),
    Columns("one of each kind", "when,subject,queue", ("subject", "queue")),
    Columns("two columns, one of them known", "foo,route", ("foo", "route")),
    Columns("two columns, the other known", "question,bar", ("question", "bar")),
    Columns("one said", "foo,bar,label", ("foo", "label"), text="foo"),
    Columns("one that may be either", "subject,queue", ("queue", "subject"), text="queue"),
    Columns("quoted", '"my text";"my label";x', ("my text", "my label"), "my text", "my label"),
    Columns("two that may be the text", "subject,body,queue", ASKED),
    Columns("two that may be the label", "text,queue,team", "Say --label; its columns are 'text', 'queue', 'team'"),
    Columns("no name is known", "foo,bar,baz", "Say --text and --label; its columns are 'foo', 'bar', 'baz'"),
    Columns("one column", "text", "the first line of a CSV file names them"),
    Columns("no such column", "a,text,label", "has no such column, did you mean 'text'?", text="txet"),
    Columns("the same twice", "a,text,label", "text and label are two columns", "a", "a"),
    Columns("two of one name", "a,b,a", "several columns of that name", "a", "b"),
]


@pytest.mark.parametrize("case", COLUMNS, ids=lambda case: case.id)
def test_columns_are_guessed_where_they_are_clear(case: Columns) -> None:
    Path("t.csv").write_text(f"{case.head}\n")
    names = read_head(Path("t.csv"))
    if isinstance(case.found, tuple):
        assert choose_columns(names, case.text, case.label, "t.csv") == case.found
    else:
        with pytest.raises(LearnError) as caught:
            choose_columns(names, case.text, case.label, "t.csv")
        assert case.found in str(caught.value)


class RefusedCase(NamedTuple):
    id: str
    text: bytes
    said: str
    argv: tuple[str, ...] = ()


def rows_of(rows: Rows) -> bytes:
    return "\n".join(["text,label", *(f"{text},{label}" for text, label in rows)]).encode() + b"\n"


UNIQUE = [(text, f"{number}") for number, (text, _) in enumerate(tickets(9))]
TWO_COLUMNS = "cells in 2 columns: put a text with ',' in quotes"
REFUSED = [
    RefusedCase("empty", b"", "no rows in it"),
    RefusedCase("a header alone", b"text,label\n", "no label in the column 'label': a router needs at least two"),
    RefusedCase("one label", rows_of([(text, "x") for text, _ in tickets(10)]), "only the label 'x' in the column"),
    RefusedCase("too few rows", rows_of(tickets(2)), "a student needs at least 10"),
    RefusedCase("labels that are texts", rows_of(UNIQUE), "most of them once"),
    RefusedCase("not UTF-8", "text,label\nétat,x\n".encode("latin-1"), "t.csv:2: not UTF-8: save the file as UTF-8"),
    RefusedCase("a head that is not UTF-8", "téxt,label\n".encode("latin-1"), "t.csv:1: not UTF-8"),
    RefusedCase("too many cells", rows_of([*tickets(9), ("a, b", "x")]), TWO_COLUMNS),
    RefusedCase("about no rows", b"", "name it with --from FILE", ("--text", "a")),
    RefusedCase("a share", b"", "--hold-out '90%'", ("--from", "t.csv", "--hold-out", "90%")),
    RefusedCase("a fallback", b"", "is not a name for a route", ("--from", "t.csv", "--fallback", " ")),
    RefusedCase("no file", b"", "none.csv: cannot be read", ("--from", "none.csv")),
    RefusedCase("a pipe", b"", "write what you pipe in into one", ("--from", "-")),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: RefusedCase, run: Run) -> None:
    Path("t.csv").write_bytes(case.text)
    ran = init(run, *(case.argv or ("--from", "t.csv")))
    assert ran.code == 2
    assert case.said in ran.err
    assert not Path("shop.toml").exists()
    assert champion_digest("shop", "student") == SHIPPED


@pytest.mark.parametrize(
    ("name", "said"),
    [("tiers", "the name of a shipped profile"), ("a/b", "is not a name"), ("x.toml", "is not a name")],
)
def test_a_name_that_is_none(name: str, said: str, run: Run) -> None:
    ran = run("init", name)
    assert ran.code == 2
    assert said in ran.err


def test_gaps_are_left_out_and_counted_and_spellings_are_one(run: Run) -> None:
    rows = [*tickets(), ("", "Billing"), ("why is my refund late", ""), ("  ", "技術"), ("a refund", "billing ")]
    twice = [*rows, rows[0], rows[0], ("no route at all", "oos")]
    out = init(run, "--from", write(twice)).out
    said = " ".join(out.split())
    assert "2 rows left out: the text is empty (first in tickets.csv:122)" in said
    assert "1 row left out: the label is empty (first in tickets.csv:123)" in said
    assert "'billing' read as 'Billing'" in said
    assert "2 duplicates" in said
    assert "billing" not in tomllib.loads(Path("shop.toml").read_text())["routes"]
    assert "oos" not in turnout.load("shop").profile.routes, "for none of the routes: it teaches when to be unsure"


def test_of_many_rows_some_are_drawn_by_their_text() -> None:
    write([(f"{text} {number}", label) for number, (text, label) in enumerate(tickets(500))])
    table = read_table("tickets.csv", most=200)
    assert len(table.examples.rows) == 200
    assert "1,500 rows in the file: 200 of them, drawn by their text, are used" in table.examples.remarks
    assert {*table.routes} == {*WORDS}
    rows = Path("tickets.csv").read_text().splitlines()
    Path("tickets.csv").write_text("\n".join([rows[0], *reversed(rows[1:])]))
    again = read_table("tickets.csv", most=200)
    assert sorted(row.text for row in again.examples.rows) == sorted(row.text for row in table.examples.rows)
    assert MOST_ROWS >= 10_000


def test_the_fallback_is_a_label_or_a_route_of_its_own(run: Run) -> None:
    file = write(tickets())
    init(run, "--from", file, "--fallback", "Billing")
    assert turnout.load("shop").profile.fallback.route == "Billing"
    assert len(turnout.load("shop").profile.routes) == 3
    assert init(run, "--from", file, "--fallback", "a person", name="two").code == 0
    assert turnout.load("two").profile.routes[-1] == turnout.load("two").profile.fallback.route == "a person"
    assert (
        init(run, "--from", write([*tickets(), *[(f"hm {n} what", "Other") for n in range(9)]]), name="own").code == 0
    )
    assert turnout.load("own").profile.fallback.route == "Other", "a label that says so"


def test_nothing_is_replaced_unasked(run: Run) -> None:
    file = write(tickets())
    assert init(run, "--from", file).code == 0
    before, first = Path("shop.toml").read_bytes(), champion_digest("shop", "student")
    assert "shop.toml would be overwritten" in init(run, "--from", file).err
    # The shelf knows profiles by their names: one of another folder would lose its student.
    ran = init(run, "--from", file, "-o", "elsewhere")
    assert ran.code == 2
    assert "serves already" in ran.err
    assert (Path("shop.toml").read_bytes(), champion_digest("shop", "student")) == (before, first)
    other = write([(text, label.upper() + "!") for text, label in tickets()], "other.csv")
    assert init(run, "--from", other, "--force").code == 0
    assert turnout.load("shop").profile.routes[0].endswith("!")


def test_what_fails_on_the_way_leaves_everything_as_it_was(run: Run) -> None:
    assert init(run, "--from", write(tickets())).code == 0
    before, first = Path("shop.toml").read_bytes(), champion_digest("shop", "student")
    few = write(tickets(2), "few.csv")
    assert init(run, "--from", few, "--force").code == 2
    assert (Path("shop.toml").read_bytes(), champion_digest("shop", "student")) == (before, first)
    assert turnout.load("shop").route_sync("refund the invoice").route == "Billing"


def test_the_embedder_is_suggested_where_labels_are_few(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "turnout-build-minilm" in init(run, "--from", write(tickets())).out
    monkeypatch.setattr("turnout.learn.begin.FEW_ROWS", 10)
    assert "turnout-build-minilm" not in init(run, "--from", "tickets.csv", name="many").out


def test_without_the_extra_a_sentence_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "turnout.learn.begin", None)
    ran = init(run, "--from", write(tickets()))
    assert ran.code == 2
    assert "pip install 'turnout[learn]'" in ran.err


MISSING = [
    ("train", "nope.jsonl"),
    ("train", "--outcomes", "nope.jsonl"),
    ("init", "mine", "--from", "nope.csv"),
    ("evaluate", "nope.jsonl"),
    ("calibrate", "nope.jsonl"),
]


@pytest.mark.parametrize("argv", MISSING, ids=" ".join)
def test_a_missing_file_is_said_before_a_missing_package(
    argv: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    ran = run(*argv)
    assert ran.code == 2
    assert "nope" in ran.err
    assert "pip install" not in ran.err


def test_without_a_table_a_small_profile_to_change(run: Run) -> None:
    ran = run("init", "demo")
    assert ran.code == 0
    assert "--from FILE trains a student" in ran.out
    checked = run("check", "demo.toml", "--cases")
    assert checked.code == 0, checked.out
    assert f"must      {len(command.CASES)} of {len(command.CASES)} hold" in checked.out
    assert turnout.load("demo").route_sync("where is my refund").route == "billing"
    assert turnout.load("demo").route_sync("zxcv").outcome == "Fl"
    assert len(read_cases(Path("demo.cases.jsonl"))) == len(command.CASES)
    assert "would be overwritten" in run("init", "demo").err
    first = Path("demo.toml").read_bytes()
    assert run("init", "demo", "--force").code == 0
    assert Path("demo.toml").read_bytes() == first
