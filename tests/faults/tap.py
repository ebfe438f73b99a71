"""What a program sends, written down: to the server it is pointed at, which answers, and to everybody else, who do
not. Both are real sockets on loopback; a program under test is not changed for them.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from contextlib import suppress
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"


class Call(NamedTuple):
    """A request as it was sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    """Its JSON; None if it has none."""

    def __repr__(self) -> str:
        asked = self.body.get("model") if isinstance(self.body, dict) else None
        return f"<{self.method} {self.path} for {asked}>"


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__((HOST, 0), handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Tap(_Listener):
    """Passes bytes between a client and a server, and keeps what the client sent."""

    def __init__(self, server: str) -> None:
        where = urlsplit(server)
        self.target = (where.hostname, where.port)
        self.sent: list[bytearray] = []
        """By connection."""
        super().__init__(_Pass)

    def calls(self) -> list[Call]:
        return [call for raw in self.sent for call in calls_in(bytes(raw))]


class DeadEnd(_Listener):
    """A proxy that writes down what is wanted of whom, and refuses."""

    def __init__(self) -> None:
        self.wanted: list[str] = []
        super().__init__(_Refuse)

    def variables(self) -> dict[str, str]:
        """What makes a program use it for every host but this one."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        mine = f"{HOST},localhost"
        return {
            **{spelled: self.url for name in names for spelled in (name, name.lower())},
            "NO_PROXY": mine,
            "no_proxy": mine,
        }


class _Pass(socketserver.BaseRequestHandler):
    server: Tap

    def handle(self) -> None:
        kept = bytearray()
        self.server.sent.append(kept)
        with suppress(OSError), socket.create_connection(self.server.target) as upstream:
            back = threading.Thread(target=_pump, args=(upstream, self.request), daemon=True)
            back.start()
            with suppress(OSError):
                while data := self.request.recv(65536):
                    kept += data
                    upstream.sendall(data)
            with suppress(OSError):
                upstream.shutdown(socket.SHUT_RDWR)
            back.join()


class _Refuse(socketserver.BaseRequestHandler):
    server: DeadEnd

    def handle(self) -> None:
        with suppress(OSError):
            line = self.request.recv(4096).partition(b"\r\n")[0]
            if line:
                self.server.wanted.append(line.decode("latin-1"))
                self.request.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def calls_in(raw: bytes) -> list[Call]:
    """The requests of one connection. A body whose length is not told, or that is not all there, is a mistake."""
    found = []
    while raw:
        head, separator, rest = raw.partition(b"\r\n\r\n")
        assert separator, f"half a request: {raw[:200]!r}"
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        assert "transfer-encoding" not in headers, f"{first}: a body without a length is not read here"
        length = int(headers.get("content-length", "0"))
        assert len(rest) >= length, f"{first}: {len(rest)} of {length} bytes"
        body, raw = rest[:length], rest[length:]
        found.append(Call(method, path, headers, json.loads(body) if body else None))
    return found
