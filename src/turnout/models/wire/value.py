"""What a request to a model says, and what comes back, whichever format it is written in.

Every format is read into these values and written from them. What is passed on is not written anew: a request keeps its
members as the bytes they were.
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
"""What an event of a stream is: before the first delta, a delta, the news of a failure, the last one, or in between."""

StopReason = Literal["stop", "length", "tools", "filter", "other"]
"""Why an answer ended: the model was done, reached its limit, calls tools, was stopped by moderation; or unknown."""


class MessagePart(Struct, frozen=True, gc=False):
    """A part of a message."""

    kind: PartKind = "text"
    text: str = ""
    """Its words; of a call, the arguments as JSON."""
    id: str = ""
    """Of a call, and of the result that answers it."""
    name: str = ""
    """Of the tool that is called. Of sound and of other parts, what their format calls them."""
    images: tuple[Raw | str, ...] = ()
    """As they stand in the body, empty where they are only named: one of an image, any number of a result."""
    is_bound: bool = False
    """Only the provider that made it can read it: a signed thought, a call."""
    is_unsized: bool = False
    """Its bytes do not tell how long it is: it names what its provider keeps or fetches, or is a document."""
    is_cached: bool = False
    """It asks to be cached."""


class Message(Struct, frozen=True, gc=False):
    role: str
    """`developer` is read as `system`. Empty for what no role has: a tool's call or result in OpenAI's responses."""
    parts: tuple[MessagePart, ...]

    @property
    def text(self) -> str:
        """Its words, parts joined with a space."""
        if len(self.parts) == 1 and self.parts[0].kind == "text":
            return self.parts[0].text
        return " ".join(part.text for part in self.parts if part.kind == "text" and part.text)


class Tool(Struct, frozen=True):
    """A tool a model may call: one the client declares, or one its provider has, which has a type of its own."""

    type: str | None = None
    name: Any = None
    tools: Any = None
    environment: Any = None
    cache_control: Any = None

    def types(self) -> list[Any]:
        """Its type, or those of the tools in it: a namespace is a group and runs nowhere itself."""
        if isinstance(self.environment, dict) and self.environment.get("type") != "local":
            return [f"hosted {self.type}"]
        if self.type != "namespace" or not isinstance(self.tools, list):
            return [self.type]
        return [str(tool.get("type", "")) if isinstance(tool, dict) else self.type for tool in self.tools]


class ToolOffer(Struct, frozen=True):
    """A tool that a request of our own offers."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """Of its arguments, as JSON schema."""


class ModelRequest(Struct, frozen=True):
    """A request to a model."""

    wire: Wire
    model: str
    fields: Mapping[str, Raw]
    """The body's members, each as its bytes."""
    messages: tuple[Message, ...]
    turns: tuple[Turn, ...] = ()
    """The messages' words, for deciding."""
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    fresh: bool = True
    """It ends with words of the user's; otherwise it only carries a tool's results."""
    bound: bool = False
    """It carries what only the provider that made it can read."""
    conversation: str = ""
    """The same for every turn of a conversation."""
    tokens: int = 0
    """Of the input, about."""
    input: tuple[Raw, ...] = ()
    """What of it a model reads."""
    images: tuple[Raw | str, ...] = ()
    """As they stand in the body."""
    max_tokens: int | None = None
    has_limit: bool = False
    """It states a limit, whether or not that limits anything."""
    choices: int = 1
    """How many answers it asks for."""
    follows: bool = False
    """It names an earlier answer instead of repeating what came before."""
    is_unsized: bool = False
    """It has other input whose length its bytes do not tell."""
    long_window: bool = False
    """It asks for a window beyond the model's usual one."""
    caches: bool = False
    """It asks for its input to be cached, which costs more than reading it."""
    thinks: bool = False
    """It asks for thoughts, which are billed as output whether or not they are shown."""
    wants_usage: bool = False
    """It asks for a stream's usage."""
    hosted: str = ""
    """A tool its provider runs, and charges for."""
    unpriced: str = ""
    """Something that is billed otherwise than by the tokens of the price list."""

    @property
    def last_words(self) -> str:
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")


class ModelResponse(Struct, frozen=True):
    """An answer in one piece."""

    fields: Mapping[str, Raw]
    """The body's members, each as its bytes."""
    usage: Usage | None
    """None: it does not say."""
    id: str = ""
    """By which a later request may refer to this answer instead of repeating it; empty if none may."""


class Delta(Struct, frozen=True, gc=False):
    """What one event of a stream says."""

    sign: Sign
    usage: Usage
    """As far as it is known after this event."""
    text: str = ""
    """More words of the answer."""
    tokens: int = 0
    """Of the model's own words, counted and rounded up: text, thoughts, a tool's arguments."""
    stop: StopReason | None = None
    id: str = ""
    """As of a whole response."""
    is_usage: bool = False
    """It is there only to tell the usage."""
