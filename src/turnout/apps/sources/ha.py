"""The smart home: Home Assistant. States come from its REST API; areas and aliases, which that does not have, from the
registry lists of its WebSocket API, or if those are not allowed from a template.

Turnout only reads. A request to act is answered with the current states and a note that nothing was switched: no call
in here could.
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
from .source import Empty, Failure, Health, Result, Source, SourceAnswer, SourceQuestion
from .telling import summarise, tell

READS_ONLY = "Turnout reads the home, it does not switch anything."
# Seconds that areas and aliases are cached; states are read for every question.
REGISTRY_S = 300.0
# Things listed in one answer, and things it has facts of.
TOLD, FACTS = 20, 5000
# Entities whose aliases are requested at once; a home has hundreds.
ALIASED = 5000
# For a user who may not read the registries: each area with its entities.
TEMPLATE = (
    "[{% for a in areas() %}{{ {'area_id': a, 'name': area_name(a), 'entities': area_entities(a)} | to_json }}"
    "{{ '' if loop.last else ',' }}{% endfor %}]"
)


class _Attributes(Struct, frozen=True):
    """Those that are shown; others, of which there may be megabytes, are skipped. Each may be anything."""

    friendly_name: Any = None
    device_class: Any = None
    unit_of_measurement: Any = None
    current_temperature: Any = None
    temperature: Any = None
    temperature_unit: Any = None
    brightness: Any = None
    current_position: Any = None
    media_title: Any = None
    humidity: Any = None
    wind_speed: Any = None
    wind_speed_unit: Any = None


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
    """Areas and aliases, which the states do not have."""

    areas: Mapping[str, tuple[str, ...]] = {}
    """The names of each area, by id."""
    area_of: Mapping[str, str] = {}
    aliases: Mapping[str, tuple[str, ...]] = {}
    hidden: frozenset[str] = frozenset()


class HomeAssistant(Source):
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
        # In a thread: a large home has thousands of names.
        asked = await self._site.capacity.read(look, question.text, home)
        if not asked.things:
            summary = summarise(question.text, home)
            if summary is None:
                return Empty()
            lines, things = summary
            return SourceAnswer("\n".join(lines), facts=tuple(thing.fact for thing in things))
        facts = () if asked.unknown else tuple(thing.fact for thing in asked.things[:FACTS])
        text = "\n".join(tell(question.text, asked, TOLD))
        return SourceAnswer(text, facts=facts, note=READS_ONLY if asked.acts else "")

    async def check(self) -> Health:
        async def look_at_all() -> Home | Failure:
            home = await self._look()
            # Even a new home has a sun and a zone.
            return home if isinstance(home, Failure) or home.things else self._site.misread("no entity at all")

        return await health_of(look_at_all())

    def words(self) -> Sequence[str]:
        """The names and aliases of its things, as of the last question."""
        return names_of(self._home)

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
        """Areas and aliases; none if both ways fail, since the states alone can answer too."""
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
            await socket.receive(wait_s)  # auth_required
            token = self._token.reveal() if self._token is not None else ""
            await socket.send(msgspec.json.encode({"type": "auth", "access_token": token}).decode())
            if msgspec.json.decode(await socket.receive(wait_s), type=_Reply).type != "auth_ok":
                raise LookupError("the token is not accepted")

            async def fetch(number: int, kind: str, wanted: Any, **more: object) -> Any:
                await socket.send(msgspec.json.encode({"id": number, "type": kind, **more}).decode())
                reply = msgspec.json.decode(await socket.receive(wait_s), type=_Reply)
                if reply.id != number or not reply.success:
                    raise LookupError(f"{kind} is not allowed")
                return msgspec.json.decode(reply.result, type=wanted)

            areas = await fetch(1, "config/area_registry/list", list[_Area])
            entries = await fetch(2, "config/entity_registry/list", list[_Entry])
            devices = await fetch(3, "config/device_registry/list", list[_Device])
            known = [entry.entity_id for entry in entries][:ALIASED]
            full = await fetch(4, "config/entity_registry/get_entries", dict[str, _Entry | None], entity_ids=known)
            # Only if areas have floors: versions before 2024.4 do not know them.
            has_floors = any(area.floor_id for area in areas)
            floors = await fetch(5, "config/floor_registry/list", list[_Floor]) if has_floors else []
        finally:
            await socket.close()
        area_of_device = {device.id: device.area_id for device in devices}
        area_of = {entry.entity_id: entry.area_id or area_of_device.get(entry.device_id or "") for entry in entries}
        floor_names = {floor.floor_id: (floor.name, *floor.aliases) for floor in floors}
        return Registry(
            {area.area_id: (area.name, *area.aliases, *floor_names.get(area.floor_id or "", ())) for area in areas},
            {entity: area for entity, area in area_of.items() if area},
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


class _Reply(Struct, frozen=True):
    type: str
    id: int = 0
    success: bool = False
    result: Raw = Raw(b"null")


def _things(states: Sequence[_State], registry: Registry) -> Iterator[Thing]:
    for state in states:
        domain = state.entity_id.partition(".")[0]
        if domain in UNASKED or state.entity_id in registry.hidden:
            continue
        attributes = state.attributes
        name, device_class, unit = attributes.friendly_name, attributes.device_class, attributes.unit_of_measurement
        kind = device_class if isinstance(device_class, str) else ""
        shown = name if isinstance(name, str) and name.strip() else state.entity_id.partition(".")[2].replace("_", " ")
        yield Thing(
            state.entity_id,
            (shown, *registry.aliases.get(state.entity_id, ())),
            binary_state(state.state, kind) if domain == "binary_sensor" else state.state,
            registry.areas.get(registry.area_of.get(state.entity_id, ""), ()),
            kind,
            unit if isinstance(unit, str) else "",
            {key: value for key in _DETAILS if isinstance(value := getattr(attributes, key), int | float | str)},
        )
