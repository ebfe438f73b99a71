"""How much of a user's text is kept, decided before a row is queued anywhere.

    off      nothing of it
    hash     a keyed hash: the same question can be counted, not read
    snippet  the hash and the first 60 characters, personal data masked
    full     every character, so that a decision can be replayed and learnt from

What a decision's reasons quote is the user's text too: they follow the same level. Nothing is masked when a row is
read, because whatever was queued has already been on a disk.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, get_args

import msgspec
import re2

Level = Literal["off", "hash", "snippet", "full"]
LEVELS: tuple[Level, ...] = get_args(Level)

# The topic length of the assist profile's intent history: a snippet is enough to build that history from.
SNIPPET_CHARACTERS = 60
# 128 bits: no two of a billion questions collide by chance.
DIGEST_BYTES = 16

_MASKS: tuple[tuple[str, str], ...] = (
    (r"(?i)-----BEGIN [A-Z ]*PRIVATE KEY-----", "[key]"),
    # Prefixes that providers give their keys, then three base64 parts with dots, then anything long and random-looking.
    (r"\b(?:sk|pk|rk|tno|ghp|gho|ghs|ghu|glpat|xox[abprs]|hf|AKIA|ASIA|AIza)[-_]?[A-Za-z0-9_-]{12,}", "[key]"),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", "[token]"),
    (r"(?i)\bbearer\s+\S{8,}", "bearer [token]"),
    (r"(?i)\b(password|passwd|secret|api[_-]?key)(\s*(?:[:=]|\bis\b)\s*)\S+", r"\1\2[secret]"),
    (r"\b[0-9a-fA-F]{32,}\b", "[token]"),
    (r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}", "[email]"),
    (r"\b(?:\d[ -]?){12,18}\d\b", "[number]"),
    (r"\+?\(?\d{2,4}\)?(?:[ .-]?\(?\d{2,4}\)?){2,4}\b", "[phone]"),
)
_compiled: list[tuple[Any, str]] = []


def mask(text: str) -> str:
    """The text with keys, tokens, mail addresses, card and phone numbers replaced by what they are."""
    if not _compiled:
        _compiled.extend((re2.compile(pattern), becomes) for pattern, becomes in _MASKS)
    text = writable(text)
    for pattern, becomes in _compiled:
        text = pattern.sub(becomes, text)
    return text


def snippet(text: str) -> str:
    """The beginning, masked. Masked first: half a card number cut off at the edge would not look like one."""
    return mask(text[: 4 * SNIPPET_CHARACTERS])[:SNIPPET_CHARACTERS]


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


def writable(text: str) -> str:
    """The text as every database can hold it: NUL and lone surrogates become U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode() if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def redact_body(body: bytes, level: Level) -> bytes:
    """A decision's JSON form without what the level does not keep: codes and numbers stay, sentences go."""
    form = msgspec.json.decode(body)
    _redact_form(form, level)
    return msgspec.json.encode(form)


def _redact_form(form: dict[str, Any], level: Level) -> None:
    told = [form["reasons"], *(step.get("reasons") or () for step in form["trace"])]
    for reason in (reason for reasons in told for reason in reasons):
        reason["text"] = mask(reason["text"]) if level == "snippet" else ""
    for name in ("text", "then"):
        if name in form:
            form[name] = snippet(form[name]) if level == "snippet" else ""
    for part in form["parts"]:
        _redact_form(part, level)
