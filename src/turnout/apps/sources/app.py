"""One question box over everything you run: decided, asked of its sources, answered, and said truthfully who answered.

A question has one account of the ledger's and one row in the log, its parts have rows below it, and what HTTP, a chat
client and the terminal show is the same stream of events.
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
from .run import BOUND_S, Judge
from .settings import Sources, open_sources
from .source import Source
from .wording import word_follow_up
from .write import SLOT

log = logging.getLogger("turnout.sources")

# The specification's bound on cached answers.
RESULTS = 500
# What a source is asked with at most: servers take addresses of some 8,000 characters.
LONGEST = 8_000


class SourcesApp:
    name: ClassVar = "sources"
    commands: ClassVar[Sequence[AppCommand]] = ()
    models: ClassVar[Sequence[str]] = ("ask",)

    def __init__(
        self,
        runtime: Runtime,
        sources: Mapping[str, Source] | None = None,
        judge: Judge | None = None,
        *,
        bound_s: float = BOUND_S,
    ) -> None:
        self.runtime = runtime
        self.judge = judge or judge_facts
        self.bound_s = bound_s
        self.results = Cache("result", RESULTS, runtime.store)
        self.choices = Cache("routing", CHOICES, runtime.store)
        self._given = sources
        self._opened: Sources | None = None
        """What the settings of the moment name."""
        self._held: Counter[Sources] = Counter()
        """How many questions ask them now: those that the settings named before are closed after the last."""
        self._closing: set[asyncio.Future[None]] = set()
        self._snapshots: asyncio.Task[None] | None = None
        self._router: tuple[object, Router] | None = None
        """For whom it was made, and the router."""
        self._renew()
        runtime.on_reload.append(self._renew)
        runtime.on_close.append(self.close)
        runtime.answering.update(dict.fromkeys(self.models, self))
        shown = SourceRoutes(self)
        self.routes, self.tools = shown.routes, shown.tools

    def _renew(self) -> None:
        before = self._opened
        if self._given is None:
            try:
                self._opened = open_sources(self.runtime.config)
            except ConfigError as error:
                if before is None:
                    raise
                log.warning("the sources stay as they were: %s", error)
                return
            if self._snapshots is not None:
                self._snapshots.cancel()
                self._snapshots = asyncio.ensure_future(self._opened.take_snapshots())
        self.sources: Mapping[str, Source] = self._opened.sources if self._opened is not None else self._given or {}
        opened = self._opened
        self.desk = (
            Desk(self.sources, self.results, opened.stamps, opened.kinds)
            if opened is not None
            else Desk(self.sources, self.results)
        )
        if before is not None:
            self._let_go(before)

    @contextmanager
    def holding(self) -> Iterator[Desk]:
        """The desk of the moment; what it connects with stays open until this ends, whatever the settings say then."""
        opened, desk = self._opened, self.desk
        if opened is not None:
            self._held[opened] += 1
        try:
            yield desk
        finally:
            if opened is not None:
                self._held[opened] -= 1
                self._let_go(opened)

    def _let_go(self, opened: Sources) -> None:
        """Close what the settings no longer name, once no question asks it any more."""
        if opened is self._opened or self._held[opened]:
            return
        del self._held[opened]
        closing = asyncio.ensure_future(opened.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        if self._snapshots is not None:
            self._snapshots.cancel()
        left = {*self._held, *([self._opened] if self._opened is not None else ())}
        await asyncio.gather(*(opened.close() for opened in left), *self._closing)

    # --- deciding

    async def router(self, caller: Caller) -> Router:
        """The profile's router for the sources there are, if the caller may use it."""
        caller.check_profile(PROFILE)
        found = await self.runtime.find_router(PROFILE)
        known = (found, self.sources, [tuple(source.words()) for source in self.sources.values()])
        if self._router is None or self._router[0] != known:
            self._router = known, choosing(found, self.sources, self.choices, self._past)
        return self._router[1]

    def _past(self, tenant: str) -> Sequence[JudgedQuestion]:
        """What people said of this tenant's questions."""
        store = self.runtime.store
        return store.records(tenant).judged(PROFILE, most=MOST_PAST) if store is not None else ()

    async def decide(self, asked: AskRequest, caller: Caller) -> Decision:
        """Who answers a question, in words of its own; refused where a source is named that there is not."""
        if self._snapshots is None and self._opened is not None:
            self._snapshots = asyncio.ensure_future(self._opened.take_snapshots())
        text = asked_text(asked.query).strip()
        if not text:
            raise Refused(422, "invalid_request_error", "the question is blank: ask something")
        if (asked.source not in ("auto", "fusion") or asked.fusion) and not caller.may_force:
            raise Refused(403, "permission_error", "this key may not name a source itself: ask for `auto`")
        if len(text) > LONGEST:
            said = f"the question has {len(text):,} characters, and a source is asked {LONGEST:,} at most: shorten it"
            raise Refused(413, "invalid_request_error", said)
        router = await self.router(caller)
        models, store = self.runtime.models, self.runtime.store
        alone = read_standalone(asked.query, router.profile)
        worded = await word_follow_up(alone, router.profile, models, caller, store) if alone.is_follow_up else ""
        query = replace(asked.query, text=worded or alone.text, turns=())
        slots = models.slots
        deciding = partial(decide, caller=caller, slots=slots, store=store)
        try:
            if asked.source == "auto":
                return await deciding(router, query)
            return await decide_explicit(router, query, asked, deciding)
        except QueryError as error:
            raise Refused(422, "invalid_request_error", str(error)) from None

    def plan(self, decision: Decision, query: Query) -> Plan:
        by_kind = self._opened.by_kind if self._opened is not None else {}
        return make_plan(decision, asked_text(query), self.sources, by_kind)

    # --- acting

    async def answer(self, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """Decide and act, as a chat client has it done: the conversation's last question. Where no model writes, each
        part is told when it is there."""
        decision = await self.decide(AskRequest(query), caller)
        yield Decided.by(decision)
        plan = self.plan(decision, query)
        is_told = sum(len(part.sources) for part in plan.parts) > 1 and not self.runtime.models.has(SLOT)
        chat = PartsInOrder(plan) if is_told else None
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
            async with aclosing(acting.events(self.judge, self.bound_s)) as events:
                async for event in events:
                    yield event
