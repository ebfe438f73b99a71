"""Import and export of cards as JSONL, one card per line, and as schema.org ClaimReview (`claim_review`).

A file is read completely before anything is stored: if lines are wrong, all of them are reported and nothing is stored.

Invariant: an exported card can be imported unchanged; unknown fields are kept in `extra` and exported where they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from turnout.core.errors import TurnoutError
from turnout.text.json import UNREADABLE, why_unreadable

from .card import ESSENTIAL, Card, ClaimType, missing, read_type
from .claim_review import from_review, is_review, to_review
from .kind import GUESSED, type_of

# A card has some 3 kB, and 64 kB with every agent's output; a longer line is not a card.
LINE_BYTES = 1024 * 1024
# An id is part of a URL, and shown wherever its card is.
ID_CHARACTERS = 200
# Problems listed one by one.
LISTED = 50
NOT_JSON = "not JSON"
FORMS = "cards are imported from JSONL, a card a line, or from ClaimReview as JSON-LD"


class CardProblem(Struct, frozen=True):
    """An error in a line."""

    line: int
    """From 1."""
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class BadCards(TurnoutError):
    """A file that cannot be imported; it has every problem found."""

    def __init__(self, problems: Sequence[CardProblem]) -> None:
        self.problems = tuple(problems)
        more = f"\nand {len(problems) - LISTED} more" if len(problems) > LISTED else ""
        super().__init__("\n".join(map(str, self.problems[:LISTED])) + more)


def read_cards(raw: bytes) -> list[Card]:
    """The cards of a file: JSONL of cards or ClaimReviews, or one JSON document with a ClaimReview, a list of them, or
    a `@graph`; raises BadCards."""
    cards: list[Card] = []
    problems: list[CardProblem] = []
    if b"\0" in raw:
        raise BadCards([CardProblem(1, f"not text, but {len(raw):,} bytes of something else: {FORMS}")])
    seen: dict[str, int] = {}
    for number, entry in _entries(raw, problems):
        try:
            card = _read_card(entry)
        except (msgspec.ValidationError, ValueError) as error:
            problems.append(CardProblem(number, str(error)))
            continue
        if lacks := missing(card, ESSENTIAL):
            problems.append(CardProblem(number, f"the card {card.id[:80]!r} lacks {', '.join(lacks)}"))
        elif card.id in seen:
            problems.append(CardProblem(number, f"the card {card.id[:80]!r} is on line {seen[card.id]} already"))
        else:
            seen[card.id] = number
            cards.append(card)
    if problems and not seen and all(problem.message.startswith(NOT_JSON) for problem in problems):
        many = f"; nor is any of the {len(problems)} lines" if len(problems) > 1 else ""
        raise BadCards([CardProblem(problems[0].line, f"{problems[0].message}{many}: {FORMS}")])
    if problems:
        raise BadCards(sorted(problems, key=lambda problem: problem.line))
    return cards


def _entries(raw: bytes, problems: list[CardProblem]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object of a file with its line."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if (whole := _document(raw)) is not None:
        yield from ((1, entry) for entry in whole)
        return
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        if len(line) > LINE_BYTES:
            problems.append(CardProblem(number, f"{len(line):,} bytes, a card has {LINE_BYTES:,} at most"))
            continue
        try:
            entry = msgspec.json.decode(line)
        except UNREADABLE as error:
            problems.append(CardProblem(number, f"{NOT_JSON} ({why_unreadable(error, line)})"))
            continue
        if isinstance(entry, dict):
            yield number, entry
        else:
            problems.append(CardProblem(number, f"a card is an object, this is {_called(entry)}"))


def _document(raw: bytes) -> list[dict[str, Any]] | None:
    """The objects of a file that is one JSON document; None if it is not."""
    if raw.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        whole = msgspec.json.decode(raw)
    except UNREADABLE:
        return None
    found = whole.get("@graph", [whole]) if isinstance(whole, dict) else whole
    return found if isinstance(found, list) and all(isinstance(entry, dict) for entry in found) else None


def _called(entry: object) -> str:
    return {list: "a list", str: "a text", type(None): "null", bool: "a truth value"}.get(type(entry), "a number")


def _read_card(entry: dict[str, Any]) -> Card:
    """A card from our JSON or from a ClaimReview; raises ValidationError or ValueError with a sentence."""
    if is_review(entry):
        return _checked(from_review(entry))
    ours = {name: value for name, value in entry.items() if name in Card.__struct_fields__}
    kept = {name: value for name, value in entry.items() if name not in Card.__struct_fields__}
    named = ours.get("claim_type_category")
    if isinstance(named, str):
        kind = read_type(named)
        if kind is None:
            known = ", ".join(ClaimType)
            raise ValueError(f"claim_type_category {named[:80]!r} is not a type of claim; there are {known}")
        ours["claim_type_category"] = kind.value
    elif named is None and isinstance(claim := ours.get("claim_text"), str):
        ours["claim_type_category"] = type_of(claim)[0].value
        kept[GUESSED] = True
    # Some libraries export an empty object if there is no output.
    if ours.get("agent_audit") == {}:
        del ours["agent_audit"]
    card = msgspec.convert(ours, Card)
    return _checked(msgspec.structs.replace(card, extra={**card.extra, **kept}) if kept else card)


def _checked(card: Card) -> Card:
    if len(card.id) > ID_CHARACTERS or not card.id.isprintable() or "/" in card.id or card.id != card.id.strip():
        rule = f"at most {ID_CHARACTERS} printable characters, no slash, no space at either end"
        raise ValueError(f"id {card.id[:80]!r}: {rule}")
    return card


def write_cards(cards: Iterable[Card]) -> Iterator[bytes]:
    """The cards as JSONL, each with the unknown fields of its import."""
    for card in cards:
        form: dict[str, Any] = msgspec.to_builtins(card)
        extra: Mapping[str, Any] = form.pop("extra", {})
        # Unknown fields with the name of one of ours stay in `extra`.
        clashing = {name: value for name, value in extra.items() if name in Card.__struct_fields__}
        rest = {name: value for name, value in extra.items() if name not in clashing}
        yield msgspec.json.encode({**form, **rest, **({"extra": clashing} if clashing else {})}) + b"\n"


def write_reviews(cards: Iterable[Card]) -> bytes:
    """The cards as one JSON-LD document of ClaimReviews."""
    graph = [to_review(card) for card in cards]
    document = {"@context": "https://schema.org", "@graph": graph}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


@cache
def starter_cards() -> tuple[Card, ...]:
    """The cards that ship with Turnout. They were written from memory, without looking at any source."""
    return tuple(read_cards(files("turnout.apps.claims").joinpath("starter.jsonl").read_bytes()))
