"""What the gateway needs to know of a wire format, and what every format's request becomes.

A body passes through untouched but for its `model`: it is taken apart only one level deep, and everything that is not
looked at stays the bytes it was. Under a budget two members may be added, a limit and a stream's usage (`spend`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta, Raw, Struct

from turnout.apps.caller import Refused
from turnout.core.aside import INLINE
from turnout.core.query import MAX_CHARACTERS, Query, Turn
from turnout.models.price import Usage, token_count
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal

MESSAGES = 5000
TOOLS = 512
# Of all messages together, in UTF-8.
TEXT_BYTES = MAX_CHARACTERS
# Of a name: a model's, a conversation's. The longest that providers give are some hundred characters.
NAME_CHARACTERS = 512
# Of what a decoder says is wrong: it repeats what it found, however long that is.
SAID_CHARACTERS = 300
Name = Annotated[str, Meta(max_length=NAME_CHARACTERS)]
# A number of tokens or answers beyond this is a mistake; below, what is too many is the provider's to say.
Count = Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)]
# Characters of English per token, about: for checks before a provider has counted.
TOKEN_CHARACTERS = 4
_LETTERS = bytes(range(ord("a"), ord("z") + 1))
# What an image costs a model to look at, about (a 1092 x 1092 picture with Anthropic).
IMAGE_TOKENS = 1600

# The members of a request that a model reads.
INPUT: Mapping[Wire, tuple[str, ...]] = {
    "openai-chat": ("messages", "tools", "functions", "response_format", "tool_choice"),
    "anthropic-messages": ("messages", "system", "tools", "output_format", "output_config"),
    "openai-responses": ("input", "instructions", "tools", "text", "prompt"),
}

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading JSON raises: not JSON or not of the type it must have, not UTF-8, nested without end."""

Sign = Literal["prelude", "delta", "error", "end", "other"]
"""What an event of a stream is: before the first delta, a delta, the news of a failure, the last one, or in between."""


# Strings of an event that no model wrote.
WORDLESS = frozenset(("id", "type", "index", "signature"))


class Extras(Struct, frozen=True):
    """What of a request changes its price."""

    choices: int = 1
    """How many answers it asks for."""
    limits: bool = False
    """It has a limit of its own, whether or not that limits anything."""
    follows: bool = False
    """It names an earlier answer instead of repeating what came before."""
    unseen: bool = False
    """It has other input whose length its bytes do not tell: what its provider keeps or fetches, a document."""
    long_window: bool = False
    """It asks for a window beyond the model's usual one."""
    caches: bool = False
    """It asks for its input to be cached, which costs more than reading it."""
    thinks: bool = False
    """It asks for thoughts, which are billed as output whether or not they are shown."""
    usage: bool = False
    """It asks for a stream's usage."""
    hosted: str = ""
    """A tool its provider runs, and charges for."""
    unpriced: str = ""
    """Something that is billed otherwise than by the tokens of the price list."""


class Asked(Struct, frozen=True):
    """A request, read as far as the gateway must."""

    wire: Wire
    model: str
    stream: bool
    fields: dict[str, Raw]
    """The body's members, untouched."""
    query: Query
    fresh: bool
    """It ends with words of the user's; otherwise it only carries a tool's results."""
    images: int
    tools: bool
    bound: bool
    """It carries what only the provider that made it can read: signed thoughts, tool calls, a stored response."""
    tokens: int
    """Of the input, about."""
    pictures: tuple[Raw | str, ...]
    """Its images, as they stand in the body."""
    max_tokens: int | None
    conversation: str
    """The same for every turn of a conversation."""
    extras: Extras

    @property
    def is_long(self) -> bool:
        """Whether writing down what it says takes so long that others would wait for it."""
        return sum(len(turn.text) for turn in self.query.turns) > INLINE

    def body(self, model: str, added: Mapping[str, object] = MappingProxyType({})) -> bytes:
        """The request for another model."""
        return msgspec.json.encode({**self.fields, **added, "model": model})


class Format(Protocol):
    """One wire format. All methods are pure."""

    wire: Wire

    def read(self, body: bytes) -> Asked:
        """The request; raises Refused for what no provider would take."""
        ...

    def error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        """An error as a client of this format expects it; a provider's with the names the provider gave it."""
        ...

    def error_event(self, kind: str, message: str, decision: str) -> bytes:
        """The end of a stream that was cut."""
        ...

    def sign(self, name: bytes, data: bytes) -> Sign:
        """What an event of a stream is."""
        ...

    def stored_as(self, first: bytes) -> str:
        """The name by which a later request may refer to this answer instead of repeating it; empty if there is none.
        `first` is the answer, or its stream up to the first delta."""
        ...

    def usage(self, data: bytes, so_far: Usage) -> Usage:
        """The tokens an answer or an event speaks of; those so far if it speaks of none."""
        ...

    def written(self, name: bytes, data: bytes) -> int:
        """Tokens of the model's own words in an event, counted and rounded up: text, thoughts, a tool's arguments."""
        ...

    def is_usage(self, data: bytes) -> bool:
        """Whether an event is there only to tell the usage."""
        ...


_members = msgspec.json.Decoder(dict[str, Raw])
# Made once for each of the few types there are: working a type out takes longer than reading it. And made when the
# formats are imported, before there are threads: msgspec does not work out one type for two at once.
_decoder = cache(msgspec.json.Decoder)


def prepare(*kinds: Any) -> None:
    """Make the decoders of these types."""
    for kind in kinds:
        _decoder(kind)


prepare(str, bool, Count, list[Raw])


def members(body: bytes) -> dict[str, Raw]:
    """The members of a JSON object, each still as its bytes."""
    try:
        return _members.decode(body)
    except UNREADABLE as error:
        raise Refused(400, "invalid_request_error", f"the body is not a JSON object: {told(error)}") from None


def decoded(fields: dict[str, Raw], name: str, kind: Any, default: Any = None) -> Any:
    """One member, of the type it must have."""
    raw = fields.get(name)
    if raw is None or (len(raw) == 4 and bytes(raw) == b"null"):
        return default
    try:
        return _decoder(kind).decode(raw)
    except UNREADABLE as error:
        raise Refused(400, "invalid_request_error", f"{name}: {told(error)}") from None


def told(error: Exception) -> str:
    """What a decoder says, without the whole of a value that it quotes."""
    said = str(error)
    return said if len(said) <= SAID_CHARACTERS else f"{said[:SAID_CHARACTERS]}…"


def name_in(fields: dict[str, Raw], name: str) -> str:
    """A member that names something; empty if it is not there."""
    found: str = decoded(fields, name, str, "")
    if len(found) > NAME_CHARACTERS:
        said = f"{name}: a name of {len(found):,} characters; at most {NAME_CHARACTERS} are taken"
        raise Refused(400, "invalid_request_error", said)
    return found


def check_count(name: str, count: int, most: int) -> None:
    """Refuse a list that is longer than is taken."""
    if count > most:
        raise Refused(413, "invalid_request_error", f"{count:,} {name}; at most {most:,} are taken: send fewer")


def check_text(turns: Iterable[Turn], status: int) -> None:
    """Refuse more text than is taken: in bytes, which is what it costs to read it and to write it down."""
    size = sum(len(turn.text) if turn.text.isascii() else len(turn.text.encode()) for turn in turns)
    if size > TEXT_BYTES:
        said = f"the text is {size:,} bytes long in UTF-8; at most {TEXT_BYTES:,} are taken: shorten it"
        raise Refused(status, "invalid_request_error", said)


def read_count(fields: dict[str, Raw], name: str) -> int | None:
    """A number of tokens or answers the client states; None if it states none, or none that counts anything: that is
    the provider's to refuse, and must not make a call look cheap."""
    value: int | None = decoded(fields, name, Count)
    return value if value is not None and value > 0 else None


def mentions(fields: dict[str, Raw], names: Iterable[str]) -> str:
    """The first of these members that is there and says something."""
    silent = (b"null", b"false", b"[]", b"{}", b'""')
    return next((name for name in names if name in fields and bytes(fields[name]) not in silent), "")


def read_tools(fields: dict[str, Raw]) -> list[ToolType]:
    tools: list[ToolType] = decoded(fields, "tools", list[ToolType], [])
    return tools


def hosted_tool(tools: list[ToolType], ours: tuple[str, ...]) -> str:
    """The type of the first tool that does not run at the client: not declared by it, nor one of `ours`."""
    return next((kind for tool in tools for kind in tool.types() if kind and not kind.startswith(ours)), "")


class ToolType(Struct):
    type: str | None = None
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


def is_fresh(turns: Sequence[Turn]) -> bool:
    """Whether they end with a user's, but for instructions a client adds after it."""
    return next((turn.role == "user" for turn in reversed(turns) if turn.role != "system"), False)


def read_usage(raw: Raw) -> dict[str, Any] | None:
    """The usage an answer tells; None if it tells none that can be read. Whatever it says, the answer is not lost."""
    try:
        told = _decoder(Any).decode(raw)
    except UNREADABLE:
        return None
    return told if isinstance(told, dict) else None


def count_at(told: Mapping[str, Any], *names: str) -> int:
    """A number of tokens in a usage, wherever it stands."""
    value: Any = told
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return token_count(value)


def said(value: Any) -> int:
    """Tokens of the words in a part of a delta, wherever they stand in it."""
    match value:
        case str():
            return most_tokens((value,))
        case list():
            return sum(map(said, value))
        case dict():
            return sum(said(one) for key, one in value.items() if key not in WORDLESS)
    return 0


def most_tokens(texts: Iterable[bytes | Raw | str], without: Iterable[bytes | Raw | str] = ()) -> int:
    """As many tokens as texts have, or more, without those parts of them. Words of small letters come in tokens of some
    four; what else there is, signs, digits, capitals, spaces and each byte of other scripts, may be a token of its own.
    """
    size, others = _measure(texts)
    less_size, less_others = _measure(without)
    return max(-(-(size - less_size) // TOKEN_CHARACTERS), others - less_others, 0)


def _measure(texts: Iterable[bytes | Raw | str]) -> tuple[int, int]:
    """Bytes, and how many of them are no small letters."""
    raws = [text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text) for text in texts]
    return sum(map(len, raws)), sum(len(raw.translate(None, _LETTERS)) for raw in raws)


def named_model(fields: dict[str, Raw]) -> str:
    model = name_in(fields, "model")
    if not model:
        raise Refused(400, "invalid_request_error", "model: name one, or `auto` to let Turnout choose")
    return model


def asked(
    wire: Wire,
    fields: dict[str, Raw],
    turns: list[Turn],
    *,
    fresh: bool,
    images: int,
    pictures: Iterable[Raw | str],
    bound: bool,
    max_tokens: int | None,
    extras: Extras,
    follows: str = "",
) -> Asked:
    """What the three formats have in common. `follows` names the conversation, where its earlier turns are not sent."""
    tools: list[Raw] = decoded(fields, "tools", list[Raw], [])
    check_count("tools", len(tools), TOOLS)
    check_text(turns, 413)
    # Instructions that come later are not the beginning, and would make every turn another conversation.
    opening = list(takewhile(lambda turn: turn.role != "user", turns))
    first = turns[len(opening)].text if len(opening) < len(turns) else ""
    system = "\n".join(turn.text for turn in opening if turn.role == "system")
    key = name_in(fields, "prompt_cache_key")
    pictures = tuple(pictures)
    size = max(0, sum(len(fields.get(name, b"")) for name in INPUT[wire]) - sum(map(len, pictures)))
    digest = hashlib.blake2b(f"{key}\0{system}\0{first}".encode("utf-8", "replace"), digest_size=16).hexdigest()
    return Asked(
        wire=wire,
        model=named_model(fields),
        stream=decoded(fields, "stream", bool, False),
        fields=fields,
        query=Query(turns=tuple(turns)),
        fresh=fresh,
        images=images,
        tools=bool(tools),
        bound=bound,
        tokens=size // TOKEN_CHARACTERS + images * IMAGE_TOKENS,
        pictures=pictures,
        max_tokens=max_tokens,
        conversation=follows or digest,
        extras=extras,
    )


def error_object(kind: str, message: str, decision: str, refusal: Refusal | None = None) -> dict[str, Any]:
    """The inside of an OpenAI error; the decision's id lets an operator find out more than a client is told."""
    told = f"{message} (decision {decision})" if decision else message
    if refusal is not None and refusal.is_told:
        return {"message": told, "type": refusal.kind or kind, "param": refusal.param, "code": refusal.code}
    return {"message": told, "type": kind, "param": None, "code": kind}
