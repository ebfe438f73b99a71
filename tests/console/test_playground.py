"""The playground: a question decided before one's eyes, numbers moved, and what that would change of the log."""

from __future__ import annotations

import html
import json
import re
import shlex
import time
import tomllib
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from console.conftest import OWN
from console.test_decisions_page import NASTY, decide, see
from console.test_frame import FORM, sign_in
from secured_server import RawResponse, call, forget, make_key
from serving import RunningServer

PART = {**FORM, **OWN, "hx-request": "true"}


def ask(served: RunningServer, path: str = "/playground", **fields: str) -> RawResponse:
    return call(served.url, "POST", path, urlencode(fields).encode(), headers=PART)


def shown(got: RawResponse) -> str:
    assert got.status == 200, got
    return html.unescape(got.body.decode())


def test_a_question_is_shown_layer_by_layer_and_not_logged(served: RunningServer) -> None:
    text = shown(ask(served, text="Prove the theorem formally, step by step", profile="tiers"))
    for said in ("REASONING", "student", "accepted", "needs 0.60", "not asked", "signals", "What if", "model"):
        assert said in text, said
    assert list(served.store.records().decisions()) == []
    assert b"not logged" in see(served, "/playground").body


def test_what_matched_is_marked_and_everything_escaped(served: RunningServer) -> None:
    got = ask(served, text=f"Will it rain tomorrow? {NASTY}", profile="tiers", other="sources")
    assert b"<script>alert" not in got.body
    assert b"<img src=x" not in got.body
    assert b"{{ 7*7 }}" in got.body
    marked = ask(served, text="is the garage door open", profile="sources", moved="sources", **{
        "student.accept.confidence": "1",
    })  # fmt: skip
    assert re.search(rb"<mark title=\"keyword\.ha\">", marked.body), marked.body


def test_what_an_application_adds_is_said(served: RunningServer) -> None:
    asked = {"text": "Did the flood happen?"}
    assert "cards of the library are not used here" in shown(ask(served, profile="claims", **asked))
    assert "not looked at" not in shown(ask(served, profile="tiers", **asked))


def test_two_profiles_side_by_side(served: RunningServer) -> None:
    text = shown(ask(served, text="Will it rain tomorrow?", profile="tiers", other="sources"))
    assert "tiers <span" in text
    assert "sources <span" in text
    assert "forecast" in text


def test_a_number_that_is_moved_changes_the_decision(served: RunningServer) -> None:
    fields = {"text": "Prove the theorem formally, step by step", "profile": "tiers", "moved": "tiers"}
    moved = {"student.accept.confidence": "1", "fallback.held": "1"}
    text = shown(ask(served, **fields, **moved))
    assert "REASONING</b> becomes <b>" in text
    assert "2 of its numbers moved" in text
    # What is copied is what was decided with.
    toml = text.split('id="as-toml"')[1].split(">", 1)[1].split("</pre>")[0]
    assert tomllib.loads(toml) == {
        "extends": "tiers",
        "name": "tiers",
        "fallback": {"held": 1.0},
        "layers": [{"id": "student", "accept": {"confidence": 1.0}}],
    }
    # Of another profile's sliders nothing is taken over.
    assert "numbers moved" not in shown(ask(served, **{**fields, "moved": "study"}, **moved))


class Wrong(NamedTuple):
    id: str
    fields: dict[str, str]
    status: int
    said: str


WRONG = [
    Wrong("no question", {"text": " "}, 422, "there is no question"),
    Wrong("too long", {"text": "x" * 20_001}, 422, "20,001 characters: at most 20,000"),
    Wrong("no such profile", {"text": "a", "profile": "teirs"}, 404, "did you mean"),
    Wrong("no such other profile", {"text": "a", "other": "<b>"}, 404, "no profile"),
    Wrong("no number", {"text": "a", "moved": "tiers", "fallback.held": "much"}, 422, "is not a number"),
    Wrong("nothing finite", {"text": "a", "moved": "tiers", "fallback.held": "nan"}, 422, "is not between 0 and 1"),
    Wrong("out of range", {"text": "a", "moved": "tiers", "fallback.held": "2"}, 422, "is not between 0 and 1"),
    Wrong(
        "weights beyond one",
        {"text": "a", "moved": "tiers", "signals.weight.codePresence": "0.7", "signals.weight.tokenCount": "0.7"},
        422,
        "must leave room within 1",
    ),
    Wrong("edges that fall", {"text": "a", "moved": "tiers", "signals.edge.0": "0.3"}, 422, "must rise"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_what_is_wrong_is_said_in_a_sentence(served: RunningServer, case: Wrong) -> None:
    got = ask(served, **{"profile": "tiers", **case.fields})
    assert got.status == case.status
    assert case.said in html.unescape(got.body.decode())
    assert b'role="alert"' in got.body
    assert b"<b>" not in got.body


def test_what_is_copied_works(served: RunningServer) -> None:
    question = 'It\'s a "test" $HOME `x` \\ & é'
    text = shown(ask(served, text=question, profile="tiers"))
    curl = shlex.split(text.split('id="as-curl" tabindex="0">')[1].split("</pre>")[0])
    assert curl[:2] == ["curl", "-s"]
    assert curl[2] == f"{served.url}/v1/route"
    assert json.loads(curl[4]) == {"text": question, "profile": "tiers"}
    python = text.split('id="as-python" tabindex="0">')[1].split("</pre>")[0]
    names: dict[str, Any] = {}
    exec(python.replace("print(", "said = ("), names)  # noqa: S102 - ours, and what the page promises
    assert json.loads(names["said"])["profile"] == "tiers"


def test_what_it_would_change_of_the_log(served: RunningServer) -> None:
    ids = [
        decide(served, f"Prove theorem {number} formally, step by step", profile="tiers")["id"] for number in range(5)
    ]
    decide(served, "Will it rain tomorrow?", profile="sources")
    moved = {"profile": "tiers", "moved": "tiers", "student.accept.confidence": "1", "fallback.held": "1"}
    text = shown(ask(served, "/playground/effect", **moved))
    until = time.monotonic() + 10
    while "would change (" not in text:
        assert time.monotonic() < until, text
        place = text.split('hx-get="')[1].split('"')[0]
        text = shown(see(served, place, **{"hx-request": "true"}))
    assert "Of the last 5 decisions of this profile, <b>5</b> would change (100.0 %)" in text
    assert all(f"/decisions/{ident}" in text for ident in ids)
    assert see(served, "/playground/effect/nothing").status == 404


def test_a_question_can_be_linked_to(served: RunningServer) -> None:
    assert "REASONING" in shown(see(served, "/playground?text=Prove+the+theorem+formally&profile=tiers"))
    assert see(served, "/playground?profile=nowhere").status == 404


def test_what_another_asked_for_is_not_shown(served: RunningServer) -> None:
    keys = [
        make_key(served.store, scopes=("route", "decisions:read"), profiles=profiles) for profiles in (None, ("study",))
    ]
    forget(served)
    mine, other = (sign_in(served, key).headers["set-cookie"].partition(";")[0] for key in keys)
    headers = {**PART, "cookie": mine}
    got = call(served.url, "POST", "/playground/effect", b"profile=tiers", headers=headers)
    place = html.unescape(got.body.decode()).split('hx-get="')[1].split('"')[0]
    assert see(served, place, cookie=other).status == 404
    assert see(served, place, cookie=mine).status == 200
    # A key that may use one profile is offered that one.
    assert (
        call(served.url, "POST", "/playground", b"text=a&profile=tiers", headers={**PART, "cookie": other}).status
        == 403
    )
