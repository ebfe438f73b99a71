"""An application's answer in the client's format: a chat client uses its name like any model's.

The application keeps the account and logs the decision; here its events become text, streamed or whole.
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
    """The answer of an application to a request; raises Refused."""
    form, ident = FORMATS[request.wire], new_id()
    query = Query(turns=request.turns, tenant=caller.tenant or None)
    events = app.answer(query, caller)
    # The first event is awaited before the response starts: a refusal before it still gets its status.
    first = await anext(events)
    more = _headers(first, request.model) if isinstance(first, Decided) else []
    if request.stream:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), *more]
        return Answer(200, headers, StreamBody(_stream(form, ident, request, first, events), events.aclose))
    last = first
    async for event in events:
        last = event
    text = _text(last)
    usage = Usage(request.tokens, most_tokens((text,)))
    headers = [(b"content-type", b"application/json"), *more]
    return Answer(200, headers, form.write_response(ident, request.model, text, usage))


def _headers(decided: Decided, model: str) -> Headers:
    """The headers of a model's answer, without those about a provider."""
    headers = {
        "decision": decided.decision,
        "route": decided.route,
        "layer": decided.layer,
        "outcome": decided.outcome,
        "confidence": f"{decided.confidence:.3f}",
        "model": model,
    }
    return [(f"x-turnout-{name}".encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]


async def _stream(
    form: Format, ident: str, request: ModelRequest, first: Event, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[bytes, None]:
    live = LiveStream(form, ident, request.model, request.tokens)
    has_text, event = False, first
    try:
        while True:
            if isinstance(event, Token):
                has_text = True
                yield live.feed(event.text)
            following = await anext(events, None)
            if following is None:
                break
            event = following
        if not has_text:
            yield live.feed(_text(event))
        yield live.end()
    finally:
        await events.aclose()


def _text(event: Event) -> str:
    """The text of the last event."""
    if isinstance(event, Failed):
        return event.reason
    text: str = event.text if isinstance(event, Done) else getattr(event, "result", "")
    return text
