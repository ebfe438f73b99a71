"""Which trained models a profile serves: for each layer that takes one, the folder its table leads to.

A layer takes one if its table may name an `artefact`. Looked for under the profile's own name and then under that of
the profile it extends, so that an heir is served by the same student until it has one of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any

from turnout.core.errors import ConfigError
from turnout.core.registry import kinds
from turnout.text.file import read_bytes

from .check import layer_id
from .document import Tree

FIELD = "artefact"


def find_model(tree: Tree, layer: str, digest: str | None) -> File | None:
    """The folder of the model of that digest; without one, of the champion."""
    # The shelf reads the settings, which are read as profiles are: at the top of this file it would be a circle.
    from .shelf import candidates, find_champion, is_name

    for name in _names(tree):
        if not is_name(name) or not is_name(layer):
            continue
        if digest is None:
            if (folder := find_champion(name, layer)) is not None:
                return folder
        else:
            for candidate in candidates(name, layer):
                if candidate.digest == digest:
                    return candidate.folder
    return None


def followed(tree: Tree, beside: File | None) -> tuple[File, ...]:
    """The files that say which models serve: whoever looks at them sees when another does."""
    from .shelf import MANIFEST, champion_file, is_name

    found: list[File] = []
    for layer, entry in _takers(tree):
        if entry.get("model") is None and is_name(layer):
            found += [champion_file(name, layer) for name in _names(tree) if is_name(name)]
        try:
            folder = _folder(tree, layer, entry, beside)
        except ConfigError:
            continue  # the champion's own file is looked at, and that is the one to mend
        if folder is not None:
            found.append(folder / MANIFEST)
    return tuple(found)


def digest_models(tree: Tree, beside: File | None) -> str:
    """Identifies the models that serve, by what their manifests say; empty where there are none."""
    from .shelf import MANIFEST, MANIFEST_BYTES

    told = hashlib.sha256()
    some = False
    for layer, entry in _takers(tree):
        folder = _folder(tree, layer, entry, beside)
        if folder is None:
            continue
        some = True
        told.update(f"{layer}\0{folder}\0".encode("utf-8", "surrogatepass"))
        try:
            told.update(read_bytes(folder / MANIFEST, MANIFEST_BYTES))
        except OSError:
            told.update(b"unreadable")
    return told.hexdigest() if some else ""


def _folder(tree: Tree, layer: str, entry: Mapping[str, Any], beside: File | None) -> File | None:
    named = entry.get("model")
    if isinstance(named, str):
        return (beside or File()) / os.path.expanduser(named)
    pinned = entry.get(FIELD)
    return find_model(tree, layer, pinned if isinstance(pinned, str) else None)


def _takers(tree: Tree) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = tree.get("layers")
    for entry in entries if isinstance(entries, list) else ():
        named = entry.get("kind") if isinstance(entry, dict) else None
        kind = kinds().get(named) if isinstance(named, str) else None
        if kind is not None and FIELD in kind.config.__struct_fields__:
            yield layer_id(entry), entry


def _names(tree: Tree) -> list[str]:
    return [name for name in (tree.get("name"), tree.get("extends")) if isinstance(name, str)]
