"""The application's HTTP routes and MCP tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from turnout.apps.app import Answer, AppTool, Call, Route, answer
from turnout.apps.caller import Caller
from turnout.apps.event import Event
from turnout.apps.ledger import spent_usd
from turnout.apps.request import read_body, stream_events, wants_events
from turnout.core.decision import Decision
from turnout.core.errors import Refused
from turnout.core.query import Query, Turn
from turnout.models.wire.format import MESSAGES, check_text

from .ask import PROFILE, AskRequest
from .cache import Cache
from .desk import FRESH_S
from .health import check_all
from .log import line, stats, wholes
from .plan import MOST_SOURCES
from .result import SearchResult

if TYPE_CHECKING:
    from .app import SourcesApp

# Questions shown of the log: at most, and by default.
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
    """The conversation so far, oldest turn first."""
    session: Name | None = None
    stream: bool = False
    """Send events as they happen; the last one is the result."""


class QuestionBody(Struct, forbid_unknown_fields=True):
    """A question."""

    question: str


ASK_SAYS = (
    "Ask the user's own sources (encyclopedia, news feeds, web search, weather, smart home, service monitors, files) a "
    "question in plain words. The answer says who gave it and who had nothing."
)
SEARCH_SAYS = "As `ask`, with a source named if wanted, and every detail of what became of the question as JSON."

_body = msgspec.json.Decoder(SearchBody)


class SourceRoutes:
    def __init__(self, app: SourcesApp) -> None:
        self.app = app
        self.routes = (
            Route("POST", "/search", "ask", self.search, SearchBody, asks=True),
            Route("POST", "/plan", "ask", self.show_plan, SearchBody, asks=True),
            Route("GET", "/sources", "ask", self.list_sources),
            Route("GET", "/sources/health", "ask", self.health),
            Route("GET", "/logs", "decisions:read", self.logs),
            Route("GET", "/logs/stats", "decisions:read", self.log_stats),
            Route("GET", "/cache", "ask", self.cache),
            Route("DELETE", "/cache", "ask", self.clear_cache),
            Route("POST", "/cache/clear", "ask", self.clear_cache),
        )
        self.tools = (
            AppTool("ask", ASK_SAYS, QuestionBody, self.tell),
            AppTool("search", SEARCH_SAYS, SearchBody, self.find),
        )

    # --- tools

    async def tell(self, body: QuestionBody, caller: Caller) -> str:
        """The answer as text."""
        return (await self.find(SearchBody(body.question), caller)).result

    async def find(self, body: SearchBody, caller: Caller) -> SearchResult:
        """The answer with all details."""
        query, decision = await self._decided(body, caller)
        return await _last(self.app.act(decision, query, caller))

    # --- HTTP

    async def search(self, call: Call) -> Answer:
        """Ask the sources that know; `source` names one, or `fusion`."""
        asked, query, decision = await self._asked(call)
        events = self.app.act(decision, query, call.caller)
        if wants_events(call, asked.stream):
            return await stream_events(events, decision.id)
        return answer(await _last(events))

    async def show_plan(self, call: Call) -> Answer:
        """Who would be asked what, without asking them."""
        _, query, decision = await self._asked(call)
        runtime, caller = call.runtime, call.caller
        # No account follows, so that the cost of a model's choice is booked here.
        if spent := spent_usd(decision, runtime.models.slots):
            caller.budget.settle(0.0, spent)
            if runtime.store is not None:
                await asyncio.to_thread(runtime.store.spend, decision, caller.key_id, spent)
        return answer(self.app.plan(decision, query).unlogged())

    async def _asked(self, call: Call) -> tuple[SearchBody, Query, Decision]:
        body = await read_body(call, _body)
        return body, *await self._decided(body, call.caller)

    async def _decided(self, body: SearchBody, caller: Caller) -> tuple[Query, Decision]:
        if not body.query.strip():
            raise Refused(422, "invalid_request_error", "query: the question is blank; say what you want to know")
        turns = tuple(Turn(turn.role, turn.text) for turn in body.turns)
        check_text((Turn("user", body.query), *turns), 422)
        if turns:
            turns += (Turn("user", body.query),)
        query = Query("" if turns else body.query, turns, session=body.session, tenant=caller.tenant or None)
        if body.fusion_sources and body.source != "fusion":
            problem = f'fusion_sources are asked with "source": "fusion", not with {body.source[:40]!r}'
            raise Refused(422, "invalid_request_error", problem)
        return query, await self.app.decide(AskRequest(query, body.source, body.fusion_sources), caller)

    async def list_sources(self, call: Call) -> Answer:
        """Which sources there are, and which could be configured."""
        router = await self.app.router(call.caller)
        sources = self.app.sources
        rows = [
            {
                "name": name,
                "configured": name in sources,
                "description": sources[name].description if name in sources else "",
                "fresh_s": self.app.desk.fresh_s(name),
            }
            for name in router.profile.routes
        ]
        return answer({"sources": rows})

    async def health(self, call: Call) -> Answer:
        """Whether each source can be asked, tried now."""
        router = await self.app.router(call.caller)
        with self.app.holding() as desk:
            health = await check_all(router.profile.routes, desk.sources)
        is_degraded = any(one.status == "error" for one in health.values())
        return answer({"status": "degraded" if is_degraded else "ok", "sources": health})

    async def logs(self, call: Call) -> Answer:
        """The latest questions and what became of them; `?limit=` of them."""
        limit = _limit(call.options.get("limit", str(LOG_USUAL)))
        searches = call.store.records(call.caller.tenant).searches
        rows = await asyncio.to_thread(lambda: [line(*one) for one in islice(wholes(searches(PROFILE)), limit)])
        return answer({"logs": rows})

    async def log_stats(self, call: Call) -> Answer:
        """Figures over all questions: how many, how quick, how often from the cache or from another source."""
        searches = call.store.records(call.caller.tenant).searches
        return answer(await asyncio.to_thread(lambda: stats(searches(PROFILE))))

    async def cache(self, call: Call) -> Answer:
        """How much is cached."""
        tenant = call.caller.tenant
        caches = {one.space: {"entries": await one.count(tenant), "most": one.most} for one in self._caches}
        return answer({"caches": caches, "fresh_s": FRESH_S})

    async def clear_cache(self, call: Call) -> Answer:
        """Forget what is cached."""
        return answer({"cleared": {one.space: await one.clear(call.caller.tenant) for one in self._caches}})

    @property
    def _caches(self) -> tuple[Cache, Cache]:
        return self.app.results, self.app.choices


async def _last(events: AsyncGenerator[Event, None]) -> SearchResult:
    *_, last = [event async for event in events]
    assert isinstance(last, SearchResult)  # noqa: S101 - the events always end with one
    return last


def _limit(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= LOG_MOST:
        return int(text)
    raise Refused(422, "invalid_request_error", f"limit {text[:20]!r}: a number from 1 to {LOG_MOST}")
