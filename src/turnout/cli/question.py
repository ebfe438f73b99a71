"""Builds a query from the command line: from the text, from stdin, or from a file with a conversation or a session."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from turnout.config.name import DEFAULT_PROFILE
from turnout.core.decision import Decision
from turnout.core.errors import QueryError
from turnout.core.query import MAX_CHARACTERS, Query, Turn
from turnout.core.router import Router
from turnout.runtime.load import load_profile, open_models
from turnout.text.control import escape_json
from turnout.text.json import UNREADABLE

from .option import STDIN, ConfigOption, FileOption, ProfileOption, clean

if TYPE_CHECKING:
    from turnout.models.ask import Models

# UTF-8 needs at most four bytes a character; one more byte shows that a text is too long.
_MAX_BYTES = 4 * MAX_CHARACTERS + 1


SessionOption = Annotated[
    str | None, Parameter(help="A JSONL file of earlier turns; question and answer are added.", metavar="FILE")
]


@Parameter(name="*")
@dataclass(frozen=True)
class Ask:
    """The options of `route` and `explain`."""

    profile: ProfileOption = DEFAULT_PROFILE
    declare: Annotated[str | None, Parameter(help="The route you ask for by name.", metavar="ROUTE")] = None
    ceiling: Annotated[str | None, Parameter(help="The most expensive route you may have.", metavar="ROUTE")] = None
    session: Annotated[FileOption, Parameter(help="A JSONL file of earlier turns; the question is added to it.")] = None
    turns: Annotated[FileOption, Parameter(help='A conversation: a JSON list of {"role", "text"}.')] = None
    local: Annotated[bool, Parameter(help="Ask local layers only: no model, no network.")] = False
    config: ConfigOption = None

    def decide(self, text: str | None, tenant: str | None = None) -> Decision:
        """The decision on a question, which is then added to the session."""
        models = None if self.local else open_models(self.config)
        router = Router(load_profile(self.profile, config=self.config, models=models, local=self.local))
        query = self._query(text, tenant)
        decision = decide(router, query, local=self.local, models=models)
        if self.session is not None:
            append_turns(self.session, query.turns[-1])
        return decision

    def _query(self, text: str | None, tenant: str | None) -> Query:
        query = Query(declared=self.declare, ceiling=self.ceiling, tenant=tenant)
        if self.turns is not None and self.session is not None:
            raise QueryError("--turns and --session exclude each other: a session is a conversation already")
        if self.turns is not None:
            turns = _read_turns(self.turns)
            if text is not None:
                turns = (*turns, Turn("user", read_text(text)))
            elif not any(turn.role == "user" for turn in turns):
                raise QueryError(
                    f"{self.turns}: no turn has the role 'user', so there is no question: add one, or TEXT"
                )
            return replace(query, turns=turns)
        if self.session is not None:
            turns = (*read_session(self.session), Turn("user", read_text(text)))
            return replace(query, turns=turns, session=session_name(self.session))
        return replace(query, text=read_text(text))


def session_name(path: str) -> str:
    """The name in the decision log of a session that is kept in a file."""
    return clean(os.path.abspath(path))


def decide(router: Router, query: Query, *, local: bool, models: Models | None = None) -> Decision:
    """The decision; an event loop is started only if a layer needs one."""
    if local or all(place.cost != "network" for place in router.profile.layers):
        return router.route_sync(query)
    import asyncio

    async def route_and_close() -> Decision:
        try:
            return await router.route(query)
        finally:
            if models is not None:
                await models.client.close()

    return asyncio.run(route_and_close())


def read_text(text: str | None) -> str:
    """The argument, or the text piped in. Bytes that are not UTF-8 become U+FFFD."""
    if text is not None and text != STDIN:
        return clean(text)
    if sys.stdin is None or (text is None and sys.stdin.isatty()):
        raise QueryError("no question: give it as TEXT, or pipe it in")
    raw = sys.stdin.buffer.read(_MAX_BYTES).decode("utf-8", "replace")
    return raw.removesuffix("\n").removesuffix("\r")


def _read_turns(path: str) -> tuple[Turn, ...]:
    try:
        return msgspec.json.decode(File(path).read_bytes(), type=tuple[Turn, ...])
    except UNREADABLE as error:
        raise QueryError(f"{path}: not a JSON list of turns with role and text: {error}") from None


def read_session(path: str) -> tuple[Turn, ...]:
    """The turns in a session's file; none if there is no such file yet."""
    try:
        lines = File(path).read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    turns = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            turns.append(msgspec.json.decode(line, type=Turn))
        except UNREADABLE as error:
            raise QueryError(f"{path}:{number}: not a turn with role and text: {error}") from None
    return tuple(turns)


def check_session(session: str) -> None:
    """Raise if turns could not be added to a session's file: before the question is asked, not after."""
    path, option = File(session), f"--session {clean(session)}"
    folder = path.parent
    if path.is_dir():
        raise QueryError(f"{option}: this is a folder; name a file in it")
    if not folder.is_dir():
        raise QueryError(f"{option}: there is no folder {clean(str(folder))}: make it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise QueryError(f"{option}: it cannot be written to: choose another, or change its rights")


def append_turns(path: str, *turns: Turn) -> None:
    """Add turns to a session's file."""
    lines = b"".join(escape_json(msgspec.json.encode(turn)) + b"\n" for turn in turns)
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            # If the file does not end with a line break, the next turn would be joined to its last line.
            if file.read(1) != b"\n":
                lines = b"\n" + lines
        file.write(lines)
