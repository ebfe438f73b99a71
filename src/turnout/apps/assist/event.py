"""The events of an answer: decided, searched, written, cited; the last event is the whole answer."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from turnout.apps.event import Event

WhyRefused = Literal["", "not_in_documents", "no_documents", "no_such_version"]


class AskContext(Struct, frozen=True):
    """What comes with a question but is not part of it."""

    selected_text: str = ""
    editor_content: str = ""
    extra_context: str = ""
    """Platform data: usage, quota, billing."""
    user_info: str = ""
    library: str = ""
    version: str = ""


NO_CONTEXT = AskContext()


class TypeDecided(Event, frozen=True, tag="decided"):
    query_type: str
    decision_id: str
    by: str
    confidence: float


class DocCitation(Event, frozen=True, tag="citation"):
    """A passage that an answer cites: its file, headings and range of characters."""

    number: int
    library: str
    version: str
    file: str
    heading: tuple[str, ...]
    start: int
    end: int
    anchor: str = ""
    text: str = ""
    """The passage itself."""

    @property
    def place(self) -> str:
        """The place in one line, for people."""
        return " › ".join((f"{self.library} {self.version}", self.file, *self.heading))


class Retrieved(Event, frozen=True, tag="retrieved"):
    """The passages that were found, the best first."""

    passages: tuple[DocCitation, ...]
    confidence: float
    """The probability that they answer the question."""


class AssistAnswer(Event, frozen=True, tag="answer"):
    answer: str
    query_type: str
    decision_id: str
    session_id: str
    citations: tuple[DocCitation, ...] = ()
    """The passages that support the answer, by their numbers in it."""
    retrieval: bool = False
    """Whether documents were searched."""
    refused: WhyRefused = ""
    """Why there is no answer from the documents."""
    model: str = ""
    """The model that wrote it; empty if the passages themselves are the answer."""
    unsupported: int = 0
    """Sentences that their citations did not support: those were removed, and the sentences marked."""
