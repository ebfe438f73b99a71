"""When a quotation counts as verified: word for word, whatever the spaces and the quotation marks."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.apps.claims.verify import fold_quote, occurs, page_text
from turnout.net.public import Page

TEXT = "He said: “It isn’t  so.”\nThe council met in 325, and the canon was not\u00a0discussed — not once. Dogs bark."


class Quote(NamedTuple):
    id: str
    said: str
    holds: bool


QUOTES = [
    Quote("as it stands", "The council met in 325", True),
    Quote("other spaces", "the canon was\nnot   discussed", True),
    Quote("other marks", 'He said: "It isn\'t so."', True),
    Quote("in marks of its own", "“the canon was not discussed”", True),
    Quote("an unseen hyphen", "the can\u00adon was not discussed", True),
    Quote("another number", "The council met in 326", False),
    Quote("a word left out", "the canon was discussed", False),
    Quote("a word added", "the canon was not ever discussed", False),
    Quote("a word replaced", "the canon was not debated", False),
    Quote("words exchanged", "the council was not discussed", False),
    Quote("the last word cut", "the canon was not discuss", False),
    Quote("the first word cut", "he canon was not discussed", False),
    Quote("a plural", "Dog bark", False),
    Quote("another case", "the council met in 325", False),
    Quote("another dash", "discussed - not once", False),
    Quote("nothing", "", False),
    Quote("marks alone", '""', False),
    Quote("a word that says nothing", "The", False),
]


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote.id)
def test_a_quotation_holds_word_for_word(quote: Quote) -> None:
    assert occurs(fold_quote(quote.said), fold_quote(TEXT)) is quote.holds


@pytest.mark.parametrize("said", ["彼はそれを知っていた", "知っていたと言った"])
def test_scripts_without_spaces_have_no_words_to_cut(said: str) -> None:
    assert occurs(fold_quote(said), fold_quote("「彼はそれを知っていたと言った」と書いた。"))


WORD = st.text(st.characters(categories=["Ll", "Lu"], max_codepoint=0x24F), min_size=3, max_size=8)


@given(st.lists(WORD, min_size=4, max_size=30), st.data())
def test_any_run_of_words_holds_and_none_with_an_altered_word(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 3))
    end = data.draw(st.integers(start + 3, len(words)))
    text, run = fold_quote(" ".join(words)), words[start:end]
    assert occurs(fold_quote("  ".join(run)), text)
    at = data.draw(st.integers(0, len(run) - 1))
    other = [*run[:at], run[at] + "q7", *run[at + 1 :]]
    assert not occurs(fold_quote(" ".join(other)), text)


class FetchedCase(NamedTuple):
    id: str
    page: Page
    found: bool | None
    """None: there is no page."""


HTML = "<html><head><title>T</title></head><body><nav>menu</nav><p>The <b>canon</b> was&nbsp;not discussed.</p></body>"
QUOTED = "The canon was not discussed."
FETCHED = [
    FetchedCase("html", Page("u", 200, {"content-type": "text/html"}, HTML.encode()), True),
    FetchedCase("plain", Page("u", 200, {"content-type": "text/plain"}, QUOTED.encode()), True),
    FetchedCase("gone", Page("u", 404, {}, HTML.encode()), None),
    FetchedCase("an error", Page("u", 503, {}, HTML.encode()), None),
    FetchedCase("a picture", Page("u", 200, {"content-type": "image/png"}, QUOTED.encode()), False),
    FetchedCase("empty", Page("u", 200, {"content-type": "text/html"}, b""), False),
    FetchedCase("no text", Page("u", 200, {"content-type": "text/html"}, b"\xff\xfe" * 50), False),
]


@pytest.mark.parametrize("fetched", FETCHED, ids=lambda fetched: fetched.id)
def test_a_page_is_read_for_what_may_be_quoted(fetched: FetchedCase) -> None:
    found = page_text(fetched.page)
    assert (None if found is None else found.has(QUOTED)) is fetched.found
