"""S7: marked secrets go in, and are looked for in everything that comes out: answers, logs, files, metrics, commands.

The models are hostile: whatever key they were sent comes back in their errors and headers, whole and in halves.
"""

import gc
import json
import logging
import os
import secrets
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from secured_server import TIERS, call, chat, forget, make_key, secured_server, send_raw
from turnout import load_profile
from turnout.config.learning import learn_settings
from turnout.config.server import server_settings
from turnout.config.settings import store_settings
from turnout.core.errors import ConfigError, TurnoutError
from turnout.models.secret import Secret, SecretPlace
from turnout.models.slot import Slot, SlotFile, load_slots, make_slot
from turnout.net.client import Request
from turnout.net.egress import origin_of
from turnout.runtime.pepper import read_pepper
from turnout.store import open_store
from turnout.testing import Fault, Received, Reply, ScriptedProvider

RUN = 8


def marked(prefix: str) -> str:
    return f"{prefix}{secrets.token_urlsafe(30).replace('-', 'x').replace('_', 'y')}"


def runs(secret: str) -> set[str]:
    """Every eight characters of a secret; a key's shape and its id are no secret."""
    body = secret[17:] if secret.startswith("tno_") else secret.removeprefix("sk-ant-").removeprefix("sk-")
    return {body[at : at + RUN] for at in range(len(body) - RUN + 1)}


def hits(where: str, blob: bytes, canaries: dict[str, str]) -> list[str]:
    """Which of them are in there; also written in UTF-16, as it is or as Python shows bytes."""
    blob += b" " + blob.replace(b"\0", b"").replace(b"\\x00", b"").replace(b"\\n", b"").replace(b"\n", b"")
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
        secured_server(folder, written(provider, folder / "secret")) as (served, _),
    ):
        pepper = marked("")
        canaries["the pepper"] = pepper
        monkeypatch.setenv("TURNOUT_PEPPER", pepper)
        served.server.auth.pepper = pepper.encode()
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
        monkeypatch.setattr(served.gateway, "handle", None)
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
                [sys.executable, "-m", "turnout.cli", *command],
                capture_output=True,
                check=False,
                env=dict(os.environ),
                timeout=60,
            )
            blob = done.stdout + done.stderr
            assert done.returncode == (2 if "broken.toml" in command[-1] else 0), (command, blob)
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
    assert any("failed unexpectedly" in line and "Traceback" in line for line in logged)
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


# --- what is wrong with a secret, or with the place where one was written, is said without it


class Slip(NamedTuple):
    id: str
    act: Callable[[Path, str], object]
    """Does what a user does by mistake, in a folder and with a secret; raises a TurnoutError."""


def shown(error: BaseException) -> str:
    """An error in every way it may be written down: its text, its repr, and its traceback with all causes."""
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:
        chain.append(at)
        at = at.__cause__ or at.__context__
    return "\n".join(
        (*map(str, chain), *map(repr, chain), *("".join(traceback.format_exception(one)) for one in chain))
    )


def key_file(content: Callable[[str], bytes]) -> Callable[[Path, str], object]:
    def act(folder: Path, secret: str) -> object:
        (folder / "key").write_bytes(content(secret))
        return make_slot("a", SlotFile("openai/x", key=SecretPlace(file=str(folder / "key"))))

    return act


def variable(content: Callable[[str], bytes]) -> Callable[[Path, str], object]:
    def act(folder: Path, secret: str) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLIPPED", os.fsdecode(content(secret)))
            return make_slot("a", SlotFile("openai/x", key=SecretPlace(env="SLIPPED")))

    return act


KEYS = [
    *(
        Slip(f"{place}-{name}", how(content))
        for place, how in (("file", key_file), ("variable", variable))
        for name, content in {
            "latin-1": lambda s: s.encode() + b"\xe9",
            "not-utf-8": lambda s: b"\xff" + s.encode(),
            "lone-surrogate": lambda s: s.encode() + b"\xed\xa0\x80",
            "no-ascii": lambda s: f"{s}ü{s}".encode(),
            "zero-width": lambda s: f"{s}\u200b".encode(),
            "a-space": lambda s: f"{s} {s}".encode(),
            "a-tab": lambda s: f"{s}\t{s}".encode(),
            "two-lines": lambda s: f"{s}\n{s}\n".encode(),
            "split": lambda s: f"{s[:20]}\n{s[20:]}\n".encode(),
            "named": lambda s: f"OPENAI_API_KEY = {s}".encode(),
            "a-header": lambda s: f"Authorization: Bearer {s}".encode(),
        }.items()
    ),
    Slip("file-nul", key_file(lambda s: f"{s}\0{s}".encode())),
    Slip("file-utf-16", key_file(lambda s: s.encode("utf-16"))),
    Slip("file-utf-16-le", key_file(lambda s: s.encode("utf-16-le"))),
    Slip("file-utf-16-be", key_file(lambda s: b"\xfe\xff" + s.encode("utf-16-be"))),
    Slip("file-utf-32", key_file(lambda s: s.encode("utf-32"))),
    Slip("file-long", key_file(lambda s: s.encode() * 5_000)),
]


@pytest.mark.parametrize("slip", KEYS, ids=lambda slip: slip.id)
def test_a_key_that_cannot_be_used_is_not_told(slip: Slip, tmp_path: Path) -> None:
    """Not even to somebody who has a traceback drawn with the variables of each function, or follows every cause."""
    secret = marked("sk-")
    with pytest.raises(ConfigError) as told:
        slip.act(tmp_path, secret)
    blob = shown(told.value)
    ours = [
        frame for frame in traceback.walk_tb(told.value.__traceback__) if "/turnout/" in frame[0].f_code.co_filename
    ]
    blob += "".join(traceback.StackSummary.extract(iter(ours), capture_locals=True).format())
    assert not hits(slip.id, blob.encode("utf-8", "replace"), {"it": secret})
    assert len(str(told.value).splitlines()) == 1
    assert told.value.__context__ is None, "and no other error, which might carry it, comes along"


def test_a_key_with_a_mark_in_front_is_used(tmp_path: Path) -> None:
    secret = marked("sk-")
    slot = key_file(lambda s: b"\xef\xbb\xbf" + s.encode() + b"\r\n")(tmp_path, secret)
    assert isinstance(slot, Slot)
    assert slot.key is not None
    assert slot.key.reveal() == secret


def settings(text: str) -> Callable[[Path, str], object]:
    """The mistake stands in turnout.toml; each of its readers is asked."""

    def act(folder: Path, secret: str) -> object:
        file = folder / "turnout.toml"
        file.write_text(text.replace("KEY", secret))
        for reads in (load_slots, store_settings, server_settings, learn_settings):
            reads(str(file))
        return load_profile("tiers", config=str(file))

    return act


def profile(text: str) -> Callable[[Path, str], object]:
    def act(folder: Path, secret: str) -> object:
        (folder / "mine.toml").write_text(text.replace("KEY", secret))
        return load_profile(folder / "mine.toml", config="")

    return act


def database(url: str) -> Callable[[Path, str], object]:
    def act(folder: Path, secret: str) -> object:
        with open_store(url.replace("KEY", secret)):
            return None

    return act


def pepper(content: Callable[[str], bytes], *, in_file: bool) -> Callable[[Path, str], object]:
    def act(folder: Path, secret: str) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_DATA_HOME", str(folder))
            patch.delenv("TURNOUT_PEPPER", raising=False)
            if in_file:
                (folder / "turnout").mkdir()
                (folder / "turnout" / "pepper").write_bytes(content(secret))
            else:
                patch.setenv("TURNOUT_PEPPER", os.fsdecode(content(secret)))
            return read_pepper()

    return act


SLOT = '[models.a]\nmodel = "mine/x"\n'
SLIPS = [
    *(
        Slip(f"settings-{name}", settings(text))
        for name, text in {
            "key": f'{SLOT}base_url = "https://a.example"\nkey = "KEY"',
            "key-in-a-list": f'{SLOT}base_url = "https://a.example"\nkey = ["KEY"]',
            "key-as-env": f'{SLOT}base_url = "https://a.example"\nkey = {{ env = "KEY" }}',
            "key-as-file": f'{SLOT}base_url = "https://a.example"\nkey = {{ file = "KEY" }}',
            "key-in-env-in-a-list": f'{SLOT}base_url = "https://a.example"\nkey = {{ env = ["KEY"] }}',
            "key-by-another-name": f'{SLOT}api_key = "KEY"',
            "key-as-a-value": f'{SLOT}base_url = "https://a.example"\nkey = {{ value = "KEY" }}',
            "key-as-a-name": f'{SLOT}base_url = "https://a.example"\nkey = {{ "KEY" = true }}',
            "key-without-quotes": f"{SLOT}key = KEY",
            "key-without-an-end": f'{SLOT}key = "KEY',
            "key-on-two-lines": f'{SLOT}key = "KEY\nKEY"',
            "key-twice": f'{SLOT}key = "KEY"\nkey = "KEY"',
            "model": '[models.a]\nmodel = "KEY"',
            "model-of-a-provider": '[models.a]\nmodel = "KEY/x"',
            "a-slot": '[models."KEY"]\nmodel = 7',
            "models": 'models = "KEY"',
            "wires": f'{SLOT}wires = ["KEY"]',
            "private": f'{SLOT}private = "KEY"',
            "base-url": f'{SLOT}base_url = "KEY"',
            "base-url-password": f'{SLOT}base_url = "https://me:KEY@a.example/v1"',
            "base-url-user": f'{SLOT}base_url = "https://KEY@a.example/v1"',
            "base-url-password-with-a-space": f'{SLOT}base_url = "https://me:KEY x@a.example/v1"',
            "base-url-password-with-a-slash": f'{SLOT}base_url = "https://me:KEY/x@a.example/v1"',
            "base-url-password-with-a-bracket": f'{SLOT}base_url = "https://me:[KEY@a.example/v1"',
            "base-url-without-scheme": f'{SLOT}base_url = "me:KEY@a.example/v1"',
            "base-url-query": f'{SLOT}base_url = "https://a.example/v1?api_key=KEY"',
            "base-url-fragment": f'{SLOT}base_url = "https://a.example/v1#KEY"',
            "base-url-path-with-a-space": f'{SLOT}base_url = "https://a.example/KEY/v 1"',
            "base-url-port": f'{SLOT}base_url = "https://a.example:KEY/v1"',
            "store-url": '[store]\nurl = "postgresql://me:KEY@a.example/d"',
            "store": 'store = "postgresql://me:KEY@a.example/d"',
            "store-text": '[store]\ntext = "postgresql://me:KEY@a.example/d"',
            "store-days": '[store]\nkeep_days = "postgresql://me:KEY@a.example/d"',
            "store-long-url": 'store = "postgresql://a-user-with-a-name:KEY@a.example/d"',
            "server-port": '[server]\nport = "KEY"',
            "server-key": '[server]\npepper = "KEY"\n"KEY" = 1',
            "a-setting": '[tiers]\naccept_confidence = "KEY"',
            "a-setting-of-no-name": '[tiers]\napi_key = "KEY"',
            "learn": '[learn]\nauto_promote = "KEY"',
        }.items()
    ),
    *(
        Slip(f"profile-{name}", profile(text))
        for name, text in {
            "extends": 'name = "x"\nextends = "KEY"',
            "a-key": 'name = "x"\nextends = "tiers"\napi_key = "KEY"',
            "a-layer": 'name = "x"\nextends = "tiers"\n[[layers]]\nid = "KEY"\nkind = "KEY"',
            "a-phrase": 'name = "x"\nextends = "tiers"\ndescription = "KEY"',
            "not-toml": 'name = "x"\nkey = KEY',
        }.items()
    ),
    *(
        Slip(f"database-{name}", database(url))
        for name, url in {
            "refused": "postgresql://me:KEY@127.0.0.1:9/d?connect_timeout=1",
            "as-option": "postgresql://me@127.0.0.1:9/d?password=KEY&connect_timeout=1",
            "no-such-option": "postgresql://me:KEY@127.0.0.1:9/d?nonsense=1",
            "percent": "postgresql://me:KEY%zz@127.0.0.1:9/d",
            "slash": "postgresql://me:KEY/x@127.0.0.1:9/d",
            "at": "postgresql://me:KEY@x@127.0.0.1:9/d",
            "question-mark": "postgresql://me:KEY?x@127.0.0.1:9/d",
            "hash": "postgresql://me:KEY#x@127.0.0.1:9/d",
            "port": "postgresql://me:KEY@127.0.0.1:port/d",
            "as-port": "postgresql://127.0.0.1:KEY/d",
            "bracket": "postgresql://me:KEY@[::1/d",
            "compatibility-character": "postgresql://me:KEY\u2100@127.0.0.1:9/d",
            "nul": "postgresql://me:KEY@127.0.0.1:9/d\0",
            "one-slash": "postgresql:/me:KEY@127.0.0.1:9/d",
            "sqlite": "sqlite://me:KEY@127.0.0.1/d",
            "mysql": "mysql://me:KEY@127.0.0.1/d",
        }.items()
    ),
    Slip("pepper-short", pepper(lambda s: s.encode()[:15], in_file=False)),
    Slip("pepper-file-binary", pepper(lambda s: b"\xff" + s.encode(), in_file=True)),
    Slip("pepper-file-utf-16", pepper(lambda s: s.encode("utf-16"), in_file=True)),
    Slip("pepper-file-large", pepper(lambda s: s.encode() * 1_000, in_file=True)),
]


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.id)
def test_a_slip_is_told_without_the_secret(slip: Slip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.store.postgres.CONNECT_S", 0.5)
    secret = marked("sk-")
    with pytest.raises(TurnoutError) as told:
        slip.act(tmp_path, secret)
    assert not hits(slip.id, shown(told.value).encode("utf-8", "replace"), {"it": secret}), str(told.value)


@pytest.mark.parametrize("slip", [one for one in SLIPS if "key" in one.id.split("-")], ids=lambda slip: slip.id)
def test_a_key_without_a_providers_prefix_is_not_told_either(slip: Slip, tmp_path: Path) -> None:
    """Where a key belongs, whatever stands there is taken for one."""
    if slip.id in ("settings-key-as-a-name", "settings-server-key"):
        pytest.skip("the name of a field: known as a key by its looks alone")
    secret = secrets.token_hex(24)
    with pytest.raises(TurnoutError) as told:
        slip.act(tmp_path, secret)
    assert not hits(slip.id, shown(told.value).encode("utf-8", "replace"), {"it": secret}), str(told.value)


def test_a_pepper_of_any_bytes_is_a_pepper(tmp_path: Path) -> None:
    secret = marked("")
    assert pepper(lambda s: s.encode() + b"\xff", in_file=False)(tmp_path, secret) == secret.encode() + b"\xff"


def test_a_request_does_not_show_its_credential() -> None:
    secret = marked("sk-")
    request = Request(origin_of("https://a.example"), "/v1", b"{}", credential=("authorization", f"Bearer {secret}"))
    assert secret not in f"{request!r} {request} {[request]}"


def test_a_watcher_with_a_broken_key_file_logs_no_byte_of_it(tmp_path: Path, logged: list[str]) -> None:
    """The task that ended over one was logged with the error that held the file."""
    secret, key = marked("sk-"), tmp_path / "key"
    key.write_text(marked("sk-"))
    slot = f'[models.simple]\nmodel = "mine/x"\nbase_url = "http://127.0.0.1:9/v1"\nkey = {{ file = "{key}" }}\n'
    text = f"[server]\ndrain_s = 1.0\nlag_s = 60.0\n{slot}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnout.runtime.runtime.LOOK_S", 0.05)
        with secured_server(tmp_path, text) as (served, _):
            key.write_bytes(secret.encode("utf-16"))
            (tmp_path / "turnout.toml").write_text(f"{text}# again\n")
            until = time.monotonic() + 20
            while not any("UTF-16" in line for line in logged) and time.monotonic() < until:
                time.sleep(0.02)
            told = call(served.admin, "POST", "/admin/reload")
            assert told.json["status"] == "kept"
            assert not hits("the answer", told.body, {"it": secret})
    gc.collect()
    assert any("UTF-16" in line for line in logged)
    assert not [hit for line in logged for hit in hits(line[:80], line.encode(), {"it": secret})]
