"""Writes a trained model to a folder: of the same model the same bytes, whenever and wherever it is written.

The manifest is written last, in one step: a folder without one is no artefact. What was written is read back before
anybody is told of it, so what is there can be served.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from turnout.core.errors import LearnError
from turnout.layers.artefact import CARD, MANIFEST, WEIGHTS, M, check_arrays, digest_of, read_artefact
from turnout.text.file import write_bytes

# The first moment a ZIP file can name: a real one would make every writing differ.
MOMENT = (1980, 1, 1, 0, 0, 0)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_artefact(folder: Path, draft: M, arrays: Mapping[str, Any], card: Callable[[M], str] | None = None) -> M:
    """Write a model; its manifest, with the hash of its weights and its own digest. `card` draws the card of it."""
    for problem in check_arrays(draft, arrays):
        raise LearnError(f"this model cannot be kept: {problem}")
    packed = pack(arrays)
    manifest = replace(draft, files={WEIGHTS: hashlib.sha256(packed).hexdigest()})
    manifest = replace(manifest, digest=digest_of(manifest))
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / WEIGHTS, packed)
    if card is not None:
        write_bytes(folder / CARD, card(manifest).encode())
    write_bytes(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    read_artefact(folder, type(manifest))
    return manifest


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
