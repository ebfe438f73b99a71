"""The schema, step by step. Steps are numbered, forward only, and never edited once released: each is applied with its
checksum, and a database that knows another step under the same number, or one we do not know, is refused.

A step is a file `NNNN_name.sql` that both databases take, or a pair `NNNN_name.sqlite.sql` and
`NNNN_name.postgres.sql`. It begins with a comment that says why it exists. The decision log has one such folder, the
search index another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from turnout.core.errors import SchemaTooNew, StoreDamaged

LOG = "turnout.store.migrations"


class Migration(NamedTuple):
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def reason(self) -> str:
        """The comment it begins with."""
        lines = self.text.splitlines()
        said = lines[: next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))]
        return " ".join(line.removeprefix("--").strip() for line in said)

    @property
    def statements(self) -> list[str]:
        """A statement ends with a semicolon at the end of a line; no step has one elsewhere."""
        code = "\n".join(line for line in self.text.splitlines() if not line.startswith("--"))
        return [statement.strip() for statement in code.split(";\n") if statement.strip(" \n;")]


class AppliedMigration(NamedTuple):
    number: int
    name: str
    checksum: str


def migrations(database: str, package: str = LOG) -> list[Migration]:
    """The steps for one kind of database, in order."""
    folder = Path(str(resources.files(package)))
    found = []
    for path in sorted(folder.glob("*.sql")):
        name, _, only = path.name.removesuffix(".sql").partition(".")
        if only in ("", database):
            number, _, title = name.partition("_")
            found.append(Migration(int(number), title, path.read_text(encoding="utf-8")))
    return found


def pending(steps: Sequence[Migration], applied: Sequence[AppliedMigration], where: str) -> list[Migration]:
    """The steps still to be taken. A database that has gone another way is refused."""
    known = {step.number: step for step in steps}
    for done in applied:
        step = known.get(done.number)
        if step is None:
            raise SchemaTooNew(where, done.number, steps[-1].number)
        if step.checksum != done.checksum:
            raise StoreDamaged(
                f"{where}: step {done.number} ({done.name}) was applied from another text than this version of Turnout "
                "has: restore a backup, or open it with the version that wrote it"
            )
    taken = {done.number for done in applied}
    return [step for step in steps if step.number not in taken]
