"""A documentation-and-code assistant: the type of a question decides whether documents are searched and which model
answers.

The contract is checked against what happened: the search and the answering model are recorded as they are used, not as
the policy says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from turnout.apps.app import AppCommand
from turnout.apps.caller import Caller
from turnout.apps.converse import stream_text
from turnout.apps.event import Event, Failed, Token
from turnout.apps.ledger import Account, Ledger, decide
from turnout.apps.request import invalid
from turnout.config.settings import store_settings, store_url
from turnout.core.decision import Decision
from turnout.core.errors import QueryError, Refused, TextNotKept
from turnout.core.query import Query, Turn
from turnout.models.refusal import NoAnswer
from turnout.models.remote import choose_embedder
from turnout.runtime.runtime import Runtime
from turnout.text.fence import make_fence
from turnout.text.reference import find_reference
from turnout.text.standalone import make_standalone

from .cite import CitedText
from .event import NO_CONTEXT, AskContext, AssistAnswer, DocCitation, Retrieved, TypeDecided, WhyRefused
from .library import Libraries, open_libraries, shared_place
from .prompt import NOT_THERE, SENT, write_messages
from .retrieve import NOTHING, FoundPassages, names_in, retrieve
from .routes import AssistRoutes

PROFILE = "assist"
# Below this relevance the documents do not answer a question: `retrieve.relevance` is scaled to this limit.
LEAST = 0.5
# Passages shown if no model writes an answer.
SHOWN = 3
# Turns of a session that are searched for what a question refers to.
TURNS = 12

SENTENCES: dict[WhyRefused, str] = {
    "not_in_documents": "That is not in these documents.",
    "no_documents": "There are no documents yet: turnout assist ingest DIR reads some.",
}


class Action(NamedTuple):
    """Whether documents are searched for a question, and the model slot that answers."""

    retrieval: bool
    slot: str


def follow_policy(decision: Decision) -> Action:
    """The action of the decision's policy."""
    policy = decision.policy
    return Action(bool(policy.retrieval), policy.model or "main")


class AssistApp:
    name: ClassVar = "assist"
    commands: ClassVar[Sequence[AppCommand]] = ()

    def __init__(
        self,
        runtime: Runtime,
        libraries: Libraries | None = None,
        *,
        where: Path | str | None = None,
        plan: Callable[[Decision], Action] = follow_policy,
        fence: Callable[[], str] = make_fence,
        least: float = LEAST,
    ) -> None:
        self.runtime = runtime
        self.plan = plan
        self.fence = fence
        self.least = least
        self._where = where
        self._libraries = libraries
        self._opening = asyncio.Lock()
        runtime.on_close.append(self.close)
        shown = AssistRoutes(self)
        self.routes, self.tools = shown.routes, shown.tools

    async def close(self) -> None:
        if self._libraries is not None:
            await asyncio.to_thread(self._libraries.index.close)

    async def libraries(self) -> Libraries:
        """The libraries, opened when first needed."""
        async with self._opening:
            if self._libraries is None:
                models = self.runtime.models
                embedder = choose_embedder(models.slots, models.client)
                store = self.runtime.store
                url = store.url if store is not None else store_url(None, store_settings(self.runtime.config))
                where = self._where or shared_place(url)
                self._libraries = await asyncio.to_thread(open_libraries, where, embedder)
        return self._libraries

    # --- deciding

    async def decide(self, query: Query, caller: Caller, context: AskContext = NO_CONTEXT) -> Decision:
        """Decide the type of a question. The editor's text is not classified. Earlier intents are left out if "this"
        means the selected code."""
        caller.check_profile(PROFILE)
        if not query.text.strip():
            raise invalid("query: the question is blank; say what you want to know")
        if query.declared is not None and not caller.may_force:
            raise Refused(403, "permission_error", "this key may not name a query_type itself: leave it out")
        router = await self.runtime.find_router(PROFILE)
        intents = await asyncio.to_thread(self._intents, query) if not _points_to(query.text, context) else ()
        try:
            return await decide(
                router, replace(query, intents=intents), caller, self.runtime.models.slots, self.runtime.store
            )
        except QueryError as error:
            raise invalid(str(error)) from None

    def _intents(self, query: Query) -> tuple[str, ...]:
        store = self.runtime.store
        if store is None or query.session is None:
            return ()
        try:
            return tuple(str(one) for one in store.records(query.tenant or "").intents(query.session))
        except TextNotKept:
            return ()

    def _turns(self, query: Query, account: Account) -> tuple[Turn, ...]:
        """The turns of the session before the account's decision."""
        store, before = self.runtime.store, account.decision.id
        if store is None or query.session is None:
            return ()
        records = store.records(query.tenant or "")
        try:
            if last := records.intents(query.session, most=1, before=before):
                # Going on without a correction is weak evidence that the last decision was right: it is kept apart
                # from judgements of teachers and people.
                account.extra["continues"] = last[-1].decision_id
            return records.turns(query.session, most=TURNS, before=before)
        except TextNotKept:
            return ()

    # --- acting

    async def act(
        self, decision: Decision, query: Query, caller: Caller, context: AskContext = NO_CONTEXT
    ) -> AsyncGenerator[Event, None]:
        models, action = self.runtime.models, self.plan(decision)
        with Ledger(self.runtime.store, models.slots).open(decision, caller) as account:
            await account.record()
            account.retrieval = False
            account.extra = {"classifier_history": len(decision.query.intents)}
            yield TypeDecided(decision.route, decision.id, decision.by, decision.confidence)
            turns = await asyncio.to_thread(self._turns, query, account)
            found, message = NOTHING, ""
            refused: WhyRefused = ""
            if action.retrieval:
                found, refused, message = await self._retrieve(query.text, context, turns, account)
                yield Retrieved(found.passages, found.confidence)
            elif context.library:
                # An unknown library is refused on every route.
                libraries = await self.libraries()
                await asyncio.to_thread(libraries.choose, query.text, context.library, context.version)
            slot = models.slots.find(action.slot)
            has_model = slot is not None and models.has(slot.name)
            # Code can be written without documents, but not without a model.
            if refused and (decision.route != "CODE_GENERATION" or not has_model):
                yield Token(message)
                yield self._settle(account, message, refused=refused)
                return
            passages = () if refused else found.passages
            if passages and not has_model:
                text = tell_passages(passages[:SHOWN])
                yield Token(text)
                yield self._settle(account, text, passages[:SHOWN])
                return
            try:
                async for event in self._write(query.text, context, passages, turns, action, account):
                    yield event
            except NoAnswer as error:
                account.ended, account.fallback = "failed", str(error)
                if not passages:
                    yield Failed(f"no model answered: {error}")
                    return
                text = f"(No model answered. What the documents say:)\n\n{tell_passages(passages[:SHOWN])}"
                yield Token(text)
                yield self._settle(account, text, passages[:SHOWN])

    async def _retrieve(
        self, question: str, context: AskContext, turns: Sequence[Turn], account: Account
    ) -> tuple[FoundPassages, WhyRefused, str]:
        """The passages for a question; if there are none, why, and the message that says so."""
        libraries = await self.libraries()
        account.retrieval = True
        choice = await asyncio.to_thread(libraries.choose, question, context.library, context.version)
        if not choice.editions:
            why: WhyRefused = "no_such_version" if choice.missing else "no_documents"
            return NOTHING, why, f"{choice.missing}." if choice.missing else SENTENCES[why]
        asked = make_standalone(question, [turn.text for turn in turns if turn.role == "user"])
        asked = choice.without_names(asked)
        if _points_to(question, context):
            asked = " ".join((asked, *names_in(context.selected_text or context.editor_content)))
        found = await asyncio.to_thread(retrieve, libraries, asked, choice.editions)
        account.sources = tuple(one.name for one in choice.editions)
        account.extra["confidence"] = round(found.confidence, 4)
        if found.confidence < self.least:
            return found, "not_in_documents", SENTENCES["not_in_documents"]
        return found, "", ""

    async def _write(
        self,
        question: str,
        context: AskContext,
        passages: Sequence[DocCitation],
        turns: Sequence[Turn],
        action: Action,
        account: Account,
    ) -> AsyncGenerator[Event, None]:
        """A model's answer, each sentence as soon as its citations are checked."""
        models, policy, sent = self.runtime.models, account.decision.policy, SENT[account.decision.route]
        slot = models.slots.find(action.slot)
        if slot is None:
            raise NoAnswer(f"no model fills the slot {action.slot!r}")
        shown = turns[-sent.turns :] if sent.turns and (sent.always or find_reference(question) is not None) else ()
        messages = write_messages(
            sent, question, context, passages, shown, instruction=policy.instruction, fence=self.fence
        )
        stream = stream_text(models, slot, messages, account, max_tokens=policy.max_tokens or sent.max_tokens)
        checked, text, emitted = CitedText([one.text for one in passages]), "", 0
        try:
            async for piece in stream:
                text += checked.feed(piece)
                # Text that may become a refusal is held back.
                if emitted < len(text) and not NOT_THERE.startswith(text.strip()[: len(NOT_THERE)]):
                    yield Token(text[emitted:])
                    emitted = len(text)
            text += checked.finish()
        finally:
            await stream.aclose()
        if passages and text.strip().startswith(NOT_THERE):
            message = SENTENCES["not_in_documents"]
            yield Token(message)
            yield self._settle(account, message, refused="not_in_documents", model=slot.id)
            return
        if emitted < len(text):
            yield Token(text[emitted:])
        cited = tuple(one for one in passages if one.number in checked.cited)
        for one in cited:
            yield one
        if stream.ended != "answered":
            account.ended = "failed"
            yield Failed("the answer broke off: its model stopped before it was done")
            return
        yield self._settle(account, text, cited, model=slot.id, unsupported=checked.unsupported)

    def _settle(
        self,
        account: Account,
        text: str,
        cited: Sequence[DocCitation] = (),
        *,
        refused: WhyRefused = "",
        model: str = "",
        unsupported: int = 0,
    ) -> AssistAnswer:
        """Record how the answer ended, and return it."""
        decision = account.decision
        account.ended = account.ended or "answered"
        account.extra |= {"cited": len(cited), "unsupported": unsupported}
        account.extra |= {"refused": refused} if refused else {}
        if self.runtime.store is not None:
            self.runtime.store.reply(decision, text)
        return AssistAnswer(
            text,
            decision.route,
            decision.id,
            decision.query.session or "",
            tuple(cited),
            bool(account.retrieval),
            refused,
            model,
            unsupported,
        )


def tell_passages(passages: Sequence[DocCitation]) -> str:
    """The passages as text, each with its number and its place."""
    return "\n\n".join(f"[{one.number}] {one.place}\n{one.text.strip()}" for one in passages)


def _points_to(question: str, context: AskContext) -> bool:
    """Whether a question refers to what the editor shows."""
    if not (context.selected_text.strip() or context.editor_content.strip()):
        return False
    found = find_reference(question)
    return found is not None and found.kind in ("pronoun", "deictic")
