"""An audit that survives its process: five agents, each of whose results is stored before the next begins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec import Struct

from .card import Card
from .event import ChatEvent

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.runtime.runtime import Runtime

    from .library import ClaimLibrary


class AuditFailed(Struct, frozen=True):
    """An audit that ended without a card, and why."""

    pipeline_id: str
    agent: str
    reason: str


class AuditPipeline:
    """One for a process. Made by `open_pipeline`; used inside one running event loop."""

    async def start(
        self, claim_text: str, context: str = "", *, session_id: str, caller: Caller, decision_id: str = ""
    ) -> str:
        """Begin an audit on the caller's money; its id, at once. `decision_id`: the question's that led to it."""
        raise NotImplementedError

    def events(self, session_id: str, after: int = 0, *, tenant: str, follow: bool = False) -> AsyncIterator[ChatEvent]:
        """What happened in a session beyond a number, in order, and then what happens. It ends with an event that
        `ends` and that none follows yet; with `follow`, not at all."""
        raise NotImplementedError

    async def emit(self, session_id: str, event: ChatEvent, *, tenant: str, key: str = "") -> ChatEvent:
        """Store an event and tell it to all who follow; the event with its number. One with a `key` is stored once."""
        raise NotImplementedError

    async def result(self, pipeline_id: str) -> Card | AuditFailed:
        """What an audit came to; waits for its end."""
        raise NotImplementedError

    async def resume(self) -> int:
        """Go on with what processes that are gone left unfinished; how many audits. Called on start of a server."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop. Audits that are under way go on when a pipeline is opened again."""
        raise NotImplementedError


async def open_pipeline(runtime: Runtime, library: ClaimLibrary) -> AuditPipeline:
    """The pipeline of a process. Raises Refused without a store, or without the extra `claims`."""
    raise NotImplementedError
