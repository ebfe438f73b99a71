"""How an application asks a model: for a whole reply, with tools or a schema, or for a stream of its text.

Every call goes through `generate` and is paid for by an account of the ledger. An account may pay for several calls,
one after the other; its row in the log has what they cost together.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from turnout.core.errors import Refused
from turnout.models.ask import Models
from turnout.models.generate import Completion, Generation
from turnout.models.output import thinks_silently
from turnout.models.provider import Wire, limit_field
from turnout.models.refusal import NoAnswer, Refusal
from turnout.models.slot import Slot
from turnout.models.spend import unbounded
from turnout.models.wire import FORMATS
from turnout.models.wire.format import UNREADABLE
from turnout.models.wire.sse import Events
from turnout.models.wire.value import Message, MessagePart, ModelRequest, StopReason, ToolOffer

from .ledger import Account

AS_JSON = "Answer with one JSON object and nothing else. It has this JSON schema: "


class ModelReply(Struct, frozen=True):
    text: str
    """With a schema, the object as JSON."""
    model: str
    """As `provider/model`."""
    calls: tuple[MessagePart, ...] = ()
    """The tool calls: the name, the arguments as JSON in `text`, and the id that a result names."""
    stop: StopReason = "stop"


def says(role: str, text: str) -> Message:
    """A message of text only."""
    return Message(role, (MessagePart(text=text),))


async def complete(
    models: Models,
    slot: Slot,
    messages: Sequence[Message],
    account: Account,
    *,
    max_tokens: int,
    temperature: float = 0.0,
    tools: Sequence[ToolOffer] = (),
    schema: Mapping[str, Any] | None = None,
    total_s: float | None = None,
) -> ModelReply:
    """The reply to messages. Raises NoAnswer if none can be read, Refused if the caller's budget does not cover it."""
    fields = _write(slot, messages, max_tokens, temperature, tools, schema)
    generation, completion = await _start(models, slot, fields, account, total_s)
    form = generation.form
    try:
        parts, stop = form.read_parts(form.read_response(completion.first))
    except (*UNREADABLE, LookupError, TypeError, AttributeError):
        raise NoAnswer(f"{slot.id} answered something that is not its own format") from None
    text = "".join(part.text for part in parts if part.kind == "text")
    calls = tuple(part for part in parts if part.kind == "call")
    if schema is not None and calls:
        text, calls = calls[0].text, ()
    return ModelReply(slot.hide(text), slot.id, calls, stop)


def json_object(text: str) -> str:
    """The JSON object in a reply: some models put it into a code block, or write something before it."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


class TextStream:
    """The text of a reply as it arrives. However it ends, it must be closed: that ends the call."""

    def __init__(self, models: Models, slot: Slot, fields: dict[str, Any], account: Account) -> None:
        self._models = models
        self._slot = slot
        self._fields = fields
        self._account = account
        self._generation: Generation | None = None
        self._completion: Completion | None = None

    @property
    def ended(self) -> str:
        """`answered`, `failed` if it broke off, `cancelled` if it was closed early or has not ended yet."""
        return self._generation.ended if self._generation is not None else "cancelled"

    async def __aiter__(self) -> AsyncIterator[str]:
        """Raises NoAnswer if the model does not answer, Refused if the budget does not cover it."""
        self._generation, self._completion = await _start(self._models, self._slot, self._fields, self._account)
        form, completion, events = self._generation.form, self._completion, Events()
        self._models.live.add(completion.upstream)
        try:
            async for piece in self._generation.stream(completion, self._account.decision.id):
                for event in events.feed(piece):
                    try:
                        text = form.read_event(event, completion.usage).text
                    except UNREADABLE:
                        continue
                    if text:
                        yield self._slot.hide(text)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End the call."""
        if self._completion is not None:
            self._models.live.discard(self._completion.upstream)
            self._completion.upstream.close()


def stream_text(
    models: Models, slot: Slot, messages: Sequence[Message], account: Account, *, max_tokens: int
) -> TextStream:
    return TextStream(models, slot, _write(slot, messages, max_tokens) | {"stream": True}, account)


def _wire(slot: Slot) -> Wire:
    return "anthropic-messages" if slot.wires[0] == "anthropic-messages" else "openai-chat"


def _write(
    slot: Slot,
    messages: Sequence[Message],
    max_tokens: int,
    temperature: float = 0.0,
    tools: Sequence[ToolOffer] = (),
    schema: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The members of a request in the format of the slot's model."""
    wire = _wire(slot)
    if schema is not None and not slot.structured:
        instruction = AS_JSON + msgspec.json.encode(schema).decode()
        messages, schema = [*messages, says("system", instruction)], None
    fields = FORMATS[wire].write_request(messages, max_tokens, schema, tools, temperature)
    fields[limit_field(wire, slot.provider)] = fields.pop("max_tokens")
    if thinks_silently(slot):
        del fields["temperature"]  # such a model takes none
    return fields


async def _start(
    models: Models, slot: Slot, fields: Mapping[str, Any], account: Account, total_s: float | None = None
) -> tuple[Generation, Completion]:
    """Make the call; returns when the reply is here or, for a stream, has begun."""
    request: ModelRequest = FORMATS[_wire(slot)].read(msgspec.json.encode({**fields, "model": slot.model}))
    if slot.needs_key:
        raise NoAnswer(f"{slot.name} ({slot.id}): its key is missing, {slot.needs_key} is empty")
    if request.images and not slot.images:
        raise NoAnswer(f"{slot.name} ({slot.id}) takes no images")
    if account.caller.budget.is_limited and (why := unbounded(request, slot)) is not None:
        raise Refused(402, "insufficient_quota", why.text)
    generation = account.generate(models, request, {}, total_s)
    found = await generation.start([slot])
    if isinstance(found, Refusal):
        raise NoAnswer(f"{slot.id} refused: {found.message}")
    if found is None:
        raise NoAnswer("; ".join(generation.client_notes) or f"{slot.id} did not answer")
    return generation, found
