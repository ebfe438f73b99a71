"""A trained model on disk, of any kind: a folder that is read whole or refused.

`manifest.json` describes it, `weights.npz` has its numbers, `card.html` shows people how good it is. It contains no
code. The weights must have the hash in the manifest, every array the type and shape that follow from it, and every
number must be finite. Each kind of model has a subclass of `Manifest` with more fields, which defines its arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta, Struct

from turnout.core.errors import ArtefactUnreadable
from turnout.text.file import read_bytes, reason_of

from .npz import MOST_BYTES, Form, PackedArray, read_arrays

if TYPE_CHECKING:
    from .npz import Array

FORMAT = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights.npz"
CARD = "card.html"
# Hex digits of SHA-256 in a digest, as many as in a profile's hash.
DIGEST_DIGITS = 16
# A manifest has some lines for each label.
MOST_MANIFEST_BYTES = 4 * 1024 * 1024
# More labels than any profile has routes. It bounds the size of the weights.
MOST_LABELS = 10_000
# A float32 can be eight powers of ten larger, so that no sum over a text overflows.
LARGEST = 1e30

Finite = Annotated[float, Meta(gt=-1e30, lt=1e30)]
Positive = Annotated[float, Meta(gt=1e-30, lt=1e30)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]

Expected = Mapping[str, tuple[str, tuple[int | str, ...]]]
"""The type and shape of each array. A name in a shape stands for any length, the same wherever it occurs."""


class Embedder(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedder a model was fitted with; vectors of another are not comparable."""

    name: str
    width: Annotated[int, Meta(ge=1, le=16_384)]


class Manifest(Struct, frozen=True, kw_only=True):
    """The fields of every manifest."""

    KIND: ClassVar[str]
    """`a student`, for messages."""

    format: int
    profile: str
    layer: str
    embedder: Embedder | None
    metrics: Mapping[str, Any]
    counts: Mapping[str, Count]
    """Training rows by label or tier."""
    data_hash: str
    profile_hash: str
    seed: int
    created: str
    turnout: str
    files: Mapping[str, str]
    """The SHA-256 of every other file that influences decisions."""
    digest: str = ""
    """Identifies the artefact: the same rows and seed give the same digest."""

    def contradictions(self) -> list[str]:
        """The problems within the manifest."""
        return []

    def arrays(self) -> Expected:
        """The expected arrays."""
        raise NotImplementedError

    def faults_of(self, arrays: Mapping[str, Array]) -> list[str]:
        """The problems of arrays with the right shapes and finite numbers."""
        return []


NOT_DIGESTED = ("digest", "created")
"""The fields that do not count for the digest."""

M = TypeVar("M", bound=Manifest)


def digest_of(manifest: Manifest) -> str:
    """The digest of an artefact: the beginning of the SHA-256 of its manifest, without the fields of NOT_DIGESTED."""
    fields = {name: value for name, value in msgspec.to_builtins(manifest).items() if name not in NOT_DIGESTED}
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()[:DIGEST_DIGITS]


def read_manifest(folder: Path, kind: type[M]) -> M:
    """The checked manifest of a folder."""
    path = folder / MANIFEST
    raw = _read_file(path, MOST_MANIFEST_BYTES)
    try:
        manifest = msgspec.json.decode(raw, type=kind)
        digest = digest_of(manifest)
    # OverflowError: a number that can be read but not written.
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise ArtefactUnreadable(path, f"not the manifest of {kind.KIND}: {error}") from None
    if manifest.format != FORMAT:
        why = f"format {manifest.format}, this version of Turnout reads {FORMAT}"
        raise ArtefactUnreadable(path, why, "train again")
    if digest != manifest.digest:
        raise ArtefactUnreadable(path, f"it was changed after it was written, its digest is not {manifest.digest!r}")
    for problem in manifest.contradictions():
        raise ArtefactUnreadable(path, problem)
    return manifest


def read_artefact(folder: Path, kind: type[M]) -> tuple[M, dict[str, PackedArray]]:
    """The manifest and the arrays of a folder, whose types and shapes are checked; raises ArtefactUnreadable."""
    manifest = read_manifest(folder, kind)
    return manifest, read_weights(folder, manifest, read_packed(folder, manifest))


def read_packed(folder: Path, manifest: Manifest) -> bytes:
    """The content of the weights file, after its hash is checked."""
    path = folder / WEIGHTS
    raw = _read_file(path, MOST_BYTES)
    if hashlib.sha256(raw).hexdigest() != manifest.files.get(WEIGHTS):
        raise ArtefactUnreadable(path, "it is not the file its manifest was written for")
    return raw


def read_weights(folder: Path, manifest: Manifest, raw: bytes) -> dict[str, PackedArray]:
    """The arrays in the content of a weights file, after their types and shapes are checked."""
    return read_arrays(folder / WEIGHTS, raw, lambda forms: check_forms(manifest, forms))


def unpack_arrays(folder: Path, manifest: Manifest, packed: Mapping[str, PackedArray]) -> dict[str, Array]:
    """The arrays as NumPy arrays, after their numbers are checked."""
    arrays = {name: one.numpy() for name, one in packed.items()}
    for problem in check_arrays(manifest, arrays):
        raise ArtefactUnreadable(folder / WEIGHTS, problem)
    return arrays


def check_arrays(manifest: Manifest, arrays: Mapping[str, Array]) -> list[str]:
    """The problems of a model's arrays."""
    forms = {name: Form(array.dtype.name, array.shape) for name, array in arrays.items()}
    return check_forms(manifest, forms) or _check_numbers(arrays) or manifest.faults_of(arrays)


def check_forms(manifest: Manifest, forms: Mapping[str, Form]) -> list[str]:
    """The arrays that are missing, unknown, or not of the expected type and shape."""
    expected = manifest.arrays()
    problems = [f"it has no array {name!r}" for name in expected if name not in forms]
    problems += [f"{name!r} is not an array of {manifest.KIND}" for name in forms if name not in expected]
    if problems:
        return problems
    lengths: dict[int | str, int] = {}
    for name, (dtype, shape) in expected.items():
        form = forms[name]
        for size, found in zip(shape, form.shape, strict=False):
            lengths.setdefault(size, size if isinstance(size, int) else found)
        wanted = tuple(lengths.get(size, size) for size in shape)
        if form.dtype != dtype or form.shape != wanted:
            problems.append(f"{name} is {form.dtype} {form.shape}, not {dtype} of {' x '.join(map(str, wanted))}")
    return problems


def _check_numbers(arrays: Mapping[str, Array]) -> list[str]:
    """The arrays with numbers that cannot be added up."""
    import numpy as np

    floats = {name: array for name, array in arrays.items() if array.dtype.kind == "f"}
    problems = [f"{name} has numbers that are not finite" for name, of in floats.items() if not np.isfinite(of).all()]
    if problems:
        return problems
    largest = {name: float(abs(of).max(initial=0)) for name, of in floats.items()}
    return [f"{name} has numbers beyond {LARGEST:g}" for name, most in largest.items() if most > LARGEST]


def check_floats(name: str, numbers: Sequence[float]) -> list[str]:
    """The same for one array, without NumPy."""
    if not all(map(isfinite, numbers)):
        return [f"{name} has numbers that are not finite"]
    return [f"{name} has numbers beyond {LARGEST:g}"] if max(map(abs, numbers), default=0.0) > LARGEST else []


def _read_file(path: Path, most: int) -> bytes:
    """The content of a file of at most this many bytes. Larger files, pipes and devices are refused before reading."""
    try:
        return read_bytes(path, most)
    except OSError as error:
        raise ArtefactUnreadable(path, f"cannot be read: {reason_of(error)}") from None
