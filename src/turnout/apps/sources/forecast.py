"""The weather from Open-Meteo, for the place in the settings or one that the question names.

The facts of an answer are only those of the time the question is about: a condition about tomorrow is judged by
tomorrow. They are metric; the text is in the user's units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Literal

from msgspec import Struct

from .fetch import Site, health_of
from .source import Cause, Empty, Failure, Health, HourOfWeather, Result, Source, SourceAnswer, SourceQuestion
from .weather import CODES, WeatherSpan, span_of
from .weather import DAYS as DAY_NAMES

Units = Literal["metric", "imperial"]
# Days of forecast: enough for next week and the weekend after it.
DAYS = 14
# A place in a question: "in Phoenix", "for New York", "in San José today".
_named_place = re.compile(r"\b(?:in|for|at|near|around)\s+((?:[A-Z][\w'’.-]*\s?){1,4})").search
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november")
_NOT_PLACES = frozenset((*DAY_NAMES, *_MONTHS, "december"))


class Town(Struct, frozen=True):
    name: str
    latitude: float
    longitude: float


class _Places(Struct, frozen=True):
    results: list[Town] = []


# Open-Meteo's name of each field of a fact: for now, by hour and by day.
_NOW = {
    "low_c": "temperature_2m",
    "high_c": "temperature_2m",
    "code": "weather_code",
    "rain_mm": "precipitation",
    "wind_kmh": "wind_speed_10m",
}
_HOURLY = {**_NOW, "rain_probability": "precipitation_probability", "snow_cm": "snowfall"}
_DAILY = {
    "low_c": "temperature_2m_min",
    "high_c": "temperature_2m_max",
    "code": "weather_code",
    "rain_mm": "precipitation_sum",
    "wind_kmh": "wind_speed_10m_max",
    "rain_probability": "precipitation_probability_max",
    "snow_cm": "snowfall_sum",
}

Value = str | float | None


class _Weather(Struct, frozen=True):
    utc_offset_seconds: int = 0
    current: dict[str, Value] | None = None
    hourly: dict[str, list[Value]] = {}
    daily: dict[str, list[Value]] = {}


class Forecast(Source):
    def __init__(
        self, site: Site, geocoder: Site, place: str | Town, units: Units = "metric", description: str = ""
    ) -> None:
        self.name = site.name
        self.description = description or "the weather, now and in the coming days"
        self._site = site
        self._geocoder = geocoder
        self._place = place
        self._units: Units = units
        self._known: dict[str, Town] = {}

    async def ask(self, question: SourceQuestion) -> Result:
        place = await self._find(place_in(question.text) or self._place)
        if isinstance(place, Failure | Empty):
            return place
        got = await self._weather(place)
        if isinstance(got, Failure):
            return got
        try:
            zone = timezone(timedelta(seconds=got.utc_offset_seconds))
            span = span_of(question.text, datetime.now(zone))
            facts = list(_facts(got, span, zone))
        except (ValueError, OverflowError) as error:
            return self._site.misread(str(error))
        if not facts:
            return Empty()
        return SourceAnswer("\n".join(_tell(facts, span, place.name, self._units)), facts=tuple(facts))

    async def check(self) -> Health:
        async def look() -> object:
            place = await self._find(self._place)
            if isinstance(place, Empty):
                problem = f"there is no place called {str(self._place)[:80]!r}: check place"
                return self._site.failed(Cause.ERROR, problem)
            return place if isinstance(place, Failure) else await self._weather(place)

        return await health_of(look())

    async def _find(self, place: str | Town) -> Town | Failure | Empty:
        if isinstance(place, Town):
            return place
        if place in self._known:
            return self._known[place]
        got = await self._geocoder.json("/v1/search", _Places, {"name": place, "count": 1, "format": "json"})
        if isinstance(got, Failure):
            return got
        if not got.results:
            return Empty()
        if len(self._known) < 1000:
            self._known[place] = got.results[0]
        return got.results[0]

    async def _weather(self, place: Town) -> _Weather | Failure:
        params: dict[str, str | int] = {
            "latitude": f"{place.latitude:.4f}",
            "longitude": f"{place.longitude:.4f}",
            "current": ",".join(dict.fromkeys(_NOW.values())),
            "hourly": ",".join(dict.fromkeys(_HOURLY.values())),
            "daily": ",".join(_DAILY.values()),
            "timezone": "auto",
            "forecast_days": DAYS,
        }
        got = await self._site.json("/v1/forecast", _Weather, params)
        if isinstance(got, _Weather) and got.current is None and not (got.daily.get("time") or got.hourly.get("time")):
            return self._site.misread("no weather in it")
        return got


def place_in(question: str) -> str:
    """The place a question names; empty if none."""
    match = _named_place(question)
    name = match[1].strip(" .?!,") if match is not None else ""
    return "" if name.casefold() in _NOT_PLACES else name


def _facts(got: _Weather, span: WeatherSpan, zone: timezone) -> Iterator[HourOfWeather]:
    """The weather in a span; raises ValueError if a value is not what it should be."""
    if span.grain == "now" and got.current is not None:
        yield _fact(_NOW, got.current, zone)
        return
    names, series, length = _HOURLY, got.hourly, timedelta(hours=1)
    if span.grain == "days":
        names, series, length = _DAILY, got.daily, timedelta(days=1)
    for n in range(len(series.get("time", ()))):
        fact = _fact(names, {name: values[n] if n < len(values) else None for name, values in series.items()}, zone)
        if span.first - length < fact.at < span.last:
            yield fact


def _fact(names: Mapping[str, str], values: Mapping[str, Value], zone: timezone) -> HourOfWeather:
    known = {field: float(value) for field, name in names.items() if (value := values.get(name)) is not None}
    chance = known.pop("rain_probability", None)
    return HourOfWeather(
        at=datetime.fromisoformat(str(values.get("time"))).replace(tzinfo=zone),
        code=int(known.pop("code", 0)),
        rain_probability=None if chance is None else min(1.0, max(0.0, chance / 100)),
        **known,
    )


def _tell(facts: Sequence[HourOfWeather], span: WeatherSpan, place: str, units: Units) -> Iterator[str]:
    if span.grain == "hours":
        facts = [_sum(facts)]
    for one in facts:
        when = span.said if len(facts) == 1 else f"{one.at:%A}"
        metric = units == "metric"
        words = [CODES.get(one.code, f"code {one.code}")]
        if one.low_c is not None and one.high_c is not None:
            words.append(_temperature(one.low_c, one.high_c, units))
        if one.rain_probability is not None:
            words.append(f"{one.rain_probability:.0%} chance of precipitation")
        if one.rain_mm:
            words.append(f"{one.rain_mm:g} mm" if metric else f"{one.rain_mm / 25.4:.2f} in")
        if one.snow_cm:
            words.append(f"{one.snow_cm:g} cm of snow" if metric else f"{one.snow_cm / 2.54:.1f} in of snow")
        if one.wind_kmh is not None:
            words.append(f"wind {one.wind_kmh:.0f} km/h" if metric else f"wind {one.wind_kmh / 1.609:.0f} mph")
        yield f"{place}, {when}: {', '.join(words)}."


def _temperature(low: float, high: float, units: Units) -> str:
    if units == "imperial":
        low, high = low * 1.8 + 32, high * 1.8 + 32
    unit = "°C" if units == "metric" else "°F"
    return f"{low:.0f} {unit}" if round(low) == round(high) else f"{low:.0f} to {high:.0f} {unit}"


def _sum(hours: Sequence[HourOfWeather]) -> HourOfWeather:
    """Several hours as one: the most severe code, the extremes, and all precipitation."""

    def known(name: str) -> list[float]:
        return [value for one in hours if (value := getattr(one, name)) is not None]

    return HourOfWeather(
        at=hours[0].at,
        code=max(one.code for one in hours),
        rain_probability=max(known("rain_probability"), default=None),
        rain_mm=sum(known("rain_mm")) or None,
        snow_cm=sum(known("snow_cm")) or None,
        low_c=min(known("low_c"), default=None),
        high_c=max(known("high_c"), default=None),
        wind_kmh=max(known("wind_kmh"), default=None),
    )
