"""Decisions in the console: the list by every filter, one in full, corrected and decided again, and as they happen."""

from __future__ import annotations

import asyncio
import contextlib
import html
import http.client
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from clean_environment import clear_environment
from console.conftest import OWN
from console.test_frame import FORM, sign_in
from secured_server import RawResponse, call, forget, make_key
from serving import RunningServer, serving
from turnout.console import decisions, live
from turnout.console.console import Console
from turnout.console.decisions import DecisionPages, read_filter
from turnout.console.live import LiveTail, Viewer, write_event
from turnout.console.session import COOKIE
from turnout.core.errors import Refused, StoreUnavailable
from turnout.store.follow import Follower

NASTY = 'Prove <script>alert(1)</script> "quoted" \'--><img src=x onerror=alert(2)> {{ 7*7 }} & step by step'
PART = {"hx-request": "true", "hx-target": "list"}


def see(served: RunningServer, path: str, **headers: str) -> RawResponse:
    return call(served.url, "GET", path, headers=headers)


def decide(served: RunningServer, text: str, **fields: Any) -> dict[str, Any]:
    got = call(served.url, "POST", "/v1/route", {"text": text, **fields})
    assert got.status == 200, got
    return dict(got.json)


def pages_of(served: RunningServer) -> DecisionPages:
    route = next(route for route in served.server.routes if route.path == "/decisions")
    return route.handler.__self__  # type: ignore[attr-defined,no-any-return]


class Case(NamedTuple):
    id: str
    options: dict[str, str]
    expected: set[str]


CASES = [
    Case("everything", {}, {"proof", "hello", "rain"}),
    Case("profile", {"profile": "sources"}, {"rain"}),
    Case("route", {"route": "kiwix"}, set()),
    Case("a route of several profiles' decisions", {"route": "{rain}"}, {"rain"}),
    Case("layer", {"by": "nobody"}, set()),
    Case("outcome", {"outcome": "?-", "profile": "sources"}, {"rain"}),
    Case("session", {"session": "s1"}, {"hello"}),
    Case("text", {"text": "STEP BY"}, {"proof"}),
    Case("text with markup", {"text": "<script>"}, {"proof"}),
    Case("verdict", {"verdict": "wrong"}, {"hello"}),
    Case("a span", {"span": "hour"}, {"proof", "hello", "rain"}),
    Case("until", {"until": "2001-01-01T00:00"}, set()),
    Case("two", {"profile": "tiers", "session": "s1"}, {"hello"}),
    Case("contradictory", {"profile": "sources", "session": "s1"}, set()),
]


def test_every_filter_is_a_part_of_its_page(served: RunningServer) -> None:
    made = {
        "proof": decide(served, NASTY),
        "hello": decide(served, "hello there", session="s1"),
        "rain": decide(served, "Will it rain tomorrow?", profile="sources"),
    }
    served.store.records().judge(made["hello"]["id"], "wrong", by="me")
    for case in CASES:
        options = {name: value.format(rain=made["rain"]["route"]) for name, value in case.options.items()}
        got = see(served, f"/decisions?{urlencode(options)}", **PART)
        assert got.status == 200, (case.id, got)
        assert b"<html" not in got.body
        found = {name for name, decision in made.items() if f'/decisions/{decision["id"]}"'.encode() in got.body}
        assert found == case.expected, case.id
        whole = see(served, f"/decisions?{urlencode(options)}")
        assert whole.status == 200
        for value in options.values():
            assert html.escape(value).encode() in whole.body, case.id
        assert b"<script>alert" not in whole.body
        assert b"<img src=x" not in whole.body


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("outcome=XX", "two letters"),
        ("verdict=maybe", "right or wrong"),
        ("until=noon", "not a time"),
        ("span=x", "hour"),
    ],
)
def test_what_is_no_filter_is_said(served: RunningServer, option: str, said: str) -> None:
    got = see(served, f"/decisions?{option}", **PART)
    assert (got.status, said in got.body.decode()) == (422, True)
    assert b'role="alert"' in got.body


def test_pages_follow_one_another(served: RunningServer) -> None:
    ids = [decide(served, f"hello {number}")["id"] for number in range(53)]
    first = see(served, "/decisions").body.decode()
    older = html.unescape(first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0])
    second = see(served, older).body.decode()
    assert sum(f"/decisions/{ident}" in first for ident in ids) == 50
    assert [ident for ident in ids if f"/decisions/{ident}" in second] == ids[:3]
    assert "data-live" in first
    assert "data-live" not in second
    assert "Nothing is older" not in second


def test_an_empty_log_says_what_to_do(served: RunningServer) -> None:
    assert b"Nothing has been decided yet" in see(served, "/decisions").body
    assert b"Clear the filters" in see(served, "/decisions?route=nowhere").body


def test_one_in_full_and_corrected(served: RunningServer) -> None:
    decision = decide(served, NASTY, session="<b>s</b>")
    place = f"/decisions/{decision['id']}"
    got = see(served, place)
    shown = got.body.decode()
    assert got.status == 200
    for said in ("student", "needs 0.60", "Not judged yet", "&lt;b&gt;s&lt;/b&gt;", decision["profile_hash"]):
        assert said in shown, said
    assert "<b>s</b>" not in shown
    assert "<script>alert" not in shown
    body = urlencode({"word": "route:SIMPLE", "note": "<i>no</i>"}).encode()
    said = call(served.url, "POST", f"{place}/correct", body, headers={**FORM, **OWN, "hx-request": "true"})
    assert said.status == 200
    assert b"should be SIMPLE" in said.body
    assert b"&lt;i&gt;no&lt;/i&gt;" in said.body
    assert decision["route"] != "SIMPLE"
    (word,) = served.store.records().feedback(decision["id"])
    assert (word.verdict, word.should_be, word.by) == ("wrong", "SIMPLE", "console")
    (label,) = served.store.records().labels()
    assert label.label == "SIMPLE"  # what is trained with
    plain = call(served.url, "POST", f"{place}/correct", b"word=verdict%3Aright", headers={**FORM, **OWN})
    assert (plain.status, plain.headers["location"]) == (303, place)
    wrong = call(served.url, "POST", f"{place}/correct", b"word=route%3ANOWHERE", headers={**FORM, **OWN})
    assert (wrong.status, b"NOWHERE" in wrong.body) == (422, True)
    assert see(served, "/decisions/unknown").status == 404


def test_decided_again_under_another_profile(served: RunningServer) -> None:
    decision = decide(served, NASTY)
    same = see(served, f"/decisions/{decision['id']}/again?profile=tiers", **PART).body.decode()
    assert f"The same: {decision['route']}" in same
    other = see(served, f"/decisions/{decision['id']}/again?profile=sources", **PART).body.decode()
    assert f"{decision['route']} becomes" in other
    assert "What if" in other
    assert see(served, f"/decisions/{decision['id']}/again?profile=none", **PART).status == 404
    assert len(list(served.store.records().decisions())) == 1  # nothing of it is logged


def test_a_key_sees_its_own_and_the_owner_who_is_named(served: RunningServer) -> None:
    key = make_key(served.store, scopes=("decisions:read",), tenant="acme")
    admin = make_key(served.store, scopes=("decisions:read", "admin"), tenant="boss")
    mine = make_key(served.store, scopes=("route",), tenant="acme")
    other = make_key(served.store, scopes=("route",), tenant="other")
    forget(served)
    ids = [call(served.url, "POST", "/v1/route", {"text": "hi"}, key=one).json["id"] for one in (mine, other)]
    cookies = [sign_in(served, one).headers["set-cookie"].partition(";")[0] for one in (key, admin)]
    assert cookies[0].startswith(COOKIE)
    for cookie, named, seen in (
        (cookies[0], "", [True, False]),
        (cookies[0], "?tenant=other", [True, False]),
        (cookies[1], "", [False, False]),
        (cookies[1], "?tenant=acme", [True, False]),
        (cookies[1], "?tenant=other", [False, True]),
    ):
        shown = see(served, f"/decisions{named}", cookie=cookie).body.decode()
        assert [f"/decisions/{ident}?tenant=" in shown for ident in ids] == seen, named
        for path in ("", "/again"):
            got = [see(served, f"/decisions/{ident}{path}{named}", cookie=cookie).status for ident in ids]
            assert [status == (200 if not path else 403) for status in got] == (seen if not path else [True, True])
    # It may look, and neither correct nor decide.
    for method, path in (("POST", f"/decisions/{ids[0]}/correct"), ("GET", f"/decisions/{ids[0]}/again")):
        got = call(served.url, method, path, b"word=right", headers={**FORM, **OWN, "cookie": cookies[0]})
        assert got.status == 403, path


# --- as they happen


@contextlib.contextmanager
def following(
    served: RunningServer, path: str = "/decisions/live", **headers: str
) -> Iterator[Callable[[bytes], bytes]]:
    """A page that follows; what it is called with is waited for."""
    place = urlsplit(served.url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
    got = bytearray()

    def wait(for_what: bytes) -> bytes:
        while for_what not in got:
            piece = answer.read1(65536)
            assert piece, bytes(got)
            got.extend(piece)
        return bytes(got)

    try:
        wait(b"\n\n")
        yield wait
    finally:
        with contextlib.suppress(OSError):
            assert connection.sock is not None
            connection.sock.shutdown(2)
        connection.close()


def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def test_new_ones_arrive_and_only_those_that_are_wanted(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "POLL_S", 0.05)
    before = decide(served, "before")["id"]
    with (
        following(served) as everything,
        following(served, "/decisions/live?profile=sources") as sources,
        following(served, f"/decisions/live?after={'0' * 26}") as again,
    ):
        tail = pages_of(served).tails[""]
        assert eventually(lambda: len(tail.viewers) == 3)
        assert before.encode() in again(before.encode())
        time.sleep(0.2)  # the look has begun
        one = decide(served, NASTY)["id"]
        two = decide(served, "Will it rain tomorrow?", profile="sources")["id"]
        shown = everything(two.encode())
        assert one.encode() in shown
        assert before.encode() not in shown
        assert b"<script>" not in shown
        assert b"event: row" in shown
        assert one.encode() not in sources(two.encode())
    assert eventually(lambda: not tail.viewers), "a viewer that left is still there"
    assert eventually(lambda: tail._task is None)


def test_a_page_that_comes_back_gets_what_it_missed(served: RunningServer) -> None:
    first = decide(served, "one")["id"]
    missed = decide(served, "two")["id"]
    with following(served, **{"last-event-id": first}) as page:
        shown = page(missed.encode())
        assert f"id: {missed}".encode() in shown
        assert f"/decisions/{first}".encode() not in shown


def test_a_server_stops_while_pages_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch, tmp_path)
    began = 0.0
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(serving(tmp_path, "[server]\nlag_s = 60.0\ndrain_s = 20.0\n", pages=Console))
        stack.enter_context(following(served))
        began = time.monotonic()
        served.stop()
        assert eventually(lambda: not any(tail.viewers for tail in pages_of(served).tails.values()), 10)
    assert time.monotonic() - began < 10


def test_who_takes_nothing_is_sent_away(served: RunningServer) -> None:
    decide(served, "hello")
    rows = list(served.store.records().decisions()) * (live.MOST_ROWS + 5)

    async def main() -> None:
        rendered: list[int] = []
        tail = LiveTail(served.store.records, lambda rows: f"{rendered.append(len(rows))}")
        slow, other = Viewer(live.EVERYTHING), Viewer(live.EVERYTHING._replace(profile="claims"))
        tail.viewers |= {slow, other}
        for _ in range(live.QUEUED + 1):
            assert slow in tail.viewers
            tail._send(rows)
        assert tail.viewers == {other}
        assert slow.queue.qsize() == live.QUEUED
        assert other.queue.qsize() == 0  # not what it looks for
        assert set(rendered) == {live.MOST_ROWS}

    asyncio.run(main())


def test_a_database_that_does_not_answer_is_waited_for(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "POLL_S", 0.05)
    failing = [StoreUnavailable("locked"), StoreUnavailable("locked")]

    def once_up(*said: Any, **more: Any) -> Follower:
        if failing:
            raise failing.pop()
        return Follower(*said, **more)

    monkeypatch.setattr(live, "Follower", once_up)
    with following(served) as page:
        assert eventually(lambda: not failing)
        time.sleep(0.2)
        ident = decide(served, "after it came back")["id"]
        page(ident.encode())


def test_no_more_pages_than_there_is_room_for(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MOST_VIEWERS", 1)
    with following(served):
        got = see(served, "/decisions/live")
        assert (got.status, b"too many pages" in got.body) == (503, True)


def test_no_more_pages_than_a_key_may_have(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "KEY_VIEWERS", 1)
    key = make_key(served.store, scopes=("admin", "decisions:read"))
    forget(served)
    cookie = {"cookie": sign_in(served, key).headers["set-cookie"].partition(";")[0]}
    with following(served, **cookie):
        got = call(served.url, "GET", "/decisions/live", headers=cookie)
        assert (got.status, b"with this key" in got.body) == (503, True)


def test_an_event_cannot_be_broken_out_of() -> None:
    assert write_event("row", "a\n\nevent: x\r\ndata: y\rz", "1") == (
        b"id: 1\nevent: row\ndata: a\ndata: \ndata: event: x\ndata: data: y\ndata: z\n\n"
    )


def test_times_are_utc() -> None:
    assert read_filter({"until": "1970-01-01T00:01"}, 0).wanted.span.until_ms == 60_000
    assert read_filter({"since": "1970-01-01T01:00+01:00"}, 0).wanted.span.since_ms == 0
    with pytest.raises(Refused):
        read_filter({"outcome": "%"}, 0)
