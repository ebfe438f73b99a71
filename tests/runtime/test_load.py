"""Profiles as this machine can run them: which embedder is used, and how a model that cannot run is reported."""

import logging
import warnings
from pathlib import Path

import pytest

import turnout
from small_student import Words, keep, teach
from stub_students import own_home
from turnout.cli import main
from turnout.config.champion import IdleModelWarning
from turnout.layers.student import Student
from turnout.learn.registry import put, set_champion

PROFILE = """\
name = "taught"
routes = ["first", "second", "third"]
fallback = { route = "third" }

[[layers]]
kind = "student.v1"
accept = { confidence = 0.6 }

[policy.first]
[policy.second]
[policy.third]
"""
ASKED = "where is my parcel"
EMBEDDER = Words()
FIRST = Path(__file__).parent.parent / "layers" / "data" / "first-vectors"


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile whose promoted student, of the first version, needs an embedder."""
    own_home(monkeypatch, tmp_path)
    (tmp_path / "taught.toml").write_text(PROFILE)
    set_champion("taught", "student", put(FIRST, "taught", "student").name)
    return tmp_path / "taught.toml"


@pytest.fixture
def lenient(profile: Path, tmp_path: Path) -> Path:
    """The same profile, whose student does better with an embedder and does not need it."""
    keep(tmp_path / "kept", teach(EMBEDDER))
    set_champion("taught", "student", put(tmp_path / "kept", "taught", "student").name)
    return profile


def install(monkeypatch: pytest.MonkeyPatch, embedder: Words | None) -> None:
    monkeypatch.setattr("turnout.models.embed.find_embedder", lambda: embedder)


@pytest.mark.parametrize("of", ["profile", "lenient"])
def test_the_installed_embedder_is_found(
    of: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is needed, and where it is only better to have."""
    profile = request.getfixturevalue(of)
    install(monkeypatch, EMBEDDER)
    router = turnout.load(profile, config="")
    assert router.route_sync(ASKED).by == "student"
    for layers in (router.profile.layers, turnout.load_profile(profile, config="").layers):
        layer = layers[0].call
        assert isinstance(layer, Student)
        assert (layer.embedder, layer.lacks) == (EMBEDDER, "")


@pytest.mark.parametrize("installed", [None, Words(width=8)], ids=["no embedder", "another embedder"])
def test_a_student_that_cannot_run_is_a_warning(
    profile: Path, installed: Words | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, installed)
    with pytest.warns(IdleModelWarning, match=r"'taught': the trained.* cannot run.*turnout-build-minilm") as seen:
        router = turnout.load(profile, config="")
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert router.route_sync(ASKED).by == "fallback"


@pytest.mark.parametrize("installed", [None, Words(width=8)], ids=["no embedder", "another embedder"])
def test_a_student_that_can_do_without_answers_by_words(
    lenient: Path,
    installed: Words | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And nobody is warned of it."""
    from turnout.runtime.runtime import Runtime

    install(monkeypatch, installed)
    monkeypatch.setattr("turnout.models.remote.find_embedder", lambda: installed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        router = turnout.load(lenient, config="")
    decision = router.route_sync(ASKED)
    assert router.profile.layers[0].call.lacks == "words-16"  # type: ignore[union-attr]
    assert (decision.by, decision.route) == ("student", "first")
    assert main(["route", ASKED, "--no-log", "-p", str(lenient)]) == 0
    assert "cannot run" not in capsys.readouterr().err
    with caplog.at_level(logging.WARNING, "turnout.runtime"):
        Runtime(profile=str(lenient), config="")
    assert caplog.records == []


def test_a_missing_extra_is_a_warning(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.layers.student.find_spec", lambda name: None)
    with pytest.warns(IdleModelWarning, match=r"pip install 'turnout\[student\]'"):
        turnout.load(profile, config="")


def test_a_shipped_student_without_its_extra_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not chosen: the rules of a shipped profile do without it."""
    monkeypatch.setattr("turnout.layers.student.find_spec", lambda name: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert turnout.load("assist", config="").route_sync("How do I train a model?").route


def test_the_command_line_says_it_on_stderr(
    profile: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, None)
    said = "turnout: profile 'taught': the trained model of layer 'student' cannot run, so the layer passes: "
    for argv in (("route", ASKED, "--no-log"), ("check",)):
        assert main([*argv, *(("-p",) if argv[0] == "route" else ()), str(profile)]) == 0
        err = capsys.readouterr().err
        assert err.startswith(said)
        assert err.count("\n") == 1


def test_doctor_says_it(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, None)
    settings = tmp_path / "mine.toml"
    settings.write_text(f'[server]\nprofiles = ["{profile}"]\n')
    assert main(["doctor", "--config", str(settings)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "cannot run" in out
    assert "turnout student rollback -p taught" in out
    assert "1 broken" in out


def test_the_server_logs_it(profile: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from turnout.runtime.runtime import Runtime

    monkeypatch.setattr("turnout.models.remote.find_embedder", lambda: None)
    with caplog.at_level(logging.WARNING, "turnout.runtime"):
        Runtime(profile=str(profile), config="")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cannot run" in caplog.text
