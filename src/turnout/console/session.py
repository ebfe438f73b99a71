"""Who has signed in to the console: a cookie that names a key and ends by itself.

It holds no secret of the key's, so what a browser keeps opens nothing but pages; a key that is revoked ends its
sessions. A session ends half an hour after its last use, twelve hours after it began, and when one signs out.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from typing import NamedTuple

from turnout.apps.caller import Caller
from turnout.core.errors import Refused
from turnout.web.auth import Auth

COOKIE = "turnout_session"
# A working day, and the longest pause in it.
SESSION_S, IDLE_S = 12 * 3600, 30 * 60
# A cookie is written anew when it is this old: not with every page.
RENEWED_S = 60
# Of the cookies of a request, all together.
COOKIE_CHARACTERS = 8192
# ConsoleSessions that were signed out of and could still be shown; more of them end the oldest first.
ENDED = 10_000


class ConsoleSession(NamedTuple):
    key_id: str
    ident: str
    began: int
    used: int
    """When it was last written."""

    def is_over(self, now: float) -> bool:
        return not (self.began <= now < self.began + SESSION_S and now < self.used + IDLE_S)

    def write(self, pepper: bytes) -> str:
        said = ".".join(map(str, self))
        return f"{said}.{_sign(said, pepper)}"


def begin_session(key_id: str, now: float) -> ConsoleSession:
    return ConsoleSession(key_id, secrets.token_urlsafe(12), int(now), int(now))


def read_session(value: str, pepper: bytes, now: float) -> ConsoleSession | None:
    """What a cookie stands for; None if it was not written here, or is over."""
    said, _, signature = value.rpartition(".")
    # A `compare_digest` of texts takes ASCII alone.
    if not hmac.compare_digest(signature.encode(), _sign(said, pepper).encode()):
        return None
    key_id, ident, began, used = said.split(".")
    found = ConsoleSession(key_id, ident, int(began), int(used))
    return None if found.is_over(now) else found


def cookie_value(header: str) -> str:
    """The console's cookie among those of a request; empty if it is not there. What is written here needs no quotes."""
    pairs = (one.strip().partition("=") for one in header[:COOKIE_CHARACTERS].split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def set_cookie(value: str, *, secure: bool) -> tuple[bytes, bytes]:
    """The header that has a browser keep it; an empty value has it forget."""
    ends = f"Max-Age={SESSION_S}" if value else "Max-Age=0"
    said = f"{COOKIE}={value}; Path=/; {ends}; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
    return b"set-cookie", said.encode("latin-1")


class ConsoleSessions:
    """Who looks at the console, by the server's authentication."""

    def __init__(self, auth: Auth) -> None:
        self.auth = auth
        self._ended: OrderedDict[str, None] = OrderedDict()
        """The sessions that were signed out of."""

    async def caller(self, cookie: str) -> Caller:
        """On loopback without keys the owner, else the caller whose key has signed in."""
        if await self.auth.is_open():
            return self.auth.owner
        session = self._read(cookie)
        if session is None or session.ident in self._ended:
            raise Refused(401, "invalid_api_key", "sign in with a key of this server")
        caller = await self.auth.holder(session.key_id)
        if caller is None:
            raise Refused(401, "invalid_api_key", "the key you signed in with is no longer valid")
        return caller

    async def sign_in(self, key: str) -> str:
        """The value of the cookie that stands for a key; refused if it is none of this server's."""
        caller = await self.auth.caller([(b"x-api-key", key.strip().encode("latin-1", "replace"))])
        return begin_session(caller.key_id, self.auth.clock()).write(self.auth.pepper)

    def renew(self, cookie: str) -> str:
        """The cookie's value as of now, where it is to be written anew; else empty."""
        session, now = self._read(cookie), self.auth.clock()
        if session is None or now < session.used + RENEWED_S:
            return ""
        return session._replace(used=int(now)).write(self.auth.pepper)

    def sign_out(self, cookie: str) -> None:
        """End a session, in this process at once."""
        session = self._read(cookie)
        if session is not None:
            self._ended[session.ident] = None
            while len(self._ended) > ENDED:
                self._ended.popitem(last=False)

    def _read(self, cookie: str) -> ConsoleSession | None:
        return read_session(cookie_value(cookie), self.auth.pepper, self.auth.clock())


def _sign(said: str, pepper: bytes) -> str:
    # A key of its own: what is signed here is signed for nothing else.
    own = hmac.new(pepper, b"turnout console sessions", "sha256").digest()
    return hmac.new(own, said.encode("utf-8", "replace"), "sha256").hexdigest()
