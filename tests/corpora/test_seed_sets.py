"""The seed sets are what they say: rows of the profile's routes, each once, in many languages."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import turnout

SEEDS = Path(turnout.__file__).parent / "profiles" / "seeds"
# As many as each is to have at the least, languages beside English included.
LEAST = {"tiers": 5_000, "sources": 3_000, "study": 2_000, "claims": 2_000}


@pytest.fixture(params=LEAST, scope="module")
def seeds(request: pytest.FixtureRequest) -> tuple[str, list[dict[str, Any]]]:
    name: str = request.param
    lines = (SEEDS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return name, [json.loads(line) for line in lines]


def test_there_are_enough(seeds: tuple[str, list[dict[str, Any]]]) -> None:
    name, rows = seeds
    assert len(rows) >= LEAST[name]
    langs = Counter(row["lang"] for row in rows)
    assert all(langs[lang] >= 100 for lang in ("en", "es", "de", "fr", "pt", "zh", "ja"))


def test_every_label_is_a_route(seeds: tuple[str, list[dict[str, Any]]]) -> None:
    name, rows = seeds
    routes = set(turnout.load_profile(name, config="").routes)
    # No source answers a stranger (`oos`); the student of claims never says `exact_match`: that needs a card.
    allowed = routes | {"oos"} if name == "sources" else routes - {"exact_match"}
    said = [label for row in rows for key in ("label", "second") if key in row for label in row[key].split("+")]
    assert set(said) <= allowed


def test_no_text_is_blank_or_comes_twice(seeds: tuple[str, list[dict[str, Any]]]) -> None:
    _, rows = seeds
    assert all(row["text"].strip() for row in rows)
    texts = Counter((" ".join(row["text"].split()).casefold(), row.get("before", "")) for row in rows)
    assert [text for text, count in texts.items() if count > 1] == []
