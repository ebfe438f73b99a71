"""A reader's question, and the events for its route and its whole answer."""

from __future__ import annotations

from typing import NamedTuple

from turnout.apps.event import Event, Failed

from .answer import NoteCitation
from .image import PageImage
from .savings import Saving

# The session of a reader who names none.
SESSION = "default"


class StudyQuestion(NamedTuple):
    """A reader's question."""

    text: str
    page: PageImage | None = None
    session: str = SESSION
    look: bool = False
    """Ask the previous question again, with the page."""
    route: str | None = None
    """A route that the caller chooses."""


class RouteChosen(Event, frozen=True, tag="decided"):
    """The route and the context of the answer."""

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
    """The HTTP status for a client that does not stream."""


class StudyAnswer(Event, frozen=True, tag="done"):
    """The whole answer: the response of `POST /v1/study/ask`, and the last event of a stream."""

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
