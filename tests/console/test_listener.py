"""Where the console is: with clients while only this machine's people come, on the admin listener otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from clean_environment import clear_environment
from console.conftest import OWN
from secured_server import call, forget, make_key
from serving import serving
from turnout.config.server import ServerSettings
from turnout.console.console import Console
from turnout.web.auth import Guard


class Case(NamedTuple):
    id: str
    settings: str
    with_clients: bool


CASES = [
    Case("by default", "", True),
    Case("another name of this machine", 'hosts = ["127.0.0.2"]', True),
    Case("everywhere", 'host = "0.0.0.0"', False),
    Case("behind a proxy", 'hosts = ["turnout.example.org"]', False),
    Case("administration everywhere", 'admin_host = "0.0.0.0"\nadmin_public = true', False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_where_the_console_is(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch, tmp_path)
    with serving(tmp_path, f"[server]\nlag_s = 60.0\n{case.settings}\n", pages=Console) as served:
        key = make_key(served.store, scopes=("admin", "decisions:read", "route"))
        forget(served)
        public, admin = (url.replace("0.0.0.0", "127.0.0.1") for url in (served.url, served.admin))
        here, elsewhere = (public, admin) if case.with_clients else (admin, public)
        pages = {(route.method, route.path) for route in Console(served.server).routes}
        for method, path in sorted(pages - {("GET", "/")}):
            got = call(elsewhere, method, path.replace("{name}", "console.css"), b"", headers=OWN)
            assert got.status == 404, (method, path, got)
        told = call(elsewhere, "GET", "/")
        assert told.status == 404
        # Nothing is said of where administration listens to a stranger who has no business there.
        assert (b"admin listener" in told.body) is not case.with_clients
        assert served.admin.rpartition(":")[2].encode() not in told.body
        # There it is as everywhere: with a key.
        assert call(here, "GET", "/").headers["location"] == "/login"
        body = urlencode({"key": key}).encode()
        assert call(here, "POST", "/login", body).status == 403
        signed = call(here, "POST", "/login", body, headers=OWN)
        cookie = signed.headers["set-cookie"].partition(";")[0]
        for path in ("/", "/decisions", "/models", "/static/console.css"):
            assert call(here, "GET", path, headers={"cookie": cookie}).status == 200
        # What programs ask stays where it was.
        assert call(public, "POST", "/v1/route", {"text": "hello"}, key=key).status == 200
        assert call(admin, "GET", "/metrics", key=key).status == 200
        assert call(admin, "POST", "/v1/route", {"text": "hello"}, key=key).status == 404
        form = {"text": "hello", "profile": "tiers"}
        shown = call(here, "POST", "/playground", urlencode(form).encode(), headers={**OWN, "cookie": cookie})
        port = public.rpartition(":")[2] if case.with_clients else "0"
        assert f"http://127.0.0.1:{port}/v1/route".encode() in shown.body


def test_a_console_that_is_public_is_called_by_its_address() -> None:
    guard = Guard(ServerSettings(host="0.0.0.0", admin_host="10.0.0.5"))
    guard.check({"host": "10.0.0.5:8402"})
    assert "0.0.0.0" not in guard.hosts
