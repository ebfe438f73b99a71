"""How much of a user's text is kept, decided before a row is queued anywhere.

    off      nothing of it
    hash     a keyed hash: the same question can be counted, not read
    snippet  the hash and the first 60 characters, personal data masked
    full     every character, so that a decision can be replayed and learnt from

What a decision's reasons quote is the user's text too, and so is what an application remembers beside an outcome: they
follow the same level. Nothing is masked when a row is read, because whatever was queued has already been on a disk.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, get_args

import msgspec

from .mask import mask
from .storable import each_text, writable

Level = Literal["off", "hash", "snippet", "full"]
LEVELS: tuple[Level, ...] = get_args(Level)

# The topic length of the assist profile's intent history: a snippet is enough to build that history from.
SNIPPET_CHARACTERS = 60
# What is masked to get those, and how much of its end is not shown: half a mail address does not look like one.
WINDOW_CHARACTERS, EDGE_CHARACTERS = 240, 80
# 128 bits: no two of a billion questions collide by chance.
DIGEST_BYTES = 16


def snippet(text: str) -> str:
    """The beginning, masked. Masked first: half a card number cut off at the edge would not look like one."""
    shown = mask(text[:WINDOW_CHARACTERS])
    if len(text) > WINDOW_CHARACTERS:
        shown = shown[:-EDGE_CHARACTERS]
    return shown[:SNIPPET_CHARACTERS]


def keep(text: str, level: Level) -> str | None:
    """What a level keeps of a text."""
    if level == "full":
        return writable(text)
    return snippet(text) if level == "snippet" else None


def digest(text: str, tenant: str, key: bytes) -> str:
    """Tells whether two questions of one tenant are the same, and nothing to whoever lacks the key."""
    hashed = hashlib.blake2b(key=key, digest_size=DIGEST_BYTES)
    hashed.update(tenant.encode("utf-8", "replace") + b"\0")
    hashed.update(text.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def redact_body(body: bytes, level: Level) -> bytes:
    """A decision's JSON form without what the level does not keep: codes and numbers stay, sentences go."""
    if level == "full":
        return body
    form = msgspec.json.decode(body)
    _redact_form(form, level)
    return msgspec.json.encode(form)


def _redact_form(form: dict[str, Any], level: Level) -> None:
    told = [form["reasons"], *(step.get("reasons") or () for step in form["trace"])]
    for reason in (reason for reasons in told for reason in reasons):
        reason["text"] = keep(reason["text"], level) or ""
    # A pattern that was found is as good as the words it stands for.
    form.pop("hits", None)
    for field in ("text", "then"):
        if field in form:
            form[field] = keep(form[field], level) or ""
    for part in form["parts"]:
        _redact_form(part, level)


def redact_extra(extra: Any, level: Level) -> Any:
    """What an application remembers, as plain data, likewise: numbers stay, texts as far as the level keeps them."""
    return each_text(extra, lambda text: keep(text, level))
