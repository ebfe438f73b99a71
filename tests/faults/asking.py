"""Asks a running server over a socket of its own and tells what came back, byte for byte, and what was written down."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from serving import RunningServer

Wire = Literal["openai-chat", "anthropic-messages", "openai-responses"]
PATHS: dict[Wire, str] = {
    "openai-chat": "/v1/chat/completions",
    "anthropic-messages": "/v1/messages",
    "openai-responses": "/v1/responses",
}
LAST: dict[Wire, bytes] = {
    "openai-chat": b"data: [DONE]",
    "anthropic-messages": b"event: message_stop",
    "openai-responses": b"event: response.completed",
}
ERROR: dict[Wire, bytes] = {
    "openai-chat": b'data: {"error":',
    "anthropic-messages": b"event: error\n",
    "openai-responses": b"event: error\n",
}


class HttpResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float
    whole: bool
    """The answer ended as its framing says it should."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(wire: Wire, text: str, *, model: str = "SIMPLE", stream: bool = False, path: str = "") -> bytes:
    """A question, ready to be sent."""
    told: dict[str, Any] = {"model": model, "stream": stream}
    if wire == "openai-responses":
        told["input"] = text
    else:
        told |= {"messages": [{"role": "user", "content": text}], "max_tokens": 100}
    raw = json.dumps(told).encode()
    head = f"POST {path or PATHS[wire]} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(raw)}\r\nconnection: close\r\n\r\n".encode() + raw


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode()


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    where = urlsplit(url)
    assert where.hostname is not None
    return await asyncio.open_connection(where.hostname, where.port, limit=64 * 1024 * 1024)


async def ask(url: str, sent: bytes) -> HttpResponse:
    """Send it and read until the server closes."""
    began = time.monotonic()
    reader, writer = await connect(url)
    try:
        writer.write(sent)
        return understand(await reader.read(), time.monotonic() - began)
    finally:
        writer.close()


def understand(raw: bytes, seconds: float = 0.0) -> HttpResponse:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    whole = True
    if headers.get("transfer-encoding") == "chunked":
        body, whole = _joined(body)
    elif "content-length" in headers:
        whole = len(body) == int(headers["content-length"])
    return HttpResponse(int(first.split(" ")[1]), headers, body, seconds, whole)


def _joined(body: bytes) -> tuple[bytes, bool]:
    parts, at = [], 0
    while (end := body.find(b"\r\n", at)) >= 0:
        size = int(body[at:end], 16)
        if size == 0:
            return b"".join(parts), True
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(parts), False


class LoggedOutcome(NamedTuple):
    """An outcome row."""

    ended: str
    model: str | None
    attempts: int
    fallback: str | None
    elapsed_ms: float


def outcomes(served: RunningServer, folder: Path) -> dict[str, LoggedOutcome]:
    """Every outcome by its decision's id. There is one of each, or this fails."""
    assert served.store.flush(10.0)
    with closing(sqlite3.connect(f"file:{folder / 'turnout.db'}?mode=ro", uri=True)) as connection:
        decided = [ident for (ident,) in connection.execute("select id from decisions where parent_id is null")]
        found = connection.execute("select decision_id, ended, model, attempts, fallback, elapsed_ms from outcomes")
        rows = [(ident, LoggedOutcome(*rest)) for ident, *rest in found]
    assert sorted(decided) == sorted(ident for ident, _ in rows)
    assert len(set(decided)) == len(decided)
    return dict(rows)
