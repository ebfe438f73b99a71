"""Where a provider is stays between the gateway and who runs it: no client reads a host, an address or a port."""

from __future__ import annotations

from pathlib import Path

from secured_server import call, chat, forget, make_key, settings
from serving import serving
from turnout.testing import ScriptedProvider

UNSURE = "Where is my parcel?"


def test_neither_an_answer_nor_a_decision_nor_its_outcome_names_a_place(tmp_path: Path) -> None:
    with ScriptedProvider.in_thread() as provider, serving(tmp_path, settings(provider, classifier=True)) as served:
        key = make_key(served.store, tenant="a", scopes=("ask", "route", "decisions:read"))
        forget(served)
        provider.refuse()
        decided = call(served.url, "POST", "/v1/route", {"text": UNSURE}, key=key)
        assert decided.status == 200
        assert b"llm.error" in decided.body, "the classifier was asked, and could not be"
        assert b"fake/classifier could not be reached" in decided.body
        failed = call(served.url, "POST", "/v1/chat/completions", chat(UNSURE), key=key)
        assert failed.status == 502
        listed = call(served.url, "GET", "/v1/models", key=key)
        found = [decided, failed, listed]
        for ident in (decided.json["id"], failed.headers["x-turnout-decision"]):
            assert served.store.flush(10.0)
            found.append(call(served.url, "GET", f"/v1/decisions/{ident}", key=key))
            assert found[-1].status == 200
        assert found[-1].json["happened"]["extra"]["attempts"][0]["ended"] == "unreachable"
        for got in found:
            assert b"127.0.0.1" not in got.body
            assert f":{provider.port}".encode() not in got.body
        outcome = served.store.records("a").outcome(failed.headers["x-turnout-decision"])
        assert outcome is not None
        assert "127.0.0.1" in outcome.extra["attempts"][0]["detail"], "who runs it can find out"
