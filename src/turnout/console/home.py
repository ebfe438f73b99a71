"""The first page: what the server is doing, and where to go from here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from turnout.apps.app import Answer, Call, Route

if TYPE_CHECKING:
    from .console import Console

# Decisions on the first page: a glance.
LATEST = 8


def home_routes(console: Console) -> Sequence[Route]:
    async def home(call: Call) -> Answer:
        """The overview."""
        records = console.records(call)
        latest = await asyncio.to_thread(lambda: list(islice(records.decisions(), LATEST)))
        slots = console.runtime.models.slots
        return console.show(call, "home.html", here="/", latest=latest, slots=slots)

    return [Route("GET", "/", "decisions:read", home, is_page=True)]
