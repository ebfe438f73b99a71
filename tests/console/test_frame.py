"""What holds for every page: who may see it, who may send its forms, what it may run."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.conftest import OWN
from secured_server import RawResponse, call, forget, id_of, make_key
from serving import RunningServer
from turnout.console.page import static_url
from turnout.console.session import COOKIE, IDLE_S, SESSION_S, begin_session, cookie_value, read_session

PEPPER = b"a-pepper-for-tests-only"
FORM = {"content-type": "application/x-www-form-urlencoded"}


def see(served: RunningServer, path: str = "/", cookie: str = "") -> RawResponse:
    return call(served.url, "GET", path, headers={"cookie": f"{COOKIE}={cookie}"} if cookie else {})


def sign_in(served: RunningServer, key: str, **headers: str) -> RawResponse:
    body = urlencode({"key": key}).encode()
    return call(served.url, "POST", "/login", body, headers={**FORM, **OWN, **headers})


def test_on_this_machine_no_key_is_needed(served: RunningServer) -> None:
    question = "Prove it <script>alert(1)</script> \"' & step by step"
    assert call(served.url, "POST", "/v1/route", {"text": question}).status == 200
    assert served.store.flush(10.0)
    got = see(served)
    assert got.status == 200
    assert b"<script>alert" not in got.body
    assert b"Prove it &lt;script&gt;" in got.body
    policy = got.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert got.headers["cache-control"] == "no-store"


def test_with_keys_one_signs_in(served: RunningServer) -> None:
    key = make_key(served.store, scopes=("decisions:read",))
    forget(served)
    got = see(served)
    assert (got.status, got.headers["location"]) == (303, "/login")
    assert see(served, "/login").status == 200
    wrong = sign_in(served, key[:-1] + ("A" if key[-1] != "A" else "B"))
    assert (wrong.status, "set-cookie" in wrong.headers) == (401, False)
    right = sign_in(served, key)
    assert (right.status, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly; SameSite=Strict" in cookie
    assert key not in cookie
    assert "Secure" not in cookie  # it came without TLS
    value = cookie.partition("=")[2].partition(";")[0]
    assert see(served, cookie=value).status == 200
    assert see(served, cookie=value[:-1] + "x").status == 303
    served.store.keys.revoke(id_of(key))
    forget(served)
    assert see(served, cookie=value).status == 303
    # A cookie opens pages alone.
    assert call(served.url, "POST", "/v1/route", {"text": "a"}, headers={"cookie": f"{COOKIE}={value}"}).status == 401


def test_a_key_sees_what_it_may(served: RunningServer) -> None:
    key = make_key(served.store, scopes=("ask",))
    forget(served)
    value = sign_in(served, key).headers["set-cookie"].partition("=")[2].partition(";")[0]
    got = see(served, cookie=value)
    assert got.status == 403
    assert b"decisions:read" in got.body


class SentCase(NamedTuple):
    id: str
    headers: dict[str, str]
    status: int


SENT = [
    SentCase("a page of ours", {"sec-fetch-site": "same-origin"}, 303),
    SentCase("an old browser's page of ours", {"origin": "{own}"}, 303),
    SentCase("nobody says", {}, 403),
    SentCase("another site", {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}, 403),
    SentCase("another site, and hidden", {"sec-fetch-site": "cross-site"}, 403),
    SentCase("another port", {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"}, 403),
    SentCase("a bookmark", {"sec-fetch-site": "none"}, 403),
    SentCase("no origin", {"origin": "null"}, 403),
    SentCase("an old browser's other site", {"origin": "https://evil.example"}, 403),
    SentCase("two stories", {"sec-fetch-site": "same-origin", "origin": "https://evil.example"}, 403),
]


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
def test_only_our_own_pages_send_forms(served: RunningServer, case: SentCase) -> None:
    headers = {name: value.format(own=served.url) for name, value in case.headers.items()}
    for route in served.server.routes:
        # The first key is made elsewhere, in every case.
        if route.is_page and route.method != "GET" and not route.path.startswith(("/login", "/keys")):
            path = route.path.replace("{id}", "last").replace("{name}", "x")
            got = call(served.url, route.method, path, b"", headers={**FORM, **headers})
            assert (got.status == 403) is (case.status == 403), (route.path, got)


def test_a_form_that_anybody_may_send_is_small(served: RunningServer) -> None:
    assert call(served.url, "POST", "/login", b"key=" + b"x" * 5000, headers={**FORM, **OWN}).status == 413
    assert call(served.url, "POST", "/login", b"\xff=\xfe", headers={**FORM, **OWN}).status == 400


def test_what_pages_use_is_kept_by_browsers(served: RunningServer) -> None:
    place = static_url("console.css")
    got = see(served, place)
    assert (got.status, got.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in got.headers["cache-control"]
    assert see(served, place.partition("?")[0]).headers["cache-control"] == "no-cache"
    assert see(served, "/static/nothing.js").status == 404
    assert see(served, "/static/..").status in (404, 400)


@given(st.text(max_size=80), st.integers(0, 2**40))
def test_a_session_is_read_as_written_and_not_otherwise(text: str, now: int) -> None:
    session = begin_session("abc", now)
    value = session.write(PEPPER)
    assert read_session(value, PEPPER, now + IDLE_S - 1) == session
    assert read_session(value, PEPPER, now + IDLE_S) is None
    used = session._replace(used=now + SESSION_S - 1).write(PEPPER)
    assert read_session(used, PEPPER, now + SESSION_S - 1) is not None
    assert read_session(used, PEPPER, now + SESSION_S) is None
    assert read_session(value, b"another", now) is None
    assert read_session(text, PEPPER, now) is None
    assert cookie_value(f"a=b; {COOKIE}={value}; c=d") == value
    cookie_value(text)
