"""Services that are watched: Uptime Kuma, by its metrics or by a public status page.

What is up is a number in the data, never a word of a sentence; the monitors' names are words that mean this source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from .fetch import Site, health_of
from .judge import DOWN_WORDS, UP_WORDS
from .source import Empty, Failure, Health, MonitorState, Result, SourceAnswer, SourceQuestion
from .terms import stop_words, words_of

# How Kuma numbers states: down, up, pending, maintenance.
UP = {0: False, 1: True}
# `monitor_status{monitor_name="Plex",monitor_type="http"} 1`; a label's value escapes quotes, backslashes, line ends.
_sample = re.compile(r'^monitor_status\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}\s+(\S+)').match
_labels = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"').findall
_escape = re.compile(r'\\([\\"n])')
GENERIC = frozenset(
    (
        *("everything", "anything", "something", "nothing", "every", "all", "any", "none", "service", "services"),
        *(
            "server",
            "servers",
            "network",
            "monitor",
            "monitors",
            "status",
            "uptime",
            "check",
            "right",
            "now",
            "currently",
        ),
        *("still", "today", "site", "sites", "website", "websites", "system", "systems", "host", "hosts", "new"),
    )
)
# Names that are ordinary words mean something else wherever they stand.
LEAST_LETTERS = 3


class _Monitor(Struct, frozen=True):
    id: int
    name: str = ""


class _Group(Struct, frozen=True):
    monitorList: list[_Monitor] = []  # noqa: N815 - Kuma's name


class _Page(Struct, frozen=True):
    publicGroupList: list[_Group]  # noqa: N815 - Kuma's name


class _Beat(Struct, frozen=True):
    status: int


class _Beats(Struct, frozen=True):
    heartbeatList: Mapping[str, list[_Beat]]  # noqa: N815 - Kuma's name


class Uptime:
    def __init__(self, site: Site, page: str = "", description: str = "") -> None:
        self.name = site.name
        self.description = description or "whether the user's services and servers are up"
        self._site = site
        self._page = page
        self._names: tuple[str, ...] = ()
        """As of the last time it was asked."""

    async def ask(self, question: SourceQuestion) -> Result:
        read = await self._monitors()
        if isinstance(read, Failure):
            return read
        if not read:
            return Empty("monitors")
        asked = named(question.text, read)
        strange = " ".join(word for word in words_of(question.text) if word not in _generic()) if not asked else ""
        if strange:
            # What it asks about is not watched: nothing that is can be judged by.
            return SourceAnswer("\n".join((f"No monitor is called {strange!r}.", *_tell(read))))
        return SourceAnswer("\n".join(_tell(asked or read)), facts=tuple(asked or read))

    async def check(self) -> Health:
        return await health_of(self._monitors())

    def words(self) -> Sequence[str]:
        return self._names

    async def _monitors(self) -> list[MonitorState] | Failure:
        found = await (self._from_page() if self._page else self._from_metrics())
        if not isinstance(found, Failure):
            self._names = tuple(one.name for one in found if len(one.name) >= LEAST_LETTERS)
        return found

    async def _from_metrics(self) -> list[MonitorState] | Failure:
        body = await self._site.get("/metrics")
        if isinstance(body, Failure):
            return body
        lines = body.decode("utf-8", "replace").splitlines()
        samples = [line for line in lines if line.startswith("monitor_status{")]
        is_kuma = samples or any(line.startswith("# HELP monitor_status") for line in lines)
        if not is_kuma or not all(map(_sample, samples)):
            return self._site.misread("no metrics of monitors")
        return list(_read_metrics(samples))

    async def _from_page(self) -> list[MonitorState] | Failure:
        page = await self._site.json(f"/api/status-page/{self._page}", _Page)
        if isinstance(page, Failure):
            return page
        beats = await self._site.json(f"/api/status-page/heartbeat/{self._page}", _Beats)
        if isinstance(beats, Failure):
            return beats
        last = {number: beat[-1].status for number, beat in beats.heartbeatList.items() if beat}
        monitors = [monitor for group in page.publicGroupList for monitor in group.monitorList]
        return [MonitorState(one.name, UP.get(last.get(str(one.id), -1))) for one in monitors]


def _read_metrics(lines: Sequence[str]) -> Iterator[MonitorState]:
    for line in lines:
        if sample := _sample(line):
            labels = {
                name: _escape.sub(lambda one: "\n" if one[1] == "n" else one[1], value)
                for name, value in _labels(sample[1])
            }
            try:
                state = int(float(sample[2]))
            except (ValueError, OverflowError):
                continue
            if labels.get("monitor_name"):
                yield MonitorState(labels["monitor_name"], UP.get(state))


def named(question: str, monitors: Sequence[MonitorState]) -> list[MonitorState]:
    """Those that a question names: by their whole name; else by words that only names have."""
    words = words_of(question)
    said = f" {' '.join(words)} "
    whole = [one for one in monitors if (name := " ".join(words_of(one.name))) and f" {name} " in said]
    wanted = {word for word in words if word not in _generic()}
    return whole or [one for one in monitors if wanted and wanted <= set(words_of(one.name))]


@cache
def _generic() -> frozenset[str]:
    """Words of questions about services that name none."""
    return UP_WORDS | DOWN_WORDS | GENERIC | stop_words()["en"]


def _tell(monitors: Sequence[MonitorState]) -> Iterator[str]:
    down = [one.name for one in monitors if one.up is False]
    unknown = [one.name for one in monitors if one.up is None]
    up = len(monitors) - len(down) - len(unknown)
    if len(monitors) == 1:
        yield f"{monitors[0].name} is {'up' if up else 'down' if down else 'paused or not checked yet'}."
        return
    yield f"{up} of {len(monitors)} services are up." if up < len(monitors) else f"All {up} services are up."
    if down:
        yield f"Down: {', '.join(down)}."
    if unknown:
        yield f"Paused or not checked yet: {', '.join(unknown)}."
