"""From what stands on the command line to a query: the text, or stdin; a conversation, or a session that grows."""

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

from .option import STDIN, ConfigOption, ProfileOption, clean

if TYPE_CHECKING:
    from turnout.models.ask import Models

# UTF-8 needs at most four bytes a character; one more byte tells too long from just long enough.
_MAX_BYTES = 4 * MAX_CHARACTERS + 1


@Parameter(name="*")
@dataclass(frozen=True)
class Ask:
    """How a question is asked: the options of `route` and `explain`."""

    profile: ProfileOption = DEFAULT_PROFILE
    declare: Annotated[str | None, Parameter(help="The route you ask for by name.", metavar="ROUTE")] = None
    ceiling: Annotated[str | None, Parameter(help="The most expensive route you may have.", metavar="ROUTE")] = None
    session: Annotated[
        str | None, Parameter(help="A JSONL file of earlier turns; the question is added to it.", metavar="FILE")
    ] = None
    turns: Annotated[str | None, Parameter(help='A conversation: a JSON list of {"role", "text"}.', metavar="FILE")] = (
        None
    )
    local: Annotated[bool, Parameter(help="Ask local layers only: no model, no network.")] = False
    config: ConfigOption = None

    def decide(self, text: str | None, tenant: str | None = None) -> Decision:
        """The decision on a question, which a session then remembers."""
        models = None if self.local else open_models(self.config)
        router = Router(load_profile(self.profile, config=self.config, models=models, local=self.local))
        query = self._query(text, tenant)
        decision = decide(router, query, local=self.local, models=models)
        if self.session is not None:
            append_turn(File(self.session), query.turns[-1])
        return decision

    def _query(self, text: str | None, tenant: str | None) -> Query:
        query = Query(declared=self.declare, ceiling=self.ceiling, tenant=tenant)
        if self.turns is not None and self.session is not None:
            raise QueryError("--turns and --session exclude each other: a session is a conversation already")
        if self.turns is not None:
            turns = _read_turns(File(self.turns))
            if text is not None:
                turns = (*turns, Turn("user", read_text(text)))
            elif not any(turn.role == "user" for turn in turns):
                raise QueryError(
                    f"{self.turns}: no turn has the role 'user', so there is no question: add one, or TEXT"
                )
            return replace(query, turns=turns)
        if self.session is not None:
            turns = (*read_session(File(self.session)), Turn("user", read_text(text)))
            return replace(query, turns=turns, session=session_name(self.session))
        return replace(query, text=read_text(text))


def session_name(path: str) -> str:
    """What a session that is kept in a file is called in the decision log."""
    return clean(os.path.abspath(path))


def decide(router: Router, query: Query, *, local: bool, models: Models | None = None) -> Decision:
    """The decision; an event loop is started only where some layer needs one."""
    if local or all(place.cost != "network" for place in router.profile.layers):
        return router.route_sync(query)
    import asyncio

    async def asking() -> Decision:
        try:
            return await router.route(query)
        finally:
            if models is not None:
                await models.client.close()

    return asyncio.run(asking())


def read_text(text: str | None) -> str:
    """The argument, or what is piped in. Bytes that are not UTF-8 become U+FFFD."""
    if text is not None and text != STDIN:
        return clean(text)
    if sys.stdin is None or (text is None and sys.stdin.isatty()):
        raise QueryError("no question: give it as TEXT, or pipe it in")
    raw = sys.stdin.buffer.read(_MAX_BYTES).decode("utf-8", "replace")
    return raw.removesuffix("\n").removesuffix("\r")


def _read_turns(path: File) -> tuple[Turn, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Turn, ...])
    except UNREADABLE as error:
        raise QueryError(f"{path}: not a JSON list of turns with role and text: {error}") from None


def read_session(path: File) -> tuple[Turn, ...]:
    try:
        lines = path.read_bytes().split(b"\n")
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


def check_session(path: File) -> None:
    """Raise if what is said could not be added to a session: before the question is asked, not after."""
    folder = path.parent
    if path.is_dir():
        raise QueryError(f"--session {clean(str(path))}: this is a folder; name a file in it")
    if not folder.is_dir():
        raise QueryError(f"--session {clean(str(path))}: there is no folder {clean(str(folder))}: make it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise QueryError(f"--session {clean(str(path))}: it cannot be written to: choose another, or change its rights")


def append_turn(path: File, turn: Turn) -> None:
    line = escape_json(msgspec.json.encode(turn)) + b"\n"
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            # A last line without its end must not swallow the one that follows.
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
