"""Keys that change while they are looked up: what an overtaken look-up has read is not kept."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from turnout.store.keys import Key
from turnout.web.auth import Auth, digest

PEPPER = b"p" * 32
SECRET = "s" * 43
OLD = Key("0" * 12, digest(SECRET, PEPPER), "anna", budget_usd=100.0, per_minute=1000)
NEW = replace(OLD, budget_usd=1.0, per_minute=500)
HEADERS = [(b"x-api-key", f"tno_{OLD.id}_{SECRET}".encode())]


class SlowKeys:
    """A table of keys; its next answer to `slow` comes only once the gate opens, and is what it was before."""

    def __init__(self, *rows: Key) -> None:
        self.rows = {row.id: row for row in rows}
        self.slow = ""
        self.waiting, self.gate = threading.Event(), threading.Event()

    def _late(self, name: str, found: Any) -> Any:
        if self.slow == name:
            self.slow = ""
            self.waiting.set()
            assert self.gate.wait(10)
        return found

    def any(self) -> bool:
        return bool(self._late("any", bool(self.rows)))

    def find(self, ident: str) -> Key | None:
        row: Key | None = self._late("find", self.rows.get(ident))
        return row

    def spent(self, ident: str, since_ms: int) -> float:
        return float(self._late("spent", 0.0))


def authentication(keys: SlowKeys, *, loopback: bool = False) -> Auth:
    store: Any = SimpleNamespace(keys=keys)
    return Auth(store, PEPPER, loopback=loopback)


async def overtaken(keys: SlowKeys, slow: str, auth: Auth) -> None:
    """A look-up that begins before a key changes, and ends after another has seen the change."""
    keys.slow = slow
    first = asyncio.create_task(auth.caller(HEADERS))
    await asyncio.to_thread(keys.waiting.wait)
    keys.rows[NEW.id] = NEW
    auth.forget()
    for is_late in (False, True):
        if is_late:
            keys.gate.set()
            await first
        caller = await auth.caller(HEADERS)
        assert (caller.budget.limits.total, caller.rate.per_minute) == (1.0, 500), f"{slow}, late: {is_late}"


def test_new_limits_stay() -> None:
    for slow in ("find", "spent"):
        keys = SlowKeys(OLD)
        asyncio.run(overtaken(keys, slow, authentication(keys)))


def test_the_first_key_closes_a_server_at_once() -> None:
    async def main() -> None:
        keys = SlowKeys()
        auth = authentication(keys, loopback=True)
        keys.slow = "any"
        first = asyncio.create_task(auth.is_open())
        await asyncio.to_thread(keys.waiting.wait)
        keys.rows[NEW.id] = NEW
        auth.forget()
        keys.gate.set()
        assert await first, "there was none when it looked"
        assert not await auth.is_open()

    asyncio.run(main())
