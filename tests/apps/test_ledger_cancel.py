"""A decision whose client leaves is cancelled at once, whatever the database does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnout.apps.caller import Budget, Caller
from turnout.apps.ledger import decide
from turnout.core.query import Query
from turnout.store import open_store


class EndlessRouter:
    async def route(self, query: Query, admit: Any) -> Any:
        await asyncio.sleep(60)


def test_in_strict_with_a_database_that_takes_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path / "log.db"), durability="strict")

    def write(rows: Any) -> int:
        raise OSError("the disk is gone")

    async def main() -> None:
        router, slots, caller = EndlessRouter(), None, Caller("k", "", frozenset(), Budget())
        task = asyncio.create_task(decide(router, Query("hello"), caller, slots, store))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,), timeout=5)
        assert task.cancelled()

    with monkeypatch.context() as patched:
        patched.setattr(store.journal.backend, "write", write)
        store.journal.post(store.journal.encoder.reply("", "s", None, "user", "waits"))
        asyncio.run(main())
    store.close()
