"""Everything a process decides and acts with, put together in one place and read again in one way.

A reload builds all of it anew and then replaces it from one moment to the next. What cannot be used is reported, and
what was there stays: a running process never serves half of one state of the files and half of another.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from turnout.config.champion import idle_models
from turnout.config.load import shipped
from turnout.config.name import DEFAULT_PROFILE, RENAMED, current_name, old_name_notice
from turnout.config.reload import LiveRouter, stamp
from turnout.config.settings import settings_file
from turnout.core.errors import ConfigError, EmbedderError, Problem, UnknownProfile
from turnout.core.router import Router
from turnout.core.verdict import readable
from turnout.models.ask import Models
from turnout.models.price import learn
from turnout.models.remote import choose_embedder
from turnout.models.slot import Slots, load_slots
from turnout.net.client import Client
from turnout.store import Store

from .tune import tune

log = logging.getLogger("turnout.runtime")

# After a reload, requests that began before it may still connect where their own settings say. Longer than any waits
# for its first token by default.
BEFORE_S = 60.0
# How often the files are looked at; those that take long to read less often, so that a tenth of the time goes there.
LOOK_S = 1.0
IDLE_SHARE = 9.0
# Problems in one line of the log; a reload that was asked for lists all.
SAID = 8


class Reload(Struct, frozen=True, omit_defaults=True):
    """What reading everything again came to."""

    status: Literal["reloaded", "kept"]
    profile: str = ""
    """The default profile."""
    profiles: dict[str, str] = {}
    """The hash of each that is in use."""
    slots: list[str] = []
    problems: list[str] = []
    """Why what was there was kept."""


class Runtime:
    """What one process has. `profile` is the default one."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        profile: str | None = None,
        profiles: tuple[str, ...] = (),
        config: str | os.PathLike[str] | None = None,
    ) -> None:
        self.store = store
        self.config = config
        self._said: set[str] = set()
        """Old names that the log has heard of."""
        self._offered = profiles
        slots = learn(load_slots(config))
        self.models = Models(slots, Client(slots.egress))
        self.profile = self.name_of(profile or DEFAULT_PROFILE)
        """The default profile."""
        self._idle: dict[str, list[str]] = {}
        """What was last said of each profile's trained models that cannot run."""
        self._live = {self.profile: self._load(self.profile, self.models)}
        """What follows the files of each profile in use."""
        self._routers = _routers(self._live)
        """What is used: a profile that has changed waits until everything else is sound, too."""
        self._unusable: dict[str, str] = {}
        """What was last said of profiles that were asked for and cannot be used."""
        self._stamp = stamp(settings_file(config))
        self._narrowing: asyncio.TimerHandle | None = None
        self._reloading = asyncio.Lock()
        self.answering: dict[str, Any] = {}
        """Applications that answer in a chat, by the name of the model that a client asks for."""
        self.on_reload: list[Callable[[], None]] = []
        """Called when everything was replaced."""
        self.on_open: list[Callable[[], Awaitable[None]]] = []
        """Called when a server starts, beside its first requests."""
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        """Called before anything is closed."""

    def name_of(self, profile: str) -> str:
        """What a profile is called now; of a name it had before the log hears once."""
        if profile in RENAMED:
            self._tell([old_name_notice(profile)])
        return current_name(profile)

    def _tell(self, notices: Iterable[str]) -> None:
        for said in notices:
            if said not in self._said:
                self._said.add(said)
                log.warning("%s", said)

    def _load(self, name: str, models: Models) -> LiveRouter:
        embedder = choose_embedder(models.slots, models.client)
        live = LiveRouter(name, config=self.config, models=models, embedder=embedder)
        idle = idle_models(live.router.profile)
        if idle and idle != self._idle.get(name):
            log.warning("%s", "; ".join(idle))
        self._idle[name] = idle
        self._tell(live.router.profile.notices)
        return live

    @property
    def router(self) -> Router:
        """The default profile's."""
        return self._routers[self.profile]

    def routers(self) -> dict[str, Router]:
        """Those in use, by the name of their profile."""
        return dict(self._routers)

    def offered(self) -> tuple[str, ...]:
        """The profiles that may be asked for."""
        return (*shipped(), *self._offered, self.profile)

    def check_offered(self, name: str) -> None:
        """Raise UnknownProfile for a name that is not offered here. Files are looked for only once."""
        if name not in self._live and name not in (known := self.offered()):
            raise UnknownProfile(name, known)

    async def find_router(self, name: str) -> Router:
        """The router of a profile, built when it is first asked for; raises UnknownProfile, or ConfigError or
        EmbedderError, of which the log hears once."""
        self.check_offered(name)
        if name not in self._live:
            async with self._reloading:
                if name not in self._live:  # another request may have built it meanwhile
                    self._live[name] = await self._build(name)
                    self._routers[name] = self._live[name].router
        return self._routers[name]

    async def _build(self, name: str) -> LiveRouter:
        try:
            return await asyncio.to_thread(self._load, name, self.models)
        except (ConfigError, EmbedderError) as error:
            if self._unusable.get(name) != str(error):
                self._unusable[name] = str(error)
                _warn([readable(str(error))], f"the profile {name!r} cannot be served")
            raise

    async def tune(self, name: str, text: str) -> Router:
        """A router of the profile as this TOML changes it, for looking at; raises ConfigError."""
        models = self.models
        embedder = choose_embedder(models.slots, models.client)
        tuned = partial(tune, name, text, config=self.config, models=models, embedder=embedder)
        return Router(await asyncio.to_thread(tuned))

    async def watch(self) -> None:
        """Follow the files until cancelled: what they say is used from the moment it is sound. What is wrong is said
        once."""
        said: set[str] = set()
        wrong: list[str] = []
        pause_s = LOOK_S
        while True:
            await asyncio.sleep(pause_s)
            began = time.monotonic()
            changed = self._stamp != (looked := stamp(settings_file(self.config)))
            for live in list(self._live.values()):
                done = await asyncio.to_thread(live.poll)
                changed = changed or (done is not None and done.status == "swapped")
            # What is wrong may be in any file that the settings name: once they were refused, they are tried again.
            if changed or wrong:
                self._stamp = looked
                wrong = (await self._reload()).problems
            found = {*wrong, *(readable(str(problem)) for live in self._live.values() for problem in live.problems)}
            if fresh := sorted(found - said):
                _warn(fresh)
            said = found
            pause_s = max(LOOK_S, IDLE_SHARE * (time.monotonic() - began))

    async def reload(self) -> Reload:
        """Read slots and profiles again, now."""
        done = await self._reload()
        if done.problems:
            _warn(done.problems)
        return done

    async def _reload(self) -> Reload:
        async with self._reloading:
            try:
                models, live = await self._read_again()
            except ConfigError as error:
                return Reload("kept", problems=[readable(str(problem)) for problem in error.problems])
            except EmbedderError as error:
                return Reload("kept", problems=[readable(str(error))])
            self._allow(models.slots)
            self.models = models
            self._live, self._routers = live, _routers(live)
            for told in self.on_reload:
                told()
        hashes = {name: router.profile.hash for name, router in self._routers.items()}
        return Reload("reloaded", self.profile, hashes, sorted(models.slots.slots))

    async def _read_again(self) -> tuple[Models, dict[str, LiveRouter]]:
        """Slots and profiles from one and the same state of the settings file, which is read for each of them."""
        while True:
            before = stamp(settings_file(self.config))
            try:
                slots = await asyncio.to_thread(load_slots, self.config)
                _check_models(self.models.slots, slots)
                _check_keys(self.models.slots, slots)
                models = self.models.filled_with(await asyncio.to_thread(learn, slots))
                live = {name: await asyncio.to_thread(self._load, name, models) for name in self._live}
            except ConfigError:
                if before == stamp(settings_file(self.config)):
                    raise
                continue
            if before == stamp(settings_file(self.config)):
                return models, live

    def _allow(self, slots: Slots) -> None:
        """Let the client connect to these, and for a while to those before them."""
        egress = self.models.client.egress
        egress.allow(egress.origins | slots.origins, slots.proxy)
        if self._narrowing is not None:
            self._narrowing.cancel()
        self._narrowing = asyncio.get_running_loop().call_later(BEFORE_S, egress.allow, slots.origins, slots.proxy)

    async def close(self) -> None:
        for close in self.on_close:
            await close()
        if self._narrowing is not None:
            self._narrowing.cancel()
        await self.models.client.close()
        if self.store is not None:
            await asyncio.to_thread(self.store.close)


def _routers(live: dict[str, LiveRouter]) -> dict[str, Router]:
    return {name: one.router for name, one in live.items()}


def _check_models(old: Slots, new: Slots) -> None:
    """An editor that saves a file may empty it first: real models are not replaced by the demonstration model."""
    if new.demo and not old.demo:
        said = "no model is configured any more; restart the server to have the demonstration model answer"
        raise ConfigError([Problem("models", said)])


def _check_keys(old: Slots, new: Slots) -> None:
    """A key that was there and is gone is a mistake while a process runs, not a slot without one."""
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
