"""Tries the candidates in turn until one has really begun to answer, and then stays with it.

The commit gate: nothing reaches the client before the first delta of any kind, or, without streaming, before the whole
answer is here and is JSON. Up to that point a failing upstream is replaced by the next; from then on it cannot be, and
a stream that breaks ends with an error event, never as if it were complete.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from turnout.apps.caller import Refused
from turnout.core.errors import Broken, NetError, TimedOut, Unreachable
from turnout.models.ask import Models
from turnout.models.price import Usage
from turnout.models.slot import Slot
from turnout.net.deadline import Deadline
from turnout.net.retry import RetryBudget, read_retry_after

from .choose import Candidate
from .spend import Bound, additions
from .sse import EVENT_BYTES, Event, Events
from .upstream import Upstream, answered_here, request_to
from .wire import UNREADABLE, Asked, Format, Sign, most_tokens

# The request itself is wrong: nobody else would take it either.
FINAL = frozenset((400, 405, 406, 411, 413, 414, 415, 422))
# A provider that says when to come back is asked again, if that is soon.
SOON_S = 2.0
BACKOFF_S = (0.05, 0.2)
# An error's text that is shown to the client whose request it is about.
ERROR_BYTES = 64 * 1024
ERROR_CHARACTERS = 2000
# What breaks sooner was not worked on: a connection that had been closed, a proxy that refuses.
WORKED_S = 1.0
# What is kept until the first delta: a response's first events may repeat the whole request.
HELD_BYTES = 2 * EVENT_BYTES

_whole = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Object(Struct):
    """Any JSON object."""


_object = msgspec.json.Decoder(_Object)


class Attempt(Struct, frozen=True, omit_defaults=True):
    """How one try ended."""

    slot: str
    model: str
    ended: str
    """`answered`, `status`, `unreachable`, `timeout`, `broken`, `breaker` or `budget`."""
    elapsed_ms: float
    status: int = 0
    detail: str = ""


class Begun(NamedTuple):
    """A candidate has begun to answer."""

    candidate: Candidate
    upstream: Upstream
    first: bytes
    """Without streaming, all of it; else what came up to the first delta."""
    events: Events
    chunks: AsyncIterator[bytes] | None
    usage: Usage
    ended: bool
    """The stream's last event is in `first` already."""
    stored: str = ""
    """What a later request may call this answer by, instead of repeating it."""
    written: int = 0
    """Tokens of the model's own words so far, as we count them."""


class Wrong(NamedTuple):
    """The request is wrong, says whoever was asked."""

    candidate: Candidate
    status: int
    message: str


class Costs(Protocol):
    """The money of one request's attempts, one after the other."""

    def hold(self, slot: Slot) -> Bound | None:
        """Reserve what an attempt can cost, None without a budget; raises Refused if that is too much."""
        ...

    def release(self, lost_usd: float = 0.0) -> None:
        """The attempt has no answer, and may have cost this much."""
        ...

    def unseen_usd(self, slot: Slot) -> float:
        """What an attempt may have cost that was under way."""
        ...


class Exchange:
    """One request's way through its candidates."""

    def __init__(
        self,
        models: Models,
        budget: RetryBudget,
        form: Format,
        asked: Asked,
        headers: Mapping[str, str],
        costs: Costs,
    ) -> None:
        self.models = models
        self.costs = costs
        self.budget = budget
        self.form = form
        self.asked = asked
        self.headers = headers
        self.attempts: list[Attempt] = []
        self.retry_after_s: float | None = None
        """The soonest that one of those who were busy asked to be asked again."""
        self.hides_usage = False
        """A stream tells its usage because we asked it to; its client did not."""

    async def begin(self, candidates: Sequence[Candidate]) -> Begun | Wrong | None:
        """The first candidate that answers; None if none does. Refused if the budget affords none of them."""
        refused: Refused | None = None
        for number, candidate in enumerate(candidates):
            breaker = self.models.breaker(candidate.slot)
            allowed = breaker.allows()
            probe = allowed and breaker.state != "closed"
            # The last one is tried whatever its breaker says: refusing for certain is worse than perhaps failing.
            if not allowed and number + 1 < len(candidates):
                self._note(candidate, "breaker", time.monotonic(), detail="it has failed too often; skipped for now")
                continue
            found = await self._try(candidate, probe=probe)
            wait = _retry_after(found) if isinstance(found, NetError) else None
            if wait is not None:
                with self.budget.retry() as allowed:
                    if allowed:
                        await asyncio.sleep(wait)
                        found = await self._try(candidate, probe=probe)
            if isinstance(found, Refused):
                refused = found
            elif not isinstance(found, NetError):
                return found
        if refused is not None and all(attempt.ended in ("budget", "breaker") for attempt in self.attempts):
            raise refused
        return None

    async def _try(self, candidate: Candidate, *, probe: bool) -> Begun | Wrong | NetError | Refused:
        slot = candidate.slot
        breaker = self.models.breaker(slot)
        started = time.monotonic()
        finished = False
        try:
            most = self.costs.hold(slot)
            found = await self._ask(candidate, started, most)
            finished = True
            breaker.succeeded()
            if isinstance(found, Wrong):
                self.costs.release()
        except Refused as refused:
            self._note(candidate, "budget", started, detail=str(refused))
            return refused
        except NetError as error:
            finished = True
            breaker.failed()
            worked = error.was_sent and time.monotonic() - started >= WORKED_S
            self.costs.release(self.costs.unseen_usd(slot) if worked else 0.0)
            if not isinstance(error, _Status):
                ended = {TimedOut: "timeout", Unreachable: "unreachable"}.get(type(error), "broken")
                self._note(candidate, ended, started, detail=str(error))
            return error
        finally:
            if not finished and probe:
                breaker.forgive()
        return found

    async def _ask(self, candidate: Candidate, started: float, most: Bound | None) -> Begun | Wrong:
        slot, asked = candidate.slot, self.asked
        added = additions(asked, slot, most) if most is not None else {}
        self.hides_usage = "stream_options" in added
        found: Begun | Wrong
        if slot.origin is None:
            upstream = answered_here(slot, asked)
        else:
            request = request_to(slot, slot.origin, asked, self.headers, added)
            # An answer in one piece begins when all of it is written.
            upstream = await self.models.client.open(request, slot.first_token_s if asked.stream else slot.total_s)
        begun = False
        try:
            if upstream.status != 200:
                found = await self._refused(candidate, upstream, started)
            elif asked.stream:
                found = await self._first_delta(candidate, upstream, started)
                begun = True
            else:
                found = await self._whole(candidate, upstream, Deadline(started + slot.total_s))
                begun = True
        except NetError as error:
            error.was_sent = not isinstance(error, _Status)
            raise
        finally:
            if not begun:
                upstream.close()
        self._note(candidate, "answered" if begun else "status", started, status=upstream.status)
        return found

    async def _refused(self, candidate: Candidate, upstream: Upstream, started: float) -> Wrong:
        status = upstream.status
        slot = candidate.slot
        if status in FINAL:
            raw = await upstream.read(Deadline.after(5.0), 5.0)
            return Wrong(candidate, status, slot.hide(_message(raw[:ERROR_BYTES])))
        wait = read_retry_after(upstream.headers.get("retry-after", ""))
        if wait is not None:
            self.retry_after_s = wait if self.retry_after_s is None else min(wait, self.retry_after_s)
        self._note(candidate, "status", started, status=status, detail=f"{slot.id} answered {status}")
        raise _Status(f"{slot.id} answered {status}", status, wait)

    async def _whole(self, candidate: Candidate, upstream: Upstream, deadline: Deadline) -> Begun:
        slot = candidate.slot
        kind = upstream.headers.get("content-type", "")
        if "json" not in kind:
            raise Broken(f"{slot.id} answered {kind or 'something without a type'} instead of JSON")
        raw = await upstream.read(deadline, slot.total_s)
        try:
            fields = _whole.decode(raw)
            usage = self.form.usage(raw, Usage())
        except UNREADABLE as error:
            raise Broken(f"{slot.id} answered JSON that ends early or is none ({error})") from None
        if bytes(fields.get("error", b"null")) != b"null":
            raise Broken(f"{slot.id} answered 200 and an error")
        upstream.close()
        stored = self.form.stored_as(raw)
        return Begun(
            candidate, upstream, raw, Events(), None, usage, ended=True, stored=stored, written=most_tokens(raw)
        )

    async def _first_delta(self, candidate: Candidate, upstream: Upstream, started: float) -> Begun:
        slot = candidate.slot
        kind = upstream.headers.get("content-type", "")
        if "event-stream" not in kind:
            raise Broken(f"{slot.id} answered {kind or 'something without a type'} instead of a stream")
        events, held, usage, written = Events(), bytearray(), Usage(), 0
        chunks = upstream.chunks(slot.idle_s, Deadline(started + slot.total_s))
        first = Deadline(started + slot.first_token_s)
        while True:
            # Each wait is no longer than what is left: a provider that drips comments cannot hold us.
            try:
                async with asyncio.timeout(first.left):
                    chunk = await anext(chunks, None) if first.left else b""
            except TimeoutError:
                chunk = b""
            if chunk == b"":
                raise TimedOut(f"{slot.id}: no first token within {slot.first_token_s:g} s")
            if chunk is None:
                raise Broken(f"{slot.id}: the stream ended before it said anything")
            go = ended = False
            for event in events.feed(chunk):
                try:
                    sign = read_sign(self.form, event)
                    usage = self.form.usage(event.data, usage)
                    written += self.form.written(event.name, event.data)
                except UNREADABLE:
                    raise Broken(f"{slot.id}: an event of the stream is not JSON") from None
                if sign == "error":
                    # After a delta too, as long as that has not been passed on.
                    raise Broken(f"{slot.id}: the stream began with an error")
                held += self.relayed(event)
                go = go or sign in ("delta", "end")
                if sign == "end":
                    ended = True
                    break
            if go:
                said = bytes(held)
                stored = self.form.stored_as(said)
                return Begun(candidate, upstream, said, events, chunks, usage, ended, stored, written)
            if len(held) > HELD_BYTES:
                raise Broken(f"{slot.id}: {HELD_BYTES:,} bytes and no first token")

    def relayed(self, event: Event) -> bytes:
        """What the client is sent of an event: all of it, unless only we asked for it."""
        return b"" if self.hides_usage and self.form.is_usage(event.data) else event.raw

    def _note(self, candidate: Candidate, ended: str, started: float, *, status: int = 0, detail: str = "") -> None:
        slot = candidate.slot
        elapsed = (time.monotonic() - started) * 1000
        self.attempts.append(Attempt(slot.name, slot.id, ended, round(elapsed, 3), status, slot.hide(detail)))


def read_sign(form: Format, event: Event) -> Sign:
    """What an event is; raises DecodeError for half of one. A format whose events have names goes by these alone."""
    if event.name and event.data:
        _object.decode(event.data)
    return form.sign(event.name, event.data)


class _Status(Broken):
    """An answer that is none, by its status; noted when it was seen."""

    def __init__(self, message: str, status: int, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


def _retry_after(error: NetError) -> float | None:
    """How long to wait before trying the same provider once more; None: do not.

    Where nothing was said yet, a moment by chance, so that not everybody comes back at once; else when it says.
    """
    if isinstance(error, _Status):
        soon = error.status in (429, 503) and error.retry_after_s is not None and error.retry_after_s <= SOON_S
        return error.retry_after_s if soon else None
    return random.uniform(*BACKOFF_S) if isinstance(error, Unreachable) else None  # noqa: S311 - no secret


def _message(raw: bytes) -> str:
    """What a provider says is wrong with a request, from its own error object."""
    try:
        body = msgspec.json.decode(raw)
        error = body.get("error", body) if isinstance(body, dict) else {}
        said = error.get("message") if isinstance(error, dict) else error
    except UNREADABLE:
        said = None
    return str(said)[:ERROR_CHARACTERS] if said else "the provider refused the request without saying why"
