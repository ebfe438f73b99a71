"""The tools of the applications as an MCP server over stdin and stdout, with the official library.

A refused call and a mistake in its arguments are results, not protocol errors: the model that called can read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from mcp import types
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server

from turnout import __version__
from turnout.core.errors import Refused
from turnout.models.wire.format import short_message

from .app import AppTool
from .caller import Caller


def make_server(tools: Sequence[AppTool], caller: Caller) -> Server[Any]:
    """A server that offers these tools to one caller."""
    known = {tool.name: tool for tool in tools}
    listed = [types.Tool(name=one.name, description=one.description, input_schema=_schema(one.body)) for one in tools]

    async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            return _result(f"no tool {params.name[:80]!r}: there are {', '.join(known)}", is_error=True)
        try:
            body: Any = msgspec.convert(params.arguments or {}, tool.body)
            value = await tool.run(body, caller)
        except msgspec.ValidationError as error:
            return _result(short_message(error), is_error=True)
        except Refused as refused:
            return _result(str(refused), is_error=True)
        return _result(value if isinstance(value, str) else msgspec.json.encode(value).decode())

    return Server("turnout", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(tools: Sequence[AppTool], caller: Caller) -> None:
    """Serve until stdin ends."""
    server = make_server(tools, caller)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions()))


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def _schema(body: type) -> dict[str, Any]:
    """The schema of a struct, with the definitions that it refers to."""
    (schema,), definitions = msgspec.json.schema_components((body,), ref_template="#/$defs/{name}")
    whole = definitions.pop(body.__name__) if "$ref" in schema else schema
    return {**whole, "$defs": definitions} if definitions else whole
