"""`turnout claims audit`: a claim audited by five agents, each shown while it works. Needs no server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.apps.claims.card import Card
from turnout.core.decision import new_id

from ..application import local_caller, open_runtime, run
from ..draw.screen import complain, console, write_json
from ..option import JsonOption, StoreOptions, TextArgument
from ..question import read_text

if TYPE_CHECKING:
    from turnout.apps.claims.pipeline import AuditFailed
    from turnout.runtime.runtime import Runtime


def audit(
    text: TextArgument = None,
    /,
    *,
    context: Annotated[str, Parameter(help="The context of the claim, for the agents to read.", metavar="TEXT")] = "",
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Audit a claim: five agents find its topic and its sources, judge it, write the answer and publish the card.

    Each step is stored: an interrupted audit continues when a server runs, or with the next audit.
    """
    claim = read_text(text)
    runtime = open_runtime(where, "claims")
    return show_card(run(runtime, _audit(runtime, claim, context)), json=json)


async def _audit(runtime: Runtime, claim: str, context: str) -> Card | AuditFailed:
    from turnout.apps.claims.library import open_library
    from turnout.apps.claims.pipeline import open_pipeline

    from ..draw.audit import live_agents

    async with contextlib.AsyncExitStack() as closing:
        library = await asyncio.to_thread(open_library, runtime)
        closing.push_async_callback(asyncio.to_thread, library.close)
        pipeline = await open_pipeline(runtime, library)
        closing.push_async_callback(pipeline.close)
        await pipeline.resume()
        session = new_id()
        ident = await pipeline.start(claim, context, session_id=session, caller=local_caller())
        with live_agents() as show:
            async for event in pipeline.events(session, tenant=""):
                show(event)
        return await pipeline.result(ident)


def show_card(result: Card | AuditFailed, *, json: bool) -> int:
    """Show a card, or why there is none; returns the exit code."""

    from ..draw.audit import card_picture

    if json:
        write_json(result)
    elif isinstance(result, Card):
        screen = console()
        screen.prose(card_picture(result, screen.glyphs))
    else:
        complain(f"no card: {result.agent.replace('_', ' ')}: {result.reason}")
    return 0 if isinstance(result, Card) else 1
