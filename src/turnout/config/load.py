"""Finds profiles and applies the user's settings to them.

A profile is named by a shipped name or by the path of a TOML file, with or without its ending. Settings come from one
file, `turnout.toml`: the one that `TURNOUT_CONFIG` names, else the one in the user's configuration folder. So what a
program decides does not depend on its working directory.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path as File
from typing import NamedTuple

from turnout.core.embed import Embeds
from turnout.core.errors import ConfigError, Problem, UnknownProfile, suggest
from turnout.core.model import Asks
from turnout.core.profile import Profile

from .document import Document, extend, read, set_value
from .name import RENAMED, current_name, old_name_notice, old_names, warn_of
from .resolve import build
from .settings import settings_file

# Tables of the settings file that are not for a profile.
OTHER_TABLES = ("store", "learn", "models", "net", "server")
# Profiles whose application reads the tables inside the profile's own: `[sources.kiwix]` is a source.
INNER_TABLES = ("sources", "claims")
# Keys of a profile's table that its application reads.
APP_KEYS = {"study": ("notes", "remember", "idle_minutes", "slot", "max_tokens")}


def load_profile(
    profile: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] | None = None,
    models: Asks | None = None,
    embedder: Embeds | None = None,
) -> Profile:
    """A profile: a shipped name (`study`) or the path of a TOML file, with or without its ending.

    `config` is the settings file to use instead of the user's own; an empty string uses none. `models` asks language
    models; without it, layers that need one pass. `embedder` turns texts into vectors; without it, a student that was
    trained with vectors passes. Warns about an old name.
    """
    chain = apply_settings(read_chain(profile), settings_file(config))
    # The warning is for the caller of `turnout.load`, which calls `runtime.load`, which calls this.
    warn_of(chain.notices, stacklevel=4)
    return build(chain.document, chain.remarks, models, embedder, chain.beside, notices=chain.notices)


def shipped() -> list[str]:
    """Names of the profiles that come with Turnout."""
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.suffix == ".toml")


def is_shipped(name: str) -> bool:
    """Whether a shipped profile has or had that name."""
    return current_name(name) in shipped()


def shipped_file(name: str) -> File:
    return _folder() / f"{name}.toml"


def _folder() -> File:
    return File(str(resources.files("turnout.profiles")))


def find(profile: str | os.PathLike[str], beside: File | None = None) -> File:
    """The file of a profile; `beside` is the folder relative paths start from."""
    name = os.fspath(profile)
    if is_shipped(name):
        return shipped_file(current_name(name))
    path = (beside or File()) / name
    # Unlike Path.is_file, os.path.isfile is False for a name that no file can have.
    if "\0" not in name and (path.suffix == ".toml" or os.path.isfile(path)):
        return path
    # A user's profile may be named without `.toml`.
    if name and os.path.isfile(named := f"{path}.toml"):
        return File(named)
    raise UnknownProfile(name, shipped())


class ProfileChain(NamedTuple):
    """A profile file and those it extends, merged."""

    document: Document
    names: tuple[str, ...]
    """The names of the profiles, base first."""
    files: tuple[File, ...]
    """Their files, base last."""
    cases: File | None
    """The golden cases: the profile's own, else those of the one it extends."""
    remarks: tuple[str, ...] = ()
    """The settings that were applied."""
    notices: tuple[str, ...] = ()
    """The old names that were used for it."""

    @property
    def beside(self) -> File:
        """The folder that relative paths in the profile start from."""
        return self.files[0].parent


def read_chain(profile: str | os.PathLike[str]) -> ProfileChain:
    """Read a profile and those it extends, each file once."""
    chain: list[Document] = []
    files: list[File] = []
    seen: list[str] = []
    cases: File | None = None
    path = find(profile)
    notices = [old_name_notice(name)] if (name := os.fspath(profile)) in RENAMED else []
    while True:
        document = read(path)
        files.append(path)
        seen.append(os.path.realpath(path))
        chain.append(document)
        named = document.tree.get("cases")
        if cases is None and isinstance(named, str):
            cases = path.parent / named
        base = document.tree.get("extends")
        if base is None:
            break
        if not isinstance(base, str):
            raise ConfigError([document.problem(("extends",), f"must be the name of a profile, found {base!r}")])
        if base in RENAMED:
            notices.append(f"{document.place(('extends',))} extends: {old_name_notice(base)}")
        try:
            path = find(base, path.parent)
        except UnknownProfile as error:
            raise ConfigError([document.problem(("extends",), str(error))]) from None
        if os.path.realpath(path) in seen:
            raise ConfigError([document.problem(("extends",), f"{base!r} extends this file in turn: break the circle")])
    merged = chain.pop()
    names = [str(merged.tree.get("name", ""))]
    while chain:
        merged = extend(merged, chain.pop())
        names.append(str(merged.tree.get("name", "")))
    return ProfileChain(merged, tuple(names), tuple(files), cases, notices=tuple(notices))


def _meant(name: str) -> str:
    return suggest(name, (name,))


def apply_settings(chain: ProfileChain, file: File | None) -> ProfileChain:
    """The chain with the user's settings for this profile and those it extends, under their current and old names."""
    if file is None:
        return chain
    document, settings = chain.document, read(file)
    # The current name comes last, so that its table takes precedence.
    names = [known for name in chain.names for known in (*old_names(name), name)]
    named = document.tree.get("settings")
    known = {key: to for key, to in named.items() if isinstance(to, str)} if isinstance(named, dict) else {}
    problems: list[Problem] = []
    remarks: list[str] = []
    notices = list(chain.notices)
    tables = dict.fromkeys((*shipped(), *RENAMED, *names))
    # An unknown table may be for another profile of the user's, unless its name is almost that of a known profile.
    # `read_settings` reports misspelt names of the other tables.
    known_tables = (*tables, *OTHER_TABLES)
    for name in settings.tree:
        near = suggest(name, known_tables) if name not in known_tables else ""
        if near and near not in map(_meant, OTHER_TABLES):
            problems.append(settings.problem((name,), f"no such profile{near}"))
    for name in dict.fromkeys(names):
        table = settings.tree.get(name, {}) if name not in OTHER_TABLES else {}
        if not isinstance(table, dict):
            problems.append(settings.problem((name,), "must be a table"))
            continue
        if name in RENAMED and table:
            notices.append(f"{settings.place((name,))} [{name}]: {old_name_notice(name)}")
        for key, value in table.items():
            if (name in INNER_TABLES and isinstance(value, dict)) or key in APP_KEYS.get(name, ()):
                continue
            if key not in known:
                names_known = (*known, *APP_KEYS.get(name, ()))
                hint = suggest(key, names_known) or f" (known: {', '.join(names_known) or 'none'})"
                problems.append(settings.problem((name, key), f"profile {name!r} has no such setting{hint}"))
                continue
            changed = set_value(document, known[key], value, settings.place((name, key)))
            where = known[key]
            if changed is None:
                remarks.append(f"setting {key} has no effect: this profile has no {where}")
            else:
                document = changed
                remarks.append(f"setting {key} = {value!r} ({settings.place((name, key))}) sets {where}")
    if problems:
        raise ConfigError(problems)
    return chain._replace(document=document, remarks=tuple(remarks), notices=tuple(notices))
