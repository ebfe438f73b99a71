"""Where this process may connect to: the hosts in the configuration, and nothing else.

A name is resolved once and every address it has is checked; the connection then goes to an address that was checked,
so an answer that changes between the check and the connection (DNS rebinding) leads nowhere. Private addresses are for
hosts the configuration marks as private, or names by such an address itself. Cloud metadata addresses are never used.

A host has one spelling: lower case, ASCII, an address the way Python prints it. Every other spelling is refused, so
nothing that reads it after us can read something else.
"""

from __future__ import annotations

import re
from base64 import b64encode
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from turnout.core.conceal import conceal
from turnout.core.errors import EgressRefused

from .address import Address, embedded, is_metadata, is_public

# Labels of a name. The last one is no number: resolvers take 2130706433, 0x7f.1 and 127.1 for addresses.
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_-]{1,63}\.)*(?!(?:[0-9]+|0x[0-9a-f]*)\Z)[a-z0-9_-]{1,63}")
_PLACE = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(?::[0-9]*)?")
# What a URL has no business with; urlsplit drops some of it without a word.
_ODD = re.compile(r"[\x00-\x20\x7f\\]|[^\x00-\x7f]")


class Origin(NamedTuple):
    """A place that may be connected to."""

    scheme: str
    host: str
    port: int
    private: bool = False
    """Its addresses may be private ones."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Proxy(NamedTuple):
    """The way out of a network that has no other. It resolves the names it is asked for."""

    origin: Origin
    login: str = ""
    """What `proxy-authorization` says."""

    def __repr__(self) -> str:
        return f"Proxy({self.origin})"


PORTS = {"http": 80, "https": 443}


def origin_of(url: str, *, private: bool = False) -> Origin:
    """The origin a configured URL leads to."""
    # Before anything quotes a part of it: what stands before an @ or after a ? may be a password or a key.
    if "@" in url:
        raise EgressRefused("a credential does not belong in an address: name it as key or token (in a path, @ is %40)")
    if "?" in url or "#" in url:
        raise EgressRefused(
            f"{_host_of(url)!r}: its address ends before the ? or #; a credential goes into key or token"
        )
    odd = _ODD.search(url)
    if odd is not None:
        raise EgressRefused(f"{_host_of(url)!r}: {odd[0]!r} has no place in an address; an international name is xn--…")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
        if ":" in host:
            # IPv6 has many honest spellings; this is the one that is kept.
            host = str(ip_address(host))
    except ValueError as error:
        raise EgressRefused(f"{_host_of(url)!r} is not an address: {error}") from None
    if parts.scheme not in PORTS or not _PLACE.fullmatch(parts.netloc) or port == 0:
        raise EgressRefused(f"{_host_of(url)!r} is not an http or https address")
    address = _plain(host)
    # A configuration that says 127.0.0.1 or localhost means this machine; one that wraps it up does not say so.
    named = host == "localhost" or host.endswith(".localhost")
    if address is not None and not is_public(address):
        named = next(embedded(address), None) is None
    origin = Origin(parts.scheme, host, port or PORTS[parts.scheme], private or named)
    if address is not None:
        _check(address, origin)
    return origin


def proxy_of(url: str) -> Proxy:
    """The proxy a configured URL leads to: `http://host:port`, or `http://user:password@host:port`."""
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
    """The list of origins, and the two questions asked of it."""

    def __init__(self, origins: frozenset[Origin] = frozenset(), proxy: Proxy | None = None) -> None:
        self.allow(origins, proxy)

    def allow(self, origins: frozenset[Origin], proxy: Proxy | None = None) -> None:
        """From now on these, and no others; those that are not private by way of the proxy, if there is one."""
        self.origins = origins
        self.proxy = proxy
        self.rules = (origins, proxy)
        # Of two that differ only in `private`, the private one: the configuration says that it is meant.
        ordered = sorted(origins, key=lambda origin: origin.private)
        self._origins = {(origin.scheme, origin.host, origin.port): origin for origin in ordered}
        self._hosts = {(origin.host, origin.port): origin for origin in ordered}
        if proxy is not None:
            self._hosts[proxy.origin.host, proxy.origin.port] = proxy.origin
        self.known: dict[Origin, Origin] = {}
        """What `allows` has said."""

    def allows(self, origin: Origin) -> Origin:
        """The configured origin; refused if there is none."""
        found = self._origins.get((origin.scheme, origin.host, origin.port))
        if found is None:
            raise EgressRefused(f"{origin} is not in the configuration: no connection is made")
        address = _plain(found.host)
        if address is not None:
            _check(address, found)
        self.known[origin] = found
        return found

    def admits(self, host: str, port: int, address: str) -> str:
        """The address, if a connection to this host may go there."""
        found = self._hosts.get((host, port))
        if found is None:
            raise EgressRefused(f"{host}:{port} is not in the configuration: no connection is made")
        _check(ip_address(address.partition("%")[0]), found)
        return address


def _host_of(url: str) -> str:
    """A URL as it may be shown: without its path, which may hold a credential."""
    found = re.match(r"(?:[A-Za-z]+://)?[^/?#]{0,100}", url)
    return conceal(found[0]) if found is not None else ""


def is_exposed(origin: Origin, address: str | None = None) -> bool:
    """Whether others can read what is sent there: over http, to an address that is not of our own network's.

    Without an address, as far as the origin tells: a name marked as private may still lead anywhere.
    """
    if origin.scheme == "https":
        return False
    try:
        return is_public(ip_address((address or origin.host).partition("%")[0]))
    except ValueError:
        return not origin.private


def _plain(host: str) -> Address | None:
    """The address a host is, None for a name; refused unless it is spelled the one way."""
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
        if is_metadata(inner):
            raise EgressRefused(f"{origin.host} leads to {address}, a cloud metadata address: never")
        if not is_public(inner) and not origin.private:
            raise EgressRefused(
                f"{origin.host} leads to {address}, a private address: set private = true if that is meant"
            )
