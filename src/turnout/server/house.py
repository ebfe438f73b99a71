"""Everything a running server has, put together in one place and taken apart in the right order."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from turnout.apps.caller import Caller, Refused
from turnout.apps.gateway.gateway import Gateway
from turnout.config.load import settings_file, shipped
from turnout.config.reload import LiveRouter
from turnout.core.errors import ConfigError, UnknownProfile, suggest
from turnout.core.router import Router
from turnout.models.ask import Models
from turnout.models.price import learn
from turnout.models.remote import choose_embedder
from turnout.models.slot import Slots, load_slots
from turnout.net.client import Client
from turnout.store import Store

from .admission import Admission
from .auth import Auth
from .guard import Guard
from .key import read_pepper
from .metrics import Metrics
from .settings import ServerSettings

log = logging.getLogger("turnout.server")

# After a reload, requests that began before it may still connect where their own settings say. Longer than any waits
# for its first token, unless told otherwise.
BEFORE_S = 60.0


class House:
    """One process's worth of server."""

    def __init__(
        self, settings: ServerSettings, store: Store | None, *, config: str | os.PathLike[str] | None = None
    ) -> None:
        self.settings = settings
        self.store = store
        self.config = config
        slots = load_slots(config)
        learn(slots)
        self.models = Models(slots, Client(slots.egress))
        self.guard = Guard(settings)
        self.auth = Auth(store, read_pepper(), loopback=settings.loopback)
        self.admission = Admission(settings.requests, settings.waiting, settings.wait_s, settings.lag_s)
        if store is not None:
            store.journal.is_busy = lambda: self.admission.is_refusing
        self.metrics = Metrics()
        self._live: dict[str, LiveRouter] = {}
        self.profile = self._auto(self.models)
        self._live[self.profile] = self._load(self.profile, self.models)
        self._stamp = _stamp(config)
        router = self._live[self.profile].router
        self.gateway = Gateway(lambda: router, self.models, store)
        """Under the settings of the moment. A request keeps the one it began with."""
        self._narrowing: asyncio.TimerHandle | None = None
        self._reloading = asyncio.Lock()
        self.asking: set[asyncio.Task[Any]] = set()
        """Requests whose answer has not begun."""
        self._tasks: list[asyncio.Task[Any]] = []

    def _auto(self, models: Models) -> str:
        """The profile that `auto` uses: with a model to ask in doubt where there is one."""
        return self.settings.profile or ("tiers" if models.slots.classifier is not None else "tiers-local")

    def _load(self, name: str, models: Models) -> LiveRouter:
        embedder = choose_embedder(models.slots, models.client)
        return LiveRouter(name, config=self.config, models=models, embedder=embedder)

    def router(self, profile: str | None, caller: Caller) -> Router:
        """The router of a profile this server serves and this caller may use."""
        name = profile or self.profile
        live = self._live.get(name)
        if live is None:
            # Looked for among the files only once: every request comes by here.
            known = (*shipped(), *self.settings.profiles, self.profile)
            if name not in known:
                said = f"no profile {name[:80]!r} is served here{suggest(name, known)}: {', '.join(known)}"
                raise Refused(404, "not_found_error", said)
        if caller.profiles is not None and name not in caller.profiles:
            raise Refused(403, "permission_error", f"this key may not use the profile {name!r}")
        if live is None:
            try:
                live = self._live.setdefault(name, self._load(name, self.models))
            except UnknownProfile as error:
                raise Refused(404, "not_found_error", str(error)) from None
        return live.router

    def stored(self) -> Store:
        if self.store is None:
            raise Refused(503, "not_available", "this server keeps no log: start it with a store")
        return self.store

    async def open(self) -> None:
        self._tasks = [asyncio.create_task(self.admission.watch()), asyncio.create_task(self._watch())]

    async def _watch(self) -> None:
        """Profiles are served as their files say, from the moment these are sound."""
        while True:
            await asyncio.sleep(1.0)
            changed = self._stamp != (stamp := _stamp(self.config))
            for live in list(self._live.values()):
                done = await asyncio.to_thread(live.poll)
                changed = changed or (done is not None and done.status == "swapped")
            if changed:
                self._stamp = stamp
                await self.reload()

    async def reload(self) -> dict[str, Any]:
        """Read slots, profiles and keys again; what cannot be used is reported, and what was there stays."""
        self.auth.forget()
        async with self._reloading:
            try:
                models, live = await self._read_again()
            except ConfigError as error:
                problems = [str(problem) for problem in error.problems]
                log.warning("the settings cannot be used, the old ones stay: %s", "; ".join(problems))
                return {"status": "kept", "problems": problems}
            return self._put_up(models, live)

    async def _read_again(self) -> tuple[Models, dict[str, LiveRouter]]:
        """Slots and profiles from one and the same state of the settings file, which is read for each of them."""
        while True:
            stamp = _stamp(self.config)
            try:
                slots = await asyncio.to_thread(load_slots, self.config)
                await asyncio.to_thread(learn, slots)
                models = self.models.filled_with(slots)
                names = {*self._live, self._auto(models)}
                live = {name: await asyncio.to_thread(self._load, name, models) for name in names}
            except ConfigError:
                if stamp == _stamp(self.config):
                    raise
                continue
            if stamp == _stamp(self.config):
                return models, live

    def _put_up(self, models: Models, live: dict[str, LiveRouter]) -> dict[str, Any]:
        """Serve these, from one moment to the next."""
        slots, profile = models.slots, self._auto(models)
        router = live[profile].router
        self._widen(slots)
        self.models, self.profile, self._live = models, profile, live
        self.gateway = self.gateway.under(lambda: router, models)
        hashes = {name: one.router.profile.hash for name, one in live.items()}
        return {"status": "reloaded", "profile": profile, "profiles": hashes, "slots": sorted(slots.slots)}

    def _widen(self, slots: Slots) -> None:
        """Allow these, and for a while those before them."""
        egress = self.models.client.egress
        egress.allow(egress.origins | slots.origins, slots.proxy)
        if self._narrowing is not None:
            self._narrowing.cancel()
        self._narrowing = asyncio.get_running_loop().call_later(BEFORE_S, egress.allow, slots.origins, slots.proxy)

    def cut(self) -> None:
        """End every generation: streams say that they are incomplete, requests without an answer are refused."""
        self.gateway.cut()
        while self.asking:
            self.asking.pop().cancel()

    async def close(self) -> None:
        if self._narrowing is not None:
            self._narrowing.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.models.client.close()
        if self.store is not None:
            await asyncio.to_thread(self.store.close)


def _stamp(config: str | os.PathLike[str] | None) -> tuple[int, int, int]:
    """Tells whether the settings file has changed."""
    file = settings_file(config)
    try:
        found = os.stat(file) if file is not None else None
    except OSError:
        found = None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else (0, -1, 0)
