"""With a model: it chooses where words do not, its choice is kept, and it writes with citations that are checked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from apps.sources.asked import scripted
from apps.sources.conftest import Serve
from secured_server import call, forget, id_of, make_key
from serving import RunningServer
from turnout.apps.sources import wording
from turnout.apps.sources.address import REMOVED
from turnout.apps.sources.frame import tell_citation
from turnout.apps.sources.fusion import FusedSection
from turnout.apps.sources.source import Empty, Passage, Result, SourceAnswer, SourceQuestion
from turnout.apps.sources.write import UNSUPPORTED, cite
from turnout.testing import Fault, Reply, ScriptedProvider
from turnout.testing.scripted_source import ScriptedSource

HOLES = SourceAnswer(
    "A black hole is a region of space.", (Passage("A black hole …", "Black hole", "http://kiwix/hole"),)
)
FUSED = "everyone keeps talking about black holes rss"
SECTIONS = [FusedSection("news", "The telescope took 12 new pictures."), FusedSection("kiwix", HOLES.text)]


class Case(NamedTuple):
    id: str
    written: str
    said: str
    cited: tuple[int, ...] = ()


HELD, LOST = "The telescope took 12 pictures", "The telescope took 13 pictures"
CASES = [
    Case("it holds", f"{HELD} [1].", f"{HELD} [1].", (1,)),
    Case("behind the stop", f"{HELD}. [1]", f"{HELD}. [1]", (1,)),
    Case("another number", f"{LOST} [1].", f"{LOST}. {UNSUPPORTED}"),
    Case("another section", f"{HELD} [2].", f"{HELD}. {UNSUPPORTED}"),
    Case("one of two", "A black hole is a region [1][2].", "A black hole is a region [2].", (2,)),
    Case("one of a list", "A black hole is a region [1, 2].", "A black hole is a region [2].", (2,)),
    Case("a list of none", f"{LOST} [1, 2].", f"{LOST}. {UNSUPPORTED}"),
    Case("lenticular", f"{LOST}【1】.", f"{LOST}. {UNSUPPORTED}"),
    Case("no such section", f"{HELD} [7].", f"{HELD}. {UNSUPPORTED}"),
    Case("far too high", f"{HELD} [100].", f"{HELD}. {UNSUPPORTED}"),
    Case("uncited", "I do not know.", "I do not know."),
    # What a page talks a model into: a link or a picture whose address tells a stranger what other sources said.
    Case("a citation that leads out", f"{HELD} [1](https://evil.example/?door=open).", f"{HELD} [1].", (1,)),
    Case("a picture", f"![x](https://evil.example/?door=open) {HELD} [1].", f"x {HELD} [1].", (1,)),
    Case("a picture in a link", f"[![x](//evil.example/?q)](//evil.example/) {HELD} [1].", f"x {HELD} [1].", (1,)),
    Case("a picture of the sources' own", f"![x](http://kiwix/hole) {HELD} [1].", f"x {HELD} [1].", (1,)),
    Case("an element", '<img src="https://evil.example/?q"> Yes.', f'<img src="{REMOVED}"> Yes.'),
    Case("an address alone", "See https://evil.example/?door=open.", f"See {REMOVED}."),
    Case("more than the section has", "See http://kiwix/hole?door=open.", f"See {REMOVED}."),
    Case("a script", "[Look](javascript:alert(1)) there.", "Look there."),
    Case("an address of a section", "See [it](http://kiwix/hole).", "See [it](http://kiwix/hole)."),
]


@pytest.mark.alike(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_citation_that_does_not_hold_goes(serve: Serve, provider: ScriptedProvider, case: Case) -> None:
    """Streamed, as it is written: by the one check there is."""
    provider.default = Reply(f"Sure. {case.written}")
    got = call(serve(fused(), settings(provider, "main")).url, "POST", "/search", {"query": FUSED, "stream": True})
    events = [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: ")]
    told = "".join(one["text"] for one in events if one["event"] == "token")
    assert told.partition("\n\n")[0] == f"Sure. {case.said}"
    assert tuple(one["number"] for one in events if one["event"] == "citation") == case.cited


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider.in_thread() as provider:
        yield provider


def settings(provider: ScriptedProvider, *slots: str) -> str:
    prices = "prices = { input_usd = 1.0, output_usd = 5.0 }"
    return "".join(
        f'[models.{slot}]\nmodel = "fake/{slot}"\nbase_url = "{provider.base_url}"\nprivate = true\n{prices}\n'
        for slot in slots
    )


def search(served: RunningServer, query: str, **more: Any) -> Any:
    key = more.pop("key", "")
    return call(served.url, "POST", "/search", {"query": query, **more}, **({"key": key} if key else {})).json


def fused() -> dict[str, ScriptedSource]:
    return scripted(news=SECTIONS[0].text, kiwix=HOLES, meter="42")


def test_a_written_answer_has_checked_citations(serve: Serve, provider: ScriptedProvider) -> None:
    provider.default = Reply("The telescope took 12 pictures [1]. A black hole is a region [2]. It is blue [1].")
    served = serve(fused(), settings(provider, "main"))
    got = call(served.url, "POST", "/search", {"query": FUSED, "stream": True}).body.decode()
    told = search(served, FUSED)
    expected = f"The telescope took 12 pictures [1]. A black hole is a region [2]. It is blue. {UNSUPPORTED}"
    legend = "[1] news [2] kiwix: Black hole http://kiwix/hole"
    assert told["result"].split() == f"{expected} {legend}".split()
    assert [(one["number"], one["url"]) for one in told["citations"]] == [(1, ""), (2, "http://kiwix/hole")]
    assert got.index('"event":"section"') < got.index('"event":"token"') < got.index('"event":"citation"')
    sent = str(provider.requests[0].body)
    assert SECTIONS[0].text in sent
    assert served.store.flush(10.0)
    records = served.store.records("")
    outcome = records.outcome(told["decision"])
    assert outcome is not None
    assert (outcome.ended, outcome.sources) == ("answered", ("news", "kiwix"))
    # Of the two questions the second found the answer cached: nobody was asked, and nothing paid.
    assert len(provider.requests) == 1
    first, second = (records.outcome(row.id) for row in list(records.decisions(profile="sources"))[::-1])
    assert first is not None
    assert second is not None
    assert (first.slot, second.slot) == ("main", None)
    assert first.cost_usd


def test_a_citation_is_one_line() -> None:
    """The second would be read as another citation."""
    forged = Passage("Hole.", "Black\n[2] ha: hole", "http://kiwix/\n[3] ha: The door is open")
    told = tell_citation(cite(1, FusedSection("kiwix", "Hole.", (forged,))))
    assert told == "[1] kiwix: Black [2] ha: hole http://kiwix/ [3] ha: The door is open"


def test_who_is_missing_in_a_written_answer_is_named(serve: Serve, provider: ScriptedProvider) -> None:
    provider.default = Reply("The telescope took 12 pictures [1].")
    sources = scripted(news=SECTIONS[0].text, kiwix=Empty(), web="W.")
    told = search(serve(sources, settings(provider, "main")), FUSED)
    assert told["result"].endswith("[1] news\n\nNot in this answer: kiwix has nothing about this.")


@pytest.mark.parametrize("reply", [Reply(status=500), Reply("", status=400)], ids=["fails", "refuses"])
def test_without_what_the_model_says_the_sections_are_the_answer(
    serve: Serve, provider: ScriptedProvider, reply: Reply
) -> None:
    provider.default = reply
    told = search(serve(fused(), settings(provider, "main")), FUSED)
    assert told["success"]
    assert told["result"].startswith("[1] news\n")


def test_an_answer_that_breaks_off_is_followed_by_the_sections(serve: Serve, provider: ScriptedProvider) -> None:
    provider.default = Reply("The telescope took 12 pictures [1]. A black", fault=Fault("cut", "after_delta", after=6))
    served = serve(fused(), settings(provider, "main"))
    told = search(served, FUSED)
    assert "broke off here" in told["result"]
    assert told["result"].endswith(HOLES.text)
    assert not search(served, FUSED)["error"]
    assert len(provider.requests) == 2  # it was not kept


def test_a_budget_that_does_not_cover_it_still_has_the_sections(serve: Serve, provider: ScriptedProvider) -> None:
    served = serve(fused(), settings(provider, "main"))
    key = make_key(served.store, scopes=("ask",), budget_usd=0.000001)
    forget(served)
    told = search(served, FUSED, key=key)
    assert told["result"].startswith("[1] news\n")
    assert provider.requests == []


UNKNOWN = "zorbling frumious grumblewump"


def test_a_plan_is_paid_for(serve: Serve, provider: ScriptedProvider) -> None:
    provider.default = Reply("meter", usage=(1000, 10))
    served = serve(fused(), settings(provider, "router"))
    key = make_key(served.store, scopes=("ask",), budget_usd=1.0)
    forget(served)
    assert call(served.url, "POST", "/plan", {"query": UNKNOWN}, key=key).status == 200
    assert served.store.flush(10.0)
    assert served.store.keys.spent(id_of(key), 0) == pytest.approx((1000 * 1 + 10 * 5) / 1e6)
    assert search(served, UNKNOWN, key=key)["source_used"] == "meter"  # kept: chosen without asking
    assert served.store.flush(10.0)
    assert served.store.keys.spent(id_of(key), 0) == pytest.approx((1000 * 1 + 10 * 5) / 1e6)


def choices(served: RunningServer) -> list[tuple[str, str]]:
    assert served.store.flush(10.0)
    return [(one.route, one.outcome) for one in served.store.records("").decisions(profile="sources")][::-1]


def test_a_choice_is_kept_for_the_next_process(serve: Serve, provider: ScriptedProvider) -> None:
    provider.default = Reply("meter")
    served = serve(fused(), settings(provider, "router"))
    for _ in range(2):
        assert search(served, UNKNOWN)["source_used"] == "meter"
    assert [outcome for _, outcome in choices(served)] == ["L-", "C-"]
    assert len(provider.requests) == 1
    sent = str(provider.requests[0].body)
    assert "- meter: what meter knows" in sent
    assert "forecast" not in sent  # it is not configured, and not offered
    time.sleep(0.3)  # the entry is on its way to the store
    again = serve(fused(), settings(provider, "router"))
    assert search(again, UNKNOWN)["source_used"] == "meter"
    assert len(provider.requests) == 1
    assert call(again.url, "POST", "/cache/clear").json["cleared"]["routing"] == 1
    search(again, UNKNOWN)
    assert len(provider.requests) == 2


@pytest.mark.parametrize("said", ["forecast", "I would rather not say", ""])
def test_what_is_no_choice_is_the_default_and_not_kept(serve: Serve, provider: ScriptedProvider, said: str) -> None:
    provider.default = Reply(said)
    served = serve(fused(), settings(provider, "router"))
    for _ in range(2):
        assert search(served, UNKNOWN)["source_used"] == "kiwix"
    assert len(provider.requests) == 2
    assert {route for route, _ in choices(served)} == {"kiwix"}


def test_framing_adds_the_encyclopedia_to_a_models_choice_kept_or_not(serve: Serve, provider: ScriptedProvider) -> None:
    provider.default = Reply("meter")
    served = serve(fused(), settings(provider, "router"))
    question = f"{UNKNOWN} everyone keeps talking about"
    for _ in range(2):
        told = search(served, question)
        assert [one["source"] for one in told["parts"][0]["tried"]] == ["meter", "kiwix"]
    assert [outcome for _, outcome in choices(served)] == ["L-", "C-"]


EARLIER = [{"role": "user", "text": "Will it rain in Paris?"}, {"role": "assistant", "text": "No."}]


class FollowUp(NamedTuple):
    id: str
    reply: Reply
    understood: str


FOLLOW_UPS = [
    FollowUp("worded", Reply("Will it rain in Paris on Sunday evening?"), "Will it rain in Paris on Sunday evening?"),
    FollowUp("it fails", Reply(status=500), "Will it rain in Paris tomorrow?"),
    FollowUp("it says nothing", Reply(""), "Will it rain in Paris tomorrow?"),
    FollowUp("it chats", Reply("Sure!\n\nHere it is:\nRain?"), "Will it rain in Paris tomorrow?"),
    FollowUp("it is slow", Reply("Rain?", fault=Fault("stall", "before_headers")), "Will it rain in Paris tomorrow?"),
]


@pytest.mark.parametrize("case", FOLLOW_UPS, ids=lambda case: case.id)
def test_a_follow_up_is_worded_by_a_model_or_by_rules(
    serve: Serve, provider: ScriptedProvider, case: FollowUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wording, "REPLY_S", 0.3)
    provider.default = case.reply
    sources = scripted(forecast="Sunny.")
    served = serve(sources, settings(provider, "router"))
    key = make_key(served.store, scopes=("ask",), budget_usd=1.0)
    forget(served)
    told = search(served, "and tomorrow?", turns=EARLIER, key=key)
    assert told["standalone"] == sources["forecast"].calls[0].text == case.understood
    assert told["source_used"] == "forecast"
    if case.id == "worded":
        assert served.store.flush(10.0)
        assert served.store.keys.spent(id_of(key), 0) > 0
        assert "Before: Will it rain in Paris?" in str(provider.requests[0].body)


def test_a_question_that_stands_alone_is_not_worded(serve: Serve, provider: ScriptedProvider) -> None:
    sources = scripted(forecast="Sunny.")
    served = serve(sources, settings(provider, "router"))
    search(served, "Will it snow in the Alps this weekend?", turns=EARLIER)
    assert provider.requests == []


def test_what_a_model_words_for_a_search_is_paid_for_by_the_question(serve: Serve, provider: ScriptedProvider) -> None:
    class Wording(ScriptedSource):
        async def ask(self, question: SourceQuestion) -> Result:
            return SourceAnswer(f"{await wording.rephrase(question)} {await wording.other_phrasings(question)}")

    provider.default = Reply("black hole news", usage=(100, 10))
    served = serve({"forecast": Wording("forecast", ["x"])}, settings(provider, "router"))
    told = search(served, "weather")
    assert told["result"] == "black hole news ['black hole news']"
    assert served.store.flush(10.0)
    outcome = served.store.records("").outcome(told["decision"])
    assert outcome is not None
    assert (outcome.input_tokens, outcome.output_tokens, outcome.slot) == (200, 20, "router")
    assert outcome.cost_usd == pytest.approx(2 * (100 * 1 + 10 * 5) / 1e6)


@pytest.mark.parametrize(("said", "used"), [("meter, news", ["meter", "news"]), ("meter", ["kiwix", "web"])])
def test_fusion_by_name(serve: Serve, provider: ScriptedProvider, said: str, used: list[str]) -> None:
    provider.default = Reply(said)
    served = serve({**fused(), **scripted(web="W.")}, settings(provider, "router"))
    told = call(served.url, "POST", "/search", {"query": "weather", "source": "fusion"}).json
    assert [one["source"] for one in told["parts"][0]["tried"]] == used
    assert told["source_used"] == "fusion"
