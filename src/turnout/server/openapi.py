"""The OpenAPI document, made from the table of routes and the types of Turnout's own bodies."""

from __future__ import annotations

from typing import Any

import msgspec

from turnout import __version__
from turnout.core.decision import DecisionForm

from .api import BatchBody, FeedbackBody, RouteBody
from .table import ROUTES, Route

_BODIES: dict[str, type] = {"/v1/route": RouteBody, "/v1/route/batch": BatchBody, "/v1/feedback": FeedbackBody}
_TEXTS = {
    "/v1/chat/completions": "OpenAI's chat completions; model `auto` lets Turnout choose.",
    "/v1/messages": "Anthropic's messages; model `auto` lets Turnout choose.",
    "/v1/messages/count_tokens": "How many tokens a request has, about.",
    "/v1/responses": "OpenAI's responses, where a configured slot speaks them.",
    "/v1/models": "What may be asked for.",
    "/v1/models/{id}": "One model.",
    "/v1/route": "Decide what happens next with a question.",
    "/v1/route/batch": "Decide many questions.",
    "/v1/decisions/{id}": "A decision, what happened after it, and what people said of it.",
    "/v1/feedback": "Say whether a decision was right, or what it should have been.",
    "/openapi.json": "This document.",
    "/health": "Whether the process is alive.",
    "/ready": "Whether it takes work.",
}


def document() -> dict[str, Any]:
    schemas, components = msgspec.json.schema_components(
        (*_BODIES.values(), DecisionForm), ref_template="#/components/schemas/{name}"
    )
    refs = dict(zip(_BODIES, schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        if route.listener == "public":
            path = route.path.replace(":path", "")
            paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Turnout", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, path: str, refs: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"summary": _TEXTS[path], "responses": {"200": {"description": "The answer."}}}
    if path == "/v1/route":
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/DecisionForm"}}}
        told["responses"]["200"]["content"] = content
    if route.scope:
        told["security"] = [{"key": []}]
        told["responses"]["401"] = {"description": "No key, or none that is known."}
    if "{id}" in path:
        told["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    if route.method == "POST":
        schema = refs.get(path, {"type": "object"})
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return told
