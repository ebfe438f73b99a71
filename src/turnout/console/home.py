"""The first page: the traffic of the last day, the latest decisions, and what to try next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from turnout.apps.app import Answer, Call, Route
from turnout.store import Records, TimeSpan
from turnout.store.backend import HOUR_MS, hour_of
from turnout.store.records import Logged
from turnout.store.row import now_ms
from turnout.store.traffic import Traffic

from .decisions import whose
from .traffic import bars, colours_of

if TYPE_CHECKING:
    from .console import Console

# Decisions on the first page.
LATEST = 10
# Suggestions for a server without decisions: the path, the title and the description. None needs a provider's key.
STARTS = (
    ("/playground?text=Prove+step+by+step+that+the+square+root+of+two+is+irrational", "See a question routed",
     "Layer by layer, with weights to move. Nothing is logged."),
    ("/chat", "Check a claim", "64 example cards ship with Turnout; a new claim starts an audit."),
    ("/study", "Ask about a page", "What is sent to a model, and what is left out."),
    ("/ask", "Ask your sources", "A folder of notes is one; the page says how to add it."),
    ("/learning", "Look at the students", "How well each was trained, on questions it had not seen."),
    ("/profiles", "Read a profile", "The five routers that ship, as TOML, and a place to validate yours."),
)  # fmt: skip
DAY_HOURS = 24


def home_routes(console: Console) -> Sequence[Route]:
    async def home(call: Call) -> Answer:
        """The overview."""
        since = hour_of(now_ms()) - (DAY_HOURS - 1) * HOUR_MS
        latest, day = await asyncio.to_thread(_look, console.records(call), since)
        allowed = {link.path for link in console.links(call)}
        values: dict[str, Any] = {
            "latest": latest,
            "day": day,
            "bars": bars(day.stats, HOUR_MS, since),
            "colours": colours_of(day.stats),
            "whose": whose,
            "slots": console.runtime.models.slots,
            "api": console.api_url(call),
            "starts": [one for one in STARTS if one[0].partition("?")[0] in allowed],
            "arrived": False,
        }
        return console.show(call, "home.html", here="/", **values)

    return [Route("GET", "/", "decisions:read", home, is_page=True)]


def _look(records: Records, since_ms: int) -> tuple[list[Logged], Traffic]:
    latest = list(islice(records.decisions(), LATEST))
    return latest, records.traffic(span=TimeSpan(since_ms=since_ms), bucket_ms=HOUR_MS)
