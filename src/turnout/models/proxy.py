"""The table `[net]`: the proxy that leads out of this network, where a company has one.

Only what is written there is used, never a variable such as HTTPS_PROXY that a shell happens to have. A proxy that is
configured and cannot be read is an error: requests never go around it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import msgspec.inspect
from msgspec import Struct

from turnout.config.check import conform
from turnout.config.document import Document
from turnout.core.errors import ConfigError, EgressRefused
from turnout.net.egress import Proxy, proxy_of

from .secret import SecretPlace


class NetSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    proxy: str | SecretPlace | None = None
    """`http://host:port`; one with a password only as `{ env = "NAME" }` or `{ file = "PATH" }`."""


_TYPE = msgspec.inspect.type_info(NetSettings)


def read_proxy(document: Document) -> Proxy | None:
    """The proxy of a settings file."""
    table: Any = document.tree.get("net", {})
    problems = [document.problem(path, said) for path, said in conform(table, _TYPE, ("net",))]
    if problems:
        raise ConfigError(problems)
    said = msgspec.convert(table, NetSettings).proxy
    if said is None:
        return None
    where = ("net", "proxy")
    if isinstance(said, str):
        if "@" in said:
            refused = 'a password does not belong in a file: proxy = { env = "NAME" } or { file = "PATH" }'
            raise ConfigError([document.problem(where, refused)])
        url = said
    else:
        secret = said.read("net.proxy")
        if secret is None:
            raise ConfigError([document.problem(where, f"{said.place} is empty: it must hold http://host:port")])
        url = secret.reveal()
    try:
        return proxy_of(url)
    except EgressRefused as error:
        raise ConfigError([document.problem(where, str(error))]) from None
