"""The protocol of what sends HTTP requests: aiohttp in `turnout.net.client`, doubles in `turnout.testing`.

A transport connects only where the egress guard allows, and all its errors are NetErrors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .egress import Egress, Origin

if TYPE_CHECKING:
    from .client import WebSocket


class Request(NamedTuple):
    """A request. Its path begins with a slash."""

    origin: Origin
    path: str
    body: bytes = b""
    method: str = "POST"
    headers: Mapping[str, str] = {}
    credential: tuple[str, str] | None = None
    """A header's name and value. The client moves it to the headers."""
    plain_http: bool = False
    """The credential may go to a public address unencrypted."""
    shielded: bool = False
    """It carries a credential that may not."""
    inflates: bool = False
    """A response that is compressed all the same is inflated when it is read whole, within the same limit."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.origin}{self.path}, {len(self.body)} bytes)"


class Exchange(Protocol):
    """A response whose headers have arrived."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name; repeated ones are joined by commas."""

    def ready(self) -> bytes | None:
        """The rest of the body, if all of it has arrived; else None."""

    async def next(self) -> bytes:
        """The next piece of the body, empty at its end. Raises Broken."""

    def close(self) -> None:
        """End it, also for a reader in another task. The connection of an unfinished one is not reused."""


class Transport(Protocol):
    async def send(self, request: Request, egress: Egress, wait_s: float) -> Exchange:
        """Send a request and wait for the response's headers. `was_sent` of an error says whether it was sent."""

    async def open_socket(self, request: Request, egress: Egress, wait_s: float) -> WebSocket: ...

    async def close(self) -> None:
        """End all requests and close all connections."""
