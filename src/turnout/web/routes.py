"""Every route there is. A route that is not in this table does not exist; each names the scope it needs.

`/health` and `/ready` are outside authentication and admission, and reveal nothing.
"""

from __future__ import annotations

from . import admin, api, models
from .table import Route

ROUTES: tuple[Route, ...] = (
    Route("POST", "/v1/chat/completions", "ask", models.chat, asks=True),
    Route("POST", "/v1/messages", "ask", models.messages, asks=True),
    Route("POST", "/v1/messages/count_tokens", "ask", models.count_tokens),
    Route("POST", "/v1/responses", "ask", models.responses, asks=True),
    Route("GET", "/v1/models", "ask", models.list_models),
    Route("GET", "/v1/models/{id:path}", "ask", models.show_model),
    Route("POST", "/v1/route", "route", api.route, api.RouteBody, asks=True),
    Route("POST", "/v1/route/batch", "route", api.route_batch, api.BatchBody, asks=True),
    Route("GET", "/v1/decisions/{id}", "decisions:read", api.decision),
    Route("POST", "/v1/feedback", "feedback:write", api.feedback, api.FeedbackBody),
    Route("GET", "/openapi.json", "", admin.openapi),
    Route("GET", "/health", "", admin.health),
    Route("GET", "/ready", "", admin.ready),
    Route("GET", "/health", "", admin.health, listener="admin"),
    Route("GET", "/ready", "", admin.ready, listener="admin"),
    Route("GET", "/metrics", "admin", admin.metrics, listener="admin"),
    Route("GET", "/admin/status", "admin", admin.status, listener="admin"),
    Route("POST", "/admin/reload", "admin", admin.reload, listener="admin"),
)
