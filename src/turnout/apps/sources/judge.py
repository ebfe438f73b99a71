"""Whether a condition is the case, judged by facts: states, numbers and codes, never the words of an answer.

A pure function of three values. None is "cannot be judged": the condition is about something the facts do not say, or
they say that it is unknown. The facts are those of the things the condition is about: choosing them is the source's
part.

How a condition quantifies: "any light" asks for one, "all doors" for each. Without either, what stands out (on, open,
unlocked, down) asks for one, and what is at rest (off, closed, locked, up) for each. A "not" before "all" or "any", or
without either, turns the whole around; behind them, each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from turnout.text.fold import fold

from .logic import Judged, all_of, any_of, negate
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
    r"\b(above|over|more than|higher than|greater than|warmer than|hotter than|exceeds?|at least|below|under|less than"
    r"|lower than|colder than|cooler than|at most)\s+(?:minus\s+|(-)\s?)?(\d+(?:\.\d+)?)"
    r"\s*(?:degrees\s*)?(°?\s?[cf]\b|fahrenheit|celsius|%)?"
)
_UPWARD = (
    "above",
    "over",
    "more than",
    "higher than",
    "greater than",
    "warmer than",
    "hotter than",
    "exceed",
    "exceeds",
)


class _State(NamedTuple):
    """A state a condition may name."""

    words: frozenset[str]
    holds: frozenset[str]
    """What things are called that are so."""
    fails: frozenset[str]
    stands_out: bool


def _state(words: str, holds: str, fails: str, *, stands_out: bool) -> _State:
    return _State(frozenset(words.split()), frozenset(holds.split(",")), frozenset(fails.split(",")), stands_out)


# The pairs of states that Home Assistant's domains and device classes have. The first row whose word is said decides.
_ON = "on,open,opening,playing,heat,cool,heat_cool,auto,dry,fan_only,cleaning,home,charging,detected,active,mowing"
_OFF = "off,closed,closing,paused,idle,standby,docked,not charging,clear,inactive"
STATES = (
    _state("unlocked unlock", "unlocked,unlocking,open", "locked,locking,jammed", stands_out=True),
    _state("locked lock", "locked", "unlocked,unlocking,locking,jammed,open", stands_out=False),
    _state("open opened", "open,opening", "closed,closing,locked", stands_out=True),
    _state("closed shut close", "closed", "open,opening,closing", stands_out=False),
    _state(
        "armed", "armed_home,armed_away,armed_night,armed_vacation,armed_custom_bypass", "disarmed", stands_out=False
    ),
    _state("disarmed", "disarmed", "armed_home,armed_away,armed_night,armed_vacation,triggered", stands_out=True),
    _state(
        "triggered", "triggered,on,detected", "disarmed,armed_home,armed_away,armed_night,off,clear", stands_out=True
    ),
    _state("home", "home", "not_home,away", stands_out=False),
    _state("away out gone", "not_home,away", "home", stands_out=True),
    _state("playing", "playing", "paused,idle,off,standby,on", stands_out=True),
    _state("paused", "paused", "playing,idle,off,standby", stands_out=True),
    _state("cleaning vacuuming", "cleaning", "docked,paused,idle,returning,error", stands_out=True),
    _state("docked", "docked", "cleaning,paused,idle,returning,error", stands_out=False),
    _state("heating", "heat,heating", "off,cool,idle,cooling", stands_out=True),
    _state("cooling", "cool,cooling", "off,heat,idle,heating", stands_out=True),
    _state("wet leak leaking leaks flooded", "wet,on", "dry,off", stands_out=True),
    _state(
        "motion movement moving detected occupied", "detected,on,moving,home", "clear,off,still,away", stands_out=True
    ),
    _state("smoke gas", "detected,on", "clear,off", stands_out=True),
    _state("connected online", "connected,on,home", "disconnected,off,not_home", stands_out=False),
    _state("disconnected offline", "disconnected,off", "connected,on", stands_out=True),
    _state("charging", "charging,on", "not charging,off", stands_out=True),
    _state("low", "low", "normal", stands_out=True),
    _state(
        "sunny", "sunny", "cloudy,rainy,partlycloudy,pouring,snowy,fog,windy,clear-night,lightning", stands_out=True
    ),
    _state("cloudy", "cloudy,partlycloudy", "sunny,rainy,pouring,snowy,fog,clear-night", stands_out=True),
    _state(
        "raining rainy rains rain",
        "rainy,pouring,lightning-rainy",
        "sunny,cloudy,partlycloudy,snowy,fog,windy",
        stands_out=True,
    ),
    _state("on running active enabled", _ON, _OFF, stands_out=True),
    _state("off inactive disabled", _OFF, _ON, stands_out=False),
)
UP_WORDS = frozenset(
    ("up", "online", "running", "reachable", "available", "working", "healthy", "ok", "okay", "fine"),
)
DOWN_WORDS = frozenset(
    ("down", "offline", "unreachable", "unavailable", "outage", "outages", "failing", "broken", "out", "dead"),
)


def judge(condition: str, facts: Sequence[Fact]) -> Judged:
    """Whether the condition is the case, as far as the facts say."""
    text = " ".join(fold(condition).text.split())
    entities = [one for one in facts if isinstance(one, EntityState)]
    monitors = [one for one in facts if isinstance(one, MonitorState)]
    weather = [one for one in facts if isinstance(one, HourOfWeather)]
    # Of one source they are all alike; facts of several cannot be about one condition.
    if not facts or sum(map(bool, (entities, monitors, weather))) != 1:
        return None
    if monitors:
        return _judge_monitors(text, monitors)
    return _judge_home(text, entities) if entities else _judge_weather(text, weather)


# --- what is asked of each


def _over(text: str, values: Sequence[Judged], *, stands_out: bool) -> Judged:
    """What holds of each, as the condition quantifies and negates it."""
    if _NONE.search(text):
        return negate(any_of(values))
    negated = _NOT.search(text)
    every, some = _ALL.search(text), _ANY.search(text)
    quantifier = min(filter(None, (every, some)), key=lambda found: found.start(), default=None)
    each = (every is not None and quantifier is every) or (not some and not stands_out)
    gather = all_of if each else any_of
    inner = negated is not None and quantifier is not None and quantifier.start() < negated.start()
    if inner:
        return gather([negate(value) for value in values])
    return negate(gather(values)) if negated else gather(values)


# --- the home


def _judge_home(text: str, things: Sequence[EntityState]) -> Judged:
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
    """Whether it is the kind of thing that has such a state; one whose state is unknown may be."""
    if "low" in state.words and _number(thing.state) is not None:
        return thing.kind == "battery"
    return thing.state in state.holds or thing.state in state.fails or thing.state in ("unknown", "unavailable")


def _has(state: _State, thing: EntityState) -> Judged:
    if thing.state in ("unknown", "unavailable"):
        return None
    value = _number(thing.state)
    return value < LOW_BATTERY if value is not None else thing.state in state.holds


class _Comparison(NamedTuple):
    sign: Literal[">", ">=", "<", "<="]
    value: float
    unit: str

    def holds(self, value: float) -> bool:
        match self.sign:
            case ">":
                return value > self.value
            case ">=":
                return value >= self.value
            case "<":
                return value < self.value
            case "<=":
                return value <= self.value


def _comparison(text: str) -> _Comparison | None:
    found = _NUMBER.search(text)
    if found is None:
        return None
    value = float(found[3]) * (-1 if found[2] or " minus " in found[0] else 1)
    unit = (
        "f" if (found[4] or "").strip("° ").startswith("f") else "c" if (found[4] or "").strip("° ")[:1] == "c" else ""
    )
    sign: Literal[">", ">=", "<", "<="]
    sign = ">=" if found[1] == "at least" else "<=" if found[1] == "at most" else ">" if found[1] in _UPWARD else "<"
    return _Comparison(sign, value, unit)


def _compare(compared: _Comparison, thing: EntityState) -> Judged:
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


def _judge_monitors(text: str, monitors: Sequence[MonitorState]) -> Judged:
    words = set(_word(text))
    if words & DOWN_WORDS:
        return _over(text, [negate(one.up) for one in monitors], stands_out=True)
    return _over(text, [one.up for one in monitors], stands_out=False) if words & UP_WORDS else None


# --- the weather


def _judge_weather(text: str, weather: Sequence[HourOfWeather]) -> Judged:
    if compared := _comparison(text):
        return _turned(_NUMBER.sub(" ", text), any_of(_compare_weather(text, compared, one) for one in weather))
    for words, holds, gather in SIGNS:
        if re.search(rf"\b(?:{words})\b", text):
            return _turned(text, gather([holds(one) for one in weather]))
    return None


def _turned(text: str, value: Judged) -> Judged:
    return negate(value) if _NOT.search(text) or _NONE.search(text) else value


def _compare_weather(text: str, compared: _Comparison, one: HourOfWeather) -> Judged:
    if "chance" in text or "probability" in text:
        share = one.rain_probability
        return None if share is None else compared.holds(share * 100)
    if "wind" in text:
        return None if one.wind_kmh is None else compared.holds(one.wind_kmh)
    degrees = one.high_c if compared.sign in (">", ">=") else one.low_c
    if degrees is None:
        return None
    return compared.holds(degrees * 1.8 + 32 if compared.unit == "f" else degrees)
