"""Judges by facts whether a condition is the case: by states, numbers and codes, never by the words of an answer.

A pure function with three results; None means that it cannot be judged, because the facts are about something else or
unknown. They have to be those of the things the condition is about, which the source chooses.

How a condition quantifies: "any light" means at least one, "all doors" each. Without either, a state that stands out
(on, open, unlocked, down) means at least one, and a state of rest (off, closed, locked, up) each. A "not" before "all"
or "any", or without them, negates the whole; after them, it negates each.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import NamedTuple

from turnout.text.fold import fold

from .logic import Truth, all_of, any_of, negate
from .source import EntityState, Fact, HourOfWeather, MonitorState
from .weather import SIGNS

# Below this a battery counts as low; Home Assistant's own blueprint warns at 20 %.
LOW_BATTERY = 20.0

_word = re.compile(r"[\w%°']+(?:\.\d+)?").findall
_NOT = re.compile(r"\b(?:not|never|cannot|without|\w+n't|isnt|arent|wasnt|doesnt|dont|wont)\b")
_NONE = re.compile(r"\b(?:no|none|nothing|nobody|neither)\b")
_ANY = re.compile(r"\b(?:any|anything|anyone|anybody|some|something|someone|somebody|either|a|an|one of)\b")
_ALL = re.compile(r"\b(?:all|every|everything|everyone|everybody|each|both)\b")
_NUMBER = re.compile(
    r"\b(?:(?P<gt>above|over|more than|higher than|greater than|warmer than|hotter than|exceeds?)|(?P<ge>at least)"
    r"|(?P<lt>below|under|less than|lower than|colder than|cooler than)|(?P<le>at most))"
    r"\s+(?P<minus>minus\s+|-\s?)?(?P<value>\d+(?:\.\d+)?)"
    r"\s*(?:degrees\s*)?(?:°?\s?(?P<unit>[cf])\b|(?P<name>fahrenheit|celsius)|%)?"
)


class _State(NamedTuple):
    """A state that a condition may name."""

    words: frozenset[str]
    holds: frozenset[str]
    """Home Assistant's states for which it is true."""
    fails: frozenset[str]
    stands_out: bool


def _state(words: str, holds: str, fails: str, *, stands_out: bool = True) -> _State:
    return _State(frozenset(words.split()), frozenset(holds.split(",")), frozenset(fails.split(",")), stands_out)


# The states of Home Assistant's domains and device classes. The first row with a word of the condition decides.
_ON = "on,open,opening,playing,heat,cool,heat_cool,auto,dry,fan_only,cleaning,home,charging,detected,active,mowing"
_OFF = "off,closed,closing,paused,idle,standby,docked,not charging,clear,inactive"
STATES = (
    _state("unlocked unlock", "unlocked,unlocking,open", "locked,locking,jammed"),
    _state("locked lock", "locked", "unlocked,unlocking,locking,jammed,open", stands_out=False),
    _state("open opened", "open,opening", "closed,closing,locked"),
    _state("closed shut close", "closed", "open,opening,closing", stands_out=False),
    _state(
        "armed", "armed_home,armed_away,armed_night,armed_vacation,armed_custom_bypass", "disarmed", stands_out=False
    ),
    _state("disarmed", "disarmed", "armed_home,armed_away,armed_night,armed_vacation,triggered"),
    _state("triggered", "triggered,on,detected", "disarmed,armed_home,armed_away,armed_night,off,clear"),
    _state("home", "home", "not_home,away", stands_out=False),
    _state("away out gone", "not_home,away", "home"),
    _state("playing", "playing", "paused,idle,off,standby,on"),
    _state("paused", "paused", "playing,idle,off,standby"),
    _state("cleaning vacuuming", "cleaning", "docked,paused,idle,returning,error"),
    _state("docked", "docked", "cleaning,paused,idle,returning,error", stands_out=False),
    _state("heating", "heat,heating", "off,cool,idle,cooling"),
    _state("cooling", "cool,cooling", "off,heat,idle,heating"),
    _state("wet leak leaking leaks flooded", "wet,on", "dry,off"),
    _state("motion movement moving detected occupied", "detected,on,moving,home", "clear,off,still,away"),
    _state("smoke gas", "detected,on", "clear,off"),
    _state("connected online", "connected,on,home", "disconnected,off,not_home", stands_out=False),
    _state("disconnected offline", "disconnected,off", "connected,on"),
    _state("charging", "charging,on", "not charging,off"),
    _state("low", "low", "normal"),
    _state("sunny", "sunny", "cloudy,rainy,partlycloudy,pouring,snowy,fog,windy,clear-night,lightning"),
    _state("cloudy", "cloudy,partlycloudy", "sunny,rainy,pouring,snowy,fog,clear-night"),
    _state("raining rainy rains rain", "rainy,pouring,lightning-rainy", "sunny,cloudy,partlycloudy,snowy,fog,windy"),
    _state("on running active enabled", _ON, _OFF),
    _state("off inactive disabled", _OFF, _ON, stands_out=False),
)
UP_WORDS = frozenset(("up", "online", "running", "reachable", "available", "working", "healthy", "ok", "okay", "fine"))
DOWN_WORDS = frozenset(
    ("down", "offline", "unreachable", "unavailable", "outage", "outages", "failing", "broken", "out", "dead")
)


def judge(condition: str, facts: Sequence[Fact]) -> Truth:
    """Whether the condition is the case, as far as the facts tell."""
    text = " ".join(fold(condition).text.split())
    entities = [one for one in facts if isinstance(one, EntityState)]
    monitors = [one for one in facts if isinstance(one, MonitorState)]
    weather = [one for one in facts if isinstance(one, HourOfWeather)]
    # Facts of several kinds come from several sources, and one condition cannot be about all of them.
    if sum(map(bool, (entities, monitors, weather))) != 1:
        return None
    if monitors:
        return _judge_monitors(text, monitors)
    return _judge_home(text, entities) if entities else _judge_weather(text, weather)


# --- quantifiers


def _over(text: str, values: Sequence[Truth], *, stands_out: bool) -> Truth:
    """Combines the values for each thing as the condition quantifies and negates them."""
    if _NONE.search(text):
        return negate(any_of(values))
    negated = _NOT.search(text)
    every, some = _ALL.search(text), _ANY.search(text)
    quantifier = min(filter(None, (every, some)), key=lambda match: match.start(), default=None)
    each = (every is not None and quantifier is every) or (not some and not stands_out)
    gather = all_of if each else any_of
    inner = negated is not None and quantifier is not None and quantifier.start() < negated.start()
    if inner:
        return gather([negate(value) for value in values])
    return negate(gather(values)) if negated else gather(values)


# --- the home


def _judge_home(text: str, things: Sequence[EntityState]) -> Truth:
    if compared := _comparison(text):
        values = [_compare(compared, thing) for thing in things]
        known = [value for value in values if value is not None]
        return _over(_NUMBER.sub(" ", text), known, stands_out=True) if known else None
    words = set(_word(text))
    for state in STATES:
        if state.words & words:
            values = [_has(state, thing) for thing in things if _can_be(state, thing)]
            if values:
                return _over(text, values, stands_out=state.stands_out)
    return None


def _can_be(state: _State, thing: EntityState) -> bool:
    """Whether it is the kind of thing that has such a state; if its own is unknown, it may be."""
    if "low" in state.words and _number(thing.state) is not None:
        return thing.kind == "battery"
    return thing.state in state.holds or thing.state in state.fails or thing.state in ("unknown", "unavailable")


def _has(state: _State, thing: EntityState) -> Truth:
    if thing.state in ("unknown", "unavailable"):
        return None
    value = _number(thing.state)
    return value < LOW_BATTERY if value is not None else thing.state in state.holds


class _Comparison(NamedTuple):
    sign: str
    """A comparison of `operator`: gt, ge, lt or le."""
    value: float
    unit: str
    """`c` or `f`; empty if there is none, or another."""

    def holds(self, value: float) -> bool:
        return bool(getattr(operator, self.sign)(value, self.value))


def _comparison(text: str) -> _Comparison | None:
    match = _NUMBER.search(text)
    if match is None:
        return None
    sign = next(sign for sign in ("gt", "ge", "lt", "le") if match[sign])
    value = float(match["value"]) * (-1 if match["minus"] else 1)
    return _Comparison(sign, value, match["unit"] or (match["name"] or "")[:1])


def _compare(compared: _Comparison, thing: EntityState) -> Truth:
    value = _number(thing.state)
    if value is None:
        return None
    if compared.unit == "f" and thing.unit == "°C":
        value = value * 1.8 + 32
    elif compared.unit == "c" and thing.unit == "°F":
        value = (value - 32) / 1.8
    return compared.holds(value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# --- services


def _judge_monitors(text: str, monitors: Sequence[MonitorState]) -> Truth:
    words = set(_word(text))
    if words & DOWN_WORDS:
        return _over(text, [negate(one.up) for one in monitors], stands_out=True)
    return _over(text, [one.up for one in monitors], stands_out=False) if words & UP_WORDS else None


# --- the weather


def _judge_weather(text: str, weather: Sequence[HourOfWeather]) -> Truth:
    if compared := _comparison(text):
        values = [_compare_weather(text, compared, one) for one in weather]
        return _negated_as(_NUMBER.sub(" ", text), any_of(values))
    for words, holds, gather in SIGNS:
        if re.search(rf"\b(?:{words})\b", text):
            return _negated_as(text, gather([holds(one) for one in weather]))
    return None


def _negated_as(text: str, value: Truth) -> Truth:
    return negate(value) if _NOT.search(text) or _NONE.search(text) else value


def _compare_weather(text: str, compared: _Comparison, one: HourOfWeather) -> Truth:
    if "chance" in text or "probability" in text:
        share = one.rain_probability
        return None if share is None else compared.holds(share * 100)
    if "wind" in text:
        return None if one.wind_kmh is None else compared.holds(one.wind_kmh)
    degrees = one.high_c if compared.sign in ("gt", "ge") else one.low_c
    if degrees is None:
        return None
    return compared.holds(degrees * 1.8 + 32 if compared.unit == "f" else degrees)
