"""The public web: pages outside the configuration, which a source or an audit is allowed to read.

Other rules than for configured hosts. GET and nothing else; ports 80 and 443; a name is resolved once, and only if all
its addresses are public is one of them connected to; no credential, no cookie; bodies are bounded; a redirect is a new
address that is checked like the first. Nothing private is ever reached, whatever the page, the name or the redirect
says: there is no setting for it.
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
# As many as curl's users need: http to https, to www, to a language, to a consent page.
REDIRECTS = 5
# No browser takes a longer address for granted.
LONGEST_URL = 2048

_URL = re.compile(r"(?i)(https?)://([^/?#\\]*)([^#]*)")
# What stays as it is in a path and a query; the rest is percent-encoded.
_SAFE = "/?%:@!$&'()*+,;=~[]-._"
_CONTROL = re.compile(r"[\x00-\x20\x7f\\]")


class Page(NamedTuple):
    """What was read."""

    url: str
    """Where it was in the end."""
    status: int
    headers: dict[str, str]
    body: bytes


def place_of(url: str) -> tuple[Origin, str]:
    """Where a public URL leads, and the path to ask for there; refused unless it is plain and public."""
    found = _URL.match(url)
    if found is None or len(url) > LONGEST_URL or _CONTROL.search(url):
        raise EgressRefused(f"{url[:120]!r} is not a plain http or https address of at most {LONGEST_URL:,} characters")
    scheme, host, path = found.groups()
    origin = origin_of(f"{scheme.lower()}://{host}")
    path = quote(path, safe=_SAFE)
    return origin, path if path.startswith("/") else f"/{path}"


class PublicEgress(Egress):
    """The guard of the public web: anywhere on it, nowhere else."""

    def allows(self, origin: Origin) -> Origin:
        if self.proxy is not None:
            # It would resolve names itself, and nothing here could tell whether they are public.
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
        """The page at an address, or at the one that this leads to. Raises a NetError."""
        for _ in range(REDIRECTS + 1):
            origin, path = place_of(url)
            request = Request(origin, path, method="GET", headers={"accept": "text/html,*/*;q=0.1"}, inflates=True)
            async with await self._client.open(request, deadline.left) as response:
                moved = response.headers.get("location", "") if 300 <= response.status < 400 else ""
                if not moved:
                    body = await response.read(deadline, limit)
                    return Page(url, response.status, dict(response.headers), body)
            try:
                url = urljoin(url, moved)
            except ValueError:
                raise Broken(f"{origin.host}: it leads to {moved[:80]!r}, which is no address") from None
        raise Broken(f"{place_of(url)[0].host}: more than {REDIRECTS} redirects")

    async def close(self) -> None:
        await self._client.close()
