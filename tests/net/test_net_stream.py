"""Streams and connections: ended from either side at any moment, reused when whole, never more than there may be."""

import asyncio
import gc
import gzip
import logging
import random
import socket
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from net.loopback import GONE_S, OK, Script, Server, Talk, ask, chunks, polite, run, taking, talking
from turnout.core.errors import Broken, NetError, TimedOut, Unreachable
from turnout.net import client as client_module
from turnout.net.client import Client, Request, Response
from turnout.net.deadline import Deadline

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def chunk_of(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class LeftStream:
    """A script that begins a stream, and when its client was seen to leave."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.at: list[float] = []

    async def __call__(self, talk: Talk) -> None:
        await talk.request()
        for piece in self.pieces:
            await talk.send(piece)
        self.at.append(await talk.gone())

    async def seen(self, since: float, count: int = 1) -> None:
        while len(self.at) < count:
            await asyncio.sleep(0.002)
            assert time.monotonic() - since < GONE_S
        assert max(self.at) - since < GONE_S


async def collect(response: Response, idle_s: float = 30.0) -> bytes:
    return b"".join([chunk async for chunk in chunks(response, idle_s)])


@asynccontextmanager
async def opening(client: Client, server: Server) -> AsyncIterator[Response]:
    async with await client.open(Request(server.origin, "/"), 5) as response:
        yield response


@asynccontextmanager
async def reading(client: Client, server: Server) -> AsyncIterator[tuple[Response, asyncio.Task[bytes]]]:
    """Somebody else is reading it."""
    async with opening(client, server) as response:
        task = asyncio.create_task(collect(response))
        await asyncio.sleep(0.05)
        yield response, task
        task.cancel()


BEGUN = [
    pytest.param((STREAM,), id="before the first piece"),
    pytest.param((STREAM, chunk_of(b"data: x\n\n")), id="after it"),
    pytest.param((STREAM, b"10\r\nhalf"), id="within one"),
    pytest.param((b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",), id="with a length"),
    pytest.param((b"HTTP/1.1 200 OK\r\n\r\nhalf",), id="without one"),
]


class TestClosedByUs:
    @pytest.mark.parametrize("pieces", BEGUN)
    def test_whoever_reads_hears_of_it_at_once(self, pieces: tuple[bytes, ...]) -> None:
        async def main() -> None:
            left = LeftStream(*pieces)
            async with talking(left) as (server, client), reading(client, server) as (response, task):
                closed = time.monotonic()
                response.close()
                with taking(0, GONE_S), pytest.raises(Broken, match="closed by us"):
                    await task
                await left.seen(closed)

        run(main())

    @pytest.mark.parametrize("pieces", BEGUN)
    def test_also_between_two_pieces(self, pieces: tuple[bytes, ...]) -> None:
        """Closed while the reader is busy with what it has: its next step is the last."""

        async def main() -> None:
            left = LeftStream(*pieces)
            async with talking(left) as (server, client), opening(client, server) as response:
                body = chunks(response, 30)
                if b"half" in pieces[-1]:
                    assert await anext(body) == b"half"
                response.close()
                with taking(0, GONE_S), pytest.raises(Broken, match="closed by us"):
                    await anext(body)
                with pytest.raises(Broken, match="closed by us"):
                    await anext(chunks(response, 30))

        run(main())

    def test_also_with_everything_here_but_unread(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                async with await client.open(Request(server.origin, "/"), 5) as response:
                    await asyncio.sleep(0.05)
                    response.close()
                    with pytest.raises(Broken, match="closed by us"):
                        await response.read(Deadline.after(5))
                assert await ask(client, server.origin) == b"ok"

        run(main())

    def test_twice_and_after_the_end(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                async with await client.open(Request(server.origin, "/"), 5) as response:
                    assert await response.read(Deadline.after(5)) == b"ok"
                    response.close()
                    response.close()
                response.close()
                assert await ask(client, server.origin) == b"ok"
                assert server.connections == 1

        run(main())

    def test_a_hundred_at_once(self) -> None:
        """The gateway cuts every stream when its time to drain is up."""

        async def main() -> None:
            left = LeftStream(STREAM, chunk_of(b"data: x\n\n"))
            async with talking(left) as (server, client):
                request = Request(server.origin, "/")
                responses = await asyncio.gather(*(client.open(request, 5) for _ in range(100)))
                tasks = [asyncio.create_task(collect(response)) for response in responses]
                await asyncio.sleep(0.1)
                closed = time.monotonic()
                for response in responses:
                    response.close()
                found = await asyncio.gather(*tasks, return_exceptions=True)
                assert time.monotonic() - closed < GONE_S
                assert {type(one) for one in found} == {Broken}
                await left.seen(closed, 100)

        run(main())

    def test_nothing_of_a_stream_that_was_cut_is_kept(self) -> None:
        """One error object for all of them would hold the frames of every one that ever raised it."""

        async def main() -> None:
            left = LeftStream(STREAM)
            async with talking(left) as (server, client):
                depths = []
                for _ in range(20):
                    async with reading(client, server) as (response, task):
                        response.close()
                        with pytest.raises(Broken) as raised:
                            await task
                    depth, trace = 0, raised.value.__cause__ and raised.value.__cause__.__traceback__
                    while trace is not None:
                        depth, trace = depth + 1, trace.tb_next
                    depths.append(depth)
                    del raised
                assert len(set(depths)) == 1
                del response, task
                gc.collect()
                # Of twenty, perhaps the last.
                assert sum(isinstance(one, Response) for one in gc.get_objects()) <= 1

        run(main())


class TestCancelled:
    @pytest.mark.parametrize("pieces", BEGUN)
    def test_the_connection_is_gone_with_the_reader(self, pieces: tuple[bytes, ...]) -> None:
        async def main() -> None:
            left = LeftStream(*pieces)
            async with talking(left) as (server, client):

                async def whole() -> bytes:
                    return await ask(client, server.origin, wait_s=30)

                task = asyncio.create_task(whole())
                await asyncio.sleep(0.05)
                cancelled = time.monotonic()
                task.cancel()
                with taking(0, GONE_S), pytest.raises(asyncio.CancelledError):
                    await task
                await left.seen(cancelled)

        run(main())

    def test_so_it_is_before_an_answer(self) -> None:
        async def main() -> None:
            left = LeftStream()
            async with talking(left) as (server, client):
                task = asyncio.create_task(ask(client, server.origin, wait_s=30))
                await asyncio.sleep(0.05)
                cancelled = time.monotonic()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await left.seen(cancelled)

        run(main())

    def test_at_any_moment(self) -> None:
        """A stream of two hundred pieces, cancelled at a hundred random times: no connection is left, none is lost."""
        rng = random.Random(7)
        ended: list[float] = []

        async def long(talk: Talk) -> None:
            try:
                await talk.request()
                await talk.send(STREAM)
                for _ in range(200):
                    await talk.send(chunk_of(b"data: x\n\n"))
                    await asyncio.sleep(0.001)
                await talk.send(LAST)
                await talk.gone()
            finally:
                ended.append(time.monotonic())

        async def main() -> None:
            async with talking(long) as (server, client):

                async def one(wait: float) -> None:
                    task = asyncio.create_task(ask(client, server.origin))
                    await asyncio.sleep(wait)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

                await asyncio.gather(*(one(rng.uniform(0, 0.3)) for _ in range(100)))
                await client.close()
                done = time.monotonic()
                while len(ended) < server.connections:
                    await asyncio.sleep(0.005)
                    assert time.monotonic() - done < 2
                assert max(ended) - done < GONE_S

        run(main())

    @pytest.mark.parametrize("how", ["cancelled", "timed out"])
    def test_what_was_not_sent_never_is(self, how: str) -> None:
        """A peer that does not read: the connection does not wait for it, and the request never becomes whole."""
        got: list[int] = []

        async def slow_reader(talk: Talk) -> None:
            talk.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(0.5)
            talk.writer.transport.resume_reading()  # type: ignore[attr-defined]
            count = 0
            try:
                while data := await talk.reader.read(65536):
                    count += len(data)
            finally:
                got.append(count)

        async def main() -> None:
            async with talking(slow_reader) as (server, client):
                body = b"x" * (32 << 20)
                if how == "timed out":
                    with taking(0.2, 0.2 + GONE_S), pytest.raises(TimedOut):
                        await client.open(Request(server.origin, "/", body), 0.2)
                else:
                    task = asyncio.create_task(client.open(Request(server.origin, "/", body), 30))
                    await asyncio.sleep(0.2)
                    task.cancel()
                    with taking(0, GONE_S), pytest.raises(asyncio.CancelledError):
                        await task
                await closed_to(server.port)
                while not got:
                    await asyncio.sleep(0.01)
                assert got[0] < len(body) / 2

        run(main())

    def test_an_answer_before_the_request_was_whole(self) -> None:
        """413 and the like: the answer is read, the rest of the request is not sent."""

        async def hasty(talk: Talk) -> None:
            await talk.reader.readuntil(b"\r\n\r\n")
            await talk.send(b"HTTP/1.1 413 Too large\r\ncontent-length: 2\r\n\r\nno")
            await asyncio.sleep(0.5)

        async def main() -> None:
            async with talking(hasty) as (server, client):
                request = Request(server.origin, "/", b"x" * (32 << 20))
                async with await client.open(request, 5) as response:
                    assert response.status == 413
                    assert await response.read(Deadline.after(5)) == b"no"
                await closed_to(server.port)

        run(main())


async def closed_to(port: int) -> None:
    """No socket of ours leads to that port, in a moment."""
    since = time.monotonic()
    while any(leads_to(one, port) for one in gc.get_objects() if isinstance(one, socket.socket)):
        assert time.monotonic() - since < GONE_S
        await asyncio.sleep(0.005)


def leads_to(one: socket.socket, port: int) -> bool:
    with suppress(OSError):
        return one.family == socket.AF_INET and one.fileno() != -1 and one.getpeername()[1] == port
    return False


class TestReused:
    @pytest.mark.parametrize(
        "answer",
        [
            OK,
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
            STREAM + chunk_of(b"data: x\n\n") + LAST,
        ],
    )
    def test_after_an_answer_that_was_read(self, answer: bytes) -> None:
        async def always(talk: Talk) -> None:
            while True:
                await talk.request()
                await talk.send(answer)

        async def main() -> None:
            async with talking(always) as (server, client):
                for _ in range(20):
                    await ask(client, server.origin)
                assert server.connections == 1

        run(main())

    def test_a_connection_does_not_remember_its_answers(self) -> None:
        async def always(talk: Talk) -> None:
            while True:
                await talk.request()
                await talk.send(STREAM)
                await asyncio.sleep(0.002)
                await talk.send(chunk_of(b"data: x\n\n") + LAST)

        async def main() -> None:
            async with talking(always) as (server, client):
                for _ in range(50):
                    await ask(client, server.origin)
                assert server.connections == 1
                gc.collect()
                assert sum(isinstance(one, Response) for one in gc.get_objects()) <= 1

        run(main())

    def test_a_whole_answer_survives_its_connection(self) -> None:
        """All of it is here and nobody has read it yet when the connection is torn."""

        async def torn(talk: Talk) -> None:
            await talk.request()
            await talk.send(STREAM)
            await asyncio.sleep(0.05)
            await talk.send(chunk_of(b"data: x\n\n") + LAST)
            await asyncio.sleep(0.05)
            talk.reset()

        async def main() -> None:
            async with talking(torn) as (server, client), opening(client, server) as response:
                await asyncio.sleep(0.2)
                assert await collect(response) == b"data: x\n\n"

        run(main())

    def test_not_after_one_that_was_not(self) -> None:
        async def main() -> None:
            left = LeftStream(STREAM, chunk_of(b"data: x\n\n"))
            async with talking(left) as (server, client):
                for count in range(1, 4):
                    async with await client.open(Request(server.origin, "/"), 5) as response:
                        assert await anext(chunks(response, 5)) == b"data: x\n\n"
                    assert server.connections == count

        run(main())

    @pytest.mark.parametrize("header", [b"connection: close", b"Connection: Close"])
    def test_not_if_the_server_says_so(self, header: bytes) -> None:
        async def once(talk: Talk) -> None:
            await talk.request()
            await talk.send(OK.replace(b"\r\n", b"\r\n" + header + b"\r\n", 1))
            await talk.gone()

        async def main() -> None:
            async with talking(once) as (server, client):
                for count in range(1, 4):
                    assert await ask(client, server.origin) == b"ok"
                    assert server.connections == count

        run(main())

    def test_not_if_it_has_gone(self, caplog: pytest.LogCaptureFixture) -> None:
        """Closed or torn while nobody used it: neither an error nor a line in a log."""
        ways = iter(("close", "reset", "close", "reset"))

        async def once(talk: Talk) -> None:
            await talk.request()
            await talk.send(OK)
            await asyncio.sleep(0.02)
            if next(ways) == "reset":
                talk.reset()

        async def main() -> None:
            async with talking(once) as (server, client):
                for count in range(1, 5):
                    assert await ask(client, server.origin) == b"ok"
                    await asyncio.sleep(0.1)
                    assert server.connections == count

        with caplog.at_level(logging.WARNING):
            run(main())
            gc.collect()
        assert [one for one in caplog.records if "Executing" not in one.getMessage()] == []

    @pytest.mark.parametrize("pause", [0.0, 0.05])
    @pytest.mark.parametrize(
        "stray",
        [
            b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison",
            b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoi",
            b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\npoison\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-le",
            b"poison",
        ],
    )
    def test_an_answer_nobody_asked_for_is_nobodys_answer(self, stray: bytes, pause: float) -> None:
        """Sent after the answer to one caller, it must not be taken for the answer to the next one's question."""

        spoken: list[Talk] = []

        async def chatty(talk: Talk) -> None:
            try:
                await talk.request()
                if pause:
                    await talk.send(OK)
                    await asyncio.sleep(pause)
                    await talk.send(stray)
                else:
                    await talk.send(OK + stray)
            finally:
                spoken.append(talk)
            await polite(talk)

        async def main() -> None:
            async with talking(chatty) as (server, client):
                for _ in range(6):
                    with suppress(NetError):
                        assert await ask(client, server.origin, wait_s=0.3) == b"ok"
                    # What comes while the next request is under way cannot be told from its answer; this one is
                    # here before that. The loop reads what has come before it ends a sleep.
                    while len(spoken) < server.connections:
                        await asyncio.sleep(0.005)
                    await asyncio.sleep(0.02)

        run(main())

    def test_no_more_connections_than_there_may_be(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client_module, "CONNECTIONS", 4)
        most = now = 0

        async def slow(talk: Talk) -> None:
            nonlocal most, now
            while True:
                await talk.request()
                now += 1
                most = max(most, now)
                await asyncio.sleep(0.02)
                now -= 1
                await talk.send(OK)

        async def main() -> None:
            async with talking(slow) as (server, client):
                found = await asyncio.gather(*(ask(client, server.origin) for _ in range(40)))
                assert found == [b"ok"] * 40
                assert most == 4
                assert server.connections == 4

        run(main())

    def test_waiting_for_one_has_its_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client_module, "CONNECTIONS", 2)
        monkeypatch.setattr(client_module, "CONNECT_S", 0.2)

        async def main() -> None:
            left = LeftStream(STREAM)
            async with talking(left) as (server, client):
                request = Request(server.origin, "/")
                held = [await client.open(request, 5) for _ in range(2)]
                with taking(0.19, 0.2 + GONE_S), pytest.raises(Unreachable, match=r"no connection within 0\.2 s"):
                    await client.open(request, 30)
                # One that is given back goes to the next.
                waiting = asyncio.create_task(client.open(request, 30))
                await asyncio.sleep(0.05)
                held.pop().close()
                held.append(await waiting)
                # Callers who gave up while they waited took nothing with them.
                for _ in range(20):
                    with pytest.raises(TimedOut):
                        await client.open(request, 0.01)
                for one in held:
                    one.close()
                held = [await client.open(request, 5) for _ in range(2)]
                for one in held:
                    one.close()

        run(main())


class TestPressure:
    def test_who_reads_slowly_is_sent_slowly(self) -> None:
        sent = 0

        async def firehose(talk: Talk) -> None:
            nonlocal sent
            await talk.request()
            await talk.send(STREAM)
            while True:
                await talk.send(chunk_of(b"x" * 65536))
                sent += 65536

        async def main() -> None:
            async with talking(firehose) as (server, client), opening(client, server) as response:
                body = chunks(response, 5)
                await anext(body)
                await asyncio.sleep(0.3)
                once = sent
                await asyncio.sleep(0.3)
                # The kernel's buffers are full, and ours hold little.
                assert sent - once <= 65536
                assert sent < 16 << 20

        run(main())


def encoded(encoding: bytes, data: bytes) -> Script:
    async def script(talk: Talk) -> None:
        while True:
            await talk.request()
            head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (encoding, len(data))
            await talk.send(head + data)

    return script


class TestEncoded:
    """T-SSRF-4: compressed answers are not asked for and not taken, so no bomb is ever inflated."""

    ZIPPED = gzip.compress(b"\0" * (16 << 20), 9)

    @pytest.mark.parametrize("encoding", [b"identity", b"", b" Identity "])
    def test_as_it_is(self, encoding: bytes) -> None:
        async def main() -> None:
            async with talking(encoded(encoding, self.ZIPPED)) as (server, client):
                for _ in range(2):
                    assert await ask(client, server.origin) == self.ZIPPED
                assert server.requests[0].all("accept-encoding") == ["identity"]

        run(main())

    @pytest.mark.parametrize(
        "encoding",
        [
            *(b"gzip", b"GZIP", b" gzip ", b"x-gzip", b"deflate", b"br", b"zstd", b"compress", b"nonsense"),
            *(b"gzip, gzip", b"identity, gzip", b"identity\r\ncontent-encoding: gzip", b"\r\ncontent-encoding: br"),
        ],
    )
    def test_nothing_else(self, encoding: bytes) -> None:
        async def main() -> None:
            async with talking(encoded(encoding, self.ZIPPED)) as (server, client):
                tracemalloc.start()
                try:
                    for _ in range(3):
                        with taking(0, 1), pytest.raises(Broken, match="the answer is encoded"):
                            await ask(client, server.origin)
                    peak = tracemalloc.get_traced_memory()[1]
                finally:
                    tracemalloc.stop()
                assert peak < 2 << 20

        run(main())

    def test_a_stream_that_is_encoded_is_closed(self) -> None:
        async def main() -> None:
            left = LeftStream(STREAM.replace(b"\r\n", b"\r\ncontent-encoding: gzip\r\n", 1))
            async with talking(left) as (server, client):
                with pytest.raises(Broken, match="encoded"):
                    await client.open(Request(server.origin, "/"), 5)
                await left.seen(time.monotonic())

        run(main())
