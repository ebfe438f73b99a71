"""The models that fill slots, and how one of our own questions is put to one: a classifier call.

One attempt, one deadline, one breaker for each endpoint. The user's text is data: it stands in the user turn, fenced,
and never in the system role. What comes back is text; whether it is an answer is for the layer that asked to say.
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
from .refusal import NoAnswer, told
from .slot import Endpoint, Slot, Slots
from .wire import FORMATS
from .wire.format import UNREADABLE, Format, read_members
from .wire.value import Message, MessagePart, ModelRequest

# An answer to a classification is a few dozen tokens; anything near this is not one.
REPLY_BYTES = 256 * 1024


class Models:
    """Asks the models of some slots. Satisfies `core.model.Asks`."""

    def __init__(self, slots: Slots, client: Client) -> None:
        self.slots = slots
        self.client = client
        self.breakers: defaultdict[Endpoint, Breaker] = defaultdict(Breaker)
        self.retries = RetryBudget()
        self.live: set[Response] = set()
        """Streams that are being relayed."""

    def filled_with(self, slots: Slots) -> Models:
        """Other models in the slots; what is known of each model's health is kept."""
        other = copy(self)
        other.slots = slots
        return other

    def cut(self) -> None:
        """End every stream now; each tells its client that it is incomplete."""
        for response in list(self.live):
            response.close()

    def has(self, slot: str) -> bool:
        found = self._find(slot)
        return found is not None and found.usable and found.provider != "demo"

    def _find(self, name: str) -> Slot | None:
        return self.slots.find(name) or self.slots.by_id(name)

    def is_open(self, slot: str) -> bool:
        """Whether the slot's breaker lets nothing through just now. Asking takes the probe of a half-open one."""
        found = self._find(slot)
        return found is not None and not self.breaker(found).allows()

    def breaker(self, slot: Slot) -> Breaker:
        return self.breakers[slot.endpoint]

    async def ask(self, name: str, prompt: Prompt) -> Reply:
        """Put a question to the slot; raises NetError, which names no place: it becomes part of a decision. Its cause
        does."""
        slot = self._find(name)
        if slot is None or slot.origin is None:
            raise Broken(f"no model fills the slot {name!r}")
        wire: Wire = "anthropic-messages" if slot.wires[0] == "anthropic-messages" else "openai-chat"
        said = (("system", prompt.system), ("user", prompt.user))
        messages = tuple(Message(role, (MessagePart(text=text),)) for role, text in said)
        schema = prompt.schema if slot.structured else None
        fields = read_members(json.encode(FORMATS[wire].write_request(messages, prompt.max_tokens, schema)))
        request = ModelRequest(wire, slot.model, fields, messages)
        generation = Generation(self, request, total_s=prompt.deadline_ms / 1000, limit=REPLY_BYTES)
        breaker = self.breaker(slot)
        found = await generation.attempt(slot, breaker, probe=breaker.state != "closed")
        if isinstance(found, Completion):
            return _reply(FORMATS[wire], slot, found.first)
        if not isinstance(found, NetError):  # there is no budget that could refuse
            found = NoAnswer(f"{slot.id} answered {found.status}")
        cause = type(found)(slot.hide(str(found)))
        raise type(found)(told(slot.id, cause)) from cause


class TokenCounts(Struct):
    """A usage whose counts are numbers: a price is calculated from them."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None


_counts = json.Decoder(TokenCounts)


def _reply(form: Format, slot: Slot, raw: bytes) -> Reply:
    """The text of an answer; of one that had to keep to a schema, the object."""
    try:
        response = form.read_response(raw)
        parts, _ = form.read_parts(response)
        # Who does not say how many tokens it took has not said that it took none.
        cost = None
        if response.usage is not None:
            _counts.decode(response.fields["usage"])
            cost = cost_usd(slot, response.usage)
    except (*UNREADABLE, LookupError, TypeError, AttributeError) as error:
        raise Broken(f"{slot.id} answered something that is not its own format ({type(error).__name__})") from None
    call = next((part.text for part in parts if part.kind == "call"), None)
    text = "".join(part.text for part in parts if part.kind == "text") if call is None else call
    return Reply(slot.hide(text), slot.id, cost)
