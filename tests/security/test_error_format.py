"""Whatever goes wrong on a path, the client that asks there can read it: Anthropic's own errors on Anthropic's paths,
OpenAI's everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from secured_server import RawResponse, call, chat, forget, make_key, secured_server
from serving import RunningServer, route_table
from turnout.apps.app import SOCKET
from turnout.web import auth

VERSION = {"anthropic-version": "2023-06-01"}
LIMIT = 4096
# What Anthropic's reference calls each status; what it has no name for is a request's fault, or the server's.
ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    421: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}
OPENAI = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    421: "invalid_request_error",
    429: "rate_limit_exceeded",
    500: "api_error",
    503: "overloaded_error",
}


class RequestCase(NamedTuple):
    path: str
    headers: Mapping[str, str] = MappingProxyType({})
    anthropic: bool = False
    known: bool = True
    """The path is in the table."""

    @property
    def method(self) -> str:
        return next((row.method for row in route_table() if _plain(row.path) == self.path), "POST")


def _plain(path: str) -> str:
    return path.replace("{id:path}", "turnout/simple").replace("{id}", "01J00000000000000000000000")


ROWS = [
    *(RequestCase(_plain(row.path), anthropic=row.path.startswith("/v1/messages")) for row in route_table()
      if row.listener == "public" and row.scope and row.method != SOCKET),
    RequestCase("/v1/models", VERSION, anthropic=True),
    RequestCase("/v1/models/turnout/simple", VERSION, anthropic=True),
    # Another's header on a path that is not shared says nothing.
    RequestCase("/v1/chat/completions", VERSION),
    RequestCase("/v1/responses", VERSION),
    RequestCase("/v1/route", VERSION),
    *(RequestCase(path, anthropic=True, known=False) for path in (
        "/v1/messages/", "/v1/messages/batches", "/v1/messages/batches/msgbatch_1/results",
        "/v1/messages/count_tokens/", "/v1/messages/%00", "/v1/messages//",
    )),
    *(RequestCase(path, known=False) for path in (
        "/v1/message", "/v1/messagesx", "/v2/messages", "/v1/chat", "/v1/embeddings", "/", "/v1/route/batch/x",
    )),
]  # fmt: skip
KNOWN = [row for row in ROWS if row.known]


def name(row: RequestCase) -> str:
    return row.path + (" as Anthropic's client" if row.headers else "")


class Server(NamedTuple):
    served: RunningServer
    keys: dict[str, str]

    def ask(
        self, row: RequestCase, key: str | None = None, *, method: str = "", body: Any = None, **headers: str
    ) -> RawResponse:
        sent = {**row.headers} | ({"x-api-key": self.keys[key]} if key else {}) | headers
        return call(self.served.url, method or row.method, row.path, body, headers=sent)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with secured_server(tmp_path_factory.mktemp("errors"), server=f"body_bytes = {LIMIT}") as (served, _):
        keys = {
            "all": make_key(served.store),
            "none": make_key(served.store, scopes=()),
            "hasty": make_key(served.store, per_minute=0),
        }
        forget(served)
        yield Server(served, keys)


def check(got: RawResponse, row: RequestCase, status: int, kind: str = "") -> None:
    what = f"{name(row)}: {got.status} {got.body[:200]!r}"
    assert got.status == status, what
    assert got.headers["content-type"] == "application/json", what
    told = got.json
    if row.anthropic:
        assert set(told) == {"type", "error"}, what
        assert told["type"] == "error", what
        assert set(told["error"]) == {"type", "message"}, what
        assert told["error"]["type"] == ANTHROPIC[status], what
    else:
        assert set(told) == {"error"}, what
        assert set(told["error"]) == {"message", "type", "param", "code"}, what
        assert told["error"]["type"] == told["error"]["code"] == (kind or OPENAI[status]), what
    assert len(told["error"]["message"]) > 10, what


@pytest.mark.parametrize("row", [row for row in ROWS if not row.known], ids=name)
def test_no_such_path(server: Server, row: RequestCase) -> None:
    for method in ("GET", "POST", "DELETE"):
        for key in (None, "all"):
            check(server.ask(row, key, method=method), row, 404)


@pytest.mark.parametrize("row", KNOWN, ids=name)
class TestKnown:
    def test_another_method(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row, "all", method="PATCH"), row, 405)

    def test_no_key(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row), row, 401)

    def test_no_scope(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row, "none"), row, 403)

    def test_too_often(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row, "hasty"), row, 429)

    def test_another_host(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row, "all", host="example.org"), row, 421)

    def test_a_foreign_page(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row, "all", origin="https://example.org"), row, 403)

    def test_too_long(self, server: Server, row: RequestCase) -> None:
        check(server.ask(row, "all", body=b" " * (LIMIT + 1)), row, 413)

    def test_no_room(self, server: Server, row: RequestCase) -> None:
        admission = server.served.server.admission
        active, admission.active = admission.active, 10_000
        room, admission.room = admission.room, 1.0
        admission.waiting, waiting = 0, admission.waiting
        try:
            got = server.ask(row, "all", body={})
        finally:
            admission.active, admission.room, admission.waiting = active, room, waiting
        check(got, row, 503)
        assert int(got.headers["retry-after"]) >= 1

    def test_stopping(self, server: Server, row: RequestCase) -> None:
        server.served.server.admission.draining = True
        try:
            check(server.ask(row, "all", body={}), row, 503)
        finally:
            server.served.server.admission.draining = False

    def test_a_bug(self, server: Server, row: RequestCase, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(auth, "host_name", broken)
        check(server.ask(row, "all", body={}), row, 500)


def test_a_model_that_is_not_there(server: Server) -> None:
    for headers, anthropic in ((VERSION, True), ({}, False)):
        row = RequestCase("/v1/models/none", headers, anthropic)
        check(server.ask(row, "all", method="GET"), row, 404, "model_not_found")


def test_what_a_body_lacks(server: Server) -> None:
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        row = RequestCase(path, anthropic=True)
        for body in (b"", b"{", b"[]", {"model": "auto"}, chat() | {"messages": 1}):
            check(server.ask(row, "all", body=body), row, 400)
