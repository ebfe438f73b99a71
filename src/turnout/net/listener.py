"""Listening sockets, and how many connections a process has file descriptors for.

The sockets are opened here because Granian's own share their port with any process of the same user that wants it.
"""

from __future__ import annotations

import os
import resource
import socket
import struct

# How many connections may wait to be accepted.
BACKLOG = 2048
# The kernel closes a connection whose other side acknowledges nothing for so long.
TAKE_S = 30
# Descriptors for files, the store, and idle connections to providers.
SPARE = 256
# The connections that are always served, however few descriptors there are.
LEAST = 64
# Where `struct tcp_info` has, for a listening socket, the number of connections that wait to be accepted.
_UNACKED_AT = 24


class Listener:
    """A socket that listens on an address: the first IPv4 address of a name, if it has one. Raises OSError."""

    def __init__(self, host: str, port: int) -> None:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = min(addresses, key=lambda one: one[0] != socket.AF_INET)
        self._sock = sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted connections inherit these two.
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
        """How many connections wait to be accepted; 0 if the system does not say."""
        if not hasattr(socket, "TCP_INFO"):
            return 0
        info: bytes = self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _UNACKED_AT + 4)
        return int(struct.unpack_from("I", info, _UNACKED_AT)[0]) if len(info) >= _UNACKED_AT + 4 else 0

    def share(self) -> int:
        """A second descriptor of the socket, for the server that accepts connections to own and close."""
        return os.dup(self._sock.fileno())

    def close(self) -> None:
        self._sock.close()


def most_connections(wanted: int, requests: int, *, raise_limit: bool) -> int:
    """The wanted number of connections, or as many as there are descriptors for besides the spare ones and one per
    request for its provider. `raise_limit`: raise the process's own limit first, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + requests + SPARE
    if soft != resource.RLIM_INFINITY and soft < needed and raise_limit:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(LEAST, soft - requests - SPARE))
