"""Workflows in a file while their process lives (tests/faults kills it): what stops goes on, what breaks says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnout.apps.claims.durable import ProcessStopping, WorkflowEnd, WorkflowRun
from turnout.apps.claims.durable_file import FileWorkflows
from turnout.core.errors import Refused, StoreUnavailable
from turnout.store import Store, open_store

PATIENCE_S = 10.0


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(str(tmp_path / "t.db"), config="") as found:
        yield found


def run_to_end(store: Store, run: WorkflowRun) -> WorkflowEnd:
    workflows = FileWorkflows(store, run)
    workflows.start("w", {"claim": "x"})
    try:
        return wait(lambda: workflows.ended("w"))
    finally:
        workflows.close()


def wait(look: Callable[[], WorkflowEnd | None]) -> WorkflowEnd:
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_a_workflow_has_an_output(store: Store) -> None:
    assert run_to_end(store, lambda order: {"card": order["claim"]}) == WorkflowEnd({"card": "x"})


def test_one_that_breaks_says_so(store: Store) -> None:
    def broken(order: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("by zero")

    assert run_to_end(store, broken) == WorkflowEnd(None, "it broke off: ValueError: by zero")


def test_an_unknown_id_is_refused(store: Store) -> None:
    workflows = FileWorkflows(store, lambda order: order)
    with pytest.raises(Refused, match="there is no audit 'nope'"):
        workflows.ended("nope")
    workflows.close()


@pytest.mark.parametrize(
    "why", [ProcessStopping(), StoreUnavailable("away")], ids=["it was stopped", "its database was away"]
)
def test_what_stopped_is_taken_up_after_its_last_step(store: Store, why: BaseException) -> None:
    made: list[str] = []
    failing = [why]

    def one(name: str) -> dict[str, Any]:
        made.append(name)
        return {"made": name}

    def second() -> dict[str, Any]:
        if failing:
            raise failing.pop()
        return one("second")

    def run(order: dict[str, Any]) -> dict[str, Any]:
        workflows.step("first", lambda: one("first"))
        return workflows.step("second", second)

    workflows = FileWorkflows(store, run)
    workflows.start("w", {})
    deadline = time.monotonic() + PATIENCE_S
    while workflows.take_over() != ["w"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert wait(lambda: workflows.ended("w")) == WorkflowEnd({"made": "second"})
    assert made == ["first", "second"]
    assert workflows.take_over() == []
    workflows.close()


def test_what_another_worker_left_is_taken_over_once_it_is_gone(store: Store) -> None:
    def stopping(order: dict[str, Any]) -> dict[str, Any]:
        raise ProcessStopping

    first = FileWorkflows(store, stopping)
    second = FileWorkflows(store, lambda order: {"by": "second"})
    first.start("w", {})
    assert second.take_over() == []
    first.close()
    assert second.take_over() == ["w"]
    assert wait(lambda: second.ended("w")).output == {"by": "second"}
    second.close()
