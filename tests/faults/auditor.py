"""A process that makes audits until they are done or it is killed.

    python -m faults.auditor URL FOLDER start NUMBER      begins so many audits, and makes them
    python -m faults.auditor URL FOLDER resume            goes on with what others left

Both end when FOLDER/end is there.
Each step that begins is a line of FOLDER/steps: the audit, the step, the process. A step whose name is in FOLDER/hold
waits there, to be killed; so does one named `after STEP`, when its result is made and not yet stored.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apps.claims.auditing import ANYONE, CardFile
from turnout.apps.claims import pipeline as module
from turnout.apps.claims.audit import AuditOrder, StepResult
from turnout.apps.claims.pipeline import open_pipeline
from turnout.apps.claims.workflow import AuditWorkflow
from turnout.runtime.runtime import Runtime
from turnout.store import open_store

HOLD_S = 0.01


class WatchedWorkflow(AuditWorkflow):
    """Tells of every step, and waits in those that are held."""

    folder: Path

    def note(self, order: AuditOrder, step: str) -> None:
        file = os.open(self.folder / "steps", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(file, f"{order.pipeline_id} {os.getpid()} {step}\n".encode())
        os.close(file)

    async def hold(self, step: str) -> None:
        held = self.folder / "hold"
        while held.exists() and held.read_text(encoding="utf-8") == step:
            await asyncio.sleep(HOLD_S)

    async def _step(self, step: str, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        self.note(order, step)
        await self.hold(step)
        made = await super()._step(step, order, done)
        self.note(order, f"after {step}")
        await self.hold(f"after {step}")
        return made

    def _publish(self, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        self.note(order, "card")
        asyncio.run_coroutine_threadsafe(self.hold("card"), self._loop).result()
        made = super()._publish(order, done)
        self.note(order, "after card")
        asyncio.run_coroutine_threadsafe(self.hold("after card"), self._loop).result()
        return made


async def main(url: str, folder: Path, what: str, number: int) -> None:
    WatchedWorkflow.folder = folder
    module.AuditWorkflow = WatchedWorkflow  # type: ignore[misc]
    module.WATCH_S = 0.2
    runtime = Runtime(open_store(url, config=""), profile="claims", config="")
    pipeline = await open_pipeline(runtime, CardFile(folder / "cards"))
    (folder / f"open-{os.getpid()}").touch()
    for _ in range(number if what == "start" else 0):
        ident = await pipeline.start("The moon is made of cheese.", session_id="s", caller=ANYONE)
        with (folder / "ids").open("a") as file:
            file.write(f"{ident}\n")
    await pipeline.resume()
    while not (folder / "end").exists():
        await asyncio.sleep(HOLD_S)
    await pipeline.close()
    await runtime.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int((*sys.argv[4:], "1")[0])))
