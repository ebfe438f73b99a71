"""Nothing that somebody wrote runs in a page, however it got there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.browsing import browsing
from console.hostile import PAYLOADS, Watcher, try_payloads
from turnout.console.page import POLICY


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


def test_nothing_runs(browser: Any, tmp_path: Path) -> None:
    tried = try_payloads(browser, tmp_path, PAYLOADS)
    assert tried.views >= 40
    # Each in a dozen fields, as the text that it is.
    assert tried.shown >= 10 * len(PAYLOADS)
    assert (tried.ran, tried.stopped, tried.left, tried.hidden) == ([], 0, [], [])


@pytest.mark.parametrize("policy", [POLICY, ""], ids=["stopped by the policy", "not even that"])
def test_what_runs_is_noticed(browser: Any, policy: str) -> None:
    """The detector, on a page that escapes nothing."""
    watcher = Watcher(browser, "http://own.example/")
    body = "<main><img src=http://elsewhere.example/x onerror=alert(1)><iframe></iframe></main>"
    headers = {"content-type": "text/html", **({"content-security-policy": policy} if policy else {})}
    watcher.page.route("http://own.example/", lambda route: route.fulfill(body=body, headers=headers))
    watcher.page.route("http://elsewhere.example/x", lambda route: route.abort())
    watcher.page.goto("http://own.example/")
    watcher.page.wait_for_timeout(200)
    watcher.look()
    watcher.context.close()
    assert len([said for said in watcher.ran if "onerror" in said or "iframe" in said]) >= 2
    assert bool(watcher.stopped) is bool(policy)
    assert ("dialog: 1" in watcher.ran) is not bool(policy)
    # A browser tells of a request before its policy stops it.
    assert watcher.left == ["http://elsewhere.example/x"]
