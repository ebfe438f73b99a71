"""The table `[server]` of `turnout.toml`."""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta, Struct

from .settings import read_settings

Port = Annotated[int, Meta(ge=0, le=65_535)]
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0.0)]


class ServerSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    port: Port = 8401
    admin_host: str = "127.0.0.1"
    """Where metrics and administration listen; never where clients do."""
    admin_port: Port = 8402
    admin_public: bool = False
    """Whether `admin_host` may be an address that other machines reach."""
    hosts: tuple[str, ...] = ()
    """Names clients may call this server by, beside this machine's own."""
    origins: tuple[str, ...] = ()
    """Web pages that may call it, as `https://example.org`."""
    profile: str | None = None
    """The profile `auto` uses; by default `tiers`."""
    profiles: tuple[str, ...] = ()
    """Profiles `/v1/route` serves beside the ones that ship."""
    body_bytes: Count = 32 * 1024 * 1024
    header_bytes: Count = 64 * 1024
    connections: Count = 2048
    """Open at once; more wait to be accepted. Fewer where the process may not have as many files open."""
    requests: Count = 200
    """Under way at once; the others wait a moment and are then refused."""
    sockets: Count = 512
    """WebSockets open at once; more are refused."""
    key_sockets: Count = 64
    """Of them, those of one key."""
    waiting: Count = 64
    wait_s: Seconds = 0.025
    """How long a request waits for its turn; a client that is told soon can go elsewhere."""
    drain_s: Seconds = 30.0
    """What running requests get when the server is told to stop."""
    lag_s: Seconds = 0.01
    """Fewer requests are admitted while the event loop is this far behind."""

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host) and is_loopback(self.admin_host)

    @property
    def is_private(self) -> bool:
        """Whether only people at this machine come to it: on loopback, and under none but its own names, as it would
        have behind a proxy."""
        return self.loopback and all(is_loopback(name) for name in self.hosts)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name that merely begins like an address may lead anywhere."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def server_settings(config: str | os.PathLike[str] | None = None) -> ServerSettings:
    return read_settings("server", ServerSettings, config)
