"""What is old goes, with all that belongs to it; what is young stays; and nobody is held up or orphaned by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import json
from msgspec.structs import replace

from full_store import ASKED, COMPOUND, aged, belongings, tables
from stored_decisions import ask, everything, select
from turnout import Decision, Turn
from turnout.core.decision import first_id, new_id
from turnout.store import Store, open_store, retention
from turnout.store.retention import PruneCounts, Retention, prune, steps
from turnout.store.store import connect
from turnout.store.verify import examine

NOW = time.time_ns() // 1_000_000


def question(days: float, text: str = "What is {}?", profile: str = "assist", session: str = "s") -> Decision:
    return aged(ask(text.format(ASKED), profile, session=session), days, NOW)


def put(store: Store, *decisions: Decision) -> None:
    """Decisions as old as their ids say; replies as old as their decisions."""
    for decision in decisions:
        store.record(decision)
    assert store.flush()
    for decision in decisions:
        belongings(store, decision)
    assert store.flush()
    for decision in decisions:
        with store.backend.transaction() as together:
            age = {"old": decision.id, "new": decision.id[:10] + new_id()[10:]}
            together.many("update replies set id = :new where decision_id = :old", [age])


def wrong(store: Store) -> list[str]:
    """What a check of the whole store complains about."""
    return [found.text for found in examine(store.backend, Path("none")) if found.state == "wrong"]


class Case(NamedTuple):
    id: str
    keep_days: int
    text_days: int
    left: list[float]
    with_text: list[float]


AGES = [0, 1.5, 3, 10, 400]
CASES = [
    Case("keep everything", 0, 0, AGES, AGES),
    Case("a day", 1, 0, [0], [0]),
    Case("two days", 2, 0, [0, 1.5], [0, 1.5]),
    Case("a year", 365, 0, [0, 1.5, 3, 10], [0, 1.5, 3, 10]),
    Case("longer than there was a clock", 200_000, 0, AGES, AGES),
    Case("text for a day", 0, 1, AGES, [0]),
    Case("text for nine days", 0, 9, AGES, [0, 1.5, 3]),
    Case("both", 9, 2, [0, 1.5, 3], [0, 1.5]),
    Case("text longer than rows", 2, 9, [0, 1.5], [0, 1.5]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_left(store: Store, store_url: str, case: Case) -> None:
    made = {days: question(days) for days in AGES}
    put(store, *made.values())
    done = prune(store.backend, keep_days=case.keep_days, text_days=case.text_days, now_ms=NOW)
    assert done.deleted == len(AGES) - len(case.left)
    assert done.emptied == len(case.left) - len(case.with_text)
    ids = {made[days].id for days in case.left}
    for table, column in (("decisions", 0), ("outcomes", 0), ("feedback", 1), ("breaches", 0), ("replies", 3)):
        assert {row[column] for row in tables(store_url)[table]} == ids, table
    whole = {found.id for found in store.records().decisions() if found.question is not None}
    assert whole == {made[days].id for days in case.with_text}
    assert wrong(store) == []
    assert prune(store.backend, keep_days=case.keep_days, text_days=case.text_days, now_ms=NOW) == PruneCounts()


def test_to_the_millisecond(store: Store) -> None:
    limit = first_id(NOW - retention.DAY_MS)
    for ident in (first_id(NOW - retention.DAY_MS - 1) + "Z" * 16, limit + "0" * 16):
        store.record(replace(ask(), id=ident))
    assert store.flush()
    assert prune(store.backend, keep_days=1, text_days=0, now_ms=NOW).deleted == 1
    assert [found.id for found in store.records().decisions()] == [limit + "0" * 16]


@pytest.mark.parametrize("level", ["snippet", "full"])
def test_nothing_of_a_text_is_left(opened: Callable[..., Store], store_url: str, level: str) -> None:
    store = opened(text=level)
    put(
        store,
        question(5),
        question(5, COMPOUND + " And what about {}?", "sources"),
        aged(ask("and?", "assist", session="s", turns=(Turn("user", ASKED), Turn("user", "and?"))), 5, NOW),
        question(5, "Define {}", "study"),
    )
    assert ASKED in everything(store_url)
    assert prune(store.backend, keep_days=0, text_days=2, now_ms=NOW).replies == 4
    left = everything(store_url)
    for word in (ASKED, "Paris", "elucidated", "they said"):
        assert word not in left
    kept = "hash" if level == "snippet" else "off"
    assert {row[0] for row in select(store_url, "select kept from decisions")} == {kept}
    extras = [json.decode(row[16]) for row in tables(store_url)["outcomes"]]
    assert {extra["classifier_history"] for extra in extras} == {9}
    for found in store.records().decisions():
        assert found.to_dict()["route"] == found.route
        assert found.to_dict()["reasons"][0]["code"]
    assert wrong(store) == []


def test_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "turnout.db"
    with open_store(str(file)) as store:
        put(store, *(question(5) for _ in range(20)))
        prune(store.backend, keep_days=0, text_days=1, now_ms=NOW)
    assert ASKED.encode() not in file.read_bytes()


def many(store: Store, count: int) -> None:
    for number in range(count):
        text, profile = (COMPOUND, "sources") if number % 7 == 0 else (f"old {number}", "assist")
        store.record(aged(ask(text, profile), 5 + number % 3, NOW))
    store.record(question(0))
    assert store.flush(60)


@pytest.mark.alike(2)
@pytest.mark.parametrize(("keep_days", "text_days"), [(1, 0), (0, 1)], ids=["rows", "texts"])
def test_after_every_step_all_is_well(store: Store, keep_days: int, text_days: int) -> None:
    """It may be interrupted after any of them, and goes on where it stopped."""
    many(store, 2_500)
    (rows,) = store.backend.read("select count(*) from decisions", {})
    taken = []
    for _ in range(2):
        step = next(steps(store.backend, keep_days=keep_days, text_days=text_days, now_ms=NOW))
        taken.append(step.deleted + step.emptied)
        assert wrong(store) == []
    taken += (sum(step) for step in steps(store.backend, keep_days=keep_days, text_days=text_days, now_ms=NOW))
    assert max(taken) <= 1000
    assert sum(taken) == rows[0] - 1
    assert wrong(store) == []
    (left,) = [found for found in store.records().decisions() if found.question]
    assert ASKED in (left.question or "")


def test_others_write_between_two_steps(store: Store) -> None:
    many(store, 1_500)
    for number, _ in enumerate(steps(store.backend, keep_days=1, text_days=0, now_ms=NOW)):
        store.record(ask(f"new {number}"))
        assert store.flush()
    questions = [found.question for found in store.records().decisions()]
    assert len(questions) >= 3
    assert not any((text or "").startswith("old") for text in questions)


def test_damaged_json_does_not_keep_a_text(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "turnout.db")) as store:
        put(store, question(5), question(5))
        with store.backend.transaction() as together:
            together.many("update decisions set body = :x", [{"x": f'{{"broken": {ASKED}'}])
            together.many("update outcomes set extra = :x", [{"x": f"[{ASKED}"}])
        assert prune(store.backend, keep_days=0, text_days=1, now_ms=NOW).emptied == 2
        assert ASKED not in everything(f"sqlite:///{tmp_path}/turnout.db")


# --- by itself


def settings(tmp_path: Path, text: str) -> str:
    file = tmp_path / "turnout.toml"
    file.write_text(f"[store]\n{text}\n", encoding="utf-8")
    return str(file)


def settled(look: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not look() and time.monotonic() < until:
        time.sleep(0.01)
    return look()


def test_an_open_store_does_it_by_itself(opened: Callable[..., Store], tmp_path: Path) -> None:
    store = opened()
    put(store, question(40), question(10), question(0))
    store.close()
    again = opened(config=settings(tmp_path, "keep_days = 30\ntext_days = 7"))
    records = again.records()
    assert settled(lambda: [row.question is None for row in records.decisions()] == [False, True])


def test_rows_come_first(opened: Callable[..., Store], tmp_path: Path) -> None:
    """A thousand rows at a time, between which the journal commits what has come in."""
    store = opened()
    many(store, 3_000)
    store.close()
    again = opened(config=settings(tmp_path, "keep_days = 1"))
    for number in range(50):
        again.record(ask(f"meanwhile {number}"))
        assert again.flush()
    assert settled(lambda: again.backend.read("select count(*) from decisions", {}) == [(51,)])
    assert wrong(again) == []


def test_without_settings_there_is_no_thread(opened: Callable[..., Store], tmp_path: Path) -> None:
    store = opened(config=settings(tmp_path, 'durability = "batched"'))
    put(store, question(4_000))
    assert store.journal._chore is None
    assert len(list(store.records().decisions())) == 1


def test_once_an_hour(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    chore = Retention(store.backend, 1, 0)
    put(store, question(2))
    while chore():
        pass
    assert list(store.records().decisions()) == []
    put(store, question(2))
    assert not chore()
    assert len(list(store.records().decisions())) == 1
    monkeypatch.setattr(retention, "EVERY_S", 0.0)
    often = Retention(store.backend, 1, 0)
    assert often()
    assert list(store.records().decisions()) == []


def test_a_database_that_is_gone_is_tried_again_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chore = Retention(connect(str(tmp_path / "nowhere.db"))[0], 1, 1)
    assert not chore()
    assert not chore()
    assert caplog.text.count("retention stopped") == 1
    assert "it is tried again in an hour" in caplog.text


def test_retention_uses_its_indexes(tmp_path: Path) -> None:
    """Hourly, over millions of rows: what was emptied before must not be looked at again."""
    with closing(connect(str(tmp_path / "turnout.db"))[0]) as backend:
        backend.migrate()
        for statement, index in (
            (retention.sql.TEXT_BEFORE, "decisions_with_text"),
            (retention.sql.FORGET_REPLIES, "replies_with_text"),
            (retention.sql.EDGE, "sqlite_autoindex_decisions_1"),
            (retention.sql.OLD_SESSIONS, "sqlite_autoindex_study_sessions_1"),
        ):
            plan = backend.read(f"explain query plan {statement}", {"above": "", "before": "0", "before_ms": 0})
            assert any(index in row[3] for row in plan), (index, plan)
            assert not any(row[3].startswith("SCAN") for row in plan)
