"""What happens while a question is answered: decided, searched, said, cited; the last event is the whole answer."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from turnout.apps.event import Event

WhyRefused = Literal["", "not_in_documents", "no_documents", "no_such_version"]


class AskContext(Struct, frozen=True):
    """What comes with a question and is no part of it."""

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
    """A passage that an answer is from: which file, under which headings, from where to where."""

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
        """In one line, for people."""
        return " › ".join((f"{self.library} {self.version}", self.file, *self.heading))


class Retrieved(Event, frozen=True, tag="retrieved"):
    """What the documents have, the best first; none where they have nothing on it."""

    passages: tuple[DocCitation, ...]
    confidence: float
    """That the question is answered there."""


class AssistAnswer(Event, frozen=True, tag="answer"):
    answer: str
    query_type: str
    decision_id: str
    session_id: str
    citations: tuple[DocCitation, ...] = ()
    """Those that hold, by the numbers in the answer."""
    retrieval: bool = False
    """Whether documents were searched."""
    refused: WhyRefused = ""
    """Why there is no answer from the documents."""
    model: str = ""
    """Who wrote it; empty where the passages themselves are the answer."""
    unsupported: int = 0
    """Sentences that cited what does not say so: their citations are gone, and they are marked."""
