"""The options several commands share, each said once."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter

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
    str | None, Parameter(name="--ceiling", help="The dearest route you may have.", metavar="ROUTE")
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
    Parameter(name="--workers", help="Processes to use; all cores unless told.", show_default=False, metavar="N"),
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
