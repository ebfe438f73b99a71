"""A disk that is full, or may not be written to: routing goes on, what is lost is counted to the row, and when there is
room again everything that was kept arrives."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults import workload
from faults.rounds import TESTS, wait_for
from turnout import Decision
from turnout.core.errors import NotStored, StoreUnavailable
from turnout.store import Store, open_store

SOON_S = 20.0


def run(module: str, *arguments: str | Path) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", f"faults.{module}", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def hold_to_account(report: dict[str, Any], durability: str) -> None:
    """What must be so after every full disk."""
    assert report["wrong"] == 0
    assert report["flushed"]
    assert report["recorded"] + report["lost"] == report["offered"]
    assert report["rows"] == report["recorded"]
    assert report["lost"] > 0
    assert report["lost"] == report["lost_while_full"], "something was lost although there was room"
    assert report["left"] == 0
    if durability == "strict":
        assert report["acked"] + report["refused"] == report["offered"]
        assert report["acked_and_missing"] == 0
        assert report["refused_but_there_at_once"] == 0
        assert report["refused"] >= report["lost"]
    else:
        assert report["refused"] == 0
        assert report["acked_and_missing"] == report["lost"]
    said = report["said"]
    assert len([text for text in said if text.startswith("a decision is not logged: [Errno")]) == 1
    assert f"decisions are logged again; {report['lost']:,} were not" in said[-1]
    assert len(said) <= 4, said


@pytest.mark.alike(2)
@pytest.mark.parametrize("durability", ["batched", "strict"])
def test_no_file_may_grow(durability: str, tmp_path: Path) -> None:
    """EFBIG for spool and database at once, which is what a full disk is to both."""
    report = run("full", tmp_path / "turnout.db", durability, "--file-bytes", "300000")
    hold_to_account(report, durability)
    assert report["failures"] > 0
    assert any(
        "turnout.db: disk I/O error (routing goes on; rows wait in the spool)" in text for text in report["said"]
    )


def few_pages(store: Store, more: int) -> None:
    """Let the database grow by so many pages and no further."""
    with store.backend.transaction() as changes:
        ((pages,),) = changes.read("pragma page_count", {})
        changes.connection.execute(f"pragma max_page_count = {pages + more}")


def decisions(count: int) -> list[Decision]:
    return [workload.decide("t", number) for number in range(count)]


@pytest.mark.usefixtures("hasty")
def test_a_full_database_fills_the_spool_and_then_loses_what_it_counts(
    opened: Callable[..., Store], stored: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    store = opened()
    store.journal.spool.limit_bytes = 200_000
    few_pages(store, 8)
    asked = decisions(560)  # the last of them fit into the spool, whichever side is slow
    for decision in asked[:500]:
        store.record(decision)
    wait_for(lambda: store.counts().failures > 2)
    full = store.counts()
    assert full.lost > 0
    assert full.recorded + full.lost == 500
    assert 150_000 < full.backlog_bytes <= 200_000
    assert "database or disk is full: free some space" in full.last_error or "its limit" in full.last_error
    few_pages(store, 100_000)
    assert store.flush(SOON_S)
    for decision in asked[500:]:
        store.record(decision)
    assert store.flush(SOON_S)
    counts = store.counts()
    assert counts.lost == full.lost
    assert len(stored()) == counts.recorded == 560 - full.lost
    said = caplog.messages
    assert len([text for text in said if "database or disk is full" in text]) == 1
    assert len([text for text in said if "the spool holds 200,000 bytes, its limit" in text]) == 1
    assert len([text for text in said if text.endswith("takes rows again")]) == 1


@pytest.mark.usefixtures("hasty")
def test_strict_raises_for_exactly_those_a_full_database_did_not_take(
    opened: Callable[..., Store], stored: Callable[[], list[str]]
) -> None:
    store = opened(durability="strict")
    few_pages(store, 8)
    acked, refused, reasons = [], [], set()
    for decision in decisions(60):
        try:
            store.record(decision)
        except NotStored as error:
            refused.append(decision.id)
            reasons.add(str(error))
        else:
            acked.append(decision.id)
    assert acked
    assert refused
    assert all("database or disk is full" in reason for reason in reasons)
    assert sorted(stored()) == sorted(acked)
    few_pages(store, 100_000)
    assert store.flush(SOON_S)
    assert sorted(stored()) == sorted(acked + refused)


class TestReadOnly:
    def test_a_database_that_may_not_be_written_to(self, tmp_path: Path) -> None:
        """Rows wait in the spool, and arrive when it may be."""
        report = run("readonly", tmp_path, "file")
        assert report["opened"]
        assert report["waiting"] > 0
        assert report["counts"]["lost"] == 0
        assert report["rows"] == report["offered"]
        (said, again) = report["said"]
        assert "attempt to write a readonly database: check that it exists and that you may write there" in said
        assert again.endswith("takes rows again")

    def test_a_spool_that_may_not_be_made(self, tmp_path: Path) -> None:
        """Every decision is counted as lost, and told once; strict raises."""
        report = run("readonly", tmp_path, "spool")
        assert report["opened"]
        assert report["counts"]["lost"] == report["offered"]
        assert report["counts"]["recorded"] == report["rows"] == 0
        (said,) = report["said"]
        assert "a decision is not logged: [Errno 13] Permission denied" in said

    def test_a_folder_that_may_not_be_written_to(self, tmp_path: Path) -> None:
        """There SQLite cannot even read: the store is refused, with the path and what to do."""
        report = run("readonly", tmp_path, "folder")
        assert not report["opened"]
        assert "turnout.db: " in report["error"]
        assert "check that" in report["error"]

    def test_a_new_database_where_nothing_may_be_made(self, tmp_path: Path) -> None:
        report = run("readonly", tmp_path, "new")
        assert not report["opened"]
        assert "turnout.db: Permission denied: check that you may write there" in report["error"]


def test_a_path_below_a_file(file: Path) -> None:
    with pytest.raises(StoreUnavailable, match="check that"):
        open_store(str(file / "turnout.db"))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    from turnout.core.errors import StoreDamaged

    path = tmp_path / "turnout.db"
    path.write_bytes(b"not a database, whatever its name says. " * 100)
    with pytest.raises(StoreDamaged, match="file is not a database: restore a backup"):
        open_store(str(path))


def test_a_database_of_another_program_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "turnout.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table decisions (mine text)")
    connection.close()
    with pytest.raises(StoreUnavailable, match="already exists"):
        open_store(str(path))
    with sqlite3.connect(path) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("decisions",)]
    connection.close()
