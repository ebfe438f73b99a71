"""Contextual answers: every citation is checked, and nothing is shown as audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.claims.chatting import CARDS, FLOOD, INSPIRED, MARK, Chat, anyone, router_settings, run
from turnout.apps.claims.card import Card
from turnout.apps.claims.choose import undecided
from turnout.apps.claims.synthesis import Synthesis, extract, synthesize, tell
from turnout.apps.ledger import Ledger
from turnout.core.query import Query
from turnout.runtime.load import load_profile
from turnout.search.citation import apply
from turnout.testing import ScriptedProvider
from turnout.testing.reply import ScriptedReply

PROFILE = load_profile("claims", config="", local=True)


def written(folder: Path, reply: ScriptedReply, cards: tuple[Card, ...] = (FLOOD, MARK)) -> tuple[Synthesis, Any]:
    with ScriptedProvider.in_thread(reply) as provider:

        async def talk(chat: Chat) -> Synthesis:
            models = chat.app.runtime.models
            with Ledger(None, models.slots).open(undecided(PROFILE, Query("x")), anyone()) as account:
                return await synthesize("How do these relate?", cards, frozenset(), account, models)

        return run(folder, CARDS, talk, router_settings(provider, main=True)), provider.requests


def test_citations_that_hold_are_kept(tmp_path: Path) -> None:
    said = "No global flood ever covered the Earth [1]. Matthew shares most of the wording of Mark [2]."
    found, requests = written(tmp_path, ScriptedReply(said))
    assert (found.synthesized_response, found.audited, found.unsupported) == (said, False, 0)
    assert [(one.number, one.id) for one in found.source_cards] == [(1, "flood"), (2, "mark")]
    asked = requests[0].body["messages"][1]["content"]
    assert asked.count("=====") == 4 * 3


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("A global flood covered the Earth in 2349 BC [1]. Matthew shares most of the wording of Mark [2].", ["mark"]),
        ("No global flood ever covered the Earth [7]. Matthew shares most of the wording of Mark [2].", ["mark"]),
        ("Aliens built the pyramids [1]. Matthew shares most of the wording of Mark [2].", ["mark"]),
    ],
)
def test_a_citation_that_does_not_hold_goes(tmp_path: Path, said: str, kept: list[str]) -> None:
    found, _ = written(tmp_path, ScriptedReply(said))
    assert [one.id for one in found.source_cards] == kept
    assert found.unsupported == 1
    assert "[unsupported]" in found.synthesized_response


@pytest.mark.parametrize(
    "reply",
    [ScriptedReply("Aliens built the pyramids [1]."), ScriptedReply("I do not know."), ScriptedReply("no", status=500)],
    ids=["nothing holds", "nothing cited", "failed"],
)
def test_otherwise_the_cards_speak(tmp_path: Path, reply: ScriptedReply) -> None:
    found, _ = written(tmp_path, reply)
    assert found.model == ""
    assert [one.id for one in found.source_cards] == ["flood", "mark"]
    assert found.unsupported == 0
    assert "No global flood ever covered the Earth [1]." in found.synthesized_response


@pytest.mark.parametrize(
    "question", ["Why do people believe it?", "Which is more likely?", "Can you put that more simply?"]
)
@pytest.mark.parametrize("cards", [(FLOOD,), (FLOOD, MARK), (INSPIRED, MARK, FLOOD)])
def test_the_cards_own_words_are_borne_out(question: str, cards: tuple[Card, ...]) -> None:
    checked = apply(extract(question, cards, frozenset()), [tell(card) for card in cards])
    assert {number for one in checked.sentences for number in one.kept} == set(range(1, len(cards) + 1))
    assert all(len(one.kept) == len(one.citations) for one in checked.sentences)


def test_why_people_believe_it() -> None:
    assert "Marine fossils are found on mountains [1]." in extract("Why do people believe it?", (FLOOD,), frozenset())
