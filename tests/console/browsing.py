"""A real browser for tests: Debian's chromium, driven through playwright. Without it such tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or ""
MISSING = "needs a browser: make real (or apt-get install chromium)"
# As long as a test waits for something that comes: a machine that runs other tests, too, is slow at times.
PATIENCE_S = 30.0
SCREENS = {"wide": (1280, 900), "narrow": (390, 844)}


class BrowsedPage:
    """A page, and all that it asked for and complained of."""

    def __init__(self, page: Any, url: str, name: str) -> None:
        self.page, self.url, self.name = page, url, name
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("dialog", self.meet)

    def meet(self, dialog: Any) -> None:
        """No page of ours says something by itself."""
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str) -> None:
        self.requests.clear()
        self.page.goto(self.url + path)

    def follows(self) -> None:
        """Wait until the list on the page is live: what is decided from now on arrives."""
        self.page.locator("[data-live][data-state=live]").wait_for(state="attached")

    def says(self, text: str, within: str = "body", seconds: float = PATIENCE_S) -> None:
        """Wait until the page has this text and htmx has bound what it put there: before that a key is lost."""
        self.page.locator(within).get_by_text(text).first.wait_for(state="visible", timeout=seconds * 1000)
        self.page.locator(".htmx-swapping, .htmx-added, .htmx-settling").first.wait_for(state="detached")

    def check(self) -> None:
        """What holds for every page: it asked nobody else, complained of nothing, and fits its screen."""
        assert [url for url in self.requests if not url.startswith((self.url, "data:"))] == []
        assert not self.complaints, sorted({said[:200] for said in self.complaints})
        wide = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide[0] <= wide[1], f"{wide[0]} pixels on a screen of {wide[1]}"

    def keep(self, what: str) -> None:
        """A picture, where pictures are wanted."""
        if folder := os.environ.get("TURNOUT_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            before = list(self.complaints)
            self.page.screenshot(path=str(Path(folder) / f"{what}-{self.name}.png"), caret="initial")
            # What takes the picture tries to put a style of its own into the page, which refuses it.
            self.page.wait_for_timeout(50)
            self.complaints[:] = before


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make test installs it")
    if not CHROMIUM:
        pytest.skip(MISSING)
    # As root, and in most containers, chromium has no sandbox to start.
    flags = ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()
