"""What carries a request to a host and its answer back: the protocol between the client and whatever speaks HTTP.

`turnout.net.client` carries it over the network; `turnout.testing.ScriptedTransport` answers on the spot. A transport
connects only where the egress guard it is handed says, and the errors it raises are NetErrors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from .egress import Egress, Origin


class Request(NamedTuple):
    """What is sent. The path begins with a slash; the credential is a header of its own, for this origin only."""

    origin: Origin
    path: str
    body: bytes = b""
    method: str = "POST"
    headers: Mapping[str, str] = {}
    credential: tuple[str, str] | None = None
    """A header's name and value. A transport finds it among the headers."""
    plain_http: bool = False
    """The credential may go to a public address unencrypted."""
    shielded: bool = False
    """It carries a credential that may not; told to the transport."""
    inflates: bool = False
    """An answer that is compressed unasked is inflated when it is read whole, within the same limit."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.origin}{self.path}, {len(self.body)} bytes)"


class Exchange(Protocol):
    """An answer whose headers are here."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name; one that comes several times is joined by commas."""
        ...

    def ready(self) -> bytes | None:
        """All that is left of it, if that is here already; None where `next` must wait for it."""
        ...

    async def next(self) -> bytes:
        """What has come since, as soon as something has; empty at the end. Raises Broken."""
        ...

    def close(self) -> None:
        """End it, for a reader in another task too. A connection whose answer did not end is not used again."""
        ...


class Talk(Protocol):
    """A WebSocket: messages of text in both directions, each of them bounded."""

    async def say(self, text: str) -> None: ...

    async def hear(self, wait_s: float) -> str:
        """The next message. Raises TimedOut or Broken."""
        ...

    async def close(self) -> None: ...


class Transport(Protocol):
    async def send(self, request: Request, egress: Egress, wait_s: float) -> Exchange:
        """Send a request and wait for the answer's headers. `was_sent` of an error says whether it went out."""
        ...

    async def converse(self, request: Request, egress: Egress, wait_s: float) -> Talk:
        """Open a WebSocket."""
        ...

    async def close(self) -> None:
        """End everything that is under way."""
        ...
