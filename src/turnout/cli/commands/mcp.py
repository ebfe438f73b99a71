"""`turnout mcp`: Turnout as tools of a model, over stdin and stdout."""

from __future__ import annotations

from contextlib import suppress

from ..application import local_caller, needing, open_runtime, run
from ..option import StoreOptions


def mcp(*, where: StoreOptions = StoreOptions()) -> None:
    with needing("this needs", "serve,mcp"):
        from turnout.apps.app import find_apps
        from turnout.apps.mcp import serve_stdio

    runtime = open_runtime(where, None)
    apps = [make(runtime) for make in find_apps()]
    tools = [tool for app in apps for tool in getattr(app, "tools", ())]
    with suppress(KeyboardInterrupt):
        run(runtime, serve_stdio(tools, local_caller(("ask", "route"))))
