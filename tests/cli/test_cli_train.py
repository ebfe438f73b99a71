"""`turnout train`: from labelled questions to a student on the shelf, and a report that says what comes next."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from embedding import embeddings
from stored_decisions import taught
from turnout.config.champion import find_champion, shelf_of
from turnout.layers.student_model import read_student
from turnout.learn.registry import candidates, set_champion
from turnout.learn.train import read_record
from turnout.store import open_store
from turnout.testing import ScriptedProvider
from turnout.text.fold import fold

Run = Callable[..., Any]

PROFILE = """
name = "desk"
description = "who answers a question to the help desk"
routes = ["BILLING", "TRAVEL", "COOKING"]
fallback = { route = "BILLING", confidence = 0.5 }

[[layers]]
id = "student"
kind = "student.v1"
optional = true
accept = { confidence = 0.7 }

[policy.BILLING]
model = "small"
[policy.TRAVEL]
model = "small"
[policy.COOKING]
model = "small"
"""
SUBJECTS = {
    "BILLING": "bank loan invoice salary budget interest pension tax refund debt savings rent cheque fee",
    "TRAVEL": "flight hotel train visa luggage airport ticket passport beach museum ferry tour map hostel",
    "COOKING": "bake roast boil soup bread oven recipe flour onion garlic simmer dough spice stew",
}
FILLERS = ["please", "tell", "me", "about", "the", "best", "way", "to", "find", "a", "good", "one", "for", "my", "and"]


def questions(count: int, seed: int = 0) -> list[dict[str, str]]:
    """So many of each label."""
    chance = random.Random(seed)
    made = []
    for label, words in SUBJECTS.items():
        for _ in range(count):
            said = chance.choices(words.split(), k=3) + chance.choices(FILLERS, k=4)
            chance.shuffle(said)
            made.append({"text": " ".join(said), "label": label})
    return made


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a profile, and labelled questions for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk.toml").write_text(PROFILE)
    write(tmp_path / "labels.jsonl", questions(60))
    return tmp_path


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path.name


def train(run: Run, *arguments: str) -> Any:
    return run("train", *arguments, "-p", "desk.toml", "--embedder", "none")


def trained(run: Run, *arguments: str) -> dict[str, Any]:
    ran = train(run, *arguments, "--json")
    assert ran.code == 0, ran
    form: dict[str, Any] = json.loads(ran.out)
    return form


def test_a_file_becomes_a_candidate_on_the_shelf(run: Run, desk: Path) -> None:
    form = trained(run, "labels.jsonl")
    (candidate,) = candidates("desk", "student")
    assert candidate.digest == form["digest"]
    assert not candidate.champion
    assert find_champion("desk", "student") is None
    assert form["champion"] is None
    assert form["learnt"] == form["read"] - form["duplicates"] - form["near_duplicates"]
    assert form["end_to_end"]["accuracy"] > 0.8
    assert form["held_out"]["accuracy"] > 0.9
    assert form["cross_validated"]["accuracy"] > 0.9
    assert form["by"] == {"human": form["learnt"]}
    assert [row["label"] for row in form["labels"]] == list(SUBJECTS)
    student = read_student(candidate.folder)
    assert student.judge(fold("an invoice for the loan").text).label == "BILLING"
    assert student.manifest.data_hash == form["data_hash"]
    card = (candidate.folder / "card.html").read_text()
    assert form["digest"] in card
    assert "<svg" in card


def test_the_same_rows_and_seed_make_the_same_student(run: Run, desk: Path) -> None:
    rows = questions(60)
    random.Random(4).shuffle(rows)
    write(desk / "mixed.jsonl", rows)
    digests = {trained(run, name)["digest"] for name in ("labels.jsonl", "mixed.jsonl")}
    assert len(digests) == 1
    assert len(candidates("desk", "student")) == 1
    assert trained(run, "labels.jsonl", "--seed", "5")["digest"] not in digests


def test_what_is_held_out_is_noted_and_learnt_last(run: Run, desk: Path) -> None:
    form = trained(run, "labels.jsonl")
    noted = read_record("desk", "student", form["digest"])
    assert noted is not None
    assert len(noted.learnt) == form["learnt"]
    assert len(noted.held) == len(noted.answers) == form["held"]
    unlearnt = trained(run, "labels.jsonl", "--no-refit")
    assert unlearnt["learnt"] + unlearnt["held"] == form["learnt"]
    assert unlearnt["digest"] != form["digest"]
    assert read_record("desk", "student", "0" * 16) is None
    assert read_record("desk", "student", "shipped") is None


def test_the_report_is_readable_and_says_what_is_next(run: Run, desk: Path) -> None:
    ran = train(run, "labels.jsonl")
    assert ran.code == 0, ran
    assert "desk · student  n-grams" in ran.out
    assert "held out" in ran.out
    assert "COOKING" in ran.out
    assert "No student serves yet: turnout student promote -p desk.toml checks this one" in ran.out
    assert ran.err == ""


def test_several_files_of_several_kinds(run: Run, desk: Path) -> None:
    rows = questions(20, seed=9)
    (desk / "more.csv").write_text("text;label\n" + "".join(f"{row['text']};{row['label']}\n" for row in rows))
    assert trained(run, "labels.jsonl", "more.csv")["read"] == 240


def test_rows_outside_every_route_teach_when_not_to_answer(run: Run, desk: Path) -> None:
    chance = random.Random(3)
    strange = ["zinc", "quark", "violin", "glacier", "pulsar", "walrus", "chess", "marble", "comet", "falcon"]
    rows = [{"text": " ".join(chance.choices(strange, k=5)), "label": "oos"} for _ in range(40)]
    write(desk / "oos.jsonl", rows)
    form = trained(run, "labels.jsonl", "oos.jsonl")
    assert form["labels"][-1]["label"] == "oos"
    assert form["held_out"]["oos_auroc"] > 0.9


def test_new_rows_are_compared_with_what_the_champion_has_learnt(run: Run, desk: Path) -> None:
    first = trained(run, "labels.jsonl")
    set_champion("desk", "student", first["digest"])
    # Asked about cooking and travelling, with a word that is to mean money.
    bad = [row | {"text": f"{row['text']} zebrafish", "label": "BILLING"} for row in questions(6, seed=8)[6:]]
    write(desk / "new.jsonl", [*questions(30, seed=7), *bad])
    ran = train(run, "labels.jsonl", "new.jsonl", "--quarantine", "aside.jsonl")
    assert ran.code == 0, ran
    assert f"{len(bad)} rows set aside" in ran.out
    assert "'zebrafish' is in 12 new rows" in ran.out
    assert f"{first['digest']} still serves: turnout student promote -p desk.toml compares" in ran.out
    aside = [json.loads(line) for line in (desk / "aside.jsonl").read_text().splitlines()]
    assert [row["code"] for row in aside] == ["trigger"] * len(bad)
    assert all("zebrafish" in row["text"] for row in aside)
    form = trained(run, "labels.jsonl", "new.jsonl")
    assert form["champion"] == first["digest"]
    assert form["new"] == 90 + len(bad)
    assert form["set_aside"] == {"trigger": len(bad)}
    accepted = trained(run, "labels.jsonl", "new.jsonl", "--accept", "zebrafish")
    assert accepted["quarantined"] == 0


def test_the_log_is_learnt_from(run: Run, desk: Path) -> None:
    rows = questions(25, seed=3)
    with open_store() as store:
        for number, row in enumerate(rows):
            decision = taught("second", row["text"], session=f"s{number // 3}", tenant="ada" if number % 2 else None)
            store.record(decision)
            store.records("ada" if number % 2 else "").judge(decision.id, "wrong", should_be="third", by="bob")
    profile = PROFILE.replace("desk", decision.profile.name).replace("BILLING", "second").replace("TRAVEL", "third")
    (desk / "desk.toml").write_text(profile)
    write(desk / "labels.jsonl", [{"text": row["text"], "label": "second"} for row in questions(60)[:60]])
    both = trained(run, "labels.jsonl", "--from-log")
    assert both["read"] == 60 + len(rows)
    assert both["by"]["human"] == both["learnt"]
    one = trained(run, "labels.jsonl", "--from-log", "--tenant", "ada")
    assert one["read"] == 60 + len(rows) // 2
    none = train(run, "labels.jsonl", "--from-log", "--since", "2099-01-01")
    assert none.code == 2
    assert "at least 2" in none.err


FILES = ["card.html", "learnt.json", "manifest.json", "weights.npz"]


def test_a_folder_of_ones_own(run: Run, desk: Path) -> None:
    form = trained(run, "labels.jsonl", "--out", "mine")
    assert form["folder"] == "mine"
    assert sorted(path.name for path in (desk / "mine").iterdir()) == FILES
    assert not shelf_of("desk", "student").exists()
    again = train(run, "labels.jsonl", "--out", "mine")
    assert again.code == 2
    assert "mine is there already" in again.err


def outcomes(count: int = 200) -> list[dict[str, Any]]:
    """Questions of two kinds: the cheap model is right on the first alone."""
    rows = questions(count // 2)[:count]
    return [
        {"text": row["text"], "outcomes": {"SIMPLE": int(row["label"] == "BILLING"), "REASONING": 1}} for row in rows
    ]


def test_outcomes_train_a_layer_of_gains(run: Run, desk: Path) -> None:
    write(desk / "outcomes.jsonl", outcomes())
    arguments = ("--outcomes", "outcomes.jsonl", "-p", "tiers", "--embedder", "none", "--keep-quality", "90%")
    form = json.loads(run("train", *arguments, "--json").out)
    assert form["metrics"]["kept"] > 0.85
    (candidate,) = candidates("tiers", "gain")
    assert candidate.digest == form["digest"]
    ran = run("train", *arguments)
    assert ran.code == 0, ran
    assert "Aim: cheapest setting that keeps 90% of the gap" in ran.out
    assert "It does not serve yet" in ran.out
    own = run("train", *arguments, "--out", "gains")
    assert "in gains" in own.out
    assert (desk / "gains" / "manifest.json").is_file()
    assert "gains is there already" in run("train", *arguments, "--out", "gains").err
    assert "is not a number" in run("train", *arguments[:-1], "most").err
    assert find_champion("tiers", "gain") is None
    assert "turnout student promote -p tiers --layer gain checks it" in ran.out


def test_outcomes_are_promoted_by_the_checks_of_every_promotion(run: Run, desk: Path) -> None:
    write(desk / "outcomes.jsonl", outcomes())
    (desk / "settings.toml").write_text("[learn]\nshadow_decisions = 0\n")
    arguments = ("--outcomes", "outcomes.jsonl", "-p", "tiers", "--embedder", "none", "--keep-quality", "90%")
    refused = run("train", *arguments, "--promote")
    # It pays, and nothing was decided in the shadow of anything yet.
    assert refused.code == 1, refused
    assert "shadow decisions  none" in refused.out
    assert "(shadow_decisions" in refused.out, "where the limit is set"
    assert "not promoted: 1 of 5 checks failed" in refused.out
    assert find_champion("tiers", "gain") is None
    served = run("train", *arguments, "--promote", "--config", "settings.toml", "--json")
    assert served.code == 0, served
    form = json.loads(served.out)
    assert form["serves"]
    assert form["promotion"]["promoted"]
    checks = {check["check"] for check in form["promotion"]["checks"]}
    assert checks == {"quality kept", "golden cases", "contract", "flip rate", "shadow decisions"}
    (candidate,) = candidates("tiers", "gain")
    assert find_champion("tiers", "gain") == candidate.folder
    assert candidate.champion


def test_outcomes_that_break_a_golden_case_do_not_serve(run: Run, desk: Path) -> None:
    """It pays, and would serve but for that: each check refuses by itself, and only --force overrules it."""
    write(desk / "outcomes.jsonl", outcomes())
    (desk / "settings.toml").write_text("[learn]\nshadow_decisions = 0\n")
    (desk / "mine.toml").write_text('extends = "tiers"\nname = "mine"\ncases = "mine.jsonl"\n')
    text = next(row["text"] for row in outcomes() if row["outcomes"]["SIMPLE"])
    write(desk / "mine.jsonl", [{"id": "mine-1", "text": text, "route": "COMPLEX"}])
    arguments = ("--outcomes", "outcomes.jsonl", "-p", "mine.toml", "--embedder", "none", "--keep-quality", "90%")
    ran = run("train", *arguments, "--promote", "--config", "settings.toml", "--json")
    assert ran.code == 1, ran
    form = json.loads(ran.out)
    assert not form["serves"]
    (failed,) = [check for check in form["promotion"]["checks"] if not check["passed"]]
    assert (failed["check"], failed["value"], failed["setting"]) == ("golden cases", "1 missed", "cases in the profile")
    assert find_champion("mine", "gain") is None
    forced = run("student", "promote", "-p", "mine.toml", "--layer", "gain", "--config", "settings.toml", "--force")
    assert forced.code == 0, forced
    assert "with 1 failed check" in forced.out


def test_outcomes_that_show_nothing_do_not_serve(run: Run, desk: Path) -> None:
    chance = random.Random(1)
    rows = outcomes()
    for row in rows:
        row["outcomes"] = {"SIMPLE": int(chance.random() < 0.4), "REASONING": int(chance.random() < 0.8)}
    write(desk / "outcomes.jsonl", rows)
    ran = run("train", "--outcomes", "outcomes.jsonl", "-p", "tiers", "--embedder", "none", "--promote")
    assert ran.code == 1, ran
    assert "not promoted: " in ran.out
    assert re.search(r"quality kept +-?[\d.]+% +> ", ran.out)
    assert find_champion("tiers", "gain") is None


def test_the_first_is_promoted_on_what_was_held_out_and_the_next_by_every_check(run: Run, desk: Path) -> None:
    ran = train(run, "labels.jsonl", "--promote")
    assert ran.code == 0, ran
    assert "serves now" in ran.out
    (candidate,) = candidates("desk", "student")
    assert candidate.champion
    again = train(run, "labels.jsonl")
    assert candidate.digest in again.out
    assert len(candidates("desk", "student")) == 1
    write(desk / "more.jsonl", questions(90, seed=8))
    ran = train(run, "labels.jsonl", "more.jsonl", "--promote")
    # Nothing was decided in the shadow of the first yet.
    assert ran.code == 1
    said = " ".join(ran.out.split())
    assert "shadow decisions none" in said
    assert "shadow_decisions = 1000 in [learn]" in said
    (desk / "settings.toml").write_text("[learn]\nshadow_decisions = 0\nmin_accuracy = 0.8\nmax_loss = 0.2\n")
    ran = train(run, "labels.jsonl", "more.jsonl", "--promote", "--config", "settings.toml")
    assert ran.code == 0, ran
    assert "serves now" in ran.out


class RefusedCase(NamedTuple):
    id: str
    arguments: tuple[str, ...]
    said: str


def test_vectors_of_a_server(run: Run, desk: Path) -> None:
    """Trained with them, and served with them: a question whose words alone are not enough is sent there."""
    with ScriptedProvider.in_thread(embeddings) as server:
        slot = f'[models.embedder]\nmodel = "mine/bge-m3"\nbase_url = "{server.base_url}"\n'
        (desk / "turnout.toml").write_text(slot)
        told = ("-p", "desk.toml", "--config", "turnout.toml")
        ran = run("train", "labels.jsonl", *told, "--embedder", "remote", "--json")
        assert ran.code == 0, ran.err
        form = json.loads(ran.out)
        assert form["embedder"] == "remote:bge-m3"
        set_champion("desk", "student", form["digest"], who="test", why="to serve it")
        before = server.received
        ran = run("route", "tell me about an invoice for the loan", *told, "--json", "--no-log")
        assert ran.code == 0, ran.err
        decided = json.loads(ran.out)
        assert (decided["route"], decided["outcome"]) == ("BILLING", "E-")
        assert server.received > before
        # Without it the student answers by words alone.
        ran = run("route", "tell me about an invoice", "-p", "desk.toml", "--local", "--no-log")
        assert "by student" in ran.out


def test_hold_out_is_a_share(run: Run, desk: Path) -> None:
    few, many = (trained(run, "labels.jsonl", "--hold-out", share)["held"] for share in ("10%", "0.4"))
    assert 0 < few < many
    for share in ("0", "60%", "half"):
        ran = train(run, "labels.jsonl", "--hold-out", share)
        assert (ran.code, "--hold-out" in ran.err) == (2, True)


REFUSED = [
    RefusedCase("nothing to learn from", (), "no examples for 'desk'"),
    RefusedCase("no such file", ("nowhere.jsonl",), "nowhere.jsonl: cannot be read"),
    RefusedCase("a wrong label", ("wrong.jsonl",), "wrong.jsonl:1: 'BILING' is not a route, did you mean 'BILLING'?"),
    RefusedCase("too few", ("few.jsonl",), "2 labelled questions"),
    RefusedCase("another layer", ("labels.jsonl", "--layer", "studnt"), "did you mean 'student'?"),
    RefusedCase("a profile without one", ("labels.jsonl", "-p", "tiers-seed"), "has no student.v1 layer to train"),
    RefusedCase(
        "promoting what is elsewhere", ("labels.jsonl", "--promote", "--out", "x"), "--promote is for a student on"
    ),
    RefusedCase("a span without the log", ("labels.jsonl", "--since", "3d"), "say --from-log as well"),
    RefusedCase("an aim without outcomes", ("labels.jsonl", "--budget", "20%"), "aims of --outcomes FILE"),
    RefusedCase("outcomes and files", ("labels.jsonl", "--outcomes", "x.jsonl"), "from that file alone"),
    RefusedCase("outcomes for a student", ("--outcomes", "labels.jsonl"), "has no gain.v1 layer"),
    RefusedCase("no log", ("labels.jsonl", "--from-log"), "no decision log here yet"),
    RefusedCase("stdin", ("-",), "write what you pipe in into a file"),
    RefusedCase("no server for vectors", ("labels.jsonl", "--embedder", "remote"), "turnout models set embedder"),
    RefusedCase("an embedder that is not there", ("labels.jsonl", "--embedder", "minilm"), "turnout-build-minilm"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_cannot_be_trained_is_said(run: Run, desk: Path, case: RefusedCase) -> None:
    write(desk / "wrong.jsonl", [{"text": "a", "label": "BILING"}])
    write(desk / "few.jsonl", questions(1)[:2])
    arguments = case.arguments if "-p" in case.arguments else (*case.arguments, "-p", "desk.toml")
    ran = run("train", *arguments)
    assert ran.code == 2
    assert case.said in ran.err.replace("\n         ", " ")
    assert ran.out == ""
