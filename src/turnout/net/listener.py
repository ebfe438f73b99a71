"""Listening sockets, and how many connections a process has descriptors for.

A socket is bound here and then handed to the server: one that the server opened itself would share its port with any
other process of the same user that asks for that.
"""

from __future__ import annotations

import os
import resource
import socket
import struct

# What the kernel keeps for a server that is busy accepting others.
BACKLOG = 2048
# Without a byte taken by the other side for so long, a connection is closed by the kernel.
TAKE_S = 30
# Descriptors for files, the store, and connections to providers that are kept for the next request.
SPARE = 256
# So few connections are served at least, however few descriptors there are.
LEAST = 64
# Of `struct tcp_info`: for a listening socket this field counts the connections that wait to be accepted.
_UNACKED_AT = 24


class Listener:
    """A socket that listens on an address, of several the first of IPv4; raises OSError."""

    def __init__(self, host: str, port: int) -> None:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        self._sock = sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted connections have these two from their listener.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKE_S * 1000)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise

    @property
    def url(self) -> str:
        host, port = self._sock.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def waiting(self) -> int:
        """How many connections wait to be accepted; 0 where the system does not tell."""
        if not hasattr(socket, "TCP_INFO"):
            return 0
        told: bytes = self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _UNACKED_AT + 4)
        return int(struct.unpack_from("I", told, _UNACKED_AT)[0]) if len(told) >= _UNACKED_AT + 4 else 0

    def share(self) -> int:
        """Another descriptor of it, for the one that accepts; theirs to close."""
        return os.dup(self._sock.fileno())

    def close(self) -> None:
        self._sock.close()


def most_connections(wanted: int, requests: int, *, raise_limit: bool) -> int:
    """As many as wanted, or as there are descriptors for beside one for each request's provider and the spare ones.

    The process's own limit is raised if that is allowed: the usual 1,024 are meant for programs that use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + requests + SPARE
    if soft != resource.RLIM_INFINITY and soft < needed and raise_limit:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(LEAST, soft - requests - SPARE))
