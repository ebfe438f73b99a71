"""`turnout claims audit`: a claim audited by five agents, each shown while it works. Needs no server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.core.errors import Refused, TurnoutError
from turnout.core.ident import new_id

from ..draw.screen import complain, console, write_json
from ..option import ConfigOption, DbOption, JsonOption, TextArgument
from ..question import read_text

if TYPE_CHECKING:
    from turnout.apps.claims.card import Card
    from turnout.apps.claims.pipeline import AuditFailed
    from turnout.runtime.runtime import Runtime


def audit(
    text: TextArgument = None,
    /,
    *,
    context: Annotated[str, Parameter(help="What the claim was said in, for the agents to read.", metavar="TEXT")] = "",
    json: JsonOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Audit a claim: five agents find its topic and its sources, judge it, write the answer and publish the card.

    Each step is stored: an audit that is interrupted goes on when a server runs, or with the next audit.
    """
    try:
        from turnout.runtime.runtime import Runtime
    except ImportError as error:
        raise TurnoutError(f"an audit needs {error.name}: pip install 'turnout[serve]'") from None
    from turnout.runtime.log import quiet
    from turnout.store import open_store

    claim = read_text(text)
    quiet()
    runtime = Runtime(open_store(db, config=config), profile="claims", config=config)
    try:
        found = asyncio.run(_run(runtime, claim, context))
    except Refused as refused:
        raise TurnoutError(str(refused)) from None
    return _show(found, json=json)


async def _run(runtime: Runtime, claim: str, context: str) -> Card | AuditFailed:
    from turnout.apps.caller import Budget, Caller
    from turnout.apps.claims.library import open_library
    from turnout.apps.claims.pipeline import open_pipeline

    from ..draw.audit import live_agents

    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(runtime.close)
        library = await asyncio.to_thread(open_library, runtime)
        closing.push_async_callback(asyncio.to_thread, library.close)
        pipeline = await open_pipeline(runtime, library)
        closing.push_async_callback(pipeline.close)
        await pipeline.resume()
        session = new_id()
        caller = Caller("", "", frozenset(("ask",)), Budget())
        ident = await pipeline.start(claim, context, session_id=session, caller=caller)
        with live_agents() as happened:
            async for event in pipeline.events(session, tenant=""):
                happened(event)
        return await pipeline.result(ident)


def _show(found: Card | AuditFailed, *, json: bool) -> int:
    from turnout.apps.claims.card import Card

    from ..draw.audit import card_picture

    if json:
        write_json(found)
    elif isinstance(found, Card):
        screen = console()
        screen.print(card_picture(found, screen.glyphs), width=screen.room if screen.is_terminal else None)
    else:
        complain(f"no card: {found.agent.replace('_', ' ')}: {found.reason}")
    return 0 if isinstance(found, Card) else 1
