"""Inflates a compressed body within a limit, so that a small response never becomes huge in memory.

Some servers compress responses although they are asked not to.
"""

from __future__ import annotations

import zlib

from turnout.core.errors import Broken

# The window's size and the wrapping of the stream: 32 means gzip or zlib, and deflate is sometimes bare.
_ANY, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
ENCODINGS = {"gzip": (_ANY,), "x-gzip": (_ANY,), "deflate": (_ANY, _BARE)}


def inflate(body: bytes, encoding: str, limit: int, where: str) -> bytes:
    """The inflated body; raises Broken if it is longer than the limit, or damaged."""
    if not body:
        return body
    damage = ""
    for wrapping in ENCODINGS[encoding]:
        stream = zlib.decompressobj(wrapping)
        try:
            whole = stream.decompress(body, limit + 1)
        except zlib.error as error:
            damage = str(error)
            continue
        if len(whole) > limit:
            raise Broken(f"{where}: the answer is longer than {limit:,} bytes once it is inflated")
        if not stream.eof:
            raise Broken(f"{where}: the compressed answer breaks off")
        return whole
    raise Broken(f"{where}: the answer is not {encoding}, as it says ({damage})")
