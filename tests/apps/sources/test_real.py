"""Sources against the real servers, where those are installed."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.sources.at_home import BOOK, ask, opened
from apps.sources.real import HAS_KIWIX, HASS, INSTALL, SEARX, home_assistant, kiwix_serve, searx, write_zim
from turnout.apps.sources.ha import READS_ONLY, HomeAssistant
from turnout.apps.sources.judge import judge
from turnout.apps.sources.source import Empty, SourceAnswer
from turnout.testing.source import JsonDouble


@pytest.mark.skipif(not HAS_KIWIX, reason=f"no kiwix-serve: {INSTALL}")
def test_kiwix_serve(tmp_path: Path) -> None:
    other = {"Otter": ("Otter", "The otter swims in rivers."), "Umlaut é": ("Umlaut é", "A page about rivière names.")}
    books = [write_zim(tmp_path, "tiny", BOOK), write_zim(tmp_path, "other", other)]

    async def main(url: str) -> None:
        async with opened(tmp_path, f'[sources.kiwix]\nurl = "{url}"\n') as sources:
            source = sources.sources["kiwix"]
            assert (await source.check()).status == "ok"
            hole = await ask(source, "What's the deal with black holes that everyone keeps talking about?")
            assert isinstance(hole, SourceAnswer)
            assert hole.passages[0].title == "Black hole"
            assert "spacetime" in hole.passages[0].text
            otter = await ask(source, "where do otters swim?")
            assert isinstance(otter, SourceAnswer)
            assert otter.passages[0].title == "Otter"
            named = await ask(source, "rivière names")
            assert isinstance(named, SourceAnswer)
            assert "A page about" in named.passages[0].text
            assert isinstance(await ask(source, "zyzzogeton"), Empty)

    with kiwix_serve(tmp_path, *books) as url:
        asyncio.run(main(url))


@pytest.mark.skipif(not SEARX.exists(), reason=f"no searx: {INSTALL}")
def test_searx(tmp_path: Path) -> None:
    hits = [
        {"u": "https://a.example/", "t": "Printers", "b": "Laser printers compared."},
        {"u": "https://b.example/", "t": "Reset a router", "b": "Hold the button for ten seconds."},
    ]

    async def main() -> None:
        async with JsonDouble({"hits": hits}, {"hits": []}) as engine:
            with_engine = searx(tmp_path, engine.url)
            url = await asyncio.to_thread(with_engine.__enter__)
            try:
                async with opened(tmp_path, f'[sources.web]\nurl = "{url}"\n') as sources:
                    source = sources.sources["web"]
                    assert (await source.check()).status == "ok"
                    result = await ask(source, "how do I reset a router?")
                    assert isinstance(result, SourceAnswer)
                    assert result.passages[0].url == "https://b.example/"
                    engine.trouble = "empty"
                    assert isinstance(await ask(source, "submarines"), Empty)
            finally:
                await asyncio.to_thread(with_engine.__exit__, None, None, None)

    asyncio.run(main())


@pytest.fixture(scope="module")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with home_assistant(tmp_path_factory.mktemp("hass")) as found:
        yield found


@pytest.mark.skipif(not HASS.exists(), reason=f"no Home Assistant: {INSTALL}")
def test_home_assistant(demo_home: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, token = demo_home
    monkeypatch.setenv("TEST_TOKEN", token)

    def states() -> dict[str, str]:
        header = {"authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{url}/api/states", headers=header)  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
            rows = json.load(answer)
        return {
            row["entity_id"]: row["state"] for row in rows if row["entity_id"].startswith(("light.", "lock.", "cover."))
        }

    async def main() -> None:
        text = f'[sources.ha]\nurl = "{url}"\ntoken = {{ env = "TEST_TOKEN" }}\n'
        async with opened(tmp_path, text) as sources:
            source = sources.sources["ha"]
            assert isinstance(source, HomeAssistant)
            assert (await source.check()).status == "ok"
            # The areas are those that onboarding makes; they come over the WebSocket.
            assert {area[0] for area in source._home.areas} == {"Living Room", "Kitchen", "Bedroom"}
            assert {"Kitchen Lights", "Front Door", "Garage Door"} <= set(source.words())
            front = await ask(source, "is the front door locked?")
            assert isinstance(front, SourceAnswer)
            assert front.text == "Yes.\nFront Door: locked."
            assert judge("the front door is locked", front.facts) is True
            kitchen = await ask(source, "are the kitchen lights on?")
            assert isinstance(kitchen, SourceAnswer)
            assert kitchen.text.startswith("Yes.\nKitchen Lights: on")
            warm = await ask(source, "what is the outside temperature?")
            assert isinstance(warm, SourceAnswer)
            assert "Outside Temperature: 15.6 °C" in warm.text
            before = await asyncio.to_thread(states)
            act = await ask(source, "turn off the kitchen lights")
            assert isinstance(act, SourceAnswer)
            assert act.note == READS_ONLY
            assert await asyncio.to_thread(states) == before

    asyncio.run(main())


@pytest.mark.skipif(not HASS.exists(), reason=f"no Home Assistant: {INSTALL}")
def test_home_assistant_by_template(
    demo_home: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way that is left where the registries may not be listed."""
    url, token = demo_home
    monkeypatch.setenv("TEST_TOKEN", token)

    async def main() -> None:
        text = f'[sources.ha]\nurl = "{url}"\ntoken = {{ env = "TEST_TOKEN" }}\n'
        async with opened(tmp_path, text) as sources:
            source = sources.sources["ha"]
            assert isinstance(source, HomeAssistant)
            registry = await source._from_template()
            assert {names[0] for names in registry.areas.values()} == {"Living Room", "Kitchen", "Bedroom"}

    asyncio.run(main())
