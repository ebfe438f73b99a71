"""A chat over a few cards: the library is real, the audits are noted and not made, the model says what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from turnout.apps.caller import Budget, Caller
from turnout.apps.claims.answer import ClaimAnswer
from turnout.apps.claims.app import ClaimQuestion, ClaimsApp
from turnout.apps.claims.card import Card, CardConfidence, CardSource, ClaimType, ClaimVerdict
from turnout.apps.claims.event import ChatEvent, PipelineStarted
from turnout.apps.claims.gate import GUARD, ClaimGate
from turnout.apps.claims.library import ClaimLibrary
from turnout.apps.claims.pipeline import AuditFailed, AuditPipeline
from turnout.apps.event import Event
from turnout.core.query import Turn
from turnout.runtime.runtime import Runtime
from turnout.search import open_index
from turnout.store import Store, open_store
from turnout.testing import ScriptedProvider
from turnout.testing.reply import Received, ScriptedReply, ToolCall


def card(ident: str, claim: str, kind: ClaimType, verdict: ClaimVerdict, short: str, why: Sequence[str]) -> Card:
    return Card(
        id=ident,
        claim_text=claim,
        claim_type_category=kind,
        verdict=verdict,
        short_answer=short,
        deep_answer=f"{short} The evidence is discussed at length in the sources.",
        confidence_level=CardConfidence.HIGH,
        confidence_explanation="Several lines of evidence agree.",
        claimant="Various",
        why_persists=tuple(why),
        sources=(CardSource("A handbook"),),
        category_tags=("test",),
        limitations=("None that matter here.",),
        change_verdict_if="New evidence were found.",
    )


FLOOD = card(
    "flood",
    "A global flood covered the entire Earth.",
    ClaimType.HISTORICAL,
    ClaimVerdict.FALSE,
    "No global flood ever covered the Earth. Sediments, ice cores and tree rings show no such event.",
    ["Many cultures tell flood stories.", "Marine fossils are found on mountains."],
)
MARK = card(
    "mark",
    "Matthew copied Mark.",
    ClaimType.HISTORICAL,
    ClaimVerdict.TRUE,
    "Matthew shares most of the wording of Mark. Most scholars hold that its author used Mark as a source.",
    ["The wording of both gospels agrees closely."],
)
INSPIRED = card(
    "inspired",
    "The gospels were dictated by divine inspiration.",
    ClaimType.DOCTRINAL,
    ClaimVerdict.UNFALSIFIABLE,
    "Divine inspiration of the gospels cannot be tested. It is a matter of doctrine.",
    ["Many churches teach it."],
)
CARDS = (FLOOD, MARK, INSPIRED)
# Two words in three, of the question and of the claim.
GATE = ClaimGate("text", floor=0.1, threshold=0.5, weights=(0.0, 3.0, 3.0, 0.0, 0.0), bias=-4.0, guard=GUARD)


class NotedPipeline(AuditPipeline):
    """Keeps events in memory, and notes what it is to audit."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[ChatEvent]] = {}
        self.started: list[tuple[str, str, str]] = []
        """Claim, context and decision of each audit."""

    async def start(
        self, claim_text: str, context: str = "", *, session_id: str, caller: Caller, decision_id: str = ""
    ) -> str:
        self.started.append((claim_text, context, decision_id))
        ident = f"audit-{len(self.started)}"
        await self.emit(session_id, PipelineStarted(pipeline_id=ident, claim_text=claim_text), tenant=caller.tenant)
        return ident

    async def events(  # type: ignore[override]
        self, session_id: str, after: int = 0, *, tenant: str, follow: bool = False
    ) -> AsyncGenerator[ChatEvent, None]:
        for event in self.kept.get((tenant, session_id), ()):
            if event.sequence > after:
                yield event

    async def emit(self, session_id: str, event: ChatEvent, *, tenant: str, key: str = "") -> ChatEvent:
        kept = self.kept.setdefault((tenant, session_id), [])
        kept.append(replace(event, sequence=len(kept) + 1))
        return kept[-1]

    async def result(self, pipeline_id: str) -> Card | AuditFailed:
        return AuditFailed(pipeline_id, "topic_finder", "nothing is audited here")

    async def resume(self) -> int:
        return 0

    async def close(self) -> None:
        return


class Chat(NamedTuple):
    app: ClaimsApp
    pipeline: NotedPipeline
    store: Store

    async def events(self, text: str, turns: Sequence[Turn] = (), session: str = "s") -> list[Event]:
        asked = ClaimQuestion(text, tuple(turns), session)
        return [event async for event in self.app.ask(asked, anyone())]

    async def ask(self, text: str, turns: Sequence[Turn] = (), session: str = "s") -> ClaimAnswer:
        last = (await self.events(text, turns, session))[-1]
        assert isinstance(last, ClaimAnswer)
        return last

    def row(self, ident: str) -> Mapping[str, Any]:
        """What the log's view shows of a question."""
        names = (
            "question_text, reformulated_question, conversation_context, mode_selected, claim_cards_referenced, "
            "search_candidates, reasoning, response_time"
        )
        assert self.store.flush(10)
        found = self.store.backend.read(f"select {names} from router_decisions where id = :id", {"id": ident})  # noqa: S608
        return dict(zip(names.split(", "), found[0], strict=True))


def anyone(budget: Budget | None = None) -> Caller:
    return Caller("", "", frozenset(("ask",)), budget or Budget())


def run(
    folder: Path, cards: Sequence[Card], talk: Callable[[Chat], Any], settings: str = "", *, own_gate: bool = True
) -> Any:
    """What came of talking over these cards."""
    with chatting(folder, cards, settings, own_gate=own_gate) as chat:

        async def main() -> Any:
            try:
                return await talk(chat)
            finally:
                await chat.app.runtime.models.client.close()

        return asyncio.run(main())


def bare_library(store: Store) -> ClaimLibrary:
    """Without the cards that ship."""
    where = (
        store.url if store.backend.name == "postgres" else f"{store.backend.where}".removesuffix(".db") + "-claims.db"
    )
    return ClaimLibrary(store.cards, open_index(where, "claims"))


@contextmanager
def chatting(folder: Path, cards: Sequence[Card], settings: str = "", *, own_gate: bool = True) -> Iterator[Chat]:
    """`own_gate`: the one above, and not the one that ships."""
    folder.mkdir(exist_ok=True)
    file = folder / "turnout.toml"
    file.write_text(settings, encoding="utf-8")
    store = open_store(str(folder / "turnout.db"), config=str(file))
    runtime = Runtime(store, profile="claims", config=str(file))
    library = bare_library(store)
    try:
        if own_gate:
            library.keep_gate(GATE)
        library.put_all(cards)
        pipeline = NotedPipeline()
        yield Chat(ClaimsApp(runtime, library, pipeline), pipeline, store)
    finally:
        library.close()
        store.close()


def router_settings(
    provider: ScriptedProvider, *, main: bool = False, wire: str = "openai-chat", more: str = ""
) -> str:
    names = ("claims_router", *(("main",) if main else ()))
    return "".join(
        f'[models.{name}]\nmodel = "fake/{name}"\nbase_url = "{provider.base_url}"\nprivate = true\n'
        f'wires = ["{wire}"]\n{more}\n'
        for name in names
    )


def verdict(mode: str, *cards: str, kind: str = "historical", sure: float = 0.9, why: str = "Because.") -> str:
    return json.dumps({"mode": mode, "card_ids": cards, "claim_type": kind, "confidence": sure, "reasoning": why})


def says_verdict(text: str, query: str = "flood", delay_s: float = 0.0) -> Callable[[Received], ScriptedReply]:
    """A model that searches once and then gives this verdict; a question to rewrite is returned as it is."""

    def reply(request: Received) -> ScriptedReply:
        messages = cast(list[Any], request.body["messages"])
        told = json.dumps(request.body)
        if "make the last question of a conversation" in told:
            asked = next(str(one["content"]) for one in messages if one["role"] == "user")
            said = asked.strip().splitlines()[-2].removeprefix("user: ")
            return ScriptedReply(json.dumps({"question": said, "alternative": False}), delay_s=delay_s)
        if "from the numbered claim cards" in told:
            return ScriptedReply("No global flood ever covered the Earth [1].", delay_s=delay_s)
        if '"tool_call_id"' in told or '"tool_result"' in told:
            return ScriptedReply(text, delay_s=delay_s)
        return ScriptedReply(tools=(ToolCall("search_existing_claims", {"query": query}),), delay_s=delay_s)

    return reply
