"""A batch: one row out for every row in, in order, whatever the rows are; nothing half-written is ever seen."""

import json
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout
from turnout.cli.commands import batch
from turnout.runtime import rows
from turnout.runtime.rows import BatchJob, LineChunk, chunks, decide_chunk, spread

Run = Callable[..., Any]
JOB = BatchJob("tiers", "", "text")


class Case(NamedTuple):
    id: str
    line: bytes
    error: str = ""
    ident: object = None


CASES = [
    Case("plain", b'{"text":"hello"}'),
    Case("number-id", b'{"id":7,"text":"hello"}', ident=7),
    Case("any-id", b'{"id":{"a":[1,"\xc3\xa9"]},"text":"hello"}', ident={"a": [1, "é"]}),
    Case("huge-number-id", b'{"id":123456789012345678901234567890,"text":"x"}', ident=123456789012345678901234567890),
    Case("empty-text", b'{"text":""}'),
    Case("nul", b'{"text":"a\\u0000b"}'),
    Case("emoji", b'{"text":"\xf0\x9f\x9a\x82"}'),
    Case("carriage-return", b'{"text":"hello"}\r'),
    Case("blank-line", b"", "the line is empty"),
    Case("spaces", b"  \t", "the line is empty"),
    Case("not-json", b"hello", "not a JSON object"),
    Case("list", b"[1]", "not a JSON object"),
    Case("deep", b"[" * 50_000, "not a JSON object"),
    Case("deep-id", b'{"text":"a","id":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "not a JSON object"),
    Case("bad-id", b'{"text":"a","id":"\xff"}', "the id cannot be read"),
    Case("no-field", b'{"txt":"hello"}', "no field 'text', did you mean 'txt'?"),
    Case("no-fields", b"{}", "no field 'text' (it has: none)"),
    Case("wrong-type", b'{"id":1,"text":5}', "field 'text' is not text", ident=1),
    Case("null", b'{"text":null}', "field 'text' is not text"),
    Case("not-utf8", b'{"text":"\xff"}', "field 'text' is not text"),
    Case("lone-surrogate", b'{"text":"\\ud800"}', "not a JSON object"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_row(case: Case) -> None:
    done = decide_chunk(JOB, LineChunk(41, [case.line + b"\n"], 0))
    (line,) = done.output.splitlines()
    row = json.loads(line)
    assert row["row"] == 41
    assert row.get("id") == case.ident
    assert case.error in row.get("error", "")
    assert ("decision" in row) == (not case.error)
    assert (done.rows, done.errors) == (1, bool(case.error))


def test_a_file_of_everything(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b"\xef\xbb\xbf" + b"\n".join(case.line for case in CASES))
    out.write_text("what was there before")
    ran = run("batch", str(source), "-o", str(out))
    assert ran.code == 1
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["row"] for row in found] == list(range(1, len(CASES) + 1))
    assert ["error" in row for row in found] == [bool(case.error) for case in CASES]
    assert f"{len(CASES)} rows in" in ran.err
    assert "rows have an error instead of a decision" in ran.err
    assert "row 9: the line is empty" in ran.err
    assert ran.out == ""
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_clean_rows_exit_with_nothing(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"q":"Define entropy"}\n' * 3)
    ran = run("batch", str(source), "-p", "study", "--field", "q", "-o", "-")
    assert ran.code == 0
    decisions = [json.loads(line)["decision"] for line in ran.out.splitlines()]
    assert [decision["route"] for decision in decisions] == ["standalone_definition"] * 3
    assert len({decision["id"] for decision in decisions}) == 3
    assert "standalone_definition  3  100.0%" in ran.err


def test_stdin_to_stdout(run: Run) -> None:
    ran = run("batch", "-", stdin=b'{"text":"hello"}\n')
    assert json.loads(ran.out)["decision"]["route"] == "SIMPLE"


def test_nothing_in_nothing_out(run: Run) -> None:
    ran = run("batch", "-", stdin=b"")
    assert (ran.code, ran.out) == (0, "")
    assert "0 rows" in ran.err


class Refusal(NamedTuple):
    id: str
    argv: tuple[str, ...]
    said: str


REFUSALS = [
    Refusal("itself", ("in.jsonl", "-o", "in.jsonl"), "is the input itself"),
    Refusal("itself-by-link", ("in.jsonl", "-o", "link.jsonl"), "is the input itself"),
    Refusal("no-input", ("nope.jsonl", "-o", "out.jsonl"), "nope.jsonl: No such file"),
    Refusal("no-folder", ("in.jsonl", "-o", "no/out.jsonl"), "there is no folder"),
    Refusal("a-folder", ("in.jsonl", "-o", "."), "Is a directory"),
    Refusal("no-workers", ("in.jsonl", "--workers", "0"), "at least 1"),
    Refusal("no-number", ("in.jsonl", "--workers", "many"), "many"),
    Refusal("no-profile", ("in.jsonl", "-p", "stdy"), "did you mean 'study'?"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_refused(case: Refusal, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"text":"hello"}\n')
    Path("link.jsonl").symlink_to("in.jsonl")
    ran = run("batch", *case.argv)
    assert ran.code == 2
    assert case.said in ran.err
    assert Path("in.jsonl").read_text() == '{"text":"hello"}\n'
    assert not Path("out.jsonl").exists()


def test_an_interrupted_run_leaves_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text":"hello"}\n')
    out.write_text("before")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "decide_chunk", interrupted)
    assert run("batch", str(source), "-o", str(out)).code == 130
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_link_is_written_through(run: Run, tmp_path: Path) -> None:
    source, target, link = tmp_path / "in.jsonl", tmp_path / "target.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text":"hello"}\n')
    target.touch()
    link.symlink_to(target)
    assert run("batch", str(source), "-o", str(link)).code == 0
    assert link.is_symlink()
    assert target.read_text().startswith('{"row":1,')


def test_a_device_is_written_to(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text":"hello"}\n')
    assert run("batch", str(source), "-o", "/dev/null").code == 0
    assert not Path("/dev/null").is_file()


def test_a_line_without_end_is_not_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 64)
    file = tmp_path / "in.jsonl"
    file.write_bytes(b'{"text":"a"}\n' + b"x" * 1000 + b'\n{"text":"b"}\n')
    with file.open("rb") as source:
        (chunk,) = chunks(source)
    assert [line is None for line in chunk.lines] == [False, True, False]
    assert chunk.size == file.stat().st_size
    assert b"longer than 64 bytes" in decide_chunk(JOB, chunk).output


def test_many_processes_keep_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK_ROWS", 20)
    texts = [f"hello {n}" if n % 7 else "Prove the theorem step by step" for n in range(300)]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    with file.open("rb") as source:
        done = list(spread(decide_chunk, JOB, chunks(source), 2))
    assert len(done) == 15
    found = [json.loads(line) for part in done for line in part.output.splitlines()]
    router = turnout.load("tiers", config="")
    assert [row["id"] for row in found] == list(range(300))
    assert [row["decision"]["route"] for row in found] == [router.route_sync(text).route for text in texts]
    assert len({row["decision"]["id"] for row in found}) == 300


def test_reading_does_not_run_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast rows come, only a few chunks for each worker are under way."""
    taken = 0

    class Later:
        def __init__(self, chunk: LineChunk) -> None:
            self.chunk = chunk

        def result(self) -> rows.DecidedRows:
            return decide_chunk(JOB, self.chunk)

    class Pool:
        def __init__(self, *_: object) -> None: ...

        def submit(self, _: object, __: object, chunk: LineChunk) -> Later:
            return Later(chunk)

        def shutdown(self, **_: object) -> None: ...

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield LineChunk(taken, [b'{"text":"hello"}\n'], 1)

    monkeypatch.setattr(rows, "ProcessPoolExecutor", Pool)
    decided = spread(decide_chunk, JOB, endless(), 2)
    for _ in range(50):
        next(decided)
    assert taken <= 50 + 2 * rows.CHUNKS_PER_WORKER


def test_a_worker_that_dies_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        def __init__(self, *_: object) -> None: ...

        def submit(self, *_: object) -> None:
            raise BrokenProcessPool

        def shutdown(self, **_: object) -> None: ...

    monkeypatch.setattr(rows, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(rows, "CHUNK_ROWS", 1)
    ran = run("batch", "-", "--workers", "2", stdin=b'{"text":"hello"}\n' * 3)
    assert ran.code == 2
    assert "a worker process died" in ran.err


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=30) | st.just(b'{"text":"x"}'), max_size=20), st.integers(1, 5))
def test_every_line_gives_one_row(lines: list[bytes], size: int) -> None:
    import io

    raw = b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "CHUNK_ROWS", size)
        output = b"".join(decide_chunk(JOB, chunk).output for chunk in chunks(io.BytesIO(raw)))
    found = [json.loads(line) for line in output.splitlines()]
    assert [row["row"] for row in found] == list(range(1, len(lines) + 1))
    assert all(("decision" in row) != ("error" in row) for row in found)


def test_an_output_that_cannot_be_made_is_named_as_it_was_given(tmp_path: Path, run: Run) -> None:
    out = tmp_path / ("x" * 250)  # a name that has room for itself, but not for what is written aside
    ran = run("batch", "-", "-o", str(out), stdin=b'{"text":"hello"}\n')
    assert ran.code == 2
    assert ran.err == f"turnout: {out}: File name too long\n"


@pytest.mark.parametrize(
    ("row", "lone"),
    [
        (rb'{"text":"ok \ud800"}', r"\ud800"),
        (rb'{"text":"\ud83d\ude00 \udc00 x"}', r"\udc00"),
        (rb'{"id":"\uD800","text":"x"}', r"\uD800"),
        (rb'{"text":"\\ud800', None),
        (rb'{"text":"\ud83d\ude00', None),
    ],
)
def test_a_lone_surrogate_is_named(row: bytes, lone: str | None, run: Run) -> None:
    ran = run("batch", "-", stdin=row + b"\n")
    assert ran.code == 1
    said = json.loads(ran.out)["error"]
    assert (f"lone surrogate {lone}, half" in said) if lone else "surrogate" not in said
    assert "1 row in " in ran.err
    assert "1 row has an error instead" in ran.err
