"""The models that fill slots, and the classifier call that asks one of them a question of our own.

One attempt, one deadline, one breaker for each endpoint. The user's text is data: it is fenced in the user turn and
never in the system role. The reply is text; the layer that asked decides whether it is an answer.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy

from msgspec import Struct, json

from turnout.core.errors import Broken, NetError
from turnout.core.model import Prompt, Reply
from turnout.net.circuit import Breaker, RetryBudget
from turnout.net.client import Client, Response

from .generate import Completion, Generation
from .price import cost_usd
from .provider import Wire
from .refusal import NoAnswer, public_message
from .slot import Endpoint, Slot, Slots
from .wire import FORMATS
from .wire.format import UNREADABLE, Format, read_members
from .wire.value import Message, MessagePart, ModelRequest

# An answer to a classification has a few dozen tokens; anything near this size is not one.
REPLY_BYTES = 256 * 1024


class Models:
    """Asks the models of some slots. Satisfies `core.model.Asks`."""

    def __init__(self, slots: Slots, client: Client) -> None:
        self.slots = slots
        self.client = client
        self.breakers: defaultdict[Endpoint, Breaker] = defaultdict(Breaker)
        self.retries = RetryBudget()
        self.live: set[Response] = set()
        """Responses whose streams are being relayed to clients."""

    def filled_with(self, slots: Slots) -> Models:
        """The same with other slots; breakers and retries are shared, so each model's health stays known."""
        other = copy(self)
        other.slots = slots
        return other

    def cut(self) -> None:
        """End every stream now; each client is told that its answer is incomplete."""
        for response in list(self.live):
            response.close()

    def has(self, slot: str) -> bool:
        found = self._find(slot)
        return found is not None and found.usable and found.provider != "demo"

    def _find(self, name: str) -> Slot | None:
        return self.slots.find(name) or self.slots.by_id(name)

    def is_open(self, slot: str) -> bool:
        """Whether the slot's breaker blocks calls now. On a half-open breaker this call takes the probe."""
        found = self._find(slot)
        return found is not None and not self.breaker(found).allows()

    def breaker(self, slot: Slot) -> Breaker:
        return self.breakers[slot.endpoint]

    async def ask(self, name: str, prompt: Prompt) -> Reply:
        """Ask the slot's model. Raises NetError without the provider's address, because it becomes part of a decision;
        the error's cause has the address."""
        slot = self._find(name)
        if slot is None or slot.origin is None:
            raise Broken(f"no model fills the slot {name!r}")
        wire: Wire = "anthropic-messages" if slot.wires[0] == "anthropic-messages" else "openai-chat"
        turns = (("system", prompt.system), ("user", prompt.user))
        messages = tuple(Message(role, (MessagePart(text=text),)) for role, text in turns)
        schema = prompt.schema if slot.structured else None
        fields = read_members(json.encode(FORMATS[wire].write_request(messages, prompt.max_tokens, schema)))
        request = ModelRequest(wire, slot.model, fields, messages)
        generation = Generation(self, request, total_s=prompt.deadline_ms / 1000, limit=REPLY_BYTES)
        breaker = self.breaker(slot)
        found = await generation.attempt(slot, breaker, probe=breaker.state != "closed")
        if isinstance(found, Completion):
            return _reply(FORMATS[wire], slot, found.first)
        if not isinstance(found, NetError):  # a provider's refusal; without a budget nothing else is returned
            found = NoAnswer(f"{slot.id} answered {found.status}")
        cause = type(found)(slot.hide(str(found)))
        raise type(found)(public_message(slot.id, cause)) from cause


class TokenCounts(Struct):
    """A usage whose counts must be numbers, because a price is calculated from them."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None


_counts = json.Decoder(TokenCounts)


def _reply(form: Format, slot: Slot, raw: bytes) -> Reply:
    """The text of an answer, or the object where a schema was given."""
    try:
        response = form.read_response(raw)
        parts, _ = form.read_parts(response)
        # A response without a usage has an unknown cost, not a cost of zero.
        cost = None
        if response.usage is not None:
            _counts.decode(response.fields["usage"])
            cost = cost_usd(slot, response.usage)
    except (*UNREADABLE, LookupError, TypeError, AttributeError) as error:
        raise Broken(f"{slot.id} answered something that is not its own format ({type(error).__name__})") from None
    call = next((part.text for part in parts if part.kind == "call"), None)
    text = "".join(part.text for part in parts if part.kind == "text") if call is None else call
    return Reply(slot.hide(text), slot.id, cost)
