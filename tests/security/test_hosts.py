"""S3: requests that name another host, come from another site, or spell a path so that two readers read two things.

A server on loopback that has no key is open to this machine's programs; a page in this machine's browser is not one of
them. Every request here must be refused, or be harmless because it reaches what it says it reaches.
"""

from collections.abc import Iterator

import pytest

from secured_server import call, forget, make_key, secured_server, send_raw, status_of
from serving import RunningServer
from turnout.config.server import ServerSettings
from turnout.core.errors import Refused
from turnout.web.auth import Guard, host_name

# Names no browser of this machine may reach the server by.
BAD_HOSTS = [
    "", " ", "evil.com", "evil.com:PORT", "localhost.evil.com", "localhost.evil.com:PORT", "evil.com.localhost",
    "127.0.0.1.nip.io", "127.0.0.1.nip.io:PORT", "rebind.network:PORT", "7f000001.c0a80001.rbndr.us", "localtest.me",
    "localhost.", "LOCALHOST.", "127.0.0.1.", "localhost..", "127.1", "127.0.1", "2130706433", "0x7f000001",
    "0177.0.0.1", "127.0.0.2", "0.0.0.0", "0", "[::]", "[::1", "::1]", "::1", "[::1]evil", "[::1].evil.com",
    "[::2]:PORT",
    "[::ffff:127.0.0.1]:PORT", "[0:0:0:0:0:0:0:1]:PORT", "[::1%25lo]:PORT", "[::1]:x", "[::1]:", "[localhost]:PORT",
    "[127.0.0.1]:PORT", "localhost]:PORT", "[localhost:PORT", "localhost:", "localhost:x", "localhost:-1",
    "localhost:80:80", "localhost:999999", "localhost:PORT/evil", "localhost/evil.com", "localhost?evil",
    "localhost#evil",
    "localhost@evil.com", "evil.com@localhost", "evil.com/localhost", "evil.com#localhost", "evil.com?localhost",
    "user:pw@localhost:PORT", "localhost\\evil", "localhost%2eevil", "localhost%00", "localhost,evil.com",
    "evil.com, localhost", "localhost evil.com", "localhost;evil", "http://localhost", "//localhost", "localhost/",
    "ｌocalhost", "locaⅼhost", "lócalhost", "localhost\xb2", "localhost:\xb2", "xn--localhost-", "*", "*.localhost",
    "local_host", "host.docker.internal", "ip6-localhost", "kubernetes.default", "metadata.google.internal",
]  # fmt: skip
GOOD_HOSTS = ["localhost", "LOCALHOST", "LocalHost:PORT", "127.0.0.1", "127.0.0.1:PORT", "[::1]", "[::1]:PORT",
              "localhost:1", "127.0.0.1:65535"]  # fmt: skip

# Spellings of a path: never an admin page on the public listener, never a way round the table.
BAD_PATHS = [
    "/admin/status", "//admin/status", "/./admin/status", "/v1/../admin/status", "/v1/..%2fadmin/status",
    "/%61dmin/status", "/admin%2fstatus", "/admin%2Fstatus", "/v1/models/../../admin/status", "/health/../admin/status",
    "/health/../metrics", "/health%2f..%2fmetrics", "/health;/metrics", "/metrics", "/metrics/", "/METRICS",
    "//metrics",
    "/metrics%00", "/metrics?x", "/metrics#x", "/metrics%3f", "/ready/metrics", "/admin/reload", "/admin\\status",
    "/v1/models%00/../../metrics", "/..;/metrics", "/%2e%2e/metrics", "/v1/%2e%2e/%2e%2e/metrics",
    "http://localhost/metrics", "http://evil.com/metrics", "http://localhost@evil.com/metrics", "https://x/admin/status",
    "*", "metrics", "/\t/metrics", "/metrics ", "/v1//models/../metrics",
]  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Open: on loopback, without a key."""
    with secured_server(tmp_path_factory.mktemp("hosts")) as (served, _):
        yield served


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """With a key, which none of these requests has."""
    with secured_server(tmp_path_factory.mktemp("closed")) as (served, _):
        make_key(served.store)
        forget(served)
        yield served


def get(url: str, path: str, *headers: str, method: str = "GET", version: str = "1.1") -> int:
    lines = "".join(f"{header}\r\n" for header in headers)
    request = f"{method} {path} HTTP/{version}\r\n{lines}connection: close\r\ncontent-length: 0\r\n\r\n"
    return status_of(send_raw(url, request.encode("utf-8"), timeout=2.0))


def test_the_corpus_is_large_enough() -> None:
    assert len(BAD_HOSTS) + len(BAD_PATHS) >= 100
    assert len(set(BAD_HOSTS)) == len(BAD_HOSTS)


def test_bad_hosts(served: RunningServer) -> None:
    """On both listeners, for every kind of route: an open one, a reading one, a generating one."""
    passed = []
    for host in BAD_HOSTS:
        for url, path, method in (
            (served.url, "/health", "GET"),
            (served.url, "/v1/models", "GET"),
            (served.url, "/v1/chat/completions", "POST"),
            (served.admin, "/admin/status", "GET"),
        ):
            named = host.replace("PORT", url.rpartition(":")[2])
            status = get(url, path, f"host: {named}", method=method)
            if status not in (0, 400, 421):
                passed.append((named, path, status))
    assert not passed


def test_good_hosts(served: RunningServer) -> None:
    for host in GOOD_HOSTS:
        named = host.replace("PORT", served.url.rpartition(":")[2])
        assert get(served.url, "/v1/models", f"host: {named}") == 200, named


def test_no_host(served: RunningServer) -> None:
    for version in ("1.0", "1.1"):
        for url, path in ((served.url, "/v1/models"), (served.admin, "/metrics"), (served.url, "/health")):
            assert get(url, path, version=version) in (0, 400, 421)


@pytest.mark.parametrize(
    "headers",
    [
        ("host: evil.com", "host: localhost"),
        ("host: evil.com", "x-forwarded-host: localhost"),
        ("host: evil.com", "forwarded: host=localhost"),
        ("host: evil.com", "x-original-host: localhost"),
        ("host: evil.com", "x-host: localhost"),
        ("host : localhost",),
        (" host: localhost",),
        ("host: evil.com", "x-forwarded-for: 127.0.0.1", "x-real-ip: 127.0.0.1"),
    ],
    ids=" + ".join,
)
def test_no_other_header_names_the_host(served: RunningServer, headers: tuple[str, ...]) -> None:
    assert get(served.url, "/v1/models", *headers) in (0, 400, 421)


def test_bad_paths(served: RunningServer, closed: RunningServer) -> None:
    """Nothing of the other listener, and no row of the table without its own checks."""
    for path in BAD_PATHS:
        for one in (served, closed):
            status = get(one.url, path, "host: localhost")
            assert status in (0, 400, 401, 404, 405), (path, status)
        # The model a path names is looked up, not followed.
        assert get(closed.admin, path, "host: localhost") in (0, 400, 401, 404, 405), path


def test_a_path_in_absolute_form_is_still_checked(served: RunningServer) -> None:
    """What a proxy is asked: the host of the request line does not stand in for the header."""
    for host in ("evil.com", "", "localhost.evil.com"):
        assert get(served.url, "http://localhost/v1/models", f"host: {host}") in (0, 400, 404, 421)
    assert get(served.url, "http://evil.com/v1/models", "host: evil.com") in (0, 400, 404, 421)


def test_forwarded_headers_change_nothing(closed: RunningServer) -> None:
    told = {
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "https",
        "x-forwarded-prefix": "/admin",
        "x-original-url": "/health",
        "x-rewrite-url": "/health",
        "x-http-method-override": "GET",
        "x-turnout-tenant": "a",
        "x-turnout-scope": "admin",
        "x-user": "root",
        "cookie": "session=admin",
    }
    for path in ("/v1/models", "/v1/decisions/x"):
        assert call(closed.url, "GET", path, headers=told).status == 401
    for path in ("/metrics", "/admin/status"):
        assert call(closed.admin, "GET", path, headers=told).status == 401


# --- pages in a browser

FOREIGN = [
    "https://evil.com", "http://evil.com", "null", "http://localhost.evil.com", "http://localhost:3000", "file://", "",
    "chrome-extension://abcdef", "http://127.0.0.1:1", "https://localhost@evil.com", "http://LOCALHOST:1", "http://[::1]:1",
    "http://user@HOST", "http://HOST/", "http://HOST/path", "HOST", "//HOST", "ftp://HOST", "http://HOST.evil.com",
]  # fmt: skip


def test_foreign_origins(served: RunningServer) -> None:
    host = served.url.removeprefix("http://")
    body = {"model": "auto", "messages": [{"role": "user", "content": "hello"}]}
    for origin in FOREIGN:
        named = origin.replace("HOST", host)
        for path, method in (("/v1/chat/completions", "POST"), ("/v1/models", "GET"), ("/v1/route", "POST")):
            # A form of another page sends text/plain and asks nobody first.
            got = call(served.url, method, path, body, headers={"origin": named, "content-type": "text/plain"})
            assert got.status == 403, (origin, path)
            assert "access-control-allow-origin" not in got.headers
        assert call(served.admin, "POST", "/admin/reload", headers={"origin": named}).status == 403, origin
    assert call(served.url, "GET", "/v1/models", headers={"origin": f"http://{host}"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "Cross-Site", " cross-site "])
def test_cross_site_fetches(served: RunningServer, site: str) -> None:
    """A picture or a script of another page sends no origin, and says where it stands all the same."""
    for url, path in ((served.url, "/v1/models"), (served.url, "/openapi.json"), (served.admin, "/metrics")):
        assert call(url, "GET", path, headers={"sec-fetch-site": site}).status == 403
    for site in ("same-origin", "none"):
        assert call(served.url, "GET", "/v1/models", headers={"sec-fetch-site": site}).status == 200


def test_preflights_are_not_answered(served: RunningServer) -> None:
    asked = {"origin": "https://evil.com", "access-control-request-method": "POST"}
    got = call(served.url, "OPTIONS", "/v1/chat/completions", headers=asked)
    assert got.status == 405
    assert not [name for name in got.headers if name.startswith("access-control")]


def test_configured_names() -> None:
    guard = Guard(ServerSettings(host="0.0.0.0", hosts=("Router.Example.org",), origins=("https://App.example.org/",)))
    guard.check({"host": "router.example.org"})
    guard.check({"host": "ROUTER.example.org:443", "origin": "https://app.example.org", "sec-fetch-site": "cross-site"})
    for headers in (
        {"host": "0.0.0.0"},
        {"host": "example.org"},
        {"host": "router.example.org", "origin": "https://app.example.org.evil.com"},
        {"host": "router.example.org", "origin": "http://app.example.org"},
        {"host": "router.example.org", "sec-fetch-site": "cross-site"},
    ):
        with pytest.raises(Refused):
            guard.check(headers)


@pytest.mark.parametrize("settings", [ServerSettings(host=""), ServerSettings(hosts=("",)), ServerSettings(host="::")])
def test_no_name_is_nobodys(settings: ServerSettings) -> None:
    guard = Guard(settings)
    for host in ("", " ", "/", "evil com", "::", "[::]"):
        with pytest.raises(Refused):
            guard.check({"host": host})
    with pytest.raises(Refused):
        guard.check({})


def test_a_host_is_never_something_else() -> None:
    """Whatever has a stranger's character in it has no name."""
    for character in map(chr, range(256)):
        if not (character.isascii() and (character.isalnum() or character in "._-")):
            for spoiled in (f"localhost{character}", f"{character}localhost", f"local{character}host"):
                assert host_name(spoiled) != "localhost", ascii(spoiled)
