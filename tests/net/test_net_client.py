"""The client against servers that misbehave: every failure has its name, comes in time and leaves nothing open."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from net.loopback import (
    GONE_S,
    HOST,
    OK,
    Names,
    Script,
    Server,
    Talk,
    ask,
    chunks,
    client_for,
    free_port,
    polite,
    run,
    taking,
    talking,
)
from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut, Unreachable
from turnout.net import client as client_module
from turnout.net.client import Client, Request, Response
from turnout.net.deadline import Deadline
from turnout.net.egress import Egress, Origin


def answering(data: bytes, *later: bytes, then: str = "wait") -> Script:
    """Reads a request, sends this, and then waits, closes or resets."""

    async def script(talk: Talk) -> None:
        await talk.request()
        await talk.send(data)
        for piece in later:
            await asyncio.sleep(0.05)
            await talk.send(piece)
        if then == "wait":
            await talk.gone()
        elif then == "reset":
            # What was sent has to arrive first.
            await asyncio.sleep(0.05)
            talk.reset()

    return script


async def deaf(talk: Talk) -> None:
    await talk.gone()


async def rude(talk: Talk) -> None:
    await talk.request()
    talk.reset()


async def curt(talk: Talk) -> None:
    await talk.request()


async def hangs_up(talk: Talk) -> None:
    talk.reset()


async def dripping_head(talk: Talk) -> None:
    await talk.request()
    await talk.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await talk.send(b"x: y\r\n")
        await asyncio.sleep(0.02)


async def endless_head(talk: Talk) -> None:
    await talk.request()
    await talk.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await talk.send(b"x-filler: " + b"y" * 100 + b"\r\n")
        await asyncio.sleep(0)


async def endless_line(talk: Talk) -> None:
    await talk.request()
    await talk.send(b"HTTP/1.1 200 ")
    while True:
        await talk.send(b"y" * 1000)
        await asyncio.sleep(0)


async def endless_continue(talk: Talk) -> None:
    await talk.request()
    while True:
        await talk.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.001)


def head_of(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * size + b"\r\ncontent-length: 2\r\n\r\nok"


async def opened(client: Client, server: Server) -> Response:
    return await client.open(Request(server.origin, "/"), 5)


async def drain(chunks: AsyncIterator[bytes]) -> None:
    async for _ in chunks:
        pass


async def collect(response: Response, into: list[bytes]) -> None:
    async for chunk in chunks(response, 0.3):
        into.append(chunk)  # noqa: PERF401 - what came is kept when the rest does not


class Fault(NamedTuple):
    id: str
    script: Script
    error: type[NetError]
    said: str | None = None


BEFORE = [
    Fault("reset at once", hangs_up, Unreachable),
    Fault("reset before headers", rude, Unreachable),
    Fault("closed before headers", curt, Unreachable, "closed the connection without an answer"),
    Fault("closed within headers", answering(b"HTTP/1.1 200 OK\r\ncontent-le", then="close"), Unreachable),
    Fault("silence", deaf, TimedOut, "no answer within 0.3 s"),
    Fault("dripping headers", dripping_head, TimedOut, "no answer"),
    Fault("nothing but 100 Continue", endless_continue, TimedOut, "no answer"),
    Fault("not HTTP", answering(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), Broken, "not HTTP"),
    Fault("TLS where none was expected", answering(b"\x15\x03\x01\x00\x02\x02\x16" * 3), Broken, "not HTTP"),
    Fault("HTTP/2", answering(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03"), Broken, "not HTTP"),
    Fault("a header of 32 KiB", answering(head_of(32 * 1024)), Broken, "not HTTP"),
    Fault("headers without end", endless_head, Broken, "not HTTP"),
    Fault("a status line without end", endless_line, Broken, "not HTTP"),
    Fault("two lengths", answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"), Broken),
    Fault("a negative length", answering(b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok"), Broken),
    Fault("a NUL in a header", answering(b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n"), Broken),
]

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
TEN = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"


async def dripping_body(talk: Talk) -> None:
    await talk.request()
    await talk.send(CHUNKED)
    while True:
        await talk.send(b"1\r\nx\r\n")
        await asyncio.sleep(0.02)


async def endless_body(talk: Talk) -> None:
    await talk.request()
    await talk.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await talk.send(b"x" * 65536)
        await asyncio.sleep(0)


WITHIN = [
    Fault("cut short", answering(TEN + b"half", then="close"), Broken, "broke off"),
    Fault("reset", answering(TEN + b"half", then="reset"), Broken, "broke off"),
    Fault("cut between chunks", answering(CHUNKED + b"4\r\nhalf\r\n", then="close"), Broken, "broke off"),
    Fault("cut within a chunk", answering(CHUNKED + b"8\r\nhalf", then="close"), Broken, "broke off"),
    Fault("reset between chunks", answering(CHUNKED + b"4\r\nhalf\r\n", then="reset"), Broken, "broke off"),
    Fault("reset without a length", answering(b"HTTP/1.1 200 OK\r\n\r\nhalf", then="reset"), Broken, "broke off"),
    Fault("a chunk that is none", answering(CHUNKED, b"zz\r\nhalf\r\n"), Broken, "broke off"),
    Fault("a chunk longer than it says", answering(CHUNKED, b"2\r\nhalf\r\n"), Broken, "broke off"),
    Fault("stalled at once", answering(TEN), TimedOut, "the answer took too long"),
    Fault("stalled", answering(TEN + b"half"), TimedOut, "the answer took too long"),
    Fault("stalled between chunks", answering(CHUNKED + b"4\r\nhalf\r\n"), TimedOut, "the answer took too long"),
    Fault("stalled within a chunk", answering(CHUNKED + b"8\r\nhalf"), TimedOut, "the answer took too long"),
    Fault("without end", endless_body, Broken, "longer than 1,000,000 bytes"),
]


class TestBeforeAnAnswer:
    def test_nobody_is_there(self) -> None:
        async def main() -> None:
            origin = Origin("http", HOST, free_port(), private=True)
            async with client_for(origin) as client:
                with taking(0, 1), pytest.raises(Unreachable, match=r"127\.0\.0\.1: nothing listens there"):
                    await ask(client, origin)

        run(main())

    @pytest.mark.parametrize("fault", BEFORE, ids=lambda fault: fault.id)
    def test_what_goes_wrong_has_a_name(self, fault: Fault) -> None:
        async def main() -> None:
            async with talking(fault.script) as (server, client):
                with taking(0, 2), pytest.raises(fault.error, match=fault.said) as raised:
                    await client.open(Request(server.origin, "/", b"{}"), 0.3)
                assert str(raised.value).startswith(f"{HOST}: ")
                assert len(str(raised.value)) < 300
                assert str(raised.value).isprintable()

        run(main())

    @pytest.mark.parametrize("script", [deaf, dripping_head, endless_continue])
    def test_no_answer_in_time_and_the_connection_is_gone(self, script: Script) -> None:
        left: list[float] = []

        async def watched(talk: Talk) -> None:
            task = asyncio.ensure_future(script(talk))
            try:
                await task
            finally:
                task.cancel()
                left.append(time.monotonic())

        async def main() -> None:
            async with talking(watched) as (server, client):
                with taking(0.19, 0.2 + GONE_S), pytest.raises(TimedOut):
                    await client.open(Request(server.origin, "/"), 0.2)
                ended = time.monotonic()
                while not left:
                    await asyncio.sleep(0.005)
                assert left[0] - ended < GONE_S

        run(main())

    def test_a_header_just_short_enough(self) -> None:
        async def main() -> None:
            async with talking(answering(head_of(client_module.HEADER_BYTES - 100))) as (server, client):
                assert await ask(client, server.origin) == b"ok"

        run(main())

    def test_connecting_has_a_limit_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that takes the connection and never says a word of TLS is not there, however long one may wait."""
        monkeypatch.setattr(client_module, "CONNECT_S", 0.2)

        async def main() -> None:
            async with talking(deaf) as (server, _):
                origin = server.origin._replace(scheme="https")
                async with client_for(origin) as client:
                    with taking(0.19, 1), pytest.raises(Unreachable, match=r"no connection within 0\.2 s"):
                        await client.open(Request(origin, "/"), 30)

        run(main())

    def test_so_has_a_name_that_takes_long(self, monkeypatch: pytest.MonkeyPatch, names: Names) -> None:
        monkeypatch.setattr(client_module, "CONNECT_S", 0.2)
        names.say("llm.example", ["127.0.0.1"])
        slow = names.getaddrinfo
        monkeypatch.setattr(
            "socket.getaddrinfo",
            lambda host, *rest, **more: (time.sleep(1) if host == "llm.example" else None, slow(host, *rest, **more))[
                1
            ],
        )
        origin = Origin("http", "llm.example", free_port(), private=True)

        async def main() -> None:
            async with client_for(origin) as client:
                for _ in range(2):
                    with taking(0.19, 0.9), pytest.raises(Unreachable, match="no connection within"):
                        await client.open(Request(origin, "/"), 30)
                assert names.asked == []

        run(main())

    def test_no_name_server(self, names: Names) -> None:
        origin = Origin("https", "llm.example", 443)
        names.say("llm.example", socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"))

        async def main() -> None:
            async with client_for(origin) as client:
                for _ in range(3):
                    with pytest.raises(Unreachable, match=r"llm\.example.*no name server answered"):
                        await ask(client, origin)
                # A name that has no address at all, and then one that is back.
                names.say("llm.example", [])
                with pytest.raises(Unreachable, match="no address"):
                    await ask(client, origin)

        run(main())

    def test_a_path_cannot_lead_elsewhere(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                for path in ("", "@evil.example/", ".evil.example/", "0/", "?x", "#x", "\\evil", "v1"):
                    with pytest.raises(EgressRefused):
                        await ask(client, server.origin, path=path)
                assert server.connections == 0
                for path in ("//evil.example/x", "/@evil.example", "/http://evil.example/"):
                    assert await ask(client, server.origin, path=path) == b"ok"
                assert [one.line for one in server.requests] == [
                    "POST //evil.example/x HTTP/1.1",
                    "POST /@evil.example HTTP/1.1",
                    "POST /http://evil.example/ HTTP/1.1",
                ]

        run(main())

    def test_a_header_cannot_smuggle_another(self) -> None:
        """A mistake of the caller's, not of the network's: no breaker should hear of it."""

        async def main() -> None:
            async with talking(polite) as (server, client):
                for headers in ({"x": "a\r\nauthorization: b"}, {"x": "a\nb"}, {"x": "a\0b"}, {"x\r\ny": "a"}):
                    with pytest.raises(ValueError, match=r"(?i)header"):
                        await ask(client, server.origin, headers=headers)
                with pytest.raises(ValueError, match=r"(?i)header"):
                    await ask(client, server.origin, credential=("authorization", "Bearer x\r\ny: z"))
                assert server.requests == []
                assert await ask(client, server.origin) == b"ok"

        run(main())


class TestWithinAnAnswer:
    @pytest.mark.parametrize("fault", WITHIN, ids=lambda fault: fault.id)
    def test_what_goes_wrong_has_a_name(self, fault: Fault) -> None:
        async def main() -> None:
            async with talking(fault.script) as (server, client), await opened(client, server) as response:
                with taking(0, 2), pytest.raises(fault.error, match=fault.said) as raised:
                    await response.read(Deadline.after(0.3 if fault.error is TimedOut else 30), 1_000_000)
                assert str(raised.value).startswith(f"{HOST}: ")
                # And whoever asks again gets another connection.
                server.script = polite
                assert await ask(client, server.origin) == b"ok"
                assert server.connections == 2

        run(main())

    @pytest.mark.parametrize("fault", WITHIN[:-1], ids=lambda fault: fault.id)
    def test_what_came_before_is_not_lost(self, fault: Fault) -> None:
        """A stream that breaks has been relayed up to there."""

        async def main() -> None:
            got: list[bytes] = []
            async with talking(fault.script) as (server, client), await opened(client, server) as response:
                with pytest.raises(fault.error):
                    await collect(response, got)
            expected = {"stalled at once": b"", "a chunk that is none": b"", "a chunk longer than it says": b"ha"}
            assert b"".join(got) == expected.get(fault.id, b"half")

        run(main())

    def test_a_silence_just_short_enough(self) -> None:
        async def main() -> None:
            async with talking(dripping_body) as (server, client), await opened(client, server) as response:
                seen = 0
                async for chunk in chunks(response, 1.0):
                    seen += len(chunk)
                    if seen > 20:
                        break

        run(main())

    def test_dripping_does_not_outlast_the_deadline(self) -> None:
        async def main() -> None:
            async with talking(dripping_body) as (server, client), await opened(client, server) as response:
                with taking(0.29, 0.3 + GONE_S), pytest.raises(TimedOut, match="took too long"):
                    await response.read(Deadline.after(0.3))

        run(main())

    def test_nor_do_pieces(self) -> None:
        async def main() -> None:
            async with talking(dripping_body) as (server, client), await opened(client, server) as response:
                with taking(0.29, 0.3 + GONE_S), pytest.raises(TimedOut, match="took too long"):
                    await drain(chunks(response, 5, Deadline.after(0.3)))
                with taking(0, GONE_S), pytest.raises(TimedOut, match="took too long"):
                    await anext(chunks(response, 5, Deadline.after(-1)))

        run(main())

    def test_nor_does_a_stall_near_its_end(self) -> None:
        """The silence that is allowed is longer than what is left: what is left counts."""

        async def late(talk: Talk) -> None:
            await talk.request()
            await talk.send(TEN)
            await asyncio.sleep(0.25)
            await talk.send(b"half")
            await talk.gone()

        async def main() -> None:
            async with talking(late) as (server, client), await opened(client, server) as response:
                with taking(0.29, 0.3 + GONE_S), pytest.raises(TimedOut):
                    await response.read(Deadline.after(0.3))

        run(main())

    def test_a_deadline_that_has_passed(self) -> None:
        async def main() -> None:
            async with talking(answering(TEN)) as (server, client):
                with pytest.raises(TimedOut):
                    await client.open(Request(server.origin, "/"), 0)
                async with await client.open(Request(server.origin, "/"), 5) as response:
                    with taking(0, GONE_S), pytest.raises(TimedOut):
                        await response.read(Deadline.after(-1))

        run(main())

    @pytest.mark.parametrize(
        ("answer", "status", "body"),
        [
            (OK, 200, b"ok"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, b""),
            (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
            (b"HTTP/1.1 304 Not Modified\r\n\r\n", 304, b""),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + OK, 200, b"ok"),
            (CHUNKED + b"2\r\nok\r\n0\r\n\r\n", 200, b"ok"),
            (CHUNKED + b"1;ext=1\r\no\r\n1\r\nk\r\n0\r\ntrailer: x\r\n\r\n", 200, b"ok"),
            (b"HTTP/1.1 529 \r\ncontent-length: 2\r\n\r\nok", 529, b"ok"),
            (b"HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\ncontent-length: 2\r\n\r\nok", 429, b"ok"),
        ],
    )
    def test_what_goes_right(self, answer: bytes, status: int, body: bytes) -> None:
        async def main() -> None:
            async with talking(answering(answer)) as (server, client), await opened(client, server) as response:
                assert response.status == status
                assert await response.read(Deadline.after(5)) == body
                assert status != 429 or response.headers["retry-after"] == "1"

        run(main())

    def test_an_answer_that_ends_with_its_connection(self) -> None:
        async def main() -> None:
            async with talking(answering(b"HTTP/1.1 200 OK\r\n\r\nok", then="close")) as (server, client):
                assert await ask(client, server.origin) == b"ok"

        run(main())

    def test_exactly_as_long_as_allowed(self) -> None:
        async def main() -> None:
            for size, fits in ((1000, True), (1001, False)):
                answer = f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode() + b"x" * size
                async with talking(answering(answer)) as (server, client):
                    if fits:
                        assert await ask(client, server.origin, limit=1000) == b"x" * size
                    else:
                        with pytest.raises(Broken, match="longer than 1,000 bytes"):
                            await ask(client, server.origin, limit=1000)

        run(main())


def test_a_client_can_be_closed_twice_and_with_nothing_open() -> None:
    async def main() -> None:
        client = Client(Egress())
        await client.close()
        async with talking(polite) as (server, used):
            assert await ask(used, server.origin) == b"ok"
            await used.close()
            await used.close()

    run(main())


def test_closing_ends_what_is_under_way() -> None:
    async def main() -> None:
        async with talking(answering(TEN + b"half")) as (server, client):
            response = await client.open(Request(server.origin, "/"), 5)
            reading = asyncio.create_task(response.read(Deadline.after(30)))
            async with talking(deaf) as (other, _):
                client.egress.allow(frozenset((server.origin, other.origin)))
                opening = asyncio.create_task(client.open(Request(other.origin, "/"), 30))
                await asyncio.sleep(0.1)
                with taking(0, 1):
                    await client.close()
                    with pytest.raises(Unreachable):
                        await opening
                    with pytest.raises(Broken):
                        await reading
            response.close()

    run(main())
