"""The picture: complete, aligned, as wide as it may be, and the same without colour or line drawing."""

import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import turnout
from turnout import Decision, Query, Reason, Step
from turnout.cli.draw.picture import elapsed, picture, summary
from turnout.cli.draw.screen import PLAIN, Glyphs, visible
from turnout.cli.draw.shape import style_of
from turnout.config.load import shipped
from turnout.core.profile import Part
from turnout.core.verdict import Fault, How, Who
from turnout.explain.explanation import HOW, WHO, explain, spell

ROUTERS = {name: turnout.load(name, config="") for name in shipped()}
TIERS, STUDY = ROUTERS["tiers-seed"], ROUTERS["study-seed"]


def drawn(decision: Decision, width: int = 80, glyphs: Glyphs = Glyphs(), *, color: bool = False) -> str:  # noqa: B008
    file = io.StringIO()
    console = Console(
        file=file, width=width, highlight=False, force_terminal=color, color_system="standard" if color else None
    )
    console.print(picture(explain(decision), glyphs, width), width=width)
    return file.getvalue()


def replaced(decision: Decision, **fields: object) -> Decision:
    return msgspec.structs.replace(decision, **fields)


HELD = TIERS.route_sync("Write a function to sort an array")
CLAMPED = TIERS.route_sync(Query("Prove the theorem step by step", ceiling="MEDIUM"))
RANKED = STUDY.route_sync("Explain what complexity means in the definition on the far right")
BLANK = ROUTERS["tiers"].route_sync("  ")
FAILED = replaced(
    HELD,
    steps=(
        Step(HELD.steps[0].place, "passed", elapsed_ns=900),
        Step(HELD.steps[1].place, "timeout", elapsed_ns=350_000_000, fault=Fault("timeout", "no answer within 350 ms")),
        Step(HELD.steps[2].place, "error", elapsed_ns=12_000, fault=Fault("error", "ValueError: \x1b]0;evil")),
    ),
    outcome="Fe",
    remarks=(Reason("fallback.low_conf", "fallback:low_conf(signals=na)"), Reason("scan.window", "very long")),
)
WHOLE = Decision(
    TIERS.profile,
    Query("one and two"),
    ("MEDIUM", "REASONING"),
    0.5,
    0.0,
    "parts",
    "Fl",
    remarks=(Reason("split.parts", "2 parts, each decided on its own"),),
    parts=(replaced(HELD, part=Part("condition", Query("x"))), CLAMPED),
)


class Case(NamedTuple):
    id: str
    decision: Decision
    says: tuple[str, ...]


CASES = [
    Case(
        "held",
        HELD,
        (
            f"tiers-seed · {TIERS.profile.hash} ─",
            "“Write a function to sort an array”",
            "MEDIUM   score 0.50 · by fallback",
            "F the fallback · l every verdict was below its gate",
            "○   declared  passed",
            "◐   signals   held       MEDIUM",
            "short (8 tokens)    −0.080  █████████│",
            "code (function)     +0.070           │████████",
            "sum  +0.015",
            "SIMPLE           MEDIUM            COMPLEX            REASONING",
            "┼─●─",
            "0.00            0.15                 0.35",
            "score  0.54  ━━━━━━━━━━━━━╌╌╌╌┃╌╌╌╌╌╌  needs 0.70 ✗",
            "ambiguous (conf=0.54) → needs LLM classification",
            "╰─▶ fallback             MEDIUM  fallback:low_conf(signals=0.54,llm=na)",
            "policy   model medium · chain MEDIUM → COMPLEX",
            "what if  MEDIUM  whichever one signal is left out",
        ),
    ),
    Case(
        "clamped",
        CLAMPED,
        (
            "Sk",
            "k clamped to the caller's ceiling",
            "●─▶ signals   accepted   REASONING",
            "reasoning override (3 markers)",
            "decisive: no gate applies",
            "·   llm       not asked",
            "also     REASONING is above this caller's ceiling MEDIUM",
        ),
    ),
    Case(
        "ranked",
        RANKED,
        (
            "place on the page “on the far right”",
            "adds to the winner",
            "page_grounded_definition  1.173  ████████████████████████",
            "standalone_definition     0.280  █████▌",
            "score   0.86",
            "margin  0.28  ━━━━━┃━╌",
            "needs 0.20 ✓",
            "image yes · history yes · history_turns 2 · memory no",
            "standalone_definition 0.50  without",
        ),
    ),
    Case("blank", BLANK, ("(a blank question)", "N no layer was asked", "·   signals   not asked", "╰─▶ default")),
    Case(
        "failed",
        FAILED,
        ("✕   rules     timeout    no answer within 350 ms", "350.0 ms", "ValueError: ␛]0;evil", "also     very long"),
    ),
    Case("parts", WHOLE, ("MEDIUM + REASONING", "2 parts, each", "condition 1", "part 2", "│  ◐   signals   held")),
]
WIDTHS = (40, 57, 80, 100)


def test_every_part_of_a_question_is_drawn() -> None:
    decision = ROUTERS["sources"].route_sync("If it rains in Paris, cancel the picnic and check the news")
    text = drawn(decision)
    for part in decision.parts:
        assert f"“{part.query.text}”" in text
    for wanted in ("condition 1", f"then “{decision.parts[0].then}”", "remainder 2", "what if"):
        assert wanted in text, text
    assert decision.parts[0].then
    assert text.count("policy ") == len(decision.parts) == 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_picture_says(case: Case) -> None:
    text = drawn(case.decision)
    for wanted in case.says:
        assert wanted in text, text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_picture_keeps_its_width(case: Case, width: int) -> None:
    lines = drawn(case.decision, width).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_colour_only_repeats(case: Case) -> None:
    plain = drawn(case.decision)
    coloured = drawn(case.decision, color=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b[" in coloured


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_ascii_signs(case: Case) -> None:
    # What reasons themselves say is theirs; every sign of ours must be ASCII.
    text = drawn(case.decision, glyphs=PLAIN).replace("→", "").replace("…", "").replace("␛", "")
    assert text.isascii()


def test_glyph_sets_differ_everywhere_it_matters() -> None:
    assert all(sign.isascii() for sign in (*PLAIN._replace(quotes=("", "")),) if isinstance(sign, str))


def test_every_outcome_is_spelled_out() -> None:
    assert WHO.keys() == set(get_args(Who))
    assert HOW.keys() == set(get_args(How))
    assert spell("Fl") == ("the fallback", "every verdict was below its gate")
    assert [style_of(outcome) for outcome in ("S-", "Fl", "Ft")] == ["bold green", "bold yellow", "bold red"]


def test_summary_names_confidence_only_when_calibrated() -> None:
    first, second = summary(HELD, Glyphs())
    assert first.plain.startswith("MEDIUM  score 0.50  by fallback  Fl (the fallback, ")
    assert "code (function)" in second.plain
    step = RANKED.chosen
    assert step is not None
    assert step.verdict is not None
    fitted = msgspec.structs.replace(
        step, verdict=msgspec.structs.replace(step.verdict, calibrated=True, _encoded=None)
    )
    calibrated = replaced(RANKED, chosen=fitted, steps=(*RANKED.steps[:-1], fitted))
    assert "confidence 0.86" in summary(calibrated, Glyphs())[0].plain
    assert "confidence  0.86" in drawn(calibrated)


class Time(NamedTuple):
    id: str
    us: float
    text: str


TIMES = [
    Time("tiny", 1.482, "1.5 µs"),
    Time("small", 48.783, "49 µs"),
    Time("ms", 3_300.0, "3.3 ms"),
    Time("s", 2_500_000.0, "2.5 s"),
]


@pytest.mark.parametrize("case", TIMES, ids=lambda case: case.id)
def test_elapsed(case: Time) -> None:
    assert elapsed(case.us, Glyphs()) == case.text


@pytest.mark.alike(3)
@pytest.mark.parametrize("name", ROUTERS)
@settings(max_examples=25, deadline=None)
@given(text=st.text(st.characters(), max_size=60) | st.sampled_from(["step 1. prove it", "a" * 5000, "e\u0301" * 300]))
def test_any_text_can_be_drawn(name: str, text: str) -> None:
    decision = ROUTERS[name].route_sync(text)
    out = drawn(decision, 60)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", out)
    assert decision.route in out.replace("\n", "") or decision.route[:8] in out


@given(st.text(st.characters()))
def test_visible_keeps_length_and_is_printable(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", shown)


def test_a_narrow_terminal_cuts_no_number(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    out = run("explain", "Define entropy", "-p", "study-seed").out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "score 0.94 needs 0.75 ✓" in lines
    assert "margin 0.38 needs 0.20 ✓" in lines
    assert any(" 0.616 " in line for line in lines)
    assert any("+0.616 │" in line and "definit" in line for line in lines)
    assert max(map(len, out.splitlines())) <= 30
