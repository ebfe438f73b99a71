"""One way to have a model answer: a chain of candidates, each with its breaker, its deadlines and its price.

The commit gate: nothing is passed on before the first delta of any kind, or, without streaming, before the whole answer
is here and is JSON. Up to that point a failing upstream is replaced by the next; from then on it cannot be, and a
stream that breaks ends with an error event, never as if it were complete.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, json
from msgspec.structs import replace

from turnout.core.errors import Broken, NetError, Refused, TimedOut, Unreachable
from turnout.net.circuit import Breaker, read_retry_after
from turnout.net.client import WHOLE_BYTES, Request, Response
from turnout.net.deadline import Deadline

from .demo import DemoExchange, respond
from .price import Usage
from .provider import ANTHROPIC_VERSION, PATHS, credential
from .refusal import NoAnswer, Refusal, StatusRule, judge, read_refusal, told
from .slot import Slot
from .spend import Bound, additions
from .wire import FORMATS
from .wire.format import UNREADABLE, Format, most_tokens
from .wire.named import names_something
from .wire.sse import EVENT_BYTES, Events
from .wire.value import ModelRequest, ModelResponse

if TYPE_CHECKING:
    from .ask import Models

# Headers of a client's that mean something to a provider. Everything else of the request is built, never copied.
PASSED = ("anthropic-version", "anthropic-beta", "openai-beta")
# Of a provider's headers, what a client may see; and what nearly all of them say that tells nothing of where they are
# from.
SHOWN = ("content-type", "retry-after", "x-request-id", "request-id")
TELLING_NOTHING = frozenset(("application/json", "text/event-stream", "text/event-stream; charset=utf-8"))
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
CUT = "the answer broke off; what came so far is incomplete"


class Attempt(Struct, frozen=True, omit_defaults=True):
    """How one try ended."""

    slot: str
    model: str
    ended: str
    """`answered`, `status`, `unreachable`, `timeout`, `broken`, `breaker` or `budget`."""
    elapsed_ms: float
    status: int = 0
    detail: str = ""


class Money:
    """Pays for the attempts of a generation, one after the other. This one has no budget and keeps no account."""

    is_limited = False
    """There is a budget: what an attempt can cost is held before it is made."""

    def hold(self, request: ModelRequest, slot: Slot) -> Bound | None:
        """Reserve what an attempt can cost, None without a budget; raises Refused if that is too much."""
        return None

    def release(self, lost_usd: float = 0.0) -> None:
        """The attempt has no answer, and may have cost this much."""

    def unseen_usd(self) -> float:
        """What the attempt may have cost that is under way."""
        return 0.0


State = Literal["prelude", "delta", "end", "error", "half"]
"""How far a stream is; `half`: an event cannot be read."""


class Completion:
    """The answer of one candidate, from when it has begun."""

    def __init__(
        self, form: Format, slot: Slot, upstream: Response, deadline: Deadline, *, hides_usage: bool = False
    ) -> None:
        self.slot = slot
        self.upstream = upstream
        self.deadline = deadline
        """By when it must have ended."""
        self.first = b""
        """Without streaming, all of it; else what came up to the first delta."""
        self.usage = Usage()
        self.is_uncounted = False
        """It came in one piece, says something, and counts no tokens for that."""
        self._written = 0
        self.id = ""
        """What a later request may call this answer by, instead of repeating it."""
        self.state: State = "prelude"
        self.error = b""
        """The event that tells of an error."""
        self.events: Events | None = None
        """Of a stream."""
        self.headers = {name: conceal(slot, upstream.headers[name]) for name in SHOWN if name in upstream.headers}
        """What its client may see of the provider's."""
        self._form = form
        self._hides_usage = hides_usage

    @property
    def written(self) -> int:
        """Tokens of the model's own words so far, as we count them; without streaming, of all that came."""
        return self._written if self.events is not None else most_tokens((self.first,))

    def take(self, chunk: bytes) -> tuple[bytes, State]:
        """What the client is sent of a chunk, and how far the stream is then: whole events, but for a usage that only
        we asked for. Whatever a provider sends after its last event is not part of the answer."""
        out = b""
        for event in self.events.feed(chunk) if self.events is not None else ():
            try:
                delta = self._form.read_event(event, self.usage)
            except UNREADABLE:
                self.state = "half"
                break
            self.usage = delta.usage
            self._written += delta.tokens
            self.id = self.id or delta.id
            if not (self._hides_usage and delta.is_usage):
                out += event.raw
            if delta.sign == "delta":
                self.state = "delta"
            elif delta.sign in ("end", "error"):
                self.state = "end" if delta.sign == "end" else "error"
                self.error = event.data
                break
        return out, self.state


class Generation:
    """One request's way through its candidates."""

    def __init__(
        self,
        models: Models,
        request: ModelRequest,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        money: Money | None = None,
        total_s: float | None = None,
        limit: int = WHOLE_BYTES,
    ) -> None:
        self.models = models
        self.request = request
        self.headers = headers
        self.money = money or Money()
        self.total_s = total_s
        """How long an answer may take; else as long as its slot says."""
        self.limit = limit
        """Bytes of an answer in one piece."""
        self.form = FORMATS[request.wire]
        self.attempts: list[Attempt] = []
        """For the operator."""
        self.told: list[str] = []
        """What the client hears of those that failed."""
        self.retry_after_s: float | None = None
        """The soonest that one of those who were busy asked to be asked again."""
        self.completion: Completion | None = None
        self.ended: Literal["answered", "failed", "cancelled"] = "cancelled"

    async def start(self, slots: Sequence[Slot]) -> Completion | Refusal | None:
        """The first candidate that answers; None if none does. What a provider says of a request that is wrong,
        whichever model is asked, ends the search. Refused if the budget affords none of them."""
        refused: Refused | None = None
        with self.models.retries:
            for number, slot in enumerate(slots):
                breaker = self.models.breakers[slot.endpoint]
                allowed = breaker.allows()
                # The last one is tried whatever its breaker says: refusing for certain is worse than perhaps failing.
                if not allowed and number + 1 < len(slots):
                    self._note(slot, "breaker", time.monotonic(), detail="it has failed too often; skipped for now")
                    self.told.append(f"{slot.id} has failed too often and is skipped for now")
                    continue
                probe = allowed and breaker.state != "closed"
                found = await self.attempt(slot, breaker, probe=probe)
                wait = _retry_after(found) if isinstance(found, NetError) else None
                if wait is not None:
                    with self.models.retries.retry() as allowed:
                        if allowed:
                            await asyncio.sleep(wait)
                            found = await self.attempt(slot, breaker, probe=probe)
                if isinstance(found, Completion):
                    self.completion = found
                    self.ended = "cancelled" if self.request.stream else "answered"
                    return found
                if isinstance(found, Refusal):
                    self.ended = "failed"
                    return found
                refused = found if isinstance(found, Refused) else refused
        if refused is not None and all(attempt.ended in ("budget", "breaker") for attempt in self.attempts):
            raise refused
        self.ended = "failed"
        return None

    async def attempt(self, slot: Slot, breaker: Breaker, *, probe: bool) -> Completion | Refusal | NetError | Refused:
        """Ask one candidate, once. Its breaker hears of it; `probe`: it waits to."""
        started = time.monotonic()
        reported = False
        try:
            most = self.money.hold(self.request, slot) if self.money.is_limited else None
            found = await self._ask(slot, started, most)
            if isinstance(found, Completion):
                reported = True
                breaker.succeeded()
            else:
                self.money.release()
        except Refused as refused:
            self._note(slot, "budget", started, detail=str(refused))
            self.told.append(f"{slot.id}: {refused}")
            return refused
        except NetError as error:
            # What the request itself may have provoked says nothing of how the provider is.
            reported = not isinstance(error, ProviderRefused) or error.counts
            if reported:
                breaker.failed()
            worked = error.was_answered or (error.was_sent and time.monotonic() - started >= WORKED_S)
            self.money.release(self.money.unseen_usd() if worked else 0.0)
            if not isinstance(error, ProviderRefused) or not error.status:
                ended = {TimedOut: "timeout", Unreachable: "unreachable"}.get(type(error), "broken")
                self._note(slot, ended, started, detail=str(error))
            self.told.append(conceal(slot, told(slot.id, error)))
            return error
        finally:
            if not reported and probe:
                breaker.forgive()
        return found

    async def _ask(self, slot: Slot, started: float, most: Bound | None) -> Completion | Refusal:
        request = self.request
        added = additions(request, slot, most) if most is not None else {}
        total_s = slot.total_s if self.total_s is None else self.total_s
        deadline = Deadline(started + total_s)
        # An answer in one piece begins when all of it is written.
        wait_s = slot.first_token_s if request.stream else total_s
        upstream = await self._open(slot, added, wait_s)
        kind, begun = upstream.headers.get("content-type", ""), False
        try:
            if upstream.status != 200:
                found = await self._read_refusal(slot, upstream, started, deadline)
            elif request.stream:
                completion = Completion(self.form, slot, upstream, deadline, hides_usage="stream_options" in added)
                found = await self._read_start(completion, kind, started + slot.first_token_s)
            elif kind and "json" not in kind:
                raise NoAnswer(f"{slot.id} answered {kind} instead of JSON")
            else:
                raw = await upstream.read(deadline, self.limit)
                found = self._read_whole(Completion(self.form, slot, upstream, deadline), raw)
            begun = isinstance(found, Completion)
        except NetError as error:
            error.was_sent = not isinstance(error, ProviderRefused)
            raise
        finally:
            if not begun:
                upstream.close()
        self._note(slot, "answered" if begun else "status", started, status=upstream.status)
        return found

    async def _open(self, slot: Slot, added: Mapping[str, object], wait_s: float) -> Response:
        """Send the request to a slot's provider; the response, once its headers are here."""
        request, wire, stream = self.request, self.request.wire, self.request.stream
        if slot.origin is None:
            pieces = respond(wire, slot.name, slot.id, request.last_words, stream)
            return Response(DemoExchange(pieces, stream), slot.id)
        headers = {"content-type": "application/json", "accept": "text/event-stream" if stream else "application/json"}
        headers |= {name: self.headers[name] for name in PASSED if name in self.headers}
        if wire == "anthropic-messages":
            headers.setdefault("anthropic-version", ANTHROPIC_VERSION)
        key = credential(wire, slot.provider, slot.key.reveal()) if slot.key is not None else None
        path, body = slot.path + PATHS[wire], write_body(request, slot.model, added)
        sent = Request(slot.origin, path, body, headers=headers, credential=key, plain_http=slot.plain_http)
        return await self.models.client.open(sent, wait_s)

    async def _read_refusal(
        self, slot: Slot, upstream: Response, started: float, deadline: Deadline
    ) -> Completion | Refusal:
        status, raw = upstream.status, b""
        if 400 <= status < 500:
            # A status is known even where its sentence breaks off. A server that fails may never end it.
            with suppress(NetError):
                raw = await upstream.read(Deadline.after(deadline.within(ERROR_S)))
        refusal = read_refusal(status, raw[:ERROR_BYTES])
        verdict = self._judge(slot, refusal)
        if verdict.ends == "here":
            return _concealed(refusal, slot)
        wait = read_retry_after(upstream.headers.get("retry-after", ""))
        if wait is not None:
            self.retry_after_s = wait if self.retry_after_s is None else min(wait, self.retry_after_s)
        detail = f"{slot.id} answered {status}" + (f" ({refusal.code})" if refusal.code is not None else "")
        self._note(slot, "status", started, status=status, detail=detail)
        raise ProviderRefused(detail, verdict.counts, status, wait)

    def _judge(self, slot: Slot, refusal: Refusal) -> StatusRule:
        verdict = judge(refusal, slot.model)
        if verdict.ends == "next" and refusal.is_told and judge(refusal, slot.model, names=True).ends == "here":
            return judge(refusal, slot.model, names=names_something(self.request.fields))
        return verdict

    def _error_inside(self, slot: Slot, raw: bytes, detail: str) -> Refusal:
        """An error in an answer of status 200: the request's, or raised as the provider's."""
        refusal = read_refusal(200, raw[:ERROR_BYTES])
        verdict = self._judge(slot, refusal)
        if verdict.ends == "here":
            return _concealed(refusal, slot)
        raise ProviderRefused(detail, verdict.counts)

    def _read_whole(self, completion: Completion, raw: bytes) -> Completion | Refusal:
        slot = completion.slot
        try:
            response = self.form.read_response(raw)
        except UNREADABLE as error:
            raise NoAnswer(f"{slot.id} answered JSON that ends early or is none ({error})") from None
        if bytes(response.fields.get("error", b"null")) != b"null":
            return self._error_inside(slot, raw, f"{slot.id} answered 200 and an error")
        completion.first, completion.id, completion.state = raw, response.id, "end"
        completion.usage = response.usage or Usage()
        completion.is_uncounted = not completion.usage.output_tokens and self._says_something(response)
        return completion

    def _says_something(self, response: ModelResponse) -> bool:
        try:
            return any(part.text or part.kind != "text" for part in self.form.read_parts(response)[0])
        except (*UNREADABLE, LookupError):
            return True

    async def _read_start(self, completion: Completion, kind: str, until: float) -> Completion | Refusal:
        slot = completion.slot
        if "event-stream" not in kind:
            unusable = NoAnswer(f"{slot.id} answered {kind or 'something without a type'} instead of a stream")
            unusable.was_answered = "json" in kind
            raise unusable
        completion.events = Events()
        held = bytearray()
        # Each wait is no longer than what is left: a provider that drips comments cannot hold us.
        first = Deadline(min(until, completion.deadline.at))
        state: State = "prelude"
        while state == "prelude":
            try:
                chunk = await completion.upstream.next(slot.idle_s, first)
            except TimedOut:
                if first.left:
                    raise  # it was silent for too long before that
                raise TimedOut(f"{slot.id}: no first token within {slot.first_token_s:g} s") from None
            if not chunk:
                raise NoAnswer(f"{slot.id}: the stream ended before it said anything")
            piece, state = completion.take(chunk)
            held += piece
            if state == "half":
                raise NoAnswer(f"{slot.id}: an event of the stream is not JSON")
            if state == "error":
                # After a delta too, as long as that has not been passed on.
                return self._error_inside(slot, completion.error, f"{slot.id}: the stream began with an error")
            if state == "prelude" and len(held) > HELD_BYTES:
                raise NoAnswer(f"{slot.id}: {HELD_BYTES:,} bytes and no first token")
        completion.first = bytes(held)
        return completion

    async def stream(self, completion: Completion, decision: str) -> AsyncGenerator[bytes, None]:
        """A stream that has begun, whole events only; `ended` tells how, before the last of it is handed out: a client
        that leaves upon it has had its answer."""
        slot = completion.slot
        if completion.state == "end":
            self.ended = "answered"
            yield completion.first
            return
        yield completion.first
        try:
            while chunk := await completion.upstream.next(slot.idle_s, completion.deadline):
                out, state = completion.take(chunk)
                if state in ("end", "error"):
                    self.ended = "answered" if state == "end" else "failed"
                if out:
                    yield out
                if state == "half":
                    raise Broken(f"{slot.id}: an event of the stream is not JSON")
                if state != "delta":
                    return
            raise Broken(f"{slot.id}: the stream ended without its last event")
        except NetError as error:
            self.ended = "failed"
            self.models.breaker(slot).failed()
            self.attempts.append(Attempt(slot.name, slot.id, "broken", 0.0, 200, slot.hide(str(error))))
            yield self.form.write_error_event("upstream_error", CUT, decision)

    def _note(self, slot: Slot, ended: str, started: float, *, status: int = 0, detail: str = "") -> None:
        elapsed, detail = (time.monotonic() - started) * 1000, slot.hide(detail) if detail else ""
        self.attempts.append(Attempt(slot.name, slot.id, ended, round(elapsed, 3), status, detail))


def write_body(request: ModelRequest, model: str, added: Mapping[str, object] = MappingProxyType({})) -> bytes:
    """A request for another model, else untouched. Under a budget members are added (`spend`)."""
    return json.encode({**request.fields, **added, "model": model})


class ProviderRefused(NoAnswer):
    """A refusal that the next candidate may not share. One by its status was noted when it was seen."""

    def __init__(self, message: str, counts: bool = True, status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.counts = counts
        self.status = status
        self.retry_after_s = retry_after_s


def _retry_after(error: NetError) -> float | None:
    """How long to wait before trying the same provider once more; None: do not.

    Where nothing was said yet, a moment by chance, so that not everybody comes back at once; else when it says.
    """
    if isinstance(error, ProviderRefused):
        soon = error.status in (429, 503) and error.retry_after_s is not None and error.retry_after_s <= SOON_S
        return error.retry_after_s if soon else None
    return random.uniform(*BACKOFF_S) if isinstance(error, Unreachable) else None  # noqa: S311 - no secret


def _concealed(refusal: Refusal, slot: Slot) -> Refusal:
    """A refusal as its client may read it."""

    def named(name: str | None) -> str | None:
        return None if name is None else conceal(slot, name)

    code = named(refusal.code) if isinstance(refusal.code, str) else refusal.code
    message, kind, param = conceal(slot, refusal.message), named(refusal.kind), named(refusal.param)
    return replace(refusal, message=message, kind=kind, code=code, param=param)


def conceal(slot: Slot, text: str) -> str:
    """What a slot's provider said, fit for a client: without the key, and without where the provider is."""
    if text in TELLING_NOTHING:
        return text
    if slot.key is not None:
        text = slot.key.hide(text)
    if slot.origin is None or slot.origin.host not in text.casefold():
        return text
    host = re.escape(slot.origin.host)
    # A name of one label is a word as well: it is a place where an address is, or a port.
    plain = "." in slot.origin.host or ":" in slot.origin.host
    place = rf"(?:https?://)?\[?{host}\]?(?::\d+)?" if plain else rf"https?://{host}(?::\d+)?|{host}:\d+"
    return re.sub(rf"(?<![\w.-])(?:{place})(?![\w-])", "the provider", text, flags=re.IGNORECASE)
