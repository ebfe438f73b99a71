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
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.apps.caller import Refused
from turnout.core.errors import NetError, TimedOut, Unreachable
from turnout.models.ask import Models
from turnout.models.price import Usage
from turnout.models.refusal import NoAnswer, Refusal, Status, judge, read_refusal, told
from turnout.models.slot import Slot
from turnout.net.deadline import Deadline
from turnout.net.retry import RetryBudget, read_retry_after

from .choose import Candidate
from .named import names_something
from .spend import Bound, additions
from .sse import EVENT_BYTES, Event, Events
from .upstream import Upstream, answered_here, request_to
from .wire import UNREADABLE, Asked, Format, Sign, most_tokens

# A provider that says when to come back is asked again, if that is soon.
SOON_S = 2.0
BACKOFF_S = (0.05, 0.2)
# How much of a refusal is read, and for how long: it is a sentence.
ERROR_BYTES = 64 * 1024
ERROR_S = 2.0
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
    """The request is wrong, says the provider that was asked."""

    candidate: Candidate
    refusal: Refusal


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
        """For the operator."""
        self.told: list[str] = []
        """What the client hears of those that failed."""
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
                self.told.append(f"{candidate.slot.id} has failed too often and is skipped for now")
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
            if isinstance(found, Begun):
                finished = True
                breaker.succeeded()
            else:
                self.costs.release()
        except Refused as refused:
            self._note(candidate, "budget", started, detail=str(refused))
            self.told.append(f"{slot.id}: {refused}")
            return refused
        except NetError as error:
            # What the request itself may have provoked says nothing of how the provider is.
            finished = not isinstance(error, _Refused) or error.counts
            if finished:
                breaker.failed()
            worked = error.was_sent and time.monotonic() - started >= WORKED_S
            self.costs.release(self.costs.unseen_usd(slot) if worked else 0.0)
            if not isinstance(error, _Refused) or not error.status:
                ended = {TimedOut: "timeout", Unreachable: "unreachable"}.get(type(error), "broken")
                self._note(candidate, ended, started, detail=str(error))
            self.told.append(candidate.slot.conceal(told(candidate.slot.id, error)))
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
            else:
                found = await self._whole(candidate, upstream, Deadline(started + slot.total_s))
            begun = isinstance(found, Begun)
        except NetError as error:
            error.was_sent = not isinstance(error, _Refused)
            raise
        finally:
            if not begun:
                upstream.close()
        self._note(candidate, "answered" if begun else "status", started, status=upstream.status)
        return found

    async def _refused(self, candidate: Candidate, upstream: Upstream, started: float) -> Wrong:
        status = upstream.status
        slot = candidate.slot
        raw = b""
        if 400 <= status < 500:
            # A status is known even where its sentence breaks off. A server that fails may never end it.
            with suppress(NetError):
                raw = await upstream.read(Deadline.after(ERROR_S), ERROR_S)
        refusal = read_refusal(status, raw[:ERROR_BYTES])
        verdict = self._judged(candidate, refusal)
        if verdict.ends == "here":
            return Wrong(candidate, _shown(refusal, slot))
        wait = read_retry_after(upstream.headers.get("retry-after", ""))
        if wait is not None:
            self.retry_after_s = wait if self.retry_after_s is None else min(wait, self.retry_after_s)
        detail = f"{slot.id} answered {status}" + (f" ({refusal.code})" if refusal.code is not None else "")
        self._note(candidate, "status", started, status=status, detail=detail)
        raise _Refused(detail, verdict.counts, status, wait)

    def _judged(self, candidate: Candidate, refusal: Refusal) -> Status:
        model = candidate.slot.model
        verdict = judge(refusal, model)
        if verdict.ends == "next" and refusal.is_told and judge(refusal, model, names=True).ends == "here":
            return judge(refusal, model, names=names_something(self.asked.fields))
        return verdict

    def _error_inside(self, candidate: Candidate, raw: bytes, detail: str) -> Wrong:
        """An error in an answer of status 200: the request's, or raised as the provider's."""
        refusal = read_refusal(200, raw[:ERROR_BYTES])
        verdict = self._judged(candidate, refusal)
        if verdict.ends == "here":
            return Wrong(candidate, _shown(refusal, candidate.slot))
        raise _Refused(detail, verdict.counts)

    async def _whole(self, candidate: Candidate, upstream: Upstream, deadline: Deadline) -> Begun | Wrong:
        slot = candidate.slot
        kind = upstream.headers.get("content-type", "")
        if "json" not in kind:
            raise NoAnswer(f"{slot.id} answered {kind or 'something without a type'} instead of JSON")
        raw = await upstream.read(deadline, slot.total_s)
        try:
            fields = _whole.decode(raw)
            usage = self.form.usage(raw, Usage())
        except UNREADABLE as error:
            raise NoAnswer(f"{slot.id} answered JSON that ends early or is none ({error})") from None
        if bytes(fields.get("error", b"null")) != b"null":
            return self._error_inside(candidate, raw, f"{slot.id} answered 200 and an error")
        upstream.close()
        stored = self.form.stored_as(raw)
        return Begun(
            candidate, upstream, raw, Events(), None, usage, ended=True, stored=stored, written=most_tokens((raw,))
        )

    async def _first_delta(self, candidate: Candidate, upstream: Upstream, started: float) -> Begun | Wrong:
        slot = candidate.slot
        kind = upstream.headers.get("content-type", "")
        if "event-stream" not in kind:
            raise NoAnswer(f"{slot.id} answered {kind or 'something without a type'} instead of a stream")
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
                raise NoAnswer(f"{slot.id}: the stream ended before it said anything")
            go = ended = False
            for event in events.feed(chunk):
                try:
                    sign = read_sign(self.form, event)
                    said = self.form.written(event.name, event.data)
                    written += said
                    usage = self.form.usage(event.data, usage.before(said))
                except UNREADABLE:
                    raise NoAnswer(f"{slot.id}: an event of the stream is not JSON") from None
                if sign == "error":
                    # After a delta too, as long as that has not been passed on.
                    return self._error_inside(candidate, event.data, f"{slot.id}: the stream began with an error")
                held += self.relayed(event)
                go = go or sign in ("delta", "end")
                if sign == "end":
                    ended = True
                    break
            if go:
                first_bytes = bytes(held)
                stored = self.form.stored_as(first_bytes)
                return Begun(candidate, upstream, first_bytes, events, chunks, usage, ended, stored, written)
            if len(held) > HELD_BYTES:
                raise NoAnswer(f"{slot.id}: {HELD_BYTES:,} bytes and no first token")

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


class _Refused(NoAnswer):
    """A refusal that the next candidate may not share. One by its status was noted when it was seen."""

    def __init__(self, message: str, counts: bool, status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.counts = counts
        self.status = status
        self.retry_after_s = retry_after_s


def _retry_after(error: NetError) -> float | None:
    """How long to wait before trying the same provider once more; None: do not.

    Where nothing was said yet, a moment by chance, so that not everybody comes back at once; else when it says.
    """
    if isinstance(error, _Refused):
        soon = error.status in (429, 503) and error.retry_after_s is not None and error.retry_after_s <= SOON_S
        return error.retry_after_s if soon else None
    return random.uniform(*BACKOFF_S) if isinstance(error, Unreachable) else None  # noqa: S311 - no secret


def _shown(refusal: Refusal, slot: Slot) -> Refusal:
    """A refusal as its client may read it."""

    def conceal(name: str | None) -> str | None:
        return None if name is None else slot.conceal(name)

    code = conceal(refusal.code) if isinstance(refusal.code, str) else refusal.code
    message, kind, param = slot.conceal(refusal.message), conceal(refusal.kind), conceal(refusal.param)
    return replace(refusal, message=message, kind=kind, code=code, param=param)
