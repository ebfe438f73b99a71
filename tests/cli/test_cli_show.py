"""`turnout show`: the picture of a logged decision is the one `explain` drew, and below it stands what became of it."""

import io
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

import turnout
from old_rows import backdate, ms
from toml_router import unlearnt
from turnout import Query
from turnout.cli.draw.picture import picture
from turnout.cli.draw.screen import PLAIN, Glyphs
from turnout.config.load import shipped
from turnout.explain.explanation import Explanation, explain, explain_logged
from turnout.store import Outcome, Store, open_store

Run = Callable[..., Any]

ROUTERS = {name: turnout.load(name, config="") for name in shipped()}
TEXTS = (
    "Write a function that returns JSON and a test for it",
    "Define entropy",
    "Will it rain in Paris, and who won the game?",
    "zxcv",
    "",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store() as store:
        yield store


def drawn(decision: Explanation, width: int = 80, glyphs: Glyphs = Glyphs()) -> str:  # noqa: B008
    file = io.StringIO()
    Console(file=file, width=width, highlight=False, color_system=None).print(
        picture(decision, glyphs, width), width=width
    )
    return file.getvalue()


def spoil(statement: str) -> None:
    """Change the log behind our back."""
    with closing(sqlite3.connect(os.environ["TURNOUT_DB"])) as connection:
        connection.execute(statement)
        connection.commit()


def told(picture: str) -> str:
    """A picture without what takes asking its layers again."""
    lines = re.sub(r"(what if +).*?(?=\n\S|\n  logged|\n\n|\Z)", r"\1", picture, flags=re.DOTALL).splitlines()
    return "\n".join(lines).strip()


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12] or "blank")
@pytest.mark.parametrize("name", shipped())
def test_the_picture_is_the_one_that_explain_draws(name: str, text: str, store: Store, run: Run) -> None:
    decision = ROUTERS[name].route_sync(text)
    store.record(decision)
    store.flush()
    ran = run("show", decision.id)
    assert (ran.code, ran.err) == (0, "")
    assert told(ran.out.partition("  logged ")[0]) == told(drawn(without_details(explain(decision))))
    assert f"· {decision.id}\n  happened  not recorded\n" in ran.out


def without_details(explained: Explanation) -> Explanation:
    trace = tuple(replace(step, details=()) for step in explained.trace)
    return replace(explained, trace=trace, parts=tuple(map(without_details, explained.parts)))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12] or "blank")
@pytest.mark.parametrize("name", shipped())
def test_what_was_recorded_can_be_drawn(name: str, text: str, store: Store) -> None:
    decision = ROUTERS[name].route_sync(text)
    store.record(decision)
    recorded = explain_logged(store.records().get(decision.id))
    for width, glyphs in ((80, Glyphs()), (50, PLAIN)):
        out = drawn(recorded, width, glyphs)
        assert all(cell_len(line) <= width for line in out.splitlines())
        for wanted in (decision.profile.hash, *decision.routes, *(step.place.id for step in decision.steps)):
            assert wanted in out
    for reason in (reason for step in decision.steps for reason in step.reasons if reason.code != "gate.held"):
        assert reason.text.split(" (")[0] in " ".join(drawn(recorded).replace("│", " ").split())
    if decision.steps:
        assert "what if  not in the log" in drawn(recorded)


class RecordedCase(NamedTuple):
    id: str
    change: str
    says: tuple[str, ...]


BARE = ("code (function, return)", "score 0.65")
BARS = ("code (function, return) +0.140", "SIMPLE MEDIUM COMPLEX REASONING")
RECORDED = [
    RecordedCase("profile", "delete from profiles", (*BARE, "code (function, return) +0.140")),
    RecordedCase("patterns", "update profiles set patterns = null", (*BARE, *BARS)),
    RecordedCase(
        "hash",
        "update decisions set question = null, kept = 'hash', digest = 'abcdef0123'",
        (*BARE, *BARS, "(a question whose text was not kept)", "(hash abcdef01…)"),
    ),
    RecordedCase(
        "earlier version",
        "update decisions set body = json_remove(body, '$.hits', '$.trace[2].verdict.adds', '$.remark_count')",
        (*BARE, "SIMPLE MEDIUM COMPLEX REASONING"),
    ),
]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.id)
def test_a_row_is_drawn_with_what_it_has(case: RecordedCase, run: Run) -> None:
    run("route", "Write a function that returns JSON and a test for it", "-p", "tiers-seed")
    spoil(case.change)
    ran = run("show")
    assert ran.code == 0
    told = " ".join(ran.out.split())
    for wanted in case.says:
        assert wanted in told


def test_what_became_of_it(store: Store, run: Run) -> None:
    decision = ROUTERS["assist"].route_sync(
        Query("What is my quota?", tenant="acme", session="chat \x1b[1m7", declared="PLATFORM")
    )
    store.record(decision)
    outcome = Outcome(
        slot="fast",
        model="tiny-1",
        attempts=2,
        input_tokens=1200,
        output_tokens=34,
        cost_usd=0.00123,
        baseline_usd=0.5,
        classifier_usd=0.0,
        retrieval=True,
        fallback="the first provider \x1b[31mtimed out",
        cap_reached="tokens",
        elapsed_ms=1234.5,
        sources=("docs", "wiki"),
        extra={"reformulated_question": "quota?", "candidates": [1, 2]},
    )
    store.settle(decision, outcome)
    store.flush()
    run("feedback", "last", "retrieval", "--tenant", "acme", "--by", "anna", "--note", "it was\x1b about tables")
    run("feedback", "last", "right", "--tenant", "acme", "--by", "bob")
    ran = run("show", "--tenant", "acme")
    told = " ".join(ran.out.split())
    for wanted in (
        "tenant acme · session chat ␛[1m7",
        "happened answered · model tiny-1 · slot fast · 2 attempts",
        "tokens in 1,200 · tokens out 34 · cost $0.0012 · deciding $0.00 · with the most expensive slot $0.50",
        "retrieval yes · sources docs, wiki · fallback the first provider ␛[31mtimed out · cap reached tokens",
        "reformulated_question quota?",
        "candidates [1,2]",
        "feedback should be RETRIEVAL “it was␛ about tables” by anna",
        "right by bob",
        "breach RC-04",
        "noticed at the outcome",
    ):
        assert wanted in told
    assert "\x1b" not in ran.out
    form = json.loads(run("show", "--tenant", "acme", "--json").out)
    assert list(form) == ["decision", "logged", "outcome", "feedback", "breaches"]
    assert form["decision"] == decision.to_dict()
    assert (form["logged"]["tenant"], form["logged"]["outcome"]) == ("acme", decision.outcome)
    assert form["outcome"]["cost_usd"] == 0.00123
    assert [word["should_be"] for word in form["feedback"]] == ["RETRIEVAL", None]
    assert "RC-04" in {breach["rule"] for breach in form["breaches"]}


def test_breaches_of_parts_and_parts_themselves(store: Store, run: Run) -> None:
    decision = unlearnt("sources").route_sync("Will it rain in Paris, and who won the game?")
    store.record(decision)
    store.flush()
    part = decision.parts[1]
    out = run("show", part.id).out
    assert "“who won the game?”" in out
    assert f"a part of {decision.id}" in out
    assert "web (who won)" in out


def test_nobody_knows_is_not_zero(store: Store, run: Run) -> None:
    decision = ROUTERS["tiers"].route_sync("hello")
    store.record(decision)
    store.settle(decision, Outcome("failed"))
    store.flush()
    out = run("show").out
    assert "  happened  failed\n" in out
    assert "$" not in out
    assert "tokens" not in out.partition("logged")[2]


# --- which decision


class NamedCase(NamedTuple):
    id: str
    ident: Callable[[str], str]


@pytest.mark.parametrize(
    "case",
    [
        NamedCase("whole", lambda ident: ident),
        NamedCase("beginning", lambda ident: ident[:-1]),
        NamedCase("ending", lambda ident: ident[-8:]),
        NamedCase("lower case", lambda ident: ident[-8:].lower()),
        NamedCase("last", lambda _: "last"),
    ],
    ids=lambda case: case.id,
)
def test_a_decision_has_many_names(case: NamedCase, run: Run) -> None:
    run("route", "something else")
    ident = json.loads(run("route", "hello", "--json").out)["id"]
    assert json.loads(run("show", case.ident(ident), "--json").out)["decision"]["id"] == ident


class Unknown(NamedTuple):
    id: str
    argv: tuple[str, ...]
    said: str


UNKNOWN = [
    Unknown("nobody's", ("01ARZ3NDEKTSV4RRFFQ69G5FAV",), "no decision '01ARZ3NDEKTSV4RRFFQ69G5FAV' (see turnout log)"),
    Unknown("short", ("K",), "no decision 'K'"),
    Unknown("like", ("%%%%",), "no decision '%%%%'"),
    Unknown("like-one", ("____",), "no decision '____'"),
    Unknown("quote", ("' or 1=1 --",), """no decision "' or 1=1 --\""""),
    Unknown("several", ("01M7",), "'01M7' is the beginning of several ids: write more of it"),
    Unknown("several ends", ("AA00",), "'AA00' is the ending of several ids: write more of it"),
    Unknown("tenant", ("last", "--tenant", "nobody"), "no decision 'last' of tenant 'nobody'"),
]


@pytest.mark.parametrize("case", UNKNOWN, ids=lambda case: case.id)
def test_a_decision_that_is_not_there(case: Unknown, store: Store, run: Run) -> None:
    for number in range(2):
        decision = ROUTERS["tiers"].route_sync("hello")
        backdate(store, decision, ms("2026-11-01"), id=f"01M7F33XHH8CEE41X26YF{number}AA00")
    ran = run("show", *case.argv)
    assert (ran.code, ran.out) == (2, "")
    assert case.said in ran.err


def test_without_a_log(run: Run) -> None:
    for argv in (("show",), ("feedback", "last", "right"), ("stats", "--json")):
        ran = run(*argv)
        assert (ran.code, ran.out) == (2, "")
        assert re.match(r"turnout: \S+/turnout\.db: no decision log here yet: turnout route", ran.err)
