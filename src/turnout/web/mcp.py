"""The tools of the applications, and deciding itself, for programs that speak MCP: over stdin and stdout, with the
official library.

What is refused, or is not as it should be, is said in the result, where the model that called can read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from mcp import types
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server

from turnout import __version__
from turnout.apps.app import AppTool
from turnout.apps.caller import Caller
from turnout.apps.ledger import decide, record, spent_usd
from turnout.core.errors import ConfigError, QueryError, Refused, UnknownProfile
from turnout.core.query import Query
from turnout.models.wire.format import told
from turnout.runtime.runtime import Runtime

from .api import RouteBody

ROUTE_SAYS = "Decide what should happen with a text under one of Turnout's profiles, and why. Asks no source."


def route_tool(runtime: Runtime) -> AppTool:
    async def route(body: RouteBody, caller: Caller) -> object:
        slots, store = runtime.models.slots, runtime.store
        try:
            router = await runtime.find_router(runtime.name_of(body.profile or runtime.profile))
            query = Query(body.text, declared=body.declared, session=body.session)
            decision = await decide(router, query, caller, slots, store)
        except (QueryError, UnknownProfile, ConfigError) as error:
            raise Refused(422, "invalid_request_error", str(error)) from None
        if store is not None:
            await record(store, decision, key_id=caller.key_id, spent_usd=spent_usd(decision, slots) or 0.0)
        return decision.to_dict()

    return AppTool("route", ROUTE_SAYS, RouteBody, route)


def make_server(tools: Sequence[AppTool], caller: Caller) -> Server[Any]:
    """A server that offers these to one caller."""
    known = {tool.name: tool for tool in tools}
    listed = [types.Tool(name=one.name, description=one.description, input_schema=_schema(one.body)) for one in tools]

    async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            return _said(f"no tool {params.name[:80]!r}: there are {', '.join(known)}", is_error=True)
        try:
            body: Any = msgspec.convert(params.arguments or {}, tool.body)
            found = await tool.run(body, caller)
        except msgspec.ValidationError as error:
            return _said(told(error), is_error=True)
        except Refused as refused:
            return _said(str(refused), is_error=True)
        return _said(found if isinstance(found, str) else msgspec.json.encode(found).decode())

    return Server("turnout", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(tools: Sequence[AppTool], caller: Caller) -> None:
    """Serve until stdin ends."""
    server = make_server(tools, caller)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions()))


def _said(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def _schema(body: type) -> dict[str, Any]:
    """The schema of a struct, with what it refers to inside."""
    (schema,), parts = msgspec.json.schema_components((body,), ref_template="#/$defs/{name}")
    whole = parts.pop(body.__name__) if "$ref" in schema else schema
    return {**whole, "$defs": parts} if parts else whole
