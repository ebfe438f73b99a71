"""One authentication for every route: a request becomes a `Caller`, or is refused. There is no caller by default."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeGuard, TypeVar

from turnout.apps.caller import PERIODS, Budget, Caller, Limits, Rate
from turnout.core.errors import Refused
from turnout.models.generate import PASSED
from turnout.store import Store
from turnout.store.keys import Key

from .key import SCOPES, Credential, digest, read_credential

# Within this time a revoked key stops working, and what other processes have booked on a key is noticed.
CACHED_S = 30.0
CACHED_KEYS = 10_000
_NOBODY = "0" * 64


class Proven(NamedTuple):
    """A key whose secret was shown and is right, for as long as its row is the one that was looked up."""

    row: Key
    proof: bytes
    """A digest of the secret, under a key that lives as long as the process."""
    caller: Caller


class Auth:
    """Knows keys. `open` is a server on loopback that has none: everybody on this machine may ask."""

    def __init__(
        self, store: Store | None, pepper: bytes, *, loopback: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.pepper = pepper
        self.loopback = loopback
        self.clock = clock
        self._keys: OrderedDict[str, tuple[float, Key | None]] = OrderedDict()
        self._once = secrets.token_bytes(32)
        """Keys the digests of secrets that are kept in memory; it is this process's own and never leaves it."""
        self._proven: dict[str, Proven] = {}
        self._budgets: dict[str, Budget] = {}
        self._rates: dict[str, Rate] = {}
        self._anyone = Caller("", "", frozenset(SCOPES) - {"admin"}, Budget())
        self._owner = Caller("", "", frozenset(SCOPES), Budget())
        self._has_keys: tuple[float, bool] | None = None

    async def caller(self, headers: Sequence[tuple[bytes, bytes]], *, admin: bool = False) -> Caller:
        """Who sends these headers."""
        now = time.monotonic()
        if self.loopback and not (self._has_keys[1] if _is_fresh(self._has_keys, now) else await self._any_keys(now)):
            return self._owner if admin else self._anyone
        credential = self._credential(headers)
        cached = self._keys.get(credential.key_id)
        row = cached[1] if _is_fresh(cached, now) else await self._find(credential.key_id, now)
        proof = hashlib.blake2b(credential.secret.encode(), key=self._once).digest()
        proven = self._proven.get(credential.key_id)
        if proven is None or proven.row is not row or not hmac.compare_digest(proof, proven.proof):
            proven = await self._prove(credential, row, proof)
        if not proven.row.is_valid(time.time_ns() // 1_000_000):
            raise _unknown()
        proven.caller.rate.count()
        return proven.caller

    async def _prove(self, credential: Credential, row: Key | None, proof: bytes) -> Proven:
        """See whether the secret is the key's, and remember it if so: the store's digest is slow to make."""
        # Compared even where there is no such key, so that both take the same time.
        same = hmac.compare_digest(digest(credential.secret, self.pepper), row.digest if row is not None else _NOBODY)
        if row is None or not same:
            raise _unknown()
        caller = Caller(
            key_id=row.id,
            tenant=row.tenant,
            scopes=frozenset(row.scopes),
            budget=await self._budget(row),
            ceiling=row.ceiling,
            may_force=row.may_force,
            profiles=None if row.profiles is None else frozenset(row.profiles),
            rate=self._rate(row),
        )
        if len(self._proven) >= CACHED_KEYS:
            self._proven.clear()
        proven = self._proven[row.id] = Proven(row, proof, caller)
        return proven

    def forget(self) -> None:
        """Look every key up again: one was made, changed or revoked."""
        self._keys.clear()
        self._proven.clear()
        self._has_keys = None

    def _credential(self, headers: Sequence[tuple[bytes, bytes]]) -> Credential:
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

    async def _any_keys(self, now: float) -> bool:
        found = self.store is not None and await asyncio.to_thread(self.store.keys.any)
        self._has_keys = (now, found)
        return found

    async def _find(self, key_id: str, now: float) -> Key | None:
        row = await asyncio.to_thread(self.store.keys.find, key_id) if self.store is not None else None
        self._keys[key_id] = (now, row)
        self._keys.move_to_end(key_id)
        while len(self._keys) > CACHED_KEYS:
            self._keys.popitem(last=False)
        return row

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


T = TypeVar("T")


def _is_fresh(cached: tuple[float, T] | None, now: float) -> TypeGuard[tuple[float, T]]:
    return cached is not None and now - cached[0] < CACHED_S


def _unknown() -> Refused:
    return Refused(401, "invalid_api_key", "this key is not known here, or no longer valid")


# Every other header is nobody's business here.
_READ = {name.encode(): name for name in ("host", "origin", "sec-fetch-site", "content-length", *PASSED)}


def header_map(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """The headers anybody reads, by name. Of a repeated one the first counts: nothing decided by them may appear twice
    anyway."""
    found: dict[str, str] = {}
    for name, value in headers:
        read = _READ.get(name)
        if read is not None:
            found.setdefault(read, value.decode("latin-1"))
    return found
