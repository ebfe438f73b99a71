"""What a reader asks, and what is told of it: how it was decided, and the whole answer."""

from __future__ import annotations

from typing import NamedTuple

from turnout.apps.event import Event, Failed

from .answer import NoteCitation
from .image import PageImage
from .savings import Saving

# A reader who names no session has this one.
SESSION = "default"


class StudyQuestion(NamedTuple):
    """What a reader asks."""

    text: str
    page: PageImage | None = None
    session: str = SESSION
    look: bool = False
    """The question before is meant, once more and with the page."""
    route: str | None = None
    """A route that the caller names."""


class RouteChosen(Event, frozen=True, tag="decided"):
    """What the answer will be made from."""

    decision: str
    route: str
    by: str
    session: str
    image: bool
    turns: int
    memories: int
    notes: int


class NotAnswered(Failed, frozen=True, tag="failed"):
    """Why there is no answer, or only the beginning of one."""

    status: int = 502
    """What an HTTP client is told that waits for the whole answer."""


class StudyAnswer(Event, frozen=True, tag="done"):
    """The whole answer: what `POST /v1/study/ask` returns, and the last event of a stream."""

    text: str
    decision: str
    route: str
    session: str
    sentences: int
    capped: bool
    """The model would have said more."""
    saving: Saving
    citations: tuple[NoteCitation, ...] = ()
    again: str | None = None
    """The decision that the reader corrected by asking for the page."""
