"""The smart home: Home Assistant. States come from its REST interface; areas and aliases, which are not in there, from
the registry lists of its WebSocket, or where those are not allowed from a template.

Turnout reads. A request to act is answered with what is the case, and with a note that nothing was switched: there is
no call in here that could.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import msgspec
from msgspec import Raw, Struct

from turnout.core.errors import NetError
from turnout.models.secret import Secret

from .fetch import BODY_BYTES, Site, health_of
from .home import UNASKED, Home, Thing, binary_state, look, names_of
from .source import Empty, Failure, Health, Result, SourceAnswer, SourceQuestion
from .telling import summarise, tell

READS_ONLY = "Turnout reads the home, it does not switch anything."
# How long areas and aliases are taken to stay as they are; states are read for every question.
REGISTRY_S = 300.0
# How many things one answer tells of, and how many it has facts of.
TOLD, FACTS = 20, 5000
# Entities whose aliases are asked for at once; a home has hundreds.
ALIASED = 5000
# For a user who may not read the registries: each area with the entities in it.
TEMPLATE = (
    "[{% for a in areas() %}{{ {'area_id': a, 'name': area_name(a), 'entities': area_entities(a)} | to_json }}"
    "{{ '' if loop.last else ',' }}{% endfor %}]"
)


class _Attributes(Struct, frozen=True):
    """Those that are told of; the others, of which there may be megabytes, are passed over. Each may be anything."""

    friendly_name: Any = None
    device_class: Any = None
    unit_of_measurement: Any = None
    current_temperature: Any = None
    temperature: Any = None
    temperature_unit: Any = None
    hvac_action: Any = None
    brightness: Any = None
    current_position: Any = None
    media_title: Any = None
    volume_level: Any = None
    humidity: Any = None
    battery_level: Any = None
    wind_speed: Any = None
    wind_speed_unit: Any = None
    percentage: Any = None


class _State(Struct, frozen=True):
    entity_id: str
    state: str = ""
    attributes: _Attributes = _Attributes()


_DETAILS = _Attributes.__struct_fields__[3:]


class _Area(Struct, frozen=True):
    area_id: str
    name: str
    aliases: list[str] = []
    floor_id: str | None = None


class _Floor(Struct, frozen=True):
    floor_id: str
    name: str
    aliases: list[str] = []


class _AreaOf(_Area, frozen=True):
    entities: list[str] = []


class _Entry(Struct, frozen=True):
    entity_id: str
    area_id: str | None = None
    device_id: str | None = None
    aliases: list[str | None] = []
    hidden_by: str | None = None


class _Device(Struct, frozen=True):
    id: str
    area_id: str | None = None


class Registry(Struct, frozen=True):
    """What the states do not say."""

    areas: Mapping[str, tuple[str, ...]] = {}
    """The names of each."""
    area_of: Mapping[str, str] = {}
    aliases: Mapping[str, tuple[str, ...]] = {}
    hidden: frozenset[str] = frozenset()


class HomeAssistant:
    def __init__(self, site: Site, token: Secret | None, description: str = "") -> None:
        self.name = site.name
        self.description = description or "the user's smart home: lights, doors, sensors, energy"
        self._site = site
        self._token = token
        self._registry = Registry()
        self._read_at: float | None = None
        self._reading = asyncio.Lock()
        self._home = Home(())

    async def ask(self, question: SourceQuestion) -> Result:
        home = await self._look()
        if isinstance(home, Failure):
            return home
        # A large home has thousands of names: not on the event loop.
        asked = await self._site.capacity.read(look, question.text, home)
        if not asked.things:
            told = summarise(question.text, home)
            return (
                SourceAnswer("\n".join(told[0]), facts=tuple(thing.fact for thing in told[1]))
                if told
                else Empty("the home")
            )
        facts = () if asked.unknown else tuple(thing.fact for thing in asked.things[:FACTS])
        text = "\n".join(tell(question.text, asked, TOLD))
        return SourceAnswer(text, facts=facts, note=READS_ONLY if asked.acts else "")

    async def check(self) -> Health:
        async def look_at_all() -> Home | Failure:
            home = await self._look()
            # Even a new one has its sun and its zone.
            return home if isinstance(home, Failure) or home.things else self._site.misread("no entity at all")

        return await health_of(look_at_all())

    def words(self) -> Sequence[str]:
        """The names and aliases of its things, as of the last time it was asked."""
        return names_of(self._home)

    @property
    def home(self) -> Home:
        """As it was when it was last asked."""
        return self._home

    async def _look(self) -> Home | Failure:
        states = await self._site.json("/api/states", list[_State], limit=BODY_BYTES)
        if isinstance(states, Failure):
            return states
        async with self._reading:
            if self._read_at is None or monotonic() - self._read_at > REGISTRY_S:
                self._registry = await self._read_registry([state.entity_id for state in states])
                self._read_at = monotonic()
        registry = self._registry
        self._home = Home(tuple(_things(states, registry)), tuple(registry.areas.values()))
        return self._home

    async def _read_registry(self, entities: Sequence[str]) -> Registry:
        """Areas and aliases; without them if neither way is open: the states alone answer, too."""
        try:
            return await self._from_socket(entities)
        except (NetError, msgspec.MsgspecError, RecursionError, LookupError):
            return await self._from_template()

    async def _from_socket(self, entities: Sequence[str]) -> Registry:
        wait_s = self._site.timeout_s
        target = f"{self._site.path}/api/websocket"
        request = self._site.request("GET", target)._replace(credential=None, shielded=self._token is not None)
        socket = await self._site.client.open_socket(request, wait_s)
        try:
            await socket.receive(wait_s)  # that it wants a token
            token = self._token.reveal() if self._token is not None else ""
            await socket.send(msgspec.json.encode({"type": "auth", "access_token": token}).decode())
            if msgspec.json.decode(await socket.receive(wait_s), type=_Said).type != "auth_ok":
                raise LookupError("the token is not accepted")

            async def fetch(number: int, kind: str, wanted: Any, **more: object) -> Any:
                await socket.send(msgspec.json.encode({"id": number, "type": kind, **more}).decode())
                said = msgspec.json.decode(await socket.receive(wait_s), type=_Said)
                if said.id != number or not said.success:
                    raise LookupError(f"{kind} is not allowed")
                return msgspec.json.decode(said.result, type=wanted)

            areas = await fetch(1, "config/area_registry/list", list[_Area])
            entries = await fetch(2, "config/entity_registry/list", list[_Entry])
            devices = await fetch(3, "config/device_registry/list", list[_Device])
            known = [entry.entity_id for entry in entries][:ALIASED]
            full = await fetch(4, "config/entity_registry/get_entries", dict[str, _Entry | None], entity_ids=known)
            # Only if areas are on floors: before 2024.4 there were none.
            storeys = any(area.floor_id for area in areas)
            floors = await fetch(5, "config/floor_registry/list", list[_Floor]) if storeys else []
        finally:
            await socket.close()
        room = {device.id: device.area_id for device in devices}
        placed = {entry.entity_id: entry.area_id or room.get(entry.device_id or "") for entry in entries}
        on = {floor.floor_id: (floor.name, *floor.aliases) for floor in floors}
        return Registry(
            {area.area_id: (area.name, *area.aliases, *on.get(area.floor_id or "", ())) for area in areas},
            {entity: area for entity, area in placed.items() if area},
            {name: tuple(filter(None, one.aliases)) for name, one in full.items() if one is not None and one.aliases},
            frozenset(entry.entity_id for entry in entries if entry.hidden_by),
        )

    async def _from_template(self) -> Registry:
        body = msgspec.json.encode({"template": TEMPLATE})
        headers = {"content-type": "application/json"}
        got = await self._site.send("POST", "/api/template", body=body, headers=headers)
        areas = got if isinstance(got, Failure) else self._site.read(got, list[_AreaOf])
        if isinstance(areas, Failure):
            return Registry()
        return Registry(
            {area.area_id: (area.name,) for area in areas},
            {entity: area.area_id for area in areas for entity in area.entities},
        )


class _Said(Struct, frozen=True):
    type: str
    id: int = 0
    success: bool = False
    result: Raw = Raw(b"null")


def _things(states: Sequence[_State], registry: Registry) -> Iterator[Thing]:
    for state in states:
        domain = state.entity_id.partition(".")[0]
        if domain in UNASKED or state.entity_id in registry.hidden:
            continue
        told = state.attributes
        name, device_class, unit = told.friendly_name, told.device_class, told.unit_of_measurement
        kind = device_class if isinstance(device_class, str) else ""
        shown = name if isinstance(name, str) and name.strip() else state.entity_id.partition(".")[2].replace("_", " ")
        yield Thing(
            state.entity_id,
            (shown, *registry.aliases.get(state.entity_id, ())),
            binary_state(state.state, kind) if domain == "binary_sensor" else state.state,
            registry.areas.get(registry.area_of.get(state.entity_id, ""), ()),
            kind,
            unit if isinstance(unit, str) else "",
            {key: value for key in _DETAILS if isinstance(value := getattr(told, key), int | float | str)},
        )
