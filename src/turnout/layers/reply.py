"""What a model's reply says, strictly: one of a closed set of names, or nothing.

A reply is another program's text and may echo the user's. So it is not searched for something that looks right: it is
an answer in the agreed form, or it is invalid and the cascade goes on without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[\w-]*\s*\n?(.*?)\n?```\s*\Z", re.DOTALL)
# What may stand around a name that is the whole answer.
_AROUND = " \t\r\n\"'`*.,:;!()[]"


class Said(NamedTuple):
    routes: tuple[str, ...]
    confidence: float | None = None
    """What the model says of its own sureness; None where the form has no place for it."""
    reason: str = ""


def without_thought(text: str) -> str:
    """The reply without what a model thinks aloud, and without a code fence around the whole of it."""
    text = _THOUGHT.sub("", text).strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced is not None else text


def read_label(text: str, names: Mapping[str, str]) -> Said | None:
    """Exactly one name: as the whole reply, else as the only one among its words. `names` are case-folded."""
    text = without_thought(text)
    exact = names.get(text.strip(_AROUND).casefold())
    if exact is not None:
        return Said((exact,))
    found = {route for name, route in names.items() if _has_word(text.casefold(), name)}
    return Said((found.pop(),)) if len(found) == 1 else None


def read_labels(text: str, names: Mapping[str, str], most: int) -> Said | None:
    """One name or several, in a list. Names nobody knows are dropped; more than `most` is no answer."""
    parts = re.split(r"[,;\n+]|\band\b", without_thought(text))
    found = [names.get(part.strip(_AROUND + "-•").casefold()) for part in parts]
    routes = tuple(dict.fromkeys(route for route in found if route is not None))
    return Said(routes) if 0 < len(routes) <= most else None


def read_object(text: str, names: Mapping[str, str]) -> Said | None:
    """A JSON object with `mode` and `confidence`. A sureness that is none counts as no sureness at all."""
    form = _object(without_thought(text))
    if form is None:
        return None
    named = next((form[key] for key in ("mode", "route", "label") if key in form), None)
    route = names.get(named.strip().casefold()) if isinstance(named, str) else None
    if route is None:
        return None
    sure = form.get("confidence")
    number = sure if isinstance(sure, int | float) and not isinstance(sure, bool) else 0.0
    reason = form.get("reason")
    return Said((route,), float(min(1.0, max(0.0, number))), reason[:200] if isinstance(reason, str) else "")


def _object(text: str) -> dict[str, Any] | None:
    """The reply as an object; else the first span that is one."""
    for candidate in (text, _first_span(text)):
        try:
            form = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        if isinstance(form, dict):
            return form
    return None


def _first_span(text: str) -> str:
    """From the first brace to the one that closes it, braces in strings aside."""
    start = text.find("{")
    depth, quoted, escaped = 0, False, False
    for place in range(start, len(text)) if start >= 0 else ():
        character = text[place]
        if quoted:
            quoted, escaped = escaped or character != '"', character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if not depth:
                return text[start : place + 1]
    return ""


def _has_word(text: str, name: str) -> bool:
    place = text.find(name)
    while place >= 0:
        before, after = text[place - 1 : place], text[place + len(name) : place + len(name) + 1]
        if not (_is_word(before) or _is_word(after)):
            return True
        place = text.find(name, place + 1)
    return False


def _is_word(character: str) -> bool:
    return bool(character) and (character.isalnum() or character == "_")
