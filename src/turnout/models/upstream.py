"""One exchange with one slot: opened over the network, or answered by the demonstration model on the spot."""

from __future__ import annotations

from collections.abc import Mapping

from turnout.net.client import Client, Request, Response

from .demo import respond
from .provider import ANTHROPIC_VERSION, PATHS, credential
from .slot import Slot
from .wire.value import ModelRequest

# Headers of a client's that mean something to a provider. Everything else of the request is built, never copied.
PASSED = ("anthropic-version", "anthropic-beta", "openai-beta")


class DemoExchange:
    """What the demonstration model answers, as if it had come over a connection."""

    status = 200

    def __init__(self, pieces: list[bytes], stream: bool) -> None:
        self.headers = {"content-type": "text/event-stream" if stream else "application/json"}
        self._pieces = iter(pieces)

    def take(self) -> bytes | None:
        return next(self._pieces, b"")

    async def next(self) -> bytes:
        return next(self._pieces, b"")

    def close(self) -> None:
        """Nothing is open."""


async def open_upstream(
    client: Client,
    slot: Slot,
    request: ModelRequest,
    headers: Mapping[str, str],
    added: Mapping[str, object],
    wait_s: float,
) -> Response:
    """Send a request to a slot's provider, with the headers of a client's that it may see; wait for its beginning."""
    wire, stream = request.wire, request.stream
    if slot.origin is None:
        return Response(DemoExchange(respond(wire, slot.name, slot.id, request.last_words, stream), stream), "demo")
    sent = {"content-type": "application/json", "accept": "text/event-stream" if stream else "application/json"}
    sent |= {name: headers[name] for name in PASSED if name in headers}
    if wire == "anthropic-messages":
        sent.setdefault("anthropic-version", ANTHROPIC_VERSION)
    key = credential(wire, slot.provider, slot.key.reveal()) if slot.key is not None else None
    path, body = slot.path + PATHS[wire], request.body(slot.model, added)
    return await client.open(
        Request(slot.origin, path, body, headers=sent, credential=key, plain_http=slot.plain_http), wait_s
    )
