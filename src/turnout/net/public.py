"""The public web: pages of hosts outside the configuration, which a source or an audit may read.

Only GET, only ports 80 and 443, no credentials, no cookies. A name is resolved once and connected to only if all its
addresses are public. Bodies have a limit, and each redirect is checked like the first address. No page, name or
redirect ever leads to a private address, and no setting allows one.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, urljoin

from turnout.core.errors import Broken, EgressRefused

from .client import Client, Request
from .deadline import Deadline
from .egress import PORTS, Egress, Origin, Proxy, origin_of
from .transport import Transport

# Of one page. The median page has some 30 kB of HTML, the largest in a hundred 1 MB.
PAGE_BYTES = 4 * 1024 * 1024
# Enough for http to https, to www, to a language, to a consent page.
REDIRECTS = 5
# Not every browser supports longer ones.
LONGEST_URL = 2048

_URL = re.compile(r"(?i)(https?)://([^/?#\\]*)([^#]*)")
# These characters stay as they are in a path and a query; others are percent-encoded.
_SAFE = "/?%:@!$&'()*+,;=~[]-._"
_CONTROL = re.compile(r"[\x00-\x20\x7f\\]")


class Page(NamedTuple):
    url: str
    """After redirects."""
    status: int
    headers: dict[str, str]
    body: bytes


def place_of(url: str) -> tuple[Origin, str]:
    """The origin and the path of a public URL; refused unless it is plain."""
    match = _URL.match(url)
    if match is None or len(url) > LONGEST_URL or _CONTROL.search(url):
        raise EgressRefused(f"{url[:120]!r} is not a plain http or https address of at most {LONGEST_URL:,} characters")
    scheme, host, path = match.groups()
    origin = origin_of(f"{scheme.lower()}://{host}")
    path = quote(path, safe=_SAFE)
    return origin, path if path.startswith("/") else f"/{path}"


class PublicEgress(Egress):
    """The guard of the public web: allows every public address and no other."""

    def allows(self, origin: Origin) -> Origin:
        if self.proxy is not None:
            # It would resolve names itself, so that their addresses could not be checked.
            raise EgressRefused(f"{origin.host}: the public web is not read through a proxy; [net] proxy is set")
        if origin.scheme not in PORTS or origin.port not in PORTS.values():
            raise EgressRefused(f"{origin}: only ports 80 and 443 of the public web are read")
        if origin.private:
            raise EgressRefused(f"{origin.host} is in this network: the public web is not there")
        return Egress(frozenset((origin,))).allows(origin)

    def admits(self, host: str, port: int, address: str) -> str:
        found = Origin("http", host, port)
        return Egress(frozenset((found,))).admits(host, port, address)


class PublicWeb:
    """Reads pages. One for the whole process; used inside one running event loop."""

    def __init__(self, transport: Transport | None = None, proxy: Proxy | None = None) -> None:
        self._client = Client(PublicEgress(frozenset(), proxy), transport)

    async def get(self, url: str, deadline: Deadline, limit: int = PAGE_BYTES) -> Page:
        """The page at an address, after redirects. Raises a NetError."""
        for _ in range(REDIRECTS + 1):
            origin, path = place_of(url)
            request = Request(origin, path, method="GET", headers={"accept": "text/html,*/*;q=0.1"}, inflates=True)
            async with await self._client.open(request, deadline.left) as response:
                moved = response.headers.get("location", "") if 300 <= response.status < 400 else ""
                if not moved:
                    return Page(url, response.status, dict(response.headers), await response.read(deadline, limit))
            try:
                url = urljoin(url, moved)
            except ValueError:
                raise Broken(f"{origin.host}: it leads to {moved[:80]!r}, which is not an address") from None
        raise Broken(f"{place_of(url)[0].host}: more than {REDIRECTS} redirects")

    async def close(self) -> None:
        await self._client.close()
