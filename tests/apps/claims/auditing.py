"""A pipeline with a scripted model, pages that are only said to be there, and a shelf of cards that tells every put."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from turnout import Query, load
from turnout.apps.caller import Budget, Caller
from turnout.apps.claims.audit import STEPS, Auditor, AuditOrder, StepResult, make_card
from turnout.apps.claims.card import Card
from turnout.apps.claims.event import ChatEvent
from turnout.apps.claims.pipeline import AuditPipeline, open_pipeline
from turnout.apps.claims.research import SEARCHES, FoundPage, Search
from turnout.apps.claims.settings import Reach
from turnout.apps.claims.verify import PageReader
from turnout.apps.ledger import Ledger
from turnout.models.ask import Models
from turnout.models.slot import SlotFile, Slots, make_slot
from turnout.net.client import Client
from turnout.net.public import PublicWeb
from turnout.runtime.runtime import Runtime
from turnout.store import open_store
from turnout.testing import ScriptedProvider
from turnout.testing.audit import AgentScript, PageTransport

CLAIM = "Matthew copied Mark."
ANYONE = Caller("", "", frozenset(("ask",)), Budget())
PRICES = "prices = { input_usd = 1000.0, output_usd = 1000.0 }"


class CardFile:
    """Cards as lines of a file, one for each put: what was put twice is there twice."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[Card]:
        if not self.path.exists():
            return []
        return [msgspec.json.decode(line, type=Card) for line in self.path.read_bytes().splitlines()]

    def get(self, ident: str) -> Card | None:
        return next((card for card in self.lines if card.id == ident), None)

    def put(self, card: Card) -> Card:
        file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, file)
            os.write(file, msgspec.json.encode(card) + b"\n")
        return card


class World(NamedTuple):
    pipeline: AuditPipeline
    runtime: Runtime
    cards: CardFile
    script: AgentScript
    provider: ScriptedProvider | None
    web: PageTransport

    async def audit(self, claim: str = CLAIM, caller: Caller = ANYONE, session: str = "s", **more: Any) -> Any:
        ident = await self.pipeline.start(claim, session_id=session, caller=caller, **more)
        return await self.pipeline.result(ident)

    async def heard(self, session: str = "s", after: int = 0, tenant: str = "") -> list[ChatEvent]:
        return [event async for event in self.pipeline.events(session, after, tenant=tenant)]


def search_in(pages: Mapping[str, str], asked: list[str] | None = None) -> Search:
    """Finds every page, whatever is searched."""

    async def search(query: str) -> list[FoundPage]:
        if asked is not None:
            asked.append(query)
        return [FoundPage(url, "A page", "a snippet") for url in pages]

    return search


async def straight(auditor: Auditor) -> Card | StepResult:
    """The steps one after the other, with nothing that survives: the card, or the step that failed."""
    order, done = AuditOrder("1", CLAIM), list[StepResult]()
    decision = load("claims", config="").route_sync(Query(CLAIM, declared="novel_claim"))
    for step in STEPS:
        with Ledger(None, auditor.models.slots).open(decision, ANYONE) as account:
            done.append(await auditor.run(step, order, done, account))
        if done[-1].failed:
            return done[-1]
    return make_card(order, done)


@contextlib.asynccontextmanager
async def scripted(script: AgentScript) -> AsyncIterator[Models]:
    """The script's models."""
    async with ScriptedProvider(script) as provider:
        file = SlotFile("fake/auditor", base_url=provider.base_url, private=True)
        slots = Slots({"main": make_slot("main", file)})
        models = Models(slots, Client(slots.egress))
        yield models
        await models.client.close()


@contextlib.asynccontextmanager
async def auditing(
    folder: Path,
    script: AgentScript | None = None,
    *,
    pages: Mapping[str, Any] | None = None,
    search: Search | None = None,
    searches: int = SEARCHES,
    demo: bool = False,
    url: str = "",
    model: str = "",
) -> AsyncIterator[World]:
    script, web = script or AgentScript(), PageTransport(pages or {})
    reader = PageReader(PublicWeb(web)) if pages is not None else None
    async with contextlib.AsyncExitStack() as stack:
        provider = None if demo else await stack.enter_async_context(ScriptedProvider(script))
        config = folder / "turnout.toml"
        slot = f'[models.main]\nmodel = "fake/auditor"\nprivate = true\n{model}\nbase_url = '
        slot = "" if provider is None else f'{slot}"{provider.base_url}"\n'
        config.write_text(slot, encoding="utf-8")
        store = open_store(url or f"sqlite:///{folder}/turnout.db", config=str(config))
        runtime = Runtime(store, profile="claims", config=str(config))
        stack.push_async_callback(runtime.close)
        cards = CardFile(folder / "cards.jsonl")
        reach = Reach(search, reader, searches)
        pipeline = await open_pipeline(runtime, cards, reach)
        stack.push_async_callback(pipeline.close)
        yield World(pipeline, runtime, cards, script, provider, web)
