"""Writes a student to a folder: of the same student the same bytes, whenever and wherever it is written."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

import turnout
from turnout.core.errors import LearnError
from turnout.layers.artefact import CARD, FORMAT, MANIFEST, WEIGHTS, Manifest, Trained, check_arrays, digest_of

from .fit import Fitted

# The first moment a ZIP file can name: a real one would make every writing differ.
MOMENT = (1980, 1, 1, 0, 0, 0)


def write_artefact(
    folder: Path,
    fitted: Fitted,
    *,
    profile: str,
    layer: str = "student",
    data_hash: str = "",
    profile_hash: str = "",
    metrics: Mapping[str, float] | None = None,
    card: str = "",
    created: str | None = None,
) -> Manifest:
    """Write it; what the manifest says. `metrics` come on top of the cross-validated ones."""
    manifest, packed = _prepare(fitted, profile, layer, data_hash, profile_hash, metrics or {}, created)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS).write_bytes(packed)
    if card:
        (folder / CARD).write_text(card, encoding="utf-8")
    # Last: a folder without a manifest is no artefact.
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return manifest


def to_trained(fitted: Fitted) -> Trained:
    """The student in memory, as it would be read from disk."""
    manifest, _ = _prepare(fitted, "", "student", "", "", {}, "")
    return Trained(manifest, fitted.arrays)


def _prepare(
    fitted: Fitted,
    profile: str,
    layer: str,
    data_hash: str,
    profile_hash: str,
    metrics: Mapping[str, float],
    created: str | None,
) -> tuple[Manifest, bytes]:
    packed = pack(fitted.arrays)
    manifest = Manifest(
        format=FORMAT,
        profile=profile,
        layer=layer,
        labels=fitted.labels,
        ngrams=fitted.ngrams,
        embedder=fitted.embedder,
        mix=fitted.mix.share,
        temperature=fitted.mix.temperature,
        abstention=fitted.abstention,
        confidence=fitted.confidence,
        metrics={**fitted.metrics, **metrics},
        counts=fitted.counts,
        oos_rows=fitted.oos_rows,
        data_hash=data_hash,
        profile_hash=profile_hash,
        seed=fitted.seed,
        created=datetime.now(UTC).isoformat(timespec="seconds") if created is None else created,
        turnout=turnout.__version__,
        files={WEIGHTS: hashlib.sha256(packed).hexdigest()},
        alone=fitted.alone,
    )
    for problem in check_arrays(manifest, fitted.arrays):
        raise LearnError(f"this student cannot be kept: {problem}")
    return replace(manifest, digest=digest_of(manifest)), packed


def pack(arrays: Mapping[str, Any]) -> bytes:
    """The arrays as an .npz file that depends on them alone."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(arrays):
            raw = BytesIO()
            np.lib.format.write_array(raw, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, raw.getvalue())
    return packed.getvalue()
