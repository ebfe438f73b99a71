"""Reads a table of labelled texts: a CSV, TSV or JSONL file with columns of any name.

Columns that the user does not name are guessed if there is one candidate; with several, the user is asked. A row
without a text or a label is left out and counted; a row that cannot be read is a mistake, reported with its line.
Labels become routes as they are written, except for surrounding space and for spellings that differ only in case:
routes are named without regard to case, so the most frequent spelling is used for all.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnout.core.errors import BadExamples, LearnError, Problem, suggest
from turnout.core.query import MAX_CHARACTERS
from turnout.layers.artefact import MOST_LABELS
from turnout.text.count import counted

from .dataset import OUT_OF_SCOPE, Example, Examples, folded, hash_text
from .rows import SHOWN, BadRow, quote, read_head, read_rows

# Usual names of these columns. A column with the first of these names is preferred to the others.
TEXT_NAMES = (
    *("text", "question", "query", "prompt", "utterance", "message", "subject", "body", "content", "input"),
    *("sentence", "title", "description", "request", "ticket"),
)
LABEL_NAMES = (
    *("label", "route", "intent", "category", "class", "queue", "topic", "target", "tag", "department", "team"),
    *("type", "group"),
)
# The most rows that are used; of more, this many are drawn by their text. CLINC150's 15,000 rows of 150 labels train in
# a minute and a half on one core, and a label missing from this many rows is rarer than one in five thousand.
MOST_ROWS = 20_000
# The longest label of Banking77, CLINC150 and HWU64 has 57 characters.
LONGEST_LABEL = 100
# Column names that a message lists.
NAMED = 12


class LabelledTable(Struct, frozen=True):
    file: str
    text: str
    """The column that was read as text."""
    label: str
    examples: Examples
    routes: tuple[str, ...]
    """Every label but `oos`, the most frequent first."""


def read_table(
    path: str | os.PathLike[str], *, text: str | None = None, label: str | None = None, most: int = MOST_ROWS
) -> LabelledTable:
    """The labelled texts of a file; `text` and `label` name its columns. Raises LearnError or BadExamples."""
    file = File(path)
    try:
        names = read_head(file)
    except BadRow as wrong:
        raise BadExamples([Problem(f"{file}:1", str(wrong))], SHOWN) from None
    except OSError as error:
        raise LearnError(f"{file}: cannot be read: {error.strerror or error}") from None
    if not names:
        raise LearnError(f"{file}: no rows in it: a CSV file with a header, or JSONL")
    columns = choose_columns(names, text, label, str(file))
    kept = _DrawnTable(most)
    skipped: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    problems: list[Problem] = []
    seen = 0
    for where, row in read_rows(file, columns, columns):
        seen += 1
        try:
            if isinstance(row, BadRow):
                raise row
            cells = (_read_cell(row, columns[0]).strip(), " ".join(_read_cell(row, columns[1]).split()))
        except BadRow as wrong:
            problems.append(Problem(where, str(wrong)))
            continue
        if why := _why_not(*cells):
            skipped[why] += 1
            firsts.setdefault(why, where)
        else:
            kept.add(Example(*cells, where=where))
    if problems:
        raise BadExamples(problems, SHOWN)
    remarks = [f"{counted(count, 'row')} left out: {why} (first in {firsts[why]})" for why, count in skipped.items()]
    if kept.more:
        used = f"{len(kept.rows()):,} of them, drawn by their text, are used"
        remarks.append(f"{counted(seen, 'row')} in the file: {used}")
    rows, spelling_remarks = _spell_alike(kept.rows())
    counts = Counter(row.label for row in rows if row.label != OUT_OF_SCOPE)
    routes = tuple(sorted(counts, key=lambda name: (-counts[name], name)))
    _check_labels(file, columns[1], counts)
    return LabelledTable(str(file), *columns, Examples(tuple(rows), (*remarks, *spelling_remarks), skipped), routes)


def choose_columns(names: Sequence[str], text: str | None, label: str | None, file: str) -> tuple[str, str]:
    """The columns of text and label: as named by the user, else guessed from their names."""
    listed = ", ".join(map(repr, names[:NAMED])) + (" and more" if len(names) > NAMED else "")
    for option, name in (("--text", text), ("--label", label)):
        if name is not None and name not in names:
            raise LearnError(f"{option} {name!r}: {file} has no such column{suggest(name, names)} (it has: {listed})")
        if name is not None and names.count(name) > 1:
            raise LearnError(f"{option} {name!r}: {file} has several columns of that name: rename all but one")
    if text is not None and text == label:
        raise LearnError(f"--text and --label are both {text!r}: text and label are two columns ({file} has: {listed})")
    texts = _guess([name for name in names if name != label], TEXT_NAMES) if text is None else [text]
    labels = _guess([name for name in names if name != text], LABEL_NAMES) if label is None else [label]
    if len(names) == 2 and len(texts) + len(labels) == 1:
        # If one of two columns is known, the other is the other one.
        known = (texts or labels)[0]
        other = next((name for name in names if name != known), known)
        texts, labels = texts or [other], labels or [other]
    if len(texts) == len(labels) == 1 and texts != labels:
        return texts[0], labels[0]
    wanted = [option for option, found in (("--text", texts), ("--label", labels)) if len(found) != 1]
    raise LearnError(
        f"{file}: which column is the text and which the label? Say {' and '.join(wanted or ['--text', '--label'])}; "
        f"its columns are {listed}" + ("" if len(names) > 1 else " (the first line of a CSV file names them)")
    )


def _guess(names: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The columns with a usual name; only the preferred one, if there is one."""
    candidates = [name for name in dict.fromkeys(names) if name.strip().casefold() in usual]
    preferred = [name for name in candidates if name.strip().casefold() == usual[0]]
    return preferred or candidates


def _read_cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, bool | int | float):  # JSON has labels such as 3 and true
        return str(value)
    if not isinstance(value, str | None):
        raise BadRow(f"{name!r} must be text, found {type(value).__name__} {quote(value)}")
    return value or ""


def _why_not(text: str, label: str) -> str:
    if not text or not folded(text):
        return "the text is empty"
    if not label:
        return "the label is empty"
    if len(text) > MAX_CHARACTERS:
        return f"the text has more than {MAX_CHARACTERS:,} characters"
    if len(label) > LONGEST_LABEL or not label.isprintable():
        return f"the label is not a name of at most {LONGEST_LABEL} printable characters"
    return ""


class _DrawnTable:
    """At most `most` rows, in their order. Of more, those whose texts have the smallest hashes are kept, so that the
    choice does not depend on the order of the file, and memory is bounded."""

    def __init__(self, most: int) -> None:
        self.most, self.more, self._count = most, False, 0
        self._heap: list[tuple[int, int, Example]] = []

    def add(self, row: Example) -> None:
        # The largest hash is at the top of this heap and removed first; the count keeps rows from being compared.
        entry = (-int.from_bytes(hash_text(folded(row.text)), "big"), self._count, row)
        self._count += 1
        if len(self._heap) < self.most:
            heapq.heappush(self._heap, entry)
        else:
            self.more = True
            heapq.heappushpop(self._heap, entry)

    def rows(self) -> list[Example]:
        return [row for _, _, row in sorted(self._heap, key=lambda entry: entry[1])]


def _spell_alike(rows: Sequence[Example]) -> tuple[list[Example], list[str]]:
    """Replace labels that differ only in case by the most frequent spelling."""
    spellings: dict[str, Counter[str]] = {}
    for row in rows:
        spellings.setdefault(row.label.casefold(), Counter())[row.label] += 1
    best = {key: min(counts, key=lambda name: (-counts[name], name)) for key, counts in spellings.items()}
    best[OUT_OF_SCOPE] = OUT_OF_SCOPE
    remarks = [
        f"{', '.join(repr(name) for name in sorted(counts) if name != best[key])} read as {best[key]!r}"
        for key, counts in spellings.items()
        if {*counts} != {best[key]}
    ]
    return [replace(row, label=best[row.label.casefold()]) for row in rows], remarks


def _check_labels(file: File, label: str, counts: Counter[str]) -> None:
    """Refuse a column that is hardly one of labels."""
    if len(counts) < 2:
        have = f"only the label {next(iter(counts))!r}" if counts else "no label"
        raise LearnError(f"{file}: {have} in the column {label!r}: a router needs at least two")
    once = sum(count == 1 for count in counts.values())
    if once * 2 > len(counts) and counts.total() < 2 * len(counts):
        raise LearnError(
            f"{file}: {len(counts):,} labels in {counts.total():,} rows, most of them once: is {label!r} the "
            "column of labels? Each needs at least two texts; --label names another column"
        )
    if len(counts) > MOST_LABELS:
        raise LearnError(f"{file}: {len(counts):,} labels in the column {label!r}, at most {MOST_LABELS:,} are learnt")
