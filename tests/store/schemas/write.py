"""Writes what a test needs to upgrade from every schema there has been: `python tests/store/schemas/write.py`.

For each step of the schema a dump of a SQLite database that stopped there, with a row or more in every table. A file
that is there stays as it is: it is what was released. (`--anew` rewrites them all, which is for steps that no release
has had yet.)
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from stored_decisions import TABLES, ask, taught, with_model  # noqa: E402 - the tests' folder has to be found first
from turnout import Verdict  # noqa: E402
from turnout.store import Outcome, open_store, sql  # noqa: E402
from turnout.store.cards import CardRow  # noqa: E402
from turnout.store.keys import Key  # noqa: E402
from turnout.store.migrate import migrations  # noqa: E402
from turnout.store.study import StudyTurn  # noqa: E402

MADE_MS = 1_750_000_000_000


def fill(path: Path) -> None:
    """Something in every table: parts, a session, an outcome, a breach, an answer, a word of a human's."""
    with open_store(str(path), config="") as store:
        platform = ask("You are a direct and concise assistant", "assist", session="s", tenant="acme")
        for decision in (
            ask("Define entropy"),
            ask("What is the weather tomorrow and who won the match yesterday?", "sources", session="s"),
            taught("second", "a question a model was asked"),
            with_model(platform, verdict=Verdict(("RETRIEVAL",), 0.9)),
        ):
            store.record(decision)
            store.reply(decision, "an answer; with 'quotes'\nand two lines")
            store.settle(
                decision, Outcome(slot="main", retrieval=True, cost_usd=0.25, sources=("web",), extra={"n": 1})
            )
            store.records(decision.query.tenant or "").judge(decision.id, "wrong", by="me", note="no: 100 %")
        store.keys.add(Key("k1", "0" * 64, "a key", "acme", profiles=("study",), budget_usd=1.5))
        store.spend(platform, "k1", 0.25)
        study = store.study("acme")
        session = study.open_session("s", 1)
        study.add(session.id, StudyTurn(platform.id, "Define entropy", "Disorder.", "standalone_definition", 2))
        study.end(session.id, "Entropy.", 3)
        store.cache.put("result", "acme", "0" * 32, b'{"text": "kept"}', 1, 2**52, 10)
        store.cards.put([CardRow("c1", "It's so.", "historical", "True", "", True, False, MADE_MS, '{"id": "c1"}')])


def dump(path: Path, number: int) -> Iterator[str]:
    """The database as it would be after this step, with the rows it has."""
    with contextlib.closing(sqlite3.connect(path)) as filled, contextlib.closing(sqlite3.connect(":memory:")) as old:
        old.execute(sql.SCHEMA_TABLE)
        for step in migrations("sqlite")[:number]:
            for statement in step.statements:
                old.execute(statement)
            applied = {"number": step.number, "name": step.name, "checksum": step.checksum, "applied_ms": MADE_MS}
            old.execute(sql.ADD_APPLIED, applied)
        there = {name for (name,) in old.execute("select name from sqlite_master where type = 'table'")}
        for table in there.intersection(TABLES):
            columns = ", ".join(row[1] for row in old.execute(f"pragma table_info({table})"))
            for row in filled.execute(f"select {columns} from {table}"):  # noqa: S608
                old.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)  # noqa: S608
        old.commit()
        yield from old.iterdump()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "filled.db"
        fill(path)
        for step in migrations("sqlite"):
            file = FOLDER / f"schema-{step.number:04}.sql"
            if "--anew" in sys.argv or not file.exists():
                file.write_text("\n".join(dump(path, step.number)) + "\n", encoding="utf-8")
                print(file)


if __name__ == "__main__":
    main()
