"""Monitored services: Uptime Kuma, by its metrics or by a public status page.

A state is read from a number in the data, never from words; the names of monitors are words that mean this source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from .fetch import Site, health_of
from .judge import DOWN_WORDS, UP_WORDS
from .source import Empty, Failure, Health, MonitorState, Result, Source, SourceAnswer, SourceQuestion
from .terms import stop_words, words_of

# Kuma's states are 0 to 3: down, up, pending, maintenance.
UP = {0: False, 1: True}
# `monitor_status{monitor_name="Plex",monitor_type="http"} 1`; quotes, backslashes and line ends in labels are escaped.
_sample = re.compile(r'^monitor_status\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}\s+(\S+)').match
_labels = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"').findall
_escape = re.compile(r'\\([\\"n])')
GENERIC = frozenset(
    (
        *("everything", "anything", "something", "nothing", "every", "all", "any", "none", "service", "services"),
        *("server", "servers", "network", "monitor", "monitors", "status", "uptime", "check", "right", "now"),
        *("currently", "still", "today", "site", "sites", "website", "websites", "system", "systems", "host", "hosts"),
        "new",
    )
)
# A shorter name is too likely to mean something else.
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


class Uptime(Source):
    def __init__(self, site: Site, page: str = "", description: str = "") -> None:
        self.name = site.name
        self.description = description or "whether the user's services and servers are up"
        self._site = site
        self._page = page
        self._names: tuple[str, ...] = ()
        """As of the last question."""

    async def ask(self, question: SourceQuestion) -> Result:
        monitors = await self._monitors()
        if isinstance(monitors, Failure):
            return monitors
        if not monitors:
            return Empty()
        asked = named(question.text, monitors)
        unknown = " ".join(word for word in words_of(question.text) if word not in _generic()) if not asked else ""
        if unknown:
            # The question is about something that is not monitored: there are no facts to judge it by.
            return SourceAnswer("\n".join((f"No monitor is called {unknown!r}.", *_tell(monitors))))
        return SourceAnswer("\n".join(_tell(asked or monitors)), facts=tuple(asked or monitors))

    async def check(self) -> Health:
        return await health_of(self._monitors())

    def words(self) -> Sequence[str]:
        return self._names

    async def _monitors(self) -> list[MonitorState] | Failure:
        monitors = await (self._from_page() if self._page else self._from_metrics())
        if not isinstance(monitors, Failure):
            self._names = tuple(one.name for one in monitors if len(one.name) >= LEAST_LETTERS)
        return monitors

    async def _from_metrics(self) -> list[MonitorState] | Failure:
        body = await self._site.get("/metrics")
        if isinstance(body, Failure):
            return body
        lines = body.decode("utf-8", "replace").splitlines()
        samples = [_sample(line) for line in lines if line.startswith("monitor_status{")]
        is_kuma = samples or any(line.startswith("# HELP monitor_status") for line in lines)
        if not is_kuma or not all(samples):
            return self._site.misread("no metrics of monitors")
        return [state for one in samples if one is not None and (state := _read_sample(one)) is not None]

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


def _read_sample(sample: re.Match[str]) -> MonitorState | None:
    name = dict(_labels(sample[1])).get("monitor_name")
    try:
        state = int(float(sample[2]))
    except (ValueError, OverflowError):
        return None
    return (
        MonitorState(_escape.sub(lambda one: "\n" if one[1] == "n" else one[1], name), UP.get(state)) if name else None
    )


def named(question: str, monitors: Sequence[MonitorState]) -> list[MonitorState]:
    """The monitors that a question names: by their whole name, else by all its words that are not generic."""
    words = words_of(question)
    text = f" {' '.join(words)} "
    whole = [one for one in monitors if (name := " ".join(words_of(one.name))) and f" {name} " in text]
    wanted = {word for word in words if word not in _generic()}
    return whole or [one for one in monitors if wanted and wanted <= set(words_of(one.name))]


@cache
def _generic() -> frozenset[str]:
    """Words of questions about services that are not names."""
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
