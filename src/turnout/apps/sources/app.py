"""One question box over everything you run: decided, asked of its sources, answered, and said truthfully who answered.

A question has one account of the ledger's and one row in the log, its parts have rows below it, and what HTTP, a chat
client and the terminal show is the same stream of events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar

import msgspec

from turnout.apps.app import AppCommand
from turnout.apps.caller import Caller
from turnout.apps.event import Citation, Event, Section, Token
from turnout.apps.ledger import Account, Ledger, decide
from turnout.core.decision import Decision
from turnout.core.errors import ConfigError, QueryError, Refused
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.runtime.runtime import Runtime
from turnout.store.row import asked_text

from .ask import PROFILE, Asked, decide_explicit, standalone
from .cache import Cache
from .choose import CHOICES, choosing
from .desk import Desk
from .frame import tell_all, tell_citation, tell_rest
from .judge import judge as judge_facts
from .log import note, part_outcomes, why_fallback
from .plan import Plan, make_plan
from .result import PartResult, SearchResult, search_result
from .routes import SourceRoutes
from .run import BOUND_S, Judge, Ran, run
from .settings import Sources, open_sources
from .source import Source
from .write import SLOT, WrittenSentence, cite, write

log = logging.getLogger("turnout.sources")

# The specification's bound on cached answers.
RESULTS = 500
# And how long a written answer is fresh.
FUSION_S = 1800.0
# What a source is asked with at most: servers take addresses of some 8,000 characters.
LONGEST = 8_000
_sentences = msgspec.json.Decoder(list[WrittenSentence])


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
        self._left: list[Sources] = []
        """What they named before: a question that is under way may still ask it."""
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
        if self._given is None:
            try:
                opened = open_sources(self.runtime.config)
            except ConfigError as error:
                if self._opened is None:
                    raise
                log.warning("the sources stay as they were: %s", error)
                return
            if self._opened is not None:
                self._left.append(self._opened)
            self._opened = opened
            if self._snapshots is not None:
                self._snapshots.cancel()
                self._snapshots = asyncio.ensure_future(opened.take_snapshots())
        self.sources: Mapping[str, Source] = self._opened.sources if self._opened is not None else self._given or {}
        self.desk = Desk(self.sources, self.results, self._opened.stamps if self._opened is not None else {})

    async def close(self) -> None:
        if self._snapshots is not None:
            self._snapshots.cancel()
        for opened in (*self._left, *([self._opened] if self._opened is not None else ())):
            await opened.close()

    # --- deciding

    async def router(self, caller: Caller) -> Router:
        """The profile's router for the sources there are, if the caller may use it."""
        if caller.profiles is not None and PROFILE not in caller.profiles:
            raise Refused(403, "permission_error", f"this key may not use the profile {PROFILE!r}")
        found = await self.runtime.find_router(PROFILE)
        known = (found, self.sources, [tuple(source.words()) for source in self.sources.values()])
        if self._router is None or self._router[0] != known:
            self._router = known, choosing(found, self.sources, self.choices)
        return self._router[1]

    async def decide(self, asked: Asked, caller: Caller) -> Decision:
        """Who answers a question, in words of its own; refused where a source is named that there is not."""
        if self._snapshots is None and self._opened is not None:
            self._snapshots = asyncio.ensure_future(self._opened.take_snapshots())
        text = asked_text(asked.query).strip()
        if not text:
            raise Refused(422, "invalid_request_error", "the question is blank: ask something")
        if len(text) > LONGEST:
            said = f"the question has {len(text):,} characters, and a source is asked {LONGEST:,} at most: shorten it"
            raise Refused(413, "invalid_request_error", said)
        router = await self.router(caller)
        query = standalone(asked.query, router.profile)
        slots, store = self.runtime.models.slots, self.runtime.store
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
        section is told when it is there."""
        decision = await self.decide(Asked(query), caller)
        plan = self.plan(decision, query)
        is_told = sum(len(part.sources) for part in plan.parts) > 1 and not self.runtime.models.has(SLOT)
        async with aclosing(self.act(decision, query, caller)) as events:
            async for event in events:
                if is_told and isinstance(event, Section):
                    yield Token(f"[{event.source}]\n{event.text}\n\n")
                if is_told and isinstance(event, SearchResult) and (rest := tell_rest(plan, event.parts)):
                    yield Token(rest)
                yield event

    async def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        plan = self.plan(decision, query)
        with Ledger(self.runtime.store, self.runtime.models.slots).open(decision, caller) as account:
            await account.record()
            happened: asyncio.Queue[Event | None] = asyncio.Queue()
            tenant = decision.query.tenant or ""
            running = asyncio.ensure_future(
                run(plan, self.desk, self.judge, happened.put_nowait, tenant=tenant, bound_s=self.bound_s)
            )
            running.add_done_callback(lambda _: happened.put_nowait(None))
            try:
                while (event := await happened.get()) is not None:
                    yield event
                ran = running.result()
            finally:
                running.cancel()
            parts, text, cited = [one.result for one in ran], "", []
            if _is_written(parts):
                async for event in self._write(plan, ran, account):
                    text += event.text if isinstance(event, Token) else ""
                    cited += [event] if isinstance(event, Citation) else []
                    yield event
            if text and (rest := _rest(plan, parts, cited, account)):
                text += rest
                yield Token(rest)
            result = search_result(plan, parts, text or tell_all(parts), cited)
            _settle(account, decision, result)
            yield result

    async def _write(self, plan: Plan, ran: Sequence[Ran], account: Account) -> AsyncGenerator[Event, None]:
        """What a model makes of the sections, if one does: its sentences, then what their numbers stand for. The same
        sections give the same answer for a while."""
        sections = [section for one in ran for section in one.sections]
        question, tenant = plan.standalone or plan.question, account.decision.query.tenant or ""
        key = ("fusion", question, *(text for one in sections for text in (one.source, one.text)))
        kept = await self.results.get(tenant, key)
        sentences: list[WrittenSentence] = [] if kept is None else _sentences.decode(kept)
        for sentence in sentences:
            yield Token(sentence.text)
        if kept is None:
            async for sentence in write(question, sections, account, self.runtime.models):
                sentences.append(sentence)
                yield Token(sentence.text)
            if sentences and account.generation is not None and account.generation.ended == "answered":
                self.results.put(tenant, key, msgspec.json.encode(sentences), FUSION_S)
        for number in sorted({number for sentence in sentences for number in sentence.cited}):
            yield cite(number, sections[number - 1])


def _is_written(parts: Sequence[PartResult]) -> bool:
    """Whether a model may put an answer in its own words: of several sections, none of which is about a condition."""
    return sum(len(part.sources) for part in parts) > 1 and all(part.role != "condition" for part in parts)


def _rest(plan: Plan, parts: Sequence[PartResult], cited: Sequence[Citation], account: Account) -> str:
    """What a written answer is followed by: what its numbers stand for and who is missing in it; where it broke off,
    what the sources say."""
    if account.generation is not None and account.generation.ended != "answered":
        return f"\n\n(The answer broke off here. What the sources say:)\n\n{tell_all(parts)}"
    legend = "\n".join(tell_citation(one) for one in cited)
    return "".join(f"\n\n{text}" for text in (legend, tell_rest(plan, parts)) if text)


def _settle(account: Account, decision: Decision, result: SearchResult) -> None:
    """How it ended, for the log."""
    used: Any = dict.fromkeys(source for part in result.parts for source in part.sources)
    account.ended = "answered" if result.success else "failed"
    account.sources = tuple(used)
    account.fallback = next((why for part in result.parts if (why := why_fallback(part)) is not None), None)
    account.parts = part_outcomes(decision, result)
    account.extra = note(result) if account.parts else note(result.parts[0])
    if account.parts:
        account.extra["parts"] = len(account.parts)
    if result.standalone:
        account.extra["standalone"] = result.standalone
