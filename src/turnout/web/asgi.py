"""The public listener as an application for another ASGI server: `uvicorn --factory turnout.web.asgi:app`.

Settings come from `turnout.toml` and the environment, as for `turnout serve`; where to listen, how long heads may be
and how many connections there are is the other server's to say. The server opens and closes with the server (lifespan).
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
    """Made once in each process that serves."""
    settings = server_settings()
    store = open_store(None, public=not settings.loopback)
    try:
        check_exposure(settings, store)
        server = Server(settings, Runtime(store, profile=settings.profile, profiles=settings.profiles))
    except TurnoutError:
        store.close()
        raise
    return Application(server, lifespan=True)
