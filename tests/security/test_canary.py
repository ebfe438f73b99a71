"""S7: marked secrets go in, and are looked for in everything that comes out: answers, logs, files, metrics, commands.

The models are hostile: whatever key they were sent comes back in their errors and headers, whole and in halves.
"""

import json
import logging
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from besieged import TIERS, besieged, call, chat, forget, make_key, send_raw
from turnout.models.secret import Secret
from turnout.testing import Fault, Received, Reply, ScriptedProvider

RUN = 8


def marked(prefix: str) -> str:
    return f"{prefix}{secrets.token_urlsafe(30).replace('-', 'x').replace('_', 'y')}"


def runs(secret: str) -> set[str]:
    """Every eight characters of a secret; a key's shape and its id are no secret."""
    body = secret[17:] if secret.startswith("tno_") else secret.removeprefix("sk-ant-").removeprefix("sk-")
    return {body[at : at + RUN] for at in range(len(body) - RUN + 1)}


def hits(where: str, blob: bytes, canaries: dict[str, str]) -> list[str]:
    return [
        f"{name} in {where}" for name, secret in canaries.items() if any(run.encode() in blob for run in runs(secret))
    ]


class Hostile:
    """Gives back what it was sent, in every place an answer has."""

    def __init__(self) -> None:
        self.turn = 0

    def __call__(self, request: Received) -> Reply:
        self.turn += 1
        key = request.headers.get("authorization", request.headers.get("x-api-key", "")).removeprefix("Bearer ")
        said = f"Incorrect API key provided: {key}, or {key[:20]}...{key[-12:]} (authorization: Bearer {key})"
        odd = {"x-request-id": key, "request-id": f"req_{key[:24]}", "set-cookie": f"k={key}", "x-key": key}
        if request.body["model"] == "classifier" and self.turn % 2:
            return Reply(f"{key} says MEDIUM or SIMPLE: {key}")
        match self.turn % 12:
            case 0:
                return Reply(said, status=400, headers=odd)
            case 1:
                return Reply(said, status=422, headers=odd)
            case 2:
                return Reply(said, status=413)
            case 3:
                return Reply(said, status=401, headers={"www-authenticate": key})
            case 4:
                return Reply(said, status=500, headers={"retry-after": key})
            case 5:
                return Reply(body=said.encode(), headers={"content-type": f"text/{key}"})
            case 6:
                return Reply(body=b'{"error": {"message": "' + key.encode() + b'"}}', status=400)
            case 7:
                return Reply("fine", headers=odd)
            case 8:
                return Reply(said, status=429, headers={"retry-after": "0.01", **odd})
            case 9:
                return Reply(body=b"HTTP/1.1 " + key.encode(), headers={"content-encoding": key[:30]})
            case 10:
                return Reply("fine and", fault=Fault("cut", "after_delta"), headers=odd)
            case _:
                return Reply("fine", headers={"content-type": f"application/json; charset={key}", **odd})


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """Every record of every logger, as it would be written, tracebacks too."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{self.format(record)} {record.args!r}")

    root, keep = logging.getLogger(), Keep(logging.DEBUG)
    keep.setFormatter(logging.Formatter("%(name)s %(message)s"))
    before = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(keep)
    root.setLevel(before)


def written(provider: ScriptedProvider, folder: Path) -> str:
    """Settings whose every slot has a key of its own: in the environment, or in a file."""
    text = '[server]\ndrain_s = 1.0\nlag_s = 60.0\n[store]\ntext = "full"\n'
    for tier in (*TIERS, "classifier"):
        place = f'env = "CANARY_{tier.upper()}"' if tier != "medium" else f'file = "{folder}/medium.key"'
        text += (
            f'[models.{tier}]\nmodel = "fake/{tier}"\nbase_url = "{provider.base_url}"\nprivate = true\n'
            f'wires = ["openai-chat", "anthropic-messages", "openai-responses"]\nkey = {{ {place} }}\n'
            "prices = { input_usd = 1.0, output_usd = 1.0 }\n"
        )
    return text


def test_no_secret_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]) -> None:
    canaries = {f"the key of {tier}": marked("sk-") for tier in (*TIERS, "classifier")}
    for name, secret in canaries.items():
        monkeypatch.setenv(f"CANARY_{name.rpartition(' ')[2].upper()}", secret)
    for name, variable in (
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GEMINI_API_KEY"),
    ):
        canaries[f"the unused key of {name}"] = marked("sk-ant-")
        monkeypatch.setenv(variable, canaries[f"the unused key of {name}"])
    monkeypatch.setenv("TURNOUT_DEBUG", "1")
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "secret").mkdir()
    (folder / "secret" / "medium.key").write_text(canaries["the key of medium"] + "\n")
    monkeypatch.delenv("CANARY_MEDIUM")
    found: list[str] = []
    with (
        ScriptedProvider.in_thread(Hostile()) as provider,
        besieged(folder, written(provider, folder / "secret")) as (served, _),
    ):
        pepper = marked("")
        canaries["the pepper"] = pepper
        monkeypatch.setenv("TURNOUT_PEPPER", pepper)
        served.house.auth.pepper = pepper.encode()
        keys = {
            "ask": make_key(served.store, tenant="a"),
            "admin": make_key(served.store, scopes=("ask", "route", "decisions:read", "feedback:write", "admin")),
            "poor": make_key(served.store, budget_usd=0.0000001),
            "low": make_key(served.store, ceiling="SIMPLE", may_force=False, per_minute=3),
            "revoked": make_key(served.store, revoked_ms=1),
            "unknown": f"tno_{'q' * 12}_{secrets.token_urlsafe(32)}",
        }
        canaries |= {f"the key {name}": key for name, key in keys.items()}
        assert len(canaries) >= 12
        forget(served)

        def look(where: str, got: Any) -> None:
            blob = got if isinstance(got, bytes) else got.body + repr(got.headers).encode()
            found.extend(hits(where, blob, canaries))

        decisions = []
        for turn in range(30):
            for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
                text = f"Tell me about the harbour and what people thought of it, number {turn}"
                body = chat(text, stream=turn % 3 == 0) | {"input": text}
                if turn % 4 == 1:
                    body["model"] = f"fake/{TIERS[turn % 3]}"
                got = call(served.url, "POST", path, body, key=keys["admin" if turn % 2 else "ask"])
                look(f"{path} {got.status}", got)
                if "x-turnout-decision" in got.headers:
                    decisions.append(got.headers["x-turnout-decision"])
        for name, key in keys.items():
            for method, path, body in (
                ("POST", "/v1/chat/completions", chat()),
                ("POST", "/v1/messages", chat(model="turnout/reasoning")),
                ("POST", "/v1/chat/completions", b"{"),
                ("POST", "/v1/route", {"text": "Tell me of the harbour once more", "profile": "tiers"}),
                ("POST", "/v1/route", {"text": "x", "profile": "nope"}),
                ("POST", "/v1/feedback", {"decision": decisions[-1], "verdict": "right", "note": "ok"}),
                ("GET", f"/v1/decisions/{decisions[-1]}", None),
                ("GET", "/v1/models", None),
                ("GET", "/v1/models/fake/simple", None),
                ("GET", "/openapi.json", None),
                ("GET", "/nowhere", None),
                ("DELETE", "/v1/models", None),
            ):
                look(f"{method} {path} as {name}", call(served.url, method, path, body, key=key))
            for method, path in (
                ("GET", "/metrics"),
                ("GET", "/admin/status"),
                ("POST", "/admin/reload"),
                ("GET", "/health"),
            ):
                look(f"{path} as {name}", call(served.admin, method, path, key=key))
        for decision in decisions:
            for key in ("ask", "admin"):
                look("a decision", call(served.url, "GET", f"/v1/decisions/{decision}", key=keys[key]))
        # A credential where it does not belong, and one that is spoilt.
        for path in (f"/{keys['ask']}", f"/v1/models/{keys['ask']}"):
            found += [f"{hit} (path)" for hit in hits(path, call(served.url, "GET", path).body, canaries)]
        for line in (
            f"authorization: Bearer {keys['ask']}\0",
            f"host: {keys['ask']}",
            f"x-api-key: {keys['ask']}\r\nx-api-key: b",
        ):
            look(
                "raw",
                send_raw(served.url, f"GET /v1/models HTTP/1.1\r\n{line}\r\n\r\n".encode(), timeout=1.0).replace(
                    keys["ask"].encode(), b""
                ),
            )
        # A bug of ours, with a traceback: what the log says of it, and what the client is told.
        monkeypatch.setattr(served.house.gateway, "handle", None)
        bug = call(served.url, "POST", "/v1/chat/completions", chat(), key=keys["ask"])
        assert bug.status == 500
        look("a bug", bug)
        served.store.flush()
        config = str(folder / "turnout.toml")
        database = f"sqlite:///{folder}/turnout.db"
        for command in (
            ["models", "list", "--json", "--config", config],
            ["models", "list", "--config", config],
            ["keys", "list", "--json", "--db", database, "--config", config],
            ["keys", "list", "--db", database, "--config", config],
            ["export", "-", "--db", database, "--config", config],
            ["log", "--json", "--db", database, "--config", config],
            ["stats", "--json", "--db", database, "--config", config],
            ["doctor", "--config", config],
            ["models", "list", "--config", str(folder / "broken.toml")],
            ["keys", "revoke", keys["ask"], "--db", database, "--config", config],
        ):
            (folder / "broken.toml").write_text(
                '[models.simple]\nmodel = "fake/x"\nkey = { env = "CANARY_SIMPLE", x = 1 }\n'
            )
            done = subprocess.run(
                [sys.executable, "-m", "turnout", *command],
                capture_output=True,
                check=False,
                env=dict(os.environ),
                timeout=60,
            )
            blob = done.stdout + done.stderr
            if command[:2] == ["keys", "revoke"]:
                blob = blob.replace(keys["ask"].encode(), b"")  # what was typed may be shown to who typed it
            look(" ".join(command[:2]), blob)
        assert provider.received > 60
        statuses = {
            request.headers.get("authorization", request.headers.get("x-api-key")) for request in provider.requests
        }
        assert len(statuses) >= 4, "the keys were really sent"
    time.sleep(0.05)
    for file in folder.rglob("*"):
        if file.is_file() and file.parent.name != "secret":
            look(f"the file {file.name}", file.read_bytes())
    for line in logged:
        found.extend(hits(f"a log: {line[:100]}", line.encode(), canaries))
    assert any("nobody foresaw" in line and "Traceback" in line for line in logged)
    assert not found, sorted(set(found))[:20]


@pytest.mark.parametrize("show", [repr, str, lambda s: f"{s}", lambda s: f"{s!r:>9}", lambda s: [s].__repr__()])
def test_a_secret_does_not_show_itself(show: Any) -> None:
    assert "hunter2" not in show(Secret("hunter2-hunter2"))


@pytest.mark.parametrize(
    "text",
    ["KEY", "a KEY b KEY", "xKEYx", "FIRST...LAST", "bad key FIRST", "KEY"[:2] + "KEY", "Bearer KEY\n", "KEYKEY"],
)
def test_a_secret_is_hidden_from_texts(text: str) -> None:
    """Whole, or eight characters of it, wherever they stand."""
    value = marked("sk-")
    said = text.replace("KEY", value).replace("FIRST", value[:20]).replace("LAST", value[-12:])
    hidden = Secret(value).hide(said)
    assert not hits("it", hidden.encode(), {"it": value})
    assert "***" in hidden
    assert Secret(value).hide("nothing of it") == "nothing of it"
    assert json.dumps(hidden)
