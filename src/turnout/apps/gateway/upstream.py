"""One exchange with one slot: opened over the network, or answered by the demonstration model on the spot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from turnout.core.query import Query
from turnout.models.demo import respond
from turnout.models.provider import ANTHROPIC_VERSION, PATHS, credential
from turnout.models.slot import Slot
from turnout.net.client import Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Origin

from .wire import Asked

# Headers of a client's that mean something to a provider. Everything else of the request is built, never copied.
PASSED = ("anthropic-version", "anthropic-beta", "openai-beta")


class Upstream(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self, idle_s: float, deadline: Deadline, /) -> AsyncIterator[bytes]: ...

    async def read(self, deadline: Deadline, idle_s: float, /) -> bytes: ...

    def close(self) -> None: ...


class Demo:
    """The demonstration model as an upstream."""

    status = 200

    def __init__(self, pieces: list[bytes], stream: bool) -> None:
        self.headers = {"content-type": "text/event-stream" if stream else "application/json"}
        self._pieces = pieces

    async def chunks(self, idle_s: float, deadline: Deadline) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def read(self, deadline: Deadline, idle_s: float) -> bytes:
        return b"".join(self._pieces)

    def close(self) -> None:
        """Nothing is open."""


def answered_here(slot: Slot, asked: Asked) -> Upstream:
    """What the demonstration model says."""
    return Demo(respond(asked.wire, slot.name, slot.id, last_words(asked.query), asked.stream), asked.stream)


def request_to(
    slot: Slot, origin: Origin, asked: Asked, headers: Mapping[str, str], added: Mapping[str, object]
) -> Request:
    """What a slot's provider is sent."""
    sent = {"content-type": "application/json", "accept": "text/event-stream" if asked.stream else "application/json"}
    sent |= {name: headers[name] for name in PASSED if name in headers}
    if asked.wire == "anthropic-messages":
        sent.setdefault("anthropic-version", ANTHROPIC_VERSION)
    key = credential(asked.wire, slot.provider, slot.key.reveal()) if slot.key is not None else None
    path, body = slot.path + PATHS[asked.wire], asked.body(slot.model, added)
    return Request(origin, path, body, headers=sent, credential=key, plain_http=slot.plain_http)


def last_words(query: Query) -> str:
    return next((turn.text for turn in reversed(query.turns) if turn.role == "user"), query.text)
