"""What a row of the route table is, and what a handler is handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Answer

if TYPE_CHECKING:
    from .server import Server

Listener = Literal["public", "admin"]


class Call(NamedTuple):
    """A request of somebody who may make it."""

    caller: Caller
    body: bytes
    headers: Mapping[str, str]
    params: Mapping[str, str]
    """What its path names."""


class Route(NamedTuple):
    method: str
    path: str
    scope: str
    """Empty: open to everybody."""
    handler: Callable[[Server, Call], Awaitable[Answer]]
    """The first sentence of its docstring is what the OpenAPI document says of the route."""
    body: type | None = None
    """What it takes, where that is Turnout's own and not a provider's format."""
    asks: bool = False
    """Its handler may ask models: it is stopped when its client leaves."""
    listener: Listener = "public"
