"""A card stands alone, whatever its labels are called: well-formed, nothing fetched, nothing obeyed."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from page import check
from turnout.learn.card import ModelCard, render_card, safe

HOSTILE = (
    "<script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "</style><b>",
    "&amp;&lt;",
    "a\x00b\x1b[31m",
    "\u202egnp.exe\u2066",
    "]]>",
    "http://evil.example/x.png",
    "😀 ñ 中文",
    "x" * 5000,
    "",
)


def make(labels: tuple[str, ...], rows: int = 200, **more: object) -> ModelCard:
    draw = np.random.default_rng(0)
    true = draw.choice(len(labels), rows)
    sure = draw.beta(5, 1, rows)
    said = np.where(draw.random(rows) < sure, true, draw.choice(len(labels), rows))
    fields = {
        "title": labels[0] or "a title",
        "what": "\n".join(labels),
        "true": [labels[at] for at in true],
        "said": [labels[at] for at in said],
        "confidence": sure.tolist(),
        "labels": labels,
        "facts": [(label, label) for label in labels],
        "data_hash": "ab" * 32,
        "counts": dict.fromkeys(labels, 7),
        "sources": dict.fromkeys(labels, 3),
        "fitted": [(label, label) for label in labels],
        "metrics": [(label, label, label) for label in labels],
        "gate": 0.85,
        "limits": labels,
        "repeat": labels,
    }
    return ModelCard(**{**fields, **more})  # type: ignore[arg-type]


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    page = check(render_card(make(HOSTILE)))
    assert "<script>alert(1)</script>" in page.text, "shown as it is"
    assert "\u202e" not in page.text
    assert "\x1b" not in page.text
    assert len(page.text) < 200_000


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4, unique=True))
@settings(max_examples=25, deadline=None)
def test_any_names_make_a_page(labels: list[str]) -> None:
    check(render_card(make(tuple(labels), rows=40)))


@pytest.mark.parametrize("text", HOSTILE)
def test_safe(text: str) -> None:
    element = ElementTree.fromstring(f"<a b='{safe(text)}'>{safe(text)}</a>")  # noqa: S314 - what is tested
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    assert element.get("b") == shown
    assert (element.text or "") == shown


def test_what_it_says_is_what_was_measured() -> None:
    card = ModelCard(
        title="support",
        what="two routes",
        true=["a"] * 50 + ["b"] * 50,
        said=["a"] * 49 + ["b"] * 51,
        confidence=[0.9] * 100,
        labels=("a", "b"),
        limits=("English only",),
        repeat=("turnout train x.jsonl",),
    )
    page = check(render_card(card))
    assert "99.0 %" in page.text
    assert "9.0 %" in page.text, "calibration error: says 0.9, is right 0.99"
    assert "a taken for b: 1 of 50" in page.text
    assert "English only" in page.text
    assert "turnout train x.jsonl" in page.text
    assert "100.0 %" in page.text, "all of it at 98 % precision"
    names = [attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg"]
    assert names == ["Reliability diagram", "Coverage against accuracy", "Confusion matrix"]


@pytest.mark.parametrize("labels", [1, 2, 15, 61, 200])
def test_any_number_of_labels(labels: int) -> None:
    text = render_card(make(tuple(f"label {number}" for number in range(labels)), rows=600))
    check(text)
    assert len(text) < 400_000


def test_large_and_small() -> None:
    assert len(render_card(make(("a", "b"), rows=100_000))) < 120_000, "as large as its pictures, not as its questions"
    check(render_card(make(("a",), rows=1)))
    check(render_card(ModelCard("empty", "nothing was judged", (), (), ())))
    check(render_card(ModelCard("one", "", ("a",), ("b",), (0.0,), gate=1.0)))


def test_light_and_dark() -> None:
    text = render_card(make(("a", "b")))
    assert "prefers-color-scheme: dark" in text
    assert "color-scheme: light dark" in text
