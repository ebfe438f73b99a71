"""Redacts a user's text before a row is written anywhere, and makes texts that every database can hold.

    off      nothing of it
    hash     a keyed hash: the same question can be counted, not read
    snippet  the hash and the first 60 characters, personal data masked
    full     every character, so that a decision can be replayed and learnt from

The level also applies to a decision's reasons, which quote the user's text, and to an application's extra fields of an
outcome. Nothing is masked when a row is read: by then it has been on a disk.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from itertools import chain
from typing import Any, Literal, get_args

import msgspec
import re2

Level = Literal["off", "hash", "snippet", "full"]
LEVELS: tuple[Level, ...] = get_args(Level)

# The topic length of the assist profile's intent history: a snippet is enough to build that history from.
SNIPPET_CHARACTERS = 60
# The part that is masked for a snippet, and how much of its end is dropped: half a mail address is not recognised.
WINDOW_CHARACTERS, EDGE_CHARACTERS = 240, 80

# PostgreSQL indexes at most 2,704 bytes: two such names of four bytes a character, and an id.
NAME_CHARACTERS = 200
# 128 bits: no two names collide by chance.
NAME_DIGEST_BYTES = 16

_SURROGATE = re.compile("[\ud800-\udfff]")


def snippet(text: str) -> str:
    """The beginning, masked before it is cut: half a card number would not be recognised."""
    shown = mask(text[:WINDOW_CHARACTERS])
    if len(text) > WINDOW_CHARACTERS:
        shown = shown[:-EDGE_CHARACTERS]
    return shown[:SNIPPET_CHARACTERS]


def keep(text: str, level: Level) -> str | None:
    """The part of a text that a level keeps."""
    if level == "full":
        return writable(text)
    return snippet(text) if level == "snippet" else None


def redact_body(body: bytes, level: Level) -> bytes:
    """A decision's JSON form at a level: codes and numbers stay, texts are redacted."""
    if level == "full":
        return body
    form = msgspec.json.decode(body)
    _redact_form(form, level)
    return msgspec.json.encode(form)


def _redact_form(form: dict[str, Any], level: Level) -> None:
    lists = [form["reasons"], *(step.get("reasons") or () for step in form["trace"])]
    for reason in chain.from_iterable(lists):
        reason["text"] = keep(reason["text"], level) or ""
    # A pattern that was found reveals the words it stands for.
    form.pop("hits", None)
    for field in ("text", "then"):
        if field in form:
            form[field] = keep(form[field], level) or ""
    for part in form["parts"]:
        _redact_form(part, level)


def redact_extra(extra: Any, level: Level) -> Any:
    """An application's extra fields, as plain data, at a level: numbers stay, texts are redacted."""
    return each_text(extra, lambda text: keep(text, level))


# --- texts and JSON as every database can hold them: no NUL, no lone surrogate, no name too long for an index


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
    """A tenant's or a session's name that every database can index: one that is too long ends with a hash."""
    text = writable(text)
    if len(text) <= NAME_CHARACTERS:
        return text
    rest = hashlib.blake2b(text.encode(), digest_size=NAME_DIGEST_BYTES).hexdigest()
    return f"{text[: NAME_CHARACTERS - len(rest) - 1]}…{rest}"


def writable_json(form: bytes) -> bytes:
    """JSON without NUL: PostgreSQL stores the escape and then cannot read the column."""
    if b"\\u0000" not in form:
        return form
    # A backslash in a text is written as two, and `\\u0000` is then not an escape. JSON has no zero bytes, so a zero
    # stands for the two backslashes meanwhile: ten times faster than a regular expression.
    return form.replace(b"\\\\", b"\0").replace(b"\\u0000", b"\\ufffd").replace(b"\0", b"\\\\")


def each_text(value: Any, kept: Callable[[str], str | None]) -> Any:
    """Plain data with every text in it changed, except the keys of tables."""
    if isinstance(value, str):
        return kept(value)
    if isinstance(value, dict):
        return {writable(key) if isinstance(key, str) else key: each_text(one, kept) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(one, kept) for one in value]
    return value


# --- personal data and secrets, recognised by their form and replaced by their kind. When in doubt they are hidden; but
# years, prices, versions, dates, IP addresses and ISBNs stay, because a snippet without them says little. The tests
# list known mistakes.

Becomes = str | Callable[[Any], str]


def mask(text: str) -> str:
    """The text with keys, tokens, mail addresses, card and phone numbers replaced by their kind."""
    if not _compiled:
        _compiled.extend((re2.compile(pattern), becomes) for pattern, becomes in _MASKS)
    text = writable(text)
    for pattern, becomes in _compiled:
        text = pattern.sub(becomes, text)
    return text


def _if_random(becomes: str) -> Callable[[Any], str]:
    """Replaces a match that does not look like words: it has a digit or mixed case, or is very long."""

    def change(match: Any) -> str:
        whole, value = match.group(0), match.group(1)
        word = value.isalpha() and (value.islower() or value.isupper() or value.istitle())
        hyphened = not any(map(str.isdigit, value)) and value.islower()
        plain = (word or hyphened) and len(value) < 24
        return whole if plain else becomes

    return change


_DATE = re.compile(r"(?:1\d|20)\d\d[-./ ]\d\d?[-./ ]\d\d?\b|\d\d?[-./ ]\d\d?[-./ ](?:1\d|20)\d\d\b")
_YEAR = re.compile(r"(?:1\d|20)\d\d")


def _number(match: Any) -> str:
    """A run of seven digits or more: a card number, a phone number, or neither."""
    whole: str = match.group(0)
    at, end, text = match.start(), match.end(), match.string
    groups = re.findall(r"\d+", whole)
    digits, between = "".join(groups), set(re.findall(r"\D+", whole.lstrip("+(")))
    if len(groups) == 2 and between == {"."}:
        return whole  # a decimal fraction
    if whole.startswith("+") and len(digits) <= 15:
        return "[phone]"
    if len(digits) >= 13:
        is_isbn = len(digits) == 13 and digits.startswith(("978", "979"))
        return whole if is_isbn else "[number]"
    before, after = text[at - 1 : at], text[end : end + 1]
    if before.isalnum() or before in tuple("_$€£¥") or after.isalpha():
        return whole  # a part of a name, an amount of money
    date = _DATE.match(whole)
    if (date and whole[date.end() :].count(" ") < 2 and len(digits) <= 12) or all(map(_YEAR.fullmatch, groups)):
        return whole  # a time of day may follow
    if between == {"."} and len(groups) == 4 and all(int(group) < 256 for group in groups):
        return whole  # the address of a machine
    lengths = [len(group) for group in groups]
    if len(groups) > 2 and (lengths[-1] == 1 or (between == {"."} and 1 in lengths)):
        return whole  # an ISBN of ten digits, a version
    thousands = len(groups) > 1 and len(between) == 1 and {*lengths[1:]} == {3}
    if thousands and between <= {" ", "."} and (lengths[0] < 3 or between == {"."}):
        return whole
    is_phone = len(digits) > 8 or lengths == [3, 4] or (len(digits) == 8 and len(groups) > 1)
    return "[phone]" if is_phone else whole


# In this order: the longest and most certain first.
_MASKS: tuple[tuple[str, Becomes], ...] = (
    (r"(?is)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)", "[key]"),
    (r"(\b[A-Za-z][A-Za-z0-9+.-]*://)[^\s/:@]*:[^\s/@]+@", r"\1[secret]@"),
    # Prefixes that providers give their keys, then three base64 parts with dots, then anything long and random-looking.
    (
        r"\b(?:sk|pk|rk|tno|hf|npm|gh[oprsu]|github_pat|glpat|xox[abeprs]|xapp)[-_]([A-Za-z0-9_-]{12,})",
        _if_random("[key]"),
    ),
    (r"\b(?:AKIA|ASIA|AIza|ya29\.)[A-Za-z0-9_-]{12,}", "[key]"),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", "[token]"),
    (r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{8,})", _if_random("bearer [token]")),
    (r"(?i)(\bauthorization:\s*\w+\s+)\S+", r"\1[token]"),
    (r"(?i)\b(password|passwd|pwd|secret|api[ _-]?key|access[ _-]?token)(\s*(?:[:=]|\bis\b)\s*)\S+", r"\1\2[secret]"),
    (r"\b[0-9a-fA-F]{32,}\b", "[token]"),
    (r"[\pL\pN._%+'-]+@[\pL\pN-]+(?:\.[\pL\pN-]+)*\.\pL{2,}", "[email]"),
    (r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", "[number]"),
    (r"\+?\(?\d(?:[ .\-/()]{0,2}\d){6,18}", _number),
)
_compiled: list[tuple[Any, Becomes]] = []
