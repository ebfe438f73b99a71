"""Reading a body as a server hands it over, piece by piece."""

import asyncio
from typing import Any, NamedTuple

import pytest

from turnout.core.errors import Refused
from turnout.web.app import read_body

LIMIT = 10


class Case(NamedTuple):
    id: str
    pieces: list[tuple[bytes, bool]]
    """What comes, and whether the server says that more does. After the last one nothing comes for ever."""
    headers: dict[str, str]
    body: bytes | int
    """What is read, or the status it is refused with."""


CASES = [
    Case("one-piece", [(b"abc", False)], {"content-length": "3"}, b"abc"),
    Case("ends-with-its-length", [(b"abc", True)], {"content-length": "3"}, b"abc"),
    Case("ends-with-its-length-in-pieces", [(b"ab", True), (b"c", True)], {"content-length": "3"}, b"abc"),
    Case("empty", [(b"", False)], {"content-length": "0"}, b""),
    Case("without-a-length", [(b"ab", True), (b"c", False)], {}, b"abc"),
    # Chunks say themselves where they end; a length beside them says nothing.
    Case(
        "chunks-and-a-length",
        [(b"abc", True), (b"def", False)],
        {"content-length": "3", "transfer-encoding": "chunked"},
        b"abcdef",
    ),
    Case("a-length-that-is-none", [(b"abc", True), (b"d", False)], {"content-length": "+3"}, b"abcd"),
    Case("too-long-by-its-length", [], {"content-length": "11"}, 413),
    Case("too-long-as-it-comes", [(b"abcdef", True), (b"abcdef", True)], {}, 413),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_body_is_read_to_its_end(case: Case) -> None:
    coming = iter(case.pieces)

    async def receive() -> Any:
        for piece, more in coming:
            return {"type": "http.request", "body": piece, "more_body": more}
        return await asyncio.Event().wait()

    async def read() -> bytes:
        async with asyncio.timeout(5):
            return await read_body(receive, LIMIT, case.headers)

    if isinstance(case.body, bytes):
        assert asyncio.run(read()) == case.body
    else:
        with pytest.raises(Refused) as refused:
            asyncio.run(read())
        assert refused.value.status == case.body
