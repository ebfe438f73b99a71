"""The protocol of a source and its values: asked a question, it answers, has nothing, or fails, each as a type of its
own.

An answer also has its facts as data, so that a condition is judged by states and numbers and not by words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

AskModel = Callable[[str, str], Awaitable[str]]
"""Sends an instruction and a text to a model, at the cost of the question's caller; raises a TurnoutError if the model
does not answer."""


class SourceQuestion(Struct, frozen=True):
    """The question to a source."""

    text: str
    """One question, made standalone."""
    lang: str = ""
    """Its language, such as "en", if known."""
    since: datetime | None = None
    """Only what happened later is of interest."""
    asks: AskModel | None = None
    """Lets the source ask a model; None if there is none."""


class Passage(Struct, frozen=True, omit_defaults=True):
    """A text that can be cited."""

    text: str
    title: str = ""
    url: str = ""
    at: datetime | None = None
    """When it was published or measured."""
    score: float = 0.0
    """How well it fits, on the source's own scale; higher is better."""


class EntityState(Struct, frozen=True, tag="state", omit_defaults=True):
    """The state of a thing in the home."""

    id: str
    name: str
    state: str
    area: str = ""
    kind: str = ""
    """Home Assistant's domain or device class: "light", "lock", "door"."""
    unit: str = ""


class MonitorState(Struct, frozen=True, tag="monitor"):
    """A monitored service."""

    name: str
    up: bool | None
    """None if it is paused, or not checked yet."""


class HourOfWeather(Struct, frozen=True, tag="weather"):
    """The weather of an hour or a day."""

    at: datetime
    code: int
    """The WMO code: 0 is clear, from 51 on there is precipitation."""
    rain_probability: float | None = None
    """0 to 1."""
    rain_mm: float | None = None
    snow_cm: float | None = None
    low_c: float | None = None
    high_c: float | None = None
    wind_kmh: float | None = None


Fact = EntityState | MonitorState | HourOfWeather


class SourceAnswer(Struct, frozen=True, tag="answer", omit_defaults=True):
    """A source's answer."""

    text: str
    """As it is shown to people, in lines."""
    passages: tuple[Passage, ...] = ()
    """The passages the text was made of, best first."""
    facts: tuple[Fact, ...] = ()
    """What conditions can be judged by."""
    note: str = ""
    """A remark shown with the answer: "Turnout reads, it does not switch"."""


class Empty(Struct, frozen=True, tag="empty"):
    """The source was asked and has nothing about this."""


class Cause(StrEnum):
    """Why a source did not answer."""

    NOT_CONFIGURED = "not_configured"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    DENIED = "denied"
    """It did not accept our credentials, or the egress guard forbids it."""
    MALFORMED = "malformed"
    """It sent something invalid or too large."""
    ERROR = "error"


class Failure(Struct, frozen=True, tag="failed"):
    """The source could not answer."""

    why: Cause
    said: str
    """A sentence that names the source, the problem and the next step, without secrets."""


Result = SourceAnswer | Empty | Failure


class Health(Struct, frozen=True):
    """Whether a source can be asked."""

    status: str
    """ok, not_configured or error."""
    said: str = ""
    ms: float = 0.0


class Source(Protocol):
    """A body of knowledge. It answers concurrent questions, raises nothing but CancelledError, and bounds what it
    reads; the caller sets the deadline."""

    name: str
    """The route it answers."""
    description: str
    """One line that tells a model what it knows."""

    async def ask(self, question: SourceQuestion) -> Result: ...

    async def check(self) -> Health: ...

    def words(self) -> Sequence[str]:
        """Names that mean this source in any question: of the home's things, of monitors."""
        return ()
