"""Open-Meteo's forecast and geocoding, for days whose weather a test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from aiohttp import web

from .server import SourceDouble, Trouble


class Day(NamedTuple):
    code: int = 0
    chance: float = 0.0
    """Of precipitation, in per cent."""
    low: float = 10.0
    high: float = 20.0
    rain_mm: float = 0.0
    snow_cm: float = 0.0
    wind_kmh: float = 10.0


class MeteoDouble(SourceDouble):
    """`days` begin with today; the others have fine weather. All hours of a day are alike."""

    def __init__(
        self,
        days: Sequence[Day] = (),
        places: Mapping[str, tuple[float, float]] | None = None,
        trouble: Trouble | None = None,
    ) -> None:
        super().__init__(trouble)
        self.days = days
        self.places = places or {"Berlin": (52.52, 13.41)}

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.get("/v1/forecast", self._forecast), web.get("/v1/search", self._search)]

    async def _search(self, request: web.Request) -> web.Response:
        place = self.places.get(request.query["name"])
        if place is None or self.is_empty:
            return web.json_response({"generationtime_ms": 0.5})
        found = {"id": 1, "name": request.query["name"], "latitude": place[0], "longitude": place[1]}
        return web.json_response({"results": [found], "generationtime_ms": 0.5})

    async def _forecast(self, request: web.Request) -> web.Response:
        count = 0 if self.is_empty else int(request.query["forecast_days"])
        days = [self.days[n] if n < len(self.days) else Day() for n in range(count)]
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        dates = [midnight + timedelta(days=n) for n in range(count)]
        hours = [
            (date + timedelta(hours=hour), day) for date, day in zip(dates, days, strict=True) for hour in range(24)
        ]
        today = days[0] if days else Day()
        value: dict[str, object] = {
            "latitude": float(request.query["latitude"]),
            "longitude": float(request.query["longitude"]),
            "utc_offset_seconds": 0,
            "timezone": "UTC",
            "hourly": {
                "time": [f"{at:%Y-%m-%dT%H:%M}" for at, _ in hours],
                "temperature_2m": [day.high for _, day in hours],
                "precipitation_probability": [day.chance for _, day in hours],
                "precipitation": [day.rain_mm / 24 for _, day in hours],
                "snowfall": [day.snow_cm / 24 for _, day in hours],
                "weather_code": [day.code for _, day in hours],
                "wind_speed_10m": [day.wind_kmh for _, day in hours],
            },
            "daily": {
                "time": [f"{date:%Y-%m-%d}" for date in dates],
                "weather_code": [day.code for day in days],
                "temperature_2m_max": [day.high for day in days],
                "temperature_2m_min": [day.low for day in days],
                "precipitation_sum": [day.rain_mm for day in days],
                "precipitation_probability_max": [day.chance for day in days],
                "snowfall_sum": [day.snow_cm for day in days],
                "wind_speed_10m_max": [day.wind_kmh for day in days],
            },
        }
        if days:
            value["current"] = {
                "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M}",
                "temperature_2m": today.high,
                "weather_code": today.code,
                "precipitation": today.rain_mm,
                "wind_speed_10m": today.wind_kmh,
            }
        return web.json_response(value)
