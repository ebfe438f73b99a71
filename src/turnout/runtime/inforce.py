"""Settings as they are in force: each value, where it comes from, and what reading the files again would change.

No secret is shown: of one that stands in the environment its name, and whether it is set; of a URL no password;
and nothing of a value whose name looks like a secret's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from turnout.config.document import Document, leaves, read, spell
from turnout.config.learning import LearnSettings, learn_settings
from turnout.config.schema import field_notes
from turnout.config.server import ServerSettings, server_settings
from turnout.config.settings import StoreSettings, holds_password, settings_file, store_settings
from turnout.core.errors import ConfigError, TurnoutError
from turnout.models.slot import Slots, load_slots
from turnout.runtime.load import load_profile
from turnout.runtime.runtime import Runtime
from turnout.store.store import Store

# Variables that change what is in force; the last ones say where files are.
VARIABLES = ("TURNOUT_CONFIG", "TURNOUT_DB", "TURNOUT_PEPPER", "TURNOUT_DEBUG", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
HIDDEN = "not shown"
Found = TypeVar("Found")
_SECRET = re.compile(r"key|token|secret|password|pepper|credential", re.IGNORECASE)


class SettingRow(Struct, frozen=True):
    """One value."""

    name: str
    value: str
    origin: str
    """`file`, `environment`, `command line` or `default`."""
    where: str = ""
    """The file and line, or the variable."""
    means: str = ""


class SettingTable(Struct, frozen=True):
    name: str
    rows: tuple[SettingRow, ...]
    is_live: bool
    """Whether reading the files again is enough for what is changed in it; otherwise a restart is."""


class PendingChange(Struct, frozen=True):
    """What the files say now, and what is used."""

    name: str
    now: str
    then: str
    by: str
    """`reload` or `restart`."""


class SettingsInForce(Struct, frozen=True):
    file: str
    """Empty where there is none."""
    tables: tuple[SettingTable, ...]
    variables: tuple[SettingRow, ...]
    problems: tuple[str, ...]
    changes: tuple[PendingChange, ...]


def find_in_force(runtime: Runtime, server: ServerSettings) -> SettingsInForce:
    """Reads files: not for the event loop."""
    config = runtime.config
    file = settings_file(config)
    problems: list[str] = []
    document = _try(lambda: read(file), problems) if file is not None else None
    store = runtime.store.settings if isinstance(runtime.store, Store) else StoreSettings()
    learn = _try(lambda: learn_settings(config), problems) or LearnSettings()
    tables = [
        _table("server", server, document, runtime),
        _table("store", store, document, runtime),
        _table("learn", learn, document, runtime),
        *_others(document),
    ]
    changes = [*_restarts(config, server, store, problems), *_reloads(runtime, problems)]
    return SettingsInForce(
        "" if file is None else _short(file),
        tuple(tables),
        tuple(_variables()),
        tuple(dict.fromkeys(problems)),
        tuple(changes),
    )


def _try(make: Callable[[], Found], problems: list[str]) -> Found | None:
    try:
        return make()
    except ConfigError as error:
        problems += [str(problem) for problem in error.problems]
    except TurnoutError as error:
        problems.append(str(error))
    return None


def _table(name: str, running: Struct, document: Document | None, runtime: Runtime) -> SettingTable:
    written = document.tree.get(name, {}) if document is not None else {}
    means = field_notes(type(running))
    usual, found = type(running)(), _defaults(name, runtime)
    rows = []
    for field in running.__struct_fields__:
        value = getattr(running, field)
        origin, where = "default", ""
        if isinstance(written, dict) and field in written and document is not None:
            origin, where = "file", str(document.place((name, field)))
        elif field in found and found[field] == os.environ.get("TURNOUT_DB"):
            origin, where = "environment", "TURNOUT_DB"
        elif value != getattr(usual, field):
            origin = "command line"
        rows.append(SettingRow(field, say(field, found.get(field, value)), origin, where, means.get(field, "")))
    return SettingTable(name, tuple(rows), is_live=name == "learn")


def _defaults(name: str, runtime: Runtime) -> dict[str, str]:
    """The values in force of settings that are not set."""
    if name == "server":
        return {"profile": runtime.profile}
    if name == "store" and isinstance(runtime.store, Store):
        return {"url": runtime.store.url, "text": runtime.store.journal.encoder.level}
    return {}


def _others(document: Document | None) -> Iterator[SettingTable]:
    """Tables of the file that are models', applications' or profiles': what they say, as it was written."""
    if document is None:
        return
    for name, table in document.tree.items():
        if name not in ("server", "store", "learn"):
            rows = [
                SettingRow(spell(path), say(_secrecy_name(path), value), "file", str(document.place((name, *path))))
                for path, value in leaves(table)
            ]
            yield SettingTable(name, tuple(rows), is_live=name == "models")


def _secrecy_name(path: tuple[str | int, ...]) -> str:
    """The name that tells whether a value is a secret. A reference to one, `{ env = "NAME" }`, may be shown."""
    return "" if path and path[-1] in ("env", "file") else spell(path)


def _variables() -> Iterator[SettingRow]:
    for name in VARIABLES:
        if (value := os.environ.get(name)) is not None:
            yield SettingRow(name, say(name, value), "environment", name)


def _restarts(
    config: str | os.PathLike[str] | None, server: ServerSettings, store: StoreSettings, problems: list[str]
) -> Iterator[PendingChange]:
    pairs: list[tuple[str, Struct, Struct | None]] = [
        ("server", server, _try(lambda: server_settings(config), problems)),
        ("store", store, _try(lambda: store_settings(config), problems)),
    ]
    for table, running, written in pairs:
        for field in running.__struct_fields__ if written is not None else ():
            now, then = getattr(running, field), getattr(written, field)
            # What the command line said stands until the process ends, whatever the file says.
            if now != then and then != getattr(type(running)(), field):
                yield PendingChange(f"{table}.{field}", say(field, now), say(field, then), "restart")


def _reloads(runtime: Runtime, problems: list[str]) -> Iterator[PendingChange]:
    slots = _try(lambda: load_slots(runtime.config), problems)
    if slots is not None:
        yield from _slots(runtime.models.slots, slots)
    config = None if runtime.config is None else str(runtime.config)
    for name, router in runtime.routers().items():
        found = _try(partial(load_profile, name, config=config, local=True), problems)
        if found is not None and found.hash != router.profile.hash:
            yield PendingChange(f"profile {name}", router.profile.hash, found.hash, "reload")


def _slots(running: Slots, written: Slots) -> Iterator[PendingChange]:
    for name in sorted({*running.slots, *written.slots}):
        now, then = running.slots.get(name), written.slots.get(name)
        old, new = ("none" if slot is None else f"{slot.id} at {slot.origin}" for slot in (now, then))
        if old != new:
            yield PendingChange(f"models.{name}", old, new, "reload")


def say(name: str, value: Any) -> str:
    """A value as a person may see it."""
    if _SECRET.search(name) and not isinstance(value, bool | int | float) and value:
        return HIDDEN
    if isinstance(value, Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict) and list(value) == ["env"]:
        return f"from ${value['env']}, which is {'set' if os.environ.get(str(value['env'])) else 'not set'}"
    if isinstance(value, str):
        return _without_password(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(say("", one) for one in value) or "none"
    return "none" if value is None else msgspec.json.encode(value).decode()


def _without_password(text: str) -> str:
    if "://" in text and holds_password(text):
        return re.sub(r"(://[^/:@]*):[^@]*@", r"\1:…@", re.sub(r"(password=)[^&]*", r"\1…", text))
    return text


def _short(file: Path) -> str:
    home = os.path.expanduser("~")
    return f"~{str(file)[len(home) :]}" if home != "/" and str(file).startswith(home + os.sep) else str(file)
