"""Workflows and their steps: what is kept first stands, what is unfinished is found, what has ended is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnout.store import open_store
from turnout.store.step_log import StepLog, StoredWorkflow, open_step_log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[StepLog]:
    with open_store(str(tmp_path / "t.db"), config="") as store:
        found = open_step_log(store)
        yield found
        found.close()


def test_the_first_result_of_a_step_stands(log: StepLog) -> None:
    log.begin("w", "one", "{}")
    assert log.result("w", "search") is None
    assert log.keep("w", "search", "1") == "1"
    assert log.keep("w", "search", "2") == "1"
    assert log.result("w", "search") == "1"
    assert log.result("w", "other") is None


def test_the_first_outcome_of_a_workflow_stands(log: StepLog) -> None:
    log.begin("w", "one", '{"a":1}')
    assert log.find("w") == StoredWorkflow("w", "one", '{"a":1}', None)
    log.end("w", "done")
    log.end("w", "done twice")
    assert log.find("w") == StoredWorkflow("w", "one", '{"a":1}', "done")
    assert log.find("none") is None


def test_what_is_unfinished_is_found_and_changes_hands(log: StepLog) -> None:
    for ident in ("a", "b", "c"):
        log.begin(ident, "one", "{}")
    log.end("b", "done")
    log.reassign("c", "two")
    assert [(one.id, one.worker) for one in log.unfinished()] == [("a", "one"), ("c", "two")]


def test_what_has_ended_is_forgotten_with_its_steps(log: StepLog) -> None:
    for ident in ("ended", "going"):
        log.begin(ident, "one", "{}")
        log.keep(ident, "step", "1")
    log.end("ended", "done")
    assert log.forget(days=-1) == 1
    assert (log.find("ended"), log.result("ended", "step")) == (None, None)
    assert log.result("going", "step") == "1"
