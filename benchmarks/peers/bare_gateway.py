"""What anything in Python costs that stands between a client and a provider: Starlette, aiohttp and nothing else.

A body goes to the provider as it came, and what comes back goes to the client as it comes. No key is looked at, nothing
is decided or written down.

    python bare_gateway.py PORT PROVIDER_URL
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

PORT, PROVIDER = int(sys.argv[1]), sys.argv[2]


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=512)) as app.state.session:
        yield


async def pass_through(request: Request) -> Response:
    body = await request.body()
    headers = {"content-type": "application/json"}
    answer = await request.app.state.session.post(PROVIDER, data=body, headers=headers)
    kind = answer.headers["content-type"]
    if "event-stream" not in kind:
        async with answer:
            return Response(await answer.read(), answer.status, media_type=kind)

    async def pieces() -> AsyncIterator[bytes]:
        async with answer:
            async for piece in answer.content.iter_any():
                yield piece

    return StreamingResponse(pieces(), answer.status, media_type=kind)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/v1/chat/completions", pass_through, methods=["POST"])], lifespan=lifespan)
    uvicorn.run(app, port=PORT, loop="uvloop", http="auto", access_log=False, log_level="warning")
