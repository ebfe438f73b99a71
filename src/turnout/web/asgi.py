"""The public listener for another ASGI server: `uvicorn --factory turnout.web.asgi:app`.

Settings come from `turnout.toml` and the environment, as for `turnout serve`. The address, the length of headers and
the number of connections are settings of the other server.
"""

from __future__ import annotations

from typing import Any

from turnout.config.server import server_settings
from turnout.core.errors import TurnoutError
from turnout.runtime.runtime import Runtime
from turnout.store import open_store

from .app import Application
from .server import Server, check_exposure


def app() -> Any:
    """Called once in each process of the server."""
    settings = server_settings()
    store = open_store(None, public=not settings.loopback)
    try:
        check_exposure(settings, store)
        server = Server(settings, Runtime(store, profile=settings.profile, profiles=settings.profiles))
    except TurnoutError:
        store.close()
        raise
    return Application(server, lifespan=True)
