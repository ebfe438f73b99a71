"""The registry of trained models: the models, which one serves, and the history of that.

    <data folder>/students/<profile>/<layer>/
        <digest>/        a trained model; never changed once it is here
        champion         one line: the digest of the serving model, or `shipped`
        history.jsonl    every change of champion: when, who, why, from which to which
        .lock            held while one of the two files is changed

A reader always sees a complete champion, the old or the new one: a model is copied to a temporary folder and renamed,
the champion is a small file that is replaced, and both are on disk before the change is reported.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path as File
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.config.champion import (
    SHIPPED,
    ModelSummary,
    champion_digest,
    champion_file,
    check_name,
    is_digest,
    read_summary,
    shelf_of,
    shipped_model,
)
from turnout.core.errors import ChampionChanged, ConfigError, LearnError, Problem, QueryError, ShelfError, UnknownModel
from turnout.layers.artefact import CARD, MANIFEST, WEIGHTS, M, check_arrays, digest_of, read_artefact
from turnout.text.file import reason_of, sync_folder, write_bytes

HISTORY = "history.jsonl"


class RegisteredModel(Struct, frozen=True):
    """A model of the registry."""

    digest: str
    folder: File
    summary: ModelSummary
    champion: bool = False
    shipped: bool = False


class ChampionChange(Struct, frozen=True):
    """A line of the history."""

    at: str
    """The time, in UTC."""
    kind: Literal["promote", "rollback"]
    was: str
    """The champion before: a digest, or `shipped`."""
    to: str
    who: str = ""
    why: str = ""
    metrics: Mapping[str, Any] = {}


# --- reading


def candidates(profile: str, layer: str) -> list[RegisteredModel]:
    """Every readable model: the shipped one first, then the others, the most recently put last."""
    serving = champion_digest(profile, layer)
    models: list[RegisteredModel] = []
    shipped = shipped_model(profile, layer)
    if shipped is not None and (summary := read_summary(shipped)) is not None:
        models.append(RegisteredModel(summary.digest, shipped, summary, serving == SHIPPED, shipped=True))
    shelf = shelf_of(profile, layer)
    try:
        folders = [shelf / name for name in os.listdir(shelf) if is_digest(name)]
    except (FileNotFoundError, NotADirectoryError):
        return models
    except OSError as error:
        raise ConfigError([Problem(str(shelf), f"cannot be read: {reason_of(error)}")]) from None
    dated = []
    for folder in folders:
        # A folder may be removed while it is read.
        with contextlib.suppress(OSError):
            summary = read_summary(folder)
            if summary is not None and summary.digest == folder.name:
                model = RegisteredModel(folder.name, folder, summary, serving == folder.name)
                dated.append((folder.stat().st_mtime_ns, folder.name, model))
    return models + [model for *_, model in sorted(dated)]


def find_candidate(
    profile: str, layer: str, digest: str | None = None, train: str = "turnout train"
) -> RegisteredModel:
    """The model with this digest or prefix of a digest; without one, the newest that does not serve. `train` is the
    command that makes a model."""
    known = candidates(profile, layer)
    if digest is None:
        others = [one for one in known if not one.champion and not one.shipped]
        if not others:
            raise UnknownModel(f"{profile}/{layer}: no challenger on the shelf: {train} makes one")
        return others[-1]
    like = [one for one in known if one.digest == digest] or [one for one in known if one.digest.startswith(digest)]
    if len(like) != 1 or not digest:
        have = ", ".join(one.digest for one in known) or "none"
        what = "the beginning of several models" if len(like) > 1 and digest else "no model"
        raise UnknownModel(f"{digest[:80]!r} is {what} of {profile}/{layer} (on the shelf: {have})")
    return like[0]


def read_history(profile: str, layer: str) -> list[ChampionChange]:
    """Every change of champion that took effect, oldest first."""
    return _effective(_read_lines(profile, layer), champion_digest(profile, layer))


def trained_ms(profile: str, layer: str) -> int:
    """When the newest model was trained, in milliseconds since 1970; 0 if there is none.

    Challengers count too, because they have seen the rows already. The shipped model does not: it has seen no traffic.
    """
    try:
        known = [one for one in candidates(profile, layer) if not one.shipped]
    except ConfigError:
        return 0
    return max(map(made_ms, known), default=0)


def made_ms(model: RegisteredModel) -> int:
    """When a model was last put in the registry."""
    # With a date in the future training would never be due.
    return min(time.time_ns(), model.folder.stat().st_mtime_ns) // 1_000_000


# --- changing


def check_new(out: File) -> None:
    """Refuse a folder that is not new or empty, before anything is trained."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise QueryError(f"{out} is there already: name a folder that is new or empty")


def keep_model(draft: M, arrays: Mapping[str, Any], card: Callable[[M], str], out: File | None) -> tuple[File, M]:
    """Write a model to `out`, or put it in the registry; returns its folder and manifest."""
    if out is not None:
        return out, write_artefact(out, draft, arrays, card)
    with tempfile.TemporaryDirectory(prefix="turnout-train-") as aside:
        manifest = write_artefact(File(aside), draft, arrays, card)
        return put(File(aside), manifest.profile, manifest.layer), manifest


def put(folder: File, profile: str, layer: str) -> File:
    """Copy a trained model into the registry and return its folder. Putting it again only renews its date."""
    summary = read_summary(folder)
    if summary is None or not is_digest(summary.digest):
        raise ShelfError(f"{folder}: no {MANIFEST} with a digest in it: is this what turnout train wrote?")
    shelf = shelf_of(profile, layer)
    target = shelf / summary.digest
    if read_summary(target) is not None:
        os.utime(target)  # it is the newest again
        return target
    shelf.mkdir(parents=True, exist_ok=True)
    aside = shelf / f".{summary.digest}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        aside.mkdir()
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            # The target of a link may change.
            if not entry.is_file(follow_symlinks=False):
                raise ShelfError(f"{entry.path}: a model is a folder of plain files")
            write_bytes(aside / entry.name, File(entry.path).read_bytes())
        sync_folder(aside)
        try:
            os.rename(aside, target)
        except OSError:
            # Another process may have put the same model here.
            if read_summary(target) is None:
                raise
        sync_folder(shelf)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def set_champion(
    profile: str,
    layer: str,
    digest: str,
    *,
    who: str = "",
    why: str = "",
    metrics: Mapping[str, Any] | None = None,
    instead_of: str | None = None,
) -> ChampionChange | None:
    """Make a model, or `shipped`, the champion; returns None if it already is.

    `instead_of` is the champion it was compared with: if another one serves now, ChampionChanged is raised.
    """
    if digest != SHIPPED and not (is_digest(digest) and read_summary(shelf_of(profile, layer) / digest) is not None):
        raise UnknownModel(f"{digest[:80]!r} is not a model of {profile}/{layer}: put it on the shelf first")
    with _locked(profile, layer):
        serving = _serving(profile, layer)
        if instead_of is not None and serving != instead_of:
            raise ChampionChanged(
                f"{profile}/{layer}: {digest} was compared with {instead_of}, but {serving} serves by now: "
                "compare it with that one"
            )
        change = ChampionChange(now(), "promote", serving, digest, who[:200], why[:2000], metrics or {})
        return _record(profile, layer, change)


def rollback(profile: str, layer: str, *, who: str = "", why: str = "") -> ChampionChange:
    """Make the previous champion serve again, one step back each time, down to the shipped model."""
    with _locked(profile, layer):
        serving = _serving(profile, layer)
        stack, shelf = _stack(profile, layer), shelf_of(profile, layer)
        readable = [one for one in stack if one == SHIPPED or read_summary(shelf / one) is not None]
        while readable[1:] and readable[-1] == serving:
            readable.pop()
        change = ChampionChange(now(), "rollback", serving, readable[-1], who[:200], why[:2000])
        if _record(profile, layer, change) is None:
            raise UnknownModel(f"{profile}/{layer}: {serving} is the first champion there was: nothing to go back to")
        return change


def discard(profile: str, layer: str, *, keep: int) -> list[str]:
    """Remove all models but the newest `keep`, the champion and those a rollback can reach; returns their digests."""
    with _locked(profile, layer):
        needed = {_serving(profile, layer), *_stack(profile, layer)}
        unused = [one for one in candidates(profile, layer) if not one.shipped and one.digest not in needed]
        removed = unused[: max(0, len(unused) - keep)]
        for one in removed:
            # The manifest first: a half-removed folder is then no model.
            (one.folder / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(one.folder, ignore_errors=True)
            for beside in one.folder.parent.glob(f"{one.digest}.*.json"):
                beside.unlink(missing_ok=True)
    return [one.digest for one in removed]


def note(profile: str, layer: str, digest: str, what: str, content: bytes) -> File:
    """Write a file beside a model, such as the result of its shadow run: `<digest>.<what>.json`, replaced whole."""
    file = note_file(profile, layer, digest, what)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, content)
    return file


def note_file(profile: str, layer: str, digest: str, what: str) -> File:
    if not is_digest(digest):
        raise UnknownModel(f"{digest[:80]!r} is not the digest of a model")
    return shelf_of(profile, layer) / f"{digest}.{check_name(what, 'a note')}.json"


# --- the history


def _read_lines(profile: str, layer: str) -> list[ChampionChange]:
    """The lines of the history, including changes without effect; a line cut short by a crash is skipped."""
    try:
        lines = (shelf_of(profile, layer) / HISTORY).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    changes = []
    for line in lines:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            changes.append(msgspec.json.decode(line, type=ChampionChange))
    return changes


def _effective(changes: list[ChampionChange], serving: str) -> list[ChampionChange]:
    """The changes that took effect. A line is written before the champion is replaced, so the next line or the
    champion itself shows whether it was."""
    after = [change.was for change in changes[1:]] + [serving]
    return [change for change, then in zip(changes, after, strict=False) if change.to == then]


def _serving(profile: str, layer: str) -> str:
    """The champion, read from the history if its file is unreadable, so that it can still be replaced."""
    try:
        return champion_digest(profile, layer)
    except ConfigError:
        changes = _read_lines(profile, layer)
        return changes[-1].to if changes else SHIPPED


def _stack(profile: str, layer: str) -> list[str]:
    """The champions that a rollback can reach, the first one first, the current one last."""
    stack = [SHIPPED]
    for change in _effective(_read_lines(profile, layer), _serving(profile, layer)):
        if change.kind == "promote":
            stack.append(change.to)
        else:
            while len(stack) > 1:
                stack.pop()
                if stack[-1] == change.to:
                    break
    return stack


def _record(profile: str, layer: str, change: ChampionChange) -> ChampionChange | None:
    """Append a change to the history and make it; returns None if nothing changes."""
    file = champion_file(profile, layer)
    if change.was == change.to and (not file.exists() or file.read_bytes().strip() == change.to.encode()):
        return None
    history = shelf_of(profile, layer) / HISTORY
    lines = history.read_bytes().splitlines() if history.exists() else []
    write_bytes(history, b"\n".join([*lines, msgspec.json.encode(change), b""]))
    write_bytes(file, change.to.encode() + b"\n")
    return change


@contextlib.contextmanager
def _locked(profile: str, layer: str) -> Iterator[None]:
    shelf = shelf_of(profile, layer)
    shelf.mkdir(parents=True, exist_ok=True)
    with open(shelf / ".lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file releases the lock, and so does the end of the process


# --- writing a model

# The earliest date of a ZIP file; a real date would make every file different.
MOMENT = (1980, 1, 1, 0, 0, 0)


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def write_artefact(folder: File, draft: M, arrays: Mapping[str, Any], card: Callable[[M], str] | None = None) -> M:
    """Write a model and return its manifest, with the hash of the weights and its own digest. The same model gives the
    same bytes.

    The manifest is written last, in one step, because a folder without one is no artefact. The folder is then read back
    to be sure that it can be served. `card` draws the card.
    """
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
    """The arrays as an .npz file that depends on nothing else."""
    import numpy as np

    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(arrays):
            raw = BytesIO()
            np.lib.format.write_array(raw, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, raw.getvalue())
    return packed.getvalue()
