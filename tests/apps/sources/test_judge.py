"""Conditions judged by facts: a table for each source that can judge, and what three values promise."""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.apps.sources.judge import judge
from turnout.apps.sources.source import EntityState, Fact, HourOfWeather, MonitorState

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Case(NamedTuple):
    condition: str
    facts: tuple[Fact, ...]
    holds: bool | None

    @property
    def id(self) -> str:
        return f"{self.condition} {[getattr(one, 'state', getattr(one, 'up', None)) for one in self.facts]}"


def lights(*states: str) -> tuple[Fact, ...]:
    return tuple(EntityState(f"light.{n}", f"Light {n}", state, kind="light") for n, state in enumerate(states))


def doors(*states: str) -> tuple[Fact, ...]:
    return tuple(EntityState(f"lock.{n}", f"Door {n}", state, kind="lock") for n, state in enumerate(states))


def one(state: str, kind: str, unit: str = "") -> tuple[Fact, ...]:
    return (EntityState(f"{kind}.x", "It", state, kind=kind, unit=unit),)


def people(*states: str) -> tuple[Fact, ...]:
    return tuple(EntityState(f"person.{n}", f"P{n}", state, kind="person") for n, state in enumerate(states))


def services(*up: bool | None) -> tuple[Fact, ...]:
    return tuple(MonitorState(f"downloader {n}", state) for n, state in enumerate(up))


def weather(code: int, chance: float | None = None, **more: float) -> tuple[Fact, ...]:
    return (HourOfWeather(AT, code, chance, **more),)


HOME = [
    Case("the front door is locked", doors("locked"), True),
    Case("the front door is locked", doors("unlocked"), False),
    Case("the front door is unlocked", doors("unlocked"), True),
    Case("the front door is not locked", doors("unlocked"), True),
    Case("the front door isn't locked", doors("locked"), False),
    Case("the front door isn’t locked", doors("locked"), False),
    Case("the front door isnt unlocked", doors("locked"), True),
    Case("the doors are locked", doors("locked", "locked"), True),
    Case("the doors are locked", doors("locked", "unlocked"), False),
    Case("the doors aren't locked", doors("locked", "unlocked"), True),
    Case("all the doors are locked", doors("locked", "unlocked"), False),
    Case("not all doors are locked", doors("locked", "unlocked"), True),
    Case("any door is unlocked", doors("locked", "unlocked"), True),
    Case("any door is not locked", doors("locked", "unlocked"), True),
    Case("any of the doors isn't unlocked", doors("unlocked", "unlocked"), False),
    Case("no door is unlocked", doors("locked", "locked"), True),
    Case("none of the doors are locked", doors("locked", "unlocked"), False),
    Case("a door is unlocked", doors("locked", "locked"), False),
    Case("the door is locked", doors("jammed"), False),
    Case("the door is locked", doors("unavailable"), None),
    Case("the doors are locked", doors("unavailable", "unlocked"), False),
    Case("the doors are locked", doors("unavailable", "locked"), None),
    Case("any door is unlocked", doors("unavailable", "unlocked"), True),
    Case("any door is unlocked", doors("unknown", "locked"), None),
    Case("any lights are on", lights("off", "on"), True),
    Case("any lights are on", lights("off", "off"), False),
    Case("the lights are on", lights("off", "on"), True),
    Case("the lights are off", lights("off", "on"), False),
    Case("all lights are off", lights("off", "off"), True),
    Case("every light is on", lights("on", "off"), False),
    Case("the lights aren't on", lights("off", "off"), True),
    Case("the lights aren't on", lights("off", "on"), False),
    Case("no lights are on", lights("on", "off"), False),
    Case("both lights are on", lights("on", "on"), True),
    Case("all the lights are not on", lights("off", "off"), True),
    Case("the kitchen light is still on", lights("on"), True),
    Case("the garage door is open", one("closed", "garage"), False),
    Case("the garage door is open", one("opening", "garage"), True),
    Case("the garage is closed", one("closed", "garage"), True),
    Case("the garage is shut", one("closed", "garage"), True),
    Case("a window is open", one("open", "window"), True),
    Case("the windows are closed", one("open", "window"), False),
    Case("the sprinklers are on", one("open", "valve"), True),
    Case("the sprinklers are off", one("open", "valve"), False),
    Case("the music is playing", one("playing", "media_player"), True),
    Case("the tv is on", one("standby", "media_player"), False),
    Case("the vacuum is docked", one("cleaning", "vacuum"), False),
    Case("anyone is home", people("home", "not_home"), True),
    Case("everyone is home", people("home", "not_home"), False),
    Case("Anna, Ben and Carl are home", people("home", "home", "home"), True),
    Case("Anna, Ben and Carl are home", people("home", "not_home", "home"), False),
    Case("nobody is home", people("not_home", "not_home"), True),
    Case("no one is home", people("not_home", "home"), False),
    Case("Anna is away", people("not_home"), True),
    Case("there is motion in the yard", one("detected", "motion"), True),
    Case("any motion was detected", one("clear", "motion"), False),
    Case("there's a leak", one("wet", "moisture"), True),
    Case("there is no leak", one("dry", "moisture"), True),
    Case("the alarm is armed", one("armed_away", "alarm_control_panel"), True),
    Case("the alarm isn't armed", one("disarmed", "alarm_control_panel"), True),
    Case("the battery is low", one("15", "battery", "%"), True),
    Case("the battery is low", one("95", "battery", "%"), False),
    Case("the battery isn't low", one("95", "battery", "%"), True),
    Case("the battery is low", one("low", "battery"), True),
    Case("the temperature is above 23", one("25", "temperature", "°C"), True),
    Case("the temperature in the guest room is above 23", one("21", "temperature", "°C"), False),
    Case("it is below 18 degrees", one("17.9", "temperature", "°C"), True),
    Case("it is at least 20", one("20", "temperature", "°C"), True),
    Case("it is over 20", one("20", "temperature", "°C"), False),
    Case("it is below -5", one("-10", "temperature", "°C"), True),
    Case("it is above 70 °F", one("22", "temperature", "°C"), True),
    Case("it is above 20 degrees celsius", one("60", "temperature", "°F"), False),
    Case("the humidity is more than 60 %", one("55", "humidity", "%"), False),
    Case("it isn't above 23", one("21", "temperature", "°C"), True),
    Case("the power is over 1000", one("unknown", "power", "W"), None),
    Case("the front door is painted", doors("locked"), None),
    Case("the light is locked", lights("on"), None),
    Case("", lights("on"), None),
]
UPTIME = [
    Case("Plex is up", services(True), True),
    Case("Plex is down", services(True), False),
    Case("Plex isn't up", services(False), True),
    Case("Plex isn't up", services(True), False),
    Case("Plex is not down", services(True), True),
    Case("all services are up", services(True, True), True),
    Case("all services are up", services(True, False), False),
    Case("anything is down", services(True, True), False),
    Case("anything is down", services(True, False), True),
    Case("everything is down", services(False, True), False),
    Case("everything is online", services(True, True, True), True),
    Case("nothing is down", services(True, True), True),
    Case("any services are offline", services(True, False), True),
    Case("the server is running", services(True), True),
    Case("there is an outage", services(True, False), True),
    Case("there are no outages", services(True, True), True),
    Case("not everything is up", services(True, False), True),
    Case("Plex is up", services(None), None),
    Case("all services are up", services(None, True), None),
    Case("all services are up", services(None, False), False),
    Case("anything is down", services(None, False), True),
    Case("Plex is pretty", services(True), None),
]
WEATHER = [
    Case("it rains tomorrow", weather(61, 0.8), True),
    Case("it rains tomorrow", weather(0, 0.05), False),
    Case("it is going to rain", weather(0, 0.05), False),
    Case("it doesn't rain", weather(0, 0.05), True),
    Case("it won't rain", weather(63, 0.9), False),
    Case("there is no rain", weather(3, 0.1), True),
    Case("it is raining", weather(63), True),
    Case("it is raining", weather(3), False),
    Case("it will drizzle", weather(51, 0.1, rain_mm=0.1), False),
    Case("it rains", weather(61, 0.4, rain_mm=3.0), True),
    Case("it rains", weather(73, 0.9, snow_cm=4.0), False),
    Case("it snows", weather(73, 0.9, snow_cm=4.0), True),
    Case("it snows", weather(63, 0.9), False),
    Case("it stays dry", weather(61, 0.8), False),
    Case("it stays dry", weather(2, 0.1), True),
    Case("it rains at all", (*weather(0, 0.0), *weather(61, 0.7)), True),
    Case("it is sunny", weather(0), True),
    Case("it's sunny", weather(3), False),
    Case("it is not sunny", weather(3), True),
    Case("it is cloudy", weather(3), True),
    Case("there is a thunderstorm", weather(95, 0.6), True),
    Case("it is foggy", weather(45), True),
    Case("it is windy", weather(0, wind_kmh=50.0), True),
    Case("it is windy", weather(0, wind_kmh=12.0), False),
    Case("it is windy", weather(0), None),
    Case("it freezes tonight", weather(0, low_c=-2.0), True),
    Case("it is hot", weather(0, high_c=31.0), True),
    Case("it is cold", weather(0, low_c=15.0), False),
    Case("it is above 25 degrees", weather(0, low_c=12.0, high_c=27.0), True),
    Case("it is above 80 °F", weather(0, low_c=12.0, high_c=25.0), False),
    Case("it gets below 0", weather(0, low_c=-1.0, high_c=8.0), True),
    Case("the chance of rain is above 50 %", weather(61, 0.4), False),
    Case("the moon is full", weather(0), None),
]
NOTHING = [
    Case("it rains", (), None),
    Case("the lights are on", (*lights("on"), *services(True)), None),
]


@pytest.mark.parametrize("case", [*HOME, *UPTIME, *WEATHER, *NOTHING], ids=lambda case: case.id)
def test_judge(case: Case) -> None:
    assert judge(case.condition, case.facts) is case.holds


def test_there_are_enough() -> None:
    assert len(HOME) + len(UPTIME) + len(WEATHER) >= 100


def test_names_are_not_judged() -> None:
    """ "All 12 services are up: downloader ok" holds the letters of "down"; so does the service's own name."""
    facts = tuple(MonitorState("shutdown-watcher (down)", True) for _ in range(12))
    assert judge("anything is down", facts) is False
    assert judge("everything is up", facts) is True
    assert judge("the light is on", (EntityState("light.x", "Off Broadway lamp", "on", kind="light"),)) is True


states = st.sampled_from(["on", "off", "open", "closed", "locked", "unlocked", "unknown", "21.5", "", "home"])
facts = st.one_of(
    st.lists(st.builds(EntityState, st.text(), st.text(), states, kind=st.sampled_from(["light", "battery", ""]))),
    st.lists(st.builds(MonitorState, st.text(), st.sampled_from([True, False, None]))),
    st.lists(st.builds(HourOfWeather, st.just(AT), st.integers(0, 99), st.none() | st.floats(0, 1))),
)


@given(st.text(max_size=80), facts)
def test_total(condition: str, known: list[Fact]) -> None:
    assert judge(condition, known) in (True, False, None)


@given(st.sampled_from(["the {} is {}", "all {} are {}"]), st.sampled_from(["locked", "unlocked", "on", "off"]), facts)
def test_not_turns_it_around(template: str, state: str, known: list[Fact]) -> None:
    plain = judge(template.format("things", state), known)
    turned = judge(f"not {template.format('things', state)}", known)
    assert turned is (None if plain is None else not plain)
