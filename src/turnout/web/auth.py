"""What is checked of a request's head before anything is done for it: whether it may speak here at all, and who asks.

The guard lets requests in that name this server rightly, and that no foreign web page has sent: on loopback no key is
needed, so this is what stands between a page in the user's browser and the user's models. Then there is one
authentication for every route: a request becomes a `Caller`, or is refused. There is no caller by default.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from turnout.apps.caller import PERIODS, Budget, Caller, Limits, Rate
from turnout.config.name import current_name
from turnout.config.server import ServerSettings
from turnout.core.errors import Refused
from turnout.store import Store
from turnout.store.keys import Key

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


class Guard:
    def __init__(self, settings: ServerSettings) -> None:
        self.hosts = LOCAL | {name.casefold() for name in settings.hosts}
        # The names for "everywhere" are no place to call.
        self.hosts |= {settings.host.casefold(), settings.admin_host.casefold()} - {"0.0.0.0", "::"}  # noqa: S104
        self.hosts -= {""}  # an empty name is no host's
        self.origins = frozenset(origin.casefold().rstrip("/") for origin in settings.origins)

    def read(self, headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
        """The headers by name, of a request that may be served."""
        named = header_map(headers)
        self.check(named)
        return named

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for another host, and one that a foreign page's script or form has sent."""
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            raise Refused(
                421, "invalid_request_error", f"host {host[:80]!r} is not served here: add it to hosts in [server]"
            )
        origin = headers.get("origin")
        if origin is not None:
            own = f"//{host}".casefold()
            if origin.casefold() not in (*self.origins, f"http:{own}", f"https:{own}"):
                said = f"origin {origin[:80]!r} may not call this server: add it to origins in [server]"
                raise Refused(403, "permission_error", said)
        site = headers.get("sec-fetch-site", "").strip().casefold()
        if site == "cross-site" and (origin is None or origin.casefold() not in self.origins):
            raise Refused(403, "permission_error", "a page of another site may not call this server")


def check_own_page(headers: Mapping[str, str]) -> None:
    """Refuse what changes something unless a page of this server has sent it. Any process on the machine can call the
    other routes; these a browser calls in its user's name, so that what cannot be told is refused as well."""
    site, origin = headers.get("sec-fetch-site", "").strip().casefold(), headers.get("origin", "").casefold()
    own = f"//{headers.get('host', '')}".casefold()
    if site not in ("", "same-origin") or (not site and origin not in (f"http:{own}", f"https:{own}")):
        raise Refused(403, "permission_error", "only a page of this server may ask for this: open the console again")


def header_map(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers by name. Of a repeated one the first counts: nothing decided by them may appear twice anyway."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}


# A name or an address of four numbers, or one of IPv6 in brackets; then perhaps a port. Nothing else names a host.
_HOST = re.compile(r"(?:\[([0-9a-f:]*:[0-9a-f:.]*)\]|([0-9a-z._-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


# A name has 253 characters at most, and its port six.
HOST_CHARACTERS = 259


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty for what is none."""
    return _host_name(host) if len(host) <= HOST_CHARACTERS else ""


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).casefold() if found is not None else ""


# --- keys

PREFIX = "tno"
_SHAPE = re.compile(rf"{PREFIX}_([0-9a-z]{{12}})_([A-Za-z0-9_-]{{43}})\Z")
SCOPES = ("ask", "route", "decisions:read", "feedback:write", "admin")

# Within this time a revoked key stops working, and what other processes have booked on a key is noticed.
CACHED_S = 30.0
CACHED_KEYS = 10_000
_NOBODY = "0" * 64


class Credential(NamedTuple):
    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Credential({self.key_id!r}, ***)"


def read_credential(text: str) -> Credential | None:
    """The key a header carries, if it has a key's shape: nothing else ever reaches a lookup."""
    found = _SHAPE.match(text)
    return Credential(found[1], found[2]) if found is not None else None


def digest(secret: str, pepper: bytes) -> str:
    # Not `hmac.digest`: it lets go of the interpreter's lock, and for a microsecond's work waits to have it back.
    return hmac.new(pepper, secret.encode(), "sha256").hexdigest()


class Cached(Struct):
    """A key as it was looked up, and its caller once its secret has been shown."""

    until: float
    """When it is looked up again: soon, and no later than it expires."""
    row: Key | None
    """None where there is none that is valid."""
    caller: Caller | None = None


class Auth:
    """Knows keys. A server on loopback that has none lets everybody on this machine ask."""

    def __init__(
        self, store: Store | None, pepper: bytes, *, loopback: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.pepper = pepper
        self.loopback = loopback
        self.clock = clock
        self._keys: OrderedDict[str, Cached] = OrderedDict()
        self._budgets: dict[str, Budget] = {}
        self._rates: dict[str, Rate] = {}
        self._anyone = Caller("", "", frozenset(SCOPES) - {"admin"}, Budget())
        self.owner = Caller("", "", frozenset(SCOPES), Budget())
        self._has_keys = (-CACHED_S, False)
        """When that was looked up, and what was found."""

    async def caller(
        self, headers: Sequence[tuple[bytes, bytes]], *, admin: bool = False, counts: bool = True
    ) -> Caller:
        """Who sends these headers. `counts`: it is a request, of which a key has so many a minute."""
        if await self.is_open():
            return self.owner if admin else self._anyone
        credential = _credential(headers)
        cached = await self._look_up(credential.key_id)
        row = cached.row
        # Compared even where there is no such key, so that both take the same time.
        same = hmac.compare_digest(digest(credential.secret, self.pepper), row.digest if row is not None else _NOBODY)
        if row is None or not same:
            raise Refused(401, "invalid_api_key", "this key is not known here, or no longer valid")
        caller = await self._caller(cached, row)
        if counts and caller.rate.per_minute is not None:
            caller.rate.count()
        return caller

    async def is_open(self) -> bool:
        """Whether no key is needed: on loopback, until there is one."""
        return self.loopback and not await self._any_keys()

    async def holder(self, key_id: str) -> Caller | None:
        """The caller that a key makes, for who has shown its secret before; None once it is no longer valid."""
        cached = await self._look_up(key_id)
        return await self._caller(cached, cached.row) if cached.row is not None else None

    async def _caller(self, cached: Cached, row: Key) -> Caller:
        if cached.caller is None:
            cached.caller = Caller(
                key_id=row.id,
                tenant=row.tenant,
                scopes=frozenset(row.scopes),
                budget=await self._budget(row),
                ceiling=row.ceiling,
                may_force=row.may_force,
                profiles=None if row.profiles is None else frozenset(map(current_name, row.profiles)),
                rate=self._rate(row),
            )
        return cached.caller

    def forget(self) -> None:
        """Look every key up again: one was made, changed or revoked."""
        self._keys.clear()
        self._has_keys = (-CACHED_S, False)

    async def _any_keys(self) -> bool:
        now = time.monotonic()
        if now - self._has_keys[0] >= CACHED_S:
            found = self.store is not None and await asyncio.to_thread(self.store.keys.any)
            self._has_keys = (now, found)
        return self._has_keys[1]

    async def _look_up(self, key_id: str) -> Cached:
        now, cached = time.monotonic(), self._keys.get(key_id)
        if cached is not None and now < cached.until:
            return cached
        row = await asyncio.to_thread(self.store.keys.find, key_id) if self.store is not None else None
        until, now_ms = now + CACHED_S, time.time_ns() // 1_000_000
        if row is not None and not row.is_valid(now_ms):
            row = None
        elif row is not None and row.expires_ms is not None:
            until = min(until, now + (row.expires_ms - now_ms) / 1000)
        cached = self._keys[key_id] = Cached(until, row)
        self._keys.move_to_end(key_id)
        while len(self._keys) > CACHED_KEYS:
            self._keys.popitem(last=False)
        return cached

    async def _budget(self, row: Key) -> Budget:
        """The key's money, held against the store's rows whenever the key is looked up: other processes spend, too, and
        what this one has booked and not yet written down is in its budget alone."""
        limits = Limits(row.budget_usd, row.budget_day_usd, row.budget_month_usd)
        now, spent = self.clock(), {}
        for period in PERIODS:
            if limits.of(period) is not None and self.store is not None:
                since_ms = round(period.start(now) * 1000)
                spent[period] = await asyncio.to_thread(self.store.keys.spent, row.id, since_ms)
        budget = self._budgets.setdefault(row.id, Budget(clock=self.clock))
        budget.renew(limits, spent, now)
        return budget

    def _rate(self, row: Key) -> Rate:
        """What the key has asked lately, however often it is looked up again."""
        rate = self._rates.setdefault(row.id, Rate())
        rate.per_minute = row.per_minute
        return rate


def _credential(headers: Sequence[tuple[bytes, bytes]]) -> Credential:
    given = [value for name, value in headers if name in (b"authorization", b"x-api-key")]
    if not given:
        said = "a key is needed: send it as `Authorization: Bearer tno_…` or `x-api-key: tno_…`"
        raise Refused(401, "invalid_api_key", said)
    if len(given) > 1:
        raise Refused(400, "invalid_request_error", "more than one credential: send exactly one")
    text = given[0].decode("latin-1")
    scheme, space, rest = text.partition(" ")
    found = read_credential(rest if space and scheme.lower() == "bearer" else text)
    if found is None:
        raise Refused(401, "invalid_api_key", "this is not a Turnout key (tno_…); see turnout keys")
    return found
