"""Whose fault a provider's refusal is, and what of it a client is told.

One table of statuses. What a request can provoke by what it says says nothing about the provider's health: counted, one
tenant's five requests would open the breaker that all of them share, and move everybody to a more expensive model.
"""

from __future__ import annotations

from re import ASCII, escape, search
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut, Unreachable

# An error's text that is shown to the client whose request it is about.
MESSAGE_CHARACTERS = 2000
NAME_CHARACTERS = 100

Ends = Literal["here", "if named", "next"]
"""Who hears of it: the client; the client, if its request names what only this provider has; or the next candidate."""


class StatusRule(NamedTuple):
    ends: Ends
    counts: bool
    """Its breaker counts it as a failure."""
    why: str


_WRONG = StatusRule("here", False, "the request is wrong, whichever provider is asked")
_NAMED = StatusRule("if named", False, "a file, a stored response, a server the request names; or the model, the path")
_BUSY = StatusRule("next", True, "it fails or is overloaded, for everybody")
_ACCOUNT = StatusRule("next", True, "the operator's key or account does not work, for everybody")
STATUSES: dict[int, StatusRule] = {
    **dict.fromkeys((400, 405, 406, 411, 413, 414, 415, 422), _WRONG),
    431: StatusRule("here", False, "the headers a client may choose are too long"),
    **dict.fromkeys((404, 409, 410, 423, 424), _NAMED),
    401: _ACCOUNT,
    402: _ACCOUNT,
    403: StatusRule("next", False, "the key lacks a permission, or the provider's moderation objects to the text"),
    408: StatusRule("next", False, "a long prompt can provoke it"),
    429: StatusRule("next", True, "the account asks too often; a request too large for its tier is not counted"),
    451: StatusRule("next", False, "the text or the place it comes from may not be served"),
    501: StatusRule("next", False, "the request asks for what the provider does not have"),
    **dict.fromkeys((500, 502, 503, 504, 529), _BUSY),
}
"""By status. Every other of 400 to 499 may be about the request, every other beyond cannot."""
_OTHER_4XX = StatusRule("next", False, "unknown, and perhaps about the request")
_OTHER = StatusRule("next", True, "unknown, and about the provider")

# What an error inside an answer of status 200 is called, and the status it would have had.
CALLED = {
    "invalid_api_key": 401,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 400,
    "content_policy_violation": 400,
    "failed_to_download_image": 400,
    "empty_image_file": 400,
    "vector_store_timeout": 424,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
CALLED_WRONG = ("invalid_", "image_", "unsupported_")
# What a provider calls a model or a path that it does not have: the operator's configuration is wrong, not the request.
_MISPLACED = frozenset(("model_not_found", "unknown_url"))
# How OpenAI begins to say that one request alone is more than a minute's tokens.
_TOO_LARGE = "request too large"


class Refusal(Struct, frozen=True):
    """What a provider said instead of an answer."""

    status: int
    message: str = ""
    kind: str | None = None
    """`type`, in both formats."""
    code: str | int | None = None
    param: str | None = None
    is_told: bool = False
    """It is an error object with a message: the request was read."""


class NoAnswer(Broken):
    """What came is no answer. The message names the model and no place: a client may read it."""


def read_refusal(status: int, raw: bytes) -> Refusal:
    """The error object of a body or an event; with 200 it has the status its name stands for."""
    try:
        body: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    error: Any = None
    if isinstance(body, dict):
        inside = body.get("response")
        error = body.get("error") or (inside.get("error") if isinstance(inside, dict) else None) or body
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        error = {}
    said = error.get("message")
    kind, code, param = (error.get(name) for name in ("type", "code", "param"))
    refusal = Refusal(
        status,
        said[:MESSAGE_CHARACTERS] if isinstance(said, str) else "",
        kind[:NAME_CHARACTERS] if isinstance(kind, str) and kind != "error" else None,
        _code(code),
        param[:NAME_CHARACTERS] if isinstance(param, str) else None,
        isinstance(said, str) and bool(said),
    )
    return refusal if status != 200 else msgspec.structs.replace(refusal, status=_status_of(refusal))


def _code(code: Any) -> str | int | None:
    if isinstance(code, str):
        return code[:NAME_CHARACTERS]
    return code if isinstance(code, int) and not isinstance(code, bool) and 0 <= code < 10_000 else None


def _status_of(refusal: Refusal) -> int:
    if isinstance(refusal.code, int) and 400 <= refusal.code < 600:
        return refusal.code
    for name in (refusal.code, refusal.kind):
        if isinstance(name, str) and name in CALLED:
            return CALLED[name]
        if isinstance(name, str) and name.startswith(CALLED_WRONG):
            return 400
    return 500


def judge(refusal: Refusal, model: str, *, names: bool = False) -> StatusRule:
    """Whose fault a refusal is. `names`: the request refers to what only this provider has."""
    status = refusal.status
    found = STATUSES.get(status, _OTHER_4XX if 400 <= status < 500 else _OTHER)
    if found.ends == "if named":
        # Without an error object it is some other server's page: the path is wrong.
        about_request = names and refusal.is_told and not _is_about_model(refusal, model)
        return found._replace(ends="here" if about_request else "next")
    if status == 429 and refusal.message.casefold().startswith(_TOO_LARGE):
        return found._replace(counts=False)
    return found


def _is_about_model(refusal: Refusal, model: str) -> bool:
    """Whether it is the model that is not there, which the operator has configured, or the path to it."""
    if refusal.code in _MISPLACED or refusal.param == "model":
        return True
    return search(rf"(?<![\w.-]){escape(model)}(?![\w-])", refusal.message, ASCII) is not None


def told(model: str, error: NetError) -> str:
    """What a client hears of an error: which model, and not where it is."""
    if isinstance(error, NoAnswer):
        return str(error)
    if isinstance(error, TimedOut):
        return f"{model} did not answer in time"
    # What the egress guard refuses is no connection either; why is the operator's to know.
    reached = not isinstance(error, Unreachable | EgressRefused)
    return f"{model} broke off its answer" if reached else f"{model} could not be reached"
