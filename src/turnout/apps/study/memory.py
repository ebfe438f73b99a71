"""What a reader studied before: the summary of each ended session, and every message with the one before it.

A message alone says little ("yes, in 1848"), so it is indexed with the message before it and the day. The index follows
the store: what any process deletes there is no longer found here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from math import sqrt

from msgspec import Struct

from turnout.search import Filters, Hit, Index, IndexDocument
from turnout.store.study import StudyRows, StudySession, StudyTurn
from turnout.text.followup import find_names
from turnout.text.language import guess
from turnout.text.sentence import split

from .notes import fitting

# The most memories sent: some 500 tokens.
SHOWN = 5
# Messages searched for them.
LOOKED = 30
# Characters of a session from which its language is guessed.
GUESSED = 20_000
# Sentences of a summary.
SUMMARY = 5


class Memory(Struct, frozen=True):
    """A remembered message or summary."""

    text: str
    when: str
    session: str
    """The session's id."""
    id: str


class Memories:
    """The memories of all readers of a store. Blocking."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[str, frozenset[str]] = {}
        """The indexed sessions of each reader."""

    def follow(self, reader: str, rows: StudyRows) -> None:
        """Update the index with the reader's rows in the store."""
        ended = {session.id: session for session in rows.ended()}
        known = self._known.get(reader)
        if known is None:
            indexed = (ident.split("/") for ident in self._index.ids())
            known = frozenset(session for owner, session, _ in indexed if owner == _owner(reader))
        if gone := known - ended.keys():
            self._index.delete([ident for ident in self._index.ids() if ident.split("/")[1] in gone])
        for ident in ended.keys() - known:
            self.remember(reader, ended[ident], rows.turns(ident))
        self._known[reader] = frozenset(ended)

    def remember(self, reader: str, session: StudySession, turns: Sequence[StudyTurn]) -> None:
        messages = [message for turn in turns for message in (turn.question, turn.answer)]
        when = day_of(session.started_ms)
        self._index.upsert(documents(reader, session.id, when, messages, session.summary or ""))

    def find(self, reader: str, question: str, limit: int = SHOWN) -> tuple[Memory, ...]:
        """The memories that fit a question best."""
        hits = fitting(self.search(reader, question, LOOKED), question)
        found: dict[str, Memory] = {}
        for hit in hits:
            _, session, place = hit.id.split("/")
            # A question and its answer share a document, so only one of them is taken.
            turn = f"{session}/{int(place) // 2 if place.isdecimal() else place}"
            found.setdefault(turn, Memory(hit.text.strip(), hit.title, session, hit.id))
        return tuple(found.values())[:limit]

    def search(self, reader: str, question: str, limit: int) -> Sequence[Hit]:
        return self._index.search(question, filters=Filters({"reader": _owner(reader)}), limit=limit).hits

    def close(self) -> None:
        self._index.close()


def documents(
    reader: str, session: str, when: str, messages: Sequence[str], summary: str = ""
) -> Iterator[IndexDocument]:
    """A session in the index: every message with the one before it, titled by the day, and the summary."""
    owner = _owner(reader)
    # Guessed from all messages, as one is too short.
    lang = guess("\n".join(messages)[:GUESSED])
    for number, message in enumerate(messages):
        text = f"{messages[number - 1]}\n{message}" if number else message
        yield IndexDocument(f"{owner}/{session}/{number}", text, when, lang, {"reader": owner})
    if summary:
        yield IndexDocument(f"{owner}/{session}/summary", summary, when, lang, {"reader": owner})


def day_of(ms: int) -> str:
    day = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{day.day} {day:%B %Y}"


def summarize(turns: Sequence[StudyTurn]) -> str:
    """The sentences of a session with most of the names in its questions, in their order. No model is asked."""
    counts = Counter(name for turn in turns for name in find_names(turn.question))
    sentences = (sentence.strip() for turn in turns for sentence in (turn.question, *split(turn.answer)))
    flat = list(dict.fromkeys(filter(None, sentences)))
    best = sorted(range(len(flat)), key=lambda at: (-_weight(find_names(flat[at]), counts), at))[:SUMMARY]
    return " ".join(flat[at] for at in sorted(best))


def _weight(names: Collection[str], counts: Counter[str]) -> float:
    """How much of the session's subject a sentence names, whatever its length."""
    return sum(counts[name] for name in names) / sqrt(len(names) + 2)


def _owner(reader: str) -> str:
    """A reader's name inside an id."""
    return reader.replace("/", "%2F")
