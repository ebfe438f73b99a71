"""Every route there is. A route that is not in this table does not exist; each names the scope it needs.

`/health` and `/ready` are outside authentication and admission, and reveal nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Answer

from . import admin, api, models

if TYPE_CHECKING:
    from .house import House

Plain = Callable[["House", Caller, bytes, Mapping[str, str]], Awaitable[Answer]]
Listener = Literal["public", "admin"]


class Route(NamedTuple):
    method: str
    path: str
    scope: str
    """Empty: open to everybody."""
    plain: Plain | None = None
    wire: Literal["openai-chat", "anthropic-messages", "openai-responses"] | None = None
    """A format of the gateway's, instead of a handler."""
    listener: Listener = "public"
    asks: bool = False
    """Its handler may ask models: it is stopped when its client leaves, as every answer of the gateway is."""


ROUTES: tuple[Route, ...] = (
    Route("POST", "/v1/chat/completions", "ask", wire="openai-chat"),
    Route("POST", "/v1/messages", "ask", wire="anthropic-messages"),
    Route("POST", "/v1/messages/count_tokens", "ask", models.count_tokens),
    Route("POST", "/v1/responses", "ask", wire="openai-responses"),
    Route("GET", "/v1/models", "ask", models.list_models),
    Route("GET", "/v1/models/{id:path}", "ask", models.show_model),
    Route("POST", "/v1/route", "route", api.route, asks=True),
    Route("POST", "/v1/route/batch", "route", api.route_batch, asks=True),
    Route("GET", "/v1/decisions/{id}", "decisions:read", api.decision),
    Route("POST", "/v1/feedback", "feedback:write", api.feedback),
    Route("GET", "/openapi.json", "", admin.openapi),
    Route("GET", "/health", "", admin.health),
    Route("GET", "/ready", "", admin.ready),
    Route("GET", "/health", "", admin.health, listener="admin"),
    Route("GET", "/ready", "", admin.ready, listener="admin"),
    Route("GET", "/metrics", "admin", admin.metrics, listener="admin"),
    Route("GET", "/admin/status", "admin", admin.status, listener="admin"),
    Route("POST", "/admin/reload", "admin", admin.reload, listener="admin"),
)
