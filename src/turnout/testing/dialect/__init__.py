"""Writes the providers' wire formats: a reply becomes the bytes that OpenAI or Anthropic would send.

Written from the providers' documentation and checked against their own clients. It deliberately shares no code with
Turnout's reading of these formats: a double that shares code with its subject shares its mistakes.
"""

from __future__ import annotations

import msgspec

from ..fault import ScriptedResponse, halves
from ..reply import Received, ScriptedReply
from .chat import ChatDialect
from .completion import RequestFields, ScriptedCompletion
from .messages import MessagesDialect
from .responses import ResponsesDialect

# About how many characters of English a token has: a double has no tokenizer.
TOKEN_CHARACTERS = 4
FAILURE = "The server had an error while processing your request."

Dialect = ChatDialect | MessagesDialect | ResponsesDialect
"""One wire format. All methods are pure: why a request is refused (`refusal`), an answer as a body (`whole`) or as a
`stream`, and an `error` as a body or an event."""

_CHAT = ChatDialect()
DIALECTS: dict[str, Dialect] = {
    "/chat/completions": _CHAT,
    "/messages": MessagesDialect(),
    "/responses": ResponsesDialect(),
}
"""By the end of the path."""

_request_fields = msgspec.json.Decoder(RequestFields)


def compose(reply: ScriptedReply, request: Received, number: int) -> ScriptedResponse:
    """A reply in the wire format of the request, or a provider's refusal of the request."""
    ident = f"req_{number:08d}"
    headers = {"content-type": "application/json", "x-request-id": ident, "request-id": ident, **reply.headers}
    if reply.body is not None:
        return ScriptedResponse(reply.status, headers, halves(reply.body), is_stream=False, error=b"")
    path = request.path.partition("?")[0]
    dialect = next((dialect for end, dialect in DIALECTS.items() if path.endswith(end)), None)
    if dialect is None or request.method != "POST":
        return _refusal(_CHAT, 404, f"Invalid URL ({request.method} {path})", headers)
    if reply.status != 200:
        message = "".join(reply.pieces()) if reply.text else f"The script says {reply.status}."
        return _refusal(dialect, reply.status, message, headers)
    try:
        fields = _request_fields.decode(request.raw)
    except msgspec.DecodeError as error:
        return _refusal(dialect, 400, f"We could not parse the JSON body of your request: {error}", headers)
    if message := dialect.refusal(request, fields):
        return _refusal(dialect, 400, message, headers)
    answer = _prepare(dialect, reply, request, fields, number)
    if not fields.stream:
        parts, failure = halves(dialect.whole(answer)), dialect.error(500, FAILURE)
        return ScriptedResponse(200, headers, parts, is_stream=False, error=failure)
    headers |= {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", **reply.headers}
    parts, failure = list(dialect.stream(answer)), dialect.error_event(FAILURE)
    return ScriptedResponse(200, headers, parts, is_stream=True, error=failure)


def _refusal(dialect: Dialect, status: int, message: str, headers: dict[str, str]) -> ScriptedResponse:
    body = dialect.error(status, message)
    return ScriptedResponse(status, headers, halves(body), is_stream=False, error=body)


def _prepare(
    dialect: Dialect, reply: ScriptedReply, request: Received, fields: RequestFields, number: int
) -> ScriptedCompletion:
    pieces = reply.pieces()
    calls = [(call.id or f"{dialect.call_prefix}{number:08d}{i:04d}", call) for i, call in enumerate(reply.tools)]
    usage = reply.usage
    if usage is None:
        written = sum(map(len, pieces)) + len(reply.thinking) + sum(len(call.json) for _, call in calls)
        usage = max(1, len(request.raw) // TOKEN_CHARACTERS), max(1, written // TOKEN_CHARACTERS)
    options = fields.stream_options
    return ScriptedCompletion(
        number=number,
        model=fields.model,
        pieces=pieces,
        calls=calls,
        thinking=reply.thinking,
        tokens_in=usage[0],
        tokens_out=usage[1],
        cached=reply.cached,
        finish=reply.finish,
        with_usage=options is not None and options.include_usage,
    )
