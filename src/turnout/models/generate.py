"""Generates an answer: a chain of candidates, each with its breaker, its deadlines and its price.

The commit gate: nothing is passed on before a stream's first delta, or, without streaming, before the whole answer has
arrived and is JSON. Until then a failing provider is replaced by the next candidate. After that it cannot be, and a
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
from .refusal import NoAnswer, Refusal, StatusRule, public_message, read_refusal, rule_for
from .slot import Slot
from .spend import Bound, additions
from .wire import FORMATS
from .wire.format import UNREADABLE, Format, most_tokens
from .wire.named import names_something
from .wire.sse import EVENT_BYTES, Events
from .wire.value import ModelRequest, ModelResponse

if TYPE_CHECKING:
    from .ask import Models

# Headers of a client that mean something to a provider. All others of the request are built, never copied.
PASSED = ("anthropic-version", "anthropic-beta", "openai-beta")
# Headers of a provider that a client may see, and their usual values, which say nothing about the provider.
SHOWN = ("content-type", "retry-after", "x-request-id", "request-id")
HARMLESS_VALUES = frozenset(("application/json", "text/event-stream", "text/event-stream; charset=utf-8"))
# A provider is asked again if its `retry-after` is at most this long.
SOON_S = 2.0
BACKOFF_S = (0.05, 0.2)
# Limits for reading a refusal, which is a sentence.
ERROR_BYTES = 64 * 1024
ERROR_S = 2.0
# A request that breaks sooner was not worked on: its connection had been closed, or a proxy refused it.
WORKED_S = 1.0
# Kept until the first delta: a response's first events may repeat the whole request.
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
    """Pays for the attempts of a generation, one after the other. This base class has no budget and no account."""

    is_limited = False
    """Whether there is a budget: then the cost of an attempt is reserved before it is made."""

    def hold(self, request: ModelRequest, slot: Slot) -> Bound | None:
        """Reserve the most an attempt can cost, None without a budget; raises Refused if that is too much."""
        return None

    def release(self, lost_usd: float = 0.0) -> None:
        """The attempt has no answer, and may have cost this much."""

    def unseen_usd(self) -> float:
        """What the current attempt may have cost so far."""
        return 0.0


State = Literal["prelude", "delta", "end", "error", "half"]
"""How far a stream is; `half`: an event cannot be read."""


class Completion:
    """The answer of one candidate, from its first delta on."""

    def __init__(
        self, form: Format, slot: Slot, upstream: Response, deadline: Deadline, *, hides_usage: bool = False
    ) -> None:
        self.slot = slot
        self.upstream = upstream
        self.deadline = deadline
        """When it must have ended."""
        self.first = b""
        """Without streaming, the whole answer; else everything up to the first delta."""
        self.usage = Usage()
        self.is_uncounted = False
        """An answer in one piece that has content and a usage without output tokens."""
        self._written = 0
        self.id = ""
        """The provider's id, by which a later request may refer to this answer."""
        self.state: State = "prelude"
        self.error = b""
        """The data of an error event."""
        self.events: Events | None = None
        """A stream's; None without streaming."""
        self.headers = {name: conceal(slot, upstream.headers[name]) for name in SHOWN if name in upstream.headers}
        """The provider's headers that a client may see."""
        self._form = form
        self._hides_usage = hides_usage

    @property
    def written(self) -> int:
        """Our count of the model's tokens so far; without streaming, of the whole body."""
        return self._written if self.events is not None else most_tokens((self.first,))

    def take(self, chunk: bytes) -> tuple[bytes, State]:
        """The bytes of a chunk that the client is sent, and how far the stream is then. These are whole events, without
        a usage that only we asked for; nothing after the last event belongs to the answer."""
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
    """One request and the attempts to have a candidate answer it."""

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
        """How long an answer may take; None: as long as its slot says."""
        self.limit = limit
        """The most bytes of an answer in one piece."""
        self.form = FORMATS[request.wire]
        self.attempts: list[Attempt] = []
        """For the operator."""
        self.client_notes: list[str] = []
        """What the client is told about failed attempts."""
        self.retry_after_s: float | None = None
        """The shortest wait that a busy provider asked for."""
        self.completion: Completion | None = None
        self.ended: Literal["answered", "failed", "cancelled"] = "cancelled"

    async def start(self, slots: Sequence[Slot]) -> Completion | Refusal | None:
        """The answer of the first candidate that has one; None if none has. A refusal that every model would repeat,
        because the request is wrong, ends the search. Raises Refused if the budget affords no candidate."""
        refused: Refused | None = None
        with self.models.retries:
            for number, slot in enumerate(slots):
                breaker = self.models.breakers[slot.endpoint]
                allowed = breaker.allows()
                # The last one is tried even if its breaker is open: it may answer, and a refusal would certainly fail.
                if not allowed and number + 1 < len(slots):
                    self._note(slot, "breaker", time.monotonic(), detail="it has failed too often; skipped for now")
                    self.client_notes.append(f"{slot.id} has failed too often and is skipped for now")
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
        """Ask one candidate, once, and report the result to its breaker; `probe`: the breaker waits for one."""
        started = time.monotonic()
        reported = False
        try:
            most = self.money.hold(self.request, slot) if self.money.is_limited else None
            found = await self._ask(slot, started, most)
            if isinstance(found, Completion):
                reported = True
                breaker.succeeded(probe=probe)
            else:
                self.money.release()
        except Refused as refused:
            self._note(slot, "budget", started, detail=str(refused))
            self.client_notes.append(f"{slot.id}: {refused}")
            return refused
        except NetError as error:
            # A refusal that the request itself may have provoked says nothing about the provider's health.
            reported = not isinstance(error, ProviderRefused) or error.counts
            if reported:
                breaker.failed(probe=probe)
            worked = error.was_answered or (error.was_sent and time.monotonic() - started >= WORKED_S)
            self.money.release(self.money.unseen_usd() if worked else 0.0)
            if not isinstance(error, ProviderRefused) or not error.status:
                ended = {TimedOut: "timeout", Unreachable: "unreachable"}.get(type(error), "broken")
                self._note(slot, ended, started, detail=str(error))
            self.client_notes.append(conceal(slot, public_message(slot.id, error)))
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
        # Without streaming, the first byte comes when the whole answer is written.
        wait_s = slot.first_token_s if request.stream else total_s
        upstream = await self._open(slot, added, wait_s)
        kind, answered = upstream.headers.get("content-type", ""), False
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
            answered = isinstance(found, Completion)
        except NetError as error:
            error.was_sent = not isinstance(error, ProviderRefused)
            raise
        finally:
            if not answered:
                upstream.close()
        self._note(slot, "answered" if answered else "status", started, status=upstream.status)
        return found

    async def _open(self, slot: Slot, added: Mapping[str, object], wait_s: float) -> Response:
        """Send the request to a slot's provider; the response, once its headers have arrived."""
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
            # The status counts even if the message breaks off. A failing server may never finish it.
            with suppress(NetError):
                raw = await upstream.read(Deadline.after(deadline.within(ERROR_S)))
        refusal = read_refusal(status, raw[:ERROR_BYTES])
        rule = self._rule_for(slot, refusal)
        if rule.ends == "here":
            return _concealed(refusal, slot)
        wait = read_retry_after(upstream.headers.get("retry-after", ""))
        if wait is not None:
            self.retry_after_s = wait if self.retry_after_s is None else min(wait, self.retry_after_s)
        detail = f"{slot.id} answered {status}" + (f" ({refusal.code})" if refusal.code is not None else "")
        self._note(slot, "status", started, status=status, detail=detail)
        raise ProviderRefused(detail, rule.counts, status, wait)

    def _rule_for(self, slot: Slot, refusal: Refusal) -> StatusRule:
        rule = rule_for(refusal, slot.model)
        if rule.ends == "next" and refusal.is_told and rule_for(refusal, slot.model, names=True).ends == "here":
            return rule_for(refusal, slot.model, names=names_something(self.request.fields))
        return rule

    def _error_inside(self, slot: Slot, raw: bytes, detail: str) -> Refusal:
        """An error inside an answer of status 200: a Refusal if the request caused it, else raised."""
        refusal = read_refusal(200, raw[:ERROR_BYTES])
        rule = self._rule_for(slot, refusal)
        if rule.ends == "here":
            return _concealed(refusal, slot)
        raise ProviderRefused(detail, rule.counts)

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
        # One deadline for all waits: a provider that keeps sending comments cannot prolong it.
        first = Deadline(min(until, completion.deadline.at))
        state: State = "prelude"
        while state == "prelude":
            try:
                chunk = await completion.upstream.next(slot.idle_s, first)
            except TimedOut:
                if first.left:
                    raise  # it was silent for longer than `idle_s`
                raise TimedOut(f"{slot.id}: no first token within {slot.first_token_s:g} s") from None
            if not chunk:
                raise NoAnswer(f"{slot.id}: the stream ended before it said anything")
            piece, state = completion.take(chunk)
            held += piece
            if state == "half":
                raise NoAnswer(f"{slot.id}: an event of the stream is not JSON")
            if state == "error":
                # Also after a delta in the same chunk, which has not been passed on.
                return self._error_inside(slot, completion.error, f"{slot.id}: the stream began with an error")
            if state == "prelude" and len(held) > HELD_BYTES:
                raise NoAnswer(f"{slot.id}: {HELD_BYTES:,} bytes and no first token")
        completion.first = bytes(held)
        return completion

    async def stream(self, completion: Completion, decision: str) -> AsyncGenerator[bytes, None]:
        """The events of a stream that has begun. `ended` is set before the last of them is yielded: a client that
        leaves then has had its answer."""
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
    """The body for another model, otherwise unchanged but for members added under a budget (`spend.additions`)."""
    return json.encode({**request.fields, **added, "model": model})


class ProviderRefused(NoAnswer):
    """A refusal that the next candidate may not share. One with a status is in `attempts` already."""

    def __init__(self, message: str, counts: bool = True, status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.counts = counts
        self.status = status
        self.retry_after_s = retry_after_s


def _retry_after(error: NetError) -> float | None:
    """How long to wait before trying the same provider once more; None: do not.

    A provider that was not reached is tried after a random moment, so that not all requests return at once; a busy one
    after its `retry-after`.
    """
    if isinstance(error, ProviderRefused):
        soon = error.status in (429, 503) and error.retry_after_s is not None and error.retry_after_s <= SOON_S
        return error.retry_after_s if soon else None
    return random.uniform(*BACKOFF_S) if isinstance(error, Unreachable) else None  # noqa: S311 - no secret


def _concealed(refusal: Refusal, slot: Slot) -> Refusal:
    """A refusal as its client may see it."""

    def named(name: str | None) -> str | None:
        return None if name is None else conceal(slot, name)

    code = named(refusal.code) if isinstance(refusal.code, str) else refusal.code
    message, kind, param = conceal(slot, refusal.message), named(refusal.kind), named(refusal.param)
    return replace(refusal, message=message, kind=kind, code=code, param=param)


def conceal(slot: Slot, text: str) -> str:
    """A provider's text as a client may see it: without the key and without the provider's address."""
    if text in HARMLESS_VALUES:
        return text
    if slot.key is not None:
        text = slot.key.hide(text)
    if slot.origin is None or slot.origin.host not in text.casefold():
        return text
    host = re.escape(slot.origin.host)
    # A host of one label may be an ordinary word: it is replaced only in a URL or before a port.
    plain = "." in slot.origin.host or ":" in slot.origin.host
    place = rf"(?:https?://)?\[?{host}\]?(?::\d+)?" if plain else rf"https?://{host}(?::\d+)?|{host}:\d+"
    return re.sub(rf"(?<![\w.-])(?:{place})(?![\w-])", "the provider", text, flags=re.IGNORECASE)
