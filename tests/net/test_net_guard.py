"""What the client sends, to whom, and what it will not be talked into: redirects, cookies, proxies, other addresses."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from net.loopback import HOST, OK, Names, Talk, Watch, ask, client_for, polite, run, serving, talking, trust
from turnout.core.errors import EgressRefused, Unreachable
from turnout.net import client as client_module
from turnout.net.client import Client, Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Egress, Origin

KEY = ("authorization", "Bearer sk-of-a")


class TestSent:
    def test_all_of_it(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                await ask(
                    client,
                    server.origin,
                    path="/v1/chat/completions",
                    body=b'{"x": 1}',
                    headers={"content-type": "application/json", "accept": "text/event-stream"},
                    credential=KEY,
                )
                received = server.requests[0]
            assert received.line == "POST /v1/chat/completions HTTP/1.1"
            assert received.body == b'{"x": 1}'
            assert sorted(received.headers) == [
                ("accept", "text/event-stream"),
                ("accept-encoding", "identity"),
                ("authorization", "Bearer sk-of-a"),
                ("content-length", "8"),
                ("content-type", "application/json"),
                ("host", f"{HOST}:{server.port}"),
                ("user-agent", "turnout"),
            ]

        run(main())

    def test_without_a_body(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                await ask(client, server.origin, method="GET")
                await ask(client, server.origin)
            got, posted = server.requests
            assert got.line == "GET / HTTP/1.1"
            assert (got.all("content-length"), got.all("content-type"), got.body) == ([], [], b"")
            assert (posted.all("content-length"), posted.body) == (["0"], b"")

        run(main())

    @pytest.mark.parametrize("size", [1, 65_536, 65_537, 300_000, 3 << 20])
    def test_a_long_body_arrives_whole(self, size: int) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                body = bytes(range(256)) * (size // 256 + 1)
                for _ in range(2):
                    assert await ask(client, server.origin, body=body[:size]) == b"ok"
            assert [one.body == body[:size] for one in server.requests] == [True, True]
            assert [one.all("content-length") for one in server.requests] == [[str(size)]] * 2
            assert [one.all("transfer-encoding") for one in server.requests] == [[], []]
            assert server.connections == 1

        run(main())

    def test_a_credential_replaces_what_a_caller_sent_under_that_name(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                await ask(
                    client,
                    server.origin,
                    headers={"Authorization": "Bearer of the caller", "USER-AGENT": "mine"},
                    credential=KEY,
                )
            assert server.requests[0].all("authorization") == [KEY[1]]
            assert server.requests[0].all("user-agent") == ["mine"]

        run(main())

    def test_a_credential_goes_to_its_own_origin_only(self) -> None:
        async def main() -> None:
            async with serving(polite) as a, serving(polite) as b, client_for(a.origin, b.origin) as client:
                await ask(client, a.origin, credential=KEY)
                await ask(client, b.origin, credential=("x-api-key", "sk-of-b"))
                # Over the same connections, without one.
                await ask(client, a.origin)
                await ask(client, b.origin)
            assert [one.all("authorization") for one in a.requests] == [[KEY[1]], []]
            assert [one.all("x-api-key") for one in a.requests] == [[], []]
            assert [one.all("authorization") for one in b.requests] == [[], []]
            assert [one.all("x-api-key") for one in b.requests] == [["sk-of-b"], []]
            assert (a.connections, b.connections) == (1, 1)

        run(main())

    def test_a_refused_request_sends_nothing(self, watch: Watch) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                for other in (
                    server.origin._replace(scheme="https"),
                    server.origin._replace(port=server.port ^ 1),
                    server.origin._replace(host="localhost"),
                    server.origin._replace(host="127.0.0.2"),
                ):
                    with pytest.raises(EgressRefused, match="not in the configuration"):
                        await ask(client, other, credential=KEY)
                assert server.connections == 0

        run(main())
        assert watch.tried == []


class TestNotTalkedInto:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300, 305])
    def test_a_redirect(self, status: int) -> None:
        async def main() -> None:
            async with serving(polite) as other:

                async def elsewhere(talk: Talk) -> None:
                    await talk.request()
                    head = f"HTTP/1.1 {status} Over there\r\nlocation: {other.origin}/x\r\ncontent-length: 2\r\n\r\nno"
                    await talk.send(head.encode())
                    await talk.gone()

                async with serving(elsewhere) as server, client_for(server.origin, other.origin) as client:
                    request = Request(server.origin, "/", credential=KEY)
                    async with await client.open(request, 5) as response:
                        assert response.status == status
                        assert response.headers["location"] == f"{other.origin}/x"
                        assert await response.read(Deadline.after(5)) == b"no"
                    assert len(server.requests) == 1
                assert other.connections == 0

        run(main())

    def test_a_cookie(self, names: Names) -> None:
        names.say("llm.internal", [HOST])

        async def sweet(talk: Talk) -> None:
            while True:
                await talk.request()
                await talk.send(OK.replace(b"\r\n", b"\r\nset-cookie: a=b; Path=/\r\nset-cookie: c=d\r\n", 1))

        async def main() -> None:
            async with serving(sweet) as server:
                origin = Origin("http", "llm.internal", server.port, private=True)
                async with client_for(origin) as client:
                    for _ in range(3):
                        await ask(client, origin)
            assert [one.all("cookie") for one in server.requests] == [[], [], []]

        run(main())

    def test_a_proxy_or_a_password_from_the_environment(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, watch: Watch
    ) -> None:
        async def main() -> None:
            async with serving(polite) as proxy, talking(polite) as (server, client):
                for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
                    monkeypatch.setenv(name, f"http://{HOST}:{proxy.port}")
                    monkeypatch.setenv(name.upper(), f"http://user:pass@{HOST}:{proxy.port}")
                monkeypatch.delenv("NO_PROXY", raising=False)
                monkeypatch.delenv("no_proxy", raising=False)
                netrc = tmp_path / "netrc"
                netrc.write_text(f"machine {HOST} login me password secret\n")
                netrc.chmod(0o600)
                monkeypatch.setenv("NETRC", str(netrc))
                assert await ask(client, server.origin) == b"ok"
                assert proxy.connections == 0
                assert server.requests[0].line == "POST / HTTP/1.1"
                assert server.requests[0].all("authorization") == []
                assert server.requests[0].all("proxy-authorization") == []

        run(main())
        assert set(watch.tried) == {HOST}

    def test_another_protocol(self) -> None:
        """An upgrade nobody asked for is an answer like any other, on a connection nobody uses again."""

        async def upgrades(talk: Talk) -> None:
            await talk.request()
            await talk.send(b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x81\x05hello")
            await talk.gone()

        async def main() -> None:
            async with talking(upgrades) as (server, client):
                for count in (1, 2):
                    async with await client.open(Request(server.origin, "/"), 5) as response:
                        assert response.status == 101
                    assert server.connections == count

        run(main())


class TestNames:
    PUBLIC = "93.184.216.34"

    def test_a_name_that_leads_to_a_private_address(self, names: Names, watch: Watch) -> None:
        async def main() -> None:
            async with serving(polite) as server:
                for number, addresses in enumerate(
                    (
                        ["127.0.0.1"],
                        [self.PUBLIC, "127.0.0.1"],
                        ["127.0.0.1", self.PUBLIC],
                        ["::1"],
                        ["::ffff:127.0.0.1"],
                    )
                ):
                    names.say(f"n{number}.example", addresses)
                    origin = Origin("http", f"n{number}.example", server.port)
                    async with client_for(origin) as client:
                        for _ in range(2):
                            with pytest.raises(EgressRefused, match="set private = true"):
                                await ask(client, origin, credential=KEY)
                assert server.connections == 0

        run(main())
        assert watch.tried == []

    def test_a_private_name(self, names: Names, watch: Watch) -> None:
        names.say("llm.internal", ["127.0.0.1"])

        async def main() -> None:
            async with serving(polite) as server:
                origin = Origin("http", "llm.internal", server.port, private=True)
                async with client_for(origin) as client:
                    for _ in range(3):
                        assert await ask(client, origin) == b"ok"
                assert server.requests[0].all("host") == [f"llm.internal:{server.port}"]

        run(main())
        assert names.asked == ["llm.internal"]
        assert watch.tried == ["127.0.0.1"]

    @pytest.mark.parametrize("idle", [False, True])
    def test_a_key_goes_to_no_public_address_over_http(
        self, names: Names, monkeypatch: pytest.MonkeyPatch, idle: bool
    ) -> None:
        """A name that was said to be private, and is not: without a key it may be asked, with one it is not."""
        names.say("llm.internal", ["127.0.0.1"])
        monkeypatch.setattr("turnout.net.egress.is_public", lambda address: True)

        async def main() -> None:
            async with serving(polite) as server:
                origin = Origin("http", "llm.internal", server.port, private=True)
                async with client_for(origin) as client:
                    if idle:
                        assert await ask(client, origin) == b"ok"
                    with pytest.raises(EgressRefused, match=r"127\.0\.0\.1, a public address.*plain_http = true"):
                        await ask(client, origin, credential=KEY)
                    assert not any(request.all(KEY[0]) for request in server.requests)
                    assert await ask(client, origin, credential=KEY, plain_http=True) == b"ok"
                assert server.requests[-1].all(KEY[0]) == [KEY[1]]

        run(main())

    def test_localhost(self) -> None:
        async def main() -> None:
            async with serving(polite) as server:
                origin = Origin("http", "localhost", server.port, private=True)
                async with client_for(origin) as client:
                    assert await ask(client, origin) == b"ok"

        run(main())

    @pytest.mark.parametrize("cached", [True, False])
    def test_a_name_that_changes_its_mind(
        self, names: Names, watch: Watch, monkeypatch: pytest.MonkeyPatch, cached: bool
    ) -> None:
        """DNS rebinding: a public address for the check, this machine for the connection. There is no second lookup
        between the two, and a later one is checked like the first."""
        if not cached:
            monkeypatch.setattr(client_module, "NAMES_S", 0)
        names.say("rebind.example", [self.PUBLIC], ["127.0.0.1"])

        async def main() -> None:
            async with serving(polite) as server:
                origin = Origin("http", "rebind.example", server.port)
                async with client_for(origin) as client:
                    with pytest.raises(Unreachable):
                        await ask(client, origin, credential=KEY)
                    assert names.asked == ["rebind.example"]
                    for _ in range(5):
                        with pytest.raises(Unreachable if cached else EgressRefused):
                            await ask(client, origin, credential=KEY)
                assert server.connections == 0

        run(main())
        assert set(watch.tried) == {self.PUBLIC}
        assert len(watch.tried) == (6 if cached else 1)
        watch.strayed.clear()

    def test_answers_in_turns(self, names: Names, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client_module, "NAMES_S", 0)
        names.say("flip.example", *([[self.PUBLIC], ["127.0.0.1"], ["169.254.169.254"], [self.PUBLIC, "10.0.0.1"]] * 5))

        async def main() -> None:
            async with serving(polite) as server:
                origin = Origin("http", "flip.example", server.port)
                async with client_for(origin) as client:
                    for _ in range(20):
                        with pytest.raises((Unreachable, EgressRefused)):
                            await ask(client, origin)
                assert server.connections == 0

        run(main())
        assert watch.tried == [self.PUBLIC] * 5
        watch.strayed.clear()

    def test_many_at_once_ask_once(self, names: Names) -> None:
        """And all of them hear the refusal, also those who only waited for another's answer."""

        names.say("llm.example", ["10.0.0.1"])
        origin = Origin("http", "llm.example", 80)

        async def main() -> None:
            async with client_for(origin) as client:
                found = await asyncio.gather(*(ask(client, origin) for _ in range(50)), return_exceptions=True)
                assert {type(one) for one in found} == {EgressRefused}

        run(main())
        assert len(names.asked) < 5


class TestOtherRules:
    """The configuration is read again while the server runs."""

    def test_what_is_added_can_be_reached_at_once(self, names: Names) -> None:
        names.say("llm.internal", ["127.0.0.1"])

        async def main() -> None:
            async with serving(polite) as server, serving(polite) as other:
                origin = Origin("http", "llm.internal", server.port, private=True)
                added = Origin("http", "llm.internal", other.port, private=True)
                async with client_for(origin) as client:
                    assert await ask(client, origin) == b"ok"
                    with pytest.raises(EgressRefused):
                        await ask(client, added)
                    client.egress.allow(frozenset((origin, added)))
                    assert await ask(client, added) == b"ok"
                    client.egress = Egress(frozenset((added,)))
                    assert await ask(client, added) == b"ok"
                    with pytest.raises(EgressRefused):
                        await ask(client, origin)

        run(main())

    def test_what_is_no_longer_private_is_not_reached_over_old_connections(self, names: Names, watch: Watch) -> None:
        names.say("llm.internal", ["127.0.0.1"])

        async def main() -> None:
            async with serving(polite) as server:
                origin = Origin("http", "llm.internal", server.port, private=True)
                async with client_for(origin) as client:
                    assert await ask(client, origin) == b"ok"
                    client.egress.allow(frozenset((origin._replace(private=False),)))
                    with pytest.raises(EgressRefused):
                        await ask(client, origin)
                    assert len(server.requests) == 1

        run(main())

    def test_what_is_being_read_goes_on(self) -> None:
        async def main() -> None:
            go = asyncio.Event()

            async def slow(talk: Talk) -> None:
                await talk.request()
                await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha")
                await go.wait()
                await talk.send(b"lf")
                await talk.gone()

            async with talking(slow) as (server, client):
                async with await client.open(Request(server.origin, "/"), 5) as response:
                    client.egress.allow(frozenset())
                    go.set()
                    assert await response.read(Deadline.after(5)) == b"half"
                with pytest.raises(EgressRefused):
                    await ask(client, server.origin)

        run(main())

    def test_the_same_rules_keep_the_connections(self) -> None:
        async def main() -> None:
            async with talking(polite) as (server, client):
                for _ in range(5):
                    assert await ask(client, server.origin) == b"ok"
                    client.egress.allow(frozenset((server.origin,)))
                assert server.connections == 1

        run(main())


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of llm.internal, by nobody."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl: apt install openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "certificate.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=llm.internal"
    named = ["-addext", "subjectAltName=DNS:llm.internal", "-keyout", str(key), "-out", str(made)]
    subprocess.run([openssl, *options.split(), *named], check=True, capture_output=True)
    return key, made


class TestTLS:
    def served(self, certificate: tuple[Path, Path], asked: list[str | None]) -> ssl.SSLContext:
        key, made = certificate
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(made, key)
        context.sni_callback = lambda _, name, __: asked.append(name)  # type: ignore[assignment]
        return context

    def attempt(
        self, certificate: tuple[Path, Path], host: str, then: Callable[[Client, Origin], Awaitable[None]]
    ) -> tuple[int, list[str | None]]:
        """How many requests arrived, and which names were asked for."""
        asked: list[str | None] = []

        async def main() -> int:
            async with serving(polite, self.served(certificate, asked)) as server:
                origin = Origin("https", host, server.port, private=True)
                async with client_for(origin) as client:
                    await then(client, origin)
                return len(server.requests)

        return run(main()), asked

    async def fails(self, client: Client, origin: Origin) -> None:
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await ask(client, origin, credential=KEY)

    async def works(self, client: Client, origin: Origin) -> None:
        assert await ask(client, origin, credential=KEY) == b"ok"

    def test_a_certificate_by_nobody(self, certificate: tuple[Path, Path], names: Names) -> None:
        names.say("llm.internal", [HOST])
        assert self.attempt(certificate, "llm.internal", self.fails) == (0, ["llm.internal"])

    def test_of_another_name(
        self, certificate: tuple[Path, Path], names: Names, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trust(certificate, monkeypatch)
        names.say("other.internal", [HOST])
        assert self.attempt(certificate, "other.internal", self.fails)[0] == 0
        assert self.attempt(certificate, HOST, self.fails)[0] == 0

    def test_the_address_is_the_checked_one_and_the_name_is_kept(
        self, certificate: tuple[Path, Path], names: Names, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trust(certificate, monkeypatch)
        names.say("llm.internal", [HOST], ["169.254.169.254"])
        assert self.attempt(certificate, "llm.internal", self.works) == (1, ["llm.internal"])
        assert names.asked == ["llm.internal"]


def test_the_watch_sees_and_stops(watch: Watch) -> None:
    with socket.socket() as one, pytest.raises(OSError, match="stopped by the watch"):
        one.connect(("93.184.216.34", 80))
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("example.com", 80)
    assert watch.strayed == ["93.184.216.34", "example.com"]
    watch.strayed.clear()
