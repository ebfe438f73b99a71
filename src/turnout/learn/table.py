"""A table of labelled texts as people have it: a CSV, TSV or JSONL file whose columns are called what they are called.

Columns that are not named are guessed where there is one choice, and asked for where there are several. A row without a
text or a label is left out and counted; a row that cannot be read is a mistake, told with its line. Labels become
routes as they are written, but for space at their ends and for spellings that differ in case alone: callers name routes
without regard to case, so the most frequent spelling stands for all.
"""

from __future__ import annotations

import hashlib
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

from .dataset import OUT_OF_SCOPE, SHOWN, Example, Examples, folded
from .rows import BadRow, quote, read_head, read_rows

# What such columns are called, the plainest first: one that is called the first of them is meant.
TEXT_NAMES = (
    *("text", "question", "query", "prompt", "utterance", "message", "subject", "body", "content", "input"),
    *("sentence", "title", "description", "request", "ticket"),
)
LABEL_NAMES = (
    *("label", "route", "intent", "category", "class", "queue", "topic", "target", "tag", "department", "team"),
    *("type", "group"),
)
# Rows that are learnt from: of more, so many are drawn by their text. CLINC150's 15,000 of 150 labels train in a minute
# and a half on one core, and a label that has none among so many is rarer than one in five thousand.
MOST_ROWS = 20_000
# A route is a name, not a text: the longest label of Banking77, CLINC150 and HWU64 has 57 characters.
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
    """The labelled texts of a file; `text` and `label` are its columns. Raises LearnError or BadExamples."""
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
    kept = _Drawn(most)
    skipped: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    problems: list[Problem] = []
    seen = 0
    for where, row in read_rows(file, columns, columns):
        seen += 1
        try:
            if isinstance(row, BadRow):
                raise row
            said = (_read_cell(row, columns[0]).strip(), " ".join(_read_cell(row, columns[1]).split()))
        except BadRow as wrong:
            problems.append(Problem(where, str(wrong)))
            continue
        why = _why_not(*said)
        if why:
            skipped[why] += 1
            firsts.setdefault(why, where)
        else:
            kept.add(Example(said[0], said[1], where=where))
    if problems:
        raise BadExamples(problems, SHOWN)
    remarks = [f"{counted(count, 'row')} left out: {why} (first in {firsts[why]})" for why, count in skipped.items()]
    if kept.more:
        used = f"{len(kept.rows()):,} of them, drawn by their text, are used"
        remarks.append(f"{counted(seen, 'row')} in the file: {used}")
    rows, spelt = _spell_alike(kept.rows())
    found = Counter(row.label for row in rows if row.label != OUT_OF_SCOPE)
    routes = tuple(sorted(found, key=lambda name: (-found[name], name)))
    _demand_routes(file, columns, found)
    return LabelledTable(str(file), *columns, Examples(tuple(rows), (*remarks, *spelt), skipped), routes)


def choose_columns(names: Sequence[str], text: str | None, label: str | None, file: str) -> tuple[str, str]:
    """The columns of text and label: as said, else the one that is called so."""
    said = ", ".join(map(repr, names[:NAMED])) + (" and more" if len(names) > NAMED else "")
    for option, name in (("--text", text), ("--label", label)):
        if name is not None and name not in names:
            raise LearnError(f"{option} {name!r}: {file} has no such column{suggest(name, names)} (it has: {said})")
        if name is not None and names.count(name) > 1:
            raise LearnError(f"{option} {name!r}: {file} has several columns of that name: rename all but one")
    if text is not None and text == label:
        raise LearnError(f"--text and --label are both {text!r}: text and label are two columns ({file} has: {said})")
    texts = _called([name for name in names if name != label], TEXT_NAMES) if text is None else [text]
    labels = _called([name for name in names if name != text], LABEL_NAMES) if label is None else [label]
    if len(names) == 2 and len(texts) + len(labels) == 1:
        # Of two columns the other one is the other one.
        found = (texts or labels)[0]
        other = next((name for name in names if name != found), found)
        texts, labels = texts or [other], labels or [other]
    if len(texts) == len(labels) == 1 and texts != labels:
        return texts[0], labels[0]
    wanted = [option for option, found in (("--text", texts), ("--label", labels)) if len(found) != 1]
    raise LearnError(
        f"{file}: which column is the text and which the label? Say {' and '.join(wanted or ['--text', '--label'])}; "
        f"its columns are {said}" + ("" if len(names) > 1 else " (the first line of a CSV file names them)")
    )


def _called(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The columns that are called so; only the one with the plainest name, where it is there."""
    found = [name for name in dict.fromkeys(names) if name.strip().casefold() in known]
    plainest = [name for name in found if name.strip().casefold() == known[0]]
    return plainest or found


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
        return f"the label is no name of at most {LONGEST_LABEL} printable characters"
    return ""


class _Drawn:
    """Rows, in the order they came; of more than `most` those whose texts have the smallest hashes, so that neither the
    order nor the size of a file decides, and memory is bounded."""

    def __init__(self, most: int) -> None:
        self.most, self.more, self._count = most, False, 0
        self._heap: list[tuple[int, int, Example]] = []

    def add(self, row: Example) -> None:
        key = hashlib.blake2b(folded(row.text).encode(errors="replace"), digest_size=8).digest()
        # The largest hash comes first in this heap, and goes first; the number keeps rows from being compared.
        entry = (-int.from_bytes(key, "big"), self._count, row)
        self._count += 1
        if len(self._heap) < self.most:
            heapq.heappush(self._heap, entry)
        else:
            self.more = True
            heapq.heappushpop(self._heap, entry)

    def rows(self) -> list[Example]:
        return [row for _, _, row in sorted(self._heap, key=lambda entry: entry[1])]


def _spell_alike(rows: Sequence[Example]) -> tuple[list[Example], list[str]]:
    """Labels that differ in case alone become the most frequent spelling."""
    spellings: dict[str, Counter[str]] = {}
    for row in rows:
        spellings.setdefault(row.label.casefold(), Counter())[row.label] += 1
    best = {key: min(found, key=lambda name: (-found[name], name)) for key, found in spellings.items()}
    best[OUT_OF_SCOPE] = OUT_OF_SCOPE
    said = [
        f"{', '.join(repr(name) for name in sorted(found) if name != best[key])} read as {best[key]!r}"
        for key, found in spellings.items()
        if {*found} != {best[key]}
    ]
    return [replace(row, label=best[row.label.casefold()]) for row in rows], said


def _demand_routes(file: File, columns: tuple[str, str], found: Mapping[str, int]) -> None:
    label = columns[1]
    if len(found) < 2:
        have = f"only the label {next(iter(found))!r}" if found else "no label"
        raise LearnError(f"{file}: {have} in the column {label!r}: a router needs at least two")
    once = sum(count == 1 for count in found.values())
    if once * 2 > len(found) and sum(found.values()) < 2 * len(found):
        raise LearnError(
            f"{file}: {len(found):,} labels in {sum(found.values()):,} rows, most of them once: is {label!r} the "
            "column of labels? Each needs at least two texts; --label names another column"
        )
    if len(found) > MOST_LABELS:
        raise LearnError(f"{file}: {len(found):,} labels in the column {label!r}, at most {MOST_LABELS:,} are learnt")
