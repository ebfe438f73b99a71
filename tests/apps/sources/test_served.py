"""Over HTTP: one root row for each question and a row for each part, statistics that miss nothing, a cache to clear."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from apps.sources.asked import scripted
from apps.sources.conftest import Serve
from secured_server import RawResponse, call, forget, make_key
from serving import RunningServer
from turnout.apps.app import Call
from turnout.apps.caller import Budget, Caller
from turnout.apps.sources.app import SourcesApp
from turnout.apps.sources.source import Cause, Empty, Failure, Health
from turnout.testing import Stall
from turnout.testing.scripted_source import HANG, ScriptedSource

SPLIT = "check the weather, and Iran and Israel news, and is the door locked"


def search(served: RunningServer, query: str, *, key: str | None = None, **more: Any) -> RawResponse:
    return call(served.url, "POST", "/search", {"query": query, **more}, key=key)


def get(served: RunningServer, path: str, **more: Any) -> Any:
    got = call(served.url, "GET", path, **more)
    assert got.status == 200, got.body
    return got.json


def rows(served: RunningServer) -> list[Any]:
    assert served.store.flush(10.0)
    return list(served.store.records("").searches("sources"))


def test_a_question_and_its_answer(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny."))
    got = search(served, "weather")
    part = {"text": "weather", "role": "whole", "intended_source": "forecast", "source_used": "forecast"}
    assert got.status == 200
    told = got.json
    assert {name: told[name] for name in ("query", "source_used", "result", "success", "cached", "error")} == {
        "query": "weather",
        "source_used": "forecast",
        "result": "Sunny.",
        "success": True,
        "cached": False,
        "error": None,
    }
    assert not told["fallback_occurred"]
    assert told["parts"][0].items() >= part.items()
    assert told["parts"][0]["decision"] == told["decision"]
    assert search(served, "Weather ").json["cached"]


def test_one_root_row_and_a_row_for_each_part(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny.", news=Empty(), web="W.", ha=Failure(Cause.ERROR, "x")))
    told = search(served, SPLIT).json
    assert (told["source_used"], told["success"], told["fallback_occurred"]) == ("fusion", True, True)
    found = rows(served)
    (root,) = [row for row in found if row.parent_id is None]
    parts = [row for row in found if row.parent_id is not None]
    assert root.id == told["decision"]
    assert {row.parent_id for row in parts} == {root.id}
    assert sorted(row.id for row in parts) == sorted(part["decision"] for part in told["parts"])
    assert {(row.ended, row.fallback, row.sources) for row in parts} == {
        ("answered", None, ("forecast",)),
        ("answered", "web instead of news", ("web",)),
        ("failed", None, ()),
    }
    assert (root.ended, root.sources) == ("answered", ("forecast", "web"))


def test_logs_and_statistics(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny.", news=Empty(), web="W.", ha="Locked."))
    for query in ("weather", "weather", SPLIT, "headlines", "lights status"):
        assert search(served, query).status == 200
    assert served.store.flush(10.0)
    stats = get(served, "/logs/stats")
    counted = ("total_queries", "unique_queries", "learned_queries", "fallback_count", "success_rate_pct")
    assert [stats[name] for name in counted] == [5, 4, 1, 2, 100.0]
    # Seven parts, of which one was a repetition: the question in its parts was asked in other words.
    assert stats["cache_hit_rate_pct"] == round(100 / 7, 1)
    assert stats["fallback_rate_pct"] == round(200 / 7, 1)
    assert stats["fallback_by_target"] == {"web": 2}
    assert set(stats["latency_by_source"]) == {"forecast", "news", "web", "ha"}
    assert stats["top_queries"][0] == {"query": "weather", "count": 2}
    assert stats["avg_latency_ms"] > 0
    assert stats["ttfk_ms"] > 0
    logs = get(served, "/logs?limit=3")["logs"]
    assert [one["query"] for one in logs] == ["lights status", "headlines", SPLIT]
    assert [part["query"] for part in logs[2]["parts"]] == [
        "check the weather",
        "Iran and Israel news",
        "is the door locked",
    ]
    assert logs[2]["fallback_occurred"]


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", ""])
def test_a_limit_that_is_none(serve: Serve, limit: str) -> None:
    got = call(serve(scripted(web="W.")).url, "GET", f"/logs?limit={limit}")
    assert (got.status, "1 to 1000" in got.json["error"]["message"]) == (422, True)


class Explicit(NamedTuple):
    id: str
    body: dict[str, Any]
    source_used: str
    fallback: bool = False
    status: int = 200


EXPLICIT = [
    Explicit("a source skips the choice", {"query": "weather", "source": "ha"}, "ha"),
    Explicit("and still falls back", {"query": "weather", "source": "kiwix"}, "web", fallback=True),
    Explicit("and is not split", {"query": SPLIT, "source": "ha"}, "ha"),
    Explicit("fusion of a list", {"query": "x", "source": "fusion", "fusion_sources": ["ha", "forecast"]}, "fusion"),
    Explicit("fusion without one", {"query": "weather", "source": "fusion"}, "web"),
    Explicit("a source beyond the profile's", {"query": "x", "source": "meter"}, "meter"),
    Explicit("no such source", {"query": "x", "source": "hal"}, "", status=422),
    Explicit("no question", {"query": " "}, "", status=422),
    Explicit("five sources", {"query": "x", "source": "fusion", "fusion_sources": list("abcde")}, "", status=422),
    Explicit("unknown field", {"query": "x", "url": "http://example.org"}, "", status=422),
]


def test_explicit_sources(serve: Serve) -> None:
    served = serve(scripted(ha="Locked.", forecast="Sunny.", web="W.", meter="42 kWh"))
    for case in EXPLICIT:
        got = call(served.url, "POST", "/search", case.body)
        assert got.status == case.status, (case.id, got.body)
        if got.status == 200:
            told = (got.json["source_used"], got.json["fallback_occurred"], len(got.json["parts"]))
            assert told == (case.source_used, case.fallback, 1), case.id


def test_sources_and_their_health(serve: Serve) -> None:
    class Raising(ScriptedSource):
        async def check(self) -> Health:
            raise ValueError("broken")

    sources = scripted(forecast="Sunny.") | {"ha": Raising("ha", ["x"])}
    sources["web"] = ScriptedSource("web", ["x"], health=Health("error", "down", 3.0))
    served = serve(sources)
    listed = {one["name"]: one["configured"] for one in get(served, "/sources")["sources"]}
    assert listed == {"kiwix": False, "forecast": True, "news": False, "web": True, "ha": True} | dict.fromkeys(
        ("changes", "uptime", "files"), False
    )
    health = get(served, "/sources/health")
    states = {name: one["status"] for name, one in health["sources"].items()}
    assert health["status"] == "degraded"
    assert states == dict.fromkeys(listed, "not_configured") | {"forecast": "ok", "web": "error", "ha": "error"}
    assert get(served, "/health") == {"status": "ok"}
    alias = call(served.url, "GET", "/health?sources=1")
    assert (alias.status, alias.headers["location"]) == (307, "/sources/health")


def test_the_cache_is_shown_and_cleared(serve: Serve) -> None:
    sources = scripted(forecast="Sunny.")
    served = serve(sources)
    assert not search(served, "weather").json["cached"]
    assert get(served, "/cache")["caches"]["result"] == {"entries": 1, "most": 500}
    assert call(served.url, "POST", "/cache/clear").json == {"cleared": {"result": 1, "routing": 0}}
    assert not search(served, "weather").json["cached"]
    assert call(served.url, "DELETE", "/cache").json == {"cleared": {"result": 1, "routing": 0}}
    assert len(sources["forecast"].calls) == 2


def test_tenants_do_not_see_each_other(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny."))
    scopes = ("ask", "decisions:read")
    one, other = (make_key(served.store, tenant=name, scopes=scopes) for name in ("one", "other"))
    asking = make_key(served.store, tenant="one", scopes=("ask",))
    forget(served)
    assert not search(served, "weather", key=one).json["cached"]
    assert not search(served, "weather", key=other).json["cached"]
    assert call(served.url, "POST", "/cache/clear", key=other).json["cleared"]["result"] == 1
    assert search(served, "weather", key=one).json["cached"]
    assert len(get(served, "/logs", key=one)["logs"]) == 2
    assert len(get(served, "/logs", key=other)["logs"]) == 1
    assert call(served.url, "GET", "/logs", key=asking).status == 403
    assert call(served.url, "GET", "/sources").status == 401


def events_of(got: RawResponse) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: ")]


def test_progress_is_streamed(serve: Serve) -> None:
    served = serve(scripted(forecast=Stall(0.05, "Sunny."), ha="Locked."))
    got = search(served, "check the weather and also are the lights on", stream=True)
    found = events_of(got)
    assert got.headers["content-type"] == "text/event-stream"
    kinds = [one["event"] for one in found]
    assert kinds == ["part_started"] * 2 + ["source_answered", "section", "part_ended"] * 2 + ["done"]
    assert [one["source"] for one in found if one["event"] == "section"] == ["ha", "forecast"]
    assert found[-1]["source_used"] == "fusion"
    assert rows(served)[0].ended == "answered"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_a_client_that_leaves_ends_the_work_and_the_account(serve: Serve) -> None:
    sources = scripted(forecast=HANG)
    served = serve(sources)
    place, source, body = urlsplit(served.url), sources["forecast"], b'{"query":"weather"}'
    head = f"POST /search HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\n"
    with socket.create_connection((str(place.hostname), place.port), 10) as client:
        client.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: bool(source.calls))
    until(lambda: bool(source.cancelled))
    assert source.cancelled == 1
    assert [row.ended for row in rows(served)] == ["cancelled"]


async def stream_of(served: RunningServer, query: str) -> Any:
    """The body of a streamed answer, which nobody has read yet."""
    server = served.server
    (app,) = [one for one in server.apps if isinstance(one, SourcesApp)]
    body = json.dumps({"query": query, "stream": True}).encode()
    search = next(route for route in app.routes if route.path == "/search").handler
    return (await search(Call(server.runtime, Caller("", "", frozenset(), Budget()), body, {}, {}))).body


def test_what_is_known_when_a_client_leaves_is_written_down(serve: Serve) -> None:
    """One part fell back and answered, the other was still waited for."""
    served = serve(scripted(forecast=HANG, news=Empty(), web="W."))
    question = "check the weather and also any headlines"

    async def leave() -> None:
        body = await stream_of(served, question)
        async for piece in body:
            if b"event: part_ended" in piece:
                break
        await body.aclose()

    asyncio.run_coroutine_threadsafe(leave(), served.loop).result(10)
    told = {row.question: (row.ended, row.sources, row.fallback) for row in rows(served)}
    assert told == {
        question: ("cancelled", ("web",), "web instead of news"),
        "check the weather": ("cancelled", (), None),
        "any headlines": ("answered", ("web",), "web instead of news"),
    }


def test_a_stream_that_nobody_reads_is_closed_with_its_account(serve: Serve) -> None:
    """Its client left after the answer was decided on and before a byte of it was sent."""
    served = serve(scripted(forecast=HANG))

    async def leave() -> None:
        await (await stream_of(served, "weather")).aclose()

    asyncio.run_coroutine_threadsafe(leave(), served.loop).result(10)
    assert [row.ended for row in rows(served)] == ["cancelled"]


def test_a_follow_up_is_asked_in_words_of_its_own(serve: Serve) -> None:
    sources = scripted(forecast="Sunny.")
    served = serve(sources)
    before = [{"role": "user", "text": "Will it rain in Paris?"}, {"role": "assistant", "text": "No."}]
    told = search(served, "and tomorrow?", turns=before).json
    assert (told["query"], told["standalone"]) == ("and tomorrow?", "Will it rain in Paris tomorrow?")
    assert sources["forecast"].calls[0].text == "Will it rain in Paris tomorrow?"
    plan = call(served.url, "POST", "/plan", {"query": "and tomorrow?", "turns": before}).json
    assert plan["standalone"] == "Will it rain in Paris tomorrow?"
    assert len(sources["forecast"].calls) == 1


def test_figures_do_not_need_the_text(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny.", news=Empty(), web="W."), text="hash")
    for _ in range(2):
        search(served, "weather")
    search(served, "headlines")
    assert served.store.flush(10.0)
    stats = get(served, "/logs/stats")
    assert (stats["unique_queries"], stats["learned_queries"], stats["fallback_by_target"]) == (2, 1, {"web": 1})
    assert set(stats["latency_by_source"]) == {"forecast", "news", "web"}
    assert "weather" not in json.dumps([stats, get(served, "/logs")])


def test_what_a_chat_client_wraps_around_a_question_is_not_searched_for(serve: Serve) -> None:
    sources = scripted(forecast="Sunny.")
    served = serve(sources)
    content = "<system-reminder>\nToday is Monday.\n</system-reminder>\nWill it rain in Paris?"
    body = {"model": "ask", "messages": [{"role": "user", "content": content}]}
    assert call(served.url, "POST", "/v1/chat/completions", body).status == 200
    assert [one.text for one in sources["forecast"].calls] == ["Will it rain in Paris?"]


def test_a_key_that_may_not_force_names_no_source(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny.", ha="Locked."))
    key = make_key(served.store, scopes=("ask",), may_force=False)
    forget(served)
    assert search(served, "weather", key=key).status == 200
    for named in ({"source": "ha"}, {"source": "fusion", "fusion_sources": ["ha"]}):
        assert search(served, "weather", key=key, **named).status == 403


def test_sources_to_fuse_need_a_fusion(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny.", ha="Locked."))
    for source in ({}, {"source": "auto"}, {"source": "ha"}):
        refused = search(served, "weather", fusion_sources=["ha"], **source)
        assert refused.status == 422
        assert '"source": "fusion"' in refused.json["error"]["message"]
    assert search(served, "weather", source="fusion", fusion_sources=["ha"]).json["source_used"] == "ha"


def test_a_plan_names_no_decision(serve: Serve) -> None:
    plan = call(serve(scripted(forecast="Sunny.")).url, "POST", "/plan", {"query": "weather"}).json
    assert "decision" not in str(plan)


def test_many_options_are_refused(serve: Serve) -> None:
    got = call(serve(scripted(web="W.")).url, "GET", "/logs?" + "&".join(f"a{n}=1" for n in range(40)))
    assert got.status == 400


def test_names_of_the_home_lead_to_it(serve: Serve) -> None:
    sources = {"ha": ScriptedSource("ha", ["On."], words=["Grandma's Lamp", "Wohnzimmer"])}
    served = serve(sources)
    told = search(served, "wohnzimmer?").json
    assert told["source_used"] == "ha"
