"""The HTTP and WebSocket routes of the application."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from turnout.apps.app import SOCKET, Answer, Call, Route, answer
from turnout.apps.request import invalid, read_body, stream_events, wants_events
from turnout.core.errors import Refused, StoreError, StoreUnavailable, UnknownDecision
from turnout.core.query import Turn
from turnout.models.wire.format import check_text

from .answer import ClaimAnswer
from .card import Card, ClaimType, ClaimVerdict, read_type
from .choose import PROFILE
from .event import write_event
from .library import ClaimLibrary
from .local import ClaimMode
from .router_agent import tell_candidate

if TYPE_CHECKING:
    from .app import ClaimsApp

# The specification's limit of the conversation before a question.
MOST_TURNS = 50
# Cards in one list or search: the most, and the default of each.
MOST, USUAL, FOUND_USUAL = 200, 50, 5
# Characters of a search.
LONGEST_SEARCH = 2_000
# Of a card in a list.
_LISTED = ("id", "claim_text", "claim_type_category", "verdict", "short_answer", "confidence_level", "category_tags")
_SESSION = re.compile(r"[A-Za-z0-9_.:-]{1,128}\Z")

Name = Annotated[str, Meta(max_length=200)]


class ChatTurn(Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant", "system"]
    content: str


class ChatAsk(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A question to the library of claims."""

    question: str
    conversation_history: tuple[ChatTurn, ...] = ()
    """The conversation before it, oldest first; 50 messages at most."""
    session_id: str | None = None
    """Chosen by the client, so that it can listen before it asks: letters, digits and `_.:-`, 128 at most."""
    stream: bool = False
    """Events as they happen, the last of them the answer."""


class ClaimFeedback(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Was this the right claim?"""

    decision_id: Name
    right: bool
    should_be: ClaimMode | None = None
    """The mode it should have been, if it was wrong."""
    card_id: Name = ""
    """The card that would have been right."""
    note: Annotated[str, Meta(max_length=2000)] = ""


_ask = msgspec.json.Decoder(ChatAsk)
_feedback = msgspec.json.Decoder(ClaimFeedback)


class UnknownCard(Refused):
    def __init__(self, ident: str) -> None:
        super().__init__(404, "not_found_error", f"there is no card {ident[:80]!r} (see GET /api/claims)")


class ClaimRoutes:
    """The routes of one application."""

    def __init__(self, app: ClaimsApp) -> None:
        self.app = app
        self.routes = (
            Route("POST", "/api/chat/ask", "ask", self.ask, ChatAsk, asks=True),
            Route("POST", "/api/chat/feedback", "feedback:write", self.feedback, ClaimFeedback),
            Route("GET", "/api/claims", "ask", self.list_cards),
            Route("GET", "/api/claims/search", "ask", self.search),
            Route("GET", "/api/claims/{id}", "ask", self.card),
            Route("POST", "/api/claims/{id}/hide", "feedback:write", self.hide),
            Route("POST", "/api/claims/{id}/unhide", "feedback:write", self.unhide),
            Route("POST", "/api/claims/{id}/delete", "feedback:write", self.delete),
            Route(SOCKET, "/ws/pipeline/{session_id}", "ask", self.follow),
        )

    async def ask(self, call: Call) -> Answer:
        """Ask: the card that answers, a synthesis of cards, or a new audit."""
        from .app import ClaimQuestion

        body = await read_body(call, _ask)
        if (count := len(body.conversation_history)) > MOST_TURNS:
            raise invalid(f"conversation_history: {count} messages, at most {MOST_TURNS} are taken; send the last ones")
        turns = tuple(Turn(turn.role, turn.content) for turn in body.conversation_history)
        check_text((Turn("user", body.question), *turns), 422)
        session = "" if body.session_id is None else _session(body.session_id)
        events = self.app.ask(ClaimQuestion(body.question.strip(), turns, session), call.caller)
        if wants_events(call, body.stream):
            return await stream_events(events)
        try:
            async with aclosing(events):
                last = [event async for event in events][-1]
        except StoreUnavailable:
            raise Refused(503, "not_available", "the cards cannot be read just now: try again") from None
        assert isinstance(last, ClaimAnswer)  # noqa: S101 - asking ends with one
        return answer({name: value for name, value in msgspec.to_builtins(last).items() if name != "event"})

    async def feedback(self, call: Call) -> Answer:
        """Say whether a question got the right claim, or what it should have got."""
        body = await read_body(call, _feedback)
        if body.right and (body.should_be or body.card_id):
            raise invalid("right: what was right needs no should_be and no card_id")
        records = call.store.records(call.caller.tenant)
        note = " ".join(part for part in (f"card {body.card_id}" if body.card_id else "", body.note) if part)

        def judge() -> object:
            found = records.get(body.decision_id)
            if found.profile != "claims":
                raise UnknownDecision(body.decision_id, call.caller.tenant)
            by = call.caller.key_id or "anonymous"
            return records.judge(
                found.id, "right" if body.right else "wrong", should_be=body.should_be, by=by, note=note
            )

        try:
            return answer(await asyncio.to_thread(judge), 201)
        except UnknownDecision as error:
            raise Refused(404, "not_found_error", str(error)) from None
        except StoreError as error:
            raise invalid(str(error)) from None

    async def _library(self, call: Call) -> ClaimLibrary:
        """The library as the caller may see it."""
        call.check_profile(PROFILE)
        return (await self.app.library()).of(call.caller.tenant)

    async def list_cards(self, call: Call) -> Answer:
        """The cards, by id; `?type=`, `?verdict=`, `?limit=`, `?after=` an id."""
        library, options = await self._library(call), call.options
        kind, verdict, limit = _type(options.get("type")), _verdict(options.get("verdict")), _limit(options, USUAL)
        after = options.get("after", "")

        def look() -> list[Card]:
            found = library.list(claim_type=kind, verdict=verdict)
            return list(islice((card for card in found if card.id > after), limit))

        cards = await asyncio.to_thread(look)
        following = cards[-1].id if len(cards) == limit else None
        rows = [{name: getattr(card, name) for name in (*_LISTED, "demo", "created_at")} for card in cards]
        return answer({"claims": rows, "next": following})

    async def card(self, call: Call) -> Answer:
        """One card, with its sources and how it was audited."""
        library, ident = await self._library(call), call.params["id"]
        card = await asyncio.to_thread(library.get, ident)
        if card is None or not card.visible:
            raise UnknownCard(ident)
        return answer(card)

    async def hide(self, call: Call) -> Answer:
        """Hide a card: it no longer answers questions."""
        await self._moderate(call, lambda library, ident: library.set_visible(ident, False))
        return answer({"id": call.params["id"], "visible": False})

    async def unhide(self, call: Call) -> Answer:
        """Let a hidden card answer questions again."""
        await self._moderate(call, lambda library, ident: library.set_visible(ident, True))
        return answer({"id": call.params["id"], "visible": True})

    async def delete(self, call: Call) -> Answer:
        """Delete a card for good; `deleted` says whether there was one."""
        try:
            await self._moderate(call, lambda library, ident: library.delete(ident))
        except UnknownCard:
            return answer({"id": call.params["id"], "deleted": False})
        return answer({"id": call.params["id"], "deleted": True})

    async def _moderate(self, call: Call, change: Callable[[ClaimLibrary, str], bool]) -> None:
        """Change a card of the caller's tenant. A card for all tenants needs the scope `admin`, except on a server
        without keys, which has one user."""
        call.check_profile(PROFILE)
        library, ident, caller = await self.app.library(), call.params["id"], call.caller
        card = await asyncio.to_thread(library.get, ident)
        if card is None or card.tenant not in ("", caller.tenant):
            raise UnknownCard(ident)
        if not card.tenant and caller.key_id and "admin" not in caller.scopes:
            said = f"the card {ident[:80]!r} is for all tenants: this takes a key with the scope 'admin'"
            raise Refused(403, "permission_error", f"{said}, or turnout claims hide on the server")
        await asyncio.to_thread(change, library, ident)

    async def search(self, call: Call) -> Answer:
        """The cards that a question may mean, the best first: `?q=`, `?type=`, `?limit=`."""
        library, options = await self._library(call), call.options
        text = options.get("q", "").strip()
        if not 0 < len(text) <= LONGEST_SEARCH:
            raise invalid(f"q: {len(text):,} characters; say what to look for, in 1 to {LONGEST_SEARCH:,}: ?q=flood")
        kind, limit = _type(options.get("type")), _limit(options, FOUND_USUAL)
        found = await asyncio.to_thread(library.search, text, limit=limit, claim_type=kind)
        return answer({"candidates": [tell_candidate(one) for one in found]})

    async def follow(self, call: Call) -> Answer:
        """Everything that happens in a session, from its first event on."""
        session, pipeline = _session(call.params["session_id"]), await self.app.pipeline()

        async def pieces() -> AsyncGenerator[bytes, None]:
            async with aclosing(pipeline.events(session, tenant=call.caller.tenant, follow=True)) as events:
                async for event in events:
                    yield write_event(event)

        return Answer(200, [], pieces())


def _session(name: str) -> str:
    if _SESSION.match(name):
        return name
    allowed = "1 to 128 letters, digits and _ . : - are taken"
    raise invalid(f"session_id {name[:40]!r}: {allowed}; leave it out to be given one")


def _type(name: str | None) -> ClaimType | None:
    found = read_type(name) if name else None
    if name and found is None:
        raise invalid(f"type {name[:40]!r}: one of {', '.join(ClaimType)}")
    return found


def _verdict(name: str | None) -> ClaimVerdict | None:
    found = next((one for one in ClaimVerdict if name and one.lower() == name.lower()), None)
    if name and found is None:
        raise invalid(f"verdict {name[:40]!r}: one of {', '.join(ClaimVerdict)}")
    return found


def _limit(options: Mapping[str, str], usual: int) -> int:
    text = options.get("limit", str(usual))
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST:
        return int(text)
    raise invalid(f"limit {text[:20]!r}: a number from 1 to {MOST}")
