"""Everything a running server has, put together in one place and taken apart in the right order."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Gateway
from turnout.config.load import settings_file, shipped
from turnout.config.reload import LiveRouter
from turnout.core.contain import readable
from turnout.core.errors import SHOWN, ConfigError, EmbedderError, Problem, Refused, UnknownProfile, suggest
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
from .settings import ServerSettings, is_loopback

log = logging.getLogger("turnout.server")

# After a reload, requests that began before it may still connect where their own settings say. Longer than any waits
# for its first token, unless told otherwise.
BEFORE_S = 60.0
# What is cut has this long to tell its client so, and then as long again before its connection is closed.
CUT_S = 2.0
# How often the files are looked at; those that take long to read less often, so that a tenth of the time goes there.
LOOK_S = 1.0
IDLE_SHARE = 9.0
# Problems in one line of the log; /admin/reload lists all.
SAID = 8


def check_exposure(settings: ServerSettings, store: Store | None) -> None:
    """Beyond loopback everybody can come: then a key must exist."""
    for name, host in (("host", settings.host), ("admin_host", settings.admin_host)):
        if not is_loopback(host) and (store is None or not store.keys.any()):
            said = f"{host} is reachable from other machines and there is no key: turnout keys create NAME"
            raise ConfigError([Problem(f"server.{name}", said)])


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
        self._refused: dict[str, str] = {}
        """What was last said of profiles that a request has asked for and that cannot be used."""
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
        self.requests: set[asyncio.Task[Any]] = set()
        """All that are under way."""
        self._tasks: list[asyncio.Task[Any]] = []

    def _auto(self, models: Models) -> str:
        """The profile that `auto` uses: with a model to ask in doubt where there is one."""
        return self.settings.profile or ("tiers" if models.slots.classifier is not None else "tiers-local")

    def _load(self, name: str, models: Models) -> LiveRouter:
        embedder = choose_embedder(models.slots, models.client)
        return LiveRouter(name, config=self.config, models=models, embedder=embedder)

    def router(self, caller: Caller) -> Router:
        """The gateway's router, where its profile is one this caller may use."""
        return self._live[self._named(None, caller)].router

    async def router_of(self, profile: str | None, caller: Caller) -> Router:
        """The router of a profile this server serves and this caller may use, built when it is first asked for."""
        name = self._named(profile, caller)
        if name not in self._live:
            async with self._reloading:
                if name not in self._live:  # another request may have built it meanwhile
                    self._live[name] = await self._build(name)
        return self._live[name].router

    async def _build(self, name: str) -> LiveRouter:
        try:
            return await asyncio.to_thread(self._load, name, self.models)
        except UnknownProfile as error:
            raise Refused(404, "not_found_error", str(error)) from None
        except (ConfigError, EmbedderError) as error:
            if self._refused.get(name) != str(error):
                self._refused[name] = str(error)
                _warn([readable(str(error))], f"the profile {name!r} cannot be served")
            said = f"the profile {name!r} cannot be used: the server's log says what is wrong with it"
            raise Refused(503, "not_available", said) from None

    def _named(self, profile: str | None, caller: Caller) -> str:
        name = profile or self.profile
        if name not in self._live:
            # Looked for among the files only once: every request comes by here.
            known = (*shipped(), *self.settings.profiles, self.profile)
            if name not in known:
                said = f"no profile {name[:SHOWN]!r} is served here{suggest(name, known)}: {', '.join(known)}"
                raise Refused(404, "not_found_error", said)
        if caller.profiles is not None and name not in caller.profiles:
            raise Refused(403, "permission_error", f"this key may not use the profile {name!r}")
        return name

    def stored(self) -> Store:
        if self.store is None:
            raise Refused(503, "not_available", "this server keeps no log: start it with a store")
        return self.store

    async def open(self) -> None:
        self._tasks = [asyncio.create_task(self.admission.watch()), asyncio.create_task(self._watch())]

    async def _watch(self) -> None:
        """Profiles are served as their files say, from the moment these are sound. What is wrong is said once."""
        said: set[str] = set()
        wrong: list[str] = []
        pause_s = LOOK_S
        while True:
            await asyncio.sleep(pause_s)
            began = time.monotonic()
            changed = self._stamp != (stamp := _stamp(self.config))
            for live in list(self._live.values()):
                done = await asyncio.to_thread(live.poll)
                changed = changed or (done is not None and done.status == "swapped")
            # What is wrong may be in any file that the settings name: once they were refused, they are tried again.
            if changed or wrong:
                self._stamp = stamp
                wrong = (await self._reload()).get("problems", [])
            found = {*wrong, *(readable(str(problem)) for live in self._live.values() for problem in live.problems)}
            if fresh := sorted(found - said):
                _warn(fresh)
            said = found
            pause_s = max(LOOK_S, IDLE_SHARE * (time.monotonic() - began))

    async def reload(self) -> dict[str, Any]:
        """Read slots, profiles and keys again; what cannot be used is reported, and what was there stays."""
        told = await self._reload()
        if "problems" in told:
            _warn(told["problems"])
        return told

    async def _reload(self) -> dict[str, Any]:
        self.auth.forget()
        async with self._reloading:
            try:
                models, live = await self._read_again()
            except ConfigError as error:
                return {"status": "kept", "problems": [readable(str(problem)) for problem in error.problems]}
            except EmbedderError as error:
                return {"status": "kept", "problems": [readable(str(error))]}
            return self._put_up(models, live)

    async def _read_again(self) -> tuple[Models, dict[str, LiveRouter]]:
        """Slots and profiles from one and the same state of the settings file, which is read for each of them."""
        while True:
            stamp = _stamp(self.config)
            try:
                slots = await asyncio.to_thread(load_slots, self.config)
                _demand_models(self.models.slots, slots)
                _demand_keys(self.models.slots, slots)
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

    async def drain(self, now: asyncio.Event | None = None) -> None:
        """Not ready; then wait for what is running, as long as the settings say or until `now`; then cut it."""
        self.admission.draining = True
        await self._wait(self.settings.drain_s, now)
        self.cut()
        # What is cut still has its last event to send.
        await self._wait(CUT_S, now)

    async def _wait(self, seconds: float, now: asyncio.Event | None) -> None:
        until = time.monotonic() + seconds
        while self.admission.active and time.monotonic() < until and not (now is not None and now.is_set()):
            await asyncio.sleep(0.02)

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


def _demand_models(old: Slots, new: Slots) -> None:
    """An editor that saves a file may empty it first: real models are not replaced by the demonstration model."""
    if new.demo and not old.demo:
        said = "no model is configured any more; restart the server to have the demonstration model answer"
        raise ConfigError([Problem("models", said)])


def _demand_keys(old: Slots, new: Slots) -> None:
    """A key that was there and is gone is a mistake while a server runs, not a slot without one."""
    problems = [
        Problem(f"models.{name}", f"its key is gone: {slot.needs_key} is missing or empty")
        for name, slot in new.slots.items()
        if slot.needs_key and (was := old.slots.get(name)) is not None and was.key is not None
        if (was.id, was.origin) == (slot.id, slot.origin)
    ]
    if problems:
        raise ConfigError(problems)


def _warn(problems: list[str], what: str = "the settings cannot be used, the old ones stay") -> None:
    more = f"; and {len(problems) - SAID:,} more" if len(problems) > SAID else ""
    log.warning("%s: %s%s", what, "; ".join(problems[:SAID]), more)


def _stamp(config: str | os.PathLike[str] | None) -> tuple[int, int, int]:
    """Tells whether the settings file has changed."""
    file = settings_file(config)
    try:
        found = os.stat(file) if file is not None else None
    except (OSError, ValueError):
        found = None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else (0, -1, 0)
