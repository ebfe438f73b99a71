"""Answers a reader's questions: the router decides which context a question needs, the model gets only that, and the
answer comes sentence by sentence.

The decision comes first: no image is read, and no notes or memory are searched, unless the route allows it. Each
question has one account and one row in the log, which says what was not sent and what that saved.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import ClassVar, NamedTuple

from turnout.apps.app import AppCommand
from turnout.apps.caller import Caller
from turnout.apps.converse import stream_text
from turnout.apps.event import Event
from turnout.apps.ledger import Account, Ledger, decide
from turnout.apps.request import invalid
from turnout.core.decision import Decision
from turnout.core.errors import FolderMissing, QueryError, Refused
from turnout.core.query import Query, Turn
from turnout.models.refusal import NoAnswer
from turnout.models.remote import choose_embedder
from turnout.models.slot import Slot
from turnout.runtime.runtime import Runtime
from turnout.search import Index, open_index
from turnout.store.study import StudySession, StudyTurn

from .again import is_look, wider
from .answer import AnswerSentences
from .ask import NotAnswered, RouteChosen, StudyAnswer, StudyQuestion
from .context import MOST_TURNS, AvailableContext, assemble, count_tokens
from .image import read_page
from .memory import Memories, Memory
from .notes import NotePassage, Notes
from .routes import StudyRoutes
from .savings import Saving, note, saving
from .session import Sessions
from .settings import StudySettings, index_file, notes_folder, study_settings
from .summary import write_summary

log = logging.getLogger("turnout.study")

PROFILE = "study"
# Characters of a question: a page of text. Longer texts are shown as an image.
LONGEST = 8_000
# How long closing waits for summaries by a model: the extractive ones are stored already.
CLOSE_S = 5.0


class _DecidedQuestion(NamedTuple):
    """A question with its session and its decision."""

    text: str
    session: StudySession
    turns: tuple[StudyTurn, ...]
    """The turns before it."""
    decision: Decision
    again: StudyTurn | None
    """The turn that it repeats."""
    ended: Sequence[StudySession]
    """Sessions that had ended when it came."""


class StudyApp:
    name: ClassVar = "study"
    commands: ClassVar[Sequence[AppCommand]] = ()

    def __init__(
        self,
        runtime: Runtime,
        *,
        notes: Path | None = None,
        clock: Callable[[], float] = time.time,
        fence: Callable[[], str] = secrets.token_hex,
    ) -> None:
        """`notes` overrides the folder of the settings."""
        self.runtime = runtime
        self._given = notes
        self._clock = clock
        self._fence = fence
        self._notes: dict[Path, Notes] = {}
        self._missing: set[Path] = set()
        """Missing folders of notes that were logged already."""
        self._sessions: Sessions | None = None
        self._summing: set[asyncio.Task[StudySession]] = set()
        self._renew()
        runtime.on_reload.append(self._renew)
        runtime.on_close.append(self.close)
        self.routes = StudyRoutes(self).routes

    def _renew(self) -> None:
        self.settings: StudySettings = study_settings(self.runtime.config)
        store, remember = self.runtime.store, self.settings.remember
        if remember is None:
            remember = store is not None and store.journal.encoder.level == "full"
        kept = store if remember else None
        if self._sessions is None or self._sessions.is_kept != (kept is not None):
            where = store.backend.where if store is not None else ""
            self._sessions = Sessions(kept, lambda: Memories(self._open_index("memory", where)), clock=self._clock)
        self.sessions = self._sessions
        self.sessions.idle_minutes = self.settings.idle_minutes

    def _open_index(self, kind: str, where: str) -> Index:
        models = self.runtime.models
        return open_index(index_file(kind, where), embedder=choose_embedder(models.slots, models.client))

    async def close(self) -> None:
        if self._summing:
            _, late = await asyncio.wait(self._summing, timeout=CLOSE_S)
            for task in late:
                task.cancel()
        self.sessions.close()
        for opened in self._notes.values():
            opened.close()

    # --- deciding

    async def begin(self, asked: StudyQuestion, caller: Caller) -> _DecidedQuestion:
        """Find the question's session and decide which context it gets."""
        caller.check_profile(PROFILE)
        if len(asked.text) > LONGEST:
            why = f"the question has {len(asked.text):,} characters, and {LONGEST:,} are taken: show the text instead"
            raise Refused(413, "invalid_request_error", why)
        ended = await asyncio.to_thread(self.sessions.end_idle, caller.tenant)
        session, turns = await asyncio.to_thread(self.sessions.begin, caller.tenant, asked.session)
        if asked.route is not None and not caller.may_force:
            raise Refused(403, "permission_error", "this key may not name a route itself: leave `route` out")
        text, declared, again = asked.text.strip(), asked.route, None
        router = await self.runtime.find_router(PROFILE)
        if asked.look or is_look(text):
            if not turns:
                raise invalid("there is no question yet that the page could be looked at for: ask one first")
            again, turns = turns[-1], turns[:-1]
            text, declared = again.question, wider(router.profile, again.route)
        if not text:
            raise invalid("question: it is blank; say what you want to know")
        pairs = [(Turn("user", turn.question), Turn("assistant", turn.answer)) for turn in turns[-MOST_TURNS:]]
        before = tuple(chain.from_iterable(pairs))
        query = Query(
            "" if before else text,
            (*before, Turn("user", text)) if before else (),
            declared=declared,
            session=session.name,
            tenant=caller.tenant or None,
        )
        slots, store = self.runtime.models.slots, self.runtime.store
        try:
            decision = await decide(router, query, caller, slots, store)
        except QueryError as error:
            raise invalid(str(error)) from None
        return _DecidedQuestion(text, session, tuple(turns), decision, again, ended)

    # --- acting

    async def ask(self, asked: StudyQuestion, caller: Caller) -> AsyncGenerator[Event, None]:
        """Decide and answer: events for the route, for each finished sentence and for the whole answer. Refusals come
        before the first event."""
        asking = await self.begin(asked, caller)
        decision, policy = asking.decision, asking.decision.policy
        with Ledger(self.runtime.store, self.runtime.models.slots).open(decision, caller) as account:
            await account.record()
            await self._regret(asking, caller)
            slot = self._slot(policy.model or self.settings.slot)
            page = asked.page if policy.image else None
            image = await asyncio.to_thread(read_page, page) if page is not None else None
            memories = await self._find_memories(asking.text, caller) if policy.memory else ()
            notes = await self._find_notes(asking.text, caller) if policy.notes else ()
            offered = AvailableContext(asking.text, asked.page is not None, asking.turns, memories, notes)
            speaking = AnswerSentences(policy.max_sentences, notes)
            messages = assemble(offered, policy, image, self._fence())
            yield _chosen(asking, offered, image is not None, len(messages))
            models, most = self.runtime.models, policy.max_tokens or self.settings.max_tokens
            stream = stream_text(models, slot, messages, account, max_tokens=most)
            failed: NotAnswered | None = None
            try:
                async for piece in stream:
                    sentences = speaking.feed(piece)
                    if speaking.full:
                        await stream.aclose()  # before anything else, so that the model stops
                    for sentence in sentences:
                        yield sentence
                    if speaking.full:
                        break
                for sentence in speaking.finish():
                    yield sentence
                if not speaking.full and stream.ended == "failed":
                    failed = NotAnswered("the answer broke off here: ask again")
            except NoAnswer as error:
                failed = NotAnswered(str(error))
            except Refused as refused:  # the budget does not cover the model
                failed = NotAnswered(str(refused), refused.status)
            finally:
                await stream.aclose()
                account.ended = "failed" if failed is not None else "answered" if speaking.full else None
                saved = await self._settle(asking, offered, speaking, account, caller, slot)
            if failed is not None:
                yield failed
                return
            for citation in (cited := tuple(speaking.cited())):
                yield citation
            yield StudyAnswer(
                speaking.text,
                decision.id,
                decision.route,
                asking.session.name,
                len(speaking.said),
                speaking.full,
                saved,
                cited,
                asking.again.id if asking.again is not None else None,
            )

    async def _settle(
        self,
        asking: _DecidedQuestion,
        offered: AvailableContext,
        speaking: AnswerSentences,
        account: Account,
        caller: Caller,
        slot: Slot,
    ) -> Saving:
        """Store the turn as it was answered, and what was not sent, however the answer ended."""
        decision = asking.decision
        if speaking.said:
            now = int(self._clock() * 1000)
            turn = StudyTurn(decision.id, asking.text, speaking.text, decision.route, now)
            await asyncio.shield(asyncio.to_thread(self.sessions.add, caller.tenant, asking.session, turn))
        # Context that was not sent is searched only after the answer, to count its tokens.
        policy = decision.policy
        memories = offered.memories if policy.memory else await self._find_memories(asking.text, caller)
        notes = offered.notes if policy.notes else await self._find_notes(asking.text, caller)
        whole = AvailableContext(offered.question, offered.image, offered.turns, memories, notes)
        saved = saving(*count_tokens(whole, policy), slot)
        account.extra = note(saved, sentences=len(speaking.said), capped=speaking.full, again=asking.again is not None)
        self._sum_up_later(asking.ended, caller)
        return saved

    # --- sessions

    async def end(self, name: str, caller: Caller) -> StudySession | None:
        """End and summarize a session; None if there is none of that name."""
        session = await asyncio.to_thread(self.sessions.end, caller.tenant, name)
        return await self._sum_up(session, caller) if session is not None and self.sessions.is_kept else session

    async def remembered(self, caller: Caller) -> list[StudySession]:
        """The ended sessions, the newest first."""
        self._sum_up_later(await asyncio.to_thread(self.sessions.end_idle, caller.tenant), caller)
        return await asyncio.to_thread(self.sessions.remembered, caller.tenant)

    async def _sum_up(self, session: StudySession, caller: Caller) -> StudySession:
        """The session with a model's summary, if there is one."""
        turns = await asyncio.to_thread(self.sessions.turns, caller.tenant, session)
        summary = await write_summary(self.runtime, PROFILE, self.settings.slot, turns, caller, self._fence())
        if summary is None:
            return session
        return await asyncio.to_thread(self.sessions.set_summary, caller.tenant, session, summary)

    def _sum_up_later(self, sessions: Sequence[StudySession], caller: Caller) -> None:
        """Summarize sessions in the background; only `close` waits for it."""
        for session in sessions:
            task = asyncio.create_task(self._sum_up(session, caller))
            self._summing.add(task)
            task.add_done_callback(self._summing.discard)

    async def _regret(self, asking: _DecidedQuestion, caller: Caller) -> None:
        """Log a correction, for training, if a question is asked again with the page: it had too little context."""
        store, again = self.runtime.store, asking.again
        if store is None or again is None or again.route == asking.decision.route:
            return
        judge = store.records(caller.tenant).judge
        by, note = caller.key_id or "reader", "the reader asked for the page"
        await asyncio.to_thread(judge, again.id, "wrong", should_be=asking.decision.route, by=by, note=note)

    def _slot(self, name: str) -> Slot:
        slot = self.runtime.models.slots.find(name)
        if slot is None:
            why = f"no model fills the slot {name!r}: name one in [models.{name}], or another in [study] slot"
            raise Refused(503, "not_available", why)
        return slot

    async def _find_memories(self, question: str, caller: Caller) -> tuple[Memory, ...]:
        return await asyncio.to_thread(self.sessions.find, caller.tenant, question)

    async def _find_notes(self, question: str, caller: Caller) -> tuple[NotePassage, ...]:
        configured = self.settings.notes
        folder = self._given or (notes_folder(configured, caller.tenant) if configured else None)
        if folder is None:
            return ()
        if folder not in self._notes:
            self._notes[folder] = Notes(folder, await asyncio.to_thread(self._open_index, "notes", str(folder)))
        try:
            return await asyncio.to_thread(self._notes[folder].find, question)
        except FolderMissing as error:
            # A missing disk is no reason not to answer.
            if folder not in self._missing:
                log.warning("the notes cannot be read: %s", error)
            self._missing.add(folder)
            return ()


def _chosen(asking: _DecidedQuestion, offered: AvailableContext, image: bool, messages: int) -> RouteChosen:
    decision = asking.decision
    return RouteChosen(
        decision.id,
        decision.route,
        decision.by,
        asking.session.name,
        image,
        messages // 2 - 1,  # two messages a turn, without the system prompt and the question
        len(offered.memories),
        len(offered.notes),
    )
