"""An application's answer in the client's own format: a chat client asks for its name as for any model's.

The application keeps the account and the log's row; here its events become text: the words of a stream as they come, or
the whole at the end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from turnout.apps.app import Answer, AnsweringApp, Headers, StreamBody
from turnout.apps.caller import Caller
from turnout.apps.event import Decided, Done, Event, Failed, Token
from turnout.core.decision import new_id
from turnout.core.query import Query
from turnout.models.price import Usage
from turnout.models.wire import FORMATS
from turnout.models.wire.format import Format, most_tokens
from turnout.models.wire.live import LiveStream
from turnout.models.wire.value import ModelRequest


async def relay(app: AnsweringApp, request: ModelRequest, caller: Caller) -> Answer:
    """The answer of an application to a request; raises Refused where there is none."""
    form, ident = FORMATS[request.wire], new_id()
    query = Query(turns=request.turns, tenant=caller.tenant or None)
    events = app.answer(query, caller)
    # What is refused, is before the first event: then there is still a status to say it with.
    first = await anext(events)
    told = _headers(first, request.model) if isinstance(first, Decided) else []
    if request.stream:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), *told]
        return Answer(200, headers, StreamBody(_stream(form, ident, request, first, events), events.aclose))
    last = first
    async for event in events:
        last = event
    text = _text(last)
    usage = Usage(request.tokens, most_tokens((text,)))
    headers = [(b"content-type", b"application/json"), *told]
    return Answer(200, headers, form.write_response(ident, request.model, text, usage))


def _headers(decided: Decided, model: str) -> Headers:
    """The same that stand over a model's answer, as far as there is no provider."""
    told = {
        "decision": decided.decision,
        "route": decided.route,
        "layer": decided.layer,
        "outcome": decided.outcome,
        "confidence": f"{decided.confidence:.3f}",
        "model": model,
    }
    return [(f"x-turnout-{name}".encode(), value.encode("latin-1", "replace")) for name, value in told.items()]


async def _stream(
    form: Format, ident: str, request: ModelRequest, first: Event, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[bytes, None]:
    live = LiveStream(form, ident, request.model, request.tokens)
    said, event = False, first
    try:
        while True:
            if isinstance(event, Token):
                said = True
                yield live.feed(event.text)
            following = await anext(events, None)
            if following is None:
                break
            event = following
        if not said:
            yield live.feed(_text(event))
        yield live.end()
    finally:
        await events.aclose()


def _text(event: Event) -> str:
    """What the last event says."""
    if isinstance(event, Failed):
        return event.reason
    found: str = event.text if isinstance(event, Done) else getattr(event, "result", "")
    return found
