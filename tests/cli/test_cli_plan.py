"""`turnout explain --plan`: one branch for each part, whatever the profile; a question that is not split has one."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.cli.draw import plan
from turnout.cli.draw.screen import PLAIN, console
from turnout.config.load import shipped
from turnout.core.policy import Policy
from turnout.core.profile import Part
from turnout.core.query import Query, Reading
from turnout.core.router import Router
from turnout.core.verdict import Reason, Verdict
from turnout.explain.explanation import explain
from turnout.testing import make_router

Run = Callable[..., Any]
ROUTES = ("weather", "news", "other")


def judge(reading: Reading) -> Verdict | None:
    """Names the route whose name is in the text."""
    found = tuple(route for route in ROUTES if route in reading.folded)
    return Verdict(found, 0.9, reasons=(Reason("toy.name", f"names {found[0]}"),)) if found else None


def split(reading: Reading) -> tuple[Part, ...]:
    """`condition, consequence; remainder`, and `a and b` as two parts."""
    if reading.folded.startswith("if "):
        condition, _, rest = reading.words.removeprefix("if ").partition(", ")
        then, _, remainder = rest.partition("; ")
        parts = (Part("condition", Query(condition), then), Part("remainder", Query(remainder)))
        return parts if remainder else parts[:1]
    pieces = reading.words.split(" and ")
    return tuple(Part("part", Query(piece)) for piece in pieces) if len(pieces) > 1 else ()


@pytest.fixture
def router(monkeypatch: pytest.MonkeyPatch) -> Router:
    policies = {"weather": Policy(sources=("forecast", "radar")), "news": Policy(sources=("wire", "radar"))}
    toy = make_router([judge], ROUTES, name="toy", split=split, policies=policies)
    monkeypatch.setattr("turnout.cli.question.load_profile", lambda *_, **__: toy.profile)
    return toy


def lines(out: str) -> list[str]:
    return [line.rstrip() for line in out.splitlines()]


def test_a_condition_and_a_remainder(router: Router, run: Run) -> None:
    ran = run("explain", "--plan", "if the weather is bad, stay in; read the news")
    assert ran.code == 0
    assert lines(ran.out)[2:] == [
        "  “if the weather is bad, stay in; read the news”",
        "  │",
        "  ├─ condition  “the weather is bad”",
        "  │             → weather  score 0.90 · by layer0 · R- (a hard rule, clean)",
        "  │             sources forecast, radar",
        "  │             names weather",
        "  │             then “stay in”",
        "  │",
        "  ╰─ remainder  “read the news”",
        "                → news  score 0.90 · by layer0 · R- (a hard rule, clean)",
        "                sources wire, radar",
        "                names news",
    ]


def test_parts_side_by_side(router: Router, run: Run) -> None:
    out = run("explain", "--plan", "the weather news and zxcv").out
    assert "├─ part  “the weather news”" in out
    assert "→ weather + news" in out
    assert "sources forecast, radar, wire" in out
    assert "╰─ part  “zxcv”" in out
    assert "by fallback" in out


def test_a_question_without_parts_is_the_whole(router: Router, run: Run) -> None:
    out = run("explain", "--plan", "the weather").out
    assert "╰─ whole  → weather" in out
    assert out.count("the weather") == 1


def test_one_part_keeps_its_role(router: Router, run: Run) -> None:
    assert "╰─ condition  “the weather is bad”" in run("explain", "--plan", "if the weather is bad, stay in").out


def test_json_is_the_decision(router: Router, run: Run) -> None:
    found = json.loads(run("explain", "--plan", "weather and news", "--json").out)
    assert [part["role"] for part in found["parts"]] == ["part", "part"]
    assert found.keys() == router.route_sync("x").to_dict().keys()


def test_hostile_words_are_shown(router: Router, run: Run) -> None:
    out = run("explain", "--plan", "weather \x1b[31m\u202e and " + "news " * 2000).out
    assert "␛[31m\ufffd" in out
    assert "\x1b" not in out
    assert "…”" in out
    assert max(map(len, out.splitlines())) <= 80


def test_plain_signs(router: Router) -> None:
    screen = console()
    with screen.capture() as captured:
        screen.print(plan.tree(explain(router.route_sync("weather and news")), PLAIN), width=80)
    assert captured.get().isascii()
    assert "|- part" in captured.get()
    assert "`- part" in captured.get()


@pytest.mark.parametrize("name", shipped())
def test_every_profile_has_a_plan(name: str, run: Run) -> None:
    ran = run("explain", "--plan", "Define entropy and explain why it grows", "-p", name)
    assert ran.code == 0
    assert turnout.load_profile(name, config="").hash in ran.out
    assert "╰─ " in ran.out


def test_nothing_asked(run: Run) -> None:
    assert "no question" in run("plan").err
    assert "(a blank question)" in run("explain", "--plan", "").out
