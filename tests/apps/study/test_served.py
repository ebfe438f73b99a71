"""Over HTTP: JSON and forms, streamed and whole; what cannot be done has a status of its own."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apps.study.reader import JPEG, model_settings
from secured_server import RawResponse, call
from serving import RunningServer, serving
from turnout.apps.study.multipart import read_form
from turnout.core.errors import Refused
from turnout.testing import Reply, ScriptedProvider

BOUNDARY = "a-boundary"


@pytest.fixture
def served(tmp_path: Path, provider: ScriptedProvider) -> Iterator[RunningServer]:
    provider.default = Reply("It is one thing. It is another. And so on.")
    with serving(tmp_path, model_settings(provider)) as served:
        yield served


def form(**parts: str | bytes) -> bytes:
    body = b""
    for name, said in parts.items():
        raw = said if isinstance(said, bytes) else said.encode()
        file = b'; filename="page.jpg"\r\ncontent-type: image/jpeg' if isinstance(said, bytes) else b""
        body += b'--%b\r\ncontent-disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (
            BOUNDARY.encode(),
            name.encode(),
            file,
            raw,
        )
    return body + f"--{BOUNDARY}--\r\n".encode()


def send(served: RunningServer, body: object, kind: str = "application/json") -> RawResponse:
    return call(served.url, "POST", "/v1/study/ask", body, headers={"content-type": kind})


def events(got: RawResponse) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in got.body.decode().split("\n") if line.startswith("data: ")]


def test_a_page_as_base64_and_as_a_file_are_one(served: RunningServer, provider: ScriptedProvider) -> None:
    image = b64encode(JPEG).decode()
    asked = {"question": "Explain the definition in the top left", "image": image, "session": "a"}
    first = send(served, asked)
    parts = form(question=asked["question"], image=JPEG, session="b")
    second = send(served, parts, f"multipart/form-data; boundary={BOUNDARY}")
    third = send(served, {**asked, "image": f"data:image/jpeg;base64,{image}", "session": "c"})
    assert [got.status for got in (first, second, third)] == [200] * 3, second.body
    assert first.json["text"] == second.json["text"] == "It is one thing. It is another."
    assert len({request.raw for request in provider.requests}) == 1
    assert image in provider.requests[0].raw.decode()


def test_a_stream_has_an_event_for_each_sentence(served: RunningServer) -> None:
    got = send(served, {"question": "Define osmosis", "stream": True})
    assert got.headers["content-type"] == "text/event-stream"
    found = events(got)
    assert [one["event"] for one in found] == ["decided", "sentence", "sentence", "done"]
    assert "".join(one["text"] for one in found[1:3]) == found[-1]["text"]
    assert found[-1]["capped"]


class Wrong(NamedTuple):
    id: str
    body: object
    status: int
    said: str
    kind: str = "application/json"


PAGE = "Summarize this page"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
WRONG = [
    Wrong("blank", {"question": "  "}, 422, "it is blank"),
    Wrong("no-image", {"question": PAGE, "image": b64encode(b"GIF89a").decode()}, 415, "neither JPEG nor PNG"),
    Wrong("no-base64", {"question": PAGE, "image": "%%%"}, 422, "not base64"),
    Wrong("too-large", {"question": PAGE, "image": "A" * 7_000_000}, 413, "send a smaller one"),
    Wrong("field", {"question": "Define osmosis", "colour": "red"}, 422, "colour"),
    Wrong("nothing-to-look-at", {"look": True, "session": "new"}, 422, "ask one first"),
    Wrong("route", {"question": "Define osmosis", "route": "nowhere"}, 422, "nowhere"),
    Wrong("long", {"question": "x" * 8_001}, 413, "8,000"),
    Wrong("form", b"nothing", 422, "the form cannot be read", FORM),
    Wrong("boundary", b"nothing", 422, "no boundary", "multipart/form-data"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_what_cannot_be_done_is_said(case: Wrong, served: RunningServer) -> None:
    got = send(served, case.body, case.kind)
    assert (got.status, case.said in got.body.decode()) == (case.status, True), got.body[:300]


def test_an_image_nobody_needs_is_not_even_decoded(served: RunningServer) -> None:
    assert send(served, {"question": "Define osmosis", "image": "%%% no base64 at all"}).status == 200


def test_a_model_that_fails_is_a_bad_gateway(served: RunningServer, provider: ScriptedProvider) -> None:
    provider.default = Reply("no", status=500)
    assert send(served, {"question": "Define osmosis"}).status == 502
    assert events(send(served, {"question": "Define osmosis", "stream": True}))[-1]["event"] == "failed"


def test_sessions_memory_and_savings(served: RunningServer) -> None:
    send(served, {"question": "Walk me through this page on osmosis", "image": b64encode(JPEG).decode()})
    ended = call(served.url, "POST", "/v1/study/sessions/default/end")
    assert call(served.url, "POST", "/v1/study/sessions/default/end").json == {"ended": None}
    (session,) = call(served.url, "GET", "/v1/study/memory").json["sessions"]
    assert session == ended.json["ended"]
    assert call(served.url, "DELETE", f"/v1/study/memory/{session['id']}").json == {"forgotten": 1}
    assert call(served.url, "GET", "/v1/study/memory").json == {"sessions": []}
    found = call(served.url, "GET", "/v1/study/savings").json
    assert (found["answers"], found["sent_tokens"]) == (1, 1_700)


@pytest.mark.parametrize("size", range(0, 200, 7))
def test_a_form_that_is_cut_off_is_refused(size: int) -> None:
    whole = form(question="Define osmosis", image=JPEG)
    with pytest.raises(Refused):
        read_form(FORM, whole[:size])


def test_a_form_is_read_as_it_is() -> None:
    assert read_form(FORM, form(question="a\r\n\r\nb", image=JPEG)) == {"question": b"a\r\n\r\nb", "image": JPEG}
    with pytest.raises(Refused, match="two parts"):
        read_form(FORM, form(question="a")[: -len(BOUNDARY) - 6] + form(question="b"))
    with pytest.raises(Refused, match="more than 16 parts"):
        read_form(FORM, form(**{f"p{number}": "x" for number in range(20)}))
