"""`turnout ask`: one question to everything that is configured, each source shown as it answers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.core.errors import Refused, TurnoutError
from turnout.core.query import Query, Turn

from ..draw.screen import console, write_json
from ..option import ConfigOption, DbOption, JsonOption, TextArgument
from ..question import append_turn, check_session, read_session, read_text, session_name

if TYPE_CHECKING:
    from turnout.apps.sources.app import SourcesApp
    from turnout.apps.sources.ask import AskRequest
    from turnout.apps.sources.plan import Plan
    from turnout.apps.sources.result import SearchResult
    from turnout.core.decision import Decision


def ask(
    text: TextArgument = None,
    /,
    *,
    source: Annotated[
        str, Parameter(help="A source by name, or `fusion`; `auto` lets Turnout choose.", metavar="NAME")
    ] = "auto",
    fuse: Annotated[
        tuple[str, ...],
        Parameter(help="Ask these sources together; may be repeated.", metavar="NAME", consume_multiple=True),
    ] = (),
    plan: Annotated[bool, Parameter(help="Show which source would be asked what; ask none.")] = False,
    session: Annotated[
        str | None, Parameter(help="A JSONL file of earlier turns; question and answer are added.", metavar="FILE")
    ] = None,
    json: JsonOption = False,
    no_log: Annotated[bool, Parameter(help="Do not write the question down, nor keep answers.")] = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    try:
        from turnout.apps.sources.app import SourcesApp
        from turnout.apps.sources.ask import AskRequest
        from turnout.apps.sources.plan import MOST_SOURCES
        from turnout.runtime.runtime import Runtime
    except ImportError as error:
        raise TurnoutError(f"asking sources needs {error.name}: pip install 'turnout[serve]'") from None
    from turnout.runtime.log import quiet
    from turnout.store import open_store

    if fuse and source not in ("auto", "fusion"):
        raise TurnoutError(f"--source {source[:40]} and --fuse exclude each other: name all of them with --fuse")
    if len(set(fuse)) > MOST_SOURCES:
        raise TurnoutError(f"--fuse names {len(set(fuse))} sources: {MOST_SOURCES} are asked together at most")
    asked = read_text(text)
    turns: tuple[Turn, ...] = ()
    if session is not None:
        check_session(File(session))
        turns = (*read_session(File(session)), Turn("user", asked))
    query = Query("" if turns else asked, turns, session=session_name(session) if session is not None else None)
    question = AskRequest(query, "fusion" if fuse else source, fuse)
    quiet()
    runtime = Runtime(None if no_log or plan else open_store(db, config=config), profile="sources", config=config)
    app = SourcesApp(runtime)
    if plan:
        return _show(asyncio.run(_plan(app, question)), json=json)
    result = asyncio.run(_run(app, question, json=json))
    if session is not None:
        append_turn(File(session), turns[-1])
        append_turn(File(session), Turn("assistant", result.result))
    return 0 if result.success else 1


def _show(plan: Plan, *, json: bool) -> int:
    from ..draw.ask import plan_tree

    if json:
        write_json(plan)
        return 0
    screen = console()
    screen.print(plan_tree(plan, screen.glyphs), width=screen.room)
    return 0


async def _plan(app: SourcesApp, asked: AskRequest) -> Plan:
    try:
        return app.plan(await _decide(app, asked), asked.query).unlogged()
    finally:
        await app.runtime.close()


async def _decide(app: SourcesApp, asked: AskRequest) -> Decision:
    from turnout.apps.caller import Budget, Caller

    try:
        return await app.decide(asked, Caller("", "", frozenset(("ask",)), Budget()))
    except Refused as refused:
        raise TurnoutError(str(refused)) from None


async def _run(app: SourcesApp, asked: AskRequest, *, json: bool) -> SearchResult:
    """Ask, show each source as it ends on stderr, and the answer on stdout."""
    from turnout.apps.caller import Budget, Caller
    from turnout.apps.sources.result import SearchResult

    from ..draw.ask import answer, live_sources

    result: SearchResult | None = None
    try:
        decision = await _decide(app, asked)
        with live_sources() as happened:
            caller = Caller("", "", frozenset(("ask",)), Budget())
            async with aclosing(app.act(decision, asked.query, caller)) as events:
                async for event in events:
                    happened(event)
                    result = event if isinstance(event, SearchResult) else result
        await app.results.settle()
        await app.choices.settle()
    finally:
        await app.runtime.close()
    assert result is not None  # noqa: S101 - it is the last event
    if json:
        write_json(result)
    else:
        screen = console()
        screen.print(answer(result, screen.glyphs), width=screen.room if screen.is_terminal else None)
    return result
