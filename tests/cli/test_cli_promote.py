"""`turnout student`: `shadow`, `promote`, `rollback` and `drift`, on students that were really trained."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assist_questions import chatter
from turnout import Query, load
from turnout.config import champion
from turnout.config.load import load_profile
from turnout.layers.term_head import Terms
from turnout.learn import registry
from turnout.learn.dataset import Examples
from turnout.learn.fit import FitSettings
from turnout.learn.train import train
from turnout.store import open_store

Run = Callable[..., Any]

PROFILE = """
name = "mine"
routes = ["RETRIEVAL", "CODE_GENERATION", "CONVERSATIONAL", "PLATFORM"]
fallback = { route = "RETRIEVAL" }
cases = "mine.cases.jsonl"

[[layers]]
id = "declared"
kind = "declared.v1"

[[layers]]
kind = "student.v1"
optional = true
accept = { confidence = 0.85 }

[policy.RETRIEVAL]
[policy.CODE_GENERATION]
[policy.CONVERSATIONAL]
[policy.PLATFORM]

[[contract]]
id = "RC-03"
never = "flipped_by_history"
"""
CASES = [
    {"id": "one", "text": "write a python function that tests caching", "route": "CODE_GENERATION"},
    {"id": "two", "text": "anything at all", "route": "PLATFORM", "declared": "PLATFORM"},
]
# Small, so that a fit takes half a second.
SMALL = FitSettings(terms=Terms(buckets=1 << 14), folds=3)


class Home(NamedTuple):
    profile: str
    first: str
    second: str


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two students on its shelf, the second of more rows; neither serves."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(folder / "share"))
        patched.setenv("XDG_CONFIG_HOME", str(folder))
        (folder / "mine.toml").write_text(PROFILE)
        (folder / "mine.cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
        rows = chatter(1000, seed=1)
        profile = load_profile(folder / "mine.toml", config="")
        first = train(profile, Examples(tuple(rows)), settings=SMALL, share=0.35)
        registry.set_champion("mine", "student", first.manifest.digest)
        second = train(profile, Examples((*rows, *chatter(300, seed=2))), settings=SMALL, share=0.35)
        champion.champion_file("mine", "student").unlink()
        (champion.shelf_of("mine", "student") / "history.jsonl").unlink()
        (folder / "digests").write_text(f"{first.manifest.digest} {second.manifest.digest}")
    return folder


@pytest.fixture
def home(trained: Path, tmp_path: Path) -> Home:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    first, second = (trained / "digests").read_text().split()
    return Home(str(tmp_path / "mine.toml"), first, second)


def log(home: Home, count: int, seed: int = 9, **query: Any) -> None:
    router = load(home.profile, config="")
    with open_store() as store:
        for row in chatter(count, seed=seed):
            store.record(router.route_sync(Query(row.text, session=row.session, **query)))


def serve(digest: str) -> None:
    registry.set_champion("mine", "student", digest)


def serving() -> str:
    return champion.champion_digest("mine", "student")


def test_from_training_to_serving_and_back(run: Run, home: Home) -> None:
    serve(home.first)
    log(home, 1050)
    refused = run("student", "promote", home.second, "-p", home.profile)
    assert refused.code == 1
    assert "not promoted: 1 of 10 checks failed" in refused.out
    assert f"turnoutstudentshadow-p{home.profile}" in "".join(refused.out.split())
    assert serving() == home.first

    shadowed = run("student", "shadow", "-p", home.profile, "--model", home.second)
    assert shadowed.code == 0, shadowed.err
    assert "1,050 decisions" in shadowed.out
    assert "enough for turnout student promote" in shadowed.out

    looked = run("student", "promote", home.second[:6], "-p", home.profile, "--check")
    assert looked.code == 0, looked.out
    assert "it may serve" in looked.out
    assert serving() == home.first

    done = run("student", "promote", home.second, "-p", home.profile, "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert told["promoted"]
    assert told["passed"]
    assert [check["check"] for check in told["checks"] if not check["passed"]] == []
    assert serving() == home.second

    pictured = run("stats")
    assert f"model {home.second[:8]} serves" in pictured.out

    back = run("student", "rollback", "-p", home.profile, "--why", "too eager")
    assert back.code == 0
    assert serving() == home.first
    history = json.loads(run("student", "rollback", "-p", home.profile, "--history", "--json").out)
    assert [change["kind"] for change in history["changes"]] == ["promote", "promote", "rollback"]
    assert history["changes"][-1]["why"] == "too eager"
    listed = run("student", "rollback", "-p", home.profile, "--history")
    assert "too eager" in listed.out
    assert f"model {home.first} serves" in listed.out


def test_force_serves_and_says_what_failed(run: Run, home: Home) -> None:
    serve(home.first)
    forced = run("student", "promote", home.second, "-p", home.profile, "--force")
    assert forced.code == 0
    assert "with 1 failed check" in forced.out
    assert serving() == home.second
    assert "shadow decisions" in registry.read_history("mine", "student")[-1].why
    assert load(home.profile, config="").route_sync("write a go script to clean up caching").by == "student"


def test_the_first_student_is_held_against_the_profile_without_one(run: Run, home: Home) -> None:
    """No traffic is needed for it; a shadow run can be had all the same."""
    log(home, 20)
    shadowed = run("student", "shadow", "-p", home.profile, "--model", home.first)
    assert "beside no champion" in shadowed.out
    assert "0.0%" in shadowed.out
    done = run("student", "promote", home.first, "-p", home.profile)
    assert done.code == 0, done.out
    assert "the first of your own" in " ".join(done.out.split())
    gone = run("student", "rollback", "-p", home.profile)
    assert "no model serves again" in gone.out
    assert "has no student now" in gone.out
    assert run("student", "rollback", "-p", home.profile).code == 2
    again = run("student", "promote", home.first, "-p", home.profile, "--force")
    assert again.code == 0, again.out
    assert serving() == home.first


def test_a_golden_case_stops_it(run: Run, home: Home) -> None:
    cases = Path(home.profile).with_name("mine.cases.jsonl")
    wrong = {"id": "three", "text": "write a rust function that tests retries", "route": "CONVERSATIONAL"}
    cases.write_text(cases.read_text() + json.dumps(wrong) + "\n")
    found = run("student", "promote", home.first, "-p", home.profile, "--check")
    assert found.code == 1
    assert "three: route is CODE_GENERATION, expected CONVERSATIONAL" in " ".join(found.out.split())


def test_the_settings_are_the_users(run: Run, home: Home, tmp_path: Path) -> None:
    (tmp_path / "loose.toml").write_text("[learn]\nshadow_decisions = 0\n")
    done = run("student", "promote", home.first, "-p", home.profile, "--config", str(tmp_path / "loose.toml"))
    assert done.code == 0, done.out
    (tmp_path / "wrong.toml").write_text("[learn]\nshadow_decision = 0\n")
    refused = run("student", "promote", home.second, "-p", home.profile, "--config", str(tmp_path / "wrong.toml"))
    assert refused.code != 0
    assert "shadow_decisions" in refused.err


REFUSED = [
    (("student", "promote", "ffffffff"), "no model"),
    (("student", "promote", "../../x"), "no model"),
    (("student", "promote", "--layer", "other"), "layer 'other'"),
    (("student", "rollback", "--layer", "other"), "layer 'other'"),
    (("student", "rollback"), "nothing to go back to"),
    (("student", "shadow"), "no decision log"),
    (("student", "shadow", "--limit", "0"), "--limit 0"),
    (("student", "drift"), "no decision log"),
]


@pytest.mark.parametrize(("argv", "said"), REFUSED, ids=[" ".join(argv) for argv, _ in REFUSED])
def test_what_cannot_be_done_is_said(run: Run, home: Home, argv: tuple[str, ...], said: str) -> None:
    found = run(*argv, "-p", home.profile)
    assert found.code == 2
    assert said in found.err
    assert serving() == champion.SHIPPED


@pytest.mark.parametrize("command", ["promote", "rollback", "shadow", "drift"])
def test_a_profile_without_a_trained_layer(run: Run, command: str) -> None:
    found = run("student", command, "-p", "tiers-seed")
    assert found.code == 2
    assert "trained" in found.err


def test_hints_name_the_profile_as_it_was_typed(run: Run, home: Home) -> None:
    """By its own name, `mine`, a profile in a file is not found."""
    serve(home.second)
    found = run("student", "promote", home.first, "-p", home.profile)
    assert f"studentshadow-p{home.profile}" in "".join(found.out.split())
    shutil.rmtree(champion.shelf_of("mine", "student"))
    assert f"turnout train -p {home.profile} makes one" in run("student", "promote", "-p", home.profile).err


def test_a_wrong_profile_is_said_before_a_missing_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "turnout.learn.promote", None)
    assert "'asist': no such profile, did you mean 'assist'?" in run("student", "promote", "-p", "asist").err
    assert "pip install 'turnout[learn]'" in run("student", "promote", "-p", "assist").err


def test_the_champion_cannot_challenge_itself(run: Run, home: Home) -> None:
    serve(home.first)
    found = run("student", "promote", home.first, "-p", home.profile)
    assert found.code == 2
    assert "serves already" in found.err


def test_a_profile_that_names_its_model_is_out_of_reach(run: Run, home: Home) -> None:
    text = Path(home.profile).read_text().replace("optional = true", f'artefact = "{home.first}"')
    Path(home.profile).write_text(text)
    found = run("student", "promote", home.second, "-p", home.profile)
    assert found.code == 2
    assert "names the model" in found.err


def test_drift(run: Run, home: Home) -> None:
    serve(home.first)
    few = run("student", "drift", "-p", home.profile, "--db", "few.db")
    assert few.code == 2
    log(home, 200, seed=9)
    same = run("student", "drift", "-p", home.profile, "--since", "2999-01-01")
    assert "too few to tell" in same.out
    assert same.code == 0


def test_drift_between_two_windows(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout.learn import drift as measured

    serve(home.first)
    windows = iter([[1], [2]])
    before = [measured.TrafficRow(row.text, row.label, "student", 0.9) for row in chatter(200, seed=5)]
    recent = [
        measured.TrafficRow(row.text, "PLATFORM", "student", 0.9) for row in chatter(200, seed=6, label="PLATFORM")
    ]
    log(home, 1)
    monkeypatch.setattr(measured, "window", lambda *_: before if next(windows) == [1] else recent)
    found = run("student", "drift", "-p", home.profile)
    assert found.code == 1
    assert "drift in route mix" in found.out
    assert f"turnout train -p {home.profile} --from-log" in found.out
    windows = iter([[1], [1]])
    monkeypatch.setattr(measured, "window", lambda *_: before)
    calm = run("student", "drift", "-p", home.profile, "--json")
    assert calm.code == 0
    told = json.loads(calm.out)
    assert told["drifted"] == []
    assert told["judged_by"] == home.first
    assert {one["name"] for one in told["measures"]} >= {"route mix", "confidence", "unknown questions", "unseen words"}


def test_training_that_is_not_due_does_nothing(run: Run, home: Home, tmp_path: Path) -> None:
    serve(home.first)
    log(home, 5)
    before = {one.digest for one in registry.candidates("mine", "student")}
    found = run("train", "-p", home.profile, "--from-log", "--if-due", "--embedder", "none")
    assert found.code == 0, found.err
    assert "not due: 5 of 500 new sessions" in found.out
    assert json.loads(run("train", "-p", home.profile, "--from-log", "--if-due", "--json").out)["due"] is False
    assert {one.digest for one in registry.candidates("mine", "student")} == before


def test_training_that_is_due_trains_and_may_serve_by_itself(run: Run, home: Home, tmp_path: Path) -> None:
    serve(home.first)
    log(home, 5)
    settings = tmp_path / "auto.toml"
    settings.write_text("[learn]\nretrain_sessions = 3\nauto_promote = true\nshadow_decisions = 0\nmax_loss = 0.1\n")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": row.text, "label": row.label}) + "\n" for row in chatter(500, seed=1)))
    argv = ("train", str(rows), "-p", home.profile, "--if-due", "--embedder", "none", "--config", str(settings))
    found = run(*argv)
    assert found.code == 0, found.err
    assert "due: 5 new sessions" in found.out
    assert "serves now" in found.out
    assert serving() not in (home.first, home.second)
    assert registry.read_history("mine", "student")[-1].why == "auto_promote"
