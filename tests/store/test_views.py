"""The views a person reads with a database shell: the same columns in both databases, and what they say is so."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from old_rows import backdate
from stored_decisions import ask, columns, select, taught, with_model
from turnout import Verdict
from turnout.store import Outcome, Store, open_store

# "Table router_decisions" of the claims profile's description, in its order.
SPECIFIED = [
    *("id", "question_text", "reformulated_question", "conversation_context", "mode_selected"),
    *("claim_cards_referenced", "search_candidates", "reasoning", "response_time", "created_at"),
]
VIEWS = {
    # One log serves all tenants and all profiles: it says whose a row is, and which profile's.
    "router_decisions": ["id", "tenant", "profile", *SPECIFIED[1:]],
    "traffic_by_layer": ["day", "tenant", "profile", "layer", "who", "decisions", "percent", "mean_us"],
    "violations": [
        *("noticed_at", "tenant", "profile", "rule", "fact", "found", "explanation", "phase", "decision_id"),
        *("route", "decided_by", "question"),
    ],
    "turns": ["id", "tenant", "session", "role", "text", "kept", "decision_id", "created_ms"],
    "classify_history": [
        *("tenant", "session", "decision_id", "route", "topic", "question", "teacher", "human", "created_at"),
    ],
}


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"


@pytest.mark.usefixtures("store")
def test_columns(store_url: str) -> None:
    assert {view: columns(store_url, view) for view in VIEWS} == VIEWS


@pytest.mark.usefixtures("store")
def test_there_are_no_other_views(store_url: str) -> None:
    found = (
        "select name from sqlite_master where type = 'view'"
        if store_url.startswith("sqlite")
        else "select viewname from pg_views where schemaname = 'public'"
    )
    assert {name for (name,) in select(store_url, found)} == set(VIEWS)


def view(url: str, name: str, order: str = "1") -> list[dict[str, Any]]:
    return [dict(zip(VIEWS[name], row, strict=True)) for row in select(url, f"select * from {name} order by {order}")]  # noqa: S608


class TestRouterDecisions:
    def test_every_question_is_there_and_says_why(self, store: Store, store_url: str) -> None:
        """Reasoning is non-empty on every row, novel and fallback included."""
        asked = ("Did Matthew copy Mark?", "Couldn't it be otherwise?", "How does this relate to that?", "", "?", "\0")
        made = [ask(text, "claims", session="s") for text in asked]
        for decision in made:
            store.record(decision)
        store.flush()
        rows = view(store_url, "router_decisions")
        assert [row["id"] for row in rows] == [decision.id for decision in made]
        assert [row["mode_selected"] for row in rows] == [decision.route for decision in made]
        assert all(row["reasoning"] for row in rows)
        assert rows[0]["reasoning"] == "; ".join(reason.text for reason in made[0].reasons)
        assert rows[0]["question_text"] == "Did Matthew copy Mark?"
        assert {row["profile"] for row in rows} == {"claims"}

    @pytest.mark.parametrize("level", ["off", "hash"])
    def test_it_says_why_in_codes_where_no_text_is_kept(self, store_url: str, level: str) -> None:
        with open_store(store_url, text=level) as store:
            store.record(decision := ask("Did Matthew copy Mark?", "claims"))
        (row,) = view(store_url, "router_decisions")
        assert row["reasoning"] == "; ".join(reason.code for reason in decision.reasons)
        assert row["question_text"] is None

    def test_what_the_application_adds(self, store: Store, store_url: str) -> None:
        store.record(decision := ask("Did Matthew copy Mark?", "claims"))
        store.record(other := ask("Did Mark copy Matthew?", "claims"))
        store.settle(
            decision,
            Outcome(
                elapsed_ms=1234.5,
                extra={
                    "reformulated_question": "Did Matthew's author copy Mark's?",
                    "conversation_context": [{"role": "user", "text": "é"}],
                    "claim_cards_referenced": ["card-1", "card-2"],
                    "search_candidates": [{"id": "card-1", "embedding_similarity": 0.91}],
                },
            ),
        )
        store.flush()
        row, bare = view(store_url, "router_decisions")
        assert row["reformulated_question"] == "Did Matthew's author copy Mark's?"
        assert _json(row["claim_cards_referenced"]) == ["card-1", "card-2"]
        assert _json(row["conversation_context"]) == [{"role": "user", "text": "é"}]
        assert _json(row["search_candidates"]) == [{"id": "card-1", "embedding_similarity": 0.91}]
        assert row["response_time"] == 1234.5
        assert bare["reformulated_question"] is None
        assert bare["response_time"] == pytest.approx(other.elapsed_ns / 1e6)

    def test_parts_are_no_questions(self, store: Store, store_url: str) -> None:
        store.record(whole := ask("What is the weather tomorrow and who won the match yesterday?", "sources"))
        store.flush()
        assert [row["id"] for row in view(store_url, "router_decisions")] == [whole.id]

    def test_times_as_people_write_them(self, store: Store, store_url: str) -> None:
        times = (0, 1, 999, 1_750_000_000_001, 1_750_000_000_123, 1_767_225_599_999, 4_102_444_800_000)
        for ms in times:
            backdate(store, ask(session="s"), ms)
        expected = [iso(ms) for ms in times]
        assert [row["created_at"] for row in view(store_url, "router_decisions")] == expected
        assert [row["created_at"] for row in view(store_url, "classify_history", "decision_id")] == expected
        days = {row["day"] for row in view(store_url, "traffic_by_layer")}
        assert days == {one[:10] for one in expected}


def _json(value: Any) -> Any:
    """What a view shows of JSON: text in either database."""
    return msgspec.json.decode(value)


def test_traffic_by_layer_adds_up(store: Store, store_url: str) -> None:
    day = 1_750_000_000_000 // 86_400_000 * 86_400_000
    expected: Counter[tuple[str, str, str, str]] = Counter()
    texts = ("Define entropy", "What is complexity in this context?", "hello")
    for number in range(60):
        decision = taught("second") if number % 7 == 0 else ask(texts[number % 3], ("study", "tiers")[number % 2])
        at = day + (number % 5) * 40_000_000
        backdate(store, decision, at, tenant=("", "acme")[number % 4 == 0])
        expected[iso(at)[:10], ("", "acme")[number % 4 == 0], decision.profile.name, decision.by] += 1
    rows = view(store_url, "traffic_by_layer")
    found: Counter[tuple[str, str, str, str]] = Counter()
    shares: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        found[row["day"], row["tenant"], row["profile"], row["layer"]] += row["decisions"]
        shares.setdefault((row["day"], row["tenant"], row["profile"]), []).append(float(row["percent"]))
        assert len(row["who"]) == 1
        assert row["mean_us"] > 0
    assert found == expected
    for group, percents in shares.items():
        # Each is rounded to a tenth.
        assert sum(percents) == pytest.approx(100, abs=0.05 * len(percents) + 1e-9), group


def test_violations(store: Store, store_url: str) -> None:
    phrase = "You are a direct and concise assistant"
    decision = with_model(ask(phrase, "assist", tenant="acme"), verdict=Verdict(("RETRIEVAL",), 0.9))
    store.record(decision)
    store.settle(decision, Outcome(retrieval=True))
    store.flush()
    rows = view(store_url, "violations", "rule, phase")
    assert [(row["rule"], row["fact"], row["found"], row["phase"]) for row in rows] == [
        ("RC-01", "classifier_called", "true", "decision"),
        ("RC-02", "classifier_called", "true", "decision"),
        ("RC-04", "retrieval", "true", "outcome"),
    ]
    for row in rows:
        shown = (row["tenant"], row["profile"], row["decision_id"], row["route"], row["decided_by"], row["question"])
        assert shown == ("acme", "assist", decision.id, "PLATFORM", "rules", phrase)
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ", row["noticed_at"])


def test_turns(store: Store, store_url: str) -> None:
    store.record(decision := ask(session="s", tenant="acme"))
    store.reply(decision, "an answer")
    store.record(ask())
    store.flush()
    rows = view(store_url, "turns")
    assert [(row["tenant"], row["session"], row["role"], row["text"], row["decision_id"]) for row in rows] == [
        ("acme", "s", "user", "Define entropy", decision.id),
        ("acme", "s", "assistant", "an answer", decision.id),
    ]


def test_classify_history(store: Store, store_url: str) -> None:
    long = "Define entropy " + "é" * 60
    made = [taught("second", long, session="s"), taught("first", session="s"), taught("third", session="s")]
    for decision in (*made, taught("first")):
        store.record(decision)
    records = store.records()
    records.judge(made[0].id, "wrong", should_be="third", by="me")
    records.judge(made[1].id, "wrong", should_be="second", by="me")
    records.judge(made[1].id, "right", by="me")
    rows = view(store_url, "classify_history", "decision_id")
    assert [(row["decision_id"], row["route"], row["teacher"], row["human"]) for row in rows] == [
        (made[0].id, "second", "second", "third"),
        (made[1].id, "first", "first", "first"),
        (made[2].id, "third", "third", None),
    ]
    assert (rows[0]["topic"], rows[0]["question"]) == (long[:60], long)
