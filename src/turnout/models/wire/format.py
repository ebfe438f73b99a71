"""What the wire formats have in common: a body is taken apart one level deep, and what is not looked at stays the bytes
it was. Everything here is pure.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Raw
from msgspec.structs import replace

from turnout.core.errors import Refused
from turnout.core.query import MAX_CHARACTERS, Turn
from turnout.models.price import MOST_TOKENS, Usage
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal

from .sse import SseEvent
from .value import Delta, Message, MessagePart, ModelRequest, ModelResponse, StopReason, Tool, ToolOffer

MESSAGES = 5000
TOOLS = 512
# Of all messages together, in UTF-8.
TEXT_BYTES = MAX_CHARACTERS
# Of a name: a model's, a conversation's. The longest that providers give are some hundred characters.
NAME_CHARACTERS = 512
# Of what a decoder says is wrong: it repeats what it found, however long that is.
SAID_CHARACTERS = 300
Name = Annotated[str, Meta(max_length=NAME_CHARACTERS)]
Used = Callable[[], Usage]
"""What an answer has used up to now."""
# A number of tokens or answers beyond this is a mistake; below, what is too many is the provider's to say.
Count = Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)]
# Characters of English per token, about: for checks before a provider has counted.
TOKEN_CHARACTERS = 4
# What an image costs a model to look at, about (a 1092 x 1092 picture with Anthropic).
IMAGE_TOKENS = 1600

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading JSON raises: not JSON or not of the type it must have, not UTF-8, nested without end."""

# Members that change neither what a request costs nor who can answer it. Whatever is not among them is looked at.
PLAIN = frozenset(
    ("model", "messages", "input", "system", "instructions", "stream", "temperature", "top_p", "stop", "seed", "user")
) | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
# Members of a body that say nothing.
_SILENT = (b"null", b"false", b"[]", b"{}", b'""')
# Strings of an event that no model wrote.
_WORDLESS = frozenset(("id", "type", "index", "signature"))
_LETTERS = bytes(range(ord("a"), ord("z") + 1))

_members = msgspec.json.Decoder(dict[str, Raw])
# Made once for each of the few types there are: working a type out takes longer than reading it. And made when the
# formats are imported, before there are threads: msgspec does not work out one type for two at once.
_decoder = cache(msgspec.json.Decoder)


def prepare(*kinds: Any) -> None:
    """Make the decoders of these types."""
    for kind in kinds:
        _decoder(kind)


prepare(str, bool, Count, Any, list[Tool])


class UsageNames(NamedTuple):
    """Where a usage states its counts."""

    read: str
    written: str
    details: str
    """Of the input: how much of it was cached."""


class Format:
    """One wire format: reads and writes it. A format says what its members are called and what its messages are."""

    wire: Wire
    said: tuple[str, Any]
    """The member that holds the messages, and the type it must have."""
    needed: str
    """What is said of a request without it."""
    may_be_empty: bool = False
    """It may be there and hold nothing."""
    items: str = "messages"
    """What it holds, as a refusal of too many calls them."""
    system: tuple[str, Any] | None = None
    """The member that holds the instructions, where they are no message."""
    input: tuple[str, ...]
    """The members of a request that a model reads."""
    limits: tuple[str, ...] = ("max_tokens",)
    """The members that limit how long an answer may be."""
    unpriced: tuple[str, ...]
    """Members that are billed otherwise than by the listed price of a token."""
    client_tools: tuple[str, ...]
    """How the types of tools begin that run at the client."""
    hosted: tuple[str, ...] = ()
    """Members that have the provider run something."""
    choices: tuple[str, ...] = ()
    """Members that ask for more than one answer."""
    usage: UsageNames = UsageNames("input_tokens", "output_tokens", "input_tokens_details")

    # --- requests

    def read(self, body: bytes) -> ModelRequest:
        """A request; raises Refused for what no provider would take."""
        fields = read_members(body)
        said = self._read_said(fields)
        messages = self.read_messages(said, decoded(fields, *self.system) if self.system is not None else None)
        turns = tuple([Turn(message.role, words(message)) for message in messages if message.role])
        check_text(turns, 413)
        model = name_in(fields, "model")
        if not model:
            raise Refused(400, "invalid_request_error", "model: name one, or `auto` to let Turnout choose")
        # Nearly all parts are words, of which nothing else is to be known.
        marked = [part for one in messages for part in one.parts if part.kind != "text" or part.is_cached]
        images = tuple([image for part in marked for image in part.images])
        seen = tuple([fields[name] for name in self.input if name in fields])
        size = max(0, sum(map(len, seen)) - sum(map(len, images)))
        request = ModelRequest(
            wire=self.wire,
            model=model,
            fields=fields,
            messages=tuple(messages),
            turns=turns,
            stream=decoded(fields, "stream", bool, False),
            fresh=self.is_fresh(messages),
            conversation=_conversation(name_in(fields, "prompt_cache_key"), turns),
            tokens=size // TOKEN_CHARACTERS + len(images) * IMAGE_TOKENS,
            input=seen,
            images=images,
            # Which of several limits counts is the provider's to say.
            max_tokens=most_stated(fields, self.limits),
            has_limit=bool(mentions(fields, self.limits)),
        )
        return request if not marked and fields.keys() <= PLAIN else self.read_terms(request, marked)

    def read_terms(self, request: ModelRequest, marked: Sequence[MessagePart]) -> ModelRequest:
        """The request with what it says beside its words: tools, whatever has a price of its own. `marked` are those of
        its parts that are more than words."""
        fields = request.fields
        tools: list[Tool] = decoded(fields, "tools", list[Tool], [])
        check_count("tools", len(tools), TOOLS)
        return replace(
            request,
            tools=tuple(tools),
            bound=any(part.is_bound for part in marked),
            is_unsized=any(part.is_unsized for part in marked),
            choices=most_stated(fields, self.choices) or 1,
            caches=any(part.is_cached for part in marked) or any(tool.cache_control is not None for tool in tools),
            thinks=self.thinks(fields),
            hosted=hosted_tool(tools, self.client_tools) or mentions(fields, self.hosted),
            unpriced=mentions(fields, self.unpriced) or self.surcharge(fields, marked),
        )

    def _read_said(self, fields: Mapping[str, Raw]) -> Any:
        name, kind = self.said
        said = decoded(fields, name, kind)
        if name not in fields or not (said or self.may_be_empty):
            raise Refused(400, "invalid_request_error", f"{name}: {self.needed}")
        if isinstance(said, list):
            check_count(self.items, len(said), MESSAGES)
        return said

    def read_messages(self, said: Any, system: Any) -> list[Message]:
        """The messages that the members `said` and `system` hold, each decoded, None if it is null or not there."""
        raise NotImplementedError

    def is_fresh(self, messages: Sequence[Message]) -> bool:
        """Whether they end with a user's, but for instructions a client adds after it."""
        return next((message.role == "user" for message in reversed(messages) if message.role != "system"), False)

    def thinks(self, fields: Mapping[str, Raw]) -> bool:
        """Whether a request itself asks the model to think."""
        return bool(mentions(fields, ("reasoning",)))

    def surcharge(self, fields: Mapping[str, Raw], parts: Sequence[MessagePart]) -> str:
        """What of a request costs more than the list says, beside the members that always do."""
        return ""

    def write_request(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolOffer] = (),
        temperature: float = 0,
    ) -> dict[str, Any]:
        """The members of a request for text, for calls of tools, or for one object of a schema; its model is not among
        them. Images are `data:` URLs."""
        raise NotImplementedError

    # --- responses

    def read_response(self, body: bytes) -> ModelResponse:
        """A whole answer; raises one of UNREADABLE. Whatever else it says, it is passed on."""
        fields = _members.decode(body)
        return ModelResponse(fields, self.read_usage(fields.get("usage"), Usage()))

    def read_parts(self, response: ModelResponse) -> tuple[list[MessagePart], StopReason]:
        """What it says, and why it ended; raises DecodeError or LookupError if it is not of this format."""
        raise NotImplementedError

    def read_usage(self, raw: Raw | None, so_far: Usage) -> Usage | None:
        """The tokens an answer speaks of; None if it speaks of none that can be read."""
        try:
            told = _decoder(Any).decode(raw) if raw is not None else None
        except UNREADABLE:
            return None
        return self.count(told, so_far) if isinstance(told, dict) and told else None

    def count(self, told: Mapping[str, Any], so_far: Usage) -> Usage:
        """A usage that is not empty, as numbers; `so_far` is what was known before it."""
        names = self.usage
        read = count_at(told, names.read)
        # Some count a model's thoughts in the total alone.
        written = max(count_at(told, names.written), count_at(told, "total_tokens") - read)
        return Usage(read, written, count_at(told, names.details, "cached_tokens"), final=True)

    def read_event(self, event: SseEvent, so_far: Usage) -> Delta:
        """An event of a stream, `so_far` the usage before it; raises one of UNREADABLE for half an event."""
        raise NotImplementedError

    def write_response(self, ident: str, model: str, text: str, usage: Usage) -> bytes:
        raise NotImplementedError

    def write_stream(self, ident: str, model: str, pieces: Iterable[str], used: Used) -> Iterator[bytes]:
        """The same in pieces, event by event, each piece taken when its event is, and what it used counted when it is
        told: of what is read at the beginning, of what was written at the end."""
        raise NotImplementedError

    # --- errors

    def write_error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        """An error as a client of this format expects it; a provider's with the names the provider gave it."""
        raise NotImplementedError

    def write_error_event(self, kind: str, message: str, decision: str) -> bytes:
        """The end of a stream that was cut."""
        raise NotImplementedError


def read_data_url(url: str) -> tuple[str, str]:
    """The media type and the base64 of an image that is sent along."""
    kind, comma, data = url.partition(";base64,")
    if not comma or not kind.startswith("data:image/"):
        raise ValueError(f"an image is sent as data:image/...;base64,..., not as {url[:40]!r}")
    return kind.removeprefix("data:"), data


def read_members(body: bytes) -> dict[str, Raw]:
    """The members of a JSON object, each still as its bytes."""
    try:
        return _members.decode(body)
    except UNREADABLE as error:
        raise Refused(400, "invalid_request_error", f"the body is not a JSON object: {told(error)}") from None


def decoded(fields: Mapping[str, Raw], name: str, kind: Any, default: Any = None) -> Any:
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


def name_in(fields: Mapping[str, Raw], name: str) -> str:
    """A member that names something; empty if it is not there."""
    found: str = decoded(fields, name, str, "")
    if len(found) > NAME_CHARACTERS:
        said = f"{name}: a name of {len(found):,} characters; at most {NAME_CHARACTERS} are taken"
        raise Refused(400, "invalid_request_error", said)
    return found


def words(message: Message) -> str:
    """What a message says: nearly all are one piece of text."""
    parts = message.parts
    return parts[0].text if len(parts) == 1 and parts[0].kind == "text" else message.text


def check_count(name: str, count: int, most: int) -> None:
    """Refuse a list that is longer than is taken."""
    if count > most:
        raise Refused(413, "invalid_request_error", f"{count:,} {name}; at most {most:,} are taken: send fewer")


def check_text(turns: Iterable[Turn], status: int) -> None:
    """Refuse more text than is taken: in bytes, which is what it costs to read it and to write it down."""
    size = sum([len(turn.text) if turn.text.isascii() else len(turn.text.encode()) for turn in turns])
    if size > TEXT_BYTES:
        said = f"the text is {size:,} bytes long in UTF-8; at most {TEXT_BYTES:,} are taken: shorten it"
        raise Refused(status, "invalid_request_error", said)


def most_stated(fields: Mapping[str, Raw], names: Sequence[str]) -> int | None:
    """The largest number of tokens or answers the client states in these members; None if it states none, or none that
    counts anything: that is the provider's to refuse, and must not make a call look cheap."""
    return max([0, *[decoded(fields, name, Count, 0) for name in names if name in fields]]) or None


def mentions(fields: Mapping[str, Raw], names: Sequence[str]) -> str:
    """The first of these members that is there and says something."""
    said = [name for name in names if name in fields and bytes(fields[name]) not in _SILENT]
    return said[0] if said else ""


def hosted_tool(tools: Iterable[Tool], ours: tuple[str, ...]) -> str:
    """The type of the first tool that does not run at the client: not declared by it, nor one of `ours`."""
    return next((kind for tool in tools for kind in tool.types() if kind and not kind.startswith(ours)), "")


def _conversation(key: str, turns: Sequence[Turn]) -> str:
    """The same for every turn of a conversation: by the key a client gives it, and by how it begins. Instructions that
    come later are not the beginning, and would make every turn another conversation."""
    system, first = [], ""
    for turn in turns:
        if turn.role == "user":
            first = turn.text
            break
        if turn.role == "system":
            system.append(turn.text)
    named = "\0".join((key, "\n".join(system), first)).encode("utf-8", "replace")
    return hashlib.blake2b(named, digest_size=16).hexdigest()


def text_at(value: Any) -> str:
    """A string that should be there; empty where it is something else."""
    return value if isinstance(value, str) else ""


def count_at(told: Mapping[str, Any], *names: str) -> int:
    """A number of tokens in a usage, wherever it stands."""
    value: Any = told
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else token_count(value)


def token_count(value: object) -> int:
    """A number of tokens as a provider states it: whatever that is, a count that can be calculated with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if isinstance(value, float):
        value = int(min(max(value, 0.0), MOST_TOKENS)) if math.isfinite(value) else 0
    return min(max(value, 0), MOST_TOKENS)


def words_of(value: Any) -> int:
    """Tokens of the words in a part of a delta, wherever they stand in it."""
    match value:
        case None:
            return 0
        case str():
            return most_tokens((value,))
        case list():
            return sum(map(words_of, value))
        case dict():
            return sum(words_of(one) for key, one in value.items() if key not in _WORDLESS)
    return 0


def most_tokens(texts: Iterable[bytes | Raw | str], without: Iterable[bytes | Raw | str] = ()) -> int:
    """As many tokens as texts have, or more, without those parts of them. Words of small letters come in tokens of some
    four; what else there is, signs, digits, capitals, spaces and each byte of other scripts, may be a token of its own.
    """
    size = others = 0
    for sign, those in ((1, texts), (-1, without)):
        for text in those:
            raw = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
            size += sign * len(raw)
            others += sign * len(raw.translate(None, _LETTERS))
    return max(-(-size // TOKEN_CHARACTERS), others, 0)


def write_event(kind: str, **fields: Any) -> bytes:
    """An event that has a name, which is its type as well."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))
