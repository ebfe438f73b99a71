"""The egress guard: this process connects to the hosts in the configuration and nowhere else.

A name is resolved once, every address is checked, and the connection goes to a checked address; so a name that changes
in between (DNS rebinding) leads nowhere. Private addresses are allowed for hosts that the configuration marks as
private or names by such an address. Cloud metadata addresses are never allowed.

A host has one spelling: lower case, ASCII, an address as Python prints it. Every other spelling is refused, so that no
other program can read it in another way.
"""

from __future__ import annotations

import re
from base64 import b64encode
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from turnout.core.conceal import conceal
from turnout.core.errors import EgressRefused

from .address import METADATA, Address, embedded, is_public

# The last label of a name is not a number: resolvers read 2130706433, 0x7f.1 and 127.1 as addresses.
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_-]{1,63}\.)*(?!(?:[0-9]+|0x[0-9a-f]*)\Z)[a-z0-9_-]{1,63}")
_PLACE = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(?::[0-9]*)?")
# Characters that are refused in a URL; urlsplit silently drops some of them.
_ODD = re.compile(r"[\x00-\x20\x7f\\]|[^\x00-\x7f]")


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int
    private: bool = False
    """Its addresses may be private."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Proxy(NamedTuple):
    """The proxy that leads out of this network. It resolves names itself."""

    origin: Origin
    login: str = ""
    """The value of `proxy-authorization`."""

    def __repr__(self) -> str:
        return f"Proxy({self.origin})"


PORTS = {"http": 80, "https": 443}


def origin_of(url: str, *, private: bool = False) -> Origin:
    """The origin of a configured URL."""
    shown = _host_of(url)
    # First, so that no message below quotes a password before an @.
    if "@" in url:
        raise EgressRefused("a credential does not belong in an address: name it as key or token (in a path, @ is %40)")
    if "?" in url or "#" in url:
        raise EgressRefused(f"{shown!r}: its address ends before the ? or #; a credential goes into key or token")
    if (odd := _ODD.search(url)) is not None:
        raise EgressRefused(f"{shown!r}: {odd[0]!r} has no place in an address; an international name is xn--…")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
        if ":" in host:
            host = str(ip_address(host))  # of the many valid spellings of an IPv6 address, the one we use
    except ValueError as error:
        raise EgressRefused(f"{shown!r} is not an address: {error}") from None
    if parts.scheme not in PORTS or not _PLACE.fullmatch(parts.netloc) or port == 0:
        raise EgressRefused(f"{shown!r} is not an http or https address")
    address = _plain(host)
    # 127.0.0.1 or localhost is plainly this machine, and needs no mark; an address that embeds it is not so plain.
    named = host == "localhost" or host.endswith(".localhost")
    if address is not None and not is_public(address):
        named = next(embedded(address), None) is None
    origin = Origin(parts.scheme, host, port or PORTS[parts.scheme], private or named)
    if address is not None:
        _check(address, origin)
    return origin


def proxy_of(url: str) -> Proxy:
    """The proxy of a configured URL: `http://host:port`, or `http://user:password@host:port`."""
    login, at, place = url.rpartition("@")
    scheme, mark, login = login.partition("://")
    try:
        origin = origin_of(f"{scheme}{mark}{place}" if at else url, private=True)
    except EgressRefused as error:
        raise EgressRefused(f"the proxy: {error}") from None
    if origin.scheme != "http":
        raise EgressRefused(f"the proxy {origin} must be http://host:port; what goes through it has its own TLS")
    return Proxy(origin, f"Basic {b64encode(unquote(login).encode()).decode()}" if login else "")


class Egress:
    """The origins that may be connected to."""

    def __init__(self, origins: frozenset[Origin] = frozenset(), proxy: Proxy | None = None) -> None:
        self.allow(origins, proxy)

    def allow(self, origins: frozenset[Origin], proxy: Proxy | None = None) -> None:
        """Allow these and no others. Those that are not private are reached through the proxy, if there is one."""
        self.origins = origins
        self.proxy = proxy
        self.rules = (origins, proxy)
        # Of two that differ only in `private`, the private one wins.
        ordered = sorted(origins, key=lambda origin: origin.private)
        self._origins = {(origin.scheme, origin.host, origin.port): origin for origin in ordered}
        self._hosts = {(origin.host, origin.port): origin for origin in ordered}
        if proxy is not None:
            self._hosts[proxy.origin.host, proxy.origin.port] = proxy.origin
        self.known: dict[Origin, Origin] = {}
        """The answers of `allows`."""

    def allows(self, origin: Origin) -> Origin:
        """The origin as it is configured; refused if it is not."""
        configured = self._origins.get((origin.scheme, origin.host, origin.port))
        if configured is None:
            raise EgressRefused(f"{origin} is not in the configuration: no connection is made")
        address = _plain(configured.host)
        if address is not None:
            _check(address, configured)
        self.known[origin] = configured
        return configured

    def admits(self, host: str, port: int, address: str) -> str:
        """The address of a host, if it may be connected to."""
        origin = self._hosts.get((host, port))
        if origin is None:
            raise EgressRefused(f"{host}:{port} is not in the configuration: no connection is made")
        _check(ip_address(address.partition("%")[0]), origin)
        return address


def _host_of(url: str) -> str:
    """A URL without its path, which may hold a credential, to be shown in messages."""
    match = re.match(r"(?:[A-Za-z]+://)?[^/?#]{0,100}", url)
    return conceal(match[0]) if match is not None else ""


def is_exposed(origin: Origin, address: str | None = None) -> bool:
    """Whether others can read what is sent there: over http to a public address. Without an address it is judged by the
    origin, although a name marked as private may lead anywhere."""
    if origin.scheme == "https":
        return False
    try:
        return is_public(ip_address((address or origin.host).partition("%")[0]))
    except ValueError:
        return not origin.private


def _plain(host: str) -> Address | None:
    """The address that a host is, None for a name; refused in any other spelling than ours."""
    try:
        address = ip_address(host)
    except ValueError:
        if _NAME.fullmatch(host):
            return None
    else:
        if str(address) == host and not (isinstance(address, IPv6Address) and address.scope_id):
            return address
    raise EgressRefused(f"{host[:120]!r} is neither the name of a host nor an address in its plain spelling")


def _check(address: Address, origin: Origin) -> None:
    for inner in (address, *embedded(address)):
        if inner in METADATA:
            raise EgressRefused(f"{origin.host} leads to {address}, a cloud metadata address: never")
        if not is_public(inner) and not origin.private:
            message = f"{origin.host} leads to {address}, a private address: set private = true if that is meant"
            raise EgressRefused(message)
