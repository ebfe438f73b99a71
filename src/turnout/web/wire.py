"""ASGI's types, and when a client counts as gone: shared by requests and WebSockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# A client that takes nothing for so long is as good as gone, and what it does not take is paid for.
TAKE_S = 30.0


class Gone(Exception):
    """The client has left."""
