"""A compressed body, inflated within a limit: what is small on the wire never becomes huge in memory.

Asked for as they are, some servers compress their answers all the same. Each step inflates at most what is left of the
limit, so that a bomb costs no more than an honest answer of that size.
"""

from __future__ import annotations

import zlib

from turnout.core.errors import Broken

# The window's size, and how the stream is wrapped: 32 adds "gzip or zlib, whichever it is"; deflate is at times bare.
_ANY, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
ENCODINGS = {"gzip": (_ANY,), "x-gzip": (_ANY,), "deflate": (_ANY, _BARE)}


def inflate(body: bytes, encoding: str, limit: int, where: str) -> bytes:
    """The body as it was before it was compressed; raises Broken if it is longer than the limit, or damaged."""
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
