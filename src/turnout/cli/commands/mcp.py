"""`turnout mcp`: Turnout as tools of a model, over stdin and stdout."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from turnout.core.errors import TurnoutError

from ..option import ConfigOption, DbOption


def mcp(*, db: DbOption = None, config: ConfigOption = None) -> int:
    try:
        from turnout.apps.app import find_apps
        from turnout.apps.caller import Budget, Caller
        from turnout.runtime.runtime import Runtime
        from turnout.web.mcp import route_tool, serve_stdio
    except ImportError as error:
        needed = (error.name or "").partition(".")[0]
        raise TurnoutError(f"this needs {needed}: pip install 'turnout[serve,mcp]'") from None
    from turnout.runtime.log import quiet
    from turnout.store import open_store

    quiet()
    runtime = Runtime(open_store(db, config=config), config=config)
    apps = [make(runtime) for make in find_apps()]
    tools = [route_tool(runtime), *(tool for app in apps for tool in getattr(app, "tools", ()))]

    async def serving() -> None:
        try:
            await serve_stdio(tools, Caller("", "", frozenset(("ask", "route")), Budget()))
        finally:
            await runtime.close()

    with suppress(KeyboardInterrupt):
        asyncio.run(serving())
    return 0
