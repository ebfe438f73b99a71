"""Decisions to store, and a look at what was stored that goes past the store."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import psycopg
from msgspec.structs import replace

from random_text import router
from turnout import Decision, Query, Verdict
from turnout.core.decision import Step
from turnout.core.verdict import Fault
from turnout.testing import ScriptedNetworkLayer, make_router, place


def ask(text: str = "Define entropy", profile: str = "study", **query: Any) -> Decision:
    """A decision of a shipped profile."""
    return router(profile).route_sync(Query(text, **query))


def taught(said: str, text: str = "Define entropy", **query: Any) -> Decision:
    """A decision for which a model was asked, in a profile built in code."""
    made = make_router([place(ScriptedNetworkLayer([Verdict((said,), 0.9)]), "llm", who="L")])
    return asyncio.run(made.route(Query(text, **query)))


def with_model(decision: Decision, *, verdict: Verdict | None = None, fault: Fault | None = None) -> Decision:
    """The same decision, had a model been asked on the way."""
    double = place(ScriptedNetworkLayer([None]), "llm", who="L")
    asked = Step(double, "held" if fault is None else fault.kind, 1000, verdict, fault)
    profile = replace(decision.profile, layers=(*decision.profile.layers, double))
    return replace(decision, profile=profile, steps=(*decision.steps, asked))


def select(url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement, read with nothing of ours."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(statement).fetchall()
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()


def columns(url: str, table: str) -> list[str]:
    """The columns of a table or view, in order."""
    if url.startswith("sqlite"):
        return [row[1] for row in select(url, f"pragma table_info({table})")]
    names = f"select column_name from information_schema.columns where table_name = '{table}'"  # noqa: S608
    found = select(url, f"{names} order by ordinal_position")
    return [name for (name,) in found]


TABLES = (
    "store_settings",
    "profiles",
    "decisions",
    "outcomes",
    "feedback",
    "breaches",
    "replies",
    "keys",
    "spending",
    "cache_entries",
    "study_sessions",
    "study_turns",
    "claim_cards",
)


def everything(url: str, tables: Iterable[str] = TABLES) -> str:
    """All that a database holds, as one text to search."""
    return "\n".join(repr(row) for table in tables for row in select(url, f"select * from {table}"))  # noqa: S608


@contextlib.contextmanager
def stuck(url: str) -> Iterator[None]:
    """Somebody else holds the database: what is recorded stays in the spool."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin exclusive")
            yield
            connection.execute("rollback")
    else:
        with psycopg.connect(url) as connection:
            connection.execute("lock table profiles, decisions in access exclusive mode")
            yield
            connection.rollback()


class Statement(NamedTuple):
    name: str
    text: str
    section: str


def statements(source: str) -> list[Statement]:
    """The constants of a file, pieces of others filled in, with the section each stands in."""
    sections = [(match.start(), match[1]) for match in re.finditer(r"^# --- (.+)$", source, re.MULTILINE)]
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    found: list[Statement] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            text = _text(node.value, {one.name: one.text for one in found})
            if text is not None:
                at = offsets[node.lineno - 1]
                section = [name for start, name in sections if start < at]
                found.append(Statement(getattr(node.targets[0], "id", ""), text, section[-1] if section else ""))
    return found


def _text(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """What an expression is, where it is a text or one with texts of the same file in it; None for all else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name), conversion=-1, format_spec=None):
            return known.get(name)
        case ast.JoinedStr(values=values):
            parts = [_text(value, known) for value in values]
            return None if None in parts else "".join(filter(None, parts))
        case _:
            return None
