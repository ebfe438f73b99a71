"""The public web: what is read of it, and that nothing else is ever reached, however it is spelled or led to."""

import asyncio
import gzip
import json
import os
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from net.loopback import Names, Talk, Watch, client_for, run, serving
from net.test_net_egress import DISGUISED, PRIVATE
from turnout.core.errors import Broken, EgressRefused, NetError
from turnout.net.client import Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Origin, origin_of, proxy_of
from turnout.net.inflate import ENCODINGS, inflate
from turnout.net.public import PublicEgress, PublicWeb, place_of
from turnout.testing import Reply, ScriptedTransport

DATA = Path(os.environ.get("TURNOUT_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
METADATA_URL = "http://169.254.169.254/latest/meta-data/"


def payloads() -> list[str]:
    """Addresses that others collected; the folder of labelled data is not part of the project."""
    file = DATA / "payloads" / "ssrf.jsonl"
    if not file.is_file():
        return []
    return [json.loads(line)["payload"] for line in file.read_text(encoding="utf-8").split("\n") if line]


async def get(web: PublicWeb, url: str, limit: int = 1 << 20) -> bytes:
    try:
        return (await web.get(url, Deadline.after(2.0), limit)).body
    finally:
        await web.close()


def spelled(host: str) -> list[str]:
    shown = f"[{host}]" if ":" in host else host
    return [f"http://{shown}/", f"https://{shown}/x?y=1", f"HTTP://{shown}:80", f"http://{shown}/#@site.example"]


class TestNothingPrivate:
    def test_no_spelling_is_opened(self, watch: Watch) -> None:
        urls = [url for host in (*DISGUISED, *PRIVATE) for url in spelled(host)]
        urls += [f"http://{name}/" for name in ("localhost", "a.localhost", "LOCALHOST", "localhost.")]
        assert len({*DISGUISED, *PRIVATE}) >= 150

        async def main() -> None:
            for url in urls:
                with pytest.raises(EgressRefused):
                    await get(PublicWeb(), url)

        asyncio.run(main())
        assert watch.tried == []

    @pytest.mark.skipif(not payloads(), reason="set TURNOUT_DATA to the folder of labelled data")
    def test_no_payload_is_opened_in_either_class(self, watch: Watch, names: Names) -> None:
        """Names in them lead inward, by a resolver of ours: nothing may be connected to."""
        opened = []

        async def main() -> None:
            for payload in payloads():
                for origin in origins_of(payload):
                    names.say(origin.host, ["10.0.0.1", "169.254.169.254"])
                try:
                    await get(PublicWeb(), payload)
                    opened.append(payload)
                except NetError:
                    pass
                for origin in origins_of(payload):
                    async with client_for(origin._replace(private=False)) as client:
                        with pytest.raises(NetError):
                            await client.open(Request(origin, "/", method="GET"), 1.0)

        asyncio.run(main())
        assert (opened, watch.tried) == ([], [])

    def test_no_name_that_leads_inward(self, watch: Watch, names: Names) -> None:
        inward = [*PRIVATE, *(host for host in DISGUISED if ":" in host and "%" not in host)]

        async def main() -> None:
            for number, address in enumerate(inward):
                names.say(f"n{number}.example", ["93.184.216.34", address])
                with pytest.raises(EgressRefused):
                    await get(PublicWeb(), f"http://n{number}.example/")

        asyncio.run(main())
        assert watch.tried == []
        assert len(names.asked) == len(inward) > 100

    @pytest.mark.parametrize("host", [*DISGUISED, *PRIVATE])
    def test_no_redirect_that_leads_inward(self, host: str) -> None:
        shown = f"[{host}]" if ":" in host else host
        to = (f"http://{shown}/", f"//{shown}/", f"https://{shown}:443/x")
        for location in to:
            transport = ScriptedTransport([Reply(status=302, headers={"location": location}, body=b"")])
            with pytest.raises(EgressRefused):
                asyncio.run(get(PublicWeb(transport), "https://site.example/"))
            assert len(transport.requests) == 1

    @given(st.text(max_size=60))
    def test_any_text_is_an_address_or_refused(self, text: str) -> None:
        for url in (text, f"http://{text}", f"https://site.example/{text}"):
            try:
                origin, path = place_of(url)
            except EgressRefused:
                continue
            assert path.isascii()
            assert path.startswith("/")
            assert origin == origin_of(str(origin))


def origins_of(payload: str) -> list[Origin]:
    try:
        return [place_of(payload)[0]]
    except EgressRefused:
        return []


class Case(NamedTuple):
    id: str
    url: str
    said: str


REFUSED = [
    Case("another port", "http://site.example:8080/", "80 and 443"),
    Case("port 22", "http://site.example:22/", "80 and 443"),
    Case("another scheme", "ftp://site.example/", "plain http"),
    Case("a file", "file:///etc/passwd", "plain http"),
    Case("no scheme", "site.example", "plain http"),
    Case("a password", "http://user:secret@site.example/", "credential"),
    Case("a name before the at sign", "http://site.example@169.254.169.254/", "credential"),
    Case("a backslash", "http://site.example\\@169.254.169.254/", "plain http"),
    Case("a line end", "http://site.example/\r\nhost: x", "plain http"),
    Case("too long", "http://site.example/" + "a" * 2048, "2,048"),
    Case("metadata", METADATA_URL, "metadata"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: Case) -> None:
    with pytest.raises(EgressRefused, match=case.said) as raised:
        asyncio.run(get(PublicWeb(ScriptedTransport()), case.url))
    assert "secret" not in str(raised.value)


class TestRead:
    def test_a_page(self) -> None:
        transport = ScriptedTransport([Reply(body=b"<p>hello")])
        page = asyncio.run(get(PublicWeb(transport), "https://site.example/@me/a b".replace(" ", "%20") + "?q=é#frag"))
        sent = transport.requests[0]
        assert page == b"<p>hello"
        assert (sent.method, sent.path, sent.body) == ("GET", "/@me/a%20b?q=%C3%A9", b"")
        assert not {"authorization", "cookie"} & sent.headers.keys()

    def test_redirects_are_followed_and_counted(self) -> None:
        there = Reply(status=301, headers={"location": "https://www.site.example/x"}, body=b"")
        transport = ScriptedTransport(
            [there, Reply(status=302, headers={"location": "y?z"}, body=b""), Reply(body=b"ok")]
        )
        assert asyncio.run(get(PublicWeb(transport), "http://site.example/")) == b"ok"
        assert [str(one.origin) + one.path for one in transport.requests] == [
            "http://site.example:80/",
            "https://www.site.example:443/x",
            "https://www.site.example:443/y?z",
        ]
        with pytest.raises(Broken, match="5 redirects"):
            asyncio.run(get(PublicWeb(ScriptedTransport([there])), "http://site.example/"))

    def test_not_past_a_proxy(self) -> None:
        """It would resolve the name, and nobody here could say whether that is public."""
        proxy = proxy_of("http://proxy.internal:3128")
        with pytest.raises(EgressRefused, match="proxy"):
            asyncio.run(get(PublicWeb(ScriptedTransport(), proxy), "http://site.example/"))
        assert PublicEgress().allows(origin_of("http://site.example"))

    def test_huge(self) -> None:
        with pytest.raises(Broken, match="longer than 1,000 bytes"):
            asyncio.run(get(PublicWeb(ScriptedTransport([Reply(body=b"x" * 1001)])), "http://site.example/", 1000))


class PackedCase(NamedTuple):
    id: str
    encoding: str
    body: bytes
    said: str = ""


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED = [
    PackedCase("gzip", "gzip", gzip.compress(b"hello")),
    PackedCase("x-gzip", "X-Gzip", gzip.compress(b"hello")),
    PackedCase("deflate", "deflate", zlib.compress(b"hello")),
    PackedCase("deflate, bare", "deflate", bare(b"hello")),
    PackedCase("a bomb", "gzip", gzip.compress(b"\0" * 50_000_000), "once it is inflated"),
    PackedCase("breaks off", "gzip", gzip.compress(b"hello" * 1000)[:-12], "breaks off"),
    PackedCase("is something else", "gzip", b"hello", "not gzip"),
    PackedCase("an encoding we do not read", "br", b"hello", "not asked for"),
    PackedCase("two of them", "gzip, gzip", gzip.compress(gzip.compress(b"hello")), "not asked for"),
]


@pytest.mark.parametrize("case", PACKED, ids=lambda case: case.id)
def test_inflated(case: PackedCase) -> None:
    web = PublicWeb(ScriptedTransport([Reply(headers={"content-encoding": case.encoding}, body=case.body)]))
    if not case.said:
        assert asyncio.run(get(web, "http://site.example/")) == b"hello"
        return
    with pytest.raises(Broken, match=case.said):
        asyncio.run(get(web, "http://site.example/"))


@given(st.binary(max_size=3000), st.sampled_from(sorted(ENCODINGS)), st.integers(1, 3000))
def test_never_more_than_the_limit(data: bytes, encoding: str, limit: int) -> None:
    try:
        assert len(inflate(zlib.compress(data), encoding, limit, "x")) <= limit
    except Broken:
        assert len(data) > limit


class TestWebSocket:
    def test_a_redirect_is_not_followed(self, watch: Watch) -> None:
        """The library would; the metadata service must not be asked."""

        async def moved(talk: Talk) -> None:
            await talk.request()
            await talk.send(b"HTTP/1.1 302 Found\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % METADATA_URL.encode())

        async def main() -> None:
            async with serving(moved) as server, client_for(server.origin) as client:
                with pytest.raises(EgressRefused, match="another place"):
                    await client.open_socket(Request(server.origin, "/api/websocket", method="GET"), 2.0)

        run(main())
        assert set(watch.tried) == {"127.0.0.1"}

    def test_not_a_websocket(self) -> None:
        async def plain(talk: Talk) -> None:
            await talk.request()
            await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

        async def main() -> None:
            async with serving(plain) as server, client_for(server.origin) as client:
                with pytest.raises(Broken, match="no WebSocket"):
                    await client.open_socket(Request(server.origin, "/", method="GET"), 2.0)

        run(main())

    def test_not_configured(self) -> None:
        async def main() -> None:
            async with client_for() as client:
                with pytest.raises(EgressRefused):
                    await client.open_socket(Request(Origin("http", "127.0.0.1", 80, True), "/", method="GET"), 2.0)

        run(main())
