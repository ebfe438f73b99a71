"""The table `[net]`: a company's outbound proxy.

Only the settings file is used, never a variable such as HTTPS_PROXY that a shell happens to have. A configured proxy
that cannot be read is an error: requests never bypass it.
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
    problems = [document.problem(path, why) for path, why in conform(table, _TYPE, ("net",))]
    if problems:
        raise ConfigError(problems)
    setting = msgspec.convert(table, NetSettings).proxy
    if setting is None:
        return None
    where = ("net", "proxy")
    if isinstance(setting, str):
        if "@" in setting:
            why = 'a password does not belong in a file: proxy = { env = "NAME" } or { file = "PATH" }'
            raise ConfigError([document.problem(where, why)])
        url = setting
    else:
        secret = setting.read("net.proxy")
        if secret is None:
            raise ConfigError([document.problem(where, f"{setting.place} is empty: it must hold http://host:port")])
        url = secret.reveal()
    try:
        return proxy_of(url)
    except EgressRefused as error:
        raise ConfigError([document.problem(where, str(error))]) from None
