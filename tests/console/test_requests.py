"""What a browser asks for when a page is opened: of this server alone, at most three times, and no file twice."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from console.browsing import PATIENCE_S, browsing
from console.inhabited import inhabited

# What of a view is not cached: the page itself, what it follows, what it asks for at once.
REQUESTS = 3


def test_every_page_asks_this_server_and_seldom(tmp_path: Path) -> None:
    with browsing() as browser, inhabited(tmp_path) as world:
        context = browser.new_context()
        page = context.new_page()
        tools = context.new_cdp_session(page)
        tools.send("Network.enable")
        asked: list[tuple[str, str]] = []
        cached: set[str] = set()
        answered: set[str] = set()

        def note(event: dict[str, Any]) -> None:
            asked.append((event["requestId"], event["request"]["url"]))

        def note_answer(event: dict[str, Any]) -> None:
            answered.add(event["requestId"])
            if event["response"].get("fromDiskCache"):
                cached.add(event["requestId"])

        tools.on("Network.requestWillBeSent", note)
        tools.on("Network.requestServedFromCache", lambda event: cached.add(event["requestId"]))
        tools.on("Network.responseReceived", note_answer)
        seen: set[str] = set()
        again: list[tuple[str, str]] = []
        for path in world.pages:
            asked.clear()
            page.goto(world.served.url + path)
            page.wait_for_timeout(150)  # what a page asks for at once
            deadline = time.monotonic() + PATIENCE_S
            # The next page would end a request that has no answer yet.
            while not answered.issuperset(ident for ident, url in asked if "/static/" in url):
                assert time.monotonic() < deadline, (path, asked)
                page.wait_for_timeout(50)
            assert [url for _, url in asked if not url.startswith((f"{world.served.url}/", "data:"))] == [], path
            files = [(ident, url) for ident, url in asked if "/static/" in url]
            again += [(ident, f"{url} by {path}") for ident, url in files if url in seen]
            seen |= {url for _, url in files}
            assert 1 <= len(asked) - len(files) <= REQUESTS, (path, asked)
        assert seen
        assert [said for ident, said in again if ident not in cached] == []
        context.close()
