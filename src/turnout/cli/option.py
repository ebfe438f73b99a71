"""The options several commands share, each said once."""

from __future__ import annotations

import os
import shlex
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from .draw.screen import visible

if TYPE_CHECKING:
    from turnout.store import Records, TimeSpan
    from turnout.store.store import StoreReader

# It takes any text and answers what most people ask of a router first: which model.
DEFAULT_PROFILE = "tiers"


def no_folder(_: object, name: str | None) -> None:
    """A profile is a file; a folder of a shipped profile's name is not what is meant by that name."""
    from turnout.config.load import shipped

    if name is not None and os.path.isdir(name) and name not in shipped():
        raise ValueError(f"{name} is a directory: name a .toml file")


ProfileOption = Annotated[
    str,
    Parameter(
        name=("--profile", "-p"),
        env_var="TURNOUT_PROFILE",
        help="A shipped profile's name, or the path of a TOML file.",
        metavar="NAME",
        validator=no_folder,
    ),
]
ProfileArgument = Annotated[
    str,
    Parameter(
        name="PROFILE",
        env_var="TURNOUT_PROFILE",
        help="A shipped profile's name, or the path of a TOML file.",
        validator=no_folder,
    ),
]
ConfigOption = Annotated[
    str | None,
    Parameter(name="--config", help="Settings file to use instead of your own turnout.toml.", metavar="FILE"),
]
JsonOption = Annotated[bool, Parameter(name="--json", negative=(), show_default=False, help="Print JSON.")]
LocalOption = Annotated[
    bool,
    Parameter(name="--local", negative=(), show_default=False, help="Ask local layers only: no model, no network."),
]
PlanOption = Annotated[
    bool,
    Parameter(name="--plan", negative=(), show_default=False, help="Draw only the parts of the question, as a tree."),
]
TextArgument = Annotated[
    str | None,
    Parameter(help="The question; `-`, or nothing with something piped in, reads stdin.", show_default=False),
]
DeclareOption = Annotated[
    str | None, Parameter(name="--declare", help="The route you ask for by name.", metavar="ROUTE")
]
CeilingOption = Annotated[
    str | None, Parameter(name="--ceiling", help="The most expensive route you may have.", metavar="ROUTE")
]
SessionOption = Annotated[
    str | None,
    Parameter(
        name="--session",
        help="A JSONL file of earlier turns; the question is added to it.",
        metavar="FILE",
    ),
]
TurnsOption = Annotated[
    str | None,
    Parameter(name="--turns", help='A conversation: a JSON list of {"role", "text"}.', metavar="FILE"),
]
FieldOption = Annotated[str, Parameter(name="--field", help="The field that holds the question.", metavar="NAME")]
WorkersOption = Annotated[
    int | None,
    Parameter(name="--workers", help="Processes to use; by default, one a core.", show_default=False, metavar="N"),
]
LimitOption = Annotated[
    int, Parameter(name="--limit", help="How many of the questions that change are listed.", metavar="N")
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
    Parameter(name="ID", help="An id, its beginning or its end as turnout log shows it, or `last`.", metavar="ID"),
]
TenantOption = Annotated[
    str,
    Parameter(
        name="--tenant",
        help="Whose decisions: a tenant's, or those of a key that has none, by its id; without it, what no key and no "
        "tenant asked for.",
        show_default=False,
        metavar="NAME",
    ),
]
KeyOption = Annotated[
    str | None,
    Parameter(name="--key", help="Only what this key asked for: its id, as turnout keys list shows it.", metavar="ID"),
]
AskedByOption = Annotated[
    str | None, Parameter(name="--tenant", help="Whose question it is, for the decision log.", metavar="NAME")
]
NoLogOption = Annotated[
    bool,
    Parameter(name="--no-log", negative=(), show_default=False, help="Do not write the decision down."),
]
SinceOption = Annotated[
    str | None,
    Parameter(name="--since", help="Not before this: 2h, 3d, 2026-11-01, 2026-11-01T08:30.", metavar="WHEN"),
]
UntilOption = Annotated[str | None, Parameter(name="--until", help="Before this; the same forms.", metavar="WHEN")]
OnlyProfileOption = Annotated[
    str | None, Parameter(name=("--profile", "-p"), help="Only decisions of this profile.", metavar="NAME")
]
AllTenantsOption = Annotated[
    bool,
    Parameter(name="--all-tenants", negative=(), show_default=False, help="The decisions of every tenant and key."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class StoreOptions:
    """Which decision log."""

    db: DbOption = None
    config: ConfigOption = None

    def open(self, *, create: bool = False) -> AbstractContextManager[StoreReader]:
        """The log, open. Raises NoLogYet where there is none and none is to be made."""
        from .stored import reading_log, writing_log

        return writing_log(self.db, self.config, create=True) if create else reading_log(self.db, self.config)

    def hint(self, *words: str) -> str:
        """A command about this log, as it can be typed here."""
        named = self.db if self.db != os.environ.get("TURNOUT_DB") else None
        if named is not None and "://" in named and ("@" in named or "?" in named):
            named = "URL"  # a password may be in it, and the screen is no place for one
        options = [*(("--db", named) if named else ()), *(("--config", self.config) if self.config else ())]
        return hint(*words, *options)


@Parameter(name="*")
@dataclass(frozen=True)
class TenantOptions(StoreOptions):
    """Which decision log, and whose decisions in it."""

    tenant: TenantOption = ""


@Parameter(name="*")
@dataclass(frozen=True)
class OperatorOptions(TenantOptions):
    """The same for whoever may look at all tenants."""

    all_tenants: AllTenantsOption = False
    key: KeyOption = None

    def records(self, store: StoreReader) -> Records:
        from .stored import records_of

        return records_of(store, self)


@Parameter(name="*")
@dataclass(frozen=True)
class SpanOptions:
    """Which decisions: of one profile, from when to when."""

    profile: OnlyProfileOption = None
    since: SinceOption = None
    until: UntilOption = None

    def span(self) -> TimeSpan:
        from .stored import span_of

        return span_of(self.since, self.until)


def hint(*words: str) -> str:
    """A command as it can be typed: what the shell would take apart is quoted."""
    return visible(shlex.join(("turnout", *words)))
