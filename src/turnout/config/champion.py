"""Which trained models a profile serves: for each layer that takes one, the folder its table leads to.

    <data folder>/students/<profile>/<layer>/
        <digest>/        a model, as it was trained; never changed once it stands here
        champion         one line: the digest of the model that serves, or `shipped`

A layer takes one if its table may name an `artefact`. Looked for under the profile's own name and then under that of
the profile it extends, so that an heir is served by the same student until it has one of its own. A profile that had
another name keeps the shelf it has under that one. The model that came with Turnout is the champion until another is.
Here the champion is only read; `learn.registry` changes it.
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

FIELD = "artefact"
CHAMPION = "champion"
SHIPPED = "shipped"
"""What stands for the model that came with Turnout, or for none where there is none."""

# One folder's name: no separator, no leading dot, nothing a file system would take for something else.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# A digest is the beginning of a SHA-256, in hex.
_DIGEST = re.compile(r"[0-9a-f]{8,64}")
# The file that names the champion is one line.
CHAMPION_BYTES = 4096


class IdleModelWarning(UserWarning):
    """A trained model was chosen to serve and cannot run."""


class ModelSummary(Struct, frozen=True):
    """What is read of a manifest to list models; the rest is for the layer that serves one."""

    digest: str
    created: Any = None
    metrics: Mapping[str, Any] = {}
    counts: Mapping[str, Any] = {}


# --- the models of one layer


def find_champion(profile: str, layer: str) -> File | None:
    """The folder of the model that serves: the user's own, else the one that came with Turnout, else None.

    A champion that is named and not there is a ConfigError: another model than the one named is never served instead.
    """
    if not is_name(profile) or not is_name(layer):
        return None
    digest = champion_digest(profile, layer)
    if digest == SHIPPED:
        return shipped_model(profile, layer)
    folder = shelf_of(profile, layer) / digest
    if not os.path.isfile(folder / MANIFEST):
        said = f"the model {digest} it names is not on the shelf: turnout student rollback -p {profile}, or train again"
        raise ConfigError([Problem(str(champion_file(profile, layer)), said)])
    return folder


def champion_digest(profile: str, layer: str) -> str:
    """The digest of the champion, or `shipped`."""
    file = champion_file(profile, layer)
    try:
        said = read_bytes(file, CHAMPION_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return SHIPPED
    except OSError as error:
        raise ConfigError([Problem(str(file), f"cannot be read: {reason_of(error)}")]) from None
    if said != SHIPPED and not is_digest(said):
        message = f"{said[:80]!r} is no model's digest: turnout student rollback -p {profile}, or delete the file"
        raise ConfigError([Problem(str(file), message)])
    return said


def champion_file(profile: str, layer: str) -> File:
    """The file that says which model serves: to follow a champion, look at this one."""
    return shelf_of(profile, layer) / CHAMPION


def shelf_of(profile: str, layer: str) -> File:
    """The folder of one layer's models: where they are, under any name the profile has had, else where they will be."""
    layer = check_name(layer, "a layer")
    now = current_name(check_name(profile, "a profile"))
    places = [shelves() / name / layer for name in (now, *old_names(now))]
    return next((place for place in places if os.path.isdir(place)), places[0])


def layers_with_models(profile: str) -> list[str]:
    """The layers of a profile that have a shelf."""
    if not is_name(profile):
        return []
    folders = [shelves() / name for name in (profile, *old_names(profile))]
    return sorted({one.name for folder in folders if folder.is_dir() for one in folder.iterdir() if is_name(one.name)})


def shelves() -> File:
    # Settings are read as profiles are: at the top of this file it would be a circle.
    from .settings import data_folder

    return data_folder() / "students"


def shipped_model(profile: str, layer: str) -> File | None:
    """The model that came with Turnout, if there is one."""
    name = current_name(check_name(profile, "a profile"))
    folder = File(str(resources.files("turnout.profiles"))) / "students" / name / layer
    return folder if is_name(layer) and (folder / MANIFEST).is_file() else None


def read_summary(folder: File) -> ModelSummary | None:
    """What a folder's manifest says of itself; None where there is none that can be read."""
    try:
        return msgspec.json.decode(read_bytes(folder / MANIFEST, MOST_MANIFEST_BYTES), type=ModelSummary)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_name(name: str) -> bool:
    """Whether a profile or a layer of that name can have a folder."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def check_name(name: str, whose: str) -> str:
    if not is_name(name):
        said = "letters, digits, '.', '_' and '-', at most 100, beginning with a letter or digit"
        raise ShelfError(f"{name[:80]!r} cannot be {whose} with models of its own: its name may have {said}")
    return name


# --- the models of a profile


def find_model(tree: Tree, layer: str, digest: str | None) -> File | None:
    """The folder of the model of that digest; without one, of the champion."""
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
    """The files that say which models serve: a change of them is a change of models."""
    found: list[File] = []
    for layer, entry in _takers(tree):
        if entry.get("model") is None:
            found += [champion_file(name, layer) for name in _names(tree, layer)]
        try:
            folder = _folder(tree, layer, entry, beside)
        except ConfigError:
            continue  # the champion's own file is looked at, and that is the one to mend
        if folder is not None:
            found.append(folder / MANIFEST)
    return tuple(found)


def digest_models(tree: Tree, beside: File | None) -> str:
    """Identifies the models that serve, by what their manifests say; empty where there are none."""
    folders = {layer: folder for layer, entry in _takers(tree) if (folder := _folder(tree, layer, entry, beside))}
    told = hashlib.sha256()
    for layer, folder in folders.items():
        told.update(f"{layer}\0{folder}\0".encode("utf-8", "surrogatepass"))
        try:
            told.update(read_bytes(folder / MANIFEST, MOST_MANIFEST_BYTES))
        except OSError:
            told.update(b"unreadable")
    return told.hexdigest() if folders else ""


def _folder(tree: Tree, layer: str, entry: Mapping[str, Any], beside: File | None) -> File | None:
    named = entry.get("model")
    if isinstance(named, str):
        return (beside or File()) / os.path.expanduser(named)
    pinned = entry.get(FIELD)
    return find_model(tree, layer, pinned if isinstance(pinned, str) else None)


def absent_models(profile: Profile) -> dict[str, str]:
    """The layers of a profile whose trained model does not serve, and why."""
    absent = {place.id: place.absent for place in profile.layers if place.call is None}
    return {layer: absent[layer] for layer, _ in _takers(profile.resolved) if layer in absent}


def idle_models(profile: Profile) -> list[str]:
    """A sentence on every trained model that was chosen to serve this profile, by a promotion or by the profile
    itself, and cannot run. One that came with Turnout was not chosen: without it, the other layers decide."""
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
    """Whether the kind of a layer's table serves a trained model."""
    kind = kinds().get(str(entry.get("kind")))
    return kind is not None and FIELD in kind.config.__struct_fields__


def _takers(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = tree.get("layers")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and takes_model(entry):
            yield layer_id(entry), entry


def _names(tree: Mapping[str, Any], layer: str) -> list[str]:
    """The profiles whose shelves may have a model for the layer: its own, then the one it extends."""
    names = (tree.get("name"), tree.get("extends"))
    return [name for name in names if isinstance(name, str) and is_name(name) and is_name(layer)]
