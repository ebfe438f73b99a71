"""A user's own sources: chosen by what is said of them, and by which were right before."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout import Router, load_profile
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.choose import choosing
from turnout.apps.sources.preference import PastChoice, SourceRanking, past_choices
from turnout.core.query import Query
from turnout.store.records import JudgedQuestion
from turnout.testing.scripted_source import ScriptedSource

DESCRIBED = {
    "recipes": "grandmother's cooking recipes: cakes, soups, roasts and preserves",
    "papers": "scientific papers on battery chemistry and electrolytes",
    "kiwix": "an offline encyclopedia: facts, people, places, history, science, how things work",
}


class Case(NamedTuple):
    text: str
    source: str


class CountedWords:
    """An embedder whose vectors are counts of words, by their checksums."""

    name = "words"
    width = 256

    def embed(self, texts: Any, /) -> Any:
        found = np.zeros((len(texts), self.width), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                found[row, crc32(word.encode()) % self.width] += 1
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.where(lengths, lengths, 1)


def choose(past: list[JudgedQuestion] | None = None) -> Router:
    sources = {name: ScriptedSource(name, ["."], description=said) for name, said in DESCRIBED.items()}
    return choosing(
        Router(load_profile("sources", config="")), sources, Cache("choice", 1), (lambda _: past) if past else None
    )


CASES = [
    Case("grandmother's recipes with preserves", "recipes"),
    Case("papers on electrolytes", "papers"),
    Case("who was the grandmother of Queen Victoria", "kiwix"),
    Case("tell me about the moons of Saturn", "kiwix"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_a_source_of_the_settings_is_chosen_by_its_description(case: Case) -> None:
    assert choose().route_sync(case.text).route == case.source


def test_the_reason_quotes_the_description() -> None:
    decision = choose().route_sync("grandmother's recipes with preserves")
    assert decision.by == "described"
    assert "grandmother's cooking recipes" in decision.reasons[0].text


def test_what_people_said_comes_first() -> None:
    asked = "what are the boiling points of plum jam"
    assert asyncio.run(choose().route(asked)).route == "kiwix"
    taught = choose([JudgedQuestion(asked, "kiwix", "recipes")])
    decision = asyncio.run(taught.route("what are the boiling points of plum jam?"))
    assert (decision.route, decision.by) == ("recipes", "past")
    assert "plum jam" in decision.reasons[0].text
    # Another question of the same kind is not this one.
    assert asyncio.run(taught.route("what is the boiling point of lead")).by != "past"


def test_feedback_of_one_tenant_is_not_anothers() -> None:
    said = {"ann": [JudgedQuestion("plum jam, how long?", "kiwix", "recipes")]}
    sources = {name: ScriptedSource(name, ["."], description=text) for name, text in DESCRIBED.items()}
    router = choosing(
        Router(load_profile("sources", config="")), sources, Cache("choice", 1), lambda tenant: said.get(tenant, [])
    )
    assert asyncio.run(router.route(Query("plum jam, how long?", tenant="ann"))).by == "past"
    assert asyncio.run(router.route(Query("plum jam, how long?", tenant="bob"))).by != "past"


def test_wrong_alone_says_nothing_of_the_others() -> None:
    (choice,) = past_choices([JudgedQuestion("plum jam", "papers", None)], ["papers", "recipes"])
    assert choice.good == {"papers": 0.0}
    (choice,) = past_choices([JudgedQuestion("plum jam", "papers", "recipes")], ["papers", "recipes"])
    assert choice.good == {"papers": 0.0, "recipes": 1.0}


@pytest.mark.parametrize("embedder", [None, CountedWords()], ids=["words", "vectors"])
def test_likeness_decides_how_much_the_past_counts(embedder: Any) -> None:
    past = [
        PastChoice("roast goose with apples", {"recipes": 1.0, "papers": 0.0}),
        PastChoice("lithium salts in electrolytes", {"recipes": 0.0, "papers": 1.0}),
    ]
    ranking = SourceRanking(DESCRIBED, past, embedder)
    assert ranking.rank("roast goose with pears")[0].name == "recipes"
    assert ranking.rank("sodium salts in electrolytes")[0].name == "papers"


@given(
    st.lists(st.tuples(st.text(max_size=30), st.floats(0, 1), st.floats(0, 1)), max_size=8),
    st.text(max_size=40),
)
def test_a_score_is_a_share_and_every_source_has_one(rows: list[tuple[str, float, float]], question: str) -> None:
    past = [PastChoice(text, {"recipes": one, "papers": other}) for text, one, other in rows]
    ranked = SourceRanking(DESCRIBED, past).rank(question)
    assert sorted(one.name for one in ranked) == sorted(DESCRIBED)
    assert all(-1e-9 <= one.score <= 1 + 1e-9 for one in ranked)
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
