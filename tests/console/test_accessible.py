"""Every page as axe-core judges it: light and dark, wide and narrow, with something on it and without."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clean_environment import clear_environment
from console.browsing import PATIENCE_S, SCREENS, browsing
from console.inhabited import CLAIM, NOTED, PAGES, InhabitedServer, inhabited
from serving import RunningServer, serving
from turnout.console.console import Console

ROOT = Path(__file__).parents[2]
PINNED = re.search(r"^axe=(\S+)$", (ROOT / "scripts" / "install_real_sources.sh").read_text("utf-8"), re.MULTILINE)
AXE = ROOT / ".real" / "axe" / (PINNED[1] if PINNED else "") / "axe.min.js"
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id} (${one.impact}): ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`)
"""
# One browser looks at all pages of one kind; a new one for each would take as long again.
LOOKS = [(scheme, screen) for scheme in ("light", "dark") for screen in SCREENS]
# `make soak` has them all.
FEW = LOOKS if "TURNOUT_LONG" in os.environ else LOOKS[:1]

pytestmark = pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: make real (which needs npm)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InhabitedServer]:
    with inhabited(tmp_path_factory.mktemp("inhabited")) as world:
        yield world


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("bare")
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch, folder)
        with serving(folder, "[server]\nlag_s = 60.0\n", pages=Console) as served:
            yield served


@pytest.fixture(params=FEW, ids="-".join)
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    scheme, screen = request.param
    width, height = SCREENS[screen]
    # The page's own policy would not let axe in; what it judges is the page as it is.
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
    )
    context.add_init_script(path=str(AXE))
    made = context.new_page()
    made.set_default_timeout(PATIENCE_S * 1000)
    yield made
    context.close()


def judge(page: Any, path: str) -> list[str]:
    return [f"{path}: {said}" for said in page.evaluate(RUN)]


def ask(page: Any, url: str, question: str) -> None:
    page.goto(url)
    page.locator("input:focus, textarea:focus").wait_for()
    page.keyboard.type(question)
    page.keyboard.press("Enter")


def test_pages_with_something_on_them(page: Any, world: InhabitedServer) -> None:
    found: list[str] = []
    for path in world.pages:
        page.goto(world.served.url + path)
        found += judge(page, path)
    ask(page, f"{world.served.url}/ask", NOTED)
    page.locator("#citations li").first.wait_for()
    page.locator("#ended a").wait_for()
    found += judge(page, "/ask, answered")
    ask(page, f"{world.served.url}/chat", CLAIM)
    page.get_by_text("Routing decision").press("Enter")
    found += judge(page, "/chat, answered")
    ask(page, f"{world.served.url}/docs", "How often is a request of the client retried?")
    page.locator("#ended p").wait_for()
    found += judge(page, "/docs, answered")
    assert found == []


def test_pages_without_anything(page: Any, bare: RunningServer) -> None:
    found: list[str] = []
    for path in (*PAGES, "/login", "/decisions?outcome=QQ", "/decisions/last"):
        page.goto(bare.url + path)
        found += judge(page, path)
    assert found == []
