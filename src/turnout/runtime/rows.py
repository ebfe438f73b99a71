"""Processes rows of a file in parallel: one row out for each row in, in order, in constant memory.

The unit of work is a chunk of lines: small enough to keep a few for each worker in memory, large enough that handing
one over costs little. The number of chunks in progress is limited, so reading never runs ahead of the workers.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import signal
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Struct, field

from turnout.config.load import load_profile
from turnout.config.name import OldNameWarning
from turnout.core.errors import QueryError, TurnoutError, suggest
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.models.embed import find_embedder
from turnout.text.control import escape_json
from turnout.text.json import UNREADABLE, why_unreadable

# At some 15 microseconds a row, a chunk is tens of milliseconds of work; handing it over takes one or two.
CHUNK_ROWS = 1024
CHUNK_BYTES = 1024 * 1024
# Enough for the longest text that is routed, written with escapes.
MAX_LINE_BYTES = 64 * 1024 * 1024
# For each worker, one chunk in work, one waiting, one being written.
CHUNKS_PER_WORKER = 3
# Error messages kept for the summary; the output has all of them.
KEPT_ERRORS = 3

_BOM = b"\xef\xbb\xbf"

J = TypeVar("J")
T = TypeVar("T")


class LineChunk(NamedTuple):
    first: int
    """The number of its first row, from 1."""
    lines: list[bytes | None]
    """None for a line that is too long."""
    size: int
    """Bytes read for it."""


class RowTally(Struct):
    """The counts for some rows."""

    rows: int = 0
    size: int = 0
    """Bytes read."""
    errors: int = 0
    messages: list[str] = field(default_factory=list)
    """The first error messages."""
    routes: Counter[Any] = field(default_factory=Counter)
    outcomes: Counter[Any] = field(default_factory=Counter)

    def fail(self, number: int, error: QueryError) -> None:
        self.errors += 1
        if len(self.messages) < KEPT_ERRORS:
            self.messages.append(f"row {number}: {error}")

    def add(self, other: Self) -> None:
        """Add the counts for other rows."""
        self.rows, self.size, self.errors = self.rows + other.rows, self.size + other.size, self.errors + other.errors
        self.messages += other.messages[: KEPT_ERRORS - len(self.messages)]
        self.routes.update(other.routes)
        self.outcomes.update(other.outcomes)


class DecidedRows(RowTally):
    """The counts and the output for rows that were decided."""

    output: bytes = b""


class BatchJob(NamedTuple):
    """The same for every chunk; a worker builds the router once."""

    profile: str
    config: str | None
    field: str
    with_text: bool = False
    """Write the question into its row as well."""


def chunks(file: BinaryIO) -> Iterator[LineChunk]:
    """The lines of a file, in chunks."""
    return pack(_lines(file))


def pack(lines: Iterable[tuple[bytes | None, int]]) -> Iterator[LineChunk]:
    """Lines with their sizes, in chunks."""
    first, packed, size = 1, list[bytes | None](), 0
    for line, line_bytes in lines:
        packed.append(line)
        size += line_bytes
        if len(packed) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield LineChunk(first, packed, size)
            first, packed, size = first + len(packed), [], 0
    if packed:
        yield LineChunk(first, packed, size)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """Each line and its size; None for one that is too long."""
    line = file.readline(MAX_LINE_BYTES).removeprefix(_BOM)
    while line:
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            yield None, len(line) + _skip_line(file)
        else:
            yield line, len(line)
        line = file.readline(MAX_LINE_BYTES)


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while rest := file.readline(CHUNK_BYTES):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped


def spread(work: Callable[[J, LineChunk], T], job: J, found: Iterable[LineChunk], workers: int) -> Iterator[T]:
    """The result of `work` for every chunk, in order. A single chunk is processed without worker processes."""
    source = iter(found)
    head = list(itertools.islice(source, 2))
    if workers <= 1 or len(head) < 2:
        yield from (work(job, chunk) for chunk in itertools.chain(head, source))
        return
    # Not forked: a fork would inherit locks and handles of the libraries that layers use.
    pool = ProcessPoolExecutor(workers, get_context("spawn"))
    waiting: deque[Future[T]] = deque()
    try:
        for chunk in itertools.chain(head, source):
            with _interrupts_held():
                waiting.append(pool.submit(work, job, chunk))
            if len(waiting) >= workers * CHUNKS_PER_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise TurnoutError("a worker process died, most likely for want of memory: try fewer --workers") from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C from their first instruction on; the parent handles it and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def decide_chunk(job: BatchJob, chunk: LineChunk) -> DecidedRows:
    router = router_of(job.profile, job.config)
    decided = DecidedRows(len(chunk.lines), chunk.size)
    output: list[bytes] = []
    for number, line in enumerate(chunk.lines, chunk.first):
        head = b'{"row":%d,' % number
        try:
            row = read_row(line)
            if "id" in row:
                head += b'"id":%b,' % encode_id(row["id"])
            text = text_of(row, job.field)
            decision = router.route_sync(Query(text))
        except QueryError as error:
            decided.fail(number, error)
            output.append(b'%b"error":%b}\n' % (head, msgspec.json.encode(str(error))))
            continue
        decided.routes[" + ".join(decision.routes)] += 1
        decided.outcomes[decision.outcome] += 1
        if job.with_text:
            head += b'"text":%b,' % msgspec.json.encode(text)
        output.append(b'%b"decision":%b}\n' % (head, decision.json()))
    decided.output = escape_json(b"".join(output))
    return decided


@functools.cache
def router_of(profile: str, config: str | None) -> Router:
    """The router of a profile, without warnings: the main process has given them already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OldNameWarning)
        return Router(load_profile(profile, config=config, embedder=find_embedder()))


_row = msgspec.json.Decoder(dict[str, msgspec.Raw])
_string = msgspec.json.Decoder(str)


def read_row(line: bytes | None) -> dict[str, msgspec.Raw]:
    """The fields of a row; raises QueryError if it is not a JSON object."""
    if line is None:
        raise QueryError(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
    if not line.strip():
        raise QueryError("the line is empty")
    try:
        return _row.decode(line)
    except UNREADABLE as error:
        raise QueryError(f"not a JSON object: {why_unreadable(error, line)}") from None


def text_of(row: dict[str, msgspec.Raw], name: str) -> str:
    if name not in row:
        known = suggest(name, row) or f" (it has: {', '.join(list(row)[:8]) or 'none'})"
        raise QueryError(f"no field {name!r}{known}")
    try:
        return _string.decode(row[name])
    except UNREADABLE as error:
        raise QueryError(f"field {name!r} is not text: {why_unreadable(error, row[name])}") from None


def read_texts(file: BinaryIO, place: str, *fields: str) -> Iterator[tuple[str, list[str]]]:
    """The place of each row (`row 7` for the place `row `) and these fields of it; blank lines are skipped."""
    for chunk in chunks(file):
        for number, line in enumerate(chunk.lines, chunk.first):
            if line is not None and not line.strip():
                continue
            try:
                row = read_row(line)
                yield f"{place}{number}", [text_of(row, name) for name in fields]
            except QueryError as error:
                raise QueryError(f"{place}{number}: {error}") from None


def encode_id(ident: msgspec.Raw) -> bytes:
    """The row's id, decoded and encoded again so that the output is valid JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(ident))
    except UNREADABLE as error:
        raise QueryError(f"the id cannot be read: {why_unreadable(error, ident)}") from None
