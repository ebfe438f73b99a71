"""A chat over audited claims: the card that answers, a synthesis of cards that is marked as one, or a new audit.

Each question has one account and one row in the log, with the candidates, the chosen cards and the reasons. HTTP, the
WebSocket, chat clients and the terminal all show the same stream of events. An unsure or failed router means a new
audit, and the log says which.
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
from turnout.apps.request import invalid
from turnout.core.decision import Decision, new_id
from turnout.core.errors import Refused, StoreError
from turnout.core.profile import Profile
from turnout.core.query import Query, Turn
from turnout.core.verdict import Reason
from turnout.runtime.runtime import Runtime
from turnout.store.row import asked_text

from .analyzer import StandaloneQuestion, analyze, cut_history
from .answer import AuditEnded, AuditStarted, ClaimAnswer, reasoning
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
from .local import ClaimChoice, decide_locally, form_of
from .pipeline import AuditFailed, AuditPipeline, open_pipeline
from .router_agent import AgentQuestion, RouterAgent, tell_candidate
from .routes import ClaimRoutes
from .session import ShownCards
from .synthesis import ASKED_BACK, Synthesis, synthesize
from .verdict import without_demo

log = logging.getLogger("turnout.claims")

# The specification's limits of a question and of the conversation before it.
LONGEST, MOST_TURNS = 2_000, 50
# References to something shown, even in the middle of a conversation: an audit of such a question would audit "that".
_POINTS_TO_SHOWN = frozenset(("deictic", "continuation", "earlier", "comparative"))


class ClaimQuestion(NamedTuple):
    text: str
    turns: tuple[Turn, ...] = ()
    """The conversation before it, oldest first."""
    session: str = ""
    """Empty: a new session."""


class RoutedQuestion(NamedTuple):
    """A question whose mode is decided."""

    decision: Decision
    choice: ClaimChoice
    fallback: str = ""
    """Why the router agent failed, if it did."""


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
        """`keeps_events`: clients can follow sessions; without it, the audit pipeline is opened only for an audit.
        `audits`: a new claim is audited; without it, the answer only says that it is new."""
        self.runtime = runtime
        self.keeps_events = keeps_events
        self.audits = audits
        self.shown = ShownCards(runtime.store)
        self._library = library
        self._pipeline = pipeline
        self._opening_library = asyncio.Lock()
        self._opening: asyncio.Task[AuditPipeline] | None = None
        """One task for all requests that need the pipeline: a client that leaves does not cancel it half-way."""
        self._tasks: set[asyncio.Task[Any]] = set()
        runtime.on_open.append(self.open)
        runtime.on_close.append(self.close)
        runtime.chat_apps.update(dict.fromkeys(self.models, self))
        self.routes = ClaimRoutes(self).routes

    # --- the library and the pipeline, opened when first needed

    async def library(self) -> ClaimLibrary:
        async with self._opening_library:
            if self._library is None:
                if self.runtime.store is None:
                    raise Refused(503, "not_available", "claims need a store: start the server with one")
                self._library = await asyncio.to_thread(open_library, self.runtime)
            return self._library

    async def pipeline(self) -> AuditPipeline:
        """Raises Refused if this server cannot run audits."""
        if self._pipeline is not None:
            return self._pipeline
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_pipeline())
        try:
            return await asyncio.shield(self._opening)
        except StoreError:
            self._opening = None  # the database may come back
            raise

    async def _open_pipeline(self) -> AuditPipeline:
        pipeline = await open_pipeline(self.runtime, await self.library())
        await pipeline.resume()
        self._pipeline = pipeline
        return pipeline

    async def open(self) -> None:
        """Continue interrupted audits when a server starts. Without any card, nothing is opened."""
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
            self._opening.exception()  # the requests that waited for it have raised it
        if self._pipeline is not None:
            await self._pipeline.close()
        if self._library is not None:
            await asyncio.to_thread(self._library.close)

    # --- asking

    async def answer(self, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """The last question of a chat client's conversation, answered as text. It waits for an audit and reports its
        progress."""
        turns = query.turns
        last = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=0)
        asked = ClaimQuestion(asked_text(query), tuple(turns[:last])[-MOST_TURNS:], query.session or "")
        text = ""
        async with aclosing(self.follow(asked, caller)) as events:
            async for event in events:
                if isinstance(event, AgentCompleted):
                    text += (line := f"{event.agent}: {event.said}\n")
                    yield Token(line)
                elif isinstance(event, AuditEnded):
                    yield Token(f"\n{event.result}")
                    yield Done(f"{text}\n{event.result}")
                else:
                    yield event

    def act(self, decision: Decision, query: Query, caller: Caller) -> AsyncGenerator[Event, None]:
        """`decision` is ignored: the mode depends on the cards, so it is decided while answering."""
        return self.answer(query, caller)

    async def follow(self, asked: ClaimQuestion, caller: Caller) -> AsyncGenerator[Event, None]:
        """The events of a question and of the audit that it may start, up to the audit's `AuditEnded`."""
        seen = 0
        async with aclosing(self.ask(asked, caller)) as events:
            async for event in events:
                seen = event.sequence if isinstance(event, ChatEvent) else seen
                yield event
        assert isinstance(event, ClaimAnswer)  # noqa: S101 - asking ends with one
        if not isinstance(event.response, AuditStarted) or not event.response.pipeline_id:
            return
        pipeline = await self.pipeline()
        # Only later events: the session may have had other audits.
        async with aclosing(pipeline.events(event.session_id, seen, tenant=caller.tenant)) as progress:
            async for step in progress:
                yield step
        yield AuditEnded(await pipeline.result(event.response.pipeline_id))

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
            models, signals, slot = self.runtime.models, signals_in(profile), None
            standalone = StandaloneQuestion(asked.text)
            if form_of(asked.text) != "greeting":  # no model is needed to answer a greeting
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
            account.extra = _note(asked, standalone, routed.choice)
            response: Card | Synthesis | AuditStarted
            if routed.choice.mode == "contextual":
                yield await tell(ContextualResponseStarted())
                response = await self._synthesize(routed.choice, standalone.text, signals(asked.text), account, library)
                cards = tuple(one.id for one in response.source_cards)
                yield await tell(ContextualResponseCompleted(source_cards=cards))
            elif routed.choice.mode == "exact_match":
                card = await asyncio.to_thread(library.get, routed.choice.cards[0])
                if card is None:
                    raise Refused(503, "not_available", "the card that answers was hidden a moment ago: ask again")
                response = card
            else:
                response = await self._audit(asked, standalone, routed.choice, caller, account)
            self.shown.add(caller.tenant, asked.session, routed.choice.cards)
            account.ended = "answered"
            why = reasoning(account.decision)
            yield ClaimAnswer(routed.choice.mode, response, why, account.decision.id, asked.session)

    async def _tell(self, session: str, tenant: str, event: ChatEvent) -> ChatEvent:
        """Store an event for clients that follow the session, if that is possible."""
        if not self.keeps_events:
            return event
        try:
            return await (await self.pipeline()).emit(session, event, tenant=tenant)
        except Refused:
            return event  # without audits, cards still answer
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
    ) -> RoutedQuestion:
        decision = None
        if agent is None:
            takes_demo = self.runtime.models.slots.demo
            choice = await asyncio.to_thread(_choose_locally, asked.text, standalone, shown, library, takes_demo)
        else:
            decision = await with_agent(profile, agent).route(query)
            if agent.refused is not None:
                raise agent.refused
            candidates = tuple(agent.seen.values())
            fault = next((step.fault for step in decision.steps if step.fault is not None), None)
            if fault is not None:
                why = Reason("router.fallback", f"the router failed, and unsure means a new claim: {fault.detail}")
                decision = replace(decision, remarks=(*decision.remarks, why), _reasons=None)
                return RoutedQuestion(decision, _novel(decision, candidates), fault.detail)
            choice = agent.choice or _novel(decision, candidates)
            if decision.route != choice.mode:  # the gate did not accept the verdict, or the router is switched off
                choice = _novel(decision, choice.candidates)
        choice = _ask_back(choice, asked, standalone, shown)
        if decision is None or choice.asks_back:
            decision = await with_choice(profile, choice).route(query)
        return RoutedQuestion(decision, choice)

    # --- answering

    async def _synthesize(
        self, choice: ClaimChoice, question: str, signals: frozenset[str], account: Account, library: ClaimLibrary
    ) -> Synthesis:
        if choice.asks_back:
            return ASKED_BACK[choice.asks_back]
        found = [await asyncio.to_thread(library.get, ident) for ident in choice.cards]
        cards = [card for card in found if card is not None]
        return await synthesize(question, cards, signals, account, self.runtime.models)

    async def _audit(
        self,
        asked: ClaimQuestion,
        standalone: StandaloneQuestion,
        choice: ClaimChoice,
        caller: Caller,
        account: Account,
    ) -> AuditStarted:
        if not self.audits:
            return AuditStarted("", asked.session)
        pipeline = await self.pipeline()
        context = choice.context or "\n".join(f"{turn.role}: {turn.text}" for turn in cut_history(asked.turns))
        claim = choice.claim_text or standalone.text
        ident = await pipeline.start(
            claim, context, session_id=asked.session, caller=caller, decision_id=account.decision.id
        )
        account.extra["pipeline_id"] = ident
        self._later(self._remember(pipeline, ident, caller.tenant, asked.session))
        return AuditStarted(ident, asked.session)

    async def _remember(self, pipeline: AuditPipeline, ident: str, tenant: str, session: str) -> None:
        """Add the card of an audit to those its session has seen."""
        if not isinstance(await pipeline.result(ident), AuditFailed):
            self.shown.add(tenant, session, (ident,))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Without this the event loop would log an exception that was never retrieved.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _check(asked: ClaimQuestion, caller: Caller) -> None:
    caller.check_profile(PROFILE)
    if not asked.text.strip():
        raise invalid("question: it is blank; say what you want to know")
    if len(asked.text) > LONGEST:
        raise invalid(f"question: it has {len(asked.text):,} characters, at most {LONGEST:,} are taken; shorten it")


def _choose_locally(
    question: str, standalone: StandaloneQuestion, shown: tuple[str, ...], library: ClaimLibrary, takes_demo: bool
) -> ClaimChoice:
    """The choice by the cards alone. Blocking."""
    if standalone.is_alternative:
        why = Reason("cards.alternative", "it proposes another explanation of what was said: a claim of its own")
        found = tuple(library.search(standalone.text))
        return ClaimChoice("novel_claim", 1.0, (why,), (), type_of(standalone.text)[0], found)
    # A question that points to a card that was shown is read as it was asked: the card says what is meant.
    text = question if standalone.points and shown else standalone.text
    return without_demo(decide_locally(text, library, shown), library, takes_demo)


def _ask_back(
    choice: ClaimChoice, asked: ClaimQuestion, standalone: StandaloneQuestion, shown: tuple[str, ...]
) -> ClaimChoice:
    """Ask what is meant if a question would be audited that points to something never shown."""
    if choice.mode != "novel_claim" or not standalone.points or shown or standalone.is_alternative:
        return choice
    if any(turn.role == "user" for turn in asked.turns) and standalone.points not in _POINTS_TO_SHOWN:
        return choice
    why = Reason("cards.unclear", "it points to something, and no card was shown before it: what is meant is asked")
    return replace(choice, mode="contextual", cards=(), reasons=(why, *choice.reasons), asks_back="unclear")


def _novel(decision: Decision, candidates: tuple[Any, ...]) -> ClaimChoice:
    return ClaimChoice("novel_claim", decision.confidence, decision.reasons, candidates=candidates)


def _note(asked: ClaimQuestion, standalone: StandaloneQuestion, choice: ClaimChoice) -> dict[str, object]:
    """What the log keeps beside the decision: the columns of `router_decisions`."""
    return {
        "reformulated_question": standalone.text,
        "conversation_context": [{"role": turn.role, "content": turn.text} for turn in cut_history(asked.turns)],
        "claim_cards_referenced": list(choice.cards),
        "search_candidates": [tell_candidate(one) for one in choice.candidates],
        "claim_type": choice.claim_type,
    }
