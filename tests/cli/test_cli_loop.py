"""The loop, by commands: decide, correct, list what was wrong, train from the log, promote, decide better.

For a small profile of its own kind, and for every shipped profile with a student: whoever serves now, the first student
of the user's own is held against it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnout
from turnout.config.champion import SHIPPED, champion_digest, shipped_model
from turnout.learn.dataset import read_seeds

Run = Callable[..., Any]

SMALL = """\
name = "small"
routes = ["SIMPLE", "COMPLEX"]
ordered = true
fallback = { route = "SIMPLE", confidence = 0.5 }

[[layers]]
id = "declared"
kind = "declared.v1"

[[layers]]
id = "student"
kind = "student.v1"
accept = { confidence = 0.6 }

[policy.SIMPLE]
model = "small"
[policy.COMPLEX]
model = "large"
"""
HEIR = """\
extends = "{base}"
name = "my-{base}"
cases = "cases.jsonl"

[[layers]]
id = "student"
accept = {{ confidence = 0.6 }}
"""
# Where the profile that is extended has no student of its own.
NEW_LAYER = 'kind = "student.v1"\nbefore = "{before}"\n'
# Words of a company's own, which no shipped profile knows.
SUBJECTS = ("zorbex", "quillon", "vantreel", "mirpod", "tasklo", "obrenz")
# What is done with them there. Everyday words would say of everybody's questions what people say of these.
ASKED = (
    "flanter the {} grosk",
    "{} veldup",
    "brintel {} quamsy",
    "dortle my {}",
    "plenkor {} tromby wexil",
    "snarvel {}",
    "{} klimsa ordun",
    "yandor a {} fesk",
    "murbly {} again",
    "the {} of hastrin",
    "why cravel {}",
    "pondrix {} jelm",
)


class Loop(NamedTuple):
    id: str
    profile: str
    wanted: str
    """The route that people say these questions have; another one is what is decided at first."""
    usual: str = "SIMPLE"
    """The route of questions nobody corrects."""


def questions() -> list[str]:
    return [asked.format(subject) for subject in SUBJECTS for asked in ASKED]


def has_student(name: str) -> bool:
    layers = turnout.load_profile(name, config="").resolved["layers"]
    return any(entry["kind"] == "student.v1" for entry in layers)


# To learn from all that ships takes two minutes and one: `make soak` does it, and an heir stands for it here.
LONG = pytest.mark.long
SHIPPED_LOOPS = [
    pytest.param(Loop(name, name, route), id=name, marks=LONG)
    for name, route in (("tiers", "COMPLEX"), ("sources", "files"))
]


OWN_LOOPS = [
    pytest.param(Loop("small", "small.toml", "COMPLEX"), id="small"),
    pytest.param(Loop("heir of tiers", "my-tiers.toml", "REASONING"), id="heir of tiers"),
    pytest.param(Loop("heir of sources", "my-sources.toml", "files", "kiwix"), id="heir of sources", marks=LONG),
]


@pytest.mark.parametrize("case", [*OWN_LOOPS, *SHIPPED_LOOPS])
def test_the_loop_closes(case: Loop, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    for base, before in (("tiers", "signals"), ("sources", "keywords")):
        more = "" if has_student(base) else NEW_LAYER.format(before=before)
        Path(f"my-{base}.toml").write_text(HEIR.format(base=base) + more)
    golden = {"id": "one", "text": "anything", "declared": case.wanted, "route": case.wanted}
    Path("cases.jsonl").write_text(f"{json.dumps(golden)}\n")
    at = ("-p", case.profile)
    wrong = 0
    for text in questions():
        decided = json.loads(run("route", text, *at, "--json").out)
        assert run("feedback", decided["id"], case.wanted).code == 0
        wrong += decided["route"] != case.wanted
    assert wrong > len(questions()) / 2, "there is something to learn"

    listed = run("log", "--wrong", *at, "--json", "-n", "1000")
    assert len(listed.out.splitlines()) == wrong
    assert run("log", "--wrong", "-p", "study", "--json").out == ""

    name = Path(case.profile).stem
    others = [{"text": f"please tell me about {word}", "label": case.usual} for word in COMMON_WORDS]
    Path("others.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in others))
    files = ("others.jsonl", "--no-seeds") if case.profile.endswith(".toml") else ()
    assert bool(files) or read_seeds(name).rows, "a shipped profile brings its own examples"
    trained = run("train", *files, *at, "--from-log", "--embedder", "none", *accepted(), "--json")
    assert trained.code == 0, trained.err
    report = json.loads(trained.out)
    assert report["by"]["human"] >= len(questions()) * 0.5
    assert report["champion"] == (None if shipped_model(name, "student") is None else SHIPPED)

    # Some dozen rows cannot prove more than that.
    Path("few.toml").write_text("[learn]\nmax_loss = 0.25\n")
    done = run("student", "promote", *at, *accepted(), "--config", "few.toml", "--json")
    checks = json.loads(done.out)
    failed = {check["check"]: (check["why"], check["setting"]) for check in checks["checks"] if not check["passed"]}
    assert done.code == 0, failed
    assert champion_digest(name, "student") == report["digest"]

    fresh = [f"{subject} brintel and klimsa" for subject in SUBJECTS]
    routes = [json.loads(run("route", text, *at, "--json").out)["route"] for text in fresh]
    assert routes.count(case.wanted) > len(fresh) / 2, "it has learnt what people said"
    back = run("student", "rollback", *at)
    assert back.code == 0, back.err
    assert champion_digest(name, "student") == SHIPPED


COMMON_WORDS = (
    *("apples", "rivers", "chairs", "music", "bread", "rain", "stones", "birds", "paper", "clouds", "boats", "tea"),
    *("horses", "lamps", "gardens", "snow", "bridges", "maps", "cats", "wool", "honey", "keys", "moons", "salt"),
    *("trees", "ships", "clocks", "walls", "doors", "grapes", "hats", "roads", "coins", "drums", "eggs", "foxes"),
)


def accepted() -> tuple[str, ...]:
    """What the screen would take for planted is this company's vocabulary."""
    words = {word for text in questions() for word in text.split()} - {"the", "my", "a", "again", "of", "why"}
    return tuple(word for one in sorted(words) for word in ("--accept", one))


def test_a_promotion_that_fails_names_its_setting(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    rows = [{"text": text, "label": "COMPLEX"} for text in questions()]
    rows += [{"text": f"please tell me about {word}", "label": "SIMPLE"} for word in COMMON_WORDS]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    argv = ("train", "rows.jsonl", "-p", "small.toml", "--embedder", "none", "--promote")
    assert run(*argv).code == 0
    Path("strict.toml").write_text("[learn]\nshadow_decisions = 7\nmin_accuracy = 0.999\nconfidence = 0.9\n")
    ran = run(*argv, "--seed", "3", "--config", "strict.toml")
    assert ran.code == 1
    said = " ".join(ran.out.split())
    assert "shadow_decisions = 7 in [learn] of turnout.toml" in said
    assert "not promoted" in said
