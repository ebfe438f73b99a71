"""Students of the first version, which counted hashed n-grams: read, served, shown and promoted as they were.

The folders in `data` were trained by the version before, on the questions of `taught`; beside each stands what that
version said of some texts.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import turnout
from small_student import LABELS, Words, questions
from stub_students import own_home
from turnout.cli import main
from turnout.config.champion import champion_digest
from turnout.core.registry import Supplies
from turnout.layers.artefact import MANIFEST, digest_of, read_manifest
from turnout.layers.student import Student, StudentConfig, student
from turnout.layers.student_model import StudentManifest, read_student
from turnout.learn.registry import candidates, put, rollback, set_champion
from turnout.testing import check_layer, make_reading
from turnout.text.match import Lexicon

DATA = Path(__file__).parent / "data"
EMBEDDER = Words()
NAMES = ("words", "vectors", "staged")
PROFILE = """\
name = "taught"
routes = ["first", "second", "third"]
fallback = { route = "third" }

[[layers]]
id = "student"
kind = "student.v1"
accept = { confidence = 0.6 }

[policy.first]
[policy.second]
[policy.third]
"""


def folder_of(name: str) -> Path:
    return DATA / f"first-{name}"


def said_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"first-{name}.said.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_said(name: str) -> None:
    trained = read_student(folder_of(name))
    for told in said_of(name):
        text = told["text"]
        judged = trained.judge(text, EMBEDDER.embed([text])[0] if trained.manifest.embedder is not None else None)
        assert (judged.label, judged.alone) == (told["label"], told["alone"])
        for number in ("confidence", "knownness", "near"):
            # It was added up in numbers of half the length.
            assert getattr(judged, number) == pytest.approx(told[number], rel=1e-4, abs=5e-5)
        assert list(judged.probabilities) == pytest.approx(told["probabilities"], abs=1e-5)
        between = judged.best, judged.second
        pushes = trained.pushes(text, *between, alone=judged.alone)
        assert [word for word, _ in pushes][:9] == [word for word, _ in told["pushes"]]
        assert [push for _, push in pushes][:9] == pytest.approx([push for _, push in told["pushes"]], abs=1e-4)
        assert trained.lean(text, *between, alone=judged.alone) == pytest.approx(told["lean"], abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_its_digest_is_what_it_was(name: str) -> None:
    told = json.loads((folder_of(name) / MANIFEST).read_bytes())
    manifest = read_manifest(folder_of(name), StudentManifest)
    assert manifest.digest == told["digest"] == digest_of(manifest)
    assert json.loads(msgspec.json.encode(manifest)) == told
    assert (manifest.terms, manifest.ngrams is None) == (None, False)


def test_one_without_a_stage_for_words_always_asks_for_the_meaning() -> None:
    trained = read_student(folder_of("vectors"))
    assert trained.judge_alone(trained.hear("where is my parcel")) is None
    with pytest.raises(ValueError, match="needs a vector"):
        trained.judge("where is my parcel")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_served(name: str) -> None:
    embedder = None if name == "words" else EMBEDDER
    layer = student(StudentConfig(model=str(folder_of(name))), Supplies(LABELS, Lexicon(), embedder=embedder))
    assert isinstance(layer, Student)
    check_layer(layer, routes=LABELS, texts=[told["text"] for told in said_of(name)])
    verdicts = [(layer(make_reading(text)), label) for text, label in questions()]
    assert all(verdict is not None and verdict.routes == (label,) for verdict, label in verdicts)
    # It reads the beginning, and no more.
    begin = "where is my parcel " * 30
    assert layer(make_reading(begin + "refund " * 9_000)) == layer(make_reading(begin))


def test_it_says_why() -> None:
    layer = Student(read_student(folder_of("words")))
    verdict = layer(make_reading("refund my ticket"))
    assert verdict is not None
    told = {reason.code: reason.text for reason in (*layer.explain(verdict), *layer.elaborate(verdict))}
    assert told["student.label"].startswith("the student says second (0.9")
    assert told["student.for"].startswith("for second: “refund” ")
    assert "100% of its word parts were learnt" in told["student.known"]


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_home(monkeypatch, tmp_path)
    (tmp_path / "taught.toml").write_text(PROFILE)
    return tmp_path / "taught.toml"


def test_it_stands_on_the_shelf_and_is_rolled_back(profile: Path) -> None:
    digests = []
    for name in NAMES:
        digest = put(folder_of(name), "taught", "student").name
        assert digest == read_manifest(folder_of(name), StudentManifest).digest
        set_champion("taught", "student", digest)
        router = turnout.load(profile, config="", embedder=EMBEDDER)
        decision = router.route_sync("where is my parcel")
        assert (decision.route, decision.by, decision.outcome) == ("first", "student", "E-")
        assert router.profile.resolved["layers"][0]["artefact"] == digest
        assert router.replay(decision).steps[0].verdict == decision.steps[0].verdict
        digests.append(digest)
    assert {one.digest for one in candidates("taught", "student")} == {*digests}
    rollback("taught", "student")
    assert champion_digest("taught", "student") == digests[1]


def test_the_command_line_promotes_it(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder_of("words"), "taught", "student")
    digest = read_manifest(folder_of("words"), StudentManifest).digest
    told = ("-p", str(profile))
    code = main(["student", "promote", digest, *told, "--check"])
    said = capsys.readouterr()
    assert (code, digest in said.out) == (1, True), "nothing speaks for it: it was trained elsewhere"
    code = main(["student", "promote", digest, *told, "--force", "--why", "it served before"])
    said = capsys.readouterr()
    assert code == 0, said
    assert champion_digest("taught", "student") == digest
    assert main(["route", "where is my parcel", *told, "--no-log"]) == 0
    assert "by student" in capsys.readouterr().out


def test_a_copy_is_read(tmp_path: Path) -> None:
    shutil.copytree(folder_of("staged"), tmp_path / "copy")
    assert read_student(tmp_path / "copy").manifest == read_student(folder_of("staged")).manifest
