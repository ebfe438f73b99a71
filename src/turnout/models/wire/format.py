"""The base of the wire formats: a body is decoded one level deep, and members that are not needed stay bytes.

Everything here is pure.
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
# The most text of all messages together, in UTF-8.
TEXT_BYTES = MAX_CHARACTERS
# The longest name of a model or a conversation. Providers' longest have some hundred characters.
NAME_CHARACTERS = 512
# The longest decoder error that is shown: it quotes what it found, however long that is.
ERROR_CHARACTERS = 300
Name = Annotated[str, Meta(max_length=NAME_CHARACTERS)]
UsageSoFar = Callable[[], Usage]
"""Returns the usage of an answer so far."""
# A larger number of tokens or answers is a mistake; the provider decides about smaller ones.
Count = Annotated[int, Meta(ge=-1_000_000_000, le=1_000_000_000)]
# About the characters of an English token, for checks before a provider has counted.
TOKEN_CHARACTERS = 4
# About the tokens of an image (a 1092 x 1092 picture with Anthropic).
IMAGE_TOKENS = 1600

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of reading JSON: not JSON or of the wrong type, not UTF-8, nested too deeply."""

# Members that change neither the cost of a request nor which models can answer it. All others are checked.
PLAIN = frozenset(
    ("model", "messages", "input", "system", "instructions", "stream", "temperature", "top_p", "stop", "seed", "user")
) | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
# Values of members without content.
_EMPTY = (b"null", b"false", b"[]", b"{}", b'""')
# Members of an event that the model did not write.
_WORDLESS = frozenset(("id", "type", "index", "signature"))
_LETTERS = bytes(range(ord("a"), ord("z") + 1))

_members = msgspec.json.Decoder(dict[str, Raw])
# One for each type: building a decoder takes longer than decoding. They are built on import, before there are threads:
# msgspec cannot analyse a type in two threads at once.
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
    """The member that says how much of the input was cached."""


class Format:
    """Reads and writes one wire format. Subclasses give the names of its members and the type of its messages."""

    wire: Wire
    messages_member: tuple[str, Any]
    """The member that holds the messages, and the type it must have."""
    missing_error: str
    """The error for a request without it."""
    may_be_empty: bool = False
    """It may be present and empty."""
    items: str = "messages"
    """The name of its items in errors."""
    system: tuple[str, Any] | None = None
    """The member that holds the instructions, if they are not a message."""
    input: tuple[str, ...]
    """The members of a request that a model reads."""
    limits: tuple[str, ...] = ("max_tokens",)
    """The members that limit the length of an answer."""
    unpriced: tuple[str, ...]
    """Members that are not billed by the listed price of a token."""
    client_tools: tuple[str, ...]
    """Prefixes of the types of tools that run at the client."""
    hosted: tuple[str, ...] = ()
    """Members that make the provider run something."""
    choices: tuple[str, ...] = ()
    """Members that ask for more than one answer."""
    usage: UsageNames = UsageNames("input_tokens", "output_tokens", "input_tokens_details")

    # --- requests

    def read(self, body: bytes) -> ModelRequest:
        """A request; raises Refused for one that no provider would accept."""
        fields = read_members(body)
        sent = self._read_messages_member(fields)
        messages = self.read_messages(sent, read_member(fields, *self.system) if self.system is not None else None)
        turns = tuple([Turn(message.role, words(message)) for message in messages if message.role])
        check_text(turns, 413)
        model = name_in(fields, "model")
        if not model:
            raise Refused(400, "invalid_request_error", "model: name one, or `auto` to let Turnout choose")
        # Nearly all parts are text and need no further checks.
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
            stream=read_member(fields, "stream", bool, False),
            fresh=self.is_fresh(messages),
            conversation=_conversation(name_in(fields, "prompt_cache_key"), turns),
            tokens=size // TOKEN_CHARACTERS + len(images) * IMAGE_TOKENS,
            input=seen,
            images=images,
            # The provider decides which of several limits counts.
            max_tokens=most_stated(fields, self.limits),
            has_limit=bool(mentions(fields, self.limits)),
        )
        return request if not marked and fields.keys() <= PLAIN else self.read_terms(request, marked)

    def read_terms(self, request: ModelRequest, marked: Sequence[MessagePart]) -> ModelRequest:
        """The request with everything beside its text: tools, and members with a price of their own. `marked` are its
        parts that are more than text."""
        fields = request.fields
        tools: list[Tool] = read_member(fields, "tools", list[Tool], [])
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

    def _read_messages_member(self, fields: Mapping[str, Raw]) -> Any:
        name, kind = self.messages_member
        sent = read_member(fields, name, kind)
        if name not in fields or not (sent or self.may_be_empty):
            raise Refused(400, "invalid_request_error", f"{name}: {self.missing_error}")
        if isinstance(sent, list):
            check_count(self.items, len(sent), MESSAGES)
        return sent

    def read_messages(self, sent: Any, system: Any) -> list[Message]:
        """The messages in the decoded members `sent` and `system`, each None if it is null or missing."""
        raise NotImplementedError

    def is_fresh(self, messages: Sequence[Message]) -> bool:
        """Whether they end with a user's message, apart from instructions a client adds after it."""
        return next((message.role == "user" for message in reversed(messages) if message.role != "system"), False)

    def thinks(self, fields: Mapping[str, Raw]) -> bool:
        """Whether a request asks the model for reasoning."""
        return bool(mentions(fields, ("reasoning",)))

    def surcharge(self, fields: Mapping[str, Raw], parts: Sequence[MessagePart]) -> str:
        """The part of a request that costs more than the listed price, other than the members in `unpriced`."""
        return ""

    def write_request(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolOffer] = (),
        temperature: float = 0,
    ) -> dict[str, Any]:
        """The members, without the model, of a request for text, for tool calls, or for an object of a schema. Images
        are `data:` URLs."""
        raise NotImplementedError

    # --- responses

    def read_response(self, body: bytes) -> ModelResponse:
        """A whole answer; raises one of UNREADABLE."""
        fields = _members.decode(body)
        return ModelResponse(fields, self.read_usage(fields.get("usage"), Usage()))

    def read_parts(self, response: ModelResponse) -> tuple[list[MessagePart], StopReason]:
        """The parts of an answer and why it ended; raises DecodeError or LookupError if it is not of this format."""
        raise NotImplementedError

    def read_usage(self, raw: Raw | None, so_far: Usage) -> Usage | None:
        """The usage of an answer; None if it has none that can be read."""
        try:
            counts = _decoder(Any).decode(raw) if raw is not None else None
        except UNREADABLE:
            return None
        return self.count(counts, so_far) if isinstance(counts, dict) and counts else None

    def count(self, counts: Mapping[str, Any], so_far: Usage) -> Usage:
        """The usage from a provider's counts; `so_far` is the usage known before."""
        names = self.usage
        read = count_at(counts, names.read)
        # Some providers count reasoning in the total alone.
        written = max(count_at(counts, names.written), count_at(counts, "total_tokens") - read)
        return Usage(read, written, count_at(counts, names.details, "cached_tokens"), final=True)

    def read_event(self, event: SseEvent, so_far: Usage) -> Delta:
        """An event of a stream, with `so_far` as the usage before it; raises one of UNREADABLE for a broken one."""
        raise NotImplementedError

    def write_response(self, ident: str, model: str, text: str, usage: Usage) -> bytes:
        raise NotImplementedError

    def write_stream(self, ident: str, model: str, pieces: Iterable[str], used: UsageSoFar) -> Iterator[bytes]:
        """The events of a streamed response. A piece is taken from the iterator when its event is, and `used` is called
        when the usage is written: the input at the beginning, the output at the end."""
        raise NotImplementedError

    # --- errors

    def write_error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        """An error as a client of this format expects it; a provider's refusal keeps its names."""
        raise NotImplementedError

    def write_error_event(self, kind: str, message: str, decision: str) -> bytes:
        """The last event of a stream that was cut."""
        raise NotImplementedError


def read_data_url(url: str) -> tuple[str, str]:
    """The media type and the base64 of an inline image."""
    kind, comma, data = url.partition(";base64,")
    if not comma or not kind.startswith("data:image/"):
        raise ValueError(f"an image is sent as data:image/...;base64,..., not as {url[:40]!r}")
    return kind.removeprefix("data:"), data


def read_members(body: bytes) -> dict[str, Raw]:
    """The members of a JSON object, each still as its bytes."""
    try:
        return _members.decode(body)
    except UNREADABLE as error:
        raise Refused(400, "invalid_request_error", f"the body is not a JSON object: {short_message(error)}") from None


def read_member(fields: Mapping[str, Raw], name: str, kind: Any, default: Any = None) -> Any:
    """One member, of the type it must have."""
    raw = fields.get(name)
    if raw is None or (len(raw) == 4 and bytes(raw) == b"null"):
        return default
    try:
        return _decoder(kind).decode(raw)
    except UNREADABLE as error:
        raise Refused(400, "invalid_request_error", f"{name}: {short_message(error)}") from None


def short_message(error: Exception) -> str:
    """A decoder's error, shortened: it may quote a long value."""
    message = str(error)
    return message if len(message) <= ERROR_CHARACTERS else f"{message[:ERROR_CHARACTERS]}…"


def name_in(fields: Mapping[str, Raw], name: str) -> str:
    """A member that names something; empty if it is not there."""
    found: str = read_member(fields, name, str, "")
    if len(found) > NAME_CHARACTERS:
        why = f"{name}: a name of {len(found):,} characters; at most {NAME_CHARACTERS} are taken"
        raise Refused(400, "invalid_request_error", why)
    return found


def words(message: Message) -> str:
    """A message's text, which is nearly always its only part."""
    parts = message.parts
    return parts[0].text if len(parts) == 1 and parts[0].kind == "text" else message.text


def check_count(name: str, count: int, most: int) -> None:
    """Refuse a list that is longer than is taken."""
    if count > most:
        raise Refused(413, "invalid_request_error", f"{count:,} {name}; at most {most:,} are taken: send fewer")


def check_text(turns: Iterable[Turn], status: int) -> None:
    """Refuse too much text, counted in bytes, which determine the cost of reading and logging it."""
    size = sum([len(turn.text) if turn.text.isascii() else len(turn.text.encode()) for turn in turns])
    if size > TEXT_BYTES:
        why = f"the text is {size:,} bytes long in UTF-8; at most {TEXT_BYTES:,} are taken: shorten it"
        raise Refused(status, "invalid_request_error", why)


def most_stated(fields: Mapping[str, Raw], names: Sequence[str]) -> int | None:
    """The largest number of tokens or answers in these members; None if there is none above zero. The provider refuses
    such a number, and it must not make a call look cheap."""
    return max([0, *[read_member(fields, name, Count, 0) for name in names if name in fields]]) or None


def mentions(fields: Mapping[str, Raw], names: Sequence[str]) -> str:
    """The first of these members that is present and not empty."""
    return next((name for name in names if name in fields and bytes(fields[name]) not in _EMPTY), "")


def hosted_tool(tools: Iterable[Tool], prefixes: tuple[str, ...]) -> str:
    """The type of the first tool that does not run at the client, by the prefixes of its types."""
    return next((kind for tool in tools for kind in tool.types() if kind and not kind.startswith(prefixes)), "")


def _conversation(key: str, turns: Sequence[Turn]) -> str:
    """An id that is the same for every turn of a conversation, from the client's key and from the beginning. Later
    instructions are left out: they would make every turn another conversation."""
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
    """The value if it is a string; else empty."""
    return value if isinstance(value, str) else ""


def count_at(counts: Mapping[str, Any], *names: str) -> int:
    """A number of tokens in a usage, at a path of names."""
    value: Any = counts
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return token_count(value)


def token_count(value: object) -> int:
    """A provider's number of tokens as a valid count; zero if it is not a number."""
    if type(value) is float:
        value = int(min(max(value, 0.0), MOST_TOKENS)) if math.isfinite(value) else 0
    return min(max(value, 0), MOST_TOKENS) if type(value) is int else 0


def words_of(value: Any) -> int:
    """The tokens of all words in a part of a delta."""
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
    """At least as many tokens as texts have, not counting the parts in `without`. Lower-case words have some four
    letters to a token; any other byte, of signs, digits, capitals, spaces and other scripts, may be a token of its own.
    """
    size = others = 0
    for sign, group in ((1, texts), (-1, without)):
        for text in group:
            raw = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
            size += sign * len(raw)
            others += sign * len(raw.translate(None, _LETTERS))
    return max(-(-size // TOKEN_CHARACTERS), others, 0)


def write_event(kind: str, **fields: Any) -> bytes:
    """An event whose name is also its type."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))
