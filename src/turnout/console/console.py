"""The console: its pages, who may see them, and how a refusal looks to a person.

Each page is a module with a function that makes its rows of the route table. Pages call public functions of the store,
of explain, learn and runtime; none has its own rules about who may see what.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnout.apps.app import Answer, Call, Route
from turnout.apps.caller import Caller
from turnout.config.load import shipped
from turnout.core.errors import Refused, StoreError
from turnout.store.records import Records
from turnout.web.server import Server

from .ask import ask_routes
from .chat import chat_routes
from .decisions import decisions_routes
from .docs import docs_routes
from .home import home_routes
from .keys import key_routes
from .learning import learning_routes
from .models import model_routes
from .page import go_to, page, read_form, serve_static, wants_part
from .playground import playground_routes
from .profiles import profile_routes
from .session import ConsoleSessions, set_cookie
from .settings import settings_routes
from .study import study_routes
from .traffic import traffic_routes


class Link(NamedTuple):
    """A page in the navigation."""

    path: str
    title: str
    key: str
    """Pressed after `g`, it opens the page."""
    group: str
    scope: str = "decisions:read"


LINKS = (
    Link("/", "Overview", "o", "Watch"),
    Link("/decisions", "Decisions", "d", "Watch"),
    Link("/traffic", "Traffic", "t", "Watch"),
    Link("/playground", "Playground", "y", "Try", "route"),
    Link("/chat", "Chat", "c", "Try", "ask"),
    Link("/ask", "Ask", "a", "Try", "ask"),
    Link("/study", "Study", "s", "Try", "ask"),
    Link("/docs", "Docs", "x", "Try", "ask"),
    Link("/label", "Label", "b", "Teach", "feedback:write"),
    Link("/learning", "Learning", "l", "Teach", "admin"),
    Link("/models", "Models", "m", "Operate", "admin"),
    Link("/profiles", "Profiles", "p", "Operate", "admin"),
    Link("/keys", "Keys", "k", "Operate", "admin"),
    Link("/settings", "Settings", "e", "Operate", "admin"),
)
# How often to look for a past hour to count; hours are counted some minutes after their end.
COUNT_EVERY_S = 60.0
# The pause between two of many hours, for other requests: a log that was never counted takes a minute.
COUNT_PAUSE_S = 0.02

log = logging.getLogger("turnout.console")


class Console:
    """The console of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.runtime = server.runtime
        self.sessions = ConsoleSessions(server.auth)
        self.routes: Sequence[Route] = [
            Route("GET", "/static/{name}", "", serve_static, is_page=True),
            Route("GET", "/login", "", self.login, is_page=True),
            Route("POST", "/login", "", self.sign_in, is_page=True),
            Route("POST", "/logout", "", self.sign_out, is_page=True),
            *home_routes(self),
            *playground_routes(self),
            *decisions_routes(self),
            *ask_routes(self),
            *chat_routes(self),
            *study_routes(self),
            *docs_routes(self),
            *traffic_routes(self),
            *learning_routes(self),
            *model_routes(self),
            *profile_routes(self),
            *key_routes(self),
            *settings_routes(self),
        ]
        self.runtime.on_open.append(self.count_traffic)

    def show(self, call: Call, template: str, status: int = 200, **values: Any) -> Answer:
        """A page in its frame, with the values that every template needs."""
        links = self.links(call)
        groups = {link.group: [one for one in links if one.group == link.group] for link in links}
        renewed = self.sessions.renew(call.headers.get("cookie", "")) if call.caller.key_id else ""
        cookies = [set_cookie(renewed, secure=_is_https(call))] if renewed else []
        return page(template, status, cookies, links=links, groups=groups, key_id=call.caller.key_id, **values)

    def links(self, call: Call) -> list[Link]:
        """The pages that the caller may see."""
        return [link for link in LINKS if link.scope in call.caller.scopes]

    def records(self, call: Call) -> Records:
        """The log of the caller's tenant; an administrator may name another tenant."""
        named = call.options.get("tenant")
        return call.store.records(named if named is not None and "admin" in call.caller.scopes else call.caller.tenant)

    async def caller(self, headers: Mapping[str, str]) -> Caller:
        return await self.sessions.caller(headers.get("cookie", ""))

    def refuse(self, refused: Refused, headers: Mapping[str, str]) -> Answer:
        if wants_part(headers):
            return page("error_part.html", refused.status, said=str(refused), signs_in=refused.status == 401)
        if refused.status == 401:
            return go_to("/login")
        return page("error.html", refused.status, said=str(refused), status_code=refused.status)

    def api_url(self, call: Call) -> str:
        """The URL of the API: that of this page, unless the console has its own port."""
        settings, host = self.server.settings, call.headers.get("host", "localhost:8401")
        return f"http://{host if settings.is_private else re.sub(':[0-9]+$', '', host) + f':{settings.port}'}"

    def profile_names(self) -> list[str]:
        """The profiles served here, the default first."""
        return list(dict.fromkeys((self.runtime.profile, *self.runtime.offered())))

    def known_profiles(self) -> list[str]:
        """The profiles that ship, and the default."""
        return sorted({*shipped(), self.runtime.profile})

    async def count_traffic(self) -> None:
        """Count past hours of traffic, one after the other, while the server runs."""
        store = self.runtime.store
        while store is not None:
            try:
                more = await asyncio.to_thread(store.count_hour)
            except StoreError as error:
                log.warning("traffic is read from the log itself: %s", error)
                more = False
            await asyncio.sleep(COUNT_PAUSE_S if more else COUNT_EVERY_S)

    # --- signing in

    async def login(self, call: Call) -> Answer:
        """The page to sign in."""
        return page("login.html", said="")

    async def sign_in(self, call: Call) -> Answer:
        """Sign in with a key."""
        try:
            value = await self.sessions.sign_in(read_form(call).get("key", ""))
        except Refused as refused:
            return page("login.html", refused.status, said=str(refused))
        return go_to("/", [set_cookie(value, secure=_is_https(call))])

    async def sign_out(self, call: Call) -> Answer:
        """Sign out."""
        self.sessions.sign_out(call.headers.get("cookie", ""))
        return go_to("/login", [set_cookie("", secure=_is_https(call))])


def _is_https(call: Call) -> bool:
    """Whether the browser used TLS, by its own `origin` header."""
    return call.headers.get("origin", "").startswith("https:")
