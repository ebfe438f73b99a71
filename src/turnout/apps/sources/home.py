"""A home as a value: its things with their names, areas and states, and which of them a question is about.

Names are matched by whole words, roughly stemmed. A question that says what kind of thing it means ("the kitchen
light") is never answered with another kind that happens to be called so. Word lists are data (`home.toml`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from msgspec import Struct

from .source import EntityState
from .terms import stems, stop_words, words_of

# Domains that hold nothing anybody asks about.
UNASKED = frozenset(
    ("zone", "sun", "stt", "tts", "button", "event", "conversation", "tag", "mailbox", "image_processing")
)
# Domains whose things are called like places, which everybody speaks of.
PLACES = frozenset(("zone", "weather"))
_OUTDOORS = frozenset(("outside", "outdoor", "outdoors"))
UNKNOWN = frozenset(("unknown", "unavailable", "none", ""))


class Thing(Struct, frozen=True):
    """Something in the home."""

    id: str
    names: tuple[str, ...]
    """What it is called, and its aliases."""
    state: str
    """As people say it: a door that Home Assistant calls "on" is open."""
    areas: tuple[str, ...] = ()
    """Its area, by its names."""
    device_class: str = ""
    unit: str = ""
    details: Mapping[str, Any] = {}
    """Of its attributes, those that are told."""

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
    """What its things are called that means this home wherever it is said."""
    return tuple(dict.fromkeys(name for thing in home.things if thing.domain not in PLACES for name in thing.names))


class _Kind(NamedTuple):
    name: str
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
    """Of `property` or of `thing`."""
    return tuple(
        _Kind(
            name,
            frozenset((*row["words"].split(), *stems(row["words"].split()))),
            frozenset(row.get("domains", ())),
            frozenset(row.get("classes", ())),
        )
        for name, row in lists()[table].items()
    )


def binary_state(state: str, device_class: str) -> str:
    """What "on" and "off" mean for a binary sensor."""
    words = lists()["binary"].get(device_class)
    return state if words is None or state not in ("on", "off") else str(words[state == "off"])


class AskedThings(NamedTuple):
    """What of a home a question is about."""

    things: tuple[Thing, ...]
    acts: bool
    """It asks for something to be done."""
    unknown: str = ""
    """What it names that nothing here is called: then what is told is of the kind, and cannot be judged by."""


def look(question: str, home: Home) -> AskedThings:
    """Which things a question is about; none if it names nothing of this home."""
    words = words_of(question)
    said = tuple(stems(words))
    properties = _mentioned(said, "property")
    things = _mentioned(said, "thing")
    named, _ = _full_names(said, home.things)
    rooms = [area for area in home.areas if any(_places(_spelled(name), said) for name in area)]
    candidates, own = home.things, list[Thing]()
    if properties or things:
        # The property decides, unless nothing of the home has it, or what is named has another.
        of_property = [thing for thing in home.things if any(kind.has(thing) for kind in properties)]
        of_thing = [thing for thing in home.things if any(kind.has(thing) for kind in things)]
        # The battery of what is named, and not the thing itself.
        own = [one for one in of_property if any(_words(name, areas=False) <= _words(one) for name in named)]
        candidates = tuple(own or of_property or of_thing or named)
        if of_property and not _OUTDOORS.isdisjoint(words):
            outdoors = [one for one in of_property if one.domain == "weather" or not _OUTDOORS.isdisjoint(_words(one))]
            candidates = tuple(outdoors) or candidates
    chosen = _choose(said, candidates, rooms) or tuple(candidates if own else named)
    if chosen or not (properties or things):
        return AskedThings(chosen, is_request(words))
    strange = [
        word for word, stem in zip(words, said, strict=True) if stem not in ordinary() and word not in ordinary()
    ]
    return AskedThings(tuple(candidates), is_request(words), " ".join(word for word in strange if not word.isdigit()))


def _choose(said: Sequence[str], candidates: Sequence[Thing], rooms: Sequence[Sequence[str]]) -> tuple[Thing, ...]:
    """Of the candidates, those called by name; those in the rooms; else those some of whose name is said."""
    named, covered = _full_names(said, candidates)
    names = {name for room in rooms if not _is_within(room, said, covered) for name in room}
    inside = [thing for thing in candidates if names & set(thing.areas)]
    if named:
        # "The living room and kitchen lights": a room beside what is named.
        return tuple({thing.id: thing for thing in (*named, *inside)}.values())
    if inside:
        return tuple(_nearest(said, inside)) or tuple(inside)
    return tuple(_nearest(said, candidates))


def _full_names(said: Sequence[str], things: Iterable[Thing]) -> tuple[list[Thing], set[int]]:
    """Things whose whole name is said, but not inside of another's; and which words those are."""
    spans: dict[str, list[tuple[int, int]]] = {}
    found = list(things)
    for thing in found:
        for name in thing.names:
            spans.setdefault(thing.id, []).extend(_places(_spelled(name), said))
    longest = sorted({span for places in spans.values() for span in places}, key=lambda span: span[0] - span[1])
    kept: list[tuple[int, int]] = []
    for start, end in longest:
        if not any(first <= start and end <= last and (first, last) != (start, end) for first, last in kept):
            kept.append((start, end))
    named = [thing for thing in found if any(span in kept for span in spans.get(thing.id, ()))]
    return named, {at for start, end in kept for at in range(start, end)}


def _is_within(room: Sequence[str], said: Sequence[str], covered: set[int]) -> bool:
    """Whether a room is said only as a part of names."""
    places = [span for name in room for span in _places(_spelled(name), said)]
    return all(covered.issuperset(range(*span)) for span in places)


def _nearest(said: Sequence[str], things: Sequence[Thing]) -> list[Thing]:
    """Things more of whose own name is said than of the others'. Words for kinds of things tell none apart."""
    wanted = [word for word in said if word not in ordinary()]
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
    """Words that name no one thing: those for kinds and states, those of requests, and the small ones."""
    act = lists()["act"]
    known = {word for table in ("property", "thing") for kind in kinds(table) for word in kind.words}
    known |= {word for row in (act["verbs"], act["leads"], act["asking"], act["fillers"]) for word in row.split()}
    known |= {word for pair in lists()["binary"].values() for state in pair for word in state.split()}
    return frozenset((*known, *stems(known), *stop_words()["en"]))


@lru_cache(maxsize=50_000)
def _spelled(name: str) -> tuple[str, ...]:
    """A name as its stems. Large homes have thousands, and each is looked for in every question."""
    return tuple(stems(words_of(name)))


def _mentioned(said: Sequence[str], table: str) -> list[_Kind]:
    return [kind for kind in kinds(table) if not kind.words.isdisjoint(said)]


def _places(name: tuple[str, ...], said: Sequence[str]) -> list[tuple[int, int]]:
    """Where a run of words stands."""
    size = len(name)
    starts = range(len(said) - size + 1) if size else ()
    return [(at, at + size) for at in starts if tuple(said[at : at + size]) == name]


def _words(thing: Thing, *, areas: bool = True) -> set[str]:
    return {word for name in (*thing.names, *(thing.areas if areas else ())) for word in words_of(name)}


def is_request(words: Sequence[str]) -> bool:
    """Whether something is to be done: "turn off the light", "kitchen light off"."""
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
