"""Durable workflows on PostgreSQL with DBOS, of which a process has only one instance."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from turnout.core.decision import new_id
from turnout.core.errors import Refused, StoreUnavailable
from turnout.core.verdict import Fault, contain
from turnout.store import Store
from turnout.store.alive import Workers, database_errors, workers_of

from .durable import AT_ONCE, ProcessStopping, WorkflowEnd, WorkflowRun

# Stored with each audit, which continues only under the same version. Raise it when the steps change.
VERSION = "turnout-audit-1"
NAME = "turnout"
WORKFLOW = "audit"
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")


class DbosWorkflows:
    """Runs one workflow. Blocking; thread-safe."""

    _open: DbosWorkflows | None = None

    def __init__(self, store: Store, run: WorkflowRun) -> None:
        try:
            import dbos
        except ImportError as error:
            why = f"an audit needs {error.name}: pip install 'turnout[claims]'"
            raise Refused(503, "not_available", why) from None
        if DbosWorkflows._open is not None:
            raise Refused(503, "not_available", "this process has a pipeline already: close it first")
        self._dbos = dbos
        self.worker = new_id()
        self._active: set[str] = set()
        """Workflows that were started here or run in a thread of this process."""
        self._idle: set[str] = set()
        """Workflows of this worker that no thread ran at the last look."""
        self._workers: Workers = workers_of(store)
        self._workers.join(self.worker)
        DbosWorkflows._open = self
        logging.getLogger("dbos").propagate = False
        config: Any = {
            "name": NAME,
            "system_database_url": store.url.replace("postgres://", "postgresql://", 1),
            "application_version": VERSION,
            "executor_id": self.worker,
            "serializer": dbos.DBOSPortableJSONSerializer(),
            "log_level": "CRITICAL",
            "max_executor_threads": AT_ONCE,
        }

        lost = database_errors()

        def workflow(order: dict[str, Any]) -> dict[str, Any]:
            ident = str(dbos.DBOS.workflow_id)
            self._active.add(ident)
            try:
                return run(order)
            except lost:
                raise ProcessStopping from None  # `take_over` continues it when the database is back
            finally:
                self._active.discard(ident)

        with contextlib.ExitStack() as opened:
            opened.callback(self.close)
            dbos.DBOS(config=config)
            self._workflow = dbos.DBOS.workflow(name=WORKFLOW)(workflow)
            # It creates its tables; two processes that do so at the same time would both fail.
            with self._workers.alone():
                dbos.DBOS.launch()
            opened.pop_all()

    def start(self, ident: str, order: dict[str, Any]) -> None:
        self._active.add(ident)
        with self._dbos.SetWorkflowID(ident):
            self._dbos.DBOS.start_workflow(self._workflow, order)

    def step(self, name: str, made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = self._dbos.DBOS.run_step({"name": name}, made)
        return result

    def ended(self, ident: str) -> WorkflowEnd | None:
        found = contain(self._dbos.DBOS.get_workflow_status, ident)
        if isinstance(found, Fault):
            raise StoreUnavailable(f"what became of the audit cannot be looked up now: {found.detail}")
        if found is None:
            raise Refused(404, "not_found_error", f"there is no audit {ident[:40]!r}")
        if found.status not in ENDED:
            return None
        return WorkflowEnd(
            found.output, "" if found.status == "SUCCESS" else f"it broke off: {found.error or found.status}"
        )

    def take_over(self) -> list[str]:
        found = contain(self._take_over)
        if isinstance(found, Fault):
            raise StoreUnavailable(f"what others left cannot be looked for now: {found.detail}")
        taken: list[str] = found
        return taken

    def _take_over(self) -> list[str]:
        self._workers.join(self.worker)
        taken: list[str] = []
        for worker in sorted({one.executor_id for one in self._pending()} - {self.worker, None}):
            with self._workers.gone(worker) as is_gone:
                # Read again under the lock: another process may have taken them over meanwhile.
                left = [one.workflow_id for one in self._pending(worker)] if is_gone else []
                if left:
                    self._dbos.DBOS.resume_workflows(left)
                    taken += left
        return taken + self._take_up()

    def _take_up(self) -> list[str]:
        """Continue this worker's workflows that no thread runs, because storing a result failed. They must be idle in
        two looks: between the queue and its thread a workflow is nowhere for a moment."""
        idle = {one.workflow_id for one in self._pending(self.worker)} - self._active
        left, self._idle = sorted(idle & self._idle), idle
        if left:
            self._dbos.DBOS.resume_workflows(left)
        return left

    def _pending(self, worker: str | None = None) -> list[Any]:
        found: list[Any] = self._dbos.DBOS.list_workflows(
            status="PENDING", app_version=VERSION, executor_id=worker, load_input=False, load_output=False
        )
        return found

    def close(self) -> None:
        self._dbos.DBOS.destroy(destroy_registry=True)
        # Its log handlers write to streams of the program, which may be closed when it is opened again.
        logger = logging.getLogger("dbos")
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        self._workers.close()
        DbosWorkflows._open = None
