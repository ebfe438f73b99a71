"""What refusing costs at least: an ASGI application that says 503 to everything, under the server Turnout runs on.

python bare_refusal.py PORT
"""

import asyncio
import sys
from typing import Any

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

BODY = b'{"error":{"message":"no room","type":"overloaded_error","param":null,"code":"overloaded_error"}}'
START = {
    "type": "http.response.start",
    "status": 503,
    "headers": [(b"content-type", b"application/json"), (b"retry-after", b"1"), (b"content-length", b"%d" % len(BODY))],
}


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": BODY})


async def main() -> None:
    options: dict[str, Any] = {"interface": Interfaces.ASGINL, "http": HTTPModes.http1, "websockets": False}
    await Server(app, port=int(sys.argv[1]), backlog=2048, log_level=LogLevels.error, **options).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
