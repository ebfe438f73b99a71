"""`framing.v1`, an adjustment: adds a route for a topic that "everyone keeps talking about".

Such a phrase says that the topic is common knowledge, so one more source is asked. The phrases come from
`turnout.text.framing`, which also removes them from search terms.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason
from turnout.text.framing import phrases
from turnout.text.match import Phrase

from .check import unknown


class FramingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    route: str

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        yield from unknown("route", (self.route,), routes)


class Framing:
    def __init__(self, config: FramingConfig, supplies: Supplies) -> None:
        self.route = config.route
        self.shown = {supplies.phrases.add(Phrase((phrase,)), "framing.added"): phrase for phrase in phrases()}

    def __call__(self, reading: Reading, routes: tuple[str, ...]) -> tuple[tuple[str, ...], Reason] | None:
        # A declared route is not changed.
        if self.route in routes or reading.query.declared is not None:
            return None
        for hit in reading.hits:
            if hit in self.shown:
                return (*routes, self.route), Reason("framing.added", f"{self.shown[hit]!r}: {self.route} is asked too")
        return None


@kind("framing.v1", stage="adjust")
def framing(config: FramingConfig, supplies: Supplies) -> Framing:
    return Framing(config, supplies)
