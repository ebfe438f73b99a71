"""A listener that dies is an error of the server, not its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnout.config.server import ServerSettings
from turnout.runtime.runtime import Runtime
from turnout.store import open_store
from turnout.web import serve
from turnout.web.server import Server


def test_a_dying_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def die(self: serve.BoundGranian) -> None:
        raise RuntimeError("the listener died")

    async def main() -> set[str]:
        server = Server(ServerSettings(port=0, admin_port=0), Runtime(open_store(str(tmp_path / "log.db"))))
        with pytest.raises(RuntimeError, match="the listener died"):
            await serve.serve(server, lambda urls: None, signals=False)
        return {str(task.get_coro()) for task in asyncio.all_tasks() if task is not asyncio.current_task()}

    monkeypatch.setattr(serve.BoundGranian, "serve", die)
    assert asyncio.run(main()) == set()
