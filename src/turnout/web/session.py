"""Who has signed in to the console: a cookie that names a key and ends by itself.

It holds no secret of the key's, so what a browser keeps opens nothing but pages; a key that is revoked ends its
sessions.
"""

from __future__ import annotations

import hmac

COOKIE = "turnout_session"
# A working day: whoever watches a screen signs in once a day.
SESSION_S = 12 * 3600
# Of the cookies of a request, all together.
COOKIE_CHARACTERS = 8192


def write_session(key_id: str, pepper: bytes, now: float) -> str:
    ends = int(now) + SESSION_S
    return f"{key_id}.{ends}.{_sign(key_id, ends, pepper)}"


def read_session(value: str, pepper: bytes, now: float) -> str | None:
    """The key that a cookie stands for; None if it was not written here, or has ended."""
    key_id, _, rest = value.partition(".")
    ends, _, signature = rest.partition(".")
    if not (ends.isascii() and ends.isdigit()) or len(ends) > 15:
        return None
    # A `compare_digest` of texts takes ASCII alone.
    same = hmac.compare_digest(signature.encode(), _sign(key_id, int(ends), pepper).encode())
    return key_id if same and now < int(ends) else None


def cookie_value(header: str) -> str:
    """The console's cookie among those of a request; empty if it is not there. What is written here needs no quotes."""
    pairs = (one.strip().partition("=") for one in header[:COOKIE_CHARACTERS].split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def set_cookie(value: str, *, secure: bool) -> tuple[bytes, bytes]:
    """The header that has a browser keep it; an empty value has it forget."""
    ends = f"Max-Age={SESSION_S}" if value else "Max-Age=0"
    said = f"{COOKIE}={value}; Path=/; {ends}; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
    return b"set-cookie", said.encode("latin-1")


def _sign(key_id: str, ends: int, pepper: bytes) -> str:
    return hmac.new(pepper, f"console\0{key_id}\0{ends}".encode(), "sha256").hexdigest()
