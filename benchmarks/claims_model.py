"""Claims with a model that decides: a script in its place, so that what is measured is what we do with its verdicts.

The guard is asked what becomes of a verdict that is right, and of a model that calls every question an exact match of
the card it is nearest to. The chat is timed with a model that takes 300 ms a call, over HTTP on loopback.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from apps.claims.chatting import Chat, router_settings, run, says_verdict, verdict
from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.library import ClaimLibrary
from turnout.apps.claims.verdict import AgentVerdict, guard
from turnout.testing import ScriptedProvider

CALL_S = 0.3
ASKED = 5
EXACT, CONTEXTUAL = "Did Matthew copy Mark?", "Why do people believe that vaccines cause autism?"


def judged(rows: Sequence[dict[str, Any]], library: ClaimLibrary) -> tuple[int, int, int]:
    """Of a model that is always right: what it loses by the guard, of questions with a card. Of one that always says
    "exact": near misses that the guard lets pass. And how many choices have a reason."""
    lost = passed = reasoned = 0
    for row in rows:
        kind = next((one.claim_type_category.value for one in starter_cards() if one.id == row["card"]), "")
        said = AgentVerdict("exact_match", 0.9, "It is the same claim.", (row["card"],), kind)
        choice = guard(said, row["question"], library, ())
        reasoned += bool(choice.reasons and all(reason.text for reason in choice.reasons))
        is_exact = choice.mode == "exact_match"
        lost += row["mode"] == "exact_match" and not is_exact
        passed += row["mode"] != "exact_match" and is_exact
    return lost, passed, reasoned


def timed_chat() -> dict[str, float]:
    """Seconds a question takes, the slowest of a few, by mode."""
    took: dict[str, float] = {}
    for mode, question, card in (
        ("exact_match", EXACT, "matthew-copied-mark"),
        ("contextual", CONTEXTUAL, "vaccines-cause-autism"),
    ):
        said = verdict(mode, card, kind="historical" if mode == "exact_match" else "scientific")
        with (
            tempfile.TemporaryDirectory() as folder,
            ScriptedProvider.in_thread(says_verdict(said, question, delay_s=CALL_S)) as provider,
        ):

            async def talk(chat: Chat, question: str = question, mode: str = mode) -> float:
                slowest = 0.0
                for at in range(ASKED):
                    began = time.perf_counter()
                    told = await chat.ask(question, session=f"s{at}")
                    slowest = max(slowest, time.perf_counter() - began)
                    if told.mode != mode:
                        raise SystemExit(f"{question!r} became {told.mode}: {told.reasoning}")
                return slowest

            settings = router_settings(provider, main=True)
            took[mode] = run(Path(folder), starter_cards(), talk, settings, own_gate=False)
    return took
