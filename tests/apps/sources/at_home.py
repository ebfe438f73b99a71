"""Doubles of every source with something in them, and the sources that ask them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from turnout.apps.sources.settings import Sources, open_sources
from turnout.apps.sources.source import Result, Source, SourceQuestion
from turnout.testing.source import (
    Article,
    Day,
    FeedDouble,
    FreshRssDouble,
    HomeDouble,
    JsonDouble,
    KiwixDouble,
    KumaDouble,
    MeteoDouble,
    SearxDouble,
    SourceDouble,
    WebResult,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOOK = {
    "Black_hole": (
        "Black hole",
        "A black hole is a region of spacetime from which nothing can escape.\nIt has a horizon.",
    ),
    "Mercury": ("Mercury (planet)", "Mercury is the first planet from the Sun.\nIts retrograde motion is an illusion."),
    "List": ("List of planets", "Mercury, Venus, Earth, Mars and a black hole, which is none."),
    "Garage": ("Garage door", "A torsion spring counterbalances the weight of a garage door."),
}
ARTICLES = [
    Article("Ceasefire talks resume", "Iran and Israel meet in Geneva.", "https://daily.example/1", NOW),
    Article("New telescope opens", "It looks at black holes.", "https://daily.example/2", NOW - timedelta(days=1)),
    Article("Rain in the north", "Rivers rise.", "https://daily.example/3", NOW - timedelta(days=2)),
]
RESULTS = [
    WebResult("https://a.example/", "Printers compared", "The best laser printers of the year."),
    WebResult("https://b.example/", "Router help", "How to reset a router at home."),
    WebResult("https://c.example/", "About routers", "What a router does."),
]


def state(entity: str, state: str, name: str = "", **attributes: Any) -> dict[str, Any]:
    named = {"friendly_name": name} if name else {}
    return {"entity_id": entity, "state": state, "attributes": named | attributes}


def measured(kind: str, unit: str) -> dict[str, str]:
    return {"device_class": kind, "unit_of_measurement": unit}


STATES = [
    state("light.kitchen", "on", "Kitchen Light", brightness=128),
    state("light.bedroom", "off", "Bedroom Light"),
    state("light.hall", "unavailable", "Hall Light"),
    state("lock.front", "locked", "Front Door"),
    state("lock.back", "unlocked", "Back Door"),
    state("cover.garage", "closed", "Garage Door", device_class="garage"),
    state("binary_sensor.window", "on", "Kitchen Window", device_class="window"),
    state(
        "sensor.bedroom_temperature",
        "21.5",
        "Bedroom Thermometer",
        device_class="temperature",
        unit_of_measurement="°C",
    ),
    state("sensor.lock_battery", "15", "Front Door Battery", device_class="battery", unit_of_measurement="%"),
    state("climate.living", "heat", "Thermostat", current_temperature=20, temperature=21),
    state("media_player.bedroom", "playing", "Bedroom", media_title="A song"),
    state("person.anna", "home", "Anna"),
    state("zone.home", "1", "Home"),
]
AREAS = {"kitchen": "Kitchen", "bedroom": "Bedroom", "hall": "Hall", "living": "Living Room"}
AREA_OF = {
    "light.kitchen": "kitchen",
    "binary_sensor.window": "kitchen",
    "light.bedroom": "bedroom",
    "sensor.bedroom_temperature": "bedroom",
    "media_player.bedroom": "bedroom",
    "climate.living": "living",
    "lock.front": "hall",
}
ALIASES = {"light.bedroom": ["night lamp"]}


class Kind(NamedTuple):
    """A source of each kind: its double, its table, and a question it can answer."""

    id: str
    make: Callable[[], SourceDouble]
    table: str
    """`URL` is where the double is."""
    question: str
    says: str
    """In its answer."""


KINDS = [
    Kind(
        "kiwix",
        lambda: KiwixDouble({"tiny": BOOK}),
        'kind = "kiwix"\nurl = "URL"',
        "what is a black hole?",
        "spacetime",
    ),
    Kind(
        "news", lambda: FeedDouble(ARTICLES), 'kind = "news"\nfeeds = ["URL/rss"]', "any news about Iran?", "Ceasefire"
    ),
    Kind(
        "freshrss",
        lambda: FreshRssDouble(ARTICLES, "alice", "apipass"),
        'kind = "news"\nurl = "URL"\nuser = "alice"\ntoken = { env = "TEST_PASSWORD" }',
        "headlines",
        "Ceasefire",
    ),
    Kind("web", lambda: SearxDouble(RESULTS), 'kind = "web"\nurl = "URL"', "how to reset my router", "reset a router"),
    Kind(
        "forecast",
        lambda: MeteoDouble([Day(), Day(code=61, chance=80, rain_mm=4)]),
        'kind = "forecast"\nurl = "URL"\ngeocoding = "URL"\nplace = "Berlin"',
        "will it rain tomorrow?",
        "80% chance",
    ),
    Kind(
        "ha",
        lambda: HomeDouble(STATES, AREAS, AREA_OF, ALIASES),
        'kind = "ha"\nurl = "URL"\ntoken = { env = "TEST_TOKEN" }',
        "is the kitchen light on?",
        "Kitchen Light: on",
    ),
    Kind(
        "uptime",
        lambda: KumaDouble({"Plex": 1, "Downloads": 0}, "apikey"),
        'kind = "uptime"\nurl = "URL"\ntoken = { env = "TEST_KEY" }',
        "what is down?",
        "Down: Downloads",
    ),
    Kind(
        "status page",
        lambda: KumaDouble({"Plex": 1, "Downloads": 0}),
        'kind = "uptime"\nurl = "URL"\npage = "home"',
        "is Plex up?",
        "Plex is up",
    ),
    Kind(
        "http-json",
        lambda: JsonDouble({"hits": [{"t": "A recipe", "b": "Two eggs."}]}, {"hits": []}),
        'kind = "http-json"\nurl = "URL/find?q={terms}"\nitems = "/hits"\ntext = "/b"\ntitle = "/t"',
        "how many eggs?",
        "Two eggs.",
    ),
]
SECRETS = {"TEST_PASSWORD": "apipass", "TEST_TOKEN": "token", "TEST_KEY": "apikey"}


@asynccontextmanager
async def opened(folder: Path, text: str) -> AsyncIterator[Sources]:
    """The sources of a settings file."""
    file = folder / "turnout.toml"
    file.write_text(text, encoding="utf-8")
    sources = open_sources(file)
    try:
        yield sources
    finally:
        await sources.close()


@asynccontextmanager
async def asking(kind: Kind, folder: Path, timeout_s: float = 5.0) -> AsyncIterator[tuple[SourceDouble, Source]]:
    """A double, and the source that asks it."""
    async with kind.make() as double:
        table = kind.table.replace("URL", double.url)
        async with opened(folder, f"[sources.it]\n{table}\ntimeout_s = {timeout_s}\n") as sources:
            yield double, sources.sources["it"]


async def ask(source: Source, question: str) -> Result:
    return await source.ask(SourceQuestion(question))
