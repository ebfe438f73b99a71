"""Asks at a steady rate, whatever is answered: an open load, as the world's is. One process, one core.

    python open_load.py PORT KEY BODIES RATE SECONDS

Prints one line of JSON: for each status how many answers came and how long they took, and what was not sent for want of
a connection.
"""

import asyncio
import json
import sys
from array import array
from pathlib import Path
from time import perf_counter

import uvloop

PATH = "/v1/chat/completions"
TICK_S = 0.002
# Until the server has taken every connection: what is measured is how it answers, not how it accepts.
SETTLE_S = 1.0
# Made before it begins; a request that finds none of them free is counted, not kept for later.
CONNECTIONS = 1500


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.began = 0.0
        self.missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.load.idle.append(self)

    def ask(self, request: bytes) -> None:
        self.began = perf_counter()
        self.missing = 0
        self.transport.write(request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if self.missing:
            self.missing -= len(data)
        else:
            end = data.index(b"\r\n\r\n")
            at = data.lower().index(b"content-length:") + 15
            self.missing = int(data[at : data.index(b"\r\n", at)]) - (len(data) - end - 4)
            self.status = data[9:12]
        if not self.missing:
            self.load.seen.setdefault(self.status, array("d")).append(perf_counter() - self.began)
            self.load.idle.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        # A server may close what has been idle for long; what it closes while somebody waits for an answer is broken.
        if self in self.load.idle:
            self.load.idle.remove(self)
        else:
            self.load.broken += 1


class Load:
    def __init__(self, port: int, requests: list[bytes]) -> None:
        self.port = port
        self.requests = requests
        self.idle: list[Client] = []
        self.seen: dict[bytes, array[float]] = {}
        self.sent = self.unsent = self.broken = 0

    async def run(self, rate: float, seconds: float) -> None:
        start = perf_counter()
        while (passed := perf_counter() - start) < seconds:
            due = int(passed * rate) - self.sent - self.unsent
            for _ in range(due):
                if self.idle:
                    self.idle.pop().ask(self.requests[self.sent % len(self.requests)])
                    self.sent += 1
                else:
                    self.unsent += 1
            await asyncio.sleep(TICK_S)
        await asyncio.sleep(1.0)

    async def main(self, rate: float, seconds: float) -> dict[str, object]:
        loop = asyncio.get_running_loop()
        for _ in range(CONNECTIONS):
            await loop.create_connection(lambda: Client(self), "127.0.0.1", self.port)
        await asyncio.sleep(SETTLE_S)
        await self.run(rate, seconds)
        answers = {status.decode(): spread(took) for status, took in self.seen.items()}
        return {"seconds": seconds, "sent": self.sent, "unsent": self.unsent, "broken": self.broken, "answers": answers}


def spread(took: "array[float]") -> dict[str, float]:
    order = sorted(took)
    return {
        "count": len(order),
        **{f"p{share}_ms": order[min(len(order) - 1, len(order) * share // 100)] * 1000 for share in (50, 95, 99)},
    }


def main() -> None:
    port, key, bodies, rate, seconds = sys.argv[1:]
    head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    head += f"authorization: Bearer {key}\r\n"
    requests = [
        f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        for body in Path(bodies).read_bytes().splitlines()[:20_000]
    ]
    print(json.dumps(uvloop.run(Load(int(port), requests).main(float(rate), float(seconds)))))


if __name__ == "__main__":
    main()
