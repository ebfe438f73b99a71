"""The OpenAPI document, made from the route table and the types of Turnout's own bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from turnout import __version__
from turnout.apps.app import SOCKET, Route
from turnout.core.decision import DecisionForm

SCHEMAS = "#/components/schemas/"


def document(routes: Sequence[Route]) -> dict[str, Any]:
    routes = [route for route in routes if route.method != SOCKET]  # OpenAPI cannot describe WebSockets
    bodies = [route.body for route in routes if route.body is not None]
    schemas, components = msgspec.json.schema_components((*bodies, DecisionForm), ref_template=f"{SCHEMAS}{{name}}")
    refs = dict(zip(bodies, schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
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


def _operation(route: Route, path: str, refs: dict[type, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": (route.handler.__doc__ or "").partition("\n")[0],
        "responses": {"200": {"description": "The answer."}},
    }
    if path == "/v1/route":
        content = {"application/json": {"schema": {"$ref": f"{SCHEMAS}DecisionForm"}}}
        operation["responses"]["200"]["content"] = content
    if route.scope:
        operation["security"] = [{"key": []}]
        operation["responses"]["401"] = {"description": "No key, or none that is known."}
    if "{id}" in path:
        operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    if route.method == "POST":
        schema = refs[route.body] if route.body is not None else {"type": "object"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation
