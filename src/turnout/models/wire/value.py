"""Requests to a model and their answers, independent of the wire format.

Every format is read into these values and written from them. A request that is passed on keeps its members as their
original bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Raw, Struct

from turnout.core.query import Turn
from turnout.models.price import Usage
from turnout.models.provider import Wire

PartKind = Literal["text", "image", "audio", "thought", "call", "result", "other"]

Sign = Literal["prelude", "delta", "error", "end", "other"]
"""The kind of an event: before the first delta, a delta, an error, the last one, or another."""

StopReason = Literal["stop", "length", "tools", "filter", "other"]
"""Why an answer ended: finished, limit reached, tool calls, moderation, or unknown."""


class MessagePart(Struct, frozen=True, gc=False):
    """A part of a message."""

    kind: PartKind = "text"
    text: str = ""
    """Its words; for a call, the arguments as JSON."""
    id: str = ""
    """The id of a call, also in the result that answers it."""
    name: str = ""
    """The tool of a call; the format's type of sound and other parts."""
    images: tuple[Raw | str, ...] = ()
    """Their bytes in the body, empty if they are only referred to: one in an image, any number in a result."""
    is_bound: bool = False
    """Only the provider that made it can read it: a signed thought, a call."""
    is_unsized: bool = False
    """Its bytes do not show its length: it refers to something its provider keeps or fetches, or is a document."""
    is_cached: bool = False
    """It asks to be cached."""


class Message(Struct, frozen=True, gc=False):
    role: str
    """`developer` is read as `system`. Empty for items without a role: tool calls and results in OpenAI's responses."""
    parts: tuple[MessagePart, ...]

    @property
    def text(self) -> str:
        """Its words, parts joined with a space."""
        if len(self.parts) == 1 and self.parts[0].kind == "text":
            return self.parts[0].text
        return " ".join(part.text for part in self.parts if part.kind == "text" and part.text)


class Tool(Struct, frozen=True):
    """A tool a model may call: declared by the client, or the provider's own, with a type of its own."""

    type: str | None = None
    name: Any = None
    tools: Any = None
    environment: Any = None
    cache_control: Any = None

    def types(self) -> list[Any]:
        """Its type, or the types of the tools in it if it is a namespace, which is only a group."""
        if isinstance(self.environment, dict) and self.environment.get("type") != "local":
            return [f"hosted {self.type}"]
        if self.type != "namespace" or not isinstance(self.tools, list):
            return [self.type]
        return [str(tool.get("type", "")) if isinstance(tool, dict) else self.type for tool in self.tools]


class ToolOffer(Struct, frozen=True):
    """A tool offered in a request of our own."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """The JSON schema of its arguments."""


class ModelRequest(Struct, frozen=True):
    """A request to a model."""

    wire: Wire
    model: str
    fields: Mapping[str, Raw]
    """The body's members, each as its bytes."""
    messages: tuple[Message, ...]
    turns: tuple[Turn, ...] = ()
    """The words of the messages, for routing."""
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    fresh: bool = True
    """It ends with the user's words; otherwise only with a tool's results."""
    bound: bool = False
    """It has parts that only the provider that made them can read."""
    conversation: str = ""
    """An id that is the same for every turn of a conversation."""
    tokens: int = 0
    """An estimate of the input's tokens."""
    input: tuple[Raw, ...] = ()
    """The members a model reads."""
    images: tuple[Raw | str, ...] = ()
    """Their bytes in the body."""
    max_tokens: int | None = None
    has_limit: bool = False
    """It states a limit, valid or not."""
    choices: int = 1
    """How many answers it asks for."""
    follows: bool = False
    """It refers to an earlier answer instead of repeating the conversation."""
    is_unsized: bool = False
    """It has other input whose length its bytes do not show."""
    long_window: bool = False
    """It asks for a window beyond the model's usual one."""
    caches: bool = False
    """It asks for its input to be cached, which costs more than reading it."""
    thinks: bool = False
    """It asks for reasoning, which is billed as output whether or not it is shown."""
    wants_usage: bool = False
    """It asks for a stream's usage."""
    hosted: str = ""
    """A tool its provider runs, and charges for."""
    unpriced: str = ""
    """Something that is not billed by the tokens of the price list."""

    @property
    def last_words(self) -> str:
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")


class ModelResponse(Struct, frozen=True):
    """An answer in one piece."""

    fields: Mapping[str, Raw]
    """The body's members, each as its bytes."""
    usage: Usage | None
    """None: it has none."""
    id: str = ""
    """The id by which a later request may refer to this answer; empty if it cannot."""


class Delta(Struct, frozen=True, gc=False):
    """The content of one event of a stream."""

    sign: Sign
    usage: Usage
    """The usage known after this event."""
    text: str = ""
    """More words of the answer."""
    tokens: int = 0
    """Our count of its tokens, rounded up: text, reasoning, a tool's arguments."""
    stop: StopReason | None = None
    id: str = ""
    """As `ModelResponse.id`."""
    is_usage: bool = False
    """It has nothing but the usage."""
