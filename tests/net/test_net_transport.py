"""What a transport promises its client: whether a request went out, the way through a proxy, and its double."""

import asyncio
import base64
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from net.loopback import (
    GONE_S,
    HOST,
    OK,
    Names,
    ProxyDouble,
    Script,
    Talk,
    Watch,
    ask,
    chunks,
    client_for,
    free_port,
    polite,
    run,
    serving,
    talking,
    trust,
)
from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut, Unreachable
from turnout.net import client as client_module
from turnout.net.client import Client, Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Egress, Origin, Proxy, proxy_of
from turnout.testing import Fault, Reply, ScriptedTransport

KEY = ("authorization", "Bearer sk-of-a")


async def silent(talk: Talk) -> None:
    await talk.request()
    await talk.gone()


async def torn(talk: Talk) -> None:
    await talk.request()
    talk.reset()


async def nonsense(talk: Talk) -> None:
    await talk.request()
    await talk.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await talk.gone()


async def huge_head(talk: Talk) -> None:
    await talk.request()
    lines = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(17))
    await talk.send(b"HTTP/1.1 200 OK\r\n" + lines + b"content-length: 2\r\n\r\nok")
    await talk.gone()


async def zipped(talk: Talk) -> None:
    await talk.request()
    await talk.send(OK.replace(b"\r\n", b"\r\ncontent-encoding: gzip\r\n", 1))
    await talk.gone()


class SentCase(NamedTuple):
    id: str
    script: Script
    error: type[NetError]


SENT = [
    SentCase("silence", silent, TimedOut),
    SentCase("a reset", torn, Unreachable),
    SentCase("not HTTP", nonsense, Broken),
    SentCase("headers of 17 KB in lines of 1 KB", huge_head, Broken),
    SentCase("an encoding", zipped, Broken),
]


class TestWasSent:
    """The gateway books what a provider may charge for by it."""

    @pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
    def test_once_there_was_a_connection(self, case: SentCase) -> None:
        async def main() -> None:
            async with talking(case.script) as (server, client):
                with pytest.raises(case.error) as raised:
                    await client.open(Request(server.origin, "/", b"{}", credential=KEY), 0.3)
                assert raised.value.was_sent
                assert KEY[1] not in str(raised.value)

        run(main())

    def test_not_without_one(self, names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
        names.say("llm.example", OSError("no such name"))
        slow = names.getaddrinfo

        def later(host: str, *rest: int, **more: int) -> object:
            time.sleep(0.3 if host == "slow.example" else 0)
            return slow(host, *rest, **more)

        monkeypatch.setattr("socket.getaddrinfo", later)
        names.say("slow.example", [HOST])

        async def main() -> None:
            async with serving(silent) as server:
                origins = {
                    "nobody": (Origin("http", HOST, free_port(), private=True), Unreachable, 5.0),
                    "no name": (Origin("http", "llm.example", 80), Unreachable, 5.0),
                    "a name, late": (Origin("http", "slow.example", server.port, private=True), TimedOut, 0.1),
                    "no TLS": (server.origin._replace(scheme="https"), TimedOut, 0.1),
                    "refused": (Origin("http", "slow.example", 80), EgressRefused, 5.0),
                }
                for origin, error, wait_s in origins.values():
                    async with client_for(origin) as client:
                        with pytest.raises(error) as raised:
                            await client.open(Request(origin, "/", credential=KEY), wait_s)
                        assert not raised.value.was_sent
                assert server.requests == []

        run(main())


class TestOtherRules:
    def test_reloads_leave_no_pools_behind(self) -> None:
        """A server is reloaded a thousand times while one stream goes on."""

        async def main() -> None:
            go = asyncio.Event()

            async def slow(talk: Talk) -> None:
                await talk.request()
                await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha")
                await go.wait()
                await talk.send(b"lf")
                await talk.gone()

            async with (
                talking(slow) as (server, client),
                serving(polite) as other,
                await client.open(Request(server.origin, "/"), 5) as response,
            ):
                for number in range(1, 50):
                    extra = Origin("http", "llm.example", number)
                    client.egress.allow(frozenset((server.origin, other.origin, extra)))
                    assert await ask(client, other.origin) == b"ok"
                # A connection for each set of rules, each gone with its rules but for the last.
                assert other.connections == 49
                await asyncio.sleep(0.05)
                assert len(other._tasks) <= 1
                go.set()
                assert await response.read(Deadline.after(5)) == b"half"

        run(main())


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of llm.example, by itself."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl: apt install openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "certificate.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=llm.example"
    named = ["-addext", "subjectAltName=DNS:llm.example", "-keyout", str(key), "-out", str(made)]
    subprocess.run([openssl, *options.split(), *named], check=True, capture_output=True)
    return key, made


def serving_tls(certified: tuple[Path, Path], asked: list[str | None]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certified[1], certified[0])
    context.sni_callback = lambda _, name, __: asked.append(name)  # type: ignore[assignment]
    return context


TARGET = Origin("https", "llm.example", 443)


class TestProxy:
    """A company's proxy: what is not private goes through it, and it resolves the names."""

    def test_a_tunnel(
        self, certified: tuple[Path, Path], names: Names, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trust(certified, monkeypatch)
        asked: list[str | None] = []

        async def main() -> None:
            async with serving(polite, serving_tls(certified, asked)) as server:
                double = ProxyDouble({"llm.example": server})
                async with serving(double) as proxy:
                    client = Client(Egress(frozenset((TARGET,)), Proxy(proxy.origin)))
                    for _ in range(3):
                        assert await ask(client, TARGET, credential=KEY) == b"ok"
                    await client.close()
                assert [one.line for one in double.heads] == ["CONNECT llm.example:443 HTTP/1.1"]
                # What the proxy may read has no credential; what the host reads has nothing of the proxy's.
                assert double.heads[0].all("authorization") == []
                assert [one.all("authorization") for one in server.requests] == [[KEY[1]]] * 3
                assert server.requests[0].line == "POST / HTTP/1.1"
                assert asked == ["llm.example"]

        run(main())
        assert names.asked == []
        assert set(watch.tried) == {HOST}

    def test_a_certificate_counts_behind_it_too(self, certified: tuple[Path, Path]) -> None:
        async def main() -> None:
            async with serving(polite, serving_tls(certified, [])) as server:
                async with serving(ProxyDouble({"llm.example": server})) as proxy:
                    client = Client(Egress(frozenset((TARGET,)), Proxy(proxy.origin)))
                    with pytest.raises(Unreachable, match=r"(?i)certificate") as raised:
                        await ask(client, TARGET, credential=KEY)
                    assert not raised.value.was_sent
                    await client.close()
                assert server.requests == []

        run(main())

    def test_without_tls(self) -> None:
        async def main() -> None:
            origin = Origin("http", "llm.example", 8080)
            async with serving(polite) as server:
                double = ProxyDouble({"llm.example": server})
                async with serving(double) as proxy:
                    client = Client(Egress(frozenset((origin,)), Proxy(proxy.origin)))
                    assert await ask(client, origin, path="/v1/x") == b"ok"
                    await client.close()
                assert [one.line for one in double.heads] == ["POST http://llm.example:8080/v1/x HTTP/1.1"]
                assert double.heads[0].all("host") == ["llm.example:8080"]

        run(main())

    def test_what_is_private_goes_straight(self, names: Names) -> None:
        names.say("llm.internal", [HOST])

        async def main() -> None:
            async with serving(polite) as server, serving(ProxyDouble({})) as proxy:
                named = Origin("http", "llm.internal", server.port, private=True)
                client = Client(Egress(frozenset((server.origin, named)), Proxy(proxy.origin)))
                assert await ask(client, server.origin) == b"ok"
                assert await ask(client, named) == b"ok"
                await client.close()
                assert proxy.connections == 0

        run(main())

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_a_password(self, certified: tuple[Path, Path], scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
        trust(certified, monkeypatch)
        login = "Basic " + base64.b64encode("me:s3cret-wörd@x".encode()).decode()
        origin = Origin(scheme, "llm.example", 443)

        async def main() -> None:
            async with serving(polite, serving_tls(certified, []) if scheme == "https" else None) as server:
                double = ProxyDouble({"llm.example": server}, login)
                async with serving(double) as proxy:
                    right = proxy_of(f"http://me:s3cret-w%C3%B6rd%40x@{HOST}:{proxy.port}")
                    assert right.origin == proxy.origin
                    assert "s3cret" not in f"{right} {right!r}"
                    client = Client(Egress(frozenset((origin,)), right))
                    assert await ask(client, origin) == b"ok"
                    await client.close()
                    assert double.heads[-1].all("proxy-authorization") == [login]
                    assert [one.all("proxy-authorization") for one in server.requests] == [[]] * len(server.requests)
                    if scheme == "https":
                        wrong = Client(Egress(frozenset((origin,)), right._replace(login="Basic s3cret-wrong")))
                        with pytest.raises(Unreachable, match="the proxy answered 407") as raised:
                            await ask(wrong, origin, credential=KEY)
                        assert not raised.value.was_sent
                        assert "s3cret" not in str(raised.value)
                        await wrong.close()

        run(main())

    def test_a_proxy_that_refuses_or_is_not_there(self) -> None:
        async def main() -> None:
            async with serving(ProxyDouble({})) as proxy:
                for origin, said in (
                    (proxy.origin, "the proxy answered 403"),
                    (free(), "to the proxy: nothing listens"),
                ):
                    client = Client(Egress(frozenset((TARGET,)), Proxy(origin)))
                    with pytest.raises(Unreachable, match=said) as raised:
                        await ask(client, TARGET, credential=KEY)
                    assert not raised.value.was_sent
                    await client.close()

        run(main())

    def test_the_guard_holds_by_name(self, names: Names, watch: Watch) -> None:
        """What is not configured is refused before the proxy hears of it, and so are addresses that are for nobody."""
        metadata = Origin("http", "169.254.169.254", 80, private=True)
        private = Origin("http", "10.1.2.3", 80)

        async def main() -> None:
            async with serving(ProxyDouble({})) as proxy:
                client = Client(Egress(frozenset((TARGET, metadata, private)), Proxy(proxy.origin)))
                others = (TARGET._replace(host="evil.example"), TARGET._replace(port=444), metadata, private)
                for origin in others:
                    with pytest.raises(EgressRefused):
                        await ask(client, origin, credential=KEY)
                await client.close()
                assert proxy.connections == 0

        run(main())
        assert (names.asked, watch.tried) == ([], [])

    def test_nor_may_the_proxy_be_anywhere(self, names: Names, watch: Watch) -> None:
        names.say("proxy.example", ["169.254.169.254"])

        async def main() -> None:
            client = Client(Egress(frozenset((TARGET,)), proxy_of("http://proxy.example:3128")))
            with pytest.raises(EgressRefused, match="metadata"):
                await ask(client, TARGET)
            await client.close()

        run(main())
        assert watch.tried == []

    def test_whoever_leaves_leaves_the_proxy_too(
        self, certified: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trust(certified, monkeypatch)

        async def main() -> None:
            async with serving(silent, serving_tls(certified, [])) as server:
                double = ProxyDouble({"llm.example": server})
                async with serving(double) as proxy:
                    client = Client(Egress(frozenset((TARGET,)), Proxy(proxy.origin)))
                    task = asyncio.create_task(ask(client, TARGET, wait_s=30))
                    while not server.requests:
                        await asyncio.sleep(0.005)
                    left = time.monotonic()
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    while not double.left:
                        await asyncio.sleep(0.005)
                        assert time.monotonic() - left < GONE_S
                    await client.close()

        run(main())

    @pytest.mark.parametrize(
        "url",
        [
            *(
                "",
                "proxy",
                "https://proxy.example:3128",
                "socks5://proxy.example:1080",
                "ftp://me:s3cret@proxy.example",
            ),
            *("http://me:s3cret@", "http://me:s3cret@169.254.169.254:80", "https://me:s3cret@proxy.example"),
        ],
    )
    def test_no_proxy(self, url: str) -> None:
        with pytest.raises(EgressRefused) as raised:
            proxy_of(url)
        assert "s3cret" not in str(raised.value)


def free() -> Origin:
    return Origin("http", HOST, free_port(), private=True)


class TestDouble:
    """A transport with no socket under it."""

    def test_it_answers_as_it_is_told(self, watch: Watch) -> None:
        double = ScriptedTransport(
            [
                Reply(body=b"whole", headers={"content-type": "text/plain"}),
                Reply(["a", "b"], status=503, headers={"retry-after": "1"}),
                Reply(body=b"half", fault=Fault("reset")),
                Unreachable("llm.example: gone"),
                Reply(body=b"zip", headers={"content-encoding": "gzip"}),
                Reply(delay_s=30.0),
            ]
        )

        async def main() -> None:
            client = Client(Egress(frozenset((TARGET,))), double)
            request = Request(TARGET, "/v1", b"{}", headers={"Authorization": "mine"}, credential=KEY)
            async with await client.open(request, 5) as response:
                assert await response.read(Deadline.after(5)) == b"whole"
            async with await client.open(request, 5) as response:
                assert (response.status, response.headers["retry-after"]) == (503, "1")
                assert [chunk async for chunk in chunks(response, 5)] == [b"a", b"b"]
            async with await client.open(request, 5) as response:
                with pytest.raises(Broken, match="broke off"):
                    await response.read(Deadline.after(5))
            for error in (Unreachable, Broken):
                with pytest.raises(error):
                    await client.open(request, 5)
            for _ in range(2):
                with pytest.raises(TimedOut, match=r"no answer within 0\.01 s") as raised:
                    await client.open(request, 0.01)
                assert raised.value.was_sent
            with pytest.raises(EgressRefused):
                await client.open(request._replace(origin=TARGET._replace(port=1)), 5)
            assert all(one.closed for one in double.exchanges)
            await client.close()

        asyncio.run(main())
        assert double.closed
        assert len(double.requests) == 7
        sent = double.requests[0]
        assert (sent.headers["authorization"], sent.credential) == (KEY[1], None)
        assert watch.tried == []

    def test_a_reader_hears_that_it_was_closed(self) -> None:
        async def main() -> None:
            client = Client(Egress(frozenset((TARGET,))), ScriptedTransport())
            async with await client.open(Request(TARGET, "/"), 5) as response:
                response.close()
                with pytest.raises(Broken, match="closed by us"):
                    await anext(chunks(response, 5))

        asyncio.run(main())

    def test_an_empty_script_says_nothing(self) -> None:
        with pytest.raises(ValueError, match="an empty script"):
            ScriptedTransport([])


def test_limits_are_where_they_are_promised() -> None:
    assert (client_module.CONNECT_S, client_module.CONNECTIONS, client_module.HEADER_BYTES) == (2.0, 512, 16 * 1024)
