"""Reads a model's reply strictly: one of a closed set of names, or nothing.

A reply is untrusted text and may echo the user's. So it is not searched for something that looks right: it either has
the required form, or it is invalid and the cascade goes on without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[\w-]*\s*\n?(.*?)\n?```\s*\Z", re.DOTALL)
# Characters allowed around a name that is the whole answer. `!x` means "not x", and `[ ]` is an unchecked box.
_BEFORE = " \t\r\n\"'`*.,:;()[]"
_AFTER = _BEFORE + "!"
_EMPTY_BOX = re.compile(r"\[\s*\]")
# Quotes and brackets around a name are removed.
_SETTING_OFF = str.maketrans({**dict.fromkeys('"`*()[]“”„«»', None), "’": "'", "⇒": "→"})

_NAME = "\0"
_NOUN = "(?:answer|tier|class|category|label|route|classification|level|mode|choice|type|name|verdict|result)"
_THING = "(?:question|prompt|request|message|text|query|task|problem|input|one)"
_THIS = f"(?:this|that|it|(?:this|that|the) {_THING})"
_BEST = "(?:(?:final|best|correct|right|chosen|appropriate) )?"
_IS = "(?:'s| is| would be| should be)"
_VERB = (
    f"(?:choose|chose|pick|select|say|answer|go with|(?:classify|label|rate) {_THIS} as|put {_THIS} (?:in|into|under))"
)
# The complete sentences that state a name. A list of negations ("not", "anything but", "hardly", in any language) could
# never be complete; a list of accepted sentences need not be.
_states = re.compile(
    r"(?:(?:sure|ok|okay|certainly|of course)[,.!:]* )?(?:as you ask, )?(?:[-•>→]+ ?|#+ )?"
    rf"(?:(?:(?:my|the|its) )?{_BEST}{_NOUN}(?: (?:for|of) {_THIS})?(?: ?[:=→]|{_IS}:?) ?"
    rf"|i(?: would|'d| will|'ll)? {_VERB}:? (?:(?:a|an|the) )?"
    rf"|{_THIS}(?:{_IS}(?: classified as)?| belongs (?:to|in)| falls (?:under|into)):? (?:(?:a|an|the) )?)?"
    rf"{_NAME}(?:[ ,:;./-]*(?:yes, )?{_NAME})*"
    rf"(?: (?:{_NOUN}|{_THING}))?(?: here)?(?: is (?:my|the) {_BEST}{_NOUN})?(?:, (?:i think|no doubt about it))?"
    r"[ .,:;!←]*"
).fullmatch
# Words beside an object, or in a list, that make it no answer: a denial, a doubt, a choice, an echo.
_DOUBTS = re.compile(
    r"\b(?:not|no|never|none|neither|nor|cannot|without|except|but|or|either|unless|if|instead|rather|maybe|perhaps|"
    r"probably|possibly|might|could|unsure|wrong|incorrect|false)\b|n['’]t\b|\?|={5}",
    re.IGNORECASE,
)
# An unknown name: one word.
_word = re.compile(r"[\w-]+").fullmatch


class Labels(NamedTuple):
    routes: tuple[str, ...]
    confidence: float | None = None
    """The model's own confidence; None if the form has none."""
    reason: str = ""


def without_thought(text: str) -> str:
    """The reply without the model's thoughts and without a code fence around all of it."""
    text = _THOUGHT.sub("", text).strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced is not None else text


def read_label(text: str, names: Mapping[str, str]) -> Labels | None:
    """The one name that is the whole reply or that a sentence states. `names` are case-folded."""
    text = without_thought(text)
    route = _named(text, names) or _stated(text, names)
    return Labels((route,)) if route is not None else None


def read_labels(text: str, names: Mapping[str, str], most: int) -> Labels | None:
    """One name or several in a list. Unknown names are dropped; other words or too many names are no answer."""
    parts = re.split(r"[,;\n+]|\band\b", without_thought(text))
    routes: dict[str, None] = {}
    for part in parts:
        route = _named(part.lstrip(" \t-•"), names)
        bare = part.strip(_BEFORE + "-•")
        if route is not None:
            routes[route] = None
        elif bare and (not _word(bare) or _DOUBTS.search(bare)):
            return None
    return Labels(tuple(routes)) if 0 < len(routes) <= most else None


def read_object(text: str, names: Mapping[str, str]) -> Labels | None:
    """A JSON object with `mode` and `confidence`. An invalid confidence counts as 0."""
    form = _object(without_thought(text), names)
    if form is None:
        return None
    name = next((form[key] for key in ("mode", "route", "label") if key in form), None)
    route = names.get(name.strip().casefold()) if isinstance(name, str) else None
    if route is None:
        return None
    stated = form.get("confidence")
    number = stated if isinstance(stated, int | float) and not isinstance(stated, bool) else 0.0
    reason = form.get("reason")
    return Labels((route,), float(min(1.0, max(0.0, number))), reason[:200] if isinstance(reason, str) else "")


def _named(text: str, names: Mapping[str, str]) -> str | None:
    """The route whose name is the whole text."""
    return None if _EMPTY_BOX.search(text) else names.get(text.lstrip(_BEFORE).rstrip(_AFTER).casefold())


def _stated(text: str, names: Mapping[str, str]) -> str | None:
    """The one route that a sentence states."""
    sentence = " ".join(text.casefold().split())
    found = [name for name in names if _has_word(sentence, name)]
    if len({names[name] for name in found}) != 1 or _NAME in sentence or _EMPTY_BOX.search(sentence):
        return None
    for name in sorted(found, key=len, reverse=True):
        sentence = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _NAME, sentence)
    return names[found[0]] if _states(sentence.translate(_SETTING_OFF).strip()) else None


def _object(text: str, names: Mapping[str, str]) -> dict[str, Any] | None:
    """The reply as an object, else the first object in it if the words around it do not contradict it."""
    span = _first_span(text)
    around = text.replace(span, " ", 1)
    for candidate in (text, span):
        try:
            form = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        if isinstance(form, dict):
            doubted = _DOUBTS.search(around) or any(_has_word(around.casefold(), name) for name in names)
            return None if doubted or _says_twice(candidate) else form
    return None


def _says_twice(text: str) -> bool:
    """Whether an object has a key twice, so that its value is ambiguous."""
    pairs = json.loads(text, object_pairs_hook=list, parse_int=str)
    return len({key for key, _ in pairs}) < len(pairs)


def _first_span(text: str) -> str:
    """The object that begins at the first brace; empty if none does."""
    start = text.find("{")
    try:
        _, end = json.JSONDecoder(parse_int=str).raw_decode(text, max(start, 0))
    except (ValueError, RecursionError):
        return ""
    return text[start:end] if start >= 0 else ""


def _has_word(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
