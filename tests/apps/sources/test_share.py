"""What one source may take: its own connections and threads, bounded work, and nothing from the others."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from apps.sources.asked import SourcesDouble, scripted
from apps.sources.at_home import KINDS, SECRETS, Kind, ask, opened
from turnout.apps import page as page_module
from turnout.apps.caller import Budget, Caller
from turnout.apps.sources import app as app_module
from turnout.apps.sources import web as web_module
from turnout.apps.sources.app import SourcesApp
from turnout.apps.sources.ask import AskRequest
from turnout.apps.sources.fetch import AT_ONCE, JSON_BYTES, READERS, Capacity
from turnout.apps.sources.source import Cause, Failure, SourceAnswer
from turnout.core.query import Query
from turnout.net import client as client_module
from turnout.net.public import Page
from turnout.runtime.runtime import Runtime
from turnout.testing.scripted_source import HANG
from turnout.testing.source import JsonDouble, KiwixDouble, SourceDouble


class FixedDouble(SourceDouble):
    """A server that answers everything alike: some other program."""

    def __init__(self, body: bytes, content_type: str) -> None:
        super().__init__()
        self.body = body
        self.content_type = content_type

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{tail:.*}", self._same)]

    async def _same(self, request: web.Request) -> web.Response:
        return web.Response(body=self.body, content_type=self.content_type)


class Other(NamedTuple):
    id: str
    body: bytes
    content_type: str = "application/json"


OTHERS = [
    Other("a page", b"<!doctype html><title>It works!</title><h1>It works!</h1>", "text/html"),
    Other("an empty object", b"{}"),
    Other("an empty list", b"[]"),
    Other("another object", b'{"status": "ok", "version": "1.2.3"}'),
    Other("metrics of something else", b"# HELP go_goroutines Number.\ngo_goroutines 7\n", "text/plain"),
    Other("XML", b"<?xml version='1.0'?><html><body>hello</body></html>", "application/xml"),
    Other("nothing", b"", "text/plain"),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.id)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_another_server_is_not_this_kind_of_source(
    kind: Kind, other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    async def main() -> None:
        async with FixedDouble(other.body, other.content_type) as double:
            table = kind.table.replace("URL", double.url)
            async with opened(tmp_path, f"[sources.it]\n{table}\n") as sources:
                health = await sources.sources["it"].check()
        assert health.status == "error"
        assert health.said.startswith("it: ")

    asyncio.run(main())


def test_a_source_that_hangs_leaves_connections_to_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", AT_ONCE + 4)

    async def main() -> None:
        hung = KiwixDouble({"tiny": {}})
        hung.trouble = "hung"
        async with hung, JsonDouble({"t": "Two eggs."}) as good:
            text = f'[sources.kiwix]\nurl = "{hung.url}"\n[sources.meter]\nkind = "http-json"\n'
            async with opened(tmp_path, f'{text}url = "{good.url}"\ntext = "/t"\n') as sources:
                waiting = [
                    asyncio.ensure_future(ask(sources.sources["kiwix"], f"what is {n}")) for n in range(3 * AT_ONCE)
                ]
                await asyncio.sleep(0.3)
                async with asyncio.timeout(1.5):
                    result = await ask(sources.sources["meter"], "how many eggs?")
                assert len(hung.requests) == AT_ONCE
                for one in waiting:
                    one.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                assert isinstance(result, SourceAnswer)

    asyncio.run(main())


def test_who_waits_for_a_place_in_vain_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with JsonDouble({"t": "x"}) as double:
            table = f'[sources.meter]\nkind = "http-json"\nurl = "{double.url}"\ntext = "/t"\ntimeout_s = 0.1\n'
            async with opened(tmp_path, table) as sources:
                (capacity,) = sources._capacities
                for _ in range(AT_ONCE):
                    await capacity.places.acquire()
                result = await ask(sources.sources["meter"], "how many?")
                assert isinstance(result, Failure)
                assert result.why is Cause.TIMEOUT
                assert f"{AT_ONCE} requests to it are under way" in result.said

    asyncio.run(main())


def test_what_one_source_reads_holds_up_nobody_else() -> None:
    """Callers that left do not free a thread that still works: it is the source's own."""
    free = threading.Event()

    async def main() -> None:
        slow, other = Capacity(), Capacity()
        left = [asyncio.ensure_future(slow.read(free.wait)) for _ in range(20)]
        await asyncio.sleep(0.1)
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        reading = [thread for thread in threading.enumerate() if thread.name.startswith("turnout-reads")]
        assert len(reading) == READERS
        async with asyncio.timeout(1.0):
            assert await other.read(str, 1) == "1"
            assert await asyncio.to_thread(str, 2) == "2"
        free.set()
        assert await slow.read(str, 3) == "3"
        slow.close()
        other.close()

    try:
        asyncio.run(main())
    finally:
        free.set()


def test_a_page_is_cut_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def extract(source: str) -> str:
        seen.append(len(source))
        return "x"

    monkeypatch.setattr(page_module, "_extract", extract)
    huge = b"<p>" * 2_000_000
    page_module.readable_text(Page("", 200, {"content-type": "text/html"}, huge), web_module.READ_BYTES)
    assert seen == [web_module.READ_BYTES]


def test_an_answer_that_is_long_to_decode_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with FixedDouble(b'{"t":[' + b"[]," * (JSON_BYTES // 3) + b"[]]}", "application/json") as double:
            table = f'[sources.meter]\nkind = "http-json"\nurl = "{double.url}"\ntext = "/t"\n'
            async with opened(tmp_path, table) as sources:
                result = await ask(sources.sources["meter"], "how many?")
        assert isinstance(result, Failure)
        assert f"longer than {JSON_BYTES:,} bytes" in result.said

    asyncio.run(main())


LIBRARY = ("Cannot connect", "Connect call", "ssl:", "('127", "Errno", "[")


def test_why_there_is_no_connection_is_said_in_our_own_words(tmp_path: Path) -> None:
    async def main() -> None:
        async with JsonDouble({}) as double:
            port = double.port
        table = (
            f'[sources.off]\nkind = "http-json"\nurl = "http://127.0.0.1:{port}"\ntext = "/t"\n'
            '[sources.nobody]\nkind = "http-json"\nurl = "http://nobody.invalid"\nprivate = true\ntext = "/t"\n'
        )
        async with opened(tmp_path, table) as sources:
            off, nobody = [await ask(sources.sources[name], "x") for name in ("off", "nobody")]
        assert isinstance(off, Failure)
        assert isinstance(nobody, Failure)
        assert off.said == f"off: 127.0.0.1: nothing listens there: is it running at http://127.0.0.1:{port}?"
        assert "nobody.invalid: there is no address of that name" in nobody.said
        assert not any(word in one.said for word in LIBRARY for one in (off, nobody))

    asyncio.run(main())


def test_what_the_settings_named_before_is_closed_after_its_last_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    closed: list[str] = []

    class Noting(SourcesDouble):
        def __init__(self, name: str) -> None:
            super().__init__(scripted(forecast=HANG))
            self.name = name

        async def close(self) -> None:
            closed.append(self.name)

    names = iter("abcdef")
    monkeypatch.setattr(app_module, "open_sources", lambda config: Noting(next(names)))

    async def main() -> None:
        runtime = Runtime(profile="sources", config="")
        app = SourcesApp(runtime)
        caller, asked = Caller("", "", frozenset(("ask",)), Budget()), AskRequest(Query("weather"))
        events = app.act(await app.decide(asked, caller), asked.query, caller)
        await anext(events)
        for _ in range(3):
            app._renew()
            await asyncio.sleep(0)
        assert closed == ["b", "c"]
        await events.aclose()
        await asyncio.sleep(0)
        assert closed == ["b", "c", "a"]
        assert not app._held
        await runtime.close()
        assert closed == ["b", "c", "a", "d"]

    asyncio.run(main())
