"""A library over the starter cards, found by their words; and one with the real embedder, where its weights are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from minilm_built import built_minilm
from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.library import ClaimLibrary
from turnout.core.embed import Embeds
from turnout.models.embed import find_embedder
from turnout.search import open_index
from turnout.store import open_store


def opened(folder: Path, embedder: Embeds | None = None) -> Iterator[ClaimLibrary]:
    with (
        open_store(str(folder / "log.db"), config="") as store,
        ClaimLibrary(store.cards, open_index(folder / "index.db", embedder=embedder)) as library,
    ):
        yield library


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[ClaimLibrary]:
    yield from opened(tmp_path)


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimLibrary]:
    """Look, do not touch."""
    for library in opened(tmp_path_factory.mktemp("starter")):
        library.put_all(starter_cards())
        yield library


@pytest.fixture(scope="module")
def by_meaning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimLibrary]:
    """The same with MiniLM."""
    embedder = find_embedder(built_minilm(tmp_path_factory))
    for library in opened(tmp_path_factory.mktemp("by_meaning"), embedder):
        library.put_all(starter_cards())
        yield library
