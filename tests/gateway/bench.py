"""A gateway without its server: four scripted providers, a store, and requests handed to it directly."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toml_router import unlearn, unlearnt
from turnout import Router, load
from turnout.apps.caller import Budget, Caller
from turnout.apps.gateway.app import Answer, Gateway
from turnout.models.ask import Models
from turnout.models.provider import WIRES, Wire
from turnout.models.slot import Prices, SlotFile, Slots, make_slot
from turnout.net.client import Client
from turnout.net.egress import Egress
from turnout.store import Outcome, Store, open_store
from turnout.testing import ScriptedProvider

TIERS = ("simple", "medium", "complex", "reasoning")
PRICES = dict(zip(TIERS, (1.0, 2.0, 4.0, 8.0), strict=True))
ANYONE = Caller("", "", frozenset(("ask",)), Budget())
HELLO = "hello"
PROOF = "Prove the theorem formally, step by step, and derive the proof."


def caller(**fields: Any) -> Caller:
    return Caller(**({"key_id": "k", "tenant": "", "scopes": frozenset(("ask",)), "budget": Budget()} | fields))


class GatewayResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    decision: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def slot(self) -> str:
        return self.headers["x-turnout-slot"]


class Bench:
    def __init__(self, gateway: Gateway, providers: Mapping[str, ScriptedProvider], store: Store, file: Path) -> None:
        self.gateway = gateway
        self.providers = providers
        self.store = store
        self.file = file

    async def ask(
        self,
        model: str = "auto",
        content: Any = HELLO,
        wire: Wire = "openai-chat",
        who: Caller = ANYONE,
        **more: Any,
    ) -> GatewayResponse:
        """One request, its answer read to the end. `content` is the user's message, or a list of messages."""
        return await read(await self.gateway.handle(wire, request(model, content, wire, **more), who, {}))

    @property
    def asked(self) -> list[str]:
        """The tiers that were asked, in the order in which they were."""
        found = [(one.at, tier) for tier in TIERS for one in self.providers[tier].requests]
        return [tier for _, tier in sorted(found)]

    def forget(self) -> None:
        for provider in self.providers.values():
            provider._requests.clear()
        self.gateway.models.breakers.clear()

    def outcome(self, told: GatewayResponse | str, tenant: str = "") -> Outcome:
        assert self.store.flush(5.0)
        found = self.store.records(tenant).outcome(told if isinstance(told, str) else told.decision)
        assert found is not None
        return found

    def rows(self) -> tuple[int, int]:
        assert self.store.flush(5.0)
        with contextlib.closing(sqlite3.connect(self.file)) as database:
            counts = [
                database.execute(f"select count(*), count(distinct {column}) from {table}").fetchone()  # noqa: S608
                for table, column in (("decisions", "id"), ("outcomes", "decision_id"))
            ]
        assert all(count == distinct for count, distinct in counts)
        return counts[0][0], counts[1][0]


def request(model: str, content: Any, wire: Wire, **more: Any) -> bytes:
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    field = "input" if wire == "openai-responses" else "messages"
    limit = {"max_tokens": 64} if wire == "anthropic-messages" else {}
    return msgspec.json.encode({"model": model, field: messages} | limit | more)


async def read(answer: Answer) -> GatewayResponse:
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    body = answer.body
    if not isinstance(body, bytes):
        async with contextlib.aclosing(body):
            body = b"".join([piece async for piece in body])
    return GatewayResponse(answer.status, headers, body, headers.get("x-turnout-decision", ""))


@cache
def local_router() -> Router:
    """The usual one, which asks no model and is therefore the same for every bench."""
    return unlearnt("tiers")


@contextlib.asynccontextmanager
async def bench_of(
    folder: Path, profile: str | None = None, *, without: tuple[str, ...] = (), **more: Mapping[str, Any]
) -> AsyncIterator[Bench]:
    """`more` is by tier what its slot has beside the usual. Models are asked in doubt where a profile is named."""
    async with contextlib.AsyncExitStack() as stack:
        providers = {tier: await stack.enter_async_context(ScriptedProvider()) for tier in TIERS}
        slots = {}
        for tier, provider in providers.items():
            price = PRICES[tier]
            usual: dict[str, Any] = {
                "model": f"{tier}-co/{tier}-model",
                "base_url": provider.base_url,
                "wires": WIRES,
                "prices": Prices(price, price * 5, price / 10),
            }
            slots[tier] = make_slot(tier, SlotFile(**(usual | more.get(tier, {}))))
        slots = {name: one for name, one in slots.items() if name not in without}
        if "classifier" in more:
            slots["classifier"] = make_slot("classifier", SlotFile(**more["classifier"]))
        held = Slots(slots)
        client = Client(Egress(held.origins))
        stack.push_async_callback(client.close)
        models = Models(held, client)
        file = folder / "turnout.db"
        store = stack.enter_context(open_store(str(file)))
        router: Router = local_router() if profile is None else unlearn(load(profile, models=models))
        yield Bench(Gateway(router, models, store), providers, store, file)
