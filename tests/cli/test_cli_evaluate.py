"""`turnout evaluate`: figures that can be counted by hand, and two models on the same questions."""

import json
import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from cli_toy import toy_kind, write_world
from turnout.learn.dataset import read_examples, row_key
from turnout.learn.fit import fit
from turnout.learn.registry import write_artefact

Run = Callable[..., Any]

ROWS = [
    ("n1 A 0.9", "A"),
    ("n2 A 0.9", "A"),
    ("n3 A 0.8", "B"),
    ("n4 B 0.6", "B"),
    ("n5 B 0.4", "A"),
    ("n6 B 0.4", "B"),
    ("n7 A 0.7", "oos"),
    ("always 1", "B"),
    ("always 2", "A"),
    ("nothing", "A"),
]


@pytest.fixture(autouse=True)
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with toy_kind():
        write_world(Path(), rows=100)
        rows = [{"text": text, "label": label} for text, label in ROWS]
        Path("ten.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        yield


def test_by_hand(run: Run) -> None:
    ran = run("evaluate", "ten.jsonl", "-p", "toy.toml", "--json")
    assert ran.code == 0, ran
    (form,) = json.loads(ran.out)["evaluations"]
    rules, toy = form["layers"]
    assert (rules["answered"], rules["right"], rules["accepted"], rules["ece"]) == (2, 1, 2, None)
    assert (toy["answered"], toy["right"], toy["accepted"], toy["accepted_right"]) == (7, 4, 5, 3)
    # Right 0.9 0.9 0.6 0.4, wrong 0.8 0.4 0.7: of 12 pairs 3+3+1+0.5 are in order.
    assert toy["auroc"] == pytest.approx(7.5 / 12)
    assert toy["coverage_at_98"] == pytest.approx(0.2)
    cascade = form["cascade"]
    assert (cascade["rows"], cascade["decided"], cascade["right"]) == (10, 7, 4)
    assert cascade["goes_on"] == pytest.approx(0.3)
    assert cascade["p50_us"] > 0
    assert form["out_of_scope"] == {"oos": 1}
    confusion = dict(zip(form["confusion"]["labels"], form["confusion"]["counts"], strict=True))
    assert form["confusion"]["labels"] == ["A", "B", "(goes on)", "oos"]
    assert confusion["A"] == [2, 1, 2, 0]
    assert confusion["B"] == [1, 2, 1, 0]
    assert confusion["oos"] == [1, 0, 0, 0]


def test_on_the_screen(run: Run) -> None:
    ran = run("evaluate", "ten.jsonl", "-p", "toy.toml")
    assert ran.code == 0, ran
    assert "10 questions" in ran.out
    assert "labels that are no route count as out of scope: oos 1" in ran.out
    assert "local layers decide 70.0%, 57.14% of that right" in ran.out
    assert "30.0% go on" in ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["B", "1", "2", "1"] in lines


def test_many_labels_become_a_list(run: Run) -> None:
    routes = [f"R{number}" for number in range(14)]
    text = Path("toy.toml").read_text().replace('routes = ["A", "B"]', f"routes = {json.dumps(routes)}")
    text = text.replace('route = "A"', 'route = "R0"').replace('route = "B"', 'route = "R1"')
    text = text.replace("[policy.A]\n[policy.B]\n", "".join(f"[policy.{route}]\n" for route in routes))
    Path("toy.toml").write_text(text)
    rows = [{"text": f"n{n} {routes[n % 14]} 0.9", "label": routes[(n + (n % 7 == 0)) % 14]} for n in range(98)]
    Path("many.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = run("evaluate", "many.jsonl", "-p", "toy.toml")
    assert ran.code == 0, ran
    assert "7  R1 → R0" in ran.out


def test_a_card(run: Run) -> None:
    ran = run("evaluate", "labels.jsonl", "-p", "toy.toml", "--card", "card.html")
    assert ran.code == 0, ran
    text = Path("card.html").read_text()
    ElementTree.fromstring(text)  # noqa: S314 - our own
    assert "toy · toy" in text
    assert "a score, no probability" in text


def test_nothing_is_known_of_held_out_questions(run: Run) -> None:
    ran = run("evaluate", "-p", "toy.toml")
    assert ran.code == 2
    assert "nothing is known of questions held out" in ran.err


STUDENT = """\
name = "pets"
routes = ["cat", "dog"]
fallback = { route = "cat" }

[[layers]]
id = "student"
kind = "student.v1"
accept = { confidence = 0.6 }

[policy.cat]
[policy.dog]
"""


def pets(folder: str, count: int, seed: int, muddled: float = 0.0) -> list[dict[str, str]]:
    draw = random.Random(seed)
    words = {"cat": ["purr", "meow", "whiskers", "litter", "tabby"], "dog": ["bark", "woof", "leash", "fetch", "puppy"]}
    rows = []
    for number in range(count):
        label = "cat" if number % 2 else "dog"
        text = f"{draw.choice(words[label])} {draw.choice(words[label])} {draw.choice('abcdefgh')} {folder}{number}"
        said = label if draw.random() >= muddled else ("dog" if label == "cat" else "cat")
        rows.append({"text": text, "label": said})
    return rows


def test_two_students_on_the_same_questions(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pets.toml").write_text(STUDENT)
    Path("judge.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in pets("judge", 200, 9)))
    for name, muddled in (("old", 0.35), ("new", 0.0)):
        rows = pets(name, 60, 1, muddled)
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        fitted = fit(read_examples(f"{name}.jsonl").rows, labels=("cat", "dog"), seed=0)
        write_artefact(Path(name), replace(fitted.draft, profile="pets"), fitted.arrays)
    ran = run("evaluate", "judge.jsonl", "-p", "pets.toml", "--model", "old", "--model", "new", "--json")
    assert ran.code == 0, ran
    form = json.loads(ran.out)
    first, second = form["evaluations"]
    assert first["models"] != second["models"]
    assert second["layers"][0]["calibrated"] is True
    assert second["layers"][0]["right"] >= first["layers"][0]["right"]
    assert form["compared"]["layer"]["count"] == 200
    cascade = form["compared"]["cascade"]
    assert cascade["wins"] >= cascade["losses"]
    assert cascade["floor"] <= cascade["difference"]
    told = run("evaluate", "judge.jsonl", "-p", "pets.toml", "--model", "old", "--model", "new").out
    assert "second against first, decided rightly: +" in told
    # What a model has learnt by heart is no question to judge it by.
    rows = read_examples("judge.jsonl").rows
    noted = SimpleNamespace(learnt=tuple(map(row_key, rows[:50])), held=rows[40:60])
    monkeypatch.setattr("turnout.learn.trial.read_record", lambda *_: noted)
    left = run("evaluate", "judge.jsonl", "-p", "pets.toml", "--model", "new")
    assert "150 questions" in left.out
    assert "50 questions left out: the profile's model has learnt from them" in left.out
    held = run("evaluate", "-p", "pets.toml", "--model", "new", "--json")
    assert json.loads(held.out)["evaluations"][0]["cascade"]["rows"] == 10, (
        "without a file: what was held out and never learnt"
    )
    monkeypatch.setattr(noted, "held", rows[:20])
    refused = run("evaluate", "-p", "pets.toml", "--model", "new")
    assert refused.code == 2
    assert "it learnt from what was held out as well (turnout train --no-refit does not)" in refused.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--model", "a", "--model", "b", "--model", "c"), "one, or two to compare"),
        (("--model", "nowhere"), "there is no such folder"),
    ],
)
def test_mistakes(run: Run, argv: tuple[str, ...], said: str) -> None:
    ran = run("evaluate", "ten.jsonl", "-p", "toy.toml", *argv)
    assert ran.code == 2
    assert said in ran.err
