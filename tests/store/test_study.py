"""Sessions of readers, in both databases."""

from __future__ import annotations

import time

from turnout.store import open_store, retention
from turnout.store.study import StudyTurn


def turn(ident: str, ms: int) -> StudyTurn:
    return StudyTurn(ident, "What?\0", "That.", "general_contextual", ms)


def test_a_session_ends_once_and_the_next_begins_anew(store_url: str) -> None:
    with open_store(store_url, config="") as store:
        rows = store.study("ann")
        first = rows.open_session("book", 1_000)
        assert rows.open_session("book", 2_000) == first
        rows.add(first.id, turn("1", 5_000))
        rows.add(first.id, turn("1", 5_000))
        assert [one.question for one in rows.turns(first.id)] == ["What?\ufffd"]
        assert rows.idle(5_000) == []
        assert [one.id for one in rows.idle(5_001)] == [first.id]
        assert rows.end(first.id, "sum", 9_000)
        assert not rows.end(first.id, "another", 9_001)
        assert [(one.id, one.summary, one.ended_ms) for one in rows.ended()] == [(first.id, "sum", 9_000)]
        assert rows.find_session("book") is None
        assert rows.open_session("book", 10_000).id != first.id


def test_nobody_reads_ends_or_forgets_another_s(store_url: str) -> None:
    with open_store(store_url, config="") as store:
        ann, bob = store.study("ann"), store.study("bob")
        session = ann.open_session("book", 1)
        ann.add(session.id, turn("1", 2))
        assert bob.turns(session.id) == []
        assert bob.find_session("book") is None
        assert not bob.end(session.id, "mine", 3)
        assert not bob.forget(session.id)
        ann.end(session.id, "sum", 3)
        assert bob.ended() == []
        assert ann.forget(session.id)
        assert ann.turns(session.id) == []
        assert ann.ended() == []


def test_what_was_studied_grows_old_with_the_log(store_url: str) -> None:
    now = time.time_ns() // 1_000_000
    with open_store(store_url, config="") as store:
        rows = store.study("ann")
        old, young = rows.open_session("old", now), rows.open_session("young", now)
        rows.add(old.id, turn("1", now - 40 * retention.DAY_MS))
        rows.add(young.id, turn("2", now + 25 * retention.DAY_MS))
        later = now + 30 * retention.DAY_MS
        assert retention.prune(store.backend, keep_days=0, text_days=1, now_ms=later).sessions == 0
        assert retention.prune(store.backend, keep_days=10, text_days=0, now_ms=later).sessions == 1
        assert rows.turns(old.id) == []
        assert rows.find_session("old") is None
        assert [one.id for one in rows.turns(young.id)] == ["2"]
        assert retention.prune(store.backend, keep_days=10, text_days=0, now_ms=later).sessions == 0
