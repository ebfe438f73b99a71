"""Whom the server lets speak at all: requests that name it rightly, and that no foreign web page has sent.

On loopback no key is needed, so this is what stands between a page in the user's browser and the user's models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import Any

from turnout.core.errors import Refused

from .settings import ServerSettings

LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


class Guard:
    def __init__(self, settings: ServerSettings) -> None:
        self.hosts = LOCAL | {name.casefold() for name in settings.hosts}
        # The names for "everywhere" are no place to call.
        self.hosts |= {settings.host.casefold(), settings.admin_host.casefold()} - {"0.0.0.0", "::"}  # noqa: S104
        self.hosts -= {""}  # an empty name is no host's
        self.origins = frozenset(origin.casefold().rstrip("/") for origin in settings.origins)

    def check_form(self, scope: MutableMapping[str, Any]) -> None:
        """Refuse a request that two readers could read in two ways: with two hosts, or a path that is not one."""
        if [name for name, _ in scope["headers"]].count(b"host") > 1:
            raise _unclear("more than one Host header: send exactly one")
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        if not path.startswith(b"/"):
            raise _unclear("the request's target is not a path of this server: begin it with /")
        # The name of a model may have a slash, and client libraries encode it.
        names = path.upper().replace(b"%2F", b"") if path.startswith(MODELS) else path
        if (found := _SLASHES.search(names)) is not None:
            raise _unclear(f"{found[0].decode()} in a path is not taken: write the character itself, or another path")

    def read(self, headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
        """The headers by name, of a request that may be served."""
        named = header_map(headers)
        self.check(named)
        return named

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for another host, and one that a foreign page's script or form has sent."""
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            raise Refused(
                421, "invalid_request_error", f"host {host[:80]!r} is not served here: add it to hosts in [server]"
            )
        origin = headers.get("origin")
        if origin is not None:
            own = f"//{host}".casefold()
            if origin.casefold() not in (*self.origins, f"http:{own}", f"https:{own}"):
                said = f"origin {origin[:80]!r} may not call this server: add it to origins in [server]"
                raise Refused(403, "permission_error", said)
        site = headers.get("sec-fetch-site", "").strip().casefold()
        if site == "cross-site" and (origin is None or origin.casefold() not in self.origins):
            raise Refused(403, "permission_error", "a page of another site may not call this server")


def check_own_page(headers: Mapping[str, str]) -> None:
    """Refuse what changes something unless a page of this server has sent it. Any process on the machine can call the
    other routes; these a browser calls in its user's name, so that what cannot be told is refused as well."""
    site, origin = headers.get("sec-fetch-site", "").strip().casefold(), headers.get("origin", "").casefold()
    own = f"//{headers.get('host', '')}".casefold()
    if site not in ("", "same-origin") or (not site and origin not in (f"http:{own}", f"https:{own}")):
        raise Refused(403, "permission_error", "only a page of this server may ask for this: open the console again")


def header_map(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers by name. Of a repeated one the first counts: nothing decided by them may appear twice anyway."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}


MODELS = b"/v1/models/"
_SLASHES = re.compile(rb"%(?:2[Ff]|5[Cc])")


def _unclear(said: str) -> Refused:
    return Refused(400, "invalid_request_error", said)


# A name or an address of four numbers, or one of IPv6 in brackets; then perhaps a port. Nothing else names a host.
_HOST = re.compile(r"(?:\[([0-9a-f:]*:[0-9a-f:.]*)\]|([0-9a-z._-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


# A name has 253 characters at most, and its port six.
HOST_CHARACTERS = 259


def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty for what is none."""
    return _host_name(host) if len(host) <= HOST_CHARACTERS else ""


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).casefold() if found is not None else ""
