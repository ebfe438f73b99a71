"""Durable workflows on one machine: threads, and a file with the result of each step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import msgspec

from turnout.core.decision import new_id
from turnout.core.errors import Refused, StoreUnavailable
from turnout.core.verdict import Fault, contain
from turnout.store import Store
from turnout.store.alive import workers_of
from turnout.store.step_log import open_step_log

from .durable import AT_ONCE, ProcessStopping, WorkflowEnd, WorkflowRun

_running: ContextVar[str] = ContextVar("workflow")
"""The id of the workflow that this thread runs."""


class FileWorkflows:
    def __init__(self, store: Store, run: WorkflowRun) -> None:
        self._run = run
        self._worker = new_id()
        self._workers = workers_of(store)
        self._workers.join(self._worker)
        # Two processes that create the file at the same time would both fail.
        with self._workers.alone():
            self._log = open_step_log(store)
        self._active: set[str] = set()
        """Workflows that run in a thread of this process, or wait for one."""
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="audit")

    def start(self, ident: str, order: dict[str, Any]) -> None:
        self._active.add(ident)
        task = msgspec.json.encode(order).decode()
        self._log.begin(ident, self._worker, task)
        self._threads.submit(self._follow, ident, task)

    def _follow(self, ident: str, task: str) -> None:
        """Run a workflow to its end. If it stops earlier, `take_over` will find it unfinished."""
        _running.set(ident)
        try:
            found = contain(self._run, msgspec.json.decode(task))
            end = WorkflowEnd(None, f"it broke off: {found.detail}") if isinstance(found, Fault) else WorkflowEnd(found)
            self._log.end(ident, msgspec.json.encode(end).decode())
        except (ProcessStopping, StoreUnavailable):
            return
        finally:
            self._active.discard(ident)

    def step(self, name: str, made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        ident = _running.get()
        try:
            known = self._log.result(ident, name)
            if known is None:
                known = self._log.keep(ident, name, msgspec.json.encode(made()).decode())
        except StoreUnavailable:
            raise ProcessStopping from None
        result: dict[str, Any] = msgspec.json.decode(known)
        return result

    def ended(self, ident: str) -> WorkflowEnd | None:
        found = self._log.find(ident)
        if found is None:
            raise Refused(404, "not_found_error", f"there is no audit {ident[:40]!r}")
        return None if found.outcome is None else msgspec.json.decode(found.outcome, type=WorkflowEnd)

    def take_over(self) -> list[str]:
        # Read before and after: a workflow that starts or ends meanwhile is not idle.
        active = set(self._active)
        left = self._log.unfinished()
        taken = [one for one in left if one.worker == self._worker and one.id not in active | self._active]
        for worker in sorted({one.worker for one in left} - {self._worker}):
            with self._workers.gone(worker) as is_gone:
                # Read again under the lock: another process may have taken them over meanwhile.
                for one in self._log.unfinished() if is_gone else ():
                    if one.worker == worker:
                        self._log.reassign(one.id, self._worker)
                        taken.append(one)
        for one in taken:
            self._active.add(one.id)
            self._threads.submit(self._follow, one.id, one.task)
        return [one.id for one in taken]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._log.close()
        self._workers.close()
