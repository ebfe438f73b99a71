"""`turnout stats`: shares over time that add up, and nothing unknown that looks like zero."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.cells import cell_len

import turnout
from old_rows import backdate, ms
from toml_router import unlearnt
from turnout import Query
from turnout.cli.draw.screen import dollars
from turnout.cli.draw.traffic import SHOWN, percent
from turnout.runtime.traffic import fitting, shift_of
from turnout.store import Outcome, Store, TimeSpan, open_store

Run = Callable[..., Any]

TIERS, SOURCES = unlearnt("tiers"), unlearnt("sources")


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store() as store:
        yield store


@pytest.fixture
def converging(store: Store) -> Store:
    """Five days, one of them silent, on which a model is asked less and less."""
    for day, asked in ((2, 8), (3, 4), (4, 2), (6, 1)):
        for number in range(10):
            decision = TIERS.route_sync("hello" if number % 2 else "Prove the theorem formally")
            at = ms(f"2026-11-{day:02}T{8 + number:02}:00")
            model = {"decided_by": "llm", "outcome": "L-" if number else "Lt"} if number < asked else {}
            backdate(store, decision, at, elapsed_us=100.0 * (number + 1), **model)
    return store


def shown(run: Run, *argv: str) -> str:
    ran = run("stats", *argv)
    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    out: str = ran.out
    return out


def test_shares_over_time(converging: Store, run: Run) -> None:
    out = shown(run, "--by", "day")
    lines = out.splitlines()
    assert lines[0].startswith("tiers · 40 decisions ─")
    days = [line.split() for line in lines if re.match(r"  2026-11-\d\d ", line)]
    assert [(day[0][-2:], day[1], day[-1]) for day in days] == [
        ("02", "10", "80%"),
        ("03", "10", "40%"),
        ("04", "10", "20%"),
        ("05", "·", "·"),
        ("06", "10", "10%"),
    ]
    bars = [day[2] for day in days if len(day) == 4]
    assert len({len(bar) for bar in bars}) == 1
    assert [round(10 * bar.count("▓") / len(bar)) for bar in bars] == [8, 4, 2, 1]
    assert all(re.fullmatch("█*▓*", bar) for bar in bars)
    assert re.search(r"^  all +40  █+▓+ +38%$", out, re.MULTILINE)
    assert "  █ signals 62%   ▓ llm 38%\n" in out
    assert re.search(r"routes +REASONING +20  50%  █{10}\n +SIMPLE +20  50%", out)
    assert re.search(r"outcomes +S- +25  62%  signals, clean", out)
    assert re.search(r"Lt +4  10%  a language model, a layer ran out of time", out)
    assert "latency   p50 500 µs · p90 900 µs · p99 1.0 ms · max 1.0 ms" in out
    assert "money     unknown: nothing was written down about the answers" in out
    assert "waiting" not in out


class AskedCase(NamedTuple):
    id: str
    argv: tuple[str, ...]
    decisions: int
    rows: int
    by: str


ASKED = [
    AskedCase("day", ("--by", "day"), 40, 4, "day"),
    AskedCase("hour", ("--by", "hour"), 40, 40, "hour"),
    AskedCase("week", ("--by", "week"), 40, 1, "week"),
    AskedCase("since", ("--since", "2026-11-04", "--by", "day"), 20, 2, "day"),
    AskedCase("until", ("--until", "2026-11-03", "--by", "day"), 10, 1, "day"),
    AskedCase("profile", ("--profile", "sources", "--by", "day"), 0, 0, "day"),
    AskedCase("tenant", ("--tenant", "acme", "--by", "day"), 1, 1, "day"),
]


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.id)
def test_what_is_asked_for_is_counted(case: AskedCase, converging: Store, run: Run) -> None:
    backdate(converging, TIERS.route_sync(Query("hello", tenant="acme")), ms("2026-11-02"))
    form = json.loads(shown(run, *case.argv, "--json"))
    assert (form["decisions"], len(form["buckets"]), form["by"]) == (case.decisions, case.rows, case.by)
    assert sum(bucket["decisions"] for bucket in form["buckets"]) == case.decisions
    assert form["saved_usd"] is None
    assert form["waiting"]["spool_bytes"] == 0


ZONES = [("UTC", "2026-11-02"), ("America/New_York", "2026-11-01"), ("Asia/Tokyo", "2026-11-02")]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="no tzset here")
@pytest.mark.parametrize(("zone", "day"), ZONES)
def test_a_day_is_a_day_here(
    zone: str, day: str, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    request.addfinalizer(lambda: (monkeypatch.undo(), time.tzset()))
    # Two in the morning in London is still the day before in New York.
    at = int(datetime.fromisoformat("2026-11-02T02:00+00:00").timestamp() * 1000)
    backdate(store, TIERS.route_sync("hello"), at)
    assert f"\n  {day}  " in shown(run, "--by", "day")
    week = shown(run, "--by", "week")
    assert "\n  2026-11-02  " in week if day == "2026-11-02" else "\n  2026-10-26  " in week
    (bucket,) = json.loads(shown(run, "--by", "week", "--json"))["buckets"]
    # Rounded: an hour of summer time may lie between.
    assert (datetime.fromtimestamp(bucket["start_ms"] / 1000) + timedelta(hours=2)).weekday() == 0


class Fit(NamedTuple):
    ago: timedelta
    by: str


@pytest.mark.parametrize(
    "case",
    [Fit(timedelta(minutes=5), "hour"), Fit(timedelta(days=5), "day"), Fit(timedelta(days=90), "week")],
    ids=lambda case: case.by,
)
def test_rows_are_as_long_as_fits(case: Fit, store: Store) -> None:
    backdate(store, TIERS.route_sync("hello"), int((datetime.now() - case.ago).timestamp() * 1000))
    assert fitting(store.records(), TimeSpan(), None) == case.by
    assert fitting(store.records(), TimeSpan(), "sources") == "hour"


def test_a_week_begins_on_a_monday() -> None:
    assert (shift_of("week") - shift_of("day")) / 86_400_000 == 3


def test_old_rows_are_summed_up(store: Store, run: Run) -> None:
    for day in range(40):
        at = int((datetime(2026, 9, 1, 12) + timedelta(days=day)).timestamp() * 1000)
        backdate(store, TIERS.route_sync("hello"), at)
    out = shown(run, "--by", "day")
    assert len(re.findall(r"^  2026-\d\d-\d\d ", out, re.MULTILINE)) == SHOWN
    assert f"and {40 - SHOWN} before that" in out
    # A silence of years is not drawn hour by hour.
    backdate(store, TIERS.route_sync("hello"), ms("2020-01-01"))
    assert len(shown(run, "--by", "hour").splitlines()) < 80


def test_money(store: Store, run: Run) -> None:
    known = {"slot": "simple", "model": "tiny-1", "input_tokens": 1000, "output_tokens": 50}
    outcomes = [
        Outcome(**known, cost_usd=0.25, baseline_usd=1.0, classifier_usd=0.01),
        Outcome(**known, cost_usd=0.25, classifier_usd=0.01),
        Outcome(slot="simple", model="tiny-1", baseline_usd=100.0),
        Outcome("failed", model="big-3"),
    ]
    for outcome in outcomes:
        decision = TIERS.route_sync("hello")
        store.record(decision)
        store.settle(decision, outcome)
    store.flush()
    out = shown(run)
    assert re.search(r"tiny-1 simple +3 +2,000, 100 +\$0\.50", out)
    assert re.search(r"big-3 failed +1 +unknown +unknown", out)
    assert "spent $0.50  known for 2 of 4 answers" in out
    assert "deciding $0.02\n" in out
    # The third has a baseline and no cost: what it saved nobody knows.
    assert "saved $0.74  against the most expensive slot, known for 1 of 4" in out
    form = json.loads(shown(run, "--json"))
    assert form["saved_usd"] == pytest.approx(1.0 - 0.26)


def test_unknown_money_is_not_zero(store: Store, run: Run) -> None:
    decision = TIERS.route_sync("hello")
    store.record(decision)
    store.settle(decision, Outcome())
    store.flush()
    out = shown(run)
    assert re.search(r"unknown +1 +unknown +unknown", out)
    assert "spent unknown\n" in out
    assert "saved unknown\n" in out
    assert "$" not in out


def test_what_waits_and_what_was_refused(converging: Store, run: Run) -> None:
    folder = Path(os.environ["TURNOUT_DB"] + "-spool")
    folder.mkdir(exist_ok=True)
    (folder / "rejected.jsonl").write_text('{"error": "x"}\n{"error": "y"}\n')
    out = shown(run)
    assert "waiting   2 rows no database takes: see" in out
    assert json.loads(shown(run, "--json"))["waiting"]["rejected"] == 2


def test_another_process_that_cannot_write_is_seen(store: Store, run: Run) -> None:
    import sqlite3
    from contextlib import closing

    store.record(TIERS.route_sync("hello"))
    store.flush()
    with closing(sqlite3.connect(os.environ["TURNOUT_DB"], isolation_level=None)) as connection:
        connection.execute("begin immediate")
        store.record(TIERS.route_sync("hello again"))
        out = shown(run)
        connection.execute("rollback")
    assert re.search(r"waiting +[\d,]+ bytes of decisions are not in the database yet", out)


@pytest.mark.alike(3)
@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_it_fits_and_needs_no_colour(
    columns: int, encoding: str, converging: Store, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sources", "assist", "claims"):
        decision = turnout.load(name, config="").route_sync("Will it rain in Paris, and who won the game?")
        backdate(converging, decision, ms("2026-11-06T20:00"))
    ran = process("stats", "--by", "day", COLUMNS=str(columns), PYTHONIOENCODING=encoding)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.decode(encoding).splitlines()
    assert max(map(cell_len, lines)) <= min(columns, 100)
    if encoding == "ascii":
        assert any("#" in line and "%" in line for line in lines)


@pytest.mark.parametrize(
    ("part", "whole", "said"), [(0, 5, "0%"), (1, 1000, "<1%"), (999, 1000, ">99%"), (5, 5, "100%"), (1, 3, "33%")]
)
def test_a_share_is_never_rounded_away(part: int, whole: int, said: str) -> None:
    assert percent(part, whole) == said


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (None, "unknown"),
        (0.0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.0123, "$0.01"),
        (0.00123, "$0.0012"),
        (0.0000004, "$4.0e-07"),
        (-2.5, "-$2.50"),
        (-0.0012, "-$0.0012"),
    ],
)
def test_amounts(amount: float | None, said: str) -> None:
    assert dollars(amount) == said


def test_a_stretch_nobody_knows(run: Run) -> None:
    ran = run("stats", "--by", "month")
    assert ran.code == 2
    assert "month" in ran.err
    assert "week" in ran.err


class Call(NamedTuple):
    """An llm layer's step in a logged decision, and the model that was asked in it."""

    id: str
    outcome: str
    by: str
    step: dict[str, Any]
    asked: dict[str, int]


CALLS = [
    Call("decided", "L-", "llm", {"ended": "accepted", "model": "acme/small"}, {"acme/small": 1}),
    Call("overruled", "Sh", "signals", {"ended": "held", "model": "acme/small"}, {"acme/small": 1}),
    Call("no answer", "Fi", "fallback", {"ended": "invalid", "model": "acme/small"}, {"acme/small": 1}),
    Call("timeout", "Ft", "fallback", {"ended": "timeout"}, {"": 1}),
    Call("from the cache", "C-", "llm", {"ended": "accepted", "model": "acme/small"}, {}),
    Call("not asked", "Fl", "fallback", {"ended": "passed"}, {}),
    Call("breaker open", "Fx", "fallback", {"ended": "breaker"}, {}),
    Call("of an earlier version", "L-", "llm", {"ended": "accepted"}, {"": 1}),
]


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
def test_the_models_that_were_asked_are_counted(case: Call, store: Store, run: Run) -> None:
    decision = TIERS.route_sync("hello")
    body = json.loads(decision.json()) | {"by": case.by, "outcome": case.outcome}
    body["trace"] = [*body["trace"], {"layer": "llm", "kind": "llm.v1", "elapsed_us": 1.0, **case.step}]
    teacher = "SIMPLE" if case.step["ended"] in ("accepted", "held") else None
    logged = {"body": json.dumps(body).encode(), "outcome": case.outcome, "decided_by": case.by, "teacher": teacher}
    backdate(store, decision, ms("2026-11-02"), **logged)
    assert json.loads(shown(run, "--json"))["asked"] == case.asked
    out = shown(run)
    assert ("asked" in out) == bool(case.asked)
    for name, count in case.asked.items():
        assert re.search(rf"asked +{name or 'unknown model'} +{count} +100%", out)
