"""Golden cases: what a row may say, what counts as a miss, and that every bad row is named."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from turnout import ConfigError, Gate, Query, Reading, Reason, Router, Turn, Verdict
from turnout.config.cases import Case, read_cases, run_cases
from turnout.core.profile import Part
from turnout.testing import ScriptedLayer, make_router, place


def router() -> Router:
    verdict = Verdict(("second",), 0.8, 0.3, {"score": 0.25}, (Reason("toy.saw", "x"),))
    return make_router([place(ScriptedLayer([verdict]), "toy", gate=Gate(0.5), who="S")], ordered=True)


class Row(NamedTuple):
    id: str
    wanted: dict[str, Any]
    misses: list[str]


ROWS = [
    Row("nothing but the route", {"route": "second"}, []),
    Row("all of it", {
        "route": "second", "by": "toy", "outcome": "S-", "confidence": 0.8, "margin": 0.3,
        "scores": {"score": 0.25}, "reasons": ["toy.saw"],
    }, []),
    Row("another route", {"route": "first"}, ["route is second, expected first"]),
    Row("another layer", {"route": "second", "by": "llm"}, ["by is toy, expected llm"]),
    Row("another outcome", {"route": "second", "outcome": "Sh"}, ["outcome is S-, expected Sh"]),
    Row("another number", {"route": "second", "confidence": 0.81}, ["confidence is 0.8, expected 0.81"]),
    Row("near enough", {"route": "second", "confidence": 0.8000000001}, []),
    Row("near enough for this row", {"route": "second", "margin": 0.31, "tolerance": 0.02}, []),
    Row("no such score", {"route": "second", "scores": {"other": 1.0}}, ["other is None, expected 1.0"]),
    Row("no such reason", {"route": "second", "reasons": ["toy.saw", "toy.heard"]}, ["reason toy.heard is missing"]),
    Row("several", {"route": "third", "by": "x", "margin": 9}, [
        "route is second, expected third", "by is toy, expected x", "margin is 0.3, expected 9.0"]),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_case_holds_or_says_what_differs(row: Row) -> None:
    case = msgspec.convert({"id": row.id, **row.wanted}, Case)
    (result,) = run_cases(router(), [case])
    assert list(result.misses) == row.misses
    assert (result.case, result.decision.route) == (case, "second")


def compound() -> Router:
    """Takes "a, b" apart, a condition and what remains; each letter is a route."""

    def plan(reading: Reading) -> tuple[Part, ...]:
        front, comma, rest = reading.words.partition(", ")
        return (Part("condition", Query(front), "go"), Part("remainder", Query(rest))) if comma else ()

    def letters(reading: Reading) -> Verdict:
        names = {"a": "first", "b": "second", "c": "third"}
        return Verdict(tuple(names[letter] for letter in reading.words), 1.0)

    return make_router([letters], split=plan)


SEVERAL = [
    Row("several routes", {"text": "bc", "route": "second", "routes": ["second", "third"]}, []),
    Row("one of several", {"text": "bc", "route": "second"}, []),
    Row("too few", {"text": "bc", "route": "second", "routes": ["second"]}, [
        "routes are second, third, expected second"]),
    Row("another order", {"text": "cb", "route": "third", "routes": ["second", "third"]}, [
        "routes are third, second, expected second, third"]),
    Row("whole", {"text": "a", "route": "first", "parts": []}, []),
    Row("not whole", {"text": "a, b", "route": "first", "parts": []}, ["2 parts, expected 0: a | b"]),
    Row("parts not looked at", {"text": "a, b", "route": "first"}, []),
    Row("no parts", {"text": "a", "route": "first", "parts": [{"text": "a", "routes": ["first"]}]}, [
        "0 parts, expected 1"]),
    Row("parts", {"text": "ab, c", "route": "first", "routes": ["first", "second", "third"], "parts": [
        {"role": "condition", "text": "ab", "routes": ["first", "second"], "then": "go"},
        {"role": "remainder", "text": "c", "routes": ["third"]}]}, []),
    Row("other parts", {"text": "a, b", "route": "first", "parts": [
        {"text": "a", "routes": ["first", "third"]}, {"role": "remainder", "text": "c", "routes": ["second"]}]}, [
        "part 1: routes is first, expected first, third", "part 1: role is 'condition', expected 'part'",
        "part 1: then is 'go', expected ''", "part 2: text is 'b', expected 'c'"]),
]  # fmt: skip


@pytest.mark.parametrize("row", SEVERAL, ids=lambda row: row.id)
def test_routes_and_parts_are_exact(row: Row) -> None:
    case = msgspec.convert({"id": row.id, **row.wanted}, Case)
    (result,) = run_cases(compound(), [case])
    assert list(result.misses) == row.misses


def test_a_row_that_contradicts_itself_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a", "route": "first", "routes": ["second", "first"]}\n')
    with pytest.raises(ConfigError, match=r"cases\.jsonl:1: route is 'first', but the first of routes 'second'"):
        read_cases(path)


def test_a_case_can_ask_everything_a_query_can(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        '{"id": "a", "route": "first", "text": "x", "ceiling": "first"}\n\n'
        '{"id": "b", "route": "second", "turns": [{"role": "user", "text": "y"}], "must": false, "why": "because"}\n'
    )
    first, second = read_cases(path)
    assert (first.query().ceiling, first.must) == ("first", True)
    assert (second.query().turns, second.must) == ((Turn("user", "y"),), False)
    assert [result.decision.outcome for result in run_cases(router(), [first, second])] == ["Sk", "S-"]


def test_every_bad_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        '{"id": "a", "route": "first"}\nnot json\n{"id": "b"}\n{"id": "a", "route": "x"}\n'
        '{"id": "c", "route": "x", "rout": 1}\n{"id": "d", "route": 5}\n'
    )
    with pytest.raises(ConfigError) as caught:
        read_cases(path)
    found = [str(problem) for problem in caught.value.problems]
    assert [message.split(":")[1].split()[0] for message in found] == ["2", "3", "4", "5", "6"]
    for message, part in zip(found, ["JSON", "route", "'a' is used twice", "rout", "str"], strict=True):
        assert part in message


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"\xff\xfe", "not UTF-8 text")],
    ids=["missing", "not UTF-8"],
)
def test_a_file_that_cannot_be_read(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"cases\.jsonl: {message}"):
        read_cases(path)


def test_no_rows_are_no_cases(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n  \n")
    assert read_cases(path) == []
    assert list(run_cases(router(), [])) == []
