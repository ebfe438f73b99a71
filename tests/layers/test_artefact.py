"""An artefact is served as it was written, or not at all."""

import hashlib
import shutil
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from small_student import Words, keep, questions, teach, teach_staged
from turnout.core.errors import ArtefactUnreadable, ConfigError
from turnout.layers import student_model, term_head
from turnout.layers.artefact import MANIFEST, WEIGHTS, digest_of, read_manifest
from turnout.layers.student_model import StudentManifest, read_student
from turnout.learn.registry import pack
from turnout.text.ngram import Ngrams

FIRST = Path(__file__).parent / "data" / "first-words"
EMBEDDER = Words()
FITTED = teach(EMBEDDER)
PLAIN = teach()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keep(tmp_path / "kept", FITTED)
    return tmp_path / "kept"


def test_read_as_written(folder: Path) -> None:
    read, written = read_student(folder), FITTED.model()
    for text, _ in questions()[::7]:
        (vector,) = EMBEDDER.embed([text])
        one, other = read.judge(text, vector), written.judge(text, vector)
        assert one == other


def test_two_stages_are_read_as_written(tmp_path: Path) -> None:
    fitted = teach_staged()
    assert keep(tmp_path, fitted).alone == fitted.draft.alone
    read, written = read_student(tmp_path), fitted.model()
    stages = set()
    for text in (*(text for text, _ in questions()[::7]), "the letter", "bug money arrived"):
        (vector,) = EMBEDDER.embed([text])
        one, other = read.judge(text, vector), written.judge(text, vector)
        assert one == other
        stages.add(one.alone)
    assert stages == {True, False}


def test_what_a_student_has_not_is_not_written(tmp_path: Path) -> None:
    """So the digest of a student from before there was such a field is what it was."""
    keep(tmp_path, PLAIN)
    told = msgspec.json.decode((tmp_path / MANIFEST).read_bytes())
    assert not {"alone", "ngrams"} & told.keys()
    before = {name: value for name, value in told.items() if name not in ("digest", "created")}
    assert told["digest"] == hashlib.sha256(msgspec.json.encode(before, order="sorted")).hexdigest()[:16]


class Unfit(NamedTuple):
    id: str
    change: Callable[[dict[str, Any]], object]
    said: str


# Whoever changes the manifest of a student of two stages and signs it anew.
UNFIT = [
    Unfit("surer than sure", lambda told: told["alone"].update(sure=1.5), "not the manifest"),
    Unfit("no temperature", lambda told: told["alone"].update(temperature=0.0), "not the manifest"),
    Unfit("no spread", lambda told: told["alone"]["known"].update(spread=0.0), "not the manifest"),
    Unfit("half of it", lambda told: told["alone"].pop("confidence"), "not the manifest"),
    Unfit("more than there is", lambda told: told["alone"].update(code="x"), "not the manifest"),
    Unfit("without words", lambda told: told.update(mix=0.0), "words and vectors"),
    Unfit("without vectors", lambda told: told.update(embedder=None), "words and vectors"),
    Unfit("without a first stage", lambda told: told.pop("alone"), "has a stage for words alone"),
    Unfit("nothing to read", lambda told: told.pop("terms"), "reads either terms or"),
    Unfit(
        "two things to read", lambda told: told.update(ngrams=msgspec.to_builtins(Ngrams())), "reads either terms or"
    ),
    Unfit("a step of nothing", lambda told: told.update(step=0.0), "not the manifest"),
    Unfit("a step of everything", lambda told: told.update(step=1e31), "not the manifest"),
    Unfit("no window", lambda told: told["terms"].update(head=0), "not the manifest"),
    Unfit("a wide window", lambda told: told["terms"].update(tail=65_537), "not the manifest"),
    Unfit("long runs", lambda told: told["terms"].update(letters=[3, 9]), "not the manifest"),
    Unfit("runs backwards", lambda told: told["terms"].update(letters=[5, 3]), "from low to high"),
    Unfit("no power of two", lambda told: told["terms"].update(buckets=1000), "power of two"),
    Unfit("more buckets", lambda told: told["terms"].update(buckets=1 << 21), "table is uint8"),
    Unfit("an unknown term", lambda told: told["terms"].update(code="x"), "not the manifest"),
]


@pytest.mark.parametrize("case", UNFIT, ids=lambda case: case.id)
def test_a_signed_manifest_that_is_none(case: Unfit, tmp_path: Path) -> None:
    keep(tmp_path, teach_staged())
    told = msgspec.json.decode((tmp_path / MANIFEST).read_bytes())
    case.change(told)
    own = {name: value for name, value in told.items() if name not in ("digest", "created")}
    told["digest"] = hashlib.sha256(msgspec.json.encode(own, order="sorted")).hexdigest()[:16]
    (tmp_path / MANIFEST).write_bytes(msgspec.json.encode(told))
    with pytest.raises(ArtefactUnreadable, match=case.said):
        read_student(tmp_path)


def test_a_threshold_that_was_changed_is_refused(tmp_path: Path) -> None:
    keep(tmp_path, teach_staged())
    told = msgspec.json.decode((tmp_path / MANIFEST).read_bytes())
    told["alone"]["sure"] = 0.0
    (tmp_path / MANIFEST).write_bytes(msgspec.json.encode(told))
    with pytest.raises(ArtefactUnreadable, match="changed after it was written"):
        read_student(tmp_path)


def test_judged_is_what_it_says(folder: Path) -> None:
    trained = read_student(folder)
    for text in ("where is my parcel", "", "zzz", "x" * 10_000, "\ud800", "where " * 5_000):
        judged = trained.judge(text, EMBEDDER.embed([text])[0])
        assert 0.0 <= judged.confidence <= 1.0
        assert sum(judged.probabilities) == pytest.approx(1.0, abs=1e-5)
        assert judged.best != judged.second
        assert judged.label == trained.labels[judged.best]


def test_few_labels_and_many_are_weighed_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = read_student(folder)
    for module in (student_model, term_head):
        monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr(student_model, "_recent", {})
    many = read_student(folder)
    assert isinstance(many.judge("", EMBEDDER.embed([""])[0]).probabilities, np.ndarray)
    for text in (*(text for text, _ in questions()), "", "zzz", "x" * 10_000, "where " * 5_000):
        one, other = (trained.judge(text, EMBEDDER.embed([text])[0]) for trained in (few, many))
        assert (one.label, one.best, one.second) == (other.label, other.best, other.second)
        assert list(one.probabilities) == pytest.approx(other.probabilities.tolist(), abs=1e-6)  # type: ignore[union-attr]
        for number in ("confidence", "knownness", "near"):
            assert getattr(one, number) == pytest.approx(getattr(other, number), rel=1e-4, abs=1e-5)
        pairs = zip(few.pushes(text, 0, 1), many.pushes(text, 0, 1), strict=True)
        assert all(mine == (word, pytest.approx(push, abs=1e-5)) for mine, (word, push) in pairs)


def test_the_digest_is_of_what_decides(tmp_path: Path) -> None:
    one = keep(tmp_path / "one", PLAIN)
    other = keep(tmp_path / "other", teach())
    assert one.digest == other.digest
    assert (tmp_path / "one" / WEIGHTS).read_bytes() == (tmp_path / "other" / WEIGHTS).read_bytes()
    assert digest_of(replace(one, created="later")) == one.digest
    for change in ({"temperature": 2.0}, {"labels": one.labels[::-1]}, {"files": {WEIGHTS: "0"}}, {"seed": 9}):
        assert digest_of(replace(one, **change)) != one.digest


class TamperedCase(NamedTuple):
    id: str
    change: Callable[[dict[str, Any]], None]
    said: str


def _put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda arrays: arrays.__setitem__(name, value(arrays[name]) if callable(value) else value)


def _poke(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def poke(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name].flat[0] = value

    return poke


# Whoever changes the weights and signs them anew: the hashes are right, the arrays are not.
TAMPERED = [
    TamperedCase("NaN", _poke("vector_weights", np.nan), "vector_weights has numbers that are not finite"),
    TamperedCase("infinity", _poke("shape", np.inf), "shape has numbers that are not finite"),
    TamperedCase("beyond sums", _poke("bias", 3e38), "bias has numbers beyond 1e+30"),
    TamperedCase("a label less", _put("table", lambda a: a[:, :-1]), "table is uint8"),
    TamperedCase("a bucket less", _put("table", lambda a: a[:-1]), "table is uint8"),
    TamperedCase("labels for buckets", _put("table", lambda a: a.T), "table is uint8"),
    TamperedCase("learnt many times", _poke("table", 7), "are neither learnt nor not"),
    TamperedCase("a number less", _put("shape", lambda a: a[:-1]), "shape is float32"),
    TamperedCase("signed", _put("table", lambda a: a.astype(np.int8)), "table is int8"),
    TamperedCase("wrong type", _put("bias", lambda a: a.astype(np.float64)), "not float32"),
    TamperedCase("wrong rank", _put("bank", lambda a: a.ravel()), "bank is float16"),
    TamperedCase("missing", lambda arrays: arrays.pop("bank"), "no array 'bank'"),
    TamperedCase("more", _put("code", np.zeros(1)), "'code' is not an array of a student"),
    TamperedCase("bank too short", _put("bank_starts", lambda a: a + 1), "do not divide the bank"),
]
# The same of a student of the first version.
TAMPERED_FIRST = [
    TamperedCase("infinity", _poke("ngram_scales", np.inf), "ngram_scales has numbers that are not finite"),
    TamperedCase("a label less", _put("ngram_weights", lambda a: a[:, :-1]), "ngram_weights is int8"),
    TamperedCase("a row less", _put("ngram_scales", lambda a: a[:-1]), "ngram_scales is float32"),
    TamperedCase("wrong type", _put("ngram_bias", lambda a: a.astype(np.float64)), "not float32"),
    TamperedCase("bucket too large", _poke("ngram_rows", 2**31), "not rising numbers"),
    TamperedCase("buckets twice", _put("ngram_rows", np.zeros_like), "not rising numbers"),
]


def _refuse(case: TamperedCase, folder: Path, given: Mapping[str, Any], *, vectors: bool = True) -> None:
    arrays = dict(given)
    if case.id == "more":
        arrays["code"] = np.zeros(1)
    else:
        case.change(arrays)
    sign(folder, pack(arrays))
    with pytest.raises(ArtefactUnreadable, match=r"weights\.npz") as caught:
        read_student(folder, vectors=vectors)
    assert case.said in str(caught.value)


@pytest.mark.parametrize("case", TAMPERED, ids=lambda case: case.id)
def test_signed_nonsense_is_refused(case: TamperedCase, folder: Path) -> None:
    _refuse(case, folder, FITTED.arrays)


OF_WORDS = [case for case in TAMPERED if "vector" not in case.said and "divide" not in case.said]


@pytest.mark.parametrize("case", OF_WORDS, ids=lambda case: case.id)
def test_signed_nonsense_is_refused_without_numpy_too(case: TamperedCase, folder: Path) -> None:
    """What words alone are judged by is read by plain Python, and said in the same words."""
    _refuse(case, folder, FITTED.arrays, vectors=False)


@pytest.mark.parametrize("case", TAMPERED_FIRST, ids=lambda case: case.id)
def test_signed_nonsense_of_the_first_version_is_refused(case: TamperedCase, tmp_path: Path) -> None:
    shutil.copytree(FIRST, tmp_path, dirs_exist_ok=True)
    with np.load(tmp_path / WEIGHTS) as arrays:
        _refuse(case, tmp_path, arrays)


def sign(folder: Path, packed: bytes) -> None:
    manifest = read_manifest(folder, StudentManifest)
    manifest = replace(manifest, files={WEIGHTS: hashlib.sha256(packed).hexdigest()})
    manifest = replace(manifest, digest=digest_of(manifest))
    (folder / WEIGHTS).write_bytes(packed)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


class ExecutedPickle:
    """Leaves a mark if anybody unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


def pickled() -> bytes:
    raw = BytesIO()
    np.savez(raw, table=np.array([ExecutedPickle()], dtype=object))
    return raw.getvalue()


def bomb() -> bytes:
    raw = BytesIO()
    zeros = bytes(64 * 1024 * 1024)
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name in range(9):
            file.writestr(f"{name}.npy", zeros)
    return raw.getvalue()


PACKED: dict[str, tuple[Callable[[], bytes], str]] = {
    "not a zip": (lambda: b"nonsense", "not arrays without code"),
    "empty": (lambda: b"", "not arrays without code"),
    "truncated": (lambda: pack(FITTED.arrays)[:-40], "not arrays without code"),
    "pickled": (pickled, "not arrays without code"),
    "a bomb": (bomb, "bytes of arrays"),
}


@pytest.mark.parametrize(("packed", "said"), PACKED.values(), ids=PACKED)
def test_signed_files_that_are_none(
    packed: Callable[[], bytes], said: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sign(folder, packed())
    with pytest.raises(ArtefactUnreadable, match=said):
        read_student(folder)
    assert not (tmp_path / "executed").exists()


def test_weights_that_were_changed_are_refused(folder: Path) -> None:
    raw = bytearray((folder / WEIGHTS).read_bytes())
    raw[len(raw) // 2] ^= 1
    (folder / WEIGHTS).write_bytes(raw)
    with pytest.raises(ArtefactUnreadable, match="not the file its manifest was written for"):
        read_student(folder)


SPOILED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "edited": (lambda raw: raw.replace(b'"seed": 0', b'"seed": 1'), "changed after it was written"),
    "another temperature": (lambda raw: raw.replace(b'"temperature": 0', b'"temperature": 1'), "changed after"),
    "not JSON": (lambda raw: raw[:-9], "not the manifest"),
    "not a manifest": (lambda raw: b"{}", "not the manifest"),
    "another format": (lambda raw: raw.replace(b'"format": 1', b'"format": 2'), "format 2"),
    "an unknown key": (lambda raw: raw.replace(b'"seed"', b'"sead"'), "not the manifest"),
    "no finite number": (lambda raw: raw.replace(b'"temperature": 0', b'"temperature": -1'), "not the manifest"),
    "deep": (lambda raw: b"[" * 100_000, "not the manifest"),
    "buckets": (lambda raw: raw.replace(b"1048576", b"1048575"), "not the manifest"),
}


@pytest.mark.parametrize(("spoil", "said"), SPOILED.values(), ids=SPOILED)
def test_a_manifest_that_is_none(spoil: Callable[[bytes], bytes], said: str, folder: Path) -> None:
    path = folder / MANIFEST
    raw = path.read_bytes()
    path.write_bytes(spoil(raw))
    assert path.read_bytes() != raw
    with pytest.raises(ArtefactUnreadable, match=said):
        read_student(folder)


def test_what_is_missing(folder: Path, tmp_path: Path) -> None:
    (folder / WEIGHTS).unlink()
    with pytest.raises(ArtefactUnreadable, match=r"weights\.npz: cannot be read"):
        read_student(folder)
    with pytest.raises(ConfigError, match=r"manifest\.json: cannot be read"):
        read_student(tmp_path / "nowhere")


def test_a_vector_is_asked_for(folder: Path) -> None:
    with pytest.raises(ValueError, match="needs a vector"):
        read_student(folder).judge("where is my parcel")


def test_a_copy_is_the_same(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    found: StudentManifest = read_student(tmp_path / "copy").manifest
    assert found == read_manifest(folder, StudentManifest)
