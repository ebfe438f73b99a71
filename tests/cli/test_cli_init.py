"""`turnout init`: whatever the examples, the profile loads and its golden cases hold, or it is said which cannot."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout
from turnout.config.cases import read_cases, run_cases
from turnout.config.propose import RouteExample, log_odds, propose, read_features
from turnout.config.starter import DEMONSTRATION, make_starter, slugs

Run = Callable[..., Any]

EXAMPLES = [
    {"text": "I want a refund for my order", "route": "billing"},
    {"text": "The invoice is wrong, I want a refund", "route": "billing"},
    {"text": "The app crashes at login", "route": "technical"},
    {"text": "Login fails with an error", "route": "technical"},
    {"text": "Can you help me?", "route": "billing"},
    {"text": "Can you help me?", "route": "technical"},
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(rows: list[dict[str, str]]) -> str:
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "examples.jsonl"


def check(run: Run, name: str) -> str:
    ran = run("check", f"{name}.toml", "--cases")
    assert ran.code == 0, ran.out
    return str(ran.out)


def test_the_demonstration_works(run: Run) -> None:
    ran = run("init", "demo")
    assert ran.code == 0
    assert "a demonstration" in ran.out
    out = check(run, "demo")
    assert f"must      {len(DEMONSTRATION)} of {len(DEMONSTRATION)} hold" in out
    assert "coverage  3 of 3" in out
    assert turnout.load("demo.toml").route_sync("where is my refund").route == "billing"
    assert turnout.load("demo.toml").route_sync("zxcv").outcome == "Fl"


def test_from_examples(run: Run) -> None:
    ran = run("init", "desk", "--from", write(EXAMPLES))
    assert ran.code == 0
    assert "desk.toml  2 routes" in ran.out
    assert "6 golden cases, 5 of them must hold" in ran.out
    assert "1 of the examples cannot be told apart" in ran.out
    assert "“Can you help me?” is technical, decided as billing" in ran.out
    check(run, "desk")
    cases = read_cases(Path("desk.cases.jsonl"))
    assert [case.id for case in cases][:3] == ["billing-1", "billing-2", "technical-1"]
    (soft,) = [case for case in cases if not case.must]
    assert soft.why.startswith("the proposed phrases cannot tell this from billing")
    signals = tomllib.loads(Path("desk.toml").read_text())["layers"][1]["signals"]
    words = {signal["id"]: signal["words"] for signal in signals}
    assert words["billing"][0] == "refund", "in two examples of this route and none of the other"
    assert "login" in words["technical"]
    assert "want" not in words["billing"], "a stop word"
    explained = turnout.load("desk.toml").route_sync("my login is broken")
    assert (explained.route, explained.outcome) == ("technical", "S-")


def test_route_options_and_one_route(run: Run) -> None:
    ran = run("init", "one", "--route", "billing=I want a refund = now", "--route", "billing=who are you")
    assert ran.code == 0
    router = turnout.load("one.toml")
    assert router.profile.routes == ("billing", "other")
    assert router.route_sync("zxcv").route == "other"
    assert router.route_sync("so who are you then").route == "billing", "a run of stop words where there is no other"
    assert json.loads(Path("one.cases.jsonl").read_text().splitlines()[0])["text"] == "I want a refund = now"
    check(run, "one")


def test_both_sources_and_stdin_and_a_folder(run: Run) -> None:
    stdin = b'\xef\xbb\xbf{"text":"crash","route":"b"}\n\n{"text":"refund","route":"a"}\n'
    ran = run("init", "both", "--route", "a=refund", "--from", "-", "-o", "new/folder", stdin=stdin)
    assert ran.code == 0, ran
    assert len(read_cases(Path("new/folder/both.cases.jsonl"))) == 2, "the same example twice is one"
    check(run, "new/folder/both")


def test_nothing_is_overwritten_unasked(run: Run) -> None:
    Path("demo.cases.jsonl").write_text("mine")
    ran = run("init", "demo")
    assert ran.code == 2
    assert "demo.cases.jsonl would be overwritten" in ran.err
    assert not Path("demo.toml").exists()
    assert Path("demo.cases.jsonl").read_text() == "mine"
    assert run("init", "demo", "--force").code == 0
    first = Path("demo.toml").read_bytes(), Path("demo.cases.jsonl").read_bytes()
    assert run("init", "demo", "--force").code == 0
    assert (Path("demo.toml").read_bytes(), Path("demo.cases.jsonl").read_bytes()) == first, "the same every time"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("tiers",), "the name of a shipped profile"),
        (("a/b",), "is no name"),
        (("x.toml",), "is no name"),
        (("x", "--route", "nonsense"), "write ROUTE=QUESTION"),
        (("x", "--route", "=question"), "is no name for a route"),
        (("x", "--route", "a= "), "the question is blank"),
        (("x", "--route", "a\tb=c"), "is no name for a route"),
        (("x", "--from", "none.jsonl"), "none.jsonl: No such file"),
        (("x", "--from", "empty.jsonl"), "no examples in it"),
        (("x", "--from", "bad.jsonl"), "bad.jsonl:2: no field 'route', did you mean 'rout'?"),
        (("x", "--route", "a=one", "--route", "A=two"), "differ only in case"),
        ((), "NAME requires an argument"),
    ],
    ids=str,
)
def test_refused(argv: tuple[str, ...], said: str, run: Run) -> None:
    Path("empty.jsonl").write_text("\n")
    Path("bad.jsonl").write_text('{"text":"a","route":"b"}\n{"text":"a","rout":"b"}\n')
    ran = run("init", *argv)
    assert ran.code == 2
    assert said in ran.err
    assert not list(Path().glob("*.toml"))


def test_a_long_list_is_cut(run: Run) -> None:
    rows = [{"text": f"the {n}", "route": route} for n in range(15) for route in ("a", "b", "c")]
    ran = run("init", "same", "--from", write(rows))
    assert "30 of the examples cannot be told apart" in ran.out
    assert "and 10 more" in ran.out
    check(run, "same")


def test_an_empty_pipe(run: Run) -> None:
    assert "stdin: no examples in it" in run("init", "x", "--from", "-", stdin=b"").err
    assert "stdin:1: not a JSON object" in run("init", "x", "--from", "-", stdin=b"x").err


def test_odd_names_of_routes(run: Run) -> None:
    rows = [
        {"text": f"word{n} thing{n}", "route": route}
        for n, route in enumerate(("a b", "a-b", "é\"'", "日本", "a-b.hint"))
    ]
    assert run("init", "odd", "--from", write(rows)).code == 0
    check(run, "odd")
    names = slugs(("a b", "a-b", "a.hint", "A-B", "日本", "!"))
    assert list(names.values()) == ["a-b", "a-b-2", "a-hint", "A-B", "route", "route-2"]


def test_features() -> None:
    plain, runs = read_features("What is the Refund policy, 2024? Don’t ask")
    assert {"refund", "policy", "refund policy", "the refund"} <= plain
    assert "policy 2024" not in plain, "a comma stands between"
    assert plain.isdisjoint({"what", "is", "2024", "what is"})
    assert {"what is", "what is the", "is the"} <= runs


def test_odds_and_order() -> None:
    assert log_odds(2, 2, 0, 4) > log_odds(1, 2, 0, 4) > 0 > log_odds(0, 2, 1, 4)
    assert log_odds(1, 2, 2, 4) == pytest.approx(0)
    examples = [
        RouteExample("red train north", "a"),
        RouteExample("red train station", "a"),
        RouteExample("red train", "a"),
        RouteExample("blue train", "b"),
        RouteExample("blue boat", "b"),
        RouteExample("blue ship", "b"),
    ]
    found = propose(examples, ("a", "b"))
    assert found["a"].telling[0] == "red"
    assert found["a"].leaning == ("train",), "in all of one route and one of the other"
    assert "train" not in found["b"].telling + found["b"].leaning


WORDS = st.sampled_from(["the", "how", "is", "who", "you", "refund", "order", "order's", "日本", "é!", "12", "-", "\n"])
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join).filter(str.strip)
ROUTES = st.sampled_from(("x", "y", "z z", "x.hint"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(RouteExample, TEXTS.map(str.strip), ROUTES), min_size=1, max_size=8, unique=True))
def test_every_case_that_must_hold_does(examples: list[RouteExample]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starter = make_starter("any", examples, "any.cases.jsonl")
        (folder / "any.toml").write_text(starter.profile)
        (folder / "any.cases.jsonl").write_text(starter.cases)
        cases = read_cases(folder / "any.cases.jsonl")
        results = list(run_cases(turnout.load(folder / "any.toml", config=""), cases))
    assert len(results) == len(examples)
    assert all(not result.misses for result in results if result.case.must)
    assert all(result.misses for result in results if not result.case.must)
    assert make_starter("any", examples, "any.cases.jsonl") == starter
