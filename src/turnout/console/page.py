"""Pages: a template and its values, sent with headers that keep text of questions and answers from running as a script.

Templates escape everything. Pages have no inline scripts and load none from elsewhere, so even text that got past the
escaping would not run. Browsers do not cache pages.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined

from turnout.apps.app import Answer, Call, Headers
from turnout.apps.request import invalid
from turnout.core.errors import Refused, StoreUnavailable, TurnoutError

from .shape import FILTERS

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # Not `no-referrer`: a browser would then not say that a form comes from our own page.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
# The form with the most fields changes a profile's weights and has some hundred.
FIELDS = 1000
# Enough for a pasted profile or a long conversation. Reading more would block other requests.
FORM_BYTES = 300_000
EVENT_STREAM: Headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), *SECURITY]
KINDS = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8", ".svg": b"image/svg+xml"}

T = TypeVar("T")


@cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("turnout.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals["static"] = static_url
    return made


def page(template: str, status: int = 200, headers: Headers | None = None, **values: Any) -> Answer:
    """A whole page, or a part that replaces one: its template says which."""
    body = templates().get_template(template).render(values).encode("utf-8", "replace")
    kind = [(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store")]
    return Answer(status, [*kind, *SECURITY, *(headers or ())], body)


def go_to(place: str, headers: Headers | None = None) -> Answer:
    """A redirect after a form. `place` is a path of ours."""
    return Answer(303, [(b"location", place.encode()), *(headers or ())], b"")


def read_form(call: Call) -> dict[str, str]:
    """The fields of a form; the last one of each name."""
    if len(call.body) > FORM_BYTES:
        size = f"the form has {len(call.body):,} bytes, and {FORM_BYTES:,} are taken"
        raise Refused(413, "request_too_large", f"{size}: shorten what it says")
    try:
        text = call.body.decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS))
    except ValueError:  # not UTF-8, or too many
        raise Refused(400, "invalid_request_error", f"this is not a form of at most {FIELDS} fields") from None


async def in_thread(work: Callable[[], T]) -> T:
    """The result of blocking work. Its errors become refusals, except an unavailable store, which every page reports
    alike."""
    try:
        return await asyncio.to_thread(work)
    except StoreUnavailable:
        raise
    except TurnoutError as error:
        raise invalid(str(error)) from None


@cache
def static_file(name: str) -> tuple[bytes, str] | None:
    """A file that pages use, and the beginning of its hash; None if there is none of that name."""
    names = {one.name: one for one in files("turnout.console").joinpath("static").iterdir()}
    if name not in names:
        return None
    content = names[name].read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:12]


def static_url(name: str) -> str:
    found = static_file(name)
    if found is None:
        raise LookupError(f"no file {name!r} in console/static")
    return f"/static/{name}?v={found[1]}"


async def serve_static(call: Call) -> Answer:
    """A style sheet or a script of the console."""
    name = call.params["name"]
    found = static_file(name)
    if found is None:
        raise Refused(404, "not_found_error", "no such file")
    # Its URL changes with its content.
    caching = b"public, max-age=31536000, immutable" if call.options.get("v") == found[1] else b"no-cache"
    kind = KINDS.get(name[name.rfind(".") :], b"application/octet-stream")
    return Answer(200, [(b"content-type", kind), (b"cache-control", caching), *SECURITY], found[0])


def wants_part(headers: Mapping[str, str]) -> bool:
    """Whether the page's script asks for a part of a page."""
    return headers.get("hx-request") == "true"
