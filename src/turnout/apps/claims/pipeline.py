"""An audit that survives its process: five agents, each of whose results is stored before the next begins.

The caller gets an id at once and follows the session's events, before, during and after. A process that is killed
loses the step it was in and nothing else; however often an audit is taken up again, there is one card at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from turnout.core.decision import new_id
from turnout.core.errors import Refused, StoreError, StoreUnavailable
from turnout.core.verdict import Fault, contain
from turnout.store import Store
from turnout.store.session_log import open_session_log

from .audit import AuditOrder, KeepsCards
from .card import Card
from .event import ChatEvent
from .feed import Feed
from .settings import Reach, open_reach
from .workflow import CARD, AuditWorkflow

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.runtime.runtime import Runtime

# A claim is a sentence; the question it comes from has at most as many characters.
CLAIM_CHARACTERS = 2000
# How often it is looked for workers that are gone, and for the end of an audit that another process makes.
WATCH_S, LOOK_S = 10.0, 0.25


class AuditFailed(Struct, frozen=True):
    """An audit that ended without a card, and why."""

    pipeline_id: str
    agent: str
    reason: str


class AuditPipeline:
    """One for a process. Made by `open_pipeline`; used inside one running event loop."""

    def __init__(self, runtime: Runtime, store: Store, cards: KeepsCards, feed: Feed, reach: Reach) -> None:
        self._store = store
        self._cards = cards
        self._feed = feed
        self._reach = reach
        self._workflow = AuditWorkflow(runtime, store, cards, feed, reach)
        self._closed = False
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> AuditPipeline:
        await asyncio.to_thread(self._workflow.open)
        return self

    async def start(
        self, claim_text: str, context: str = "", *, session_id: str, caller: Caller, decision_id: str = ""
    ) -> str:
        """Begin an audit on the caller's money; its id, at once. `decision_id`: the question's that led to it; without
        one, the audit is a question of its own, and is logged as one."""
        claim = " ".join(claim_text.split())
        if not 0 < len(claim) <= CLAIM_CHARACTERS:
            said = f"a claim has 1 to {CLAIM_CHARACTERS:,} characters, this one {len(claim):,}: state it in a sentence"
            raise Refused(422, "invalid_request_error", said)
        caller.budget.check()
        self._workflow.callers[caller.key_id] = caller
        order = AuditOrder(
            new_id(), claim, context, session_id, caller.tenant, caller.key_id, decision_id, time.time_ns() // 1_000_000
        )
        if not decision_id:
            decision = await self._workflow.decide(order)
            self._store.append(decision, key_id=caller.key_id)
            order = replace(order, decision_id=decision.id)
        began = await asyncio.to_thread(contain, self._workflow.begin, order)
        if isinstance(began, Fault):
            raise Refused(503, "not_available", f"the audit cannot be stored now: {began.detail}")
        return order.pipeline_id

    def events(
        self, session_id: str, after: int = 0, *, tenant: str, follow: bool = False
    ) -> AsyncGenerator[ChatEvent, None]:
        """What happened in a session beyond a number, in order, and then what happens. It ends with an event that
        `ends` and that none follows yet; with `follow`, not at all."""
        return self._feed.listen(tenant, session_id, after, follow)

    async def emit(self, session_id: str, event: ChatEvent, *, tenant: str, key: str = "") -> ChatEvent:
        """Store an event and tell it to all who follow; the event with its number. One with a `key` is stored once."""
        return await asyncio.to_thread(self._feed.append, tenant, session_id, event, key)

    async def result(self, pipeline_id: str) -> Card | AuditFailed:
        """What an audit came to; waits for its end. Raises Refused for an id that is no audit's."""
        ended = None
        while ended is None:
            with contextlib.suppress(StoreUnavailable):
                ended = await asyncio.to_thread(self._workflow.durable.ended, pipeline_id)
            if ended is None:
                await asyncio.sleep(LOOK_S)
        output = ended.output or {}
        if output.get("failed") or ended.said:
            return AuditFailed(pipeline_id, output.get("agent", ""), output.get("failed") or ended.said)
        card = await asyncio.to_thread(self._cards.get, str(output["card"]))
        return card or AuditFailed(pipeline_id, CARD, f"the card {output['card']} is no longer in the library")

    async def resume(self) -> int:
        """Go on with what processes that are gone left unfinished, now and as long as this one runs; how many audits
        that are now. Called on start of a server."""
        taken = await asyncio.to_thread(self._workflow.durable.take_over)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        return len(taken)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            with contextlib.suppress(StoreError):  # a database that is away for a while is asked again
                await asyncio.to_thread(self._workflow.durable.take_over)

    async def close(self) -> None:
        """Stop. Audits that are under way go on where a pipeline is open, or when one is opened again."""
        if self._closed:
            return
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        self._workflow.stop()
        await asyncio.to_thread(self._workflow.close)
        await self._feed.close()
        await self._reach.close()


async def open_pipeline(runtime: Runtime, library: KeepsCards, reach: Reach | None = None) -> AuditPipeline:
    """The pipeline of a process. Raises Refused without a store, or without the extra `claims`. `reach`: where audits
    look; by default where the settings say."""
    if runtime.store is None:
        raise Refused(503, "not_available", "an audit needs a store: start with one")
    reach = reach or open_reach(runtime.config)
    log = await asyncio.to_thread(open_session_log, runtime.store)
    pipeline = AuditPipeline(runtime, runtime.store, library, Feed(log), reach)
    try:
        return await pipeline.open()
    except Refused:
        await asyncio.to_thread(log.close)
        await reach.close()
        raise
