"""Personal data and secrets in a text, found by their looks and replaced by what they are.

A guess, and made so that it errs on the side of hiding: yet a year, a price, a version, a date, an address of a
machine and an ISBN stay, because a snippet without them says little. What is taken by mistake is listed in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import re2

from .storable import writable

Becomes = str | Callable[[Any], str]


def mask(text: str) -> str:
    """The text with keys, tokens, mail addresses, card and phone numbers replaced by what they are."""
    if not _compiled:
        _compiled.extend((re2.compile(pattern), becomes) for pattern, becomes in _MASKS)
    text = writable(text)
    for pattern, becomes in _compiled:
        text = pattern.sub(becomes, text)
    return text


def _if_random(becomes: str) -> Callable[[Any], str]:
    """Replaces what no word looks like: with a digit, in mixed case, or very long."""

    def change(match: Any) -> str:
        whole, said = match.group(0), match.group(1)
        word = said.isalpha() and (said.islower() or said.isupper() or said.istitle())
        hyphened = not any(map(str.isdigit, said)) and said.islower()
        plain = (word or hyphened) and len(said) < 24
        return whole if plain else becomes

    return change


_DATE = re.compile(r"(?:1\d|20)\d\d[-./ ]\d\d?[-./ ]\d\d?\b|\d\d?[-./ ]\d\d?[-./ ](?:1\d|20)\d\d\b")
_YEAR = re.compile(r"(?:1\d|20)\d\d")


def _number(match: Any) -> str:
    """A run of seven digits or more: a card's, a phone's, or a number that is nobody's."""
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


# In this order: what is longest and surest first.
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
