"""One question box over everything you run: decided, asked of its sources, answered, and said truthfully who answered.

A question has one account of the ledger's and one row in the log, its parts have rows below it, and what HTTP, a chat
client and the terminal show is the same stream of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from turnout.apps.app import Answer, AppCommand, AppTool, Call, Route, answer
from turnout.apps.caller import Caller
from turnout.apps.event import Citation, Event, Section, Token, write_events
from turnout.apps.ledger import Account, Ledger, decide
from turnout.core.aside import aside
from turnout.core.decision import Decision
from turnout.core.errors import QueryError, Refused
from turnout.core.query import Query, Turn
from turnout.core.router import Router
from turnout.models.wire.format import MESSAGES, UNREADABLE, check_text, told
from turnout.runtime.runtime import Runtime
from turnout.store.row import asked_text

from .ask import Asked, decide_explicit, standalone
from .cache import Cache
from .choose import CHOICES, choosing
from .desk import FRESH_S, Desk
from .frame import tell_all, tell_citation, tell_rest
from .health import check_all
from .log import line, note, part_outcomes, stats, wholes, why_fallback
from .plan import MOST_SOURCES, Plan, make_plan
from .result import PartResult, SearchResult, search_result
from .run import BOUND_S, Judge, Ran, run
from .source import Source
from .write import SLOT, Sentence, Supports, cite, supports, write

PROFILE = "sources"
# The specification's bound on cached answers.
RESULTS = 500
# And how long a written answer is fresh.
FUSION_S = 1800.0
# Questions of the log that are shown at most, and without being told otherwise.
LOG_MOST, LOG_USUAL = 1000, 100

Name = Annotated[str, Meta(max_length=200)]


class SearchTurn(Struct, forbid_unknown_fields=True):
    role: Name
    text: str


class SearchBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A question to sources."""

    query: str
    source: Name = "auto"
    """`auto`, a source by name, or `fusion`."""
    fusion_sources: Annotated[tuple[Name, ...], Meta(max_length=MOST_SOURCES)] = ()
    turns: Annotated[tuple[SearchTurn, ...], Meta(max_length=MESSAGES)] = ()
    """What was said before, oldest first."""
    session: Name | None = None
    stream: bool = False
    """Events as they happen, the last of them the answer."""


class QuestionBody(Struct, forbid_unknown_fields=True):
    """A question."""

    question: str


ASK_SAYS = (
    "Ask the user's own sources (encyclopedia, news feeds, web search, weather, smart home, service monitors, files) a "
    "question in plain words. The answer says who gave it and who had nothing."
)
SEARCH_SAYS = "As `ask`, with a source named if wanted, and every detail of what became of the question as JSON."

_body = msgspec.json.Decoder(SearchBody)
_sentences = msgspec.json.Decoder(list[Sentence])


def find_sources(runtime: Runtime) -> Mapping[str, Source]:
    """The sources of the user's settings."""
    return {}


def cannot_judge(condition: str, facts: Sequence[object]) -> None:
    """Stands in for a judge of conditions: nothing can be judged."""


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
        supported: Supports = supports,
        bound_s: float = BOUND_S,
    ) -> None:
        self.runtime = runtime
        self.judge = judge or cannot_judge
        self.supported = supported
        self.bound_s = bound_s
        self.results = Cache("result", RESULTS, runtime.store)
        self.choices = Cache("routing", CHOICES, runtime.store)
        self._given = sources
        self._router: tuple[object, Router] | None = None
        """For whom it was made, and the router."""
        self._renew()
        runtime.on_reload.append(self._renew)
        runtime.answering.update(dict.fromkeys(self.models, self))
        self.routes = (
            Route("POST", "/search", "ask", self.search, SearchBody, asks=True),
            Route("POST", "/plan", "ask", self.show_plan, SearchBody, asks=True),
            Route("GET", "/sources", "ask", self.list_sources),
            Route("GET", "/sources/health", "ask", self.health),
            Route("GET", "/logs", "decisions:read", self.logs),
            Route("GET", "/logs/stats", "decisions:read", self.log_stats),
            Route("GET", "/cache", "ask", self.cache),
            Route("POST", "/cache/clear", "ask", self.clear_cache),
        )

    def _renew(self) -> None:
        self.sources = find_sources(self.runtime) if self._given is None else self._given
        self.desk = Desk(self.sources, self.results)

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
        return make_plan(decision, asked_text(query), self.sources)

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
        sentences: list[Sentence] = [] if kept is None else _sentences.decode(kept)
        for sentence in sentences:
            yield Token(sentence.text)
        if kept is None:
            async for sentence in write(question, sections, account, self.runtime.models, self.supported):
                sentences.append(sentence)
                yield Token(sentence.text)
            if sentences and account.generation is not None and account.generation.ended == "answered":
                self.results.put(tenant, key, msgspec.json.encode(sentences), FUSION_S)
        for number in sorted({number for sentence in sentences for number in sentence.cited}):
            yield cite(number, sections[number - 1])

    # --- tools

    @property
    def tools(self) -> Sequence[AppTool]:
        return (
            AppTool("ask", ASK_SAYS, QuestionBody, self.tell),
            AppTool("search", SEARCH_SAYS, SearchBody, self.find),
        )

    async def tell(self, body: QuestionBody, caller: Caller) -> str:
        """The answer as text."""
        return (await self.find(SearchBody(body.question), caller)).result

    async def find(self, body: SearchBody, caller: Caller) -> SearchResult:
        """The answer with all that is known of it."""
        query, decision = await self._decided(body, caller)
        return await _last(self.act(decision, query, caller))

    # --- HTTP

    async def search(self, call: Call) -> Answer:
        """Ask the sources that know; `source` names one, or `fusion`."""
        asked, query, decision = await self._asked(call)
        events = self.act(decision, query, call.caller)
        if asked.stream or "text/event-stream" in call.headers.get("accept", ""):
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            return Answer(200, [*headers, (b"x-turnout-decision", decision.id.encode())], write_events(events))
        return answer(await _last(events))

    async def show_plan(self, call: Call) -> Answer:
        """Who would be asked what, without asking them."""
        _, query, decision = await self._asked(call)
        return answer(self.plan(decision, query))

    async def _asked(self, call: Call) -> tuple[SearchBody, Query, Decision]:
        try:
            body: SearchBody = await aside(len(call.body), _body.decode, call.body)
        except UNREADABLE as error:
            raise Refused(422, "invalid_request_error", told(error)) from None
        return body, *await self._decided(body, call.caller)

    async def _decided(self, body: SearchBody, caller: Caller) -> tuple[Query, Decision]:
        if not body.query.strip():
            raise Refused(422, "invalid_request_error", "query: the question is blank; say what you want to know")
        turns = tuple(Turn(turn.role, turn.text) for turn in body.turns)
        check_text((Turn("user", body.query), *turns), 422)
        if turns:
            turns += (Turn("user", body.query),)
        query = Query("" if turns else body.query, turns, session=body.session, tenant=caller.tenant or None)
        if (body.source not in ("auto", "fusion") or body.fusion_sources) and not caller.may_force:
            raise Refused(403, "permission_error", "this key may not name a source itself: ask for `auto`")
        return query, await self.decide(Asked(query, body.source, body.fusion_sources), caller)

    async def list_sources(self, call: Call) -> Answer:
        """Which sources there are, and which could be configured."""
        router = await self.router(call.caller)
        found = [
            {
                "name": name,
                "configured": name in self.sources,
                "description": self.sources[name].description if name in self.sources else "",
                "fresh_s": FRESH_S.get(name, 0.0),
            }
            for name in router.profile.routes
        ]
        return answer({"sources": found})

    async def health(self, call: Call) -> Answer:
        """Whether each source can be asked, tried now."""
        router = await self.router(call.caller)
        found = await check_all(router.profile.routes, self.sources)
        wrong = any(one.status == "error" for one in found.values())
        return answer({"status": "degraded" if wrong else "ok", "sources": found})

    async def logs(self, call: Call) -> Answer:
        """The latest questions and what became of them; `?limit=` of them."""
        limit = _limit(call.options.get("limit", str(LOG_USUAL)))
        rows = call.store.records(call.caller.tenant).searches
        found = await asyncio.to_thread(lambda: [line(*one) for one in islice(wholes(rows(PROFILE)), limit)])
        return answer({"logs": found})

    async def log_stats(self, call: Call) -> Answer:
        """Figures over all questions: how many, how quick, how often from the cache or from another source."""
        rows = call.store.records(call.caller.tenant).searches
        return answer(await asyncio.to_thread(lambda: stats(rows(PROFILE))))

    async def cache(self, call: Call) -> Answer:
        """How much is cached."""
        tenant = call.caller.tenant
        found = {one.space: {"entries": await one.count(tenant), "most": one.most} for one in self._caches}
        return answer({"caches": found, "fresh_s": FRESH_S})

    async def clear_cache(self, call: Call) -> Answer:
        """Forget what is cached."""
        return answer({"cleared": {one.space: await one.clear(call.caller.tenant) for one in self._caches}})

    @property
    def _caches(self) -> tuple[Cache, Cache]:
        return self.results, self.choices


async def _last(events: AsyncGenerator[Event, None]) -> SearchResult:
    """How it ended."""
    *_, last = [event async for event in events]
    assert isinstance(last, SearchResult)  # noqa: S101 - acting ends with one
    return last


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


def _limit(said: str) -> int:
    if said.isascii() and said.isdigit() and 1 <= int(said) <= LOG_MOST:
        return int(said)
    raise Refused(422, "invalid_request_error", f"limit {said[:20]!r}: a number from 1 to {LOG_MOST}")
