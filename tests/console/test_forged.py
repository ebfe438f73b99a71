"""Every form of the console, sent by whom it should not be: nothing is accepted and nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from console.browsing import browsing
from console.conftest import OWN
from console.inhabited import NOTED, InhabitedServer, inhabited
from secured_server import RawResponse, call, forget, id_of, make_key
from turnout.apps.app import Route
from turnout.learn.registry import read_history
from turnout.web.auth import SCOPES

FORM = {"content-type": "application/x-www-form-urlencoded"}
MULTIPART = b'--x\r\ncontent-disposition: form-data; name="question"\r\n\r\nDefine osmosis\r\n--x--\r\n'


class SignedInServer(NamedTuple):
    """A server, somebody who has signed in, and the forms they could send."""

    world: InhabitedServer
    key: str
    cookie: str
    over: str
    """Of a session that was signed out of."""
    spare: str
    """A key to revoke."""

    def state(self) -> tuple[object, ...]:
        """What a form could have changed."""
        store = self.world.served.store
        store.flush(10.0)
        told = [len(store.records().feedback(ident)) for ident in self.world.decisions]
        logged = len(list(store.records().decisions()))
        keys = [(key.id, key.is_valid(0)) for key in store.keys.all()]
        return told, logged, keys, len(read_history("assist", "student")), self.world.provider.received

    def forms(self) -> Iterator[tuple[Route, str, bytes, str]]:
        """Each with what its sender wants."""
        ident, student = self.world.decisions[-1], self.world.student.rsplit("/", 1)
        bodies: Mapping[str, Any] = {
            "/login": {"key": self.key},
            "/playground": {"text": "hello", "profile": "tiers", "ask": "yes"},
            "/playground/effect": {"text": "hello", "profile": "tiers", "moved": "tiers"},
            "/decisions/{id}/correct": {"word": "verdict:right"},
            "/ask/run": {"q": NOTED},
            "/chat/run": {"q": "Did a global flood cover the entire Earth?"},
            "/chat/judge/{id}": {"right": "1"},
            "/docs/run": {"q": "How often is a request retried?"},
            "/label/{id}": {"route": "COMPLEX"},
            "/profiles/check": {"source": 'extends = "tiers"'},
            "/keys": {"name": "forged", "scope-admin": "1"},
        }
        for route in self.world.served.server.routes:
            if not route.is_page or route.method == "GET":
                continue
            named = {"{profile}": "assist", "{layer}": "student", "{digest}": student[1]}
            # Who administers may name whose decision it is.
            named["{id}"] = id_of(self.spare) if route.path.startswith("/keys") else ident
            path = route.path
            for blank, value in named.items():
                path = path.replace(blank, value)
            path += "" if route.path.startswith("/keys") or "{id}" not in route.path else "?tenant="
            body = MULTIPART if route.path == "/study/run" else urlencode(bodies.get(route.path, {})).encode()
            kind = "multipart/form-data; boundary=x" if route.path == "/study/run" else FORM["content-type"]
            yield route, path, body, kind


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedInServer]:
    with inhabited(tmp_path_factory.mktemp("inhabited")) as world:
        key = make_key(world.served.store, scopes=SCOPES)
        spare = make_key(world.served.store)
        forget(world.served)
        cookies = []
        for _ in range(2):
            got = call(world.served.url, "POST", "/login", urlencode({"key": key}).encode(), headers={**FORM, **OWN})
            cookies.append(got.headers["set-cookie"].partition(";")[0])
        call(world.served.url, "POST", "/logout", b"", headers={**FORM, **OWN, "cookie": cookies[1]})
        yield SignedInServer(world, key, cookies[0], cookies[1], spare)


class Case(NamedTuple):
    id: str
    headers: Mapping[str, str]
    cookie: str = "own"
    method: str = "POST"


ELSEWHERE = "https://evil.example"
CASES = [
    Case("no origin", {}),
    Case("origin null", {"origin": "null"}),
    Case("origin null, as a sandbox sends it", {"origin": "null", "sec-fetch-site": "cross-site"}),
    Case("foreign", {"origin": ELSEWHERE, "sec-fetch-site": "cross-site"}),
    Case("foreign, an old browser", {"origin": ELSEWHERE}),
    Case("foreign, which lies", {"origin": ELSEWHERE, "sec-fetch-site": "same-origin"}),
    Case("foreign, with our name in it", {"origin": "http://127.0.0.1.evil.example"}),
    Case("another port", {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"}),
    Case("another port, an old browser", {"origin": "http://127.0.0.1:1"}),
    Case("another port, hidden", {"sec-fetch-site": "same-site"}),
    Case("typed", {"sec-fetch-site": "none"}),
    Case("a script of another page that says it is ours", {"origin": ELSEWHERE, "hx-request": "true"}),
    Case("no cookie", OWN, ""),
    Case("a cookie that was signed out of", OWN, "over"),
    Case("a cookie of another signature", OWN, "forged"),
    Case("looking instead of sending", OWN, "own", "GET"),
    Case("another method", OWN, "own", "PUT"),
]


def send(signed: SignedInServer, case: Case, path: str, body: bytes, kind: str) -> RawResponse:
    own = signed.cookie
    cookies = {"own": own, "over": signed.over, "forged": own[:-1] + ("0" if own[-1] != "0" else "1"), "": ""}
    headers = {"content-type": kind, "cookie": cookies[case.cookie], **case.headers}
    return call(signed.world.served.url, case.method, path, b"" if case.method == "GET" else body, headers=headers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_nothing_is_accepted(signed: SignedInServer, case: Case) -> None:
    before = signed.state()
    pages = {route.path for route in signed.world.served.server.routes if route.method == "GET"}
    for route, path, body, kind in signed.forms():
        if route.path in ("/login", "/logout") and case.cookie != "own":
            continue  # there a cookie is what one gets, or has no more
        got = send(signed, case, path, body, kind)
        if case.method == "GET" and (route.path in pages or path == signed.world.student):
            assert got.status == 200, (path, got)  # the page itself, which changes nothing
        elif case.cookie != "own":
            assert (got.status, got.headers.get("location")) == (303, "/login"), (path, got)
        else:
            assert got.status == (403 if case.method == "POST" else 405), (path, got)
        assert "set-cookie" not in got.headers, path
    assert signed.state() == before


@contextmanager
def foreign_page(html: str) -> Iterator[int]:
    """A web page of somebody else's, on this machine; its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


ATTACK = """async ([url, forms]) => { for (const [path, body] of forms) await fetch(url + path, {
  method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams(body)}).catch(() => 0) }"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["another port", "another site"])
def test_a_page_of_somebody_else_sends_nothing(signed: SignedInServer, host: str) -> None:
    """In a real browser that has signed in: by script, and by a form that sends itself."""
    before, url = signed.state(), signed.world.served.url
    name, _, value = signed.cookie.partition("=")
    form = (
        f'<form method=post action="{url}/keys"><input name=name value=forged><input name=scope-admin value=1></form>'
    )
    with foreign_page(form) as port, browsing() as browser:
        context = browser.new_context()
        context.add_cookies([{"name": name, "value": value, "url": url, "sameSite": "Strict", "httpOnly": True}])
        page = context.new_page()
        answers: list[tuple[str, int]] = []
        sent = [(path, body.decode()) for _, path, body, _ in signed.forms()]

        def note(one: Any) -> None:
            if one.request.method == "POST":
                answers.append((one.url.removeprefix(url), one.status))

        page.on("response", note)
        page.goto(f"http://{host}:{port}/")
        page.evaluate(ATTACK, [url, sent])
        page.evaluate("document.forms[0].submit()")
        page.wait_for_url(f"{url}/keys")
        context.close()
    assert [path for path, _ in answers] == [*(path for path, _ in sent), "/keys"]
    assert {status for _, status in answers} == {403}
    assert signed.state() == before


def test_the_same_forms_are_accepted_from_our_own_pages(signed: SignedInServer) -> None:
    """Else the tests above would prove nothing. Signing out comes last."""
    case = Case("own", {**OWN, "hx-request": "true"})
    # These look at what is there first, and say what they miss.
    said_so = {"/playground/effect": 422, "/learning/{profile}/{layer}/{digest}": 422}
    for route, path, body, kind in sorted(signed.forms(), key=lambda one: one[0].path == "/logout"):
        got = send(signed, case, path, body, kind)
        assert got.status in (200, 201, 303, said_so.get(route.path)), (path, got)
        assert got.headers.get("location") != "/login" or route.path == "/logout"
