"""Everything that can stand where a file should: for tests of whoever reads one.

A thing is put in a file's place by renaming a link over it, so that a reader never sees a moment without either.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class BrokenFile(NamedTuple):
    id: str
    make: Callable[[Path], object] | None
    """Makes it under a name that is free; None: there is nothing at all."""


def content(raw: bytes | str) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"# a comment\n")
        file.truncate(100_000_000)


def _circle(path: Path) -> None:
    one, other = path.with_name(f"{path.name}.one"), path.with_name(f"{path.name}.other")
    one.symlink_to(other)
    other.symlink_to(one)
    path.symlink_to(one)


# What no reader of any file can use.
ANYWHERE = [
    BrokenFile("binary", content(b"\x7fELF\x02\x01\x01\x00\xff\xfe" + bytes(range(256)))),
    BrokenFile("utf-16", content('name = "x"\n'.encode("utf-16"))),
    BrokenFile("latin-1", content(b'name = "caf\xe9"\n')),
    BrokenFile("nul", content(b'a = "\0"\n\0\0\0')),
    BrokenFile("a-directory", Path.mkdir),
    BrokenFile("a-pipe", os.mkfifo),
    BrokenFile("no-end", lambda path: path.symlink_to("/dev/zero")),
    BrokenFile("an-input-error", lambda path: path.symlink_to("/proc/self/mem")),
    BrokenFile("100-mb", _huge),
    BrokenFile("gone", None),
    BrokenFile("a-link-to-nothing", lambda path: path.symlink_to(path.with_name("nothing"))),
    BrokenFile("links-in-a-circle", _circle),
]
IN_TOML = [
    BrokenFile("unfinished", content("[models.simple\n")),
    BrokenFile("twice", content("a = 1\na = 2\n")),
    BrokenFile("deep-list", content("a = " + "[" * 100_000)),
    BrokenFile("deep-list-closed", content("a = " + "[" * 200 + "]" * 200)),
    BrokenFile("deep-table", content("a = " + "{a=" * 5_000)),
    BrokenFile("deep-header", content(f"[{'.'.join('a' * 500_000)}]\n")),
    BrokenFile("many-digits", content(f"a = {'9' * 5_000}\n")),
    BrokenFile("many-hex-digits", content(f"a = 0x{'f' * 100_000}\n")),
    BrokenFile("nan", content("[server]\ndrain_s = nan\n[models]\nsimple = nan\n[fallback]\nconfidence = nan\n")),
    BrokenFile("odd-kinds", content("models = [1]\nstore = 2\nserver = 3\nlayers = [{kind = []}, 4]\nname = {}\n")),
]
IN_JSONL = [
    BrokenFile("no-json", content("nonsense\n")),
    BrokenFile("deep-json", content("[" * 100_000)),
    BrokenFile("half-a-pair", content('{"id":"x","route":"first","text":"\\ud800"}\n')),
    BrokenFile("no-route", content('{"id":"x","route":"nowhere","text":"x"}\n')),
    BrokenFile("infinite", content('{"id":"x","route":"first","text":"x","confidence":1e999}\n')),
    BrokenFile("many-digits", content(f'{{"id":"x","route":"first","text":"x","confidence":{"9" * 5_000}}}\n')),
]
IN_A_KEY = [
    BrokenFile("several-lines", content("sk-canary-one\nsk-canary-two\n")),
    BrokenFile("split", content("sk-canary-\nsplit-in-two")),
    BrokenFile("a-space", content("sk-canary one")),
    BrokenFile("a-tab", content("sk-canary\tone")),
    BrokenFile("no-ascii", content("sk-canary-Ã¼-one")),
    BrokenFile("zero-width", content("sk-canary\u200b-one")),
    BrokenFile("utf-16-without-a-mark", content("sk-canary".encode("utf-16-le"))),
    BrokenFile("utf-16-big", content(b"\xfe\xff" + "sk-canary".encode("utf-16-be"))),
    BrokenFile("utf-32", content("sk-canary".encode("utf-32"))),
    BrokenFile("long", content("sk-canary" * 20_000)),
]


def put(broken: BrokenFile, path: Path) -> None:
    """Let the broken thing stand where a file was, from one moment to the next."""
    if broken.make is None:
        path.unlink()
        return
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    broken.make(beside)
    if beside.is_dir() and not beside.is_symlink():
        link = beside.with_name(f"{beside.name}.link")
        link.symlink_to(beside)
        beside = link
    os.replace(beside, path)


def mend(path: Path, raw: bytes) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    part.write_bytes(raw)
    os.replace(part, path)


def damaged(sound: bytes, seed: int) -> Iterator[bytes]:
    """Variants of a sound content: bytes changed, cut out, doubled, or swapped for hostile ones."""
    import random

    chance = random.Random(seed)
    hostile = (b"\0", b"\xff", b"\xed\xa0\x80", b'"', b"[", b"{", b"]]", b"\n", b"9" * 400, b"nan", b"-1", b"\\ud800")
    while True:
        raw = bytearray(sound)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(raw) + 1)
            end = min(len(raw), at + chance.choice((0, 1, 1, 4, 30)))
            raw[at:end] = chance.choice(
                (b"", bytes([chance.randrange(256)]), chance.choice(hostile), bytes(raw[at:end]) * 2)
            )
        yield bytes(raw)
