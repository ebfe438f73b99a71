"""`turnout calibrate`: what it writes loads, holds what it says, and nothing is written that was not proven."""

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout
from cli_toy import toy_kind, write_world

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with toy_kind():
        yield


def test_gates_are_printed_and_written(run: Run) -> None:
    write_world(Path(), foreign=30)
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "3%", "--out", "mine.toml")
    assert ran.code == 0, ran
    assert "1,575 questions, 30 out of scope" in ran.out
    assert "labels that are no route count as out of scope: oos 30" in ran.out
    assert "→ chosen" in ran.out
    assert "  now " in ran.out
    assert "rules  no gate" in ran.out
    assert "go on to llm" in ran.out
    assert "a bound on all decisions together" in " ".join(ran.out.split())
    text = Path("mine.toml").read_text()
    tree = tomllib.loads(text)
    assert tree["extends"] == "toy.toml"
    (layer,) = tree["layers"]
    assert layer["id"] == "toy"
    for said in (
        "sha256",
        "1,575, 30 of them outside every route",
        "at most 3% is wrong, at 95% confidence; over all of it together, not for each route",
        "--seed 0",
    ):
        assert said in text
    profile = turnout.load_profile("mine.toml")
    assert profile.name == "toy"
    gate = next(place.gate for place in profile.layers if place.id == "toy")
    assert gate.confidence == layer["accept"]["confidence"]
    assert 0.5 < gate.confidence < 1.0


def test_the_json_says_the_same_and_repeats_itself(run: Run) -> None:
    write_world(Path())
    argv = ("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "0.03", "--confidence", "0.9", "--json")
    form = json.loads(run(*argv).out)
    assert form["proven"] is True
    assert (form["max_error"], form["confidence"], form["seed"]) == (0.03, pytest.approx(0.9), 0)
    assert form["error_at_most"] <= 0.03
    assert form["tested"]["decided"] == sum(layer["decided"] for layer in form["layers"])
    assert [layer["id"] for layer in form["layers"]] == ["rules", "toy"], "behind the network nothing is local"
    assert form["goes_on"] == {
        "share": pytest.approx(1 - form["tested"]["coverage"]),
        "to": "llm",
        "usd_per_1000": None,
    }
    assert form["settings"] == ["[toy]", f"toy_threshold = {form['gates']['toy']['new']!r}"]
    assert any(point["proven"] for point in form["curve"])
    assert json.loads(run(*argv).out) == form
    assert json.loads(run(*argv, "--seed", "7").out)["tested"] != form["tested"]


def test_the_promise_holds_on_questions_nobody_saw(run: Run) -> None:
    """In this world the true error of a gate is known: half the mean of what is missing to 1."""
    draw = np.random.default_rng(99)
    sure = draw.beta(3, 0.5, 200_000)
    for seed in range(3):
        write_world(Path(), rows=3000, seed=seed)
        form = json.loads(run("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "3%", "--json").out)
        gate = form["gates"]["toy"]["new"]
        assert ((1 - sure[sure >= gate]) / 2).mean() <= 0.03


def test_settings_lines_and_a_setting_in_the_way(run: Run) -> None:
    write_world(Path())
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "3%")
    assert ran.code == 0
    assert "[toy]\n  toy_threshold = 0." in ran.out
    Path("turnout.toml").write_text("[toy]\ntoy_threshold = 0.7\n")
    argv = ("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "3%", "--config", "turnout.toml")
    ran = run(*argv, "--out", "mine.toml")
    assert ran.code == 0
    assert "gate 0.7 → 0." in ran.out
    assert "it goes before mine.toml, so change it there as well" in ran.out


def test_too_few_questions_say_how_many_are_needed(run: Run) -> None:
    write_world(Path(), rows=80)
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", "--out", "mine.toml")
    assert ran.code == 1
    assert "an error of at most 2% cannot be shown at 95% confidence" in ran.out
    assert "labelled questions like these would show it" in ran.out
    assert not Path("mine.toml").exists()
    form = json.loads(run("calibrate", "labels.jsonl", "-p", "toy.toml", "--json").out)
    assert form["proven"] is False
    assert form["gates"] == {}
    assert form["rows_needed"] > 150


def test_a_layer_that_guesses_is_told_so(run: Run) -> None:
    write_world(Path())
    rows = [{"text": f"n{number} A 0.9", "label": "AB"[number % 2]} for number in range(800)]
    Path("labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml")
    assert ran.code == 1
    assert "more questions would not help: at best 50" in ran.out


def test_a_layer_that_is_wrong_when_it_is_surest_is_shut(run: Run) -> None:
    """Confidence 1 and wrong: no confidence asks for more, so the gate is shut by its margin."""
    write_world(Path())
    rows = [{"text": f"n{number} A 1.0", "label": "B"} for number in range(400)]
    rows += [{"text": f"always {number}", "label": "B"} for number in range(400)]
    Path("labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", "--out", "mine.toml")
    assert ran.code == 0, ran
    assert "gate 0.5 → closed" in ran.out
    router = turnout.load("mine.toml")
    assert router.route_sync("n1 B 1.0").by == "fallback"
    assert router.route_sync("always").by == "rules"
    assert router.route_sync("n1 B 1.0").json(), "what stands in the trace can be written"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--max-error", "2"), "a share between 0 and 1, such as 2%"),
        (("--max-error", "0%"), "a share between 0 and 1"),
        (("--confidence", "nonsense"), "is not a number"),
        (("--seed", "-1"), "at least 0"),
        (("--out", "toy.toml"), "would be overwritten"),
        (("--out", "toy.toml", "--force"), "the profile it would extend is that file"),
        (("--out", "mine.txt"), "a profile is a .toml file"),
        (("--out", "tiers.toml"), "the name of a shipped profile"),
        (("--out", "nowhere/mine.toml"), "there is no folder nowhere"),
        (("--model", "nowhere"), "there is no such folder"),
        (("--model", "."), "0 layers that serve a trained model"),
    ],
)
def test_mistakes(run: Run, argv: tuple[str, ...], said: str) -> None:
    write_world(Path(), rows=600)
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", *argv)
    assert ran.code == 2, ran
    assert said in ran.err
    assert not Path("mine.toml").exists()


def test_files_that_cannot_be_used(run: Run) -> None:
    write_world(Path())
    assert "nothing.jsonl" in run("calibrate", "nothing.jsonl", "-p", "toy.toml").err
    Path("bad.jsonl").write_text('{"text": "x"}\n{"label": "A"}\n')
    ran = run("calibrate", "bad.jsonl", "-p", "toy.toml")
    assert ran.code == 2
    assert "bad.jsonl:1" in ran.err
    assert "bad.jsonl:2" in ran.err
    assert "read from a file" in run("calibrate", "-", "-p", "toy.toml", stdin=b"").err


def test_a_profile_without_ids_is_not_guessed_at(run: Run) -> None:
    write_world(Path())
    Path("toy.toml").write_text(Path("toy.toml").read_text().replace('id = "rules"\nkind', "kind"))
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "3%", "--out", "mine.toml")
    assert ran.code == 2
    assert not Path("mine.toml").exists()
    assert not list(Path().glob(".mine*"))


def test_in_another_folder_the_base_is_still_found(run: Run) -> None:
    write_world(Path())
    Path("deep").mkdir()
    ran = run("calibrate", "labels.jsonl", "-p", "toy.toml", "--max-error", "3%", "--out", "deep/mine.toml")
    assert ran.code == 0, ran
    assert tomllib.loads(Path("deep/mine.toml").read_text())["extends"] == "../toy.toml"
    assert turnout.load("deep/mine.toml").route_sync("always").route == "B"
