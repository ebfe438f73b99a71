"""The meaning of weather codes and figures, and the hours or days a question is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from turnout.text.fold import fold

from .logic import Truth, all_of, any_of, negate
from .source import HourOfWeather

# The part of WMO's table 4677 that weather services use.
CODES = {
    **{0: "clear", 1: "mostly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "freezing fog"},
    **{51: "light drizzle", 53: "drizzle", 55: "heavy drizzle", 56: "freezing drizzle", 57: "heavy freezing drizzle"},
    **{61: "light rain", 63: "rain", 65: "heavy rain", 66: "freezing rain", 67: "heavy freezing rain"},
    **{71: "light snow", 73: "snow", 75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers"},
    **{82: "violent showers", 85: "light snow showers", 86: "heavy snow showers", 95: "a thunderstorm"},
    **{96: "a thunderstorm with hail", 99: "a thunderstorm with heavy hail"},
}
RAIN = frozenset((*range(51, 68), *range(80, 83), *range(95, 100)))
SNOW = frozenset((*range(71, 78), 85, 86))
STORM, FOG, CLEAR, CLOUDY = frozenset(range(95, 100)), frozenset((45, 48)), frozenset((0, 1)), frozenset((2, 3))

# It rains from this probability on, or if this much falls: weather services count a day with a millimetre as rainy.
LIKELY, RAINY_MM = 0.5, 1.0
# Temperatures as people call them, and a strong breeze: Beaufort 6 begins at 39 km/h.
HOT_C, WARM_C, COLD_C, FREEZING_C, WINDY_KMH = 28.0, 20.0, 8.0, 0.0, 39.0

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_days_ahead = re.compile(r"\bin (\d|two|three|four|five|six) days?\b").search
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
# The hours at which evening begins, and at which night ends.
EVENING, MORNING = 18, 6


class WeatherSpan(NamedTuple):
    """The time a question is about: now, some hours, or whole days."""

    grain: Literal["now", "hours", "days"]
    first: datetime
    last: datetime
    """Not included."""
    said: str


def span_of(question: str, now: datetime) -> WeatherSpan:
    """The time a question is about, in the place's own time; by default today."""
    text, weekday = fold(question).text, now.weekday()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)

    def days(ahead: int, count: int, name: str = "") -> WeatherSpan:
        first = midnight + timedelta(days=ahead)
        return WeatherSpan("days", first, first + timedelta(days=count), name or f"{first:%A}")

    if match := _days_ahead(text):
        return days(_NUMBERS.get(match[1]) or int(match[1]), 1)
    if "day after tomorrow" in text:
        return days(2, 1, "the day after tomorrow")
    if "tomorrow" in text:
        return days(1, 1, "tomorrow")
    if "weekend" in text:
        # On a Sunday, the rest of it.
        saturday = max(0, 5 - weekday)
        return days(saturday, 7 - weekday - saturday, "this weekend")
    if "next week" in text:
        return days(7 - weekday, 7, "next week")
    if "week" in text or "coming days" in text or "next few days" in text:
        return days(0, 7, "this week")
    for number, name in enumerate(DAYS):
        if re.search(rf"\b{name}\b", text):
            return days((number - weekday) % 7, 1, name.capitalize())
    if "tonight" in text or "this evening" in text:
        morning = midnight + timedelta(days=1, hours=MORNING)
        return WeatherSpan("hours", midnight.replace(hour=EVENING), morning, "tonight")
    if "later" in text or "this afternoon" in text:
        return WeatherSpan("hours", now, midnight + timedelta(days=1), "later today")
    if re.search(r"\b(?:now|currently|right now|outside|is it (?:raining|snowing|hot|cold|windy|sunny))\b", text):
        return WeatherSpan("now", now, now + timedelta(hours=1), "now")
    return days(0, 1, "today")


def _rains(one: HourOfWeather) -> bool:
    chance, falls = one.rain_probability, (one.rain_mm or 0.0) >= RAINY_MM
    return one.code in RAIN and (chance is None or falls or chance >= LIKELY)


def _snows(one: HourOfWeather) -> bool:
    falls = one.code in SNOW or (one.snow_cm or 0.0) > 0
    return falls and (one.rain_probability is None or one.rain_probability >= LIKELY)


def _if_known(value: float | None, holds: Callable[[float], bool]) -> Truth:
    return None if value is None else holds(value)


Gather = Callable[[Collection[Truth]], Truth]
SIGNS: tuple[tuple[str, Callable[[HourOfWeather], Truth], Gather], ...] = (
    ("thunder|storms?|stormy|thunderstorms?|lightning", lambda one: one.code in STORM, any_of),
    ("snow|snows|snowing|snowy", _snows, any_of),
    ("rain|rains|raining|rainy|showers?|drizzles?|drizzling|wet|umbrella|precipitation", _rains, any_of),
    ("dry", lambda one: negate(any_of((_rains(one), _snows(one)))), all_of),
    ("fog|foggy|misty", lambda one: one.code in FOG, any_of),
    ("sunny|clear|sun|sunshine", lambda one: one.code in CLEAR or one.code == 2, all_of),
    ("cloudy|overcast|clouds?", lambda one: one.code in CLOUDY, any_of),
    ("windy|wind|gusty|breezy", lambda one: _if_known(one.wind_kmh, lambda kmh: kmh >= WINDY_KMH), any_of),
    ("freezing|freezes|freeze|frost|icy", lambda one: _if_known(one.low_c, lambda low: low <= FREEZING_C), any_of),
    ("hot", lambda one: _if_known(one.high_c, lambda high: high >= HOT_C), any_of),
    ("warm|nice", lambda one: _if_known(one.high_c, lambda high: high >= WARM_C), any_of),
    ("cold|chilly", lambda one: _if_known(one.low_c, lambda low: low <= COLD_C), any_of),
)
