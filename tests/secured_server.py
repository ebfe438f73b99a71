"""What the security tests share: a server with keys and scripted models, and ways to send it anything at all."""

import contextlib
import http.client
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from serving import RunningServer, serving
from toml_router import ASKING
from turnout.runtime.pepper import read_pepper
from turnout.store import Store
from turnout.store.keys import Key
from turnout.testing import ScriptedProvider
from turnout.web.auth import digest
from turnout.web.key import new_credential, spell

PEPPER = "a-pepper-for-tests-only"
TIERS = ("simple", "medium", "complex", "reasoning")


class RawResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def call(
    url: str,
    method: str,
    path: str,
    body: object = None,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 20.0,
) -> RawResponse:
    """One request on a connection of its own; a body that is not bytes is sent as JSON."""
    place = urlsplit(url)
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {
        "content-type": "application/json",
        **({"authorization": f"Bearer {key}"} if key else {}),
        **(headers or {}),
    }
    with contextlib.closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=timeout)) as connection:
        connection.request(method, path, raw, sent)
        answer = connection.getresponse()
        return RawResponse(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def send_raw(url: str, request: bytes, *, timeout: float = 5.0) -> bytes:
    """These very bytes; whatever comes back until the server closes, or says nothing for a while."""
    place = urlsplit(url)
    with socket.create_connection((str(place.hostname), place.port), timeout) as sock:
        found = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            sock.sendall(request)
            while not _is_whole(found):
                piece = sock.recv(65536)
                if not piece:
                    break
                found += piece
        return found


def status_of(answer: bytes) -> int:
    """The status of a raw answer; 0 if the connection was closed without one."""
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else 0


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    return bool(end) and length is not None and len(body) >= int(length[1])


def make_key(store: Store, **fields: Any) -> str:
    """A new key as its holder has it."""
    credential = new_credential()
    named = {"name": "test", "created_ms": time.time_ns() // 1_000_000, **fields}
    store.keys.add(Key(id=credential.key_id, digest=digest(credential.secret, read_pepper()), **named))
    return spell(credential)


def id_of(key: str) -> str:
    return key[4:16]


def settings(
    provider: ScriptedProvider, *, prices: str = "", classifier: bool = False, server: str = "", more: str = ""
) -> str:
    """A turnout.toml whose every slot is the scripted provider; a classifier is asked whatever is in doubt."""
    # A busy machine is no reason to refuse anybody here.
    asking = f'profile = "{ASKING}"\n' if classifier else ""
    text = f"[server]\n{asking}drain_s = 1.0\nlag_s = 60.0\nwait_s = 5.0\n{server}\n"
    for tier in (*TIERS, *(("classifier",) if classifier else ())):
        text += (
            f'[models.{tier}]\nmodel = "fake/{tier}"\nbase_url = "{provider.base_url}"\nprivate = true\n'
            f'wires = ["openai-chat", "anthropic-messages", "openai-responses"]\n{prices}\n{more}\n'
        )
    return text


@contextlib.contextmanager
def secured_server(
    folder: Path, text: str | None = None, **options: Any
) -> Iterator[tuple[RunningServer, ScriptedProvider]]:
    """A server and its models, with surroundings of their own."""
    folder.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        clean_environment(patch, folder)
        provider = stack.enter_context(ScriptedProvider.in_thread())
        served = stack.enter_context(serving(folder, text or settings(provider, **options)))
        yield served, provider


def clean_environment(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setenv("TURNOUT_PEPPER", PEPPER)
    patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    patch.setenv("XDG_DATA_HOME", str(folder / "data"))
    for name in ("TURNOUT_CONFIG", "TURNOUT_DB"):
        patch.delenv(name, raising=False)


def chat(text: str = "hello there", **fields: Any) -> dict[str, Any]:
    return {"model": "auto", "messages": [{"role": "user", "content": text}], "max_tokens": 100, **fields}


def forget(served: RunningServer) -> None:
    """As a reload does: keys are looked up again."""
    served.loop.call_soon_threadsafe(served.server.auth.forget)
    time.sleep(0.02)
