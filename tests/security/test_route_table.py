"""S1: every row of the route table, with every method and every kind of credential, answers as written down here."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from apps.claims.chatting import FLOOD, bare_library
from secured_server import RawResponse, call, chat, forget, make_key, secured_server
from serving import RunningServer, route_table
from turnout.apps.app import SOCKET

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

# What each route is sent so that whoever may ask gets a 2xx. A new route needs a row here.
BODIES: dict[tuple[str, str, str], Any] = {
    ("public", "POST", "/v1/chat/completions"): chat(),
    ("public", "POST", "/v1/messages"): chat(),
    ("public", "POST", "/v1/messages/count_tokens"): chat(),
    ("public", "POST", "/v1/responses"): {"model": "auto", "input": "hello there"},
    ("public", "GET", "/v1/models"): None,
    ("public", "GET", "/v1/models/{id:path}"): None,
    ("public", "POST", "/search"): {"query": "hello there"},
    ("public", "POST", "/plan"): {"query": "hello there"},
    ("public", "GET", "/sources"): None,
    ("public", "GET", "/sources/health"): None,
    ("public", "GET", "/logs"): None,
    ("public", "GET", "/logs/stats"): None,
    ("public", "GET", "/cache"): None,
    ("public", "DELETE", "/cache"): None,
    ("public", "POST", "/cache/clear"): None,
    ("public", "POST", "/v1/study/ask"): {"question": "hello there"},
    ("public", "POST", "/v1/study/sessions/{id}/end"): None,
    ("public", "GET", "/v1/study/memory"): None,
    ("public", "DELETE", "/v1/study/memory/{id}"): None,
    ("public", "GET", "/v1/study/savings"): None,
    ("public", "POST", "/api/chat/ask"): {"question": "Can you put that more simply?"},
    ("public", "POST", "/api/chat/feedback"): {"decision_id": "DECISION", "right": True},
    ("public", "GET", "/api/claims"): None,
    ("public", "GET", "/api/claims/search"): None,
    ("public", "GET", "/api/claims/{id}"): None,
    ("public", "POST", "/api/claims/{id}/delete"): None,
    ("public", "POST", "/api/claims/{id}/hide"): None,
    ("public", "POST", "/api/claims/{id}/unhide"): None,
    ("public", "WS", "/ws/pipeline/{session_id}"): None,
    ("public", "POST", "/v1/assist/ask"): {"query": "hello there", "session_id": "s"},
    ("public", "GET", "/v1/assist/libraries"): None,
    ("public", "POST", "/v1/route"): {"text": "hello there"},
    ("public", "POST", "/v1/route/batch"): {"queries": [{"text": "hello there"}]},
    ("public", "GET", "/v1/decisions/{id}"): None,
    ("public", "POST", "/v1/feedback"): {"decision": "DECISION", "verdict": "right"},
    ("public", "GET", "/openapi.json"): None,
    ("public", "GET", "/health"): None,
    ("public", "GET", "/ready"): None,
    ("admin", "GET", "/health"): None,
    ("admin", "GET", "/ready"): None,
    ("admin", "GET", "/metrics"): None,
    ("admin", "GET", "/admin/status"): None,
    ("admin", "POST", "/admin/reload"): None,
}
SCOPES = {
    "/v1/chat/completions": "ask",
    "/v1/messages": "ask",
    "/v1/messages/count_tokens": "ask",
    "/v1/responses": "ask",
    "/v1/models": "ask",
    "/v1/models/{id:path}": "ask",
    "/search": "ask",
    "/plan": "ask",
    "/sources": "ask",
    "/sources/health": "ask",
    "/logs": "decisions:read",
    "/logs/stats": "decisions:read",
    "/cache": "ask",
    "/cache/clear": "ask",
    "/v1/study/ask": "ask",
    "/v1/study/sessions/{id}/end": "ask",
    "/v1/study/memory": "ask",
    "/v1/study/memory/{id}": "ask",
    "/v1/study/savings": "decisions:read",
    "/v1/assist/ask": "ask",
    "/v1/assist/libraries": "ask",
    "/api/chat/ask": "ask",
    "/api/chat/feedback": "feedback:write",
    "/api/claims": "ask",
    "/api/claims/search": "ask",
    "/api/claims/{id}": "ask",
    "/api/claims/{id}/delete": "feedback:write",
    "/api/claims/{id}/hide": "feedback:write",
    "/api/claims/{id}/unhide": "feedback:write",
    "/ws/pipeline/{session_id}": "ask",
    "/v1/route": "route",
    "/v1/route/batch": "route",
    "/v1/decisions/{id}": "decisions:read",
    "/v1/feedback": "feedback:write",
    "/openapi.json": "",
    "/health": "",
    "/ready": "",
    "/metrics": "admin",
    "/admin/status": "admin",
    "/admin/reload": "admin",
}
ALL = ("ask", "route", "decisions:read", "feedback:write", "admin")
# One tenant's decision is nobody else's: these are not found with another tenant's key.
OF_A_TENANT = (
    *("/v1/decisions/{id}", "/v1/feedback", "/api/chat/feedback"),
    *("/api/claims/{id}/hide", "/api/claims/{id}/unhide"),
)
CREATED = ("/v1/feedback", "/api/chat/feedback")
# What stands in a path for what it names, and behind it.
NAMED = {
    "/v1/models/{id:path}": "/v1/models/turnout/simple",
    "/api/claims/{id}/hide": "/api/claims/own/hide",
    "/api/claims/{id}/delete": "/api/claims/none/delete",
    "/api/claims/{id}/unhide": "/api/claims/own/unhide",
    "/api/claims/{id}": f"/api/claims/{FLOOD.id}",
    "/api/claims/search": "/api/claims/search?q=flood",
    "/ws/pipeline/{session_id}": "/ws/pipeline/s",
}
UPGRADE = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


class KeyedServer(NamedTuple):
    served: RunningServer
    keys: dict[str, str]
    decision: str

    def ask(self, listener: str, method: str, path: str, body: Any, headers: dict[str, str]) -> RawResponse:
        url = self.served.url if listener == "public" else self.served.admin
        path = NAMED.get(path, path).replace("{id}", self.decision)
        if isinstance(body, dict):
            body = {name: self.decision if said == "DECISION" else said for name, said in body.items()}
        if method == SOCKET:
            method, headers = "GET", {**UPGRADE, **headers}
        return call(url, method, path, body, headers=headers)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedServer]:
    with secured_server(tmp_path_factory.mktemp("walk")) as (served, _):
        store = served.store
        now = time.time_ns() // 1_000_000
        keys = {
            "all": make_key(store, tenant="a", scopes=ALL),
            "usual": make_key(store, tenant="a"),
            "none": make_key(store, tenant="a", scopes=()),
            "other": make_key(store, tenant="b", scopes=ALL),
            "revoked": make_key(store, tenant="a", scopes=ALL, revoked_ms=now - 1),
            "expired": make_key(store, tenant="a", scopes=ALL, expires_ms=now - 1),
        }
        for scope in ALL:
            keys[f"without {scope}"] = make_key(store, tenant="a", scopes=tuple(one for one in ALL if one != scope))
        forget(served)
        with bare_library(served.store) as library:
            library.put(FLOOD)
            library.put(replace(FLOOD, id="own", claim_text="Own cards are kept apart.", tenant="a"))
        made = call(served.url, "POST", "/v1/route", {"text": "hello there", "profile": "claims"}, key=keys["all"])
        assert made.status == 200
        yield KeyedServer(served, keys, made.json["id"])


def credentials(keys: dict[str, str], scope: str) -> dict[str, tuple[dict[str, str], int | None]]:
    """Headers by what they are, and the status they must lead to; None: that of success."""
    good = keys["all"]
    changed = good[:-1] + ("A" if good[-1] != "A" else "B")
    bearer = {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}
    table: dict[str, tuple[dict[str, str], int | None]] = {
        "none": ({}, 401),
        "empty": ({"authorization": ""}, 401),
        "malformed": ({"authorization": "Bearer tno_short"}, 401),
        "basic": ({"authorization": "Basic dXNlcjpwYXNz"}, 401),
        "unknown": ({"authorization": f"Bearer tno_{'0' * 12}_{'A' * 43}"}, 401),
        "wrong secret": ({"x-api-key": changed}, 401),
        "revoked": (bearer["revoked"], 401),
        "expired": (bearer["expired"], 401),
        "two": ({"authorization": f"Bearer {good}", "x-api-key": good}, 400),
        "no scope": (bearer["none"], 403),
        "without it": (bearer[f"without {scope}"] if scope else bearer["none"], 403),
        "x-api-key": ({"x-api-key": good}, None),
        "bearer": (bearer["all"], None),
    }
    if scope == "admin":
        table["usual"] = (bearer["usual"], 403)
    elif scope:
        table["usual"] = (bearer["usual"], None)
    return {name: (headers, None if not scope else status) for name, (headers, status) in table.items()}


def check_error(got: RawResponse, path: str, what: str) -> None:
    """An error is in the format the route's clients read, and says something."""
    told = got.json
    if path.startswith("/v1/messages"):
        assert told["type"] == "error", what
        assert told["error"]["type"].endswith("_error"), what
    else:
        assert set(told["error"]) == {"message", "type", "param", "code"}, what
    assert len(told["error"]["message"]) > 10, what


def test_every_route_is_expected() -> None:
    """A route nobody has written an expectation for does not ship."""
    assert {(route.listener, route.method, route.path) for route in route_table()} == set(BODIES)
    assert {route.path: route.scope for route in route_table()} == SCOPES
    assert len(route_table()) == len(BODIES)


@pytest.mark.parametrize("row", BODIES, ids=" ".join)
def test_every_credential(server: KeyedServer, row: tuple[str, str, str]) -> None:
    listener, method, path = row
    body = BODIES[row]
    for name, (headers, expected) in credentials(server.keys, SCOPES[path]).items():
        got = server.ask(listener, method, path, body, headers)
        what = f"{row} with {name}: {got.body[:200]!r}"
        if expected is None:
            assert got.status == (101 if method == SOCKET else 201 if path in CREATED else 200), what
        else:
            assert got.status == expected, what
            check_error(got, path, what)
        assert "set-cookie" not in got.headers
        assert got.status == 101 or got.headers["server"] == "turnout"


@pytest.mark.parametrize("row", BODIES, ids=" ".join)
def test_every_method(server: KeyedServer, row: tuple[str, str, str]) -> None:
    """Another method is refused whoever asks, and does nothing."""
    listener, own, path = row
    allowed = [route.method for route in route_table() if route.path == path and route.listener == listener]
    for method in METHODS:
        if method in allowed:
            continue
        for key in ("all", "none"):
            got = server.ask(listener, method, path, BODIES[row], {"x-api-key": server.keys[key]})
            assert got.status == (426 if own == SOCKET else 405), (row, method)
            assert own == SOCKET or got.headers["allow"].split(", ") == allowed
            if method != "HEAD":
                check_error(got, path, f"{row} {method}")


@pytest.mark.parametrize("row", BODIES, ids=" ".join)
def test_another_tenants_key(server: KeyedServer, row: tuple[str, str, str]) -> None:
    listener, method, path = row
    got = server.ask(listener, method, path, BODIES[row], {"x-api-key": server.keys["other"]})
    if path in OF_A_TENANT:
        assert got.status == 404, got
        check_error(got, path, str(row))
    else:
        assert got.status in (101, 200, 201), got


def test_a_route_is_on_its_listener_alone(server: KeyedServer) -> None:
    both = {"/health", "/ready"}
    for (listener, method, path), body in BODIES.items():
        if path in both:
            continue
        elsewhere = "admin" if listener == "public" else "public"
        for key in ("all", "other"):
            got = server.ask(elsewhere, method, path, body, {"x-api-key": server.keys[key]})
            assert got.status == 404, (elsewhere, path)


@pytest.mark.parametrize(
    "path", ["/admin", "/admin/", "/admin/status/", "/v1", "/v1/", "/", "/docs", "/v1/keys", "/%00"]
)
def test_what_is_not_in_the_table_is_not_there(server: KeyedServer, path: str) -> None:
    for listener in ("public", "admin"):
        for method in ("GET", "POST"):
            assert server.ask(listener, method, path, None, {"x-api-key": server.keys["all"]}).status == 404


@pytest.mark.parametrize("path", ["/v1/decisions/{id}", "/v1/decisions/%7Bid%7D", "/v1/models/{id:path}"])
def test_a_placeholder_is_a_name_like_any_other(server: KeyedServer, path: str) -> None:
    assert call(server.served.url, "GET", path, key=server.keys["all"]).status == 404


def test_loopback_without_keys_is_open(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nobody needs a key on a machine that has none; with the first key everybody does, on both listeners."""
    with secured_server(tmp_path_factory.mktemp("open")) as (served, _):
        for path in ("/v1/models", "/health"):
            assert call(served.url, "GET", path).status == 200
        for path in ("/metrics", "/admin/status"):
            assert call(served.admin, "GET", path).status == 200
        key = make_key(served.store)
        forget(served)
        assert call(served.url, "GET", "/v1/models").status == 401
        assert call(served.url, "GET", "/v1/models", key=key).status == 200
        assert call(served.admin, "GET", "/metrics").status == 401
        assert call(served.admin, "GET", "/metrics", key=key).status == 403
        assert call(served.admin, "POST", "/admin/reload", key=key).status == 403
