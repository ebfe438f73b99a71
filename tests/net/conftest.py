"""No test here may leave this machine: an audit hook sees every connection and every lookup and stops the others."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from net.loopback import WATCH, Names, Watch


@pytest.fixture(autouse=True)
def watch() -> Iterator[Watch]:
    WATCH.on = True
    WATCH.tried.clear()
    WATCH.strayed.clear()
    yield WATCH
    WATCH.on = False
    assert WATCH.strayed == []


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Below aiohttp and asyncio: the function both end in."""
    stub = Names()
    monkeypatch.setattr(socket, "getaddrinfo", stub.getaddrinfo)
    return stub
