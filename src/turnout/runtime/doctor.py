"""What is installed on this machine, what is missing or broken, and what to do about it."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path as File
from typing import Literal, NamedTuple

from turnout import __file__ as _package
from turnout import __version__
from turnout.config.champion import idle_models
from turnout.config.document import read
from turnout.config.learning import learn_settings
from turnout.config.load import is_shipped, load_profile, shipped
from turnout.config.name import old_name_notice
from turnout.config.reload import LiveRouter
from turnout.config.server import server_settings
from turnout.config.settings import settings_file, store_settings
from turnout.core.errors import ConfigError, EmbedderError, StoreError
from turnout.core.profile import Profile
from turnout.core.registry import GROUP, kinds
from turnout.models.slot import load_slots
from turnout.runtime.load import open_embedder, open_models
from turnout.runtime.log import missing_log, quiet
from turnout.runtime.pepper import pepper_file, read_pepper
from turnout.store.row import now_ms
from turnout.store.store import open_reader
from turnout.text.count import counted

# Of the name of a user's own profile.
SUBJECT_CHARACTERS = 24


class Diagnosis(NamedTuple):
    state: Literal["ok", "note", "broken"]
    subject: str
    text: str
    advice: str = ""


def examine(config: str | None) -> Iterator[Diagnosis]:
    yield Diagnosis("ok", "turnout", f"{__version__} in {os.path.dirname(os.path.abspath(_package))}")
    yield Diagnosis("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    encoding = getattr(sys.stdout, "encoding", None) or "none"
    if encoding.lower().startswith("utf"):
        yield Diagnosis("ok", "terminal", encoding)
    else:
        yield Diagnosis("note", "terminal", f"{encoding}: pictures are drawn in ASCII", "set PYTHONIOENCODING=utf-8")
    yield from _requirements()
    yield from _kinds()
    settings = _settings(config)
    yield settings
    # Settings that are broken are said to be, once; what the profiles are without them is another matter.
    broken = settings.state == "broken"
    yield from _profiles("" if broken else config)
    yield _server()
    yield from _secrets()
    if not broken:
        yield from _own_profiles(config)
        yield from _slots(config)
        yield _keys(config)


# Modules that the server imports.
SERVES = ("granian", "starlette", "aiohttp", "jinja2", "prometheus_client")
# What a package is for, where its extra's name says too much.
USED_FOR = {
    "dbos": "only needed for audits of claims where PostgreSQL is the store",
    "trafilatura": "web pages are then read with all that stands around their article",
}


def _requirements() -> Iterator[Diagnosis]:
    """The packages Turnout declares, and those of its extras that are not here."""
    try:
        declared = metadata.requires("turnout") or []
    except metadata.PackageNotFoundError:
        yield Diagnosis("note", "packages", "Turnout runs from its source and is not installed", "pip install -e .")
        return
    for requirement in declared:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
        if (extra and extra[1] == "all") or (sys.platform == "win32" and "win32" in requirement):
            continue  # the extra that is all others; a package that is not for this system
        try:
            yield Diagnosis("ok", name, metadata.version(name))
        except metadata.PackageNotFoundError:
            if extra:
                install = f"pip install 'turnout[{extra[1]}]'"
                yield Diagnosis(
                    "note", name, f"not installed; {USED_FOR.get(name, f'only needed for {extra[1]}')}", install
                )
            else:
                yield Diagnosis("broken", name, f"not installed, but required ({requirement})", f"pip install {name}")


def _kinds() -> Iterator[Diagnosis]:
    for entry in metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except (ImportError, AttributeError, SyntaxError, NameError, TypeError, ValueError, OSError) as error:
            source = entry.dist.name if entry.dist is not None else entry.value
            said = f"{entry.name} from {source} cannot be loaded: {type(error).__name__}: {error}"
            yield Diagnosis("broken", "kinds", said, f"repair or uninstall {source}")
            return
    listed = "\n".join(f"{kind.name} ({kind.cost})" for kind in kinds().values())
    yield Diagnosis("ok", "kinds", listed)


def _settings(config: str | None) -> Diagnosis:
    path = settings_file(config)
    if path is None:
        return Diagnosis("ok", "settings", "none; every profile is as it ships")
    named = " (named by TURNOUT_CONFIG)" if config is None and os.environ.get("TURNOUT_CONFIG") else ""
    problems = "\n".join(dict.fromkeys(_problems_of_settings(path)))
    if problems:
        return Diagnosis("broken", "settings", f"{problems}{named}", "correct the file, or point --config elsewhere")
    return Diagnosis("ok", "settings", f"{path}{named}")


def _problems_of_settings(path: File) -> Iterator[str]:
    """What is wrong with the file, or with a profile only once the file is laid over it."""
    try:
        read(path)
    except ConfigError as error:
        yield str(error)
        return
    for reads in (load_slots, server_settings, store_settings, learn_settings):
        try:
            reads(path)
        except ConfigError as error:
            yield from map(str, error.problems)
    for name in shipped():
        try:
            load_profile(name, config=path)
        except ConfigError as error:
            with contextlib.suppress(ConfigError):
                load_profile(name, config="")
                yield from map(str, error.problems)


def _profiles(config: str | None) -> Iterator[Diagnosis]:
    models = None if config == "" else open_models(config)
    embedder = None
    try:
        embedder = open_embedder(config)
    except EmbedderError as error:
        yield Diagnosis("broken", "embedder", str(error), "turnout-build-minilm")
    missing: dict[str, list[str]] = {}
    for name in shipped():
        try:
            profile = load_profile(name, config=config, models=models, embedder=embedder)
        except ConfigError as error:
            advice = "correct what it says; if you changed nothing, install Turnout anew"
            yield Diagnosis("broken", name, str(error), advice)
            continue
        fine = f"{counted(len(profile.routes), 'route')}, {counted(len(profile.layers), 'layer')}, {profile.hash}"
        yield from _found(name, profile, fine)
        for place in profile.layers:
            if place.call is None:
                missing.setdefault(place.kind, []).append(name)
    for kind, names in missing.items():
        if kind not in kinds():
            why = "not installed"
            advice = f"install the package that provides {kind}, or leave it: decisions stay local"
        elif kinds()[kind].cost == "network":
            why = "no model to ask"
            advice = "turnout models says which slots there are; decisions stay local until then"
        else:
            why = "nothing trained serves"
            rows = " --outcomes FILE" if kind.startswith("gain.") else ""
            advice = f"turnout train -p {names[0]}{rows}; the other layers decide until then"
        yield Diagnosis("note", kind, f"{why}; its layer passes in {', '.join(names)}", advice)


def _found(subject: str, profile: Profile, fine: str) -> Iterator[Diagnosis]:
    """A profile that can be built; and the trained models that should serve it and cannot run."""
    yield Diagnosis("ok", subject, "\n".join([fine, *profile.remarks]))
    for said in profile.notices:
        yield Diagnosis("note", subject, said)
    for said in idle_models(profile):
        advice = f"do what it says, or turnout student rollback -p {profile.name}"
        yield Diagnosis("broken", "student", said, advice)


def _own_profiles(config: str | None) -> Iterator[Diagnosis]:
    """The profiles that [server] names, as a server would serve them: with their golden cases."""
    embedder = None
    with contextlib.suppress(EmbedderError):  # it was said already
        embedder = open_embedder(config)
    settings = server_settings(config)
    for name in dict.fromkeys((*((settings.profile,) if settings.profile else ()), *settings.profiles)):
        if name in shipped():
            continue
        if is_shipped(name):
            yield Diagnosis("note", "server", f"[server] says {name}", old_name_notice(name))
            continue
        subject = os.path.basename(name)[:SUBJECT_CHARACTERS]  # a whole path would leave no room for what is said of it
        try:
            live = LiveRouter(name, config=config, models=open_models(config), embedder=embedder)
        except ConfigError as error:
            yield Diagnosis("broken", subject, str(error), "correct what it says, or take it out of [server]")
        else:
            yield from _found(subject, live.router.profile, f"as [server] says, {live.router.profile.hash}")


def _secrets() -> Iterator[Diagnosis]:
    """What the digests of keys are made with, if that is there; nothing is made by looking."""
    if os.environ.get("TURNOUT_PEPPER") is None and not os.path.lexists(pepper_file()):
        return
    try:
        read_pepper()
    except ConfigError as error:
        yield Diagnosis("broken", "pepper", str(error), "restore it from a backup, or make new keys")


def _server() -> Diagnosis:
    missing = [name for name in SERVES if find_spec(name) is None]
    if missing:
        message = f"turnout serve cannot be started: {', '.join(missing)} is not installed"
        return Diagnosis("note", "server", message, "pip install 'turnout[serve]'")
    return Diagnosis("ok", "server", "turnout serve can be started")


def _slots(config: str | None) -> Iterator[Diagnosis]:
    slots = load_slots(config)
    if slots.demo:
        yield Diagnosis("ok", "models", "the built-in demonstration model in every slot: no provider's key is set")
        return
    for name, slot in slots.slots.items():
        if slot.usable:
            yield Diagnosis("ok", "models", f"{name} is {slot.id}")
        else:
            yield Diagnosis("note", "models", f"{name} is {slot.id}, which lacks its key", f"set {slot.needs_key}")
    if slots.classifier is None:
        said = "no classifier: decisions are made without a model"
        yield Diagnosis("note", "models", said, "turnout models set classifier PROVIDER/MODEL, or leave it")


def _keys(config: str | None) -> Diagnosis:

    try:
        quiet()
        if missing_log(None, config) is not None:
            found = []
        else:
            with open_reader(config=config) as store:
                found = store.keys.all()
    except (StoreError, ConfigError) as error:
        return Diagnosis("broken", "log", str(error), "turnout db verify says more")
    now = now_ms()
    valid = sum(key.is_valid(now) for key in found)
    if not found:
        return Diagnosis("ok", "keys", "none: a server takes requests from this machine only")
    if not valid:
        advice = "turnout keys create NAME, or turnout keys open to need none on this machine"
        return Diagnosis("note", "keys", f"{counted(len(found), 'key')}, none of them valid", advice)
    return Diagnosis("ok", "keys", f"{counted(valid, 'valid key')} of {len(found)}")
