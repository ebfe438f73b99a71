"""What the source may not contain, and what a provider is really sent."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnout
from secured_server import call, chat, forget, make_key, secured_server
from turnout.models.generate import PASSED, SHOWN
from turnout.testing import Reply

SOURCE = Path(turnout.__file__).parent
REQUEST_ROOMS = ("web", "apps")
# Nothing of the server's decides by these.
UNTRUSTED = ("x-forwarded", "x-real-ip", "x-original", "x-rewrite", "x-http-method-override", "forwarded")
HOP_BY_HOP = ("connection", "keep-alive", "proxy-", "te", "trailer", "transfer-encoding", "upgrade")


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for room in REQUEST_ROOMS:
        for file in sorted((SOURCE / room).rglob("*.py")):
            yield file, ast.parse(file.read_text(encoding="utf-8"))


def words(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value


def test_no_middleware_that_hides_a_disconnect() -> None:
    for file, tree in trees():
        taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        found = {f"{node.module}.{alias.name}" for node in taken for alias in node.names}
        found |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        theirs = {name for name in found if name.startswith("starlette") and not name.startswith("starlette.types.")}
        assert theirs <= {"starlette.routing.compile_path"}, file
        assert "BaseHTTPMiddleware" not in file.read_text(encoding="utf-8"), file


def test_no_address_is_put_together_from_a_request() -> None:
    """Decisions are made by the table's row: neither `request.url` nor `base_url` is ever read."""
    for file, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in ("url", "base_url", "root_path", "client"):
                holder = ast.unparse(node.value)
                assert not holder.endswith(("request", "scope")), f"{file}:{node.lineno}"
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                read = node.slice.value
                assert read not in ("raw_path", "root_path", "client", "server", "query_string"), (
                    f"{file}:{node.lineno}"
                )


def test_no_header_of_a_proxys_is_read() -> None:
    for file, tree in trees():
        for word in words(tree):
            assert not word.lower().startswith(UNTRUSTED), (file, word)


def test_proxies_are_not_believed() -> None:
    """Granian reads nothing of theirs, unless its wrapper is put around an application."""
    for name in ("serve.py", "asgi.py", "app.py"):
        assert "proxies" not in (SOURCE / "web" / name).read_text()


def test_one_authentication() -> None:
    """A caller is made in one place; nothing else makes one, and there is no default. An audit that another process
    takes up goes on for the key that asked, which is looked up anew."""
    calls = [(file, node) for file, tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    makers = [file.name for file, node in calls if ast.unparse(node.func) in ("Caller", "caller.Caller")]
    assert set(makers) <= {"auth.py", "app.py", "payer.py"}
    assert makers.count("app.py") == 1, "the one without any scope, for open routes"


def test_what_passes_is_listed() -> None:
    for name in (*PASSED, *SHOWN):
        assert not name.startswith((*UNTRUSTED, *HOP_BY_HOP))
        assert name not in ("authorization", "x-api-key", "cookie", "set-cookie", "host")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_a_providers_request_is_built_not_copied(tmp_path: Path, path: str) -> None:
    """Of the client's headers a provider gets the listed ones; of a provider's the client gets the listed ones."""
    with secured_server(tmp_path / "built") as (served, provider):
        key = make_key(served.store)
        forget(served)
        given = {
            "cookie": "session=1", "x-forwarded-for": "10.0.0.1", "x-forwarded-host": "evil.com", "forwarded": "for=1",
            "x-real-ip": "10.0.0.1", "x-turnout-route": "REASONING", "x-turnout-tenant": "b", "x-custom": "1",
            "referer": "https://evil.com", "accept": "text/evil", "accept-encoding": "gzip, br", "user-agent": "evil/1",
            "openai-organization": "org-1", "openai-project": "p", "x-stainless-os": "Linux", "te": "trailers",
            "proxy-authorization": "Basic x", "anthropic-beta": "a-beta", "openai-beta": "assistants=v2",
            "content-type": "application/json; charset=utf-8", "x-api-base": "http://evil", "idempotency-key": "k",
        }  # fmt: skip
        odd = {"set-cookie": "a=b", "server": "evil", "x-request-id": "req-1", "x-turnout-route": "LIES",
               "x-powered-by": "x", "access-control-allow-origin": "*", "openai-organization": "org",
               "strict-transport-security": "x",
               "location": "http://evil", "www-authenticate": "x"}  # fmt: skip
        provider.default = Reply("ok", headers=odd)
        body = chat() | {"input": "hello there", "base_url": "http://evil", "api_base": "http://evil", "api_key": "x"}
        got = call(served.url, "POST", path, body, key=key, headers=given)
        assert got.status == 200
        sent = provider.requests[-1].headers
        allowed = {"host", "accept", "accept-encoding", "user-agent", "content-type", "content-length", *PASSED}
        assert set(sent) <= allowed, set(sent) - allowed
        assert sent["host"] == f"127.0.0.1:{provider.port}"
        assert sent["user-agent"] == "turnout"
        assert sent["accept-encoding"] == "identity"
        assert sent["content-type"] == "application/json"
        assert key not in provider.requests[-1].head.decode("latin-1")
        assert key not in provider.requests[-1].raw.decode()
        shown = {name for name in got.headers if not name.startswith("x-turnout-")}
        assert shown <= {"content-type", "content-length", "date", "server", *SHOWN}, shown
        assert got.headers["server"] == "turnout"
        assert got.headers["x-turnout-route"] != "LIES"
        assert got.headers["x-request-id"] == "req-1"


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with secured_server(tmp_path / "redirect") as (served, provider):
        provider.default = Reply(status=302, headers={"location": f"{provider.origin}/elsewhere"})
        assert call(served.url, "POST", "/v1/chat/completions", chat()).status == 502
        assert all(request.path.startswith("/v1/") for request in provider.requests)


@pytest.mark.parametrize(
    "after", ["²", "1e3", "-1", "nan", "inf", "99999999999999999999", "soon", "", "0x10", "1,2", "."]
)
def test_a_hostile_retry_after(tmp_path: Path, after: str) -> None:
    """Whatever a provider says of when to come back: an answer, and soon."""
    with secured_server(tmp_path / "retry") as (served, provider):
        provider.default = Reply(status=429, headers={"retry-after": after})
        got = call(served.url, "POST", "/v1/chat/completions", chat(), timeout=10)
        assert got.status == 429, got
