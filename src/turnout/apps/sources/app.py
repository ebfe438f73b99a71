"""The sources application: it decides which of the user's sources answer a question, asks them, and reports truthfully
which ones answered.

A question has one ledger account and one row in the log, its parts have rows below it, and HTTP, chat clients and the
terminal all show the same stream of events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from turnout.apps.app import AppCommand
from turnout.apps.caller import Caller
from turnout.apps.event import Decided, Event, Token
from turnout.apps.ledger import Ledger, decide
from turnout.core.decision import Decision
from turnout.core.errors import ConfigError, QueryError, Refused
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.runtime.runtime import Runtime
from turnout.store.records import JudgedQuestion
from turnout.store.row import asked_text

from .act import Act
from .ask import PROFILE, AskRequest, decide_explicit, read_standalone
from .cache import Cache
from .chat import PartsInOrder, without_loads
from .choose import CHOICES, choosing
from .desk import Desk
from .judge import judge as judge_facts
from .plan import Plan, make_plan
from .preference import MOST_PAST
from .routes import SourceRoutes
from .settings import Sources, open_sources
from .source import Source
from .wording import word_follow_up
from .write import SLOT

log = logging.getLogger("turnout.sources")

# The specification's bound on cached answers.
RESULTS = 500
# Characters of a question; servers accept URLs of some 8,000.
LONGEST = 8_000


class SourcesApp:
    name: ClassVar = "sources"
    commands: ClassVar[Sequence[AppCommand]] = ()
    models: ClassVar[Sequence[str]] = ("ask",)

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.results = Cache("result", RESULTS, runtime.store)
        self.choices = Cache("routing", CHOICES, runtime.store)
        self._use(open_sources(runtime.config))
        self._held: Counter[Sources] = Counter()
        """How many questions use each. Sources of earlier settings are closed after the last one."""
        self._closing: set[asyncio.Future[None]] = set()
        self._snapshots: asyncio.Task[None] | None = None
        self._router: tuple[object, Router] | None = None
        """What the router was made from, and the router."""
        runtime.on_reload.append(self._renew)
        runtime.on_close.append(self.close)
        runtime.chat_apps.update(dict.fromkeys(self.models, self))
        served = SourceRoutes(self)
        self.routes, self.tools = served.routes, served.tools

    def _use(self, opened: Sources) -> None:
        self._opened = opened
        self.sources: Mapping[str, Source] = opened.sources
        self.desk = Desk(opened.sources, self.results, opened.stamps, opened.kinds)

    def _renew(self) -> None:
        before = self._opened
        try:
            self._use(open_sources(self.runtime.config))
        except ConfigError as error:
            log.warning("the sources stay as they were: %s", error)
            return
        if self._snapshots is not None:
            self._snapshots.cancel()
            self._snapshots = asyncio.ensure_future(self._opened.take_snapshots())
        self._close_unused(before)

    @contextmanager
    def holding(self) -> Iterator[Desk]:
        """The current desk; its connections stay open until this ends, even if the settings change meanwhile."""
        opened, desk = self._opened, self.desk
        self._held[opened] += 1
        try:
            yield desk
        finally:
            self._held[opened] -= 1
            self._close_unused(opened)

    def _close_unused(self, opened: Sources) -> None:
        """Close sources that the settings no longer name, unless a question still uses them."""
        if opened is self._opened or self._held[opened]:
            return
        del self._held[opened]
        closing = asyncio.ensure_future(opened.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        if self._snapshots is not None:
            self._snapshots.cancel()
        await asyncio.gather(*(opened.close() for opened in {*self._held, self._opened}), *self._closing)

    # --- deciding

    async def router(self, caller: Caller) -> Router:
        """The profile's router for the current sources, if the caller may use it."""
        caller.check_profile(PROFILE)
        router = await self.runtime.find_router(PROFILE)
        made_from = (router, self.sources, [tuple(source.words()) for source in self.sources.values()])
        if self._router is None or self._router[0] != made_from:
            self._router = made_from, choosing(router, self.sources, self.choices, self._past)
        return self._router[1]

    def _past(self, tenant: str) -> Sequence[JudgedQuestion]:
        """This tenant's past questions that have feedback."""
        store = self.runtime.store
        return store.records(tenant).judged(PROFILE, most=MOST_PAST) if store is not None else ()

    async def decide(self, asked: AskRequest, caller: Caller) -> Decision:
        """Which sources answer a question, made standalone; Refused if it names a source that does not exist."""
        if self._snapshots is None:
            self._snapshots = asyncio.ensure_future(self._opened.take_snapshots())
        text = asked_text(asked.query).strip()
        if not text:
            raise Refused(422, "invalid_request_error", "the question is blank: ask something")
        if (asked.source not in ("auto", "fusion") or asked.fusion) and not caller.may_force:
            raise Refused(403, "permission_error", "this key may not name a source itself: ask for `auto`")
        if len(text) > LONGEST:
            problem = (
                f"the question has {len(text):,} characters, and a source is asked {LONGEST:,} at most: shorten it"
            )
            raise Refused(413, "invalid_request_error", problem)
        router = await self.router(caller)
        models, store = self.runtime.models, self.runtime.store
        alone = read_standalone(asked.query, router.profile)
        worded = await word_follow_up(alone, router.profile, models, caller, store) if alone.is_follow_up else ""
        query = replace(asked.query, text=worded or alone.text, turns=())
        deciding = partial(decide, caller=caller, slots=models.slots, store=store)
        try:
            if asked.source == "auto":
                return await deciding(router, query)
            return await decide_explicit(router, query, asked, deciding)
        except QueryError as error:
            raise Refused(422, "invalid_request_error", str(error)) from None

    def plan(self, decision: Decision, query: Query) -> Plan:
        return make_plan(decision, asked_text(query), self.sources, self._opened.by_kind)

    # --- acting

    async def answer(self, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """Decide and act for a chat client: the question is the conversation's last turn. If no model writes, each part
        is streamed as soon as it is complete."""
        decision = await self.decide(AskRequest(query), caller)
        yield Decided.by(decision)
        plan = self.plan(decision, query)
        streams_parts = sum(len(part.sources) for part in plan.parts) > 1 and not self.runtime.models.has(SLOT)
        chat = PartsInOrder(plan) if streams_parts else None
        async with aclosing(self.act(decision, query, caller)) as events:
            async for event in events:
                if chat is not None and (text := chat.tell(event)):
                    yield Token(text)
                yield without_loads(event)

    async def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        plan, models = self.plan(decision, query), self.runtime.models
        with self.holding() as desk, Ledger(self.runtime.store, models.slots).open(decision, caller) as account:
            await account.record()
            acting = Act(plan, account, models, desk, self.results)
            async with aclosing(acting.events(judge_facts)) as events:
                async for event in events:
                    yield event
