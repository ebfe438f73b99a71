"""A reload refuses what the next start would refuse, also in tables that only a start reads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnout.runtime.runtime import Runtime

SOUND = '[models.simple]\nmodel = "ollama/llama3.2"\n'


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("[server]\nportt = 3\n", "server.portt: unknown key, did you mean 'port'?"),
        ('[server]\nrequests = "x"\n', "server.requests"),
        ("[sever]\nrequests = 3\n", "sever: no such table, did you mean 'server'?"),
        ('[store]\ntext = "everything"\n', "store.text"),
        ("[learn]\nkeep_models = 0\n", "learn.keep_models"),
    ],
)
def test_mistakes_of_the_next_start(table: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(SOUND, encoding="utf-8")

    async def reload_twice() -> list[tuple[str, list[str]]]:
        runtime = Runtime(config=str(file))
        try:
            file.write_text(SOUND + table, encoding="utf-8")
            refused = await runtime.reload()
            file.write_text(SOUND, encoding="utf-8")
            done = await runtime.reload()
            return [(refused.status, refused.problems), (done.status, done.problems)]
        finally:
            await runtime.close()

    (refused, problems), done = asyncio.run(reload_twice())
    assert refused == "kept"
    assert len(problems) == 1
    assert problem in problems[0]
    assert problems[0].startswith("turnout.toml:")
    assert done == ("reloaded", [])
