"""The options and small checks that several commands share."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.core.errors import QueryError, TurnoutError, UnknownProfile, suggest

from .draw.screen import visible

if TYPE_CHECKING:
    from turnout.store import Records, TimeSpan
    from turnout.store.store import StoreReader

STDIN = "\0-"
"""Stands for a lone `-` in the parser, which would take it for an option. No real argument can hold a NUL."""

# What Python makes of bytes on the command line that are not UTF-8; such characters can be neither matched nor stored.
_SURROGATE = re.compile("[\ud800-\udfff]")

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def no_folder(_: object, name: str | None) -> None:
    """Raise if the name of a profile is that of a folder. A folder named like a shipped profile does not matter."""
    from turnout.config.load import is_shipped

    if name is not None and os.path.isdir(name) and not is_shipped(name) and not os.path.isfile(f"{name}.toml"):
        raise ValueError(f"{name} is a directory: name a .toml file")


# Kinds of values, for options that add their own help.
FileOption = Annotated[str | None, Parameter(metavar="FILE")]
NameOption = Annotated[str | None, Parameter(metavar="NAME")]
FolderOption = Annotated[str | None, Parameter(metavar="FOLDER")]
NumberOption = Annotated[int, Parameter(metavar="N", show_default=True)]
ShareOption = Annotated[str, Parameter(metavar="SHARE", show_default=True)]

ProfileArgument = Annotated[
    str,
    Parameter(
        name="PROFILE",
        env_var="TURNOUT_PROFILE",
        help="A shipped profile's name, or the path of a TOML file; .toml may be left out.",
        validator=no_folder,
        show_default=True,
    ),
]
ProfileOption = Annotated[ProfileArgument, Parameter(name=("--profile", "-p"), metavar="NAME")]
ConfigOption = Annotated[
    str | None,
    Parameter(name="--config", help="Settings file to use instead of your own turnout.toml.", metavar="FILE"),
]
JsonOption = Annotated[bool, Parameter(name="--json", help="Print JSON.")]
TextArgument = Annotated[
    str | None, Parameter(help="The question; `-`, or nothing with something piped in, reads stdin.")
]
FieldOption = Annotated[
    str, Parameter(name="--field", help="The field that holds the question.", metavar="NAME", show_default=True)
]
WorkersOption = Annotated[
    int | None, Parameter(name="--workers", help="Processes to use; by default, one a core.", metavar="N")
]

DbOption = Annotated[
    str | None,
    Parameter(
        name="--db",
        env_var="TURNOUT_DB",
        help="The decision log to use instead of your own: a path, or postgresql://…",
        metavar="URL",
    ),
]
DecisionArgument = Annotated[
    str,
    Parameter(name="ID", help="An id, its beginning or its end as turnout log shows it, or `last`.", show_default=True),
]
TenantOption = Annotated[
    str,
    Parameter(
        name="--tenant",
        help="The tenant, or the id of a key without one; by default, decisions with neither key nor tenant.",
        metavar="NAME",
    ),
]
SinceOption = Annotated[
    str | None, Parameter(name="--since", help="Not before this: 2h, 3d, 2026-11-01, 2026-11-01T08:30.", metavar="WHEN")
]
AllTenantsOption = Annotated[bool, Parameter(name="--all-tenants", help="The decisions of every tenant and key.")]


@Parameter(name="*")
@dataclass(frozen=True)
class StoreOptions:
    """Which decision log."""

    db: DbOption = None
    config: ConfigOption = None

    def hint(self, *words: str) -> str:
        """A command about this log, as the user can type it."""
        db = self.db if self.db != os.environ.get("TURNOUT_DB") else None
        if db is not None and "://" in db and ("@" in db or "?" in db):
            db = "URL"  # it may hold a password, which must not be shown
        options = [*(("--db", db) if db else ()), *(("--config", self.config) if self.config else ())]
        return hint(*words, *options)


@Parameter(name="*")
@dataclass(frozen=True)
class TenantOptions(StoreOptions):
    """Which decision log, and whose decisions in it."""

    tenant: TenantOption = ""


@Parameter(name="*")
@dataclass(frozen=True)
class OperatorOptions(TenantOptions):
    """The tenant options of commands for the operator, who may see all tenants."""

    all_tenants: AllTenantsOption = False
    key: Annotated[
        str | None,
        Parameter(help="Only decisions made with this key: its id, as turnout keys list shows it.", metavar="ID"),
    ] = None

    def records(self, store: StoreReader) -> Records:
        """The decisions the options choose. A key names its tenant; that of a deleted key is looked up in the log."""
        tenant, key = self.tenant, self.key
        if self.all_tenants:
            if tenant or key is not None:
                other = "--tenant" if tenant else "--key"
                raise TurnoutError(f"--all-tenants cannot be combined with others: leave out {other}")
            return store.all_records()
        if key is None:
            return store.records(tenant)
        row = store.keys.find(key)
        owners = {row.tenant} if row is not None else {use.tenant for use in store.keys.use(key=key)} if key else set()
        if not owners:
            known = [one.id for one in store.keys.all()]
            see = f"(see {self.hint('keys', 'list')})"
            raise TurnoutError(f"--key {key[:80]!r}: there is no such key{suggest(key, known)} {see}")
        if tenant and tenant not in owners:
            raise TurnoutError(f"--key {key} is of tenant {owners.pop()!r}, not {tenant[:80]!r}: leave out --tenant")
        return store.records(owners.pop())


@Parameter(name="*")
@dataclass(frozen=True)
class TimeOptions:
    """The span of time."""

    since: SinceOption = None
    until: Annotated[str | None, Parameter(help="Before this; the same forms.", metavar="WHEN")] = None

    def span(self) -> TimeSpan:
        from turnout.store import TimeSpan
        from turnout.store.stats import FOREVER_MS

        since = 0 if self.since is None else moment(self.since, "--since")
        until = FOREVER_MS if self.until is None else moment(self.until, "--until")
        if since >= until:
            raise TurnoutError(f"--since {self.since} is not before --until {self.until}: nothing lies between them")
        return TimeSpan(since, until)


@Parameter(name="*")
@dataclass(frozen=True)
class SpanOptions(TimeOptions):
    """Which decisions: the profile and the span of time."""

    profile: Annotated[NameOption, Parameter(name=("--profile", "-p"), help="Only decisions of this profile.")] = None

    @property
    def logged_as(self) -> str | None:
        """The name of the profile in the log; a file has its profile's name inside."""
        from turnout.config.load import read_chain, shipped

        name = self.profile
        if name is None or name in shipped() or not any(map(os.path.isfile, (name, f"{name}.toml"))):
            return name  # the log may have decisions of a profile that no longer exists
        return str(read_chain(name).document.tree.get("name", name))

    def check_profile(self, store: StoreReader) -> None:
        """Raise if there is no such profile: none can be found by that name, and no decision was made with it."""
        from turnout.config.load import find, shipped

        if self.profile is None:
            return
        with contextlib.suppress(UnknownProfile):
            if find(self.profile).is_file():
                return
        records = store.all_records()
        if next(records.decisions(profile=self.profile), None) is None:
            logged = {kind.profile for kind in records.kinds()}
            raise UnknownProfile(self.profile, sorted(logged.union(shipped())))


def moment(text: str, option: str) -> int:
    """Milliseconds since 1970. `2h` and `3d` are ago; a date or a time is local unless it has an offset."""
    ago = _AGO.fullmatch(text.strip().lower())
    try:
        if ago is not None:
            when = datetime.now().astimezone() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            when = datetime.fromisoformat(text.strip())
        return int(when.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise TurnoutError(
            f"{option} {text[:40]!r} is not a time: write how long ago (90s, 30m, 2h, 3d, 1w) or when "
            "(2026-11-01, 2026-11-01T08:30)"
        ) from None


def check_least(option: str, number: int | None, least: int = 1) -> None:
    if number is not None and number < least:
        raise QueryError(f"{option} {number}: at least {least} is needed")


def find_path(option: str, path: str, exists: Callable[[str], bool], missing: str) -> str:
    """The absolute path of the file or folder an option names."""
    absolute = os.path.abspath(os.path.expanduser(path))
    if not exists(absolute):
        raise TurnoutError(f"{option} {path[:200]!r}: there is no such {missing}")
    return absolute


def hint(*words: str) -> str:
    """A command as the user can type it, quoted for the shell."""
    return visible(shlex.join((program(), *words)))


def program() -> str:
    """The command that starts this program: its name if the shell finds it, else the path it was started by."""
    started = sys.argv[0]
    is_found = os.path.basename(started) != "turnout" or shutil.which("turnout") is not None
    return "turnout" if is_found else started


def user_name() -> str:
    """The user who runs the command, for feedback and history."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without a name for its user
        return f"uid {os.getuid()}"


def clean(argument: str) -> str:
    """An argument with U+FFFD for bytes that are not UTF-8."""
    return _SURROGATE.sub("\ufffd", argument)
