"""Checks of a request's headers: whether it may come in at all, and who sends it.

The guard refuses requests for other hosts and from pages of other sites. On loopback no key is needed, so only the
guard keeps a page in the user's browser away from the user's models. Authentication is the same for every route: it
turns a request into a `Caller` or refuses it. There is no default caller.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from turnout.apps.caller import PERIODS, Budget, Caller, Limits, Period, Rate
from turnout.config.name import current_name
from turnout.config.server import ServerSettings
from turnout.core.errors import Refused
from turnout.store import Store
from turnout.store.keys import Key
from turnout.store.row import now_ms

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


class Guard:
    def __init__(self, settings: ServerSettings) -> None:
        named = {name.casefold() for name in (*settings.hosts, settings.host, settings.admin_host)}
        # Addresses that mean "listen everywhere" are not names of this server.
        self.hosts = (LOCAL | named) - {"0.0.0.0", "::", ""}  # noqa: S104
        self.origins = frozenset(origin.casefold().rstrip("/") for origin in settings.origins)

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for another host or from a page of another site."""
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            message = f"host {host[:80]!r} is not served here: add it to hosts in [server]"
            raise Refused(421, "invalid_request_error", message)
        origin = headers.get("origin")
        if origin is not None and origin.casefold() not in (*self.origins, *_own_origins(host)):
            message = f"origin {origin[:80]!r} may not call this server: add it to origins in [server]"
            raise Refused(403, "permission_error", message)
        site = headers.get("sec-fetch-site", "").strip().casefold()
        if site == "cross-site" and (origin is None or origin.casefold() not in self.origins):
            raise Refused(403, "permission_error", "a page of another site may not call this server")


def check_own_page(headers: Mapping[str, str]) -> None:
    """Refuse a form that is not known to come from a page of this server: browsers send forms with their user's cookie,
    so one of unknown origin is refused too."""
    site, origin = headers.get("sec-fetch-site", "").strip().casefold(), headers.get("origin", "").casefold()
    if site not in ("", "same-origin") or (not site and origin not in _own_origins(headers.get("host", ""))):
        raise Refused(403, "permission_error", "only a page of this server may ask for this: open the console again")


def _own_origins(host: str) -> tuple[str, str]:
    own = host.casefold()
    return f"http://{own}", f"https://{own}"


def header_map(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers by name, the first of repeated ones: a repeated Host or key is refused elsewhere."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}


# A name, an IPv4 address, or an IPv6 address in brackets; then perhaps a port.
_HOST = re.compile(r"(?:\[([0-9a-f:]*:[0-9a-f:.]*)\]|([0-9a-z._-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
# At most 253 characters of a name, and six of a port.
HOST_CHARACTERS = 259


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty for a malformed one."""
    match = _HOST.fullmatch(host) if len(host) <= HOST_CHARACTERS else None
    return (match[1] or match[2]).casefold() if match is not None else ""


# --- keys

PREFIX = "tno"
_SHAPE = re.compile(rf"{PREFIX}_([0-9a-z]{{12}})_([A-Za-z0-9_-]{{43}})\Z")
SCOPES = ("ask", "route", "decisions:read", "feedback:write", "admin")

# How long a looked-up key is used: until then a revoked key works and spending by other processes is not counted.
CACHED_S = 30.0
CACHED_KEYS = 10_000
_NO_DIGEST = "0" * 64


class Credential(NamedTuple):
    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Credential({self.key_id!r}, ***)"


def read_credential(text: str) -> Credential | None:
    """The key in a header; None for anything else, which is never looked up."""
    match = _SHAPE.match(text)
    return Credential(match[1], match[2]) if match is not None else None


def digest(secret: str, pepper: bytes) -> str:
    # `hmac.digest` would release the interpreter's lock: getting it back takes longer than the digest.
    return hmac.new(pepper, secret.encode(), "sha256").hexdigest()


class CachedKey(Struct):
    """A looked-up key, and its caller. Without a row there is no valid key of this id."""

    until: float
    row: Key | None
    caller: Caller | None = None


class Auth:
    """Authentication by key. A server on loopback without any keys is open to its whole machine."""

    def __init__(
        self, store: Store | None, pepper: bytes, *, loopback: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.pepper = pepper
        self.loopback = loopback
        self.clock = clock
        self._keys: OrderedDict[str, CachedKey] = OrderedDict()
        self._budgets: dict[str, Budget] = {}
        self._rates: dict[str, Rate] = {}
        self._anyone = Caller("", "", frozenset(SCOPES) - {"admin"}, Budget())
        self.owner = Caller("", "", frozenset(SCOPES), Budget())
        self._has_keys = (-CACHED_S, False)
        """Whether there are keys, and when that was looked up."""

    async def caller(
        self, headers: Sequence[tuple[bytes, bytes]], *, admin: bool = False, counts: bool = True
    ) -> Caller:
        """Who sends these headers; refused without a valid key. `counts`: it counts against the key's rate."""
        if await self.is_open():
            return self.owner if admin else self._anyone
        credential = _credential(headers)
        cached = await self._look_up(credential.key_id)
        row = cached.row
        # Compared even without such a key, so that both cases take the same time.
        same = hmac.compare_digest(
            digest(credential.secret, self.pepper), row.digest if row is not None else _NO_DIGEST
        )
        if row is None or not same:
            raise Refused(401, "invalid_api_key", "this key is not known here, or no longer valid")
        caller = cached.caller or await self._caller(cached, row)
        if counts and caller.rate.per_minute is not None:
            caller.rate.count()
        return caller

    async def is_open(self) -> bool:
        """Whether no key is needed: on loopback, until there is one."""
        (since, has_keys), keys, now = self._has_keys, self._keys, time.monotonic()
        if self.loopback and now - since >= CACHED_S:
            has_keys = self.store is not None and await asyncio.to_thread(self.store.keys.any)
            if self._keys is keys:
                self._has_keys = (now, has_keys)
        return self.loopback and not has_keys

    async def holder(self, key_id: str) -> Caller | None:
        """The caller of a key whose secret was checked before; None once the key is no longer valid."""
        cached = await self._look_up(key_id)
        return cached.caller or (await self._caller(cached, cached.row) if cached.row is not None else None)

    async def _caller(self, cached: CachedKey, row: Key) -> Caller:
        limits = Limits(row.budget_usd, row.budget_day_usd, row.budget_month_usd)
        now = self.clock()
        spent = await self._spent(row, limits, now)
        # Both are kept when the key is looked up again, which would reset them; a look-up that others have overtaken
        # does not bring its limits back.
        is_current = row.id not in self._budgets or self._keys.get(row.id) is cached
        rate = self._rates.setdefault(row.id, Rate())
        budget = self._budgets.setdefault(row.id, Budget(clock=self.clock))
        if is_current:
            rate.per_minute = row.per_minute
            budget.renew(limits, spent, now)
        cached.caller = Caller(
            key_id=row.id,
            tenant=row.tenant,
            scopes=frozenset(row.scopes),
            budget=budget,
            ceiling=row.ceiling,
            may_force=row.may_force,
            profiles=None if row.profiles is None else frozenset(map(current_name, row.profiles)),
            rate=rate,
        )
        return cached.caller

    def forget(self) -> None:
        """Look up every key again: one was created, changed or revoked."""
        self._keys = OrderedDict()  # another one: a look-up under way may have read the old state
        self._has_keys = (-CACHED_S, False)

    async def _look_up(self, key_id: str) -> CachedKey:
        keys = self._keys
        now, cached = time.monotonic(), keys.get(key_id)
        if cached is not None and now < cached.until:
            return cached
        row = await asyncio.to_thread(self.store.keys.find, key_id) if self.store is not None else None
        until, at_ms = now + CACHED_S, now_ms()
        if row is not None and not row.is_valid(at_ms):
            row = None
        elif row is not None and row.expires_ms is not None:
            until = min(until, now + (row.expires_ms - at_ms) / 1000)
        cached = keys[key_id] = CachedKey(until, row)
        keys.move_to_end(key_id)
        while len(keys) > CACHED_KEYS:
            keys.popitem(last=False)
        return cached

    async def _spent(self, row: Key, limits: Limits, now: float) -> dict[Period, float]:
        """What other processes have spent of the limited periods. Only the budget itself knows what this one has booked
        and not yet written."""
        spent = {}
        for period in PERIODS:
            if limits.of(period) is not None and self.store is not None:
                since_ms = round(period.start(now) * 1000)
                spent[period] = await asyncio.to_thread(self.store.keys.spent, row.id, since_ms)
        return spent


def _credential(headers: Sequence[tuple[bytes, bytes]]) -> Credential:
    given = [value for name, value in headers if name in (b"authorization", b"x-api-key")]
    if not given:
        message = "a key is needed: send it as `Authorization: Bearer tno_…` or `x-api-key: tno_…`"
        raise Refused(401, "invalid_api_key", message)
    if len(given) > 1:
        raise Refused(400, "invalid_request_error", "more than one credential: send exactly one")
    text = given[0].decode("latin-1")
    scheme, space, rest = text.partition(" ")
    credential = read_credential(rest if space and scheme.lower() == "bearer" else text)
    if credential is None:
        raise Refused(401, "invalid_api_key", "this is not a Turnout key (tno_…); see turnout keys")
    return credential
