"""The table `[net]`: a company's proxy, written down, never picked up from a shell."""

from __future__ import annotations

import asyncio
import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from net.loopback import OK, Talk
from net.loopback import serving as listening
from serving import serving
from turnout.core.errors import ConfigError, Unreachable
from turnout.core.model import Prompt
from turnout.models.ask import Models
from turnout.models.remote import remote_embedder
from turnout.models.slot import load_slots
from turnout.net.client import Client
from turnout.net.egress import Origin, Proxy, proxy_of
from turnout.testing import Reply, ScriptedTransport

SLOT = '[models.classifier]\nmodel = "far/away"\nbase_url = "http://llm.example/v1"\n'
PROMPT = Prompt("sort it", "a question", 12, 2000.0)
ANSWER = b'{"choices":[{"message":{"content":"SIMPLE"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}'


def settings(folder: Path, text: str) -> str:
    file = folder / "turnout.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


class TestRead:
    def test_none_unless_it_is_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://elsewhere.example:1")
        assert load_slots(settings(tmp_path, SLOT)).egress.proxy is None
        assert load_slots(settings(tmp_path, f"{SLOT}[net]\n")).egress.proxy is None

    def test_an_address(self, tmp_path: Path) -> None:
        slots = load_slots(settings(tmp_path, f'{SLOT}[net]\nproxy = "http://proxy.example:3128"\n'))
        expected = Proxy(Origin("http", "proxy.example", 3128, private=True))
        assert slots.proxy == slots.egress.proxy == expected
        # Also for the default tiers, which no table names.
        assert load_slots(settings(tmp_path, '[net]\nproxy = "http://10.0.0.9:8080"\n')).demo

    @pytest.mark.parametrize("place", ["env", "file"])
    def test_one_with_a_password(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
        url = "http://me:s3cret@proxy.example:3128"
        monkeypatch.setenv("OUR_PROXY", url)
        (tmp_path / "proxy").write_text(f"{url}\n", encoding="utf-8")
        at = "OUR_PROXY" if place == "env" else tmp_path / "proxy"
        slots = load_slots(settings(tmp_path, f'{SLOT}[net]\nproxy = {{ {place} = "{at}" }}\n'))
        assert slots.proxy == proxy_of(url)
        assert slots.proxy is not None
        assert slots.proxy.login.startswith("Basic ")
        assert "s3cret" not in repr(slots)
        assert slots.proxy.login not in repr(slots)

    @pytest.mark.parametrize(
        ("table", "said"),
        [
            ('proxy = "http://me:s3cret@proxy.example:3128"', "a password does not belong in a file"),
            ('proxy = "https://proxy.example:3128"', "must be http://host:port"),
            ('proxy = "socks5://proxy.example:1080"', "not an http or https address"),
            ('proxy = "proxy.example:3128"', "not an http or https address"),
            ('proxy = "http://169.254.169.254:80"', "metadata"),
            ('proxy = { env = "NO_SUCH_PROXY" }', "$NO_SUCH_PROXY is empty: it must hold http://host:port"),
            ("proxy = 3128", "net.proxy"),
            ('proxi = "http://proxy.example:3128"', "did you mean"),
        ],
    )
    def test_a_mistake_has_its_line(self, tmp_path: Path, table: str, said: str) -> None:
        """And nothing goes around a proxy that is configured and cannot be read."""
        with pytest.raises(ConfigError) as raised:
            load_slots(settings(tmp_path, f"{SLOT}[net]\n{table}\n"))
        assert said in str(raised.value)
        assert "turnout.toml:5" in str(raised.value)
        assert "s3cret" not in str(raised.value)


def test_a_question_goes_through_it(tmp_path: Path) -> None:
    """An LLM that classifies and an embedder that has no client of its own: both by way of the proxy."""

    async def answers(talk: Talk) -> None:
        heads.append((await talk.request()).line)
        await talk.send(OK.replace(b"length: 2", b"length: %d" % len(ANSWER)).removesuffix(b"ok") + ANSWER)

    heads: list[str] = []

    async def main() -> None:
        async with listening(answers) as proxy:
            embedder = '[models.embedder]\nmodel = "far/vectors"\nbase_url = "http://vectors.example/v1"\n'
            text = f'{SLOT}{embedder}[net]\nproxy = "{proxy.origin}"\n'
            slots = load_slots(settings(tmp_path, text))
            models = Models(slots, Client(slots.egress))
            assert (await models.ask("classifier", PROMPT)).text == "SIMPLE"
            await models.client.close()
            remote = remote_embedder(slots)
            assert remote is not None
            with pytest.raises(Exception, match="vectors"):
                await remote.fetch(["a text"])
        assert heads == [
            "POST http://llm.example/v1/chat/completions HTTP/1.1",
            "POST http://vectors.example/v1/embeddings HTTP/1.1",
        ]

    asyncio.run(main())


def test_a_reload_brings_another_one(tmp_path: Path) -> None:
    """A server under one proxy is given another, and then none."""
    with serving(tmp_path, f'{SLOT}[net]\nproxy = "http://127.0.0.1:9"\n') as served:
        egress = served.server.runtime.models.client.egress
        for table in ('[net]\nproxy = "http://127.0.0.1:10"\n', ""):
            settings(tmp_path, f"{SLOT}{table}")
            place = urlsplit(served.admin)
            connection = http.client.HTTPConnection(place.hostname or "", place.port)
            connection.request("POST", "/admin/reload")
            assert connection.getresponse().status == 200
            connection.close()
            assert egress.proxy == (Proxy(Origin("http", "127.0.0.1", 10, private=True)) if table else None)


def test_a_question_without_a_socket(tmp_path: Path) -> None:
    """What a slot makes of an answer needs no network."""
    slots = load_slots(settings(tmp_path, SLOT))
    double = ScriptedTransport([Reply(body=ANSWER), Reply(status=500, body=b"{}"), Unreachable("llm.example: gone")])
    models = Models(slots, Client(slots.egress, double))

    async def main() -> None:
        assert (await models.ask("classifier", PROMPT)).text == "SIMPLE"
        with pytest.raises(Exception, match="far/away answered 500"):
            await models.ask("classifier", PROMPT)
        with pytest.raises(Unreachable):
            await models.ask("classifier", PROMPT)

    asyncio.run(main())
    assert [one.path for one in double.requests] == ["/v1/chat/completions"] * 3
