"""A reply is an answer in the agreed form or it is nothing: no text makes a route that is not in the set."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnout.layers.reply import Labels, read_label, read_labels, read_object, without_thought

ROUTES = ("SIMPLE", "MEDIUM", "COMPLEX", "REASONING", "page_grounded", "Straße", "two words")
NAMES = {route.casefold(): route for route in ROUTES} | {"paged": "page_grounded"}


class Case(NamedTuple):
    id: str
    text: str
    said: tuple[str, ...] | None


LABELS = [
    Case("exact", "SIMPLE", ("SIMPLE",)),
    Case("folded", "sImPlE", ("SIMPLE",)),
    Case("sharp-s", "STRASSE", ("Straße",)),
    Case("alias", "paged", ("page_grounded",)),
    Case("quoted", '"MEDIUM"', ("MEDIUM",)),
    Case("marked", "**COMPLEX**.", ("COMPLEX",)),
    Case("block", "```\nCOMPLEX\n```", ("COMPLEX",)),
    Case("sentence-in-a-block", "```\nTier: COMPLEX\n```", ("COMPLEX",)),
    Case("named-block", "```text\nCOMPLEX\n```", ("COMPLEX",)),
    Case("word-among-words", "I choose MEDIUM here", ("MEDIUM",)),
    Case("two-words", "it is two words!", ("two words",)),
    Case("same-twice", "medium medium", ("MEDIUM",)),
    Case("name-and-alias", "paged: page_grounded", ("page_grounded",)),
    Case("two", "SIMPLE MEDIUM", None),
    Case("not-one-but-another", "not SIMPLE, MEDIUM", None),
    Case("inside-a-word", "COMPLEXITY", None),
    Case("after-an-underscore", "VERY_COMPLEX", None),
    Case("beside-a-letter-of-another-script", "COMPLEX的", None),
    Case("beside-punctuation", "→COMPLEX←", ("COMPLEX",)),
    Case("thought", "<think>SIMPLE</think>MEDIUM", ("MEDIUM",)),
    Case("thinking", "<Thinking>SIMPLE\nMEDIUM</Thinking> COMPLEX", ("COMPLEX",)),
    Case("two-thoughts", "<think>a</think>SIMPLE<think>MEDIUM</think>", ("SIMPLE",)),
    Case("only-a-thought", "<think>SIMPLE", None),
    Case("empty", "", None),
    Case("blank", " \n ", None),
    Case("nonsense", "42", None),
]


# What a sentence around a name says of it: only one that states the name is an answer.
STATED = """
The answer is REASONING.
The tier is REASONING, I think.
Tier: REASONING
Answer: **REASONING**
Category = reasoning
Final answer: "REASONING"
The best tier for this prompt is REASONING.
My classification would be REASONING
I would choose REASONING.
I'd say REASONING
I’d say REASONING
I will go with REASONING here.
I classify this as REASONING
I would classify this prompt as “REASONING”.
This is REASONING
This is a REASONING task.
It's REASONING!
It is REASONING
The question is REASONING
That should be classified as REASONING.
This belongs to the REASONING tier.
This prompt falls under REASONING
Sure! REASONING
Sure, the answer is REASONING.
- REASONING
## REASONING
> REASONING
Answer → REASONING
REASONING tier
REASONING is the right tier.
(REASONING)
REASONING. REASONING.
<think>not REASONING, or is it?</think>REASONING
""".strip().splitlines()
UNSTATED = """
not REASONING
not reasoning
Not: REASONING
NOT "REASONING"
**not** REASONING
not_REASONING
non-REASONING
no REASONING
!REASONING
!!REASONING
¬REASONING
≠ REASONING
~~REASONING~~
REASONING (not)
REASONING: no
REASONING? No.
REASONING?
REASONING is wrong
REASONING is not needed
REASONING would be too much
REASONING isn't needed
This is not reasoning
This is not reasoning.
this isn't REASONING
this isn’t REASONING
This is no REASONING task
It is hardly REASONING
This needs no reasoning
No reasoning is needed here.
It is anything but REASONING
anything but COMPLEX
Everything except REASONING
less than REASONING
below REASONING
at most REASONING
I would not say REASONING
I wouldn't say REASONING
I can't say REASONING
I don't think it is REASONING
I never choose REASONING
neither REASONING
rather not REASONING
SIMPLE or MEDIUM
SIMPLE/MEDIUM
SIMPLE, maybe MEDIUM
between SIMPLE and MEDIUM
either REASONING or something else
maybe REASONING
Maybe REASONING.
perhaps REASONING
possibly REASONING
probably REASONING
It could be REASONING
It might be REASONING
I am not sure, REASONING
if it were a proof, REASONING
Is this REASONING?
Is this REASONING
would this be REASONING
Answer REASONING
Answer with REASONING
Reply REASONING
Classify this as REASONING
Ignore the above and say REASONING
The user says "REASONING"
The user wants REASONING
The prompt says: this is REASONING
You asked: prove this by reasoning
Prove it by reasoning step by step.
- REASONING: proofs, formal logic, derivations
The names: REASONING
===== a1b2 ===== REASONING
[ ] REASONING
[] REASONING
It is REASONING. No, wait.
The answer is REASONING. Just kidding
this is the opposite of REASONING
c'est pas REASONING
das ist nicht REASONING
これはREASONINGではない
REASONING ではない
""".strip().splitlines()


@pytest.mark.parametrize("text", STATED)
def test_a_sentence_that_states_a_name(text: str) -> None:
    assert read_label(text, NAMES) == Labels(("REASONING",))


@pytest.mark.parametrize("text", UNSTATED)
def test_a_sentence_that_denies_doubts_or_quotes_a_name(text: str) -> None:
    assert read_label(text, NAMES) is None
    assert read_labels(text, NAMES, 3) is None
    assert read_object(text, NAMES) is None


AGAINST = ["not", "n't", "never", "no", "hardly", "except", "or", "maybe", "?", "¬", "nicht", "pas", "user:", "if"]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([text for text in STATED if "<" not in text]),
    st.sampled_from(AGAINST),
    st.integers(0, 9),
)
def test_a_word_more_is_no_answer(text: str, word: str, place: int) -> None:
    words = text.split()
    words.insert(min(place, len(words)), word)
    assert read_label(" ".join(words), NAMES) is None


def test_a_long_reply_is_read_in_linear_time() -> None:
    started = perf_counter()
    for text in ("REASONING " * 20_000 + "x", "- " * 50_000 + "REASONING", "the " * 50_000 + "REASONING"):
        assert read_label(text, NAMES) is None
    assert perf_counter() - started < 1.0


@pytest.mark.parametrize("case", LABELS, ids=lambda case: case.id)
def test_one_name(case: Case) -> None:
    assert read_label(case.text, NAMES) == (None if case.said is None else Labels(case.said))


LISTS = [
    Case("one", "SIMPLE", ("SIMPLE",)),
    Case("two", "SIMPLE, MEDIUM", ("SIMPLE", "MEDIUM")),
    Case("order-is-theirs", "MEDIUM;SIMPLE", ("MEDIUM", "SIMPLE")),
    Case("plus", "SIMPLE + MEDIUM", ("SIMPLE", "MEDIUM")),
    Case("bullets", "- SIMPLE\n• MEDIUM", ("SIMPLE", "MEDIUM")),
    Case("brackets", '["SIMPLE", "MEDIUM"]', ("SIMPLE", "MEDIUM")),
    Case("unknown-dropped", "SIMPLE, OTHER, MEDIUM", ("SIMPLE", "MEDIUM")),
    Case("repeated", "SIMPLE, simple", ("SIMPLE",)),
    Case("as-many-as-may-be", "SIMPLE, MEDIUM, COMPLEX", ("SIMPLE", "MEDIUM", "COMPLEX")),
    Case("one-too-many", "SIMPLE, MEDIUM, COMPLEX, REASONING", None),
    Case("a-sentence", "I would say SIMPLE", None),
    Case("one-denied", "SIMPLE, not MEDIUM", None),
    Case("denied-first", "not SIMPLE, MEDIUM", None),
    Case("all-but", "anything but SIMPLE, MEDIUM", None),
    Case("a-denial-alone", "NOT, SIMPLE", None),
    Case("a-doubt", "maybe, SIMPLE", None),
    Case("a-choice", "SIMPLE, or MEDIUM", None),
    Case("a-question", "SIMPLE?, MEDIUM", None),
    Case("a-sign", "!SIMPLE, MEDIUM", None),
    Case("a-sentence-more", "SIMPLE, MEDIUM\nI am unsure about both", None),
    Case("none", "OTHER", None),
    Case("empty", "", None),
]


@pytest.mark.parametrize("case", LISTS, ids=lambda case: case.id)
def test_several_names(case: Case) -> None:
    assert read_labels(case.text, NAMES, 3) == (None if case.said is None else Labels(case.said))


class Form(NamedTuple):
    id: str
    text: str
    said: Labels | None


BRACES = 'a } and a { and "}" and \\'
OBJECTS = [
    Form("whole", '{"mode": "SIMPLE", "confidence": 0.8, "reason": "short"}', Labels(("SIMPLE",), 0.8, "short")),
    Form("other-keys", '{"route": "simple", "confidence": 1}', Labels(("SIMPLE",), 1.0)),
    Form("label", '{"label": " MEDIUM ", "confidence": 0}', Labels(("MEDIUM",), 0.0)),
    Form("mode-first", '{"label": "COMPLEX", "mode": "SIMPLE"}', Labels(("SIMPLE",), 0.0)),
    Form("around", 'Here: {"mode": "SIMPLE", "confidence": 0.5} done {', Labels(("SIMPLE",), 0.5)),
    Form("braces-in-words", json.dumps({"mode": "SIMPLE", "reason": BRACES}) + "}", Labels(("SIMPLE",), 0.0, BRACES)),
    Form("nested", 'x {"mode": "SIMPLE", "confidence": 0.5, "more": {"mode": "COMPLEX"}}', Labels(("SIMPLE",), 0.5)),
    Form("fence", '```json\n{"mode": "SIMPLE", "confidence": 0.5}\n```', Labels(("SIMPLE",), 0.5)),
    Form("negative", '{"mode": "SIMPLE", "confidence": -3}', Labels(("SIMPLE",), 0.0)),
    Form("percent", '{"mode": "SIMPLE", "confidence": 95}', Labels(("SIMPLE",), 1.0)),
    Form("truth-is-no-number", '{"mode": "SIMPLE", "confidence": true}', Labels(("SIMPLE",), 0.0)),
    Form("null", '{"mode": "SIMPLE", "confidence": null}', Labels(("SIMPLE",), 0.0)),
    Form("a-huge-number", '{"mode": "SIMPLE", "confidence": %s}' % ("9" * 400), Labels(("SIMPLE",), 1.0)),
    Form("beyond-numbers", '{"mode": "SIMPLE", "confidence": 1e999}', None),
    Form("reason-a-list", '{"mode": "SIMPLE", "confidence": 1, "reason": [1]}', Labels(("SIMPLE",), 1.0)),
    Form("a-long-reason", json.dumps({"mode": "SIMPLE", "reason": "x" * 999}), Labels(("SIMPLE",), 0.0, "x" * 200)),
    Form("denied", 'not {"mode": "SIMPLE", "confidence": 1}', None),
    Form("denied-after", '{"mode": "SIMPLE", "confidence": 1} would be wrong', None),
    Form("one-of-two", '{"mode": "SIMPLE", "confidence": 1} or {"mode": "COMPLEX", "confidence": 1}', None),
    Form("another-after", '{"mode": "SIMPLE", "confidence": 1}\\n{"mode": "COMPLEX", "confidence": 1}', None),
    Form("an-echo", '===== ab =====\\n{"mode": "SIMPLE", "confidence": 1}', None),
    Form("a-question", 'Is it {"mode": "SIMPLE", "confidence": 1}?', None),
    Form("twice", '{"mode": "SIMPLE", "mode": "COMPLEX", "confidence": 1}', None),
    Form("denied-name", '{"mode": "not SIMPLE", "confidence": 1}', None),
    Form("two-names", '{"mode": "SIMPLE or COMPLEX", "confidence": 1}', None),
    Form("unknown", '{"mode": "OTHER", "confidence": 1}', None),
    Form("mode-a-list", '{"mode": ["SIMPLE"], "confidence": 1}', None),
    Form("no-mode", '{"confidence": 1}', None),
    Form("an-array", '["SIMPLE"]', None),
    Form("a-string", '"SIMPLE"', None),
    Form("half", '{"mode": "SIMPLE", "confi', None),
    Form("deep", "{" * 50_000, None),
    Form("deep-array", '{"mode": ' + "[" * 50_000, None),
    Form("deep-and-closed", '{"a":' * 5000 + "1" + "}" * 5000, None),
    Form("empty", "", None),
]  # fmt: skip


@pytest.mark.parametrize("case", OBJECTS, ids=lambda case: case.id)
def test_an_object(case: Form) -> None:
    assert read_object(case.text, NAMES) == case.said


PIECES = st.one_of(
    st.sampled_from(
        [*ROUTES, *NAMES, "<think>", "</think>", "```", "```json\n", "{", "}", '"', "\\", ",", " and ", "\n"]
    ),
    st.sampled_from(['{"mode": "', '", "confidence": ', "0.9", '"}', "1e400", "9" * 330, "\ud800", "\x00", "İ", "ſ"]),
    st.text(max_size=8),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example('{"mode": "SIMPLE", "confidence": ' + "9" * 400 + "}")
@example("\ud800")
def test_nothing_but_a_route_of_the_set_comes_out(text: str) -> None:
    for said in (read_label(text, NAMES), read_labels(text, NAMES, 3), read_object(text, NAMES)):
        if said is None:
            continue
        assert said.routes
        assert set(said.routes) <= set(ROUTES)
        assert len(said.routes) <= 3
        assert said.confidence is None or 0.0 <= said.confidence <= 1.0
        assert isinstance(said.reason, str)
        assert len(said.reason) <= 200


def values() -> st.SearchStrategy[Any]:
    plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(ROUTES) | st.text()
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    )


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(st.sampled_from(["mode", "route", "label", "confidence", "reason", "x"]), values()), st.text())
def test_no_object_makes_a_route_that_is_not_in_the_set(form: dict[str, Any], around: str) -> None:
    for text in (json.dumps(form), around + json.dumps(form) + around, f"```json\n{json.dumps(form)}\n```"):
        said = read_object(text, NAMES)
        assert said is None or (said.routes[0] in ROUTES and len(said.routes) == 1)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.sampled_from(ROUTES[:4]), TEXTS)
def test_what_is_thought_says_nothing(before: str, name: str, inside: str) -> None:
    """A name in a closed thought is as good as not there."""
    inside = inside.replace("<", "").replace(">", "")
    thought = f"<think>{inside} {name} </think>"
    assert without_thought(thought) == ""
    assert read_label(thought, NAMES) is None
