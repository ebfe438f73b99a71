"""Workflows that survive their process: each step's result is stored before the next step starts.

Each worker has its own name and holds a lock on it. If that lock is free, the worker is gone, and another continues its
workflows at the first unfinished step. If two processes run the same step, the first stored result counts. On one
machine the results are in a file next to the store's; on PostgreSQL DBOS keeps them, for any number of machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from turnout.store import Store
from turnout.store.sqlite import Sqlite

# Audits that run at the same time in one process; most of the time each waits for a model.
AT_ONCE = 32

WorkflowRun = Callable[[dict[str, Any]], dict[str, Any]]
"""A workflow. After its process has died it is called again from the beginning, without repeating finished steps."""


class ProcessStopping(BaseException):
    """The process is closing. Not an `Exception`, so that it is not stored as the result of a step."""


class WorkflowEnd(NamedTuple):
    """How a workflow ended."""

    output: dict[str, Any] | None
    error: str = ""


class Workflows(Protocol):
    """Runs one workflow, any number of times. Blocking; thread-safe."""

    def start(self, ident: str, order: dict[str, Any]) -> None:
        """Store the order and start; this process or another finishes it sooner or later."""

    def step(self, name: str, made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of a step, made now or earlier. Only called by the workflow."""

    def ended(self, ident: str) -> WorkflowEnd | None:
        """How a workflow ended; None if it has not. Raises Refused for an unknown id, StoreUnavailable."""

    def take_over(self) -> list[str]:
        """Continue the unfinished workflows of workers that are gone; returns their ids. Raises StoreUnavailable."""

    def close(self) -> None: ...


def open_workflows(store: Store, run: WorkflowRun) -> Workflows:
    """The workflows of a store. Raises Refused if the store is PostgreSQL and DBOS is not installed."""
    if isinstance(store.backend, Sqlite):
        from .durable_file import FileWorkflows

        return FileWorkflows(store, run)
    from .durable_dbos import DbosWorkflows

    return DbosWorkflows(store, run)
