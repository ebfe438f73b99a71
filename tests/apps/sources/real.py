"""The real servers that sources ask, started on loopback: kiwix-serve, searx and Home Assistant.

Each is found or it is not; `scripts/install_real_sources.sh` installs them, and tests that need one that is missing are
skipped and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).parents[3]
HASS = Path(os.environ.get("TURNOUT_HASS") or ROOT / ".real" / "ha" / "bin" / "hass")
SEARX = Path("/usr/bin/searx-run")
INSTALL = "scripts/install_real_sources.sh installs it"
HAS_KIWIX = shutil.which("kiwix-serve") is not None and shutil.which("zimwriterfs") is not None
# Home Assistant imports its parts one by one: some seven seconds on an idle core, far more on a busy one.
PATIENCE_S = 120.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def process(command: list[str], url: str, log: Path, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """A server, from when it answers until it is not needed any more."""
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=dict(env) if env is not None else None)
    try:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - loopback
                break
            except OSError as error:
                if isinstance(error, urllib.error.HTTPError):
                    break
                if server.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{command[0]} does not answer:\n{log.read_text()[-2000:]}") from None
                time.sleep(0.1)
        yield url.rstrip("/")
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def icon() -> bytes:
    """A PNG of 48 by 48, which a book must have."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress((b"\0" + b"\x30\x60\x90" * 48) * 48)
    head = struct.pack(">IIBBBBB", 48, 48, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def write_zim(folder: Path, name: str, pages: Mapping[str, tuple[str, str]], language: str = "eng") -> Path:
    """A book of pages: a path, and its title and text."""
    html, book = folder / name, folder / f"{name}.zim"
    html.mkdir(parents=True)
    (html / "icon.png").write_bytes(icon())
    for path, (title, text) in {"index": (name, f"The book {name}."), **pages}.items():
        body = "".join(f"<p>{escape(line)}</p>" for line in text.split("\n"))
        head = f"<head><meta charset=utf-8><title>{escape(title)}</title></head>"
        (html / f"{path}.html").write_text(
            f"<!doctype html><html>{head}<body><h1>{escape(title)}</h1>{body}</body></html>"
        )
    options = {"language": language, "title": name, "description": "D", "creator": "c", "publisher": "p", "name": name}
    said = [f"--{key}={value}" for key, value in options.items()]
    command = ["zimwriterfs", "--welcome=index.html", "--illustration=icon.png", *said, str(html), str(book)]
    subprocess.run(command, check=True, capture_output=True)
    return book


@contextmanager
def kiwix_serve(folder: Path, *books: Path) -> Iterator[str]:
    port = free_port()
    command = ["kiwix-serve", "--port", str(port), "--address", "127.0.0.1", *map(str, books)]
    with process(command, f"http://127.0.0.1:{port}/", folder / "kiwix.log") as url:
        yield url


@contextmanager
def searx(folder: Path, engine_url: str) -> Iterator[str]:
    """With one engine, an endpoint of JSON: it asks nobody else."""
    port = free_port()
    engine = {"name": "local", "engine": "json_engine", "shortcut": "lo", "categories": "general", "timeout": 3.0}
    engine |= {"search_url": f"{engine_url}/find?q={{query}}", "results_query": "hits"}
    engine |= {"url_query": "u", "title_query": "t", "content_query": "b", "enable_http": True}
    share = "/usr/share/python3-searx"
    settings: dict[str, Any] = {
        "general": {"debug": False, "instance_name": "searx"},
        "search": {
            "safe_search": 0,
            "autocomplete": "",
            "default_lang": "",
            "ban_time_on_fail": 5,
            "max_ban_time_on_fail": 120,
        },
        "server": {
            "port": port,
            "bind_address": "127.0.0.1",
            "secret_key": "of a test",
            "base_url": False,
            "image_proxy": False,
        }
        | {"http_protocol_version": "1.0", "method": "GET", "default_http_headers": {}},
        "ui": {"static_path": f"{share}/static", "templates_path": f"{share}/templates", "default_theme": "oscar"}
        | {"default_locale": "", "theme_args": {"oscar_style": "logicodev"}},
        "outgoing": {"request_timeout": 3.0, "useragent_suffix": "", "pool_connections": 10, "pool_maxsize": 10},
        "engines": [engine],
        "locales": {"en": "English"},
        "doi_resolvers": {"oadoi.org": "https://oadoi.org/"},
        "default_doi_resolver": "oadoi.org",
    }
    file = folder / "searx.yml"
    file.write_text(json.dumps(settings))  # which is YAML
    env = {"PATH": "/usr/bin:/bin", "SEARX_SETTINGS_PATH": str(file), "HOME": str(folder)}
    with process([str(SEARX)], f"http://127.0.0.1:{port}/", folder / "searx.log", env) as url:
        yield url


@contextmanager
def home_assistant(folder: Path) -> Iterator[tuple[str, str]]:
    """Its demonstration home, and a token of its owner's."""
    port = free_port()
    (folder / "configuration.yaml").write_text(
        "homeassistant: {name: Home, latitude: 52.5, longitude: 13.4, unit_system: metric, time_zone: UTC}\n"
        f"http: {{server_host: 127.0.0.1, server_port: {port}}}\n"
        "api:\nwebsocket_api:\nauth:\nconfig:\nonboarding:\ndemo:\n"
    )
    env = {"PATH": f"{HASS.parent}:/usr/bin:/bin", "HOME": str(folder)}
    command = [str(HASS), "-c", str(folder), "--skip-pip"]
    with process(command, f"http://127.0.0.1:{port}/api/onboarding", folder / "hass.log", env):
        url = f"http://127.0.0.1:{port}"
        person = {"client_id": f"{url}/", "name": "T", "username": "t", "password": "t", "language": "en"}
        code = _post(f"{url}/api/onboarding/users", json.dumps(person).encode())["auth_code"]
        form = urlencode({"client_id": f"{url}/", "grant_type": "authorization_code", "code": code}).encode()
        token = _post(f"{url}/auth/token", form, "application/x-www-form-urlencoded")["access_token"]
        yield url, token


def _post(url: str, body: bytes, kind: str = "application/json") -> Any:
    request = urllib.request.Request(url, body, {"content-type": kind})  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
        return json.load(answer)
