"""Listening sockets: where they listen, who shares them, who waits, and who is let go."""

import errno
import socket
import time
from urllib.parse import urlsplit

import pytest

from turnout.net import listener
from turnout.net.listener import Listener


def connect(one: Listener) -> socket.socket:
    place = urlsplit(one.url)
    return socket.create_connection((str(place.hostname), int(place.port or 0)), 5.0)


@pytest.mark.parametrize(("host", "begins"), [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://127.0.0.1:")])
def test_it_listens_where_it_says(host: str, begins: str) -> None:
    one = Listener(host, 0)
    assert one.url.startswith(begins)
    connect(one).close()
    one.close()


def test_an_address_of_ipv6() -> None:
    try:
        one = Listener("::1", 0)
    except OSError:
        pytest.skip("no IPv6 here")
    assert one.url.startswith("http://[::1]:")
    one.close()


def test_a_port_is_never_shared() -> None:
    """Nor with somebody who would share theirs."""
    one = Listener("127.0.0.1", 0)
    port = int(one.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use") as raised:
        Listener("127.0.0.1", port)
    assert raised.value.errno == errno.EADDRINUSE
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    one.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not tell")
def test_who_waits_is_counted() -> None:
    one = Listener("127.0.0.1", 0)
    assert one.waiting == 0
    waiting = [connect(one) for _ in range(7)]
    assert one.waiting == 7
    with socket.socket(fileno=one.share()) as accepting:
        accepting.accept()[0].close()
    assert one.waiting == 6
    for sock in waiting:
        sock.close()
    one.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system does not let go")
def test_who_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the server behind it does: the kernel closes the connection."""
    monkeypatch.setattr(listener, "TAKE_S", 1)
    one = Listener("127.0.0.1", 0)
    with connect(one), socket.socket(fileno=one.share()) as accepting:
        sock, _ = accepting.accept()
        sock.settimeout(20.0)
        began = time.monotonic()
        with pytest.raises(OSError, match="timed out") as raised:
            sock.sendall(b"a" * 100_000_000)
        assert raised.value.errno == errno.ETIMEDOUT
        assert time.monotonic() - began < 15.0
        sock.close()
    one.close()
