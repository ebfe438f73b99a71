"""`turnout ask`: one question to all configured sources, each shown as it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.apps.sources.ask import AskRequest
from turnout.apps.sources.plan import MOST_SOURCES, Plan
from turnout.apps.sources.result import SearchResult
from turnout.core.errors import TurnoutError
from turnout.core.query import Query, Turn

from ..application import follow, local_caller, needing, open_runtime, run
from ..draw.screen import console, write_json
from ..option import JsonOption, StoreOptions, TextArgument
from ..question import SessionOption, append_turns, check_session, read_session, read_text, session_name

if TYPE_CHECKING:
    from turnout.apps.sources.app import SourcesApp


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
    session: SessionOption = None,
    json: JsonOption = False,
    no_log: Annotated[bool, Parameter(help="Do not log the question or cache answers.")] = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    with needing("asking sources needs"):
        from turnout.apps.sources.app import SourcesApp

    if fuse and source not in ("auto", "fusion"):
        raise TurnoutError(f"--source {source[:40]} and --fuse exclude each other: name all of them with --fuse")
    if len(set(fuse)) > MOST_SOURCES:
        raise TurnoutError(f"--fuse names {len(set(fuse))} sources: {MOST_SOURCES} are asked together at most")
    question = read_text(text)
    query = Query(question)
    if session is not None:
        check_session(session)
        query = Query(turns=(*read_session(session), Turn("user", question)), session=session_name(session))
    request = AskRequest(query, "fusion" if fuse else source, fuse)
    app = SourcesApp(open_runtime(where, "sources", log=not (no_log or plan)))
    if plan:
        _show_plan(run(app.runtime, _plan(app, request)), json=json)
        return 0
    result = run(app.runtime, _ask(app, request))
    _show_result(result, json=json)
    if session is not None:
        append_turns(session, query.turns[-1], Turn("assistant", result.result))
    return 0 if result.success else 1


async def _plan(app: SourcesApp, request: AskRequest) -> Plan:
    return app.plan(await app.decide(request, local_caller()), request.query).unlogged()


async def _ask(app: SourcesApp, request: AskRequest) -> SearchResult:
    """Ask, and show each source on stderr as it ends."""

    from ..draw.ask import live_sources

    caller = local_caller()
    decision = await app.decide(request, caller)
    with live_sources() as show:
        result = await follow(app.act(decision, request.query, caller), SearchResult, show)
    await app.results.settle()
    await app.choices.settle()
    return result


def _show_plan(plan: Plan, *, json: bool) -> None:
    from ..draw.ask import plan_tree

    if json:
        write_json(plan)
    else:
        screen = console()
        screen.print(plan_tree(plan, screen.glyphs), width=screen.room)


def _show_result(result: SearchResult, *, json: bool) -> None:
    from ..draw.ask import answer

    if json:
        write_json(result)
    else:
        screen = console()
        screen.prose(answer(result, screen.glyphs))
