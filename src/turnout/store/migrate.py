"""The schema as a sequence of steps. Steps are numbered, forward only, and never edited once released: each is recorded
with its checksum, and a database with a different step under the same number, or with an unknown one, is refused.

A step is a file `NNNN_name.sql` for both databases, or a pair `NNNN_name.sqlite.sql` and `NNNN_name.postgres.sql`. It
begins with a comment that says why it exists. The decision log has one such folder, the search index another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from itertools import takewhile
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
        comment = takewhile(lambda line: line.startswith("--"), self.text.splitlines())
        return " ".join(line.removeprefix("--").strip() for line in comment)

    @property
    def statements(self) -> list[str]:
        """A statement ends with a semicolon at the end of a line; steps have no other semicolons."""
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
    """The steps that are not applied yet. A database with other steps is refused."""
    left = {step.number: step for step in steps}
    for done in applied:
        step = left.pop(done.number, None)
        if step is None:
            raise SchemaTooNew(where, done.number, steps[-1].number)
        if step.checksum != done.checksum:
            raise StoreDamaged(
                f"{where}: step {done.number} ({done.name}) was applied from another text than this version of Turnout "
                "has: restore a backup, or open it with the version that wrote it"
            )
    return list(left.values())
