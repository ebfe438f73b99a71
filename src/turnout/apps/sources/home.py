"""A home as a value: its things with their names, areas and states; and which of them a question is about.

Names are matched by whole words, roughly stemmed. A question that names a kind of thing ("the kitchen light") is never
answered with another kind that happens to have that name. Word lists are data (`home.toml`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from msgspec import Struct

from .source import EntityState
from .terms import stems, stop_words, words_of

# Domains without anything that people ask about.
UNASKED = frozenset(
    ("zone", "sun", "stt", "tts", "button", "event", "conversation", "tag", "mailbox", "image_processing")
)
# Domains whose things have names of places, which questions about anything may mention.
PLACES = frozenset(("zone", "weather"))
_OUTDOORS = frozenset(("outside", "outdoor", "outdoors"))
UNKNOWN = frozenset(("unknown", "unavailable", "none", ""))


class Thing(Struct, frozen=True):
    """Something in the home."""

    id: str
    names: tuple[str, ...]
    """Its name and aliases."""
    state: str
    """As people say it: a door that Home Assistant calls "on" is open."""
    areas: tuple[str, ...] = ()
    """The names of its area."""
    device_class: str = ""
    unit: str = ""
    details: Mapping[str, Any] = {}
    """The attributes that are shown."""

    @property
    def domain(self) -> str:
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def fact(self) -> EntityState:
        area = self.areas[0] if self.areas else ""
        return EntityState(self.id, self.name, self.state, area, self.device_class or self.domain, self.unit)


class Home(Struct, frozen=True):
    things: tuple[Thing, ...]
    areas: tuple[tuple[str, ...], ...] = ()
    """The names of each area."""


def names_of(home: Home) -> tuple[str, ...]:
    """The names of its things that mean this home in any question."""
    return tuple(dict.fromkeys(name for thing in home.things if thing.domain not in PLACES for name in thing.names))


class _Kind(NamedTuple):
    words: frozenset[str]
    domains: frozenset[str]
    classes: frozenset[str]

    def has(self, thing: Thing) -> bool:
        return thing.domain in self.domains or thing.device_class in self.classes


@cache
def lists() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("home.toml").read_text(encoding="utf-8"))


@cache
def kinds(table: str) -> tuple[_Kind, ...]:
    """The kinds in the table `property` or `thing`."""
    return tuple(
        _Kind(
            frozenset((*row["words"].split(), *stems(row["words"].split()))),
            frozenset(row.get("domains", ())),
            frozenset(row.get("classes", ())),
        )
        for row in lists()[table].values()
    )


def binary_state(state: str, device_class: str) -> str:
    """The meaning of "on" and "off" for a binary sensor."""
    words = lists()["binary"].get(device_class)
    return state if words is None or state not in ("on", "off") else str(words[state == "off"])


class AskedThings(NamedTuple):
    """The things of a home that a question is about."""

    things: tuple[Thing, ...]
    acts: bool
    """The question asks for an action."""
    unknown: str = ""
    """A name in the question that no thing has: then the things are only of the same kind, and prove nothing."""


def look(question: str, home: Home) -> AskedThings:
    """The things a question is about; none if it names nothing of this home."""
    words = words_of(question)
    asked = tuple(stems(words))
    properties = _mentioned(asked, "property")
    things = _mentioned(asked, "thing")
    named, _ = _full_names(asked, home.things)
    rooms = [area for area in home.areas if any(_places(_spelled(name), asked) for name in area)]
    candidates, own = home.things, list[Thing]()
    if properties or things:
        # The property decides, unless nothing in the home has it, or the named thing has another.
        of_property = [thing for thing in home.things if any(kind.has(thing) for kind in properties)]
        of_thing = [thing for thing in home.things if any(kind.has(thing) for kind in things)]
        # The battery of the named thing, and not the thing itself.
        own = [one for one in of_property if any(_words(name, areas=False) <= _words(one) for name in named)]
        candidates = tuple(own or of_property or of_thing or named)
        if of_property and not _OUTDOORS.isdisjoint(words):
            outdoors = [one for one in of_property if one.domain == "weather" or not _OUTDOORS.isdisjoint(_words(one))]
            candidates = tuple(outdoors) or candidates
    chosen = _choose(asked, candidates, rooms) or tuple(candidates if own else named)
    if chosen or not (properties or things):
        return AskedThings(chosen, is_request(words))
    unknown = [
        word
        for word, stem in zip(words, asked, strict=True)
        if stem not in ordinary() and word not in ordinary() and not word.isdigit()
    ]
    return AskedThings(tuple(candidates), is_request(words), " ".join(unknown))


def _choose(asked: Sequence[str], candidates: Sequence[Thing], rooms: Sequence[Sequence[str]]) -> tuple[Thing, ...]:
    """The candidates called by name, and those in the rooms; else those called by part of their name."""
    named, covered = _full_names(asked, candidates)
    names = {name for room in rooms if not _is_within(room, asked, covered) for name in room}
    inside = [thing for thing in candidates if names & set(thing.areas)]
    if named:
        # "The living room and kitchen lights": a room beside a name.
        return tuple({thing.id: thing for thing in (*named, *inside)}.values())
    if inside:
        return tuple(_nearest(asked, inside)) or tuple(inside)
    return tuple(_nearest(asked, candidates))


def _full_names(asked: Sequence[str], things: Sequence[Thing]) -> tuple[list[Thing], set[int]]:
    """The things called by their whole name, not counting names inside longer ones; and the places of those words."""
    spans = {thing.id: [span for name in thing.names for span in _places(_spelled(name), asked)] for thing in things}
    longest = sorted({span for places in spans.values() for span in places}, key=lambda span: span[0] - span[1])
    kept: list[tuple[int, int]] = []
    for start, end in longest:
        if not any(first <= start and end <= last for first, last in kept):
            kept.append((start, end))
    named = [thing for thing in things if any(span in kept for span in spans[thing.id])]
    return named, {at for start, end in kept for at in range(start, end)}


def _is_within(room: Sequence[str], asked: Sequence[str], covered: set[int]) -> bool:
    """Whether a room is mentioned only as part of names."""
    places = [span for name in room for span in _places(_spelled(name), asked)]
    return all(covered.issuperset(range(*span)) for span in places)


def _nearest(asked: Sequence[str], things: Sequence[Thing]) -> list[Thing]:
    """The things with the largest share of their name in the question. Words for kinds of things do not count."""
    wanted = [word for word in asked if word not in ordinary()]
    if not wanted:
        return []
    shares = []
    for thing in things:
        own = [[word for word in _spelled(name) if word not in ordinary()] for name in thing.names]
        shares.append(max((sum(word in wanted for word in name) / len(name) for name in own if name), default=0.0))
    best = max(shares, default=0.0)
    return [thing for thing, share in zip(things, shares, strict=True) if share == best] if best else []


@cache
def ordinary() -> frozenset[str]:
    """Words that name no particular thing: those for kinds and states, those of requests, and function words."""
    act = lists()["act"]
    known = {word for row in (act["verbs"], act["leads"], act["asking"], act["fillers"]) for word in row.split()}
    known |= general()
    return frozenset((*known, *stems(known), *stop_words()["en"]))


@cache
def general() -> frozenset[str]:
    """Words for properties, kinds of things, and the states of binary sensors."""
    words = {word for table in ("property", "thing") for kind in kinds(table) for word in kind.words}
    return frozenset(words.union(*(state.split() for pair in lists()["binary"].values() for state in pair)))


@lru_cache(maxsize=50_000)
def _spelled(name: str) -> tuple[str, ...]:
    """The stems of a name. Large homes have thousands of names, and every question is searched for each."""
    return tuple(stems(words_of(name)))


def _mentioned(asked: Sequence[str], table: str) -> list[_Kind]:
    return [kind for kind in kinds(table) if not kind.words.isdisjoint(asked)]


def _places(name: tuple[str, ...], asked: Sequence[str]) -> list[tuple[int, int]]:
    """Where a name occurs, as start and end."""
    size = len(name)
    starts = range(len(asked) - size + 1) if size else ()
    return [(at, at + size) for at in starts if tuple(asked[at : at + size]) == name]


def _words(thing: Thing, *, areas: bool = True) -> set[str]:
    return {word for name in (*thing.names, *(thing.areas if areas else ())) for word in words_of(name)}


def is_request(words: Sequence[str]) -> bool:
    """Whether the words ask for an action: "turn off the light", "kitchen light off"."""
    table = lists()["act"]
    leads, verbs = frozenset(table["leads"].split()), frozenset(table["verbs"].split())
    # "If it is above 23 then set it to 22."
    rest = list(words[words.index("then") + 1 :] if "then" in words else words)
    while rest and rest[0] in leads:
        rest.pop(0)
    if not rest or rest[0] in verbs:
        return bool(rest)
    # "Kitchen light off", "Roborock return to base".
    is_brief = len(rest) < 8 and not {"on", "off", "start", "stop", "return"}.isdisjoint(rest)
    return is_brief and frozenset(table["asking"].split()).isdisjoint(rest)
