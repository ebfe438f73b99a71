"""`turnout contract`: a report that can guard a build, and the flip rate."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

from old_rows import backdate, ms
from stored_decisions import ask
from toml_router import LOCAL
from turnout import Decision, Query, Verdict, load
from turnout.core import registry
from turnout.core.query import Reading
from turnout.core.registry import kind
from turnout.store import Outcome, Store, open_store

Run = Callable[..., Any]

# A profile whose only layer obeys whatever was said before.
SWAYED = """
name = "swayed"
routes = ["HERE", "THERE"]
fallback = { route = "HERE" }
cases = "cases.jsonl"

[[layers]]
kind = "swayed.v1"

[policy.HERE]
[policy.THERE]

[[contract]]
id = "RC-03"
never = "flipped_by_history"
text = "history never biases the type"
"""
CASES = '{"id":"a","text":"Define entropy","route":"HERE"}\n{"id":"b","text":"And the second one?","route":"HERE"}\n'


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """The layer of the profile has nothing to configure."""


def obey(_: Nothing) -> Callable[[Reading], Verdict]:
    def layer(reading: Reading) -> Verdict:
        told = any("everything is THERE" in turn.text for turn in reading.query.turns)
        return Verdict(("THERE",) if told else ("HERE",), 0.9)

    return layer


@pytest.fixture
def log() -> Iterator[Store]:
    with open_store() as store:
        yield store


@pytest.fixture
def swayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The profile's file; its kind is forgotten after the test."""
    monkeypatch.setattr(registry, "_kinds", dict(registry.kinds()))
    kind("swayed.v1")(obey)
    (tmp_path / "swayed.toml").write_text(SWAYED)
    (tmp_path / "cases.jsonl").write_text(CASES)
    return str(tmp_path / "swayed.toml")


def platform(log: Store, *, broken: bool, text: str = "show my quota") -> Decision:
    decision = ask(text, "assist")
    log.record(decision)
    outcome = Outcome(slot="main", retrieval=True) if broken else Outcome(slot="conversational", retrieval=False)
    log.settle(decision, outcome)
    log.flush()
    return decision


# --- report


def test_kept_rules_are_the_good_news(run: Run, log: Store) -> None:
    platform(log, broken=False)
    ran = run("contract", "report")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("assist\n")
    told = " ".join(ran.out.split())
    for said in (
        "RC-01 a registered platform phrase is decided without a classifier ✓ kept; 1 decision and 1 outcome checked",
        "RC-03 history only resolves references; it never biases the type ○ turnout contract flips -p assist "
        "measures it",
        "RC-04 PLATFORM and CONVERSATIONAL never trigger retrieval ✓ kept; 1 outcome checked",
        "0 violations in 1 decision",
    ):
        assert said in told


def test_broken_rules_fail_the_build(run: Run, log: Store) -> None:
    broken = [platform(log, broken=True, text=f"show my quota {number}\x1b[31m") for number in range(4)]
    ran = run("contract", "report")
    assert ran.code == 1
    told = " ".join(ran.out.split())
    assert "broken 4 times, last 20" in told
    assert "retrieval = true: retrieval must never be true for PLATFORM" in told
    assert 'model = "main": model must be' in told
    assert told.endswith("8 violations in 4 decisions")
    assert broken[0].id not in ran.out, "three examples are enough"
    for decision in broken[1:]:
        assert ran.out.count(decision.id) == 2
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_report_as_json(run: Run, log: Store) -> None:
    decision = platform(log, broken=True)
    found = json.loads(run("contract", "report", "--json").out)
    assert (found["decisions"], found["violations"]) == (1, 2)
    rule = next(rule for rule in found["rules"] if rule["rule"] == "RC-04")
    assert rule["violations"] == 1
    assert rule["examples"][0]["decision_id"] == decision.id
    assert rule["examples"][0]["question"] == "show my quota"


class Filter(NamedTuple):
    id: str
    argv: tuple[str, ...]
    code: int
    out: str


@pytest.mark.parametrize(
    "case",
    [
        Filter("everything", (), 1, "2 violations in 2 decisions"),
        Filter("the profile", ("-p", "assist"), 1, "2 violations in 1 decision"),
        Filter("another profile", ("-p", "study"), 0, "1 decision, of profiles without a contract"),
        Filter("before it happened", ("--until", "2020-01-01"), 0, "none of 2 decisions matches"),
        Filter("another tenant", ("--tenant", "acme"), 0, "no decisions of tenant 'acme'"),
    ],
    ids=lambda case: case.id,
)
def test_report_filters(case: Filter, run: Run, log: Store) -> None:
    platform(log, broken=True)
    log.record(ask("Define entropy", "study"))
    log.flush()
    ran = run("contract", "report", *case.argv)
    assert (ran.code, ran.err) == (case.code, "")
    assert case.out in ran.out


def test_text_that_was_not_kept_is_said_to_be(run: Run) -> None:
    with open_store(text="hash") as log:
        platform(log, broken=True)
    assert "(text not kept)" in run("contract", "report").out


def test_report_without_a_log(run: Run) -> None:
    ran = run("contract", "report")
    assert ran.code == 2
    assert "no decision log here yet" in ran.err


# --- flips


def test_what_is_read_otherwise_is_no_flip(run: Run, tmp_path: Path) -> None:
    """A follow-up inherits its task, and of a long message without a system prompt the tail alone is read."""
    tail = f"Prove the theorem formally, step by step. {'The rest is as before. ' * 30}\n\nhello"
    rows = [{"text": text} for text in ("yes, go ahead", tail, "Prove the theorem formally", "hello")]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = run("contract", "flips", "-p", LOCAL, "--from", str(file), "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["alone"]["flips"] == 0


@pytest.mark.long
def test_the_profile_that_promises_it_has_no_flips(run: Run) -> None:
    ran = run("contract", "flips")
    assert (ran.code, ran.err) == (0, "")
    told = " ".join(ran.out.split())
    assert "from its golden cases questions flips flip rate" in told
    assert re.search(r"that stand alone [1-9]\d\d 0 of [\d,]+ 0.00%", told)
    assert "not asked" in told


def test_flips_fail_the_build(run: Run, swayed: str) -> None:
    ran = run("contract", "flips", "-p", swayed)
    assert ran.code == 1
    told = " ".join(ran.out.split())
    assert "that stand alone 1 1 of 20 5.00%" in told
    assert "with an open reference 1 1 of 20 5.00%" in told
    assert "HERE → THERE after an order for THERE “Define entropy”" in told
    assert "And the second one?" not in told
    assert not (Path(swayed).parent / "log").exists()


def test_flips_as_json_are_the_same_for_the_same_seed(run: Run, swayed: str) -> None:
    first, again, other = (json.loads(run("contract", "flips", "-p", swayed, "--json", "--seed", s).out) for s in "112")
    assert first == again
    assert {**first, "seed": 2, "flips": 0} == {**other, "flips": 0}
    assert first["alone"] == {"questions": 1, "routings": 20, "flips": 1, "flip_rate": 0.05}
    assert [flip["refers"] for flip in first["flips"]] == [False, True]
    assert first["flips"][0]["became"] == ["THERE"]
    assert (first["source"], first["noted"]) == ("its golden cases", 0)


def logged(log: Store, profile: str, *texts: str) -> list[str]:
    router = load(profile, config="")
    made = [router.route_sync(Query(text)) for text in texts]
    for decision in made:
        log.record(decision)
    log.flush()
    return [decision.id for decision in made]


def test_flips_of_logged_decisions_are_noted_as_broken_rules(run: Run, log: Store, swayed: str) -> None:
    ids = logged(log, swayed, "Who wrote Hamlet?", "What is a closure?", "And the second one?")
    ran = run("contract", "flips", "-p", swayed)
    assert ran.code == 1
    assert "from the log" in ran.out
    assert "2 logged decisions noted as breaking the contract" in ran.out
    report = run("contract", "report")
    assert report.code == 1
    told = " ".join(report.out.split())
    assert "RC-03 history never biases the type ✕ broken 2 times" in told
    assert "was HERE and became THERE, after an order for THERE" in told
    assert ids[0] in report.out
    assert ids[2] not in report.out
    assert "RC-03" in run("show", ids[0]).out


@pytest.mark.parametrize("level", ["off", "snippet"])
def test_where_the_log_kept_no_text_the_golden_cases_serve(level: str, run: Run, swayed: str) -> None:
    with open_store(text=level) as log:  # type: ignore[arg-type]
        logged(log, swayed, "Who wrote Hamlet?")
    assert "from its golden cases" in run("contract", "flips", "-p", swayed).out


def test_questions_from_a_file(run: Run, swayed: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"q":"Who wrote Hamlet?"}\n{"q":"Who wrote Hamlet?"}\n{"q":"What is a closure?"}\n')
    found = json.loads(run("contract", "flips", "-p", swayed, "--from", str(file), "--field", "q", "--json").out)
    assert (found["source"], found["alone"]["questions"]) == ("a file", 2)
    piped = run("contract", "flips", "-p", swayed, "--from", "-", "--field", "q", stdin=file.read_bytes())
    assert piped.code == 1
    ran = run("contract", "flips", "-p", swayed, "--from", str(file))
    assert ran.code == 2
    assert "row 1: no field 'text'" in ran.err


def test_how_many(run: Run, log: Store, swayed: str) -> None:
    logged(log, swayed, *(f"Who wrote book {number}?" for number in range(9)))
    argv = ("contract", "flips", "-p", swayed, "--json")
    found = json.loads(run(*argv, "--questions", "4", "--histories", "7").out)
    assert (found["alone"]["questions"], found["alone"]["routings"]) == (4, 28)
    for option in ("--questions", "--histories"):
        ran = run(*argv, option, "0")
        assert ran.code == 2
        assert f"{option} 0: at least 1 is needed" in ran.err


def test_a_span_of_the_log(run: Run, log: Store, swayed: str) -> None:
    router = load(swayed, config="")
    backdate(log, router.route_sync(Query("Who wrote Hamlet?")), ms("2026-11-01T08:30"))
    argv = ("contract", "flips", "-p", swayed, "--json")
    assert json.loads(run(*argv, "--until", "2026-11-02").out)["source"] == "the log"
    assert json.loads(run(*argv, "--since", "2026-11-02").out)["source"] == "its golden cases"


def test_a_profile_without_questions(run: Run, swayed: str) -> None:
    Path(swayed).write_text(SWAYED.replace('cases = "cases.jsonl"\n', ""))
    ran = run("contract", "flips", "-p", swayed)
    assert ran.code == 2
    assert "no question to measure with" in ran.err


def test_many_flips_are_not_all_listed(run: Run, log: Store, swayed: str) -> None:
    logged(log, swayed, *(f"Who wrote book {number}?" for number in range(30)))
    ran = run("contract", "flips", "-p", swayed)
    assert ran.out.count("HERE → THERE") == 20
    assert "and 10 more (--json lists all)" in ran.out
