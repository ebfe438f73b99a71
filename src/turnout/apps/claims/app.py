"""A chat over audited claims: the card that answers, a synthesis of cards that is marked as one, or a new audit.

A question has one account and one row in the log, with what was searched, which cards it is about and why. What HTTP, a
WebSocket, a chat client and the terminal show is the same stream of events. Unsure means a new audit; a router that
fails does, too, and says so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from turnout.apps.app import AppCommand
from turnout.apps.caller import Caller
from turnout.apps.event import Done, Event, Token
from turnout.apps.ledger import Account, Ledger
from turnout.core.decision import Decision, new_id
from turnout.core.errors import Refused, StoreError
from turnout.core.profile import Profile
from turnout.core.query import Query, Turn
from turnout.core.verdict import Reason
from turnout.runtime.runtime import Runtime
from turnout.store.row import asked_text

from .analyzer import StandaloneQuestion, analyze, cut_history
from .answer import AuditStarted, ClaimAnswer, reasoning, tell_audited
from .card import Card
from .choose import PROFILE, agent_seconds, router_slot, signals_in, undecided, with_agent, with_choice
from .event import (
    AgentCompleted,
    ChatEvent,
    ContextAnalysisStarted,
    ContextualResponseCompleted,
    ContextualResponseStarted,
    RouterFallback,
    RoutingCompleted,
    RoutingStarted,
)
from .kind import type_of
from .library import ClaimLibrary, open_library
from .local import decide_locally
from .pipeline import AuditFailed, AuditPipeline, open_pipeline
from .router_agent import AgentQuestion, RouterAgent, tell_candidate
from .routes import ClaimRoutes
from .session import ShownCards
from .synthesis import UNCLEAR, Synthesis, synthesize
from .verdict import ClaimChoice, from_local

log = logging.getLogger("turnout.claims")

# The specification's limits of a question and of the conversation before it.
LONGEST, MOST_TURNS = 2_000, 50
# What asks about something shown even in the middle of a conversation: to audit it would audit "that".
_ASKS_BACK = frozenset(("deictic", "continuation", "earlier", "comparative"))


class ClaimQuestion(NamedTuple):
    text: str
    turns: tuple[Turn, ...] = ()
    """What was said before it, oldest first."""
    session: str = ""
    """Empty: a new one."""


class Routed(NamedTuple):
    """A question whose mode is known."""

    decision: Decision
    choice: ClaimChoice
    standalone: StandaloneQuestion
    fallback: str = ""
    """Why the router did not decide, if it failed."""


class ClaimsApp:
    name: ClassVar = "claims"
    commands: ClassVar[Sequence[AppCommand]] = ()
    models: ClassVar[Sequence[str]] = ("claims",)

    def __init__(
        self,
        runtime: Runtime,
        library: ClaimLibrary | None = None,
        pipeline: AuditPipeline | None = None,
        *,
        keeps_events: bool = True,
        audits: bool = True,
    ) -> None:
        """`keeps_events`: sessions can be followed; without it, nothing is opened that only an audit needs. `audits`:
        a new claim is audited, and not only said to be one."""
        self.runtime = runtime
        self.keeps_events = keeps_events
        self.audits = audits
        self.shown = ShownCards(runtime.store)
        self._library = library
        self._pipeline = pipeline
        self._opening_library = asyncio.Lock()
        self._opening: asyncio.Task[AuditPipeline] | None = None
        """One for all who wait for the pipeline: a client that leaves does not cut it off half-way."""
        self._tasks: set[asyncio.Task[Any]] = set()
        runtime.on_open.append(self.open)
        runtime.on_close.append(self.close)
        runtime.answering.update(dict.fromkeys(self.models, self))
        self.routes = ClaimRoutes(self).routes

    # --- what is opened when it is first needed

    async def library(self) -> ClaimLibrary:
        async with self._opening_library:
            if self._library is None:
                if self.runtime.store is None:
                    raise Refused(503, "not_available", "claims need a store: start the server with one")
                self._library = await asyncio.to_thread(open_library, self.runtime)
            return self._library

    async def pipeline(self) -> AuditPipeline:
        """Raises Refused where audits cannot be made here."""
        if self._pipeline is not None:
            return self._pipeline
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_pipeline())
        try:
            return await asyncio.shield(self._opening)
        except StoreError:
            self._opening = None  # a database that is away may come back
            raise

    async def _open_pipeline(self) -> AuditPipeline:
        pipeline = await open_pipeline(self.runtime, await self.library())
        await pipeline.resume()
        self._pipeline = pipeline
        return pipeline

    async def open(self) -> None:
        """As a server starts: audits that were cut off go on. Where there are no claims, nothing is opened."""
        store = self.runtime.store
        if store is None:
            return
        try:
            if await asyncio.to_thread(store.cards.count):
                await self.pipeline()
        except (Refused, StoreError) as error:
            log.warning("audits that were cut off stay so: %s", error)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._opening is not None:
            await asyncio.wait((self._opening,))
            self._opening.exception()  # whoever waited for it was told
        if self._pipeline is not None:
            await self._pipeline.close()
        if self._library is not None:
            await asyncio.to_thread(self._library.close)

    # --- asking

    async def answer(self, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """As a chat client has it done: the conversation's last question. An audit is waited for, and told of as it
        goes."""
        turns = query.turns
        last = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=0)
        asked = ClaimQuestion(asked_text(query), tuple(turns[:last])[-MOST_TURNS:], query.session or "")
        async with aclosing(self.ask(asked, caller)) as events:
            async for event in events:
                yield event
        assert isinstance(event, ClaimAnswer)  # noqa: S101 - asking ends with one
        if not isinstance(event.response, AuditStarted):
            return
        pipeline = await self.pipeline()
        text = ""
        async with aclosing(pipeline.events(event.session_id, tenant=caller.tenant)) as happening:
            async for told in happening:
                if isinstance(told, AgentCompleted):
                    text += (line := f"{told.agent}: {told.said}\n")
                    yield Token(line)
        rest = tell_audited(await pipeline.result(event.response.pipeline_id))
        yield Token(f"\n{rest}")
        yield Done(f"{text}\n{rest}")

    async def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """A mode depends on cards, so that a question is decided where it is answered: `decision` says nothing here."""
        async with aclosing(self.answer(query, caller)) as events:
            async for event in events:
                yield event

    async def ask(self, asked: ClaimQuestion, caller: Caller) -> AsyncGenerator[Event, None]:
        """Decide and answer; the last event is a `ClaimAnswer`."""
        _check(asked, caller)
        is_new, asked = not asked.session, asked if asked.session else asked._replace(session=new_id())
        library = (await self.library()).of(caller.tenant)
        profile = (await self.runtime.find_router(PROFILE)).profile
        turns = (*asked.turns, Turn("user", asked.text)) if asked.turns else ()
        query = Query("" if turns else asked.text, turns, session=asked.session, tenant=caller.tenant or None)
        tell = partial(self._tell, asked.session, caller.tenant)
        began = time.monotonic()
        with Ledger(self.runtime.store, self.runtime.models.slots).open(undecided(profile, query), caller) as account:
            yield await tell(ContextAnalysisStarted())
            models, signals = self.runtime.models, signals_in(profile)
            slot = router_slot(profile, models.slots)
            standalone = await analyze(
                asked.text, asked.turns, account, models, slot, lambda text: "alternative" in signals(text)
            )
            shown: tuple[str, ...] = ()
            if not is_new or asked.turns:
                shown = await asyncio.to_thread(self.shown.find, caller.tenant, asked.session, asked.turns, library)
            yield await tell(RoutingStarted(question=standalone.text))
            agent = None
            if slot is not None:
                question = AgentQuestion(
                    standalone.text, asked.turns, shown, asked.session, is_alternative=standalone.is_alternative
                )
                agent = RouterAgent(question, library, models, slot, account, agent_seconds(profile))
            routed = await self._route(profile, query, asked, standalone, shown, agent, library)
            account.decision = replace(routed.decision, id=account.decision.id)
            if routed.fallback:
                log.warning("the router of claims failed, and the question is a new claim: %s", routed.fallback)
                account.fallback = f"router: {routed.fallback}"
                yield await tell(RouterFallback(reason=routed.fallback))
            elapsed = round((time.monotonic() - began) * 1000, 3)
            yield await tell(RoutingCompleted(mode=routed.choice.mode, response_time_ms=elapsed))
            account.extra = _note(asked, routed)
            response: Card | Synthesis | AuditStarted
            if routed.choice.mode == "contextual":
                yield await tell(ContextualResponseStarted())
                response = await self._synthesize(routed, signals(asked.text), account, library)
                cards = tuple(one.id for one in response.source_cards)
                yield await tell(ContextualResponseCompleted(source_cards=cards))
            elif routed.choice.mode == "exact_match":
                found = await asyncio.to_thread(library.get, routed.choice.cards[0])
                if found is None:
                    raise Refused(503, "not_available", "the card that answers was hidden a moment ago: ask again")
                response = found
            else:
                response = await self._audit(asked, routed, caller, account)
            self.shown.add(caller.tenant, asked.session, routed.choice.cards)
            account.ended = "answered"
            told = reasoning(account.decision)
            yield ClaimAnswer(routed.choice.mode, response, told, account.decision.id, asked.session)

    async def _tell(self, session: str, tenant: str, event: ChatEvent) -> ChatEvent:
        """Keep an event for the followers of the session, where that can be done."""
        if not self.keeps_events:
            return event
        try:
            return await (await self.pipeline()).emit(session, event, tenant=tenant)
        except Refused:
            return event  # cards are answered without audits, too
        except StoreError as error:
            log.warning("the events of a session cannot be kept: %s", error)
            return event

    # --- deciding

    async def _route(
        self,
        profile: Profile,
        query: Query,
        asked: ClaimQuestion,
        standalone: StandaloneQuestion,
        shown: tuple[str, ...],
        agent: RouterAgent | None,
        library: ClaimLibrary,
    ) -> Routed:
        if agent is None:
            takes_demo = self.runtime.models.slots.demo
            choice = await asyncio.to_thread(_choose_locally, asked.text, standalone, shown, library, takes_demo)
            choice = _ask_back(choice, asked, standalone, shown)
            return Routed(await with_choice(profile, choice).route(query), choice, standalone)
        decision = await with_agent(profile, agent).route(query)
        if agent.refused is not None:
            raise agent.refused
        candidates = tuple(agent.seen.values())
        fault = next((step.fault for step in decision.steps if step.fault is not None), None)
        if fault is not None:
            said = Reason("router.fallback", f"the router failed, and unsure means a new claim: {fault.detail}")
            decision = replace(decision, remarks=(*decision.remarks, said), _reasons=None)
            return Routed(decision, _novel(decision, candidates), standalone, fault.detail)
        choice = agent.choice or _novel(decision, candidates)
        if decision.route != choice.mode:  # its gate held the verdict back, or the router is switched off
            choice = _novel(decision, choice.candidates)
        unclear = _ask_back(choice, asked, standalone, shown)
        if unclear.is_unclear:
            return Routed(await with_choice(profile, unclear).route(query), unclear, standalone)
        return Routed(decision, choice, standalone)

    # --- answering

    async def _synthesize(
        self, routed: Routed, signals: frozenset[str], account: Account, library: ClaimLibrary
    ) -> Synthesis:
        if routed.choice.is_unclear:
            return UNCLEAR
        found = [await asyncio.to_thread(library.get, ident) for ident in routed.choice.cards]
        cards = [card for card in found if card is not None]
        return await synthesize(routed.standalone.text, cards, signals, account, self.runtime.models)

    async def _audit(self, asked: ClaimQuestion, routed: Routed, caller: Caller, account: Account) -> AuditStarted:
        if not self.audits:
            return AuditStarted("", asked.session)
        pipeline, choice = await self.pipeline(), routed.choice
        context = choice.context or "\n".join(f"{turn.role}: {turn.text}" for turn in cut_history(asked.turns))
        claim = choice.claim_text or routed.standalone.text
        ident = await pipeline.start(
            claim, context, session_id=asked.session, caller=caller, decision_id=account.decision.id
        )
        account.extra["pipeline_id"] = ident
        self._later(self._remember(pipeline, ident, caller.tenant, asked.session))
        return AuditStarted(ident, asked.session)

    async def _remember(self, pipeline: AuditPipeline, ident: str, tenant: str, session: str) -> None:
        """A card that was made for a session is one that it has seen."""
        if not isinstance(await pipeline.result(ident), AuditFailed):
            self.shown.add(tenant, session, (ident,))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Asked for, so that the event loop does not tell of an error that nobody waits for.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _check(asked: ClaimQuestion, caller: Caller) -> None:
    if caller.profiles is not None and PROFILE not in caller.profiles:
        raise Refused(403, "permission_error", f"this key may not use the profile {PROFILE!r}")
    if not asked.text.strip():
        raise Refused(422, "invalid_request_error", "question: it is blank; say what you want to know")
    if len(asked.text) > LONGEST:
        said = f"question: it has {len(asked.text):,} characters, at most {LONGEST:,} are taken; shorten it"
        raise Refused(422, "invalid_request_error", said)


def _choose_locally(
    question: str, standalone: StandaloneQuestion, shown: Sequence[str], library: ClaimLibrary, takes_demo: bool
) -> ClaimChoice:
    """What the cards say. Blocking."""
    if standalone.is_alternative:
        said = Reason("cards.alternative", "it proposes another explanation of what was said: a claim of its own")
        found = tuple(library.search(standalone.text))
        return ClaimChoice("novel_claim", 1.0, (said,), (), type_of(standalone.text)[0], found)
    # What points to a card that was shown is asked as it was put: the card says what is meant.
    text = question if standalone.points and shown else standalone.text
    return from_local(decide_locally(text, library, shown), library, takes_demo=takes_demo)


def _ask_back(
    choice: ClaimChoice, asked: ClaimQuestion, standalone: StandaloneQuestion, shown: Sequence[str]
) -> ClaimChoice:
    """A question that points to what was never shown is no claim to audit: then it is asked what is meant."""
    if choice.mode != "novel_claim" or not standalone.points or shown or standalone.is_alternative:
        return choice
    if any(turn.role == "user" for turn in asked.turns) and standalone.points not in _ASKS_BACK:
        return choice
    said = Reason("cards.unclear", "it points to something, and no card was shown before it: what is meant is asked")
    return replace(choice, mode="contextual", cards=(), reasons=(said, *choice.reasons), is_unclear=True)


def _novel(decision: Decision, candidates: tuple[Any, ...]) -> ClaimChoice:
    return ClaimChoice("novel_claim", decision.confidence, decision.reasons, candidates=candidates)


def _note(asked: ClaimQuestion, routed: Routed) -> dict[str, object]:
    """What the log keeps beside the decision: the columns of `router_decisions`."""
    choice = routed.choice
    return {
        "reformulated_question": routed.standalone.text,
        "conversation_context": [{"role": turn.role, "content": turn.text} for turn in cut_history(asked.turns)],
        "claim_cards_referenced": list(choice.cards),
        "search_candidates": [tell_candidate(one) for one in choice.candidates],
        "claim_type": choice.claim_type,
    }
