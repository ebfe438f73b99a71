"""`turnout ask`: one question to everything that is configured, each source shown as it answers."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.core.errors import TurnoutError
from turnout.core.query import Query, Turn

from ..application import local_caller, needing, open_runtime, run
from ..draw.screen import console, write_json
from ..option import JsonOption, StoreOptions, TextArgument
from ..question import append_turn, check_session, read_session, read_text, session_name

if TYPE_CHECKING:
    from turnout.apps.sources.app import SourcesApp
    from turnout.apps.sources.ask import AskRequest
    from turnout.apps.sources.plan import Plan
    from turnout.apps.sources.result import SearchResult


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
    no_log: Annotated[bool, Parameter(help="Do not log the question or cache answers.")] = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    with needing("asking sources needs"):
        from turnout.apps.sources.app import SourcesApp
        from turnout.apps.sources.ask import AskRequest
        from turnout.apps.sources.plan import MOST_SOURCES

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
    app = SourcesApp(open_runtime(where, "sources", log=not (no_log or plan)))
    if plan:
        return _show(run(app.runtime, _plan(app, question)), json=json)
    result = run(app.runtime, _ask(app, question, json=json))
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
    return app.plan(await app.decide(asked, local_caller()), asked.query).unlogged()


async def _ask(app: SourcesApp, asked: AskRequest, *, json: bool) -> SearchResult:
    """Ask, show each source as it ends on stderr, and the answer on stdout."""
    from turnout.apps.sources.result import SearchResult

    from ..draw.ask import answer, live_sources

    result: SearchResult | None = None
    caller = local_caller()
    decision = await app.decide(asked, caller)
    with live_sources() as happened:
        async with aclosing(app.act(decision, asked.query, caller)) as events:
            async for event in events:
                happened(event)
                result = event if isinstance(event, SearchResult) else result
    await app.results.settle()
    await app.choices.settle()
    assert result is not None  # noqa: S101 - it is the last event
    if json:
        write_json(result)
    else:
        screen = console()
        screen.print(answer(result, screen.glyphs), width=screen.room if screen.is_terminal else None)
    return result
