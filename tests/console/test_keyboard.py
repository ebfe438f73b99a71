"""Eight tasks with the keyboard alone: nothing is clicked, nothing focused but by Tab, and a key does the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from console.browsing import PATIENCE_S, BrowsedPage, browsing
from console.inhabited import CLAIM, NOTED, PROOF, InhabitedServer, inhabited
from secured_server import forget, id_of, make_key
from turnout.learn.registry import read_history
from turnout.web.auth import SCOPES

# From the first stop of a page to any other; more is no way for a person to go.
STOPS = 60
QUESTIONS = ("zorbling frumious grumblewump", "what about the other one", "a parser for the quarterly report")
AT = """() => {
  const one = document.activeElement, label = one.labels && one.labels.length ? one.labels[0].innerText : "";
  const name = label || one.getAttribute("aria-label") || one.innerText || "";
  return [one.id, one.getAttribute("href") || "", one.getAttribute("name") || "", name].join(" · ");
}"""
VISIBLE = """() => { const one = document.activeElement, style = getComputedStyle(one);
  return one === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 }"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InhabitedServer]:
    with inhabited(tmp_path_factory.mktemp("inhabited"), questions=QUESTIONS) as world:
        yield world


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as browser:
        yield browser


class Typist(BrowsedPage):
    """Somebody who has a keyboard, and says yes to what a page asks."""

    asked: list[str]

    def meet(self, dialog: Any) -> None:
        self.asked = [dialog.message]
        dialog.accept()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def at(self) -> str:
        return str(self.page.evaluate(AT))

    def tab_to(self, wanted: str, key: str = "Tab") -> None:
        """Tab until what has the focus is this; every stop on the way can be seen."""
        for _ in range(STOPS):
            self.page.keyboard.press(key)
            assert self.page.evaluate(VISIBLE), f"the focus cannot be seen: {self.at()}"
            if re.search(wanted, self.at()):
                return
        raise AssertionError(f"no {wanted!r} within {STOPS} stops; the last was {self.at()}")

    def go(self, letter: str, path: str) -> None:
        """Another page, by its key; keys are heard once the page they are typed on is loaded, its scripts too."""
        self.page.wait_for_load_state("load")
        self.page.keyboard.press("g")
        self.page.keyboard.press(letter)
        self.page.wait_for_url(re.compile(f"{re.escape(path)}$"))


@pytest.fixture
def typist(browser: Any, world: InhabitedServer) -> Iterator[Typist]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    typist = Typist(page, world.served.url, "keyboard")
    typist.open("/traffic")
    yield typist
    typist.check()
    context.close()


def test_a_question_is_routed_and_a_slider_moved(typist: Typist) -> None:
    typist.go("y", "/playground")
    typist.page.locator("textarea:focus").wait_for()
    typist.type(PROOF)
    typist.press("Control+Enter")
    typist.says("REASONING", "#result .verdict")
    typist.tab_to("student: the gate needs confidence")
    typist.press("End")
    typist.says("1 of its numbers moved")
    typist.keep("keyboard-playground")


def test_a_decision_is_corrected(typist: Typist, world: InhabitedServer) -> None:
    ident = world.decisions[-1]
    typist.go("d", "/decisions")
    typist.tab_to(f"/decisions/{ident}")
    typist.press("Enter")
    typist.page.wait_for_url(re.compile(ident))
    typist.tab_to("Should be COMPLEX")
    typist.press("Enter")
    typist.says("Noted: it is a training example now.")
    (word,) = world.served.store.records().feedback(ident)
    assert word.should_be == "COMPLEX"


def test_decisions_are_filtered_and_one_is_opened(typist: Typist, world: InhabitedServer) -> None:
    typist.go("d", "/decisions")
    typist.press("/")
    typist.type("rain")
    typist.page.wait_for_url(re.compile("text=rain"))
    typist.page.get_by_text("hello there").wait_for(state="detached")
    typist.tab_to("f-profile")
    typist.type("sources")
    typist.press("Enter")
    typist.page.wait_for_url(re.compile("profile=sources"))
    typist.tab_to("/decisions/0")
    typist.press("Enter")
    typist.says("Will it rain tomorrow?", ".asked")


def test_three_questions_are_labelled(typist: Typist, world: InhabitedServer) -> None:
    typist.go("b", "/label")
    ids = typist.page.locator("[data-queue] > li").evaluate_all("all => all.map((one) => one.id.slice(1))")
    for number, digit in enumerate("213"):
        typist.press(digit)
        typist.page.locator(".labelled").nth(number).wait_for()
    routes = ("MEDIUM", "SIMPLE", "COMPLEX")
    records = world.served.store.records()
    assert tuple(records.feedback(ident)[0].should_be for ident in ids[:3]) == routes


def test_a_student_is_rolled_back(typist: Typist) -> None:
    typist.go("l", "/learning")
    before = read_history("assist", "student")
    typist.tab_to("Roll back to the previous one")
    with typist.page.expect_navigation():
        typist.press("Enter")
    typist.tab_to("History")
    typist.press("Enter")
    typist.says("rollback:")
    after = read_history("assist", "student")
    assert [change.kind for change in after[len(before) :]] == ["rollback"]


def test_a_claim_is_asked_and_its_routing_opened(typist: Typist) -> None:
    typist.go("c", "/chat")
    typist.type(CLAIM)
    typist.press("Enter")
    typist.says("No global flood ever covered the Earth.")
    # The question has the focus again; what was answered stands before it.
    typist.tab_to("Routing decision", "Shift+Tab")
    typist.press("Enter")
    typist.says("the same claim")
    typist.tab_to("The whole decision")
    typist.press("Enter")
    typist.page.wait_for_url(re.compile("/decisions/0"))
    typist.says("claims", "main h2")


def test_sources_are_asked_and_a_citation_opened(typist: Typist) -> None:
    typist.go("a", "/ask")
    typist.type(NOTED)
    typist.press("Enter")
    typist.page.locator("#citations li").nth(1).wait_for()
    typist.page.locator("#ended a").wait_for()
    assert not typist.page.locator("#section-1-files").get_by_text("mended in June").is_visible()
    for _ in range(2):  # the second citation
        typist.tab_to(" · files$")
    typist.press("Enter")
    typist.says("mended in June", "#section-1-files")
    # One goes on from the passage, not from the citation.
    assert typist.page.evaluate("document.activeElement.parentElement.id") == "section-1-files"
    typist.keep("keyboard-ask")


def test_a_key_is_made_and_revoked(typist: Typist, world: InhabitedServer) -> None:
    own = make_key(world.served.store, scopes=SCOPES)
    forget(world.served)
    try:
        typist.go("k", "/login")
        typist.page.locator("#key:focus").wait_for()
        typist.type(own)
        typist.press("Enter")
        typist.says("Overview", "h1")
        typist.go("k", "/keys")
        typist.tab_to("name · Name")
        typist.type("for the harbour")
        typist.press("Enter")
        typist.says("Save it now: it is not shown again.")
        made = typist.page.locator("#made").inner_text()
        typist.tab_to(f"Revoke {id_of(made)}")
        typist.press("Enter")
        typist.page.locator("tr", has_text=id_of(made)).get_by_text("revoked").wait_for()
        assert typist.asked == [f"Revoke {id_of(made)}? It cannot be undone."]
        assert not next(key for key in world.served.store.keys.all() if key.id == id_of(made)).is_valid(2**45)
    finally:
        for key in world.served.store.keys.all():
            world.served.store.keys.revoke(key.id)
