"""Workflows and the results of their steps, in a SQLite file beside the store's own.

Invariant: the first result of a step and the first outcome of a workflow count.
"""

from __future__ import annotations

from typing import NamedTuple

from .backend import Value
from .row import now_ms
from .session_log import DAY_MS, KEEP_DAYS, beside
from .sqlite import Sqlite
from .store import Store, brought_up

ADD_WORKFLOW = """
insert into workflows (id, worker, task, at_ms) values (:id, :worker, :task, :at_ms)
"""
FIND_WORKFLOW = """
select id, worker, task, outcome from workflows where id = :id
"""
UNFINISHED = """
select id, worker, task, outcome from workflows where outcome is null order by at_ms, id
"""
REASSIGN = """
update workflows set worker = :worker where id = :id
"""
END_WORKFLOW = """
update workflows set outcome = :outcome where id = :id and outcome is null
"""
ADD_STEP = """
insert into steps (workflow, name, result) values (:workflow, :name, :result) on conflict (workflow, name) do nothing
"""
FIND_STEP = """
select result from steps where workflow = :workflow and name = :name
"""
FORGET_WORKFLOWS = """
delete from workflows where outcome is not null and at_ms < :before_ms
"""


class StoredWorkflow(NamedTuple):
    id: str
    worker: str
    """The process that runs it, or ran it last."""
    task: str
    """Its input, as JSON."""
    outcome: str | None
    """Its result, as JSON; None if it has not ended."""


class StepFile(Sqlite):
    steps = "turnout.store.step_migrations"


class StepLog:
    """The workflows of one file. Thread-safe; blocking. Raises StoreUnavailable."""

    def __init__(self, backend: StepFile) -> None:
        self._backend = backend

    def begin(self, ident: str, worker: str, task: str) -> None:
        values: dict[str, Value] = {"id": ident, "worker": worker, "task": task, "at_ms": now_ms()}
        self._backend.change(ADD_WORKFLOW, values)

    def find(self, ident: str) -> StoredWorkflow | None:
        found = self._backend.read(FIND_WORKFLOW, {"id": ident})
        return StoredWorkflow(*found[0]) if found else None

    def unfinished(self) -> list[StoredWorkflow]:
        """Workflows that have not ended, the oldest first."""
        return [StoredWorkflow(*row) for row in self._backend.read(UNFINISHED, {})]

    def reassign(self, ident: str, worker: str) -> None:
        self._backend.change(REASSIGN, {"id": ident, "worker": worker})

    def end(self, ident: str, outcome: str) -> None:
        self._backend.change(END_WORKFLOW, {"id": ident, "outcome": outcome})

    def result(self, workflow: str, name: str) -> str | None:
        """The result of a step; None if it has none yet."""
        found = self._backend.read(FIND_STEP, {"workflow": workflow, "name": name})
        return str(found[0][0]) if found else None

    def keep(self, workflow: str, name: str, result: str) -> str:
        """Keep the result of a step; returns the result that counts."""
        key = {"workflow": workflow, "name": name}
        with self._backend.transaction() as changes:
            changes.change(ADD_STEP, {**key, "result": result})
            return str(changes.read(FIND_STEP, key)[0][0])

    def forget(self, days: int = KEEP_DAYS) -> int:
        """Delete older workflows that have ended; returns how many."""
        return self._backend.change(FORGET_WORKFLOWS, {"before_ms": now_ms() - days * DAY_MS})

    def close(self) -> None:
        self._backend.close()


def open_step_log(store: Store) -> StepLog:
    """The log beside a store's file: `NAME.steps`."""
    log = StepLog(brought_up(StepFile(beside(store, "steps"))))
    log.forget()
    return log
