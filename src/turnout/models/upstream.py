"""One exchange with one slot: opened over the network, or answered by the demonstration model on the spot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from turnout.net.client import WHOLE_BYTES, Client, Request
from turnout.net.deadline import Deadline

from .demo import respond
from .provider import ANTHROPIC_VERSION, PATHS, credential
from .slot import Slot
from .wire.value import ModelRequest

# Headers of a client's that mean something to a provider. Everything else of the request is built, never copied.
PASSED = ("anthropic-version", "anthropic-beta", "openai-beta")


class Upstream(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self, idle_s: float, deadline: Deadline, /) -> AsyncIterator[bytes]: ...

    async def read(self, deadline: Deadline, idle_s: float, limit: int, /) -> bytes: ...

    def close(self) -> None: ...


class DemoUpstream:
    """The demonstration model as an upstream."""

    status = 200

    def __init__(self, pieces: list[bytes], stream: bool) -> None:
        self.headers = {"content-type": "text/event-stream" if stream else "application/json"}
        self._pieces = pieces

    async def chunks(self, idle_s: float, deadline: Deadline) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def read(self, deadline: Deadline, idle_s: float, limit: int = WHOLE_BYTES) -> bytes:
        return b"".join(self._pieces)

    def close(self) -> None:
        """Nothing is open."""


async def open_upstream(
    client: Client,
    slot: Slot,
    request: ModelRequest,
    headers: Mapping[str, str],
    added: Mapping[str, object],
    wait_s: float,
) -> Upstream:
    """Send a request to a slot's provider, with the headers of a client's that it may see; wait for its beginning."""
    wire, stream = request.wire, request.stream
    if slot.origin is None:
        return DemoUpstream(respond(wire, slot.name, slot.id, request.last_words, stream), stream)
    sent = {"content-type": "application/json", "accept": "text/event-stream" if stream else "application/json"}
    sent |= {name: headers[name] for name in PASSED if name in headers}
    if wire == "anthropic-messages":
        sent.setdefault("anthropic-version", ANTHROPIC_VERSION)
    key = credential(wire, slot.provider, slot.key.reveal()) if slot.key is not None else None
    path, body = slot.path + PATHS[wire], request.body(slot.model, added)
    return await client.open(
        Request(slot.origin, path, body, headers=sent, credential=key, plain_http=slot.plain_http), wait_s
    )
