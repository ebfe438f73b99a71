"""Workflows that survive their process: each step's result is stored before the next begins.

A worker has a name of its own and a lock under that name; what a worker whose lock is free left unfinished is taken
over by the next that notices, from the first unfinished step on. Of two processes that run the same step, the one that
stores its result first has made it. On one machine the results are in a file beside the store's; on PostgreSQL it is
DBOS that keeps them, for any number of machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from turnout.store import Store
from turnout.store.sqlite import Sqlite

# Audits that run at the same time in one process; each waits for models most of the time.
AT_ONCE = 32

WorkflowRun = Callable[[dict[str, Any]], dict[str, Any]]
"""A workflow: it is called again from its beginning after its process has died, and what it has done in a `step` is not
done again."""


class Stopped(BaseException):
    """The process is closing. No `Exception`, so that it is not stored as the result of a step."""


class WorkflowEnd(NamedTuple):
    """How a workflow ended."""

    output: dict[str, Any] | None
    said: str = ""


class Workflows(Protocol):
    """Runs one workflow, any number of times. Blocking; thread-safe."""

    def start(self, ident: str, order: dict[str, Any]) -> None:
        """Store the order and begin; it is done sooner or later, by this process or another."""

    def step(self, name: str, made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of a step, made now or earlier. Inside the workflow only."""

    def ended(self, ident: str) -> WorkflowEnd | None:
        """How a workflow ended; None if it has not. Raises Refused for an unknown id, StoreUnavailable."""

    def take_over(self) -> list[str]:
        """Go on with what workers that are gone left unfinished; which workflows those are. Raises StoreUnavailable."""

    def close(self) -> None: ...


def open_workflows(store: Store, run: WorkflowRun) -> Workflows:
    """Those of a store. Raises Refused where PostgreSQL is the store and DBOS is not installed."""
    if isinstance(store.backend, Sqlite):
        from .durable_file import FileWorkflows

        return FileWorkflows(store, run)
    from .durable_dbos import DbosWorkflows

    return DbosWorkflows(store, run)
