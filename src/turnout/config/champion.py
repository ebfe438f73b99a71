"""Which trained models a profile serves: the folder of each layer that takes one.

    <data folder>/students/<profile>/<layer>/
        <digest>/        a trained model; never changed
        champion         one line: the digest of the model that serves, or `shipped`

A layer takes a model if its kind has the field `artefact`. Models are looked up by the profile's name and then by that
of the profile it extends, so that a derived profile uses the same student until it has its own. A renamed profile keeps
its folder. Until another model is promoted, the champion is the one that came with Turnout. This module only reads the
champion; `learn.registry` changes it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path as File
from typing import Any

import msgspec
from msgspec import Struct

from turnout.core.errors import ConfigError, Problem, ShelfError
from turnout.core.profile import Profile
from turnout.core.registry import kinds
from turnout.layers.artefact import MANIFEST, MOST_MANIFEST_BYTES
from turnout.text.file import read_bytes, reason_of

from .check import layer_id
from .document import Tree
from .name import current_name, old_names
from .settings import data_folder

FIELD = "artefact"
CHAMPION = "champion"
SHIPPED = "shipped"
"""Names the model that came with Turnout, if there is one."""

# A safe folder name: no separator, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# The beginning of a SHA-256, in hex.
_DIGEST = re.compile(r"[0-9a-f]{8,64}")
# Of the file that names the champion, which is one line.
CHAMPION_BYTES = 4096


class IdleModelWarning(UserWarning):
    """A trained model was chosen to serve and cannot run."""


class ModelSummary(Struct, frozen=True):
    """The part of a manifest needed to list models."""

    digest: str
    created: Any = None
    metrics: Mapping[str, Any] = {}
    counts: Mapping[str, Any] = {}


# --- the models of one layer


def find_champion(profile: str, layer: str) -> File | None:
    """The folder of the model that serves: the user's own, else the one that came with Turnout, else None.

    Raises ConfigError if the champion is missing, because no other model may serve in its place.
    """
    if not is_name(profile) or not is_name(layer):
        return None
    digest = champion_digest(profile, layer)
    if digest == SHIPPED:
        return shipped_model(profile, layer)
    folder = shelf_of(profile, layer) / digest
    if not os.path.isfile(folder / MANIFEST):
        text = f"the model {digest} it names is not on the shelf: turnout student rollback -p {profile}, or train again"
        raise ConfigError([Problem(str(champion_file(profile, layer)), text)])
    return folder


def champion_digest(profile: str, layer: str) -> str:
    """The digest of the champion, or `shipped`."""
    file = champion_file(profile, layer)
    try:
        digest = read_bytes(file, CHAMPION_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return SHIPPED
    except OSError as error:
        raise ConfigError([Problem(str(file), f"cannot be read: {reason_of(error)}")]) from None
    if digest != SHIPPED and not is_digest(digest):
        message = (
            f"{digest[:80]!r} is not the digest of a model: turnout student rollback -p {profile}, or delete the file"
        )
        raise ConfigError([Problem(str(file), message)])
    return digest


def champion_file(profile: str, layer: str) -> File:
    """The file that names the champion."""
    return shelf_of(profile, layer) / CHAMPION


def shelf_of(profile: str, layer: str) -> File:
    """The folder of one layer's models, under any name the profile has had; else the one to create."""
    layer = check_name(layer, "a layer")
    now = current_name(check_name(profile, "a profile"))
    places = [shelves() / name / layer for name in (now, *old_names(now))]
    return next((place for place in places if os.path.isdir(place)), places[0])


def layers_with_models(profile: str) -> list[str]:
    """The layers of a profile that have a folder of models."""
    if not is_name(profile):
        return []
    folders = [shelves() / name for name in (profile, *old_names(profile))]
    return sorted({one.name for folder in folders if folder.is_dir() for one in folder.iterdir() if is_name(one.name)})


def shelves() -> File:
    return data_folder() / "students"


def shipped_model(profile: str, layer: str) -> File | None:
    """The folder of the model that came with Turnout, if there is one."""
    name = current_name(check_name(profile, "a profile"))
    folder = File(str(resources.files("turnout.profiles"))) / "students" / name / layer
    return folder if is_name(layer) and (folder / MANIFEST).is_file() else None


def read_summary(folder: File) -> ModelSummary | None:
    """A summary of a folder's manifest; None if it cannot be read."""
    try:
        return msgspec.json.decode(read_bytes(folder / MANIFEST, MOST_MANIFEST_BYTES), type=ModelSummary)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_name(name: str) -> bool:
    """Whether a profile or layer of that name can have a folder."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def check_name(name: str, whose: str) -> str:
    if not is_name(name):
        allowed = "letters, digits, '.', '_' and '-', at most 100, beginning with a letter or digit"
        raise ShelfError(f"{name[:80]!r} cannot be {whose} with models of its own: its name may have {allowed}")
    return name


# --- the models of a profile


def find_model(tree: Tree, layer: str, digest: str | None) -> File | None:
    """The folder of the model with that digest, or of the champion if there is no digest."""
    for name in _names(tree, layer):
        folder = find_champion(name, layer) if digest is None else _find_digest(name, layer, digest)
        if folder is not None:
            return folder
    return None


def _find_digest(profile: str, layer: str, digest: str) -> File | None:
    own = shelf_of(profile, layer) / digest if is_digest(digest) else None
    for folder in (shipped_model(profile, layer), own):
        summary = read_summary(folder) if folder is not None else None
        if summary is not None and summary.digest == digest:
            return folder
    return None


def followed(tree: Tree, beside: File | None) -> tuple[File, ...]:
    """The files that decide which models serve; when one of them changes, so may the models."""
    found: list[File] = []
    for layer, entry in _takers(tree):
        if entry.get("model") is None:
            found += [champion_file(name, layer) for name in _names(tree, layer)]
        try:
            folder = _folder(tree, layer, entry, beside)
        except ConfigError:
            continue  # the champion's own file is followed, and that is the one to correct
        if folder is not None:
            found.append(folder / MANIFEST)
    return tuple(found)


def digest_models(tree: Tree, beside: File | None) -> str:
    """A hash of the manifests of the models that serve; empty if there are none."""
    folders = {layer: folder for layer, entry in _takers(tree) if (folder := _folder(tree, layer, entry, beside))}
    digest = hashlib.sha256()
    for layer, folder in folders.items():
        digest.update(f"{layer}\0{folder}\0".encode("utf-8", "surrogatepass"))
        try:
            digest.update(read_bytes(folder / MANIFEST, MOST_MANIFEST_BYTES))
        except OSError:
            digest.update(b"unreadable")
    return digest.hexdigest() if folders else ""


def _folder(tree: Tree, layer: str, entry: Mapping[str, Any], beside: File | None) -> File | None:
    named = entry.get("model")
    if isinstance(named, str):
        return (beside or File()) / os.path.expanduser(named)
    pinned = entry.get(FIELD)
    return find_model(tree, layer, pinned if isinstance(pinned, str) else None)


def absent_models(profile: Profile) -> dict[str, str]:
    """The layers whose trained model does not serve, and why."""
    absent = {place.id: place.absent for place in profile.layers if place.call is None}
    return {layer: absent[layer] for layer, _ in _takers(profile.resolved) if layer in absent}


def idle_models(profile: Profile) -> list[str]:
    """A sentence about every trained model that should serve, by promotion or because the profile names it, but cannot
    run. A model that came with Turnout is not reported: without it, the other layers decide."""
    absent, tree = absent_models(profile), profile.resolved
    whose = f"profile {profile.name!r}: the trained model of layer"
    return [
        f"{whose} {layer!r} cannot run, so the layer passes: {absent[layer]}"
        for layer, entry in _takers(tree)
        if layer in absent and (entry.get("model") or entry.get(FIELD) or _is_promoted(tree, layer))
    ]


def _is_promoted(tree: Mapping[str, Any], layer: str) -> bool:
    return any(champion_digest(name, layer) != SHIPPED for name in _names(tree, layer))


def takes_model(entry: Mapping[str, Any]) -> bool:
    """Whether the kind named in a layer's table serves a trained model."""
    kind = kinds().get(str(entry.get("kind")))
    return kind is not None and FIELD in kind.config.__struct_fields__


def _takers(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = tree.get("layers")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and takes_model(entry):
            yield layer_id(entry), entry


def _names(tree: Mapping[str, Any], layer: str) -> list[str]:
    """The profiles whose models the layer may use: its own, then the one it extends."""
    names = (tree.get("name"), tree.get("extends"))
    return [name for name in names if isinstance(name, str) and is_name(name) and is_name(layer)]
