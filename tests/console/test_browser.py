"""The playground and the decisions in a real browser, wide and narrow: their main paths, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clean_environment import clear_environment
from console.browsing import PATIENCE_S, SCREENS, BrowsedPage, browsing
from console.test_decisions_page import NASTY, decide
from secured_server import call
from serving import RunningServer, serving
from turnout.console.console import Console

PROOF = "Prove the theorem formally, step by step"
# What of a view is not cached: the page itself, what it follows.
REQUESTS = 3


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


@pytest.fixture(params=list(SCREENS))
def browsed(browser: Any, served: RunningServer, request: pytest.FixtureRequest) -> Iterator[BrowsedPage]:
    width, height = SCREENS[request.param]
    scheme = "light" if request.param == "wide" else "dark"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    yield BrowsedPage(page, served.url, request.param)
    context.close()


def test_the_playground_by_keyboard(browsed: BrowsedPage, served: RunningServer) -> None:
    for number in range(3):
        decide(served, f"{PROOF} {number}", profile="tiers")
    page = browsed.page
    browsed.open("/playground")
    assert len([url for url in browsed.requests if "/static/" not in url]) <= REQUESTS
    browsed.says("Type a question")
    # The question has the focus from the start.
    page.keyboard.type(PROOF)
    page.keyboard.press("Control+Enter")
    browsed.says("REASONING", "#result .verdict")
    browsed.says("accepted", ".track")
    browsed.keep("playground")
    page.get_by_label("student: the gate needs confidence").focus()
    page.keyboard.press("End")
    browsed.says("1 of its numbers moved")
    page.get_by_label("a held verdict is used from").focus()
    page.keyboard.press("End")
    browsed.says("2 of its numbers moved")
    browsed.says("becomes", "#result .note")
    browsed.keep("playground-moved")
    page.get_by_role("button", name="What would this change in the log?").press("Enter")
    browsed.says("would change (100.0 %)", "#effect")
    page.get_by_role("button", name="Reset").press("Enter")
    page.locator("#result .note").wait_for(state="detached")
    page.get_by_text("Copy as curl, Python or TOML").press("Enter")
    page.locator("[data-copy=as-curl]").press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl -s ")
    page.get_by_label("Compare with").select_option("sources")
    browsed.says("sources", "#result h2")
    browsed.check()


def test_decisions_arrive_pause_and_go_on(browsed: BrowsedPage, served: RunningServer) -> None:
    page = browsed.page
    browsed.open("/decisions")
    browsed.says("Nothing has been decided yet")
    browsed.follows()
    decide(served, "the first question")
    browsed.says("the first question", "#rows")
    assert page.locator("[data-until-live]").count() == 0
    page.get_by_role("button", name="Pause").press("Enter")
    decide(served, "asked during the pause")
    page.wait_for_timeout(1200)
    assert page.get_by_text("asked during the pause").count() == 0
    page.get_by_role("button", name="Resume").press("Enter")
    browsed.says("asked during the pause", "#rows")
    browsed.keep("decisions")
    # However many come, a page keeps some.
    for number in range(230):
        decide(served, f"one of many {number}")
    browsed.says("one of many 229", "#rows")
    assert page.locator("#rows tr").count() <= 200
    assert len([url for url in browsed.requests if "/static/" not in url]) <= REQUESTS
    browsed.check()


def test_a_decision_is_found_corrected_and_decided_again(browsed: BrowsedPage, served: RunningServer) -> None:
    decide(served, "hello there")
    ident = decide(served, PROOF, profile="tiers")["id"]
    page = browsed.page
    browsed.open("/decisions")
    page.keyboard.press("/")
    page.keyboard.type("theorem")
    page.wait_for_url(re.compile("text=theorem"))
    page.get_by_text("hello there").wait_for(state="detached")
    page.locator(f'a[href="/decisions/{ident}"]').press("Enter")
    browsed.says("Not judged yet")
    browsed.keep("decision")
    page.get_by_role("button", name="Should be COMPLEX").press("Enter")
    browsed.says("Noted: it is a training example now.")
    browsed.says("should be COMPLEX", "#words")
    page.get_by_label("Profile").select_option("sources")
    page.get_by_role("button", name="Decide again").press("Enter")
    browsed.says("REASONING becomes", "#again")
    browsed.check()
    (word,) = served.store.records().feedback(ident)
    assert (word.verdict, word.should_be) == ("wrong", "COMPLEX")


def test_what_people_write_does_not_run(browsed: BrowsedPage, served: RunningServer) -> None:
    page = browsed.page
    browsed.open("/decisions")
    browsed.follows()
    ident = decide(served, NASTY, session=NASTY[:150])["id"]
    browsed.says("step by step", "#rows")
    for path in (f"/decisions/{ident}", f"/decisions?text={NASTY[:40]}", f"/playground?text={NASTY}"):
        browsed.open(path.replace("&", "%26").replace("#", "%23"))
        page.wait_for_timeout(100)
        assert page.locator("main script, main img[src=x]").count() == 0
    browsed.check()


def test_what_goes_wrong_is_said(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch, tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_text('extends = "tiers"\nname = "broken"\n', encoding="utf-8")
    settings = f'[server]\nlag_s = 60.0\nprofiles = ["{broken}"]\n'
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    with serving(tmp_path, settings, pages=Console) as served:
        broken.write_text('extends = "tiers"\nname = "broken"\nroutes = 7\n', encoding="utf-8")
        page.goto(f"{served.url}/playground")
        page.get_by_label("Question").fill("a question")
        page.get_by_label("Profile").select_option(str(broken))
        page.locator("#told").get_by_text("cannot be used").wait_for()
        page.get_by_label("Profile").select_option("tiers")
        page.locator("#result .verdict").wait_for()
        assert page.locator("#told").inner_text() == ""
        page.goto(f"{served.url}/decisions?outcome=QQ")
        page.get_by_text("two letters").wait_for()
        page.goto(f"{served.url}/playground")
        assert call(served.url, "GET", "/playground").status == 200
    # The server is gone.
    page.get_by_label("Question").fill("anybody there?")
    page.get_by_role("button", name="Decide").click()
    page.locator("#told").get_by_text("The server does not answer").wait_for()
    page.close()
