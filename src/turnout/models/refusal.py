"""Whose fault a provider's refusal is, and what a client may see of it.

One table of statuses. A refusal that a request can provoke says nothing about the provider's health. If it counted, one
tenant's five requests would open the breaker that all tenants share, and move them to a more expensive model.
"""

from __future__ import annotations

from re import ASCII, escape, search
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut, Unreachable

# Of a provider's error message, as much as its client is shown.
MESSAGE_CHARACTERS = 2000
NAME_CHARACTERS = 100

Ends = Literal["here", "if named", "next"]
"""Where it ends: the client gets the refusal; the client, if its request names something only this provider has; or
the next candidate is tried."""


class StatusRule(NamedTuple):
    ends: Ends
    counts: bool
    """Whether the breaker counts it as a failure."""
    why: str


_WRONG = StatusRule("here", False, "the request is wrong, whichever provider is asked")
_NAMED = StatusRule("if named", False, "a file, a stored response, a server the request names; or the model, the path")
_BUSY = StatusRule("next", True, "it fails or is overloaded, for every request")
_ACCOUNT = StatusRule("next", True, "the operator's key or account does not work, for any request")
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
"""By status. Any other of 400 to 499 may be about the request, any other above cannot."""
_OTHER_4XX = StatusRule("next", False, "unknown, and perhaps about the request")
_OTHER = StatusRule("next", True, "unknown, and about the provider")

# Names of errors inside an answer of status 200, and the status each would have had.
NAMED_STATUSES = {
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
# Prefixes of other names that stand for 400.
BAD_REQUEST_PREFIXES = ("invalid_", "image_", "unsupported_")
# Codes for an unknown model or path: the operator's configuration is wrong, not the request.
_MISPLACED = frozenset(("model_not_found", "unknown_url"))
# The beginning of OpenAI's message that one request alone exceeds a minute's tokens.
_TOO_LARGE = "request too large"


class Refusal(Struct, frozen=True):
    """A provider's error in place of an answer."""

    status: int
    message: str = ""
    kind: str | None = None
    """`type`, in both formats."""
    code: str | int | None = None
    param: str | None = None
    is_told: bool = False
    """Whether it is an error object with a message: then the request was read."""


class NoAnswer(Broken):
    """The response is not an answer. The message names the model and not its address, so a client may see it."""


def read_refusal(status: int, raw: bytes) -> Refusal:
    """The error object of a body or an event; one inside a 200 gets the status its name stands for."""
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
    message, kind, code, param = (error.get(name) for name in ("message", "type", "code", "param"))
    refusal = Refusal(
        status,
        message[:MESSAGE_CHARACTERS] if isinstance(message, str) else "",
        kind[:NAME_CHARACTERS] if isinstance(kind, str) and kind != "error" else None,
        _code(code),
        param[:NAME_CHARACTERS] if isinstance(param, str) else None,
        isinstance(message, str) and bool(message),
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
        if isinstance(name, str) and name in NAMED_STATUSES:
            return NAMED_STATUSES[name]
        if isinstance(name, str) and name.startswith(BAD_REQUEST_PREFIXES):
            return 400
    return 500


def rule_for(refusal: Refusal, model: str, *, names: bool = False) -> StatusRule:
    """Whose fault a refusal is. `names`: the request refers to something only this provider has."""
    status = refusal.status
    found = STATUSES.get(status, _OTHER_4XX if 400 <= status < 500 else _OTHER)
    if found.ends == "if named":
        # Without an error object it is another server's page: the path is wrong.
        about_request = names and refusal.is_told and not _is_about_model(refusal, model)
        return found._replace(ends="here" if about_request else "next")
    if status == 429 and refusal.message.casefold().startswith(_TOO_LARGE):
        return found._replace(counts=False)
    return found


def _is_about_model(refusal: Refusal, model: str) -> bool:
    """Whether the configured model, or the path to it, is missing."""
    if refusal.code in _MISPLACED or refusal.param == "model":
        return True
    return search(rf"(?<![\w.-]){escape(model)}(?![\w-])", refusal.message, ASCII) is not None


def public_message(model: str, error: NetError) -> str:
    """An error as a client may see it: with the model, without its address."""
    if isinstance(error, NoAnswer):
        return str(error)
    if isinstance(error, TimedOut):
        return f"{model} did not answer in time"
    # A connection the egress guard refuses counts as not reached; only the operator sees why.
    reached = not isinstance(error, Unreachable | EgressRefused)
    return f"{model} broke off its answer" if reached else f"{model} could not be reached"
