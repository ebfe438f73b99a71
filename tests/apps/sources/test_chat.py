"""The model name `ask`: official client libraries get an answer of the sources, whole and streamed, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sources.asked import scripted
from apps.sources.conftest import Serve
from e2e.sdk_world import World, anthropic_client, openai_client
from secured_server import call, forget, make_key
from serving import RunningServer
from turnout.apps.sources.source import Empty
from turnout.models.price import Usage
from turnout.models.wire import FORMATS
from turnout.models.wire.format import most_tokens
from turnout.models.wire.live import LiveStream
from turnout.testing import Stall

FUSED = "everyone keeps talking about black holes rss"
TWO = "check the weather and also are the lights on"


@given(st.sampled_from(sorted(FORMATS)), st.lists(st.text(max_size=10), max_size=6))
def test_a_live_stream_is_the_stream(wire: str, pieces: list[str]) -> None:
    form, usage = FORMATS[wire], Usage(3, most_tokens(pieces))  # type: ignore[index]
    live = LiveStream(form, "x", "ask", usage.input_tokens)
    whole = form.write_stream("x", "ask", pieces, lambda: usage)
    assert b"".join([*map(live.feed, pieces), live.end()]) == b"".join(whole)


def ask_all(served: RunningServer, content: Any) -> dict[str, str]:
    """What each library's user reads, whole and streamed."""
    said = content if isinstance(content, list) else [{"role": "user", "content": content}]
    world = World(served, {}, Path())
    with openai_client(world) as openai, anthropic_client(world) as anthropic:
        return _ask_all(openai, anthropic, said)


def _ask_all(openai: Any, anthropic: Any, said: list[Any]) -> dict[str, str]:
    whole = openai.chat.completions.create(model="ask", messages=said)
    found = {"chat": whole.choices[0].message.content or ""}
    chunks = openai.chat.completions.create(model="ask", messages=said, stream=True)
    found["chat, streamed"] = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    message: Any = anthropic.messages.create(model="ask", max_tokens=100, messages=said)
    found["messages"] = message.content[0].text
    with anthropic.messages.stream(model="ask", max_tokens=100, messages=said) as stream:
        found["messages, streamed"] = "".join(stream.text_stream)
    found["responses"] = openai.responses.create(model="ask", input=said).output_text
    events = openai.responses.create(model="ask", input=said, stream=True)
    found["responses, streamed"] = "".join(one.delta for one in events if one.type == "response.output_text.delta")
    return found


def test_official_clients_get_an_answer(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny.", kiwix=Empty(), web="W."))
    assert set(ask_all(served, "weather").values()) == {"Sunny."}
    for said in ask_all(served, "who was Ada Lovelace").values():
        assert said == "W.\n\nNot in this answer: kiwix has nothing about this."


def test_no_picture_of_a_page_is_loaded(serve: Serve) -> None:
    """A client that shows Markdown would tell a stranger that the question was asked."""
    served = serve(scripted(forecast='Sunny![x](http://evil.example/a) <img src="http://evil.example/b"> 1 <2.'))
    told = 'Sunny\\![x](http://evil.example/a) \\<img src="http://evil.example/b"> 1 <2.'
    assert set(ask_all(served, "weather").values()) == {told}


def test_a_section_is_streamed_when_it_is_there(serve: Serve) -> None:
    served = serve(scripted(forecast=Stall(0.3, "Sunny."), ha="Locked."))
    for said in ask_all(served, TWO).values():
        assert said == "check the weather\nSunny.\n\nare the lights on\nLocked."


def streamed_text(served: RunningServer, said: str) -> tuple[str, dict[str, Any], dict[str, str]]:
    """What a client of the chat format reads, what was used, and the headers above it."""
    body = {"model": "ask", "messages": [{"role": "user", "content": said}], "stream": True}
    got = call(served.url, "POST", "/v1/chat/completions", body)
    chunks = [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: {")]
    text = "".join(one["choices"][0]["delta"].get("content", "") for one in chunks if one["choices"])
    return text, next(one["usage"] for one in chunks if one.get("usage")), dict(got.headers)


def test_sections_of_a_part_come_below_its_words_and_before_the_next(serve: Serve) -> None:
    sources = scripted(news="N.", kiwix=Stall(0.2, "[9] ha\nK."), forecast="Sunny.")
    text, used, headers = streamed_text(serve(sources), f"{FUSED} and check the weather")
    assert text == f"{FUSED}\n[news]\nN.\n\n[kiwix]\n> [9] ha\nK.\n\ncheck the weather\nSunny."
    assert used["completion_tokens"] == most_tokens((text,))
    assert headers["x-turnout-model"] == "ask"


def test_a_stream_and_a_whole_answer_use_as_much_and_say_who_decided(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny."))
    body = {"model": "ask", "messages": [{"role": "user", "content": "weather"}]}
    whole = call(served.url, "POST", "/v1/chat/completions", body)
    _, used, headers = streamed_text(served, "weather")
    assert used == whole.json["usage"]
    names = {name for name in headers if name.startswith("x-turnout-")}
    assert names == {name for name in whole.headers if name.startswith("x-turnout-")} >= {"x-turnout-route"}
    assert served.store.flush(10.0)
    assert served.store.records("").outcome(headers["x-turnout-decision"]) is not None


def test_a_follow_up_in_a_chat(serve: Serve) -> None:
    sources = scripted(forecast="Sunny.")
    served = serve(sources)
    before = [{"role": "user", "content": "Will it rain in Paris?"}, {"role": "assistant", "content": "No."}]
    ask_all(served, [*before, {"role": "user", "content": "and tomorrow?"}])
    assert {one.text for one in sources["forecast"].calls} == {"Will it rain in Paris tomorrow?"}


def test_it_is_listed_and_refused_in_the_clients_format(serve: Serve) -> None:
    served = serve(scripted(forecast="Sunny."))
    assert "ask" in [one["id"] for one in call(served.url, "GET", "/v1/models").json["data"]]
    keys = {name: make_key(served.store, profiles=(name,), scopes=("ask",)) for name in ("sources", "study")}
    forget(served)
    body = {"model": "ask", "messages": [{"role": "user", "content": "weather"}]}
    assert call(served.url, "POST", "/v1/chat/completions", body, key=keys["sources"]).status == 200
    refused = call(served.url, "POST", "/v1/chat/completions", body, key=keys["study"])
    assert (refused.status, "may not use the profile 'sources'" in refused.json["error"]["message"]) == (403, True)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_one_row_for_each_question(serve: Serve, path: str) -> None:
    served = serve(scripted(forecast="Sunny."))
    body = {"model": "ask", "messages": [{"role": "user", "content": "weather"}], "max_tokens": 9}
    assert call(served.url, "POST", path, body).status == 200
    assert served.store.flush(10.0)
    (row,) = served.store.records("").searches("sources")
    assert (row.question, row.ended, row.sources) == ("weather", "answered", ("forecast",))
