"""A source of knowledge: asked a question, it answers, has nothing, or fails; never a phrase in a string.

What is true of an answer stands in it as data (`facts`), so that a condition is judged by states and numbers and not by
the words they were told in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

AskModel = Callable[[str, str], Awaitable[str]]
"""Has a model do what an instruction says with a text; raises a TurnoutError if none does. The caller of the question
pays for it."""


class SourceQuestion(Struct, frozen=True):
    """What a source is asked."""

    text: str
    """One question, made standalone."""
    lang: str = ""
    """The language it is in, as far as that is known: "en"."""
    since: datetime | None = None
    """Of interest is what happened after this."""
    asks: AskModel | None = None
    """What a source may have a model do for it; None: there is no model."""


class Passage(Struct, frozen=True, omit_defaults=True):
    """A stretch of text that something can be cited from."""

    text: str
    title: str = ""
    url: str = ""
    at: datetime | None = None
    """When it was published or measured."""
    score: float = 0.0
    """How well it fits, on the source's own scale; the higher the better."""


class EntityState(Struct, frozen=True, tag="state", omit_defaults=True):
    """A thing in the home, and how it is."""

    id: str
    name: str
    state: str
    area: str = ""
    kind: str = ""
    """Home Assistant's domain or device class: "light", "lock", "door"."""
    unit: str = ""


class MonitorState(Struct, frozen=True, tag="monitor"):
    """A service that is watched."""

    name: str
    up: bool | None
    """None: it is paused, or nothing is known yet."""


class HourOfWeather(Struct, frozen=True, tag="weather"):
    """What the weather is, or will be, for an hour or a day."""

    at: datetime
    code: int
    """WMO's code: 0 is clear, from 51 on something falls."""
    rain_probability: float | None = None
    """0 to 1."""
    rain_mm: float | None = None
    snow_cm: float | None = None
    low_c: float | None = None
    high_c: float | None = None
    wind_kmh: float | None = None


Fact = EntityState | MonitorState | HourOfWeather


class SourceAnswer(Struct, frozen=True, tag="answer", omit_defaults=True):
    """What a source knows."""

    text: str
    """As it is shown to people, in lines."""
    passages: tuple[Passage, ...] = ()
    """What the text was made of, the best first."""
    facts: tuple[Fact, ...] = ()
    """What of it can be judged."""
    note: str = ""
    """What people must know beside it: "Turnout reads, it does not switch"."""


class Empty(Struct, frozen=True, tag="empty"):
    """It was asked, and has nothing about this."""

    looked_for: str = ""
    """What was searched with."""


class Cause(StrEnum):
    """Why a source did not answer."""

    NOT_CONFIGURED = "not_configured"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    DENIED = "denied"
    """It did not accept our credentials, or the egress guard forbids it."""
    MALFORMED = "malformed"
    """It sent something that is not what it should be, or more of it than is read."""
    ERROR = "error"


class Failure(Struct, frozen=True, tag="failed"):
    """It could not say."""

    why: Cause
    said: str
    """A sentence that names the source, what happened and the next step; no secret in it."""


Result = SourceAnswer | Empty | Failure


class Health(Struct, frozen=True):
    """Whether a source can be asked."""

    status: str
    """ok, not_configured or error."""
    said: str = ""
    ms: float = 0.0


class Source(Protocol):
    """A body of knowledge. It is asked by many at once, raises nothing but CancelledError, and keeps its own bounds on
    what it reads; the deadline is its caller's."""

    name: str
    """The route it answers."""
    description: str
    """One line that tells a model what it knows."""

    async def ask(self, question: SourceQuestion) -> Result: ...

    async def check(self) -> Health: ...

    def words(self) -> Sequence[str]:
        """Names that mean this source wherever they stand: of the home's things, of the monitors."""
        ...
