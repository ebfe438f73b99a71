"""How one of our own questions is put to a model: a classifier call, in the OpenAI or Anthropic wire format.

One attempt, one deadline, one breaker per endpoint. The user's text is data: it stands in the user turn, fenced, and
never in the system role. What comes back is text; whether it is an answer is for the layer that asked to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from turnout.core.errors import Broken, NetError
from turnout.core.model import Prompt, Reply
from turnout.net.breaker import Breaker
from turnout.net.client import Client, Request
from turnout.net.deadline import Deadline

from .price import Usage, cost_usd
from .provider import ANTHROPIC_VERSION, PATHS, Wire, credential
from .refusal import NoAnswer, judge, read_refusal, told
from .slot import Endpoint, Slot, Slots

# An answer to a classification is a few dozen tokens; anything near this is not one.
REPLY_BYTES = 256 * 1024


class Models:
    """Asks the models of some slots. Satisfies `core.model.Asks`."""

    def __init__(self, slots: Slots, client: Client) -> None:
        self.slots = slots
        self.client = client
        self.breakers: dict[Endpoint, Breaker] = {}

    def filled_with(self, slots: Slots) -> Models:
        """Other models in the slots; what is known of each model's health is kept."""
        other = Models(slots, self.client)
        other.breakers = self.breakers
        return other

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
        found = self.breakers.get(slot.endpoint)
        if found is None:
            found = self.breakers[slot.endpoint] = Breaker()
        return found

    async def ask(self, name: str, prompt: Prompt) -> Reply:
        """Put a question to the slot; raises NetError, which names no place: it becomes part of a decision. Its cause
        does."""
        slot = self._find(name)
        if slot is None or slot.origin is None:
            raise Broken(f"no model fills the slot {name!r}")
        wire: Wire = "anthropic-messages" if slot.wires[0] == "anthropic-messages" else "openai-chat"
        body = _anthropic(slot, prompt) if wire == "anthropic-messages" else _openai(slot, prompt)
        headers = {"content-type": "application/json", "accept": "application/json"}
        if wire == "anthropic-messages":
            headers["anthropic-version"] = ANTHROPIC_VERSION
        key = credential(wire, slot.provider, slot.key.reveal()) if slot.key is not None else None
        request = Request(
            slot.origin,
            slot.path + PATHS[wire],
            msgspec.json.encode(body),
            headers=headers,
            credential=key,
            plain_http=slot.plain_http,
        )
        deadline = Deadline.after(prompt.deadline_ms / 1000)
        try:
            raw = await exchange(self.client, slot, self.breaker(slot), request, deadline, REPLY_BYTES)
        except NetError as error:
            raise type(error)(told(slot.id, error)) from error
        return _reply(slot, wire, raw)


async def exchange(
    client: Client, slot: Slot, breaker: Breaker, request: Request, deadline: Deadline, limit: int
) -> bytes:
    """One attempt at a slot's server, of which its breaker hears; the whole answer. No error it raises has the key."""
    answered = False
    counts = True
    try:
        async with await client.open(request, deadline.left) as response:
            raw = await response.read(deadline, deadline.left or 0.001, limit)
            if response.status != 200:
                counts = judge(read_refusal(response.status, raw), slot.model).counts
                raise NoAnswer(f"{slot.id} answered {response.status}")
        answered = True
    except NetError as error:
        if counts:
            breaker.failed()
        raise type(error)(slot.hide(str(error))) from None
    finally:
        if answered:
            breaker.succeeded()
        else:
            breaker.forgive()
    return raw


def _openai(slot: Slot, prompt: Prompt) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": slot.model,
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
        "stream": False,
    }
    if slot.structured and prompt.schema is not None:
        form = {"name": "verdict", "schema": prompt.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def _anthropic(slot: Slot, prompt: Prompt) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": slot.model,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
    }
    if slot.structured and prompt.schema is not None:
        body["tools"] = [{"name": "verdict", "description": "State the verdict.", "input_schema": prompt.schema}]
        body["tool_choice"] = {"type": "tool", "name": "verdict"}
    return body


def _reply(slot: Slot, wire: Wire, raw: bytes) -> Reply:
    try:
        body = msgspec.json.decode(raw)
        text = _anthropic_text(body) if wire == "anthropic-messages" else _openai_text(body)
        # Who does not say how many tokens it took has not said that it took none.
        cost = cost_usd(slot, _usage(body["usage"])) if body.get("usage") else None
    except (msgspec.DecodeError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Broken(f"{slot.id} answered something that is not its own format ({type(error).__name__})") from None
    return Reply(slot.hide(text), slot.id, cost)


def _openai_text(body: Mapping[str, Any]) -> str:
    return str(body["choices"][0]["message"].get("content") or "")


def _anthropic_text(body: Mapping[str, Any]) -> str:
    blocks = body["content"]
    for block in blocks:
        if block.get("type") == "tool_use":
            return msgspec.json.encode(block["input"]).decode()
    return "".join(block["text"] for block in blocks if block.get("type") == "text")


def _usage(usage: Mapping[str, Any]) -> Usage:
    read = usage.get("prompt_tokens", usage.get("input_tokens", 0)) or 0
    written = usage.get("completion_tokens", usage.get("output_tokens", 0)) or 0
    return Usage(int(read), int(written))
