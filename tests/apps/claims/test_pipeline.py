"""An audit from its first agent to its card: what each agent may say, what is refused, who hears of it, who pays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apps.claims.auditing import ANYONE, CLAIM, PRICES, World, auditing, search_in
from turnout.apps.caller import Budget, Caller
from turnout.apps.claims.agent import AGENTS
from turnout.apps.claims.card import Card, ClaimVerdict
from turnout.apps.claims.event import RoutingStarted, ends_question
from turnout.apps.claims.pipeline import AuditFailed
from turnout.core.errors import Refused
from turnout.store.keys import Key
from turnout.testing import Reply
from turnout.testing.audit import AgentScript, good_answer

PAGE = "https://site.example/a"
TEXT = "The oldest copies agree word for word in most of the shared passages."
NAMES = ["pipeline_started", *(f"agent_{what}" for _ in AGENTS for what in ("started", "completed"))]
NAMES += ["pipeline_completed", "claim_card_ready"]


def run(folder: Path, script: AgentScript | None = None, claim: str = CLAIM, **more: Any) -> tuple[Any, World]:
    """What one audit comes to."""

    async def scenario() -> tuple[Any, World]:
        async with auditing(folder, script, **more) as world:
            return await world.audit(claim), world

    return asyncio.run(scenario())


def test_five_agents_make_a_card(tmp_path: Path) -> None:
    card, world = run(tmp_path, pages={PAGE: f"<p>{TEXT}</p>"}, search=search_in({PAGE: TEXT}))
    assert isinstance(card, Card)
    assert world.script.asked == list(AGENTS)
    assert world.cards.lines == [card]
    assert (card.claim_text, card.verdict, card.demo) == (CLAIM, ClaimVerdict.MISLEADING, False)
    assert [audit.agent for audit in card.agent_audit] == list(AGENTS)
    assert {audit.model for audit in card.agent_audit} == {"fake/auditor"}
    assert [(one.url, one.url_status, one.quote_status) for one in card.sources] == [(PAGE, "verified", "verified")]


def test_offline_it_runs_to_the_end_and_says_what_it_is(tmp_path: Path) -> None:
    card, _ = run(tmp_path, demo=True)
    assert card.demo
    assert "demonstration" in card.short_answer
    assert {audit.model for audit in card.agent_audit} == {"demo/demo"}
    assert {one.url_status for one in card.sources} == {"unverified"}


def test_a_card_that_lacks_a_field_is_refused_by_its_name(tmp_path: Path) -> None:
    nothing = good_answer("source_checker", CLAIM, "") | {"scholarly_sources": []}
    failed, world = run(tmp_path, AgentScript({"source_checker": nothing}))
    assert isinstance(failed, AuditFailed)
    assert (failed.agent, failed.reason) == ("publisher", "the card lacks sources: it is not published")
    assert world.cards.lines == []


def test_a_model_that_does_not_answer_ends_the_audit_with_an_event(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = AgentScript({"adversarial_checker": Reply(status=401)})
        async with auditing(tmp_path, script) as world:
            failed = await world.audit()
            assert isinstance(failed, AuditFailed)
            assert failed.agent == "adversarial_checker"
            last = (await world.heard())[-1]
            assert (last.__struct_config__.tag, ends_question(last)) == ("pipeline_failed", True)

    asyncio.run(scenario())


def test_listeners_before_during_and_after_hear_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with auditing(tmp_path, AgentScript(delay_s=0.02)) as world:
            before = asyncio.create_task(world.heard())
            await asyncio.sleep(0.05)
            await world.pipeline.emit("s", RoutingStarted(question=CLAIM), tenant="")
            ident = await world.pipeline.start(CLAIM, session_id="s", caller=ANYONE)
            during = asyncio.create_task(world.heard())
            card = await world.pipeline.result(ident)
            heard = await before
            assert [str(event.__struct_config__.tag) for event in heard] == ["routing_started", *NAMES]
            assert [event.sequence for event in heard] == list(range(1, len(heard) + 1))
            assert await during == heard
            assert await world.heard() == heard
            assert await world.heard(after=5) == heard[5:]
            assert isinstance(card, Card)
            # Another tenant's session of the same name is another session.
            await world.pipeline.emit("s", RoutingStarted(question="mine"), tenant="other")
            other = world.pipeline.events("s", tenant="other")
            assert (await anext(other)).sequence == 1
            await other.aclose()

    asyncio.run(scenario())


def test_an_event_with_a_key_is_kept_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with auditing(tmp_path, demo=True) as world:
            told = [await world.pipeline.emit("s", RoutingStarted(question=q), tenant="", key="k") for q in "ab"]
            assert told[0] == told[1]
            assert (await world.pipeline.emit("s", RoutingStarted(question="c"), tenant="")).sequence == 2

    asyncio.run(scenario())


class Claim(NamedTuple):
    id: str
    text: str


@pytest.mark.parametrize("claim", [Claim("blank", " \n"), Claim("endless", "x" * 2001)], ids=lambda claim: claim.id)
def test_what_is_no_claim_is_refused_at_once(claim: Claim, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="a claim has 1 to 2,000 characters"):
        run(tmp_path, claim=claim.text, demo=True)


def test_the_caller_pays_step_by_step(tmp_path: Path) -> None:
    async def scenario() -> tuple[Any, Mapping[str, Any], float]:
        async with auditing(tmp_path, model=PRICES) as world:
            store = world.runtime.store
            assert store is not None
            store.keys.add(Key("k1", "0" * 64, "a key", "acme"))
            payer = Caller("k1", "acme", frozenset(("ask",)), Budget(100.0))
            card = await world.audit(caller=payer)
            store.flush()
            row = store.records("acme").get("last")
            outcome = store.records("acme").outcome(row.id)
            assert outcome is not None
            assert (outcome.ended, outcome.cost_usd) == ("answered", pytest.approx(5 * 0.15))
            return card, {"row": row, "left": payer.budget.left_usd}, store.keys.spent("k1")

    card, seen, spent = asyncio.run(scenario())
    assert isinstance(card, Card)
    # Five calls of 100 tokens in and 50 out, at 1,000 dollars a million.
    assert spent == pytest.approx(5 * 0.15)
    assert seen["left"] == pytest.approx(100.0 - 5 * 0.15)
    assert tuple(seen["row"].routes) == ("novel_claim",)


def test_a_budget_that_does_not_cover_an_agent_ends_the_audit(tmp_path: Path) -> None:
    async def scenario() -> Any:
        async with auditing(tmp_path, model=PRICES) as world:
            return await world.audit(caller=Caller("", "", frozenset(("ask",)), Budget(3.0)))

    failed = asyncio.run(scenario())
    assert isinstance(failed, AuditFailed)
    assert "budget" in failed.reason


def test_pipelines_of_two_stores_are_apart(tmp_path: Path) -> None:
    async def scenario() -> list[Card | AuditFailed]:
        (tmp_path / "other").mkdir()
        async with auditing(tmp_path, demo=True) as one, auditing(tmp_path / "other", demo=True) as other:
            return [await one.audit(), await other.audit()]

    assert all(isinstance(made, Card) for made in asyncio.run(scenario()))


def test_an_audit_stops_when_its_key_is_revoked(tmp_path: Path) -> None:
    async def scenario() -> Card | AuditFailed:
        async with auditing(tmp_path, demo=True) as world:
            key, store = Key("k1", "0" * 64, "a key", "acme", revoked_ms=1), world.runtime.store
            assert store is not None
            store.keys.add(key)
            return await world.audit(caller=Caller(key.id, "", frozenset(("ask",)), Budget()))

    failed = asyncio.run(scenario())
    assert isinstance(failed, AuditFailed)
    assert (failed.agent, "no longer valid" in failed.reason) == ("topic_finder", True)


def test_closed_in_the_middle_it_goes_on_when_it_is_opened_again(tmp_path: Path) -> None:
    async def begin() -> str:
        script = AgentScript({"adversarial_checker": Reply("late", delay_s=30.0)})
        async with auditing(tmp_path, script) as world:
            ident = await world.pipeline.start(CLAIM, session_id="s", caller=ANYONE)
            while "adversarial_checker" not in world.script.asked:
                await asyncio.sleep(0.01)
            return ident

    async def go_on(ident: str) -> World:
        async with auditing(tmp_path) as world:
            assert await world.pipeline.resume() == 1
            assert isinstance(await world.pipeline.result(ident), Card)
            assert [str(event.__struct_config__.tag) for event in await world.heard()] == NAMES
            return world

    world = asyncio.run(go_on(asyncio.run(begin())))
    assert world.script.asked == list(AGENTS[2:])
    assert len(world.cards.lines) == 1
