"""The rest of a stream once it has begun, whole events only.

However it ends (its last event, a break, a client that leaves, even before the first piece was sent) the upstream is
closed and the account too: whoever has a relay must `aclose` it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from turnout.core.errors import Broken, NetError

from .account import Account, Ended
from .exchange import Attempt, Begun, Exchange, read_sign
from .upstream import Upstream
from .wire import UNREADABLE, Format

CUT = "the answer broke off; what came so far is incomplete"


class Relay:
    """What a client is sent. While it lasts its upstream is in `live`: closing that one cuts the stream."""

    def __init__(self, form: Format, begun: Begun, exchange: Exchange, account: Account, live: set[Upstream]) -> None:
        self.form = form
        self.begun = begun
        self.exchange = exchange
        self.account = account
        self.live = live
        self.ended: Ended = "cancelled"
        self.usage = begun.usage
        self.written = begun.written
        self._pieces = self._relay()
        live.add(begun.upstream)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._pieces.aclose()
        self.live.discard(self.begun.upstream)
        self.begun.upstream.close()
        begun = self.begun._replace(usage=self.usage, written=self.written)
        self.account.close(self.ended, begun, self.exchange.attempts)

    async def _relay(self) -> AsyncGenerator[bytes, None]:
        slot = self.begun.candidate.slot
        if self.begun.ended or self.begun.chunks is None:
            self.ended = "answered"
            yield self.begun.first
            return
        yield self.begun.first
        try:
            async with aclosing(self._rest(self.begun.chunks)) as rest:
                async for piece in rest:
                    yield piece
        except NetError as error:
            self.ended = "failed"
            self.exchange.models.breaker(slot).failed()
            self.exchange.attempts.append(Attempt(slot.name, slot.id, "broken", 0.0, 200, slot.hide(str(error))))
            yield self.form.error_event("upstream_error", CUT, self.account.decision.id)

    async def _rest(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        slot = self.begun.candidate.slot
        async for chunk in chunks:
            out, last = b"", ""
            for event in self.begun.events.feed(chunk):
                try:
                    sign = read_sign(self.form, event)
                    said = self.form.written(event.name, event.data)
                    self.written += said
                    self.usage = self.form.usage(event.data, self.usage.before(said))
                except UNREADABLE:
                    last = "half"
                    break
                out += self.exchange.relayed(event)
                if sign in ("end", "error"):
                    # Whatever a provider sends after its last event is not part of the answer.
                    last = sign
                    break
            if last in ("end", "error"):
                # Settled before the last event is sent: a client that leaves upon it has had its answer.
                self.ended = "answered" if last == "end" else "failed"
            if out:
                yield out
            if last == "half":
                raise Broken(f"{slot.id}: an event of the stream is not JSON")
            if last:
                return
        raise Broken(f"{slot.id}: the stream ended without its last event")
