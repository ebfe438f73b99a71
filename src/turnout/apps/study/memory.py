"""What a reader studied before: of each session that has ended a summary, and every message with the one before it.

A message alone says little ("yes, in 1848"); with its neighbour and the day it is found. The rows of the store are the
truth, and the index follows them: what is forgotten there is not found here, in whichever process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import sqrt

from msgspec import Struct

from turnout.search import Filters, Hit, Index, IndexDocument
from turnout.store.study import StudyRows, StudySession, StudyTurn
from turnout.text.followup import find_names
from turnout.text.language import guess
from turnout.text.sentence import split

from .notes import fitting

# Memories that are sent at most: some 500 tokens of them.
SHOWN = 5
# Messages that are looked through for the sessions they are from: sessions are ranked by their best one.
LOOKED = 30
# Characters of a session that its language is told from.
GUESSED = 20_000
# Sentences of a summary.
SUMMARY = 5


class Memory(Struct, frozen=True):
    """Something that was said or summed up."""

    text: str
    when: str
    session: str
    """The session's id."""
    id: str


class Memories:
    """What all readers of a store studied before, each their own. Blocking."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[str, frozenset[str]] = {}
        """By reader, the sessions that are in the index."""

    def follow(self, reader: str, rows: StudyRows) -> None:
        """Bring the index up to what the store has of a reader."""
        ended = {session.id: session for session in rows.ended()}
        known = self._known.get(reader)
        if known is None:
            there = (ident.split("/") for ident in self._index.ids())
            known = frozenset(session for owner, session, _ in there if owner == _owner(reader))
        if gone := known - ended.keys():
            ids = [ident for ident in self._index.ids() if ident.split("/")[1] in gone]
            self._index.delete(ids)
        for ident in ended.keys() - known:
            self.remember(reader, ended[ident], rows.turns(ident))
        self._known[reader] = frozenset(ended)

    def remember(self, reader: str, session: StudySession, turns: Sequence[StudyTurn]) -> None:
        messages = [message for turn in turns for message in (turn.question, turn.answer)]
        when = day_of(session.started_ms)
        self._index.upsert(documents(reader, session.id, when, messages, session.summary or ""))

    def find(self, reader: str, question: str, limit: int = SHOWN) -> tuple[Memory, ...]:
        """What fits a question best."""
        hits = fitting(self.search(reader, question, LOOKED), question)
        found: dict[str, Memory] = {}
        for hit in hits:
            _, session, place = hit.id.split("/")
            # A question and its answer stand in each other's document: one of them will do.
            turn = f"{session}/{int(place) // 2 if place.isdecimal() else place}"
            found.setdefault(turn, Memory(hit.text.strip(), hit.title, session, hit.id))
        return tuple(found.values())[:limit]

    def search(self, reader: str, question: str, limit: int) -> Sequence[Hit]:
        return self._index.search(question, filters=Filters({"reader": _owner(reader)}), limit=limit).hits

    def close(self) -> None:
        self._index.close()


def rank_sessions(hits: Sequence[Hit]) -> list[str]:
    """The ids of the sessions that were found, the one with the best message first."""
    return list(dict.fromkeys(hit.id.split("/")[1] for hit in hits))


def documents(
    reader: str, session: str, when: str, messages: Sequence[str], summary: str = ""
) -> Iterator[IndexDocument]:
    """A session as it is searched: every message with the one before it, under the day, and the summary."""
    owner = _owner(reader)
    # Of all that was said: a message alone is too short to tell.
    lang = guess("\n".join(messages)[:GUESSED])
    for number, said in enumerate(messages):
        text = f"{messages[number - 1]}\n{said}" if number else said
        yield IndexDocument(f"{owner}/{session}/{number}", text, when, lang, {"reader": owner})
    if summary:
        yield IndexDocument(f"{owner}/{session}/summary", summary, when, lang, {"reader": owner})


def day_of(ms: int) -> str:
    day = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{day.day} {day:%B %Y}"


def summarize(turns: Sequence[StudyTurn]) -> str:
    """The sentences of a session that name most of what it is about, in their order. Nothing is made up: each was said.

    What it is about is what the questions name. No model is asked.
    """
    texts = [(turn.question, *split(turn.answer)) for turn in turns]
    counts: dict[str, int] = {}
    for turn in turns:
        for name in find_names(turn.question):
            counts[name] = counts.get(name, 0) + 1
    flat = list(dict.fromkeys(said.strip() for sentences in texts for said in sentences if said.strip()))
    best = sorted(range(len(flat)), key=lambda at: (-_weight(find_names(flat[at]), counts), at))[:SUMMARY]
    return " ".join(flat[at] for at in sorted(best))


def _weight(names: Iterable[str], counts: dict[str, int]) -> float:
    """What a sentence says of what the session is about; a long one is not better for being long."""
    found = list(names)
    return sum(counts.get(name, 0) for name in found) / sqrt(len(found) + 2)


def _owner(reader: str) -> str:
    """A reader's name inside an id."""
    return reader.replace("/", "%2F")
