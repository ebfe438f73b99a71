"""What goes out comes in again as it was, and what is wrong with a file is said line by line, all at once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from apps.claims.a_card import card, form
from turnout.apps.claims.card import AgentAudit, ClaimType, ClaimVerdict
from turnout.apps.claims.claim_review import CARD, is_review, to_review
from turnout.apps.claims.exchange import BadCards, read_cards, starter_cards, write_cards, write_reviews

REVIEW: dict[str, Any] = {
    "@context": "https://schema.org",
    "@type": "ClaimReview",
    "url": "https://example.org/check/1",
    "claimReviewed": "Dogs can fly.",
    "author": {"@type": "Organization", "name": "Example Check"},
    "itemReviewed": {"@type": "Claim", "author": {"@type": "Person", "name": "A tweet"}},
    "reviewRating": {"@type": "Rating", "ratingValue": "1", "bestRating": "5", "alternateName": "Pants on Fire!"},
    "somethingOfTheirs": {"deep": [1, None, "x"]},
}


def test_a_round_trip_loses_nothing() -> None:
    cards = [
        *starter_cards(),
        card(extra={"theirs": [1, {"a": None}]}, agent_audit=[AgentAudit("writer", {"x": 1.5}, "m", 2.0)], demo=True),
    ]
    assert form(*read_cards(b"".join(write_cards(cards)))) == form(*cards)
    assert form(*read_cards(write_reviews(cards))) == form(*cards)


letters = st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))
texts = st.text(letters, min_size=1).filter(lambda said: said.strip())
plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3))


@given(claim=texts, body=texts, extra=st.dictionaries(texts, values, max_size=4), kind=st.sampled_from(ClaimType))
def test_any_card_comes_back(claim: str, body: str, extra: dict[str, Any], kind: ClaimType) -> None:
    made = card(claim=claim, deep_answer=body, claim_type_category=kind, extra=extra)
    assert form(*read_cards(b"".join(write_cards([made])))) == form(made)
    assert form(*read_cards(write_reviews([made]))) == form(made)


def test_fields_of_others_are_kept_and_go_out_where_they_stood() -> None:
    [read] = read_cards(msgspec.json.encode({**msgspec.to_builtins(card()), "their_field": 1, "votes": {"up": 3}}))
    assert read.extra == {"their_field": 1, "votes": {"up": 3}}
    out = json.loads(b"".join(write_cards([read])))
    assert (out["their_field"], out["votes"]) == (1, {"up": 3})


def test_a_review_of_others_becomes_a_card_and_goes_out_as_it_came() -> None:
    [read] = read_cards(msgspec.json.encode(REVIEW))
    assert (read.claim_text, read.claimant, read.verdict) == ("Dogs can fly.", "A tweet", ClaimVerdict.FALSE)
    assert read.sources[0].url == "https://example.org/check/1"
    assert read.sources[0].url_status == "unverified"
    out = to_review(read)
    assert {name: value for name, value in out.items() if name != CARD} == REVIEW
    assert form(*read_cards(msgspec.json.encode(out))) == form(read)
    changed = replace(read, visible=False)
    assert form(*read_cards(msgspec.json.encode(to_review(changed)))) == form(changed)


@pytest.mark.parametrize(
    ("rating", "verdict"),
    [
        ({"alternateName": "Mostly false"}, ClaimVerdict.MISLEADING),
        ({"alternateName": "False."}, ClaimVerdict.FALSE),
        ({"alternateName": "This is not true"}, ClaimVerdict.FALSE),
        ({"alternateName": "TRUE"}, ClaimVerdict.TRUE),
        ({"alternateName": "Depends on Definitions"}, ClaimVerdict.DEPENDS),
        ({"ratingValue": 5, "bestRating": 5, "worstRating": 1}, ClaimVerdict.TRUE),
        ({"ratingValue": "2", "bestRating": "5"}, ClaimVerdict.MISLEADING),
        ({"ratingValue": "1"}, ClaimVerdict.FALSE),
    ],
)
def test_verdicts_of_others(rating: dict[str, Any], verdict: ClaimVerdict) -> None:
    assert read_cards(msgspec.json.encode(REVIEW | {"reviewRating": rating}))[0].verdict == verdict


def test_a_graph_and_a_list_and_lines_are_read() -> None:
    reviews = [REVIEW, REVIEW | {"claimReviewed": "Cats can fly."}]
    forms = [
        msgspec.json.encode({"@context": "https://schema.org", "@graph": reviews}),
        msgspec.json.encode(reviews),
        b"\xef\xbb\xbf" + b"\r\n".join(map(msgspec.json.encode, reviews)) + b"\n\n",
    ]
    assert all([one.claim_text for one in read_cards(form)] == ["Dogs can fly.", "Cats can fly."] for form in forms)
    assert is_review({"@type": ["Thing", "ClaimReview"]})


def test_a_card_without_a_type_gets_one_from_its_words() -> None:
    untyped = {name: value for name, value in msgspec.to_builtins(card()).items() if name != "claim_type_category"}
    [read] = read_cards(msgspec.json.encode(untyped | {"claim_text": "It is morally wrong to eat cheese."}))
    assert read.claim_type_category == ClaimType.ETHICS
    assert form(*read_cards(b"".join(write_cards([read])))) == form(read)


class Wrong(NamedTuple):
    id: str
    line: bytes
    said: str


def line(**fields: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(card()) | fields)


WRONG = [
    Wrong("no JSON", b"{oops", "not JSON"),
    Wrong("no object", b"[1, 2]", "a card is an object, this is a list"),
    Wrong("a number for a text", line(claim_text=7), r"Expected `str`, got `int` - at `\$.claim_text`"),
    Wrong("no such verdict", line(verdict="Maybe"), "Invalid enum value 'Maybe'"),
    Wrong("no such type", line(claim_type_category="astrological"), "'astrological' is not a type of claim"),
    Wrong("nothing claimed", line(claim_text=" "), "lacks claim_text"),
    Wrong("an id that is a path", line(id="../../etc/passwd"), "no slash"),
    Wrong("an id that steers a terminal", line(id="a\x1b[31m"), "printable"),
    Wrong("a lone surrogate", b'{"id": "\\ud800"}', "lone surrogate"),
    Wrong("not UTF-8", b'{"id": "\xff"}', "not JSON"),
    Wrong("nested without end", b'{"id": ' + b"[" * 5000, "not JSON"),
    Wrong("as long as a book", b'{"id": "' + b"a" * 2_000_000 + b'"}', "bytes, a card has"),
    Wrong("a review of nothing", msgspec.json.encode(REVIEW | {"claimReviewed": ""}), "claimReviewed"),
    Wrong("a review without a verdict", msgspec.json.encode(REVIEW | {"reviewRating": {}}), "tells no verdict"),
    Wrong("a review whose card is none", msgspec.json.encode(REVIEW | {CARD: {"id": 1}}), "Expected `str`"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_a_wrong_line_is_named(case: Wrong) -> None:
    with pytest.raises(BadCards, match=f"^line 2: .*{case.said}"):
        read_cards(b"\n".join([line(id="fine"), case.line]))


@pytest.mark.parametrize(
    "raw", [b"\x89PNG\r\n\x1a\n\0\0\n" + b"\n\xfe" * 80, b"<html>\n<p>\n" * 80], ids=["a picture", "a page"]
)
def test_what_is_no_file_of_cards_is_said_once(raw: bytes) -> None:
    with pytest.raises(BadCards, match="from JSONL, a card a line, or from ClaimReview") as caught:
        read_cards(raw)
    assert len(str(caught.value).splitlines()) == 1


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(BadCards) as caught:
        read_cards(b"\n".join([case.line for case in WRONG] + [line(id="twice"), line(id="twice")]))
    assert [one.line for one in caught.value.problems] == [*range(1, len(WRONG) + 1), len(WRONG) + 2]
    assert "is on line 16 already" in str(caught.value)
