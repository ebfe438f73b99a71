"""Texts and JSON as every database can hold them: no NUL, no lone surrogate, no name too long for an index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec

# PostgreSQL indexes at most 2,704 bytes: two such names of four bytes a character, and an id.
NAME_CHARACTERS = 200
# 128 bits: no two names collide by chance.
NAME_DIGEST_BYTES = 16

_SURROGATE = re.compile("[\ud800-\udfff]")


def writable(text: str) -> str:
    """The text as every database can hold it: NUL and lone surrogates become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def name(text: str) -> str:
    """A tenant's or a session's name as every database can index it: one that is too long ends with its hash."""
    text = writable(text)
    if len(text) <= NAME_CHARACTERS:
        return text
    rest = hashlib.blake2b(text.encode(), digest_size=NAME_DIGEST_BYTES).hexdigest()
    return f"{text[: NAME_CHARACTERS - len(rest) - 1]}…{rest}"


def writable_json(form: bytes) -> bytes:
    """JSON without NUL: PostgreSQL takes the escape into a column and then cannot read the column."""
    # A byte is found much faster than six.
    if b"\\" not in form or b"\\u0000" not in form:
        return form
    # A backslash of the text's own is written as two, and `\\u0000` after it is four letters and no escape. JSON holds
    # no byte zero itself, so that one stands for the two meanwhile: ten times quicker than a pattern.
    return form.replace(b"\\\\", b"\0").replace(b"\\u0000", b"\\ufffd").replace(b"\0", b"\\\\")


def encode(value: object) -> bytes:
    """The value as JSON that every database can hold."""
    try:
        form = msgspec.json.encode(value)
    except UnicodeEncodeError:
        form = b""
    if form and b"\\u0000" not in form:
        return form
    # In a text they are replaced much faster than in its JSON form.
    return writable_json(msgspec.json.encode(each_text(msgspec.to_builtins(value), writable)))


def each_text(value: Any, kept: Callable[[str], str | None]) -> Any:
    """Plain data with every text in it changed; the keys of tables are the application's own."""
    if isinstance(value, str):
        return kept(value)
    if isinstance(value, dict):
        return {writable(key) if isinstance(key, str) else key: each_text(one, kept) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(one, kept) for one in value]
    return value
