"""A trained model on disk, of whatever kind: a folder that is read whole or refused.

`manifest.json` says what it is, `weights.npz` holds its numbers, `card.html` shows people how good it is. Nothing in it
is code. Every file has the hash the manifest names, every array the type and shape that follow from the manifest, every
number is finite. A kind of model is a `Manifest` of its own: it adds fields, and says which arrays belong to them.
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

from .npz import MOST_BYTES, Form, Packed, read_arrays

if TYPE_CHECKING:
    from .npz import Array

FORMAT = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights.npz"
CARD = "card.html"
# Hex digits of SHA-256 that name an artefact, as many as name a profile.
DIGEST_DIGITS = 16
# A manifest has some lines for each label.
MOST_MANIFEST_BYTES = 4 * 1024 * 1024
# More routes than any profile has; weights are sized by it.
MOST_LABELS = 10_000
# A float32 holds eight powers of ten more, so that no sum over a text is infinite.
LARGEST = 1e30

Finite = Annotated[float, Meta(gt=-1e30, lt=1e30)]
Positive = Annotated[float, Meta(gt=1e-30, lt=1e30)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]

Expected = Mapping[str, tuple[str, tuple[int | str, ...]]]
"""The type and shape of each array. A name in a shape is any length, the same wherever the name stands."""


class Embedder(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedder a model was fitted with; vectors of another do not compare."""

    name: str
    width: Annotated[int, Meta(ge=1, le=16_384)]


class Manifest(Struct, frozen=True, kw_only=True):
    """What every artefact says of itself."""

    KIND: ClassVar[str]
    """`a student`"""

    format: int
    profile: str
    layer: str
    embedder: Embedder | None
    metrics: Mapping[str, Any]
    counts: Mapping[str, Count]
    """Rows learnt from, by label or tier."""
    data_hash: str
    profile_hash: str
    seed: int
    created: str
    turnout: str
    files: Mapping[str, str]
    """SHA-256 of every file beside this one that decides anything."""
    digest: str = ""
    """Names the artefact: the same rows and seed give the same."""

    def contradictions(self) -> list[str]:
        """What in it does not fit together."""
        return []

    def arrays(self) -> Expected:
        """The arrays that belong to it."""
        raise NotImplementedError

    def faults_of(self, arrays: Mapping[str, Array]) -> list[str]:
        """What is wrong with arrays of the right shapes and finite numbers."""
        return []


NOT_DIGESTED = ("digest", "created")
"""What may differ between two artefacts that are the same."""

M = TypeVar("M", bound=Manifest)


def digest_of(manifest: Manifest) -> str:
    """What names an artefact: the beginning of the SHA-256 of its manifest, but for what may differ."""
    told = {name: value for name, value in msgspec.to_builtins(manifest).items() if name not in NOT_DIGESTED}
    return hashlib.sha256(msgspec.json.encode(told, order="sorted")).hexdigest()[:DIGEST_DIGITS]


def read_manifest(folder: Path, kind: type[M]) -> M:
    """What a folder says it is, its own digest checked."""
    path = folder / MANIFEST
    raw = _read_file(path, MOST_MANIFEST_BYTES)
    try:
        manifest = msgspec.json.decode(raw, type=kind)
        digest = digest_of(manifest)
    # OverflowError: a number that is read and cannot be written.
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise ArtefactUnreadable(path, f"not the manifest of {kind.KIND}: {error}") from None
    if manifest.format != FORMAT:
        said = f"format {manifest.format}, this version of Turnout reads {FORMAT}"
        raise ArtefactUnreadable(path, said, "train again")
    if digest != manifest.digest:
        raise ArtefactUnreadable(path, f"it was changed after it was written, its digest is not {manifest.digest!r}")
    for problem in manifest.contradictions():
        raise ArtefactUnreadable(path, problem)
    return manifest


def read_artefact(folder: Path, kind: type[M]) -> tuple[M, dict[str, Packed]]:
    """The manifest and the arrays of a folder, of the types and shapes it asks for; ArtefactUnreadable says what is
    wrong."""
    manifest = read_manifest(folder, kind)
    return manifest, read_weights(folder, manifest, read_packed(folder, manifest))


def read_packed(folder: Path, manifest: Manifest) -> bytes:
    """The file of weights, if it is the one its manifest was written for."""
    path = folder / WEIGHTS
    raw = _read_file(path, MOST_BYTES)
    if hashlib.sha256(raw).hexdigest() != manifest.files.get(WEIGHTS):
        raise ArtefactUnreadable(path, "it is not the file its manifest was written for")
    return raw


def read_weights(folder: Path, manifest: Manifest, raw: bytes) -> dict[str, Packed]:
    """The arrays in a file of weights, of the types and shapes its manifest asks for."""
    return read_arrays(folder / WEIGHTS, raw, lambda forms: check_forms(manifest, forms))


def unpack_arrays(folder: Path, manifest: Manifest, packed: Mapping[str, Packed]) -> dict[str, Array]:
    """Arrays for NumPy, their numbers checked."""
    arrays = {name: one.numpy() for name, one in packed.items()}
    for problem in check_arrays(manifest, arrays):
        raise ArtefactUnreadable(folder / WEIGHTS, problem)
    return arrays


def check_arrays(manifest: Manifest, arrays: Mapping[str, Array]) -> list[str]:
    """What is wrong with the arrays of a model that says this of itself."""
    forms = {name: Form(array.dtype.name, array.shape) for name, array in arrays.items()}
    return check_forms(manifest, forms) or _check_numbers(arrays) or manifest.faults_of(arrays)


def check_forms(manifest: Manifest, forms: Mapping[str, Form]) -> list[str]:
    """What is missing, unknown, or not of the type and shape that is expected."""
    expected = manifest.arrays()
    problems = [f"it has no array {name!r}" for name in expected if name not in forms]
    problems += [f"{name!r} is no array of {manifest.KIND}" for name in forms if name not in expected]
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
    """Which arrays have numbers that cannot be added up."""
    import numpy as np

    floats = {name: array for name, array in arrays.items() if array.dtype.kind == "f"}
    problems = [f"{name} has numbers that are not finite" for name, of in floats.items() if not np.isfinite(of).all()]
    if problems:
        return problems
    largest = {name: float(abs(of).max(initial=0)) for name, of in floats.items()}
    return [f"{name} has numbers beyond {LARGEST:g}" for name, most in largest.items() if most > LARGEST]


def check_floats(name: str, numbers: Sequence[float]) -> list[str]:
    """The same of one array, without NumPy."""
    if not all(map(isfinite, numbers)):
        return [f"{name} has numbers that are not finite"]
    return [f"{name} has numbers beyond {LARGEST:g}"] if max(map(abs, numbers), default=0.0) > LARGEST else []


def _read_file(path: Path, most: int) -> bytes:
    """A file of at most so many bytes: what is larger, or is no file but a pipe or a device, is not begun with."""
    try:
        return read_bytes(path, most)
    except OSError as error:
        raise ArtefactUnreadable(path, f"cannot be read: {reason_of(error)}") from None
