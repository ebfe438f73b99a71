"""Everything a process decides and acts with: built in one place, reloaded in one way.

A reload builds everything new and then replaces it at once. If something cannot be used, it is reported and the old
state stays: a running process never mixes two states of the files.
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
from turnout.config.learning import learn_settings
from turnout.config.load import shipped
from turnout.config.name import DEFAULT_PROFILE, RENAMED, current_name, old_name_notice
from turnout.config.reload import LiveRouter, stamp
from turnout.config.server import server_settings
from turnout.config.settings import settings_file, store_settings
from turnout.core.errors import ConfigError, EmbedderError, Problem, UnknownProfile
from turnout.core.router import Router
from turnout.core.verdict import readable
from turnout.models.ask import Models
from turnout.models.price import look_up_prices
from turnout.models.remote import choose_embedder
from turnout.models.slot import Slots, load_slots
from turnout.net.client import Client
from turnout.store import Store

from .tune import tune

log = logging.getLogger("turnout.runtime")

# For this long after a reload, requests that started before it may still connect to the old origins. Longer than the
# default wait for a first token.
BEFORE_S = 60.0
# How often to check the files. The pause is at least nine times as long as a check, so checks take a tenth of the time.
LOOK_S = 1.0
IDLE_SHARE = 9.0
# Problems in one line of the log; the result of a requested reload lists all.
SAID = 8


class Reload(Struct, frozen=True, omit_defaults=True):
    """The result of a reload."""

    status: Literal["reloaded", "kept"]
    profile: str = ""
    """The default profile."""
    profiles: dict[str, str] = {}
    """The hash of each profile in use."""
    slots: list[str] = []
    problems: list[str] = []
    """Why the old state was kept."""


class Runtime:
    """The routers, models and store of one process. `profile` is the default one."""

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
        self._logged: set[str] = set()
        """Notices that have been logged."""
        self._offered = profiles
        slots = look_up_prices(load_slots(config))
        self.models = Models(slots, Client(slots.egress))
        self.profile = self.name_of(profile or DEFAULT_PROFILE)
        """The default profile."""
        self._idle: dict[str, list[str]] = {}
        """What was last logged about each profile's trained models that cannot run."""
        self._live = {self.profile: self._load(self.profile, self.models)}
        """Follow the files of each profile in use."""
        self._routers = _routers(self._live)
        """The routers in use. A changed profile is not used until everything else can be reloaded too."""
        self._unusable: dict[str, str] = {}
        """What was last logged about profiles that were requested and cannot be used."""
        self._stamp = stamp(settings_file(config))
        self._narrowing: asyncio.TimerHandle | None = None
        self._reloading = asyncio.Lock()
        self.chat_apps: dict[str, Any] = {}
        """Applications that answer in a chat, by the model name that clients request."""
        self.on_reload: list[Callable[[], None]] = []
        """Called after a reload."""
        self.on_open: list[Callable[[], Awaitable[None]]] = []
        """Called when a server starts, concurrently with its first requests."""
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        """Called before anything is closed."""

    def name_of(self, profile: str) -> str:
        """The current name of a profile; an old name is logged once."""
        if profile in RENAMED:
            self._log_once([old_name_notice(profile)])
        return current_name(profile)

    def _log_once(self, notices: Iterable[str]) -> None:
        for notice in notices:
            if notice not in self._logged:
                self._logged.add(notice)
                log.warning("%s", notice)

    def _load(self, name: str, models: Models) -> LiveRouter:
        embedder = choose_embedder(models.slots, models.client)
        live = LiveRouter(name, config=self.config, models=models, embedder=embedder)
        idle = idle_models(live.router.profile)
        if idle and idle != self._idle.get(name):
            log.warning("%s", "; ".join(idle))
        self._idle[name] = idle
        self._log_once(live.router.profile.notices)
        return live

    @property
    def router(self) -> Router:
        """The default profile's router."""
        return self._routers[self.profile]

    def routers(self) -> dict[str, Router]:
        """The routers in use, by the name of their profile."""
        return dict(self._routers)

    def offered(self) -> tuple[str, ...]:
        """The profiles that a client may name."""
        return tuple(dict.fromkeys((*shipped(), *self._offered, self.profile)))

    def check_offered(self, name: str) -> None:
        """Raise UnknownProfile for a profile that is not offered."""
        if name not in self._live and name not in (known := self.offered()):
            raise UnknownProfile(name, known)

    async def find_router(self, name: str) -> Router:
        """The router of a profile, built on first use; raises UnknownProfile, or a ConfigError or EmbedderError, which
        is logged once."""
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
        """A router of the profile with the changes in this TOML, not put to use; raises ConfigError."""
        models = self.models
        embedder = choose_embedder(models.slots, models.client)
        tuned = partial(tune, name, text, config=self.config, models=models, embedder=embedder)
        return Router(await asyncio.to_thread(tuned))

    async def watch(self) -> None:
        """Reload whenever the files change, until cancelled. Each problem is logged once."""
        logged: set[str] = set()
        problems: list[str] = []
        pause_s = LOOK_S
        while True:
            await asyncio.sleep(pause_s)
            started = time.monotonic()
            changed = self._stamp != (seen := stamp(settings_file(self.config)))
            for live in list(self._live.values()):
                reloaded = await asyncio.to_thread(live.poll)
                changed = changed or (reloaded is not None and reloaded.status == "swapped")
            # A problem may be in any file that the settings name, so after a failed reload try again at every check.
            if changed or problems:
                self._stamp = seen
                problems = (await self._reload()).problems
            found = {*problems, *(readable(str(problem)) for live in self._live.values() for problem in live.problems)}
            if fresh := sorted(found - logged):
                _warn(fresh)
            logged = found
            pause_s = max(LOOK_S, IDLE_SHARE * (time.monotonic() - started))

    async def reload(self) -> Reload:
        """Read slots and profiles again."""
        result = await self._reload()
        if result.problems:
            _warn(result.problems)
        return result

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
            for call in self.on_reload:
                call()
        hashes = {name: router.profile.hash for name, router in self._routers.items()}
        return Reload("reloaded", self.profile, hashes, sorted(models.slots.slots))

    async def _read_again(self) -> tuple[Models, dict[str, LiveRouter]]:
        """Slots and profiles from the same state of the settings file, which is read once for each of them."""
        while True:
            before = stamp(settings_file(self.config))
            try:
                slots = await asyncio.to_thread(load_slots, self.config)
                await asyncio.to_thread(_check_other_tables, self.config)
                _check_models(self.models.slots, slots)
                _check_keys(self.models.slots, slots)
                models = self.models.filled_with(await asyncio.to_thread(look_up_prices, slots))
                live = {name: await asyncio.to_thread(self._load, name, models) for name in self._live}
            except ConfigError:
                if before == stamp(settings_file(self.config)):
                    raise
                continue
            if before == stamp(settings_file(self.config)):
                return models, live

    def _allow(self, slots: Slots) -> None:
        """Let the client connect to the origins of these slots, and for a while to the old ones."""
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


def _check_other_tables(config: str | os.PathLike[str] | None) -> None:
    """Refuse mistakes in the tables that are only read at the next start, which would fail."""
    problems: list[Problem] = []
    for read in (server_settings, store_settings, learn_settings):
        try:
            read(config)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)


def _check_models(old: Slots, new: Slots) -> None:
    """Refuse to replace real models by the demonstration model: an editor may empty a file before it saves it."""
    if new.demo and not old.demo:
        text = "no model is configured any more; restart the server to have the demonstration model answer"
        raise ConfigError([Problem("models", text)])


def _check_keys(old: Slots, new: Slots) -> None:
    """Refuse slots that have lost their key: while a process runs, that is a mistake."""
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
