"""A question in disguise keeps its route: 2,000 rows behind look-alike, invisible, full-width and tag characters.

The rows are written here, from templates that reach every route; `tests/text/test_fold.py` has the single characters.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from random_text import LOOKALIKES, router
from turnout.config.load import shipped

TOPICS = (
    *("entropy", "photosynthesis", "the French Revolution", "a binary tree", "inflation", "DNA repair", "game theory"),
    *("Kubernetes networking", "monads", "the Krebs cycle"),
)
TEMPLATES = (
    "What is {}?",
    "Define {} very concisely",
    "Explain {} briefly",
    "hello, who is behind {}?",
    "What does the term {} on the far right mean?",
    "Explain what {} means in the definition on the far right",
    "Explain the figure about {} in the top left",
    "What does this section mean for {}?",
    "Is that paragraph about {} important?",
    "Summarize the main argument about {}",
    "Walk me through {} above and below the table",
    "How does this relate to {}?",
    "Write a function that returns {} as JSON",
    "Write a poem about {} and imagine a story",
    "Translate {} into German, yes or no?",
    "Prove the theorem about {} step by step",
    "Derive {} formally and give a mathematical proof",
    "Build and deploy an algorithm for {}: first install it, then debug and fix the database",
    "Design the architecture of {}, optimize the infrastructure, make sure to verify it. 1. plan 2. do",
    "Implement {} with at most two tables, at least one schema, and a limit. Don't use XML, avoid CSV, never YAML",
    "import {}; class A: def f(): return await x",
    "Why {}? And how? And when? Since when?",
    "thanks, that was all on {}",
    "Compare {} with its opposite in about a hundred words",
    "When was {} first described, and what is the capital of that country?",
    "Look at {}, update the docs, change the code, then confirm",
    "Use quantum photonics and zero-knowledge proofs for {}",
    "Give me a quick summary of {} from the page",
    "chain of thought, please: {} logically",
    "no more than a minimum of {} within budget",
    "{}",
    "Tell me about {}",
    "In short: what's {}?",
    "Create a structured markdown table of {}, following the API above",
    "Don't exclude {}; do not edit, modify or compile it without asking",
    "set up {} with npm and pip until it works, iterate and execute",
    "the definition of {} in the middle column of this page",
    "on the left of the figure: {}",
    "select {} from the database where async is const",
    "a creative way to brainstorm {}, compose it",
)

ROWS = [template.format(topic) for template, topic in itertools.product(TEMPLATES, TOPICS)]

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f"
BIDI = "\u200e\u200f\u202a\u202b\u202d\u202e\u202c\u2066\u2067\u2068\u2069\u061c"
CAPITALS = dict(zip("AEOPCXIJSBMHTKY", "АЕОРСХІЈЅВМНТКУ", strict=True))
GREEK = dict(zip("oavikxp", "οανικχρ", strict=True))


def lookalikes(text: str, random: random.Random) -> str:
    """A third of the letters that have one become their look-alike."""
    table = LOOKALIKES | CAPITALS | (GREEK if random.random() < 0.3 else {})
    return "".join(table.get(letter, letter) if random.random() < 0.33 else letter for letter in text)


def sprinkle(characters: str) -> Callable[[str, random.Random], str]:
    """Characters nobody sees between any two letters, one in three."""

    def change(text: str, random: random.Random) -> str:
        return "".join(letter + random.choice(characters) if random.random() < 0.33 else letter for letter in text)

    return change


def fullwidth(text: str, random: random.Random) -> str:
    """Whole words, or all of it, in the wide letters of East Asian type."""
    share = random.choice((0.4, 1.0))

    def widen(word: str) -> str:
        return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word)

    blank = random.choice((" ", "\u3000"))
    return blank.join(widen(word) if random.random() < share else word for word in text.split(" "))


def tags(text: str, random: random.Random) -> str:
    """A hidden message in tag characters, which must not be read either."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "prove the theorem step by step, write a function")
    at = random.randrange(len(text) + 1)
    return text[:at] + hidden + text[at:]


class Disguise(NamedTuple):
    id: str
    change: Callable[[str, random.Random], str]
    least: float


# Look-alikes are judged word by word: a word of nothing but foreign letters is left alone, so not all can be undone.
DISGUISES = [
    Disguise("lookalikes", lookalikes, 0.98),
    Disguise("zero-width", sprinkle(ZERO_WIDTH), 1.0),
    Disguise("bidi", sprinkle(BIDI), 1.0),
    Disguise("fullwidth", fullwidth, 1.0),
    Disguise("tags", tags, 1.0),
]

FOLDING = [name for name in shipped() if router(name).profile.resolved.get("text", {}).get("fold") != "javascript"]


def rows(disguise: Disguise) -> Iterator[tuple[str, str]]:
    pick = random.Random(f"disguise {disguise.id}")
    return ((row, disguise.change(row, pick)) for row in ROWS)


def test_there_are_2000_rows() -> None:
    assert len(set(ROWS)) == len(ROWS)
    assert len(ROWS) * len(DISGUISES) >= 2000


@pytest.mark.parametrize("name", [name for name in FOLDING if name.startswith(("study", "tiers"))])
def test_the_rows_reach_every_route(name: str) -> None:
    assert {router(name).route_sync(row).route for row in ROWS} == set(router(name).profile.routes)


def moved(name: str, disguise: Disguise) -> list[str]:
    """The disguised rows that get another route than the plain ones."""
    route = router(name).route_sync
    return [disguised for row, disguised in rows(disguise) if route(row).route != route(disguised).route]


@pytest.mark.alike(3)
@pytest.mark.parametrize("disguise", DISGUISES, ids=lambda disguise: disguise.id)
@pytest.mark.parametrize("name", FOLDING)
def test_a_question_in_disguise_keeps_its_route(name: str, disguise: Disguise) -> None:
    others = moved(name, disguise)
    assert len(others) <= (1 - disguise.least) * len(ROWS), others


@pytest.mark.parametrize("name", FOLDING)
def test_of_all_rows_in_disguise_99_in_100_keep_their_route(name: str) -> None:
    others = [row for disguise in DISGUISES for row in moved(name, disguise)]
    assert len(others) <= 0.01 * len(ROWS) * len(DISGUISES), others


@pytest.mark.parametrize("disguise", DISGUISES, ids=lambda disguise: disguise.id)
def test_a_disguise_is_one(disguise: Disguise) -> None:
    """Nearly every row is changed, and to plain eyes not at all."""
    assert sum(row != disguised for row, disguised in rows(disguise)) > 0.95 * len(ROWS)
