"""S9: every limit at one less, exactly, and one more; however a body is sent, and whatever it claims to be."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from secured_server import RawResponse, call, chat, secured_server, send_raw, status_of
from serving import RunningServer
from turnout.testing import ScriptedProvider
from turnout.web import app, serve

LIMIT = 4096
ASKING = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
READING = (*ASKING, "/v1/messages/count_tokens", "/v1/route", "/v1/route/batch", "/v1/feedback")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with secured_server(tmp_path_factory.mktemp("small"), server=f"body_bytes = {LIMIT}") as (served, _):
        yield served


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, ScriptedProvider]]:
    with secured_server(tmp_path_factory.mktemp("large")) as pair:
        yield pair


def sized(size: int) -> bytes:
    """A chat completion of exactly that many bytes."""
    empty = len(json.dumps(chat("")).encode())
    return json.dumps(chat("a" * (size - empty))).encode()


def chunked(body: bytes, piece: int) -> bytes:
    parts = [body[at : at + piece] for at in range(0, len(body), piece)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def head(path: str = "/v1/chat/completions", *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in ("host: localhost", "content-type: application/json", *headers))
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode()


@pytest.mark.parametrize(("size", "status"), [(LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 413), (10 * LIMIT, 413)])
class TestBody:
    def test_plain(self, small: RunningServer, size: int, status: int) -> None:
        assert call(small.url, "POST", "/v1/chat/completions", sized(size)).status == status

    @pytest.mark.parametrize("piece", [7, 1000, 100_000])
    def test_chunked(self, small: RunningServer, size: int, status: int, piece: int) -> None:
        """Counted as it comes: nobody says beforehand how long it is."""
        got = send_raw(
            small.url, head("/v1/chat/completions", "transfer-encoding: chunked") + chunked(sized(size), piece)
        )
        assert status_of(got) == status


@pytest.mark.parametrize("path", READING)
def test_too_large_in_every_format(small: RunningServer, path: str) -> None:
    got = call(small.url, "POST", path, b" " * (LIMIT + 1))
    assert got.status == 413
    assert f"{LIMIT:,} bytes" in got.json["error"]["message"]
    assert (got.json.get("type") == "error") is path.startswith("/v1/messages")


class TestLies:
    def test_longer_than_it_says(self, small: RunningServer) -> None:
        """What comes after the length it named is another request, and not one that exists."""
        got = send_raw(small.url, head("/v1/chat/completions", "content-length: 10") + sized(2000), timeout=2.0)
        assert status_of(got) in (400, 422)
        assert b"200 OK" not in got

    def test_shorter_than_it_says(self, small: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """The rest never comes: told so after a while, and the place is free again."""
        monkeypatch.setattr(app, "BODY_S", 0.3)
        for sent in (b"", sized(500)):
            started = time.monotonic()
            got = send_raw(small.url, head("/v1/chat/completions", "content-length: 2000") + sent)
            assert status_of(got) == 408
            assert time.monotonic() - started < 5.0
        assert small.server.admission.active == 0

    def test_it_says_it_is_huge(self, small: RunningServer) -> None:
        """Refused before any of it is read."""
        for length in (LIMIT + 1, 10**12, 10**30):
            got = send_raw(small.url, head("/v1/chat/completions", f"content-length: {length}"))
            assert status_of(got) in (400, 413)

    @pytest.mark.parametrize("length", ["-1", "+5", "0x10", "1e3", "5, 5", "5 5", "²", "٣", "", "nan"])
    def test_it_says_nonsense(self, small: RunningServer, length: str) -> None:
        got = send_raw(small.url, head("/v1/chat/completions", f"content-length: {length}") + b"hello", timeout=1.0)
        assert status_of(got) in (0, 400)

    def test_two_lengths(self, small: RunningServer) -> None:
        for headers in (
            ("content-length: 5", "content-length: 6"),
            ("content-length: 5", "transfer-encoding: chunked"),
            ("transfer-encoding: chunked", "content-length: 5"),
            ("transfer-encoding: chunked, identity",),
            ("transfer-encoding: xchunked",),
        ):
            got = send_raw(
                small.url,
                head("/v1/chat/completions", *headers) + b"0\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
                timeout=1.0,
            )
            assert status_of(got) in (0, 400, 408, 501), headers
            assert b"200 OK" not in got

    def test_a_compressed_body_is_not_unpacked(self, small: RunningServer) -> None:
        import gzip

        got = call(
            small.url, "POST", "/v1/route", gzip.compress(b" " * 10**7)[:LIMIT], headers={"content-encoding": "gzip"}
        )
        assert got.status == 422


class TestSlowly:
    def test_a_byte_at_a_time(self, small: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(app, "BODY_S", 2.0)
        place = urlsplit(small.url)
        with socket.create_connection((str(place.hostname), place.port), 5.0) as sock:
            sock.sendall(head("/v1/chat/completions", "content-length: 1000"))
            started = time.monotonic()
            got = b""
            sock.settimeout(0.02)
            while not got and time.monotonic() - started < 10.0:
                sock.sendall(b" ")
                try:
                    got = sock.recv(4096)
                except TimeoutError:
                    continue
        assert status_of(got) == 408
        assert time.monotonic() - started < 5.0

    def test_many_who_wait_leave_room(self, small: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever sends nothing gives its place back."""
        monkeypatch.setattr(app, "BODY_S", 2.0)
        place = urlsplit(small.url)
        socks = [socket.create_connection((str(place.hostname), place.port), 5.0) for _ in range(60)]
        try:
            for sock in socks:
                sock.sendall(head("/v1/chat/completions", "content-length: 1000"))
            until = time.monotonic() + 1.5
            while small.server.admission.active < 50 and time.monotonic() < until:
                time.sleep(0.02)
            assert small.server.admission.active >= 50
            assert call(small.url, "GET", "/health").status == 200
            until = time.monotonic() + 10.0
            while small.server.admission.active and time.monotonic() < until:
                time.sleep(0.02)
            assert small.server.admission.active == 0
        finally:
            for sock in socks:
                sock.close()

    def test_who_leaves_gives_its_place_back(self, small: RunningServer) -> None:
        place = urlsplit(small.url)
        for _ in range(20):
            with socket.create_connection((str(place.hostname), place.port), 5.0) as sock:
                sock.sendall(head("/v1/chat/completions", "content-length: 1000") + b"{")
        until = time.monotonic() + 10.0
        while small.server.admission.active and time.monotonic() < until:
            time.sleep(0.02)
        assert small.server.admission.active == 0


DEEP = 100_000


def deep(kind: str, levels: int) -> str:
    return {
        "arrays": "[" * levels + "]" * levels,
        "objects": '{"a":' * levels + "1" + "}" * levels,
        "open arrays": "[" * levels,
        "open objects": '{"a":' * levels,
        "mixed": '[{"a":' * (levels // 2) + "1" + "}]" * (levels // 2),
    }[kind]


@pytest.mark.parametrize("kind", ["arrays", "objects", "open arrays", "open objects", "mixed"])
@pytest.mark.parametrize("path", READING)
def test_deep_json(large: tuple[RunningServer, ScriptedProvider], path: str, kind: str) -> None:
    """A hundred thousand levels, in the place of the body and of each of its members: told so, never a crash."""
    served, provider = large
    nest, before = deep(kind, DEEP), provider.received
    for body in (
        nest,
        f'{{"model": "auto", "messages": {nest}}}',
        f'{{"model": {nest}}}',
        f'{{"model": "auto", "input": {nest}, "messages": [{{"role": "user", "content": {nest}}}]}}',
        f'{{"model": "auto", "input": "hi", "messages": [{{"role": "user", "content": "hi"}}], "metadata": {nest}}}',
        f'{{"model": "auto", "messages": [{{"role": "user", "content": [{{"x": {nest}}}]}}], "input": [{nest}]}}',
        f'{{"text": {nest}}}',
        f'{{"queries": {nest}}}',
    ):
        got = call(served.url, "POST", path, body.encode())
        assert got.status in (400, 413, 422), (body[:80], got.body[:200])
        assert got.json["error"]["message"]
    assert provider.received == before
    assert call(served.url, "GET", "/health").status == 200


def messages(count: int, text: str = "hi") -> list[dict[str, Any]]:
    return [{"role": "user" if at % 2 == 0 else "assistant", "content": text} for at in range(count - 1)] + [
        {"role": "user", "content": text}
    ]


@pytest.mark.parametrize("path", ASKING)
@pytest.mark.parametrize(("count", "status"), [(4999, 200), (5000, 200), (5001, 413), (200_000, 413)])
def test_messages(large: tuple[RunningServer, ScriptedProvider], path: str, count: int, status: int) -> None:
    said = messages(count)
    got = call(large[0].url, "POST", path, {"model": "auto", "messages": said, "input": said, "max_tokens": 10})
    assert got.status == status, got.body[:300]
    if count == 5001:
        assert "5,000" in got.json["error"]["message"]


@pytest.mark.alike(3)
@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 413)])
def test_characters(large: tuple[RunningServer, ScriptedProvider], over: int, status: int) -> None:
    """16 Mi of them, in one message or in two."""
    whole = 16 * 1024 * 1024 + over
    for said in ([whole], [whole // 2, whole - whole // 2]):
        body = chat() | {"messages": [{"role": "user", "content": "a" * size} for size in said]}
        assert call(large[0].url, "POST", "/v1/chat/completions", body, timeout=60).status == status
    route = call(large[0].url, "POST", "/v1/route", {"text": "a" * whole}, timeout=60)
    assert route.status == (200 if status == 200 else 422)


class TestHeaders:
    @pytest.mark.parametrize("lines", [["x-a: " + "a" * 200_000], ["a: b"] * 20_000, ["x" * 200_000 + ": b"]])
    def test_huge(self, small: RunningServer, lines: list[str]) -> None:
        """Beyond `header_bytes` nothing is taken, and nothing is kept while it comes."""
        body = sized(500)
        got = send_raw(small.url, head("/v1/chat/completions", *lines, "content-length: 500") + body, timeout=3.0)
        assert status_of(got) in (0, 400, 431)

    def test_slow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever does not finish its head, or never begins one, is not waited for; nor who asks nothing more."""
        monkeypatch.setattr(serve, "HEAD_S", 0.5)
        with secured_server(tmp_path / "slow") as (served, _):
            whole = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
            for sent in (b"", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: b", whole):
                place = urlsplit(served.url)
                with socket.create_connection((str(place.hostname), place.port), 5.0) as sock:
                    started = time.monotonic()
                    sock.sendall(sent)
                    found = b""
                    while piece := sock.recv(4096):
                        found += piece
                    assert 0.4 < time.monotonic() - started < 5.0
                    assert status_of(found) == (200 if sent == whole else 0)

    def test_endless(self, small: RunningServer) -> None:
        """A header that does not end is cut off, not collected."""
        place = urlsplit(small.url)
        sent = 0
        with socket.create_connection((str(place.hostname), place.port), 2.0) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: ")
            try:
                while sent < 64 * 1024 * 1024:
                    sent += sock.send(b"a" * 65536)
            except OSError:
                pass
        assert sent < 32 * 1024 * 1024, "more than the socket's own buffers hold"

    def test_a_long_path(self, small: RunningServer) -> None:
        got = send_raw(
            small.url, b"GET /v1/models/" + b"a" * 300_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", timeout=3.0
        )
        assert status_of(got) in (0, 400, 404, 414, 431)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b'"x"', b"1", b"{", b"\xff\xfe", b"\0", b'{"model": "auto"}', b'{"messages": []}',
        b'{"model": "", "messages": [{"role": "user", "content": "hi"}]}',
        b'{"model": 5, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}',
        b'{"model": "auto", "messages": [{"role": 5, "content": "hi"}], "input": [5]}',
        b'{"model": "auto", "messages": "hi", "input": 5}',
        b'{"model": "auto", "messages": [{"role": "user", "content": 5}], "input": {"a": 1}}',
        b'{"model": "auto", "messages": [{"content": "hi"}], "input": 7}',
        b'{"model": "auto", "stream": "yes", "messages": [{"role": "user", "content": "hi"}], "input": "hi"}',
        b'{"model": "auto", "max_tokens": "many", "messages": [{"role": "user", "content": ""}], "input": 5}',
        b'{"model": "auto", "max_tokens": 1e400, "messages": [{"role": "user", "content": ""}], "input": 5}',
        b'{"model": "auto", "messages": [{"role": "user", "content": "\xff"}], "input": "\xff"}',
        b'{"model": "auto", "messages": [{"role": "user", "content": "\\ud800"}], "input": "\\ud800"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", READING)
def test_wrong_bodies(large: tuple[RunningServer, ScriptedProvider], path: str, body: bytes) -> None:
    served, provider = large
    before = provider.received
    got = call(served.url, "POST", path, body)
    assert got.status in (400, 422), got
    assert got.json["error"]["message"]
    assert provider.received == before


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "\x1b[31m",
        "\u202e",
        "\U0001f600" * 50,
        "\ufffe\uffff",
        "{{x}}",
        "%s%n",
        "\r\n\r\nHTTP/1.1 200 OK",
        "𝔞" * 999,
    ],
)
def test_odd_text_is_text(large: tuple[RunningServer, ScriptedProvider], text: str) -> None:
    for role in ("user", "system", "weird\r\nrole", "", "tool"):
        body = chat() | {"messages": [{"role": role, "content": text}, {"role": "user", "content": text}]}
        assert call(large[0].url, "POST", "/v1/chat/completions", body).status == 200
    for session in (text, None):
        got = call(large[0].url, "POST", "/v1/route", {"text": text, "session": session and session[:200]})
        assert got.status == 200
    assert call(large[0].url, "GET", "/v1/decisions/" + "%00%0d%0a").status == 404


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_stays_bounded(small: RunningServer) -> None:
    """A thousand bodies of 40 MB, claimed or begun: none of them is ever collected."""
    call(small.url, "POST", "/v1/route", b"x" * (LIMIT + 1))
    before = rss()
    found: list[int] = []

    def flood() -> None:
        for _ in range(40):
            body = (
                head("/v1/chat/completions", "transfer-encoding: chunked") + b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
            )
            found.append(status_of(send_raw(small.url, body * 1, timeout=2.0)))

    threads = [threading.Thread(target=flood) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) <= {0, 413}
    assert rss() - before < 48 * 1024 * 1024
    assert isinstance(call(small.url, "GET", "/health"), RawResponse)
