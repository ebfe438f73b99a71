"""How often a question finds its paragraph: XQuAD in English, Spanish and German, in both databases.

Each language is an index of 240 paragraphs and 1,190 questions, as notes or pages are: nothing but the text is given,
the language is guessed. The ranking was tuned on the English part, what words count that are only spelt alike on every
other question (the first, the third, …) of each part, and the words that questions are made with on half of them, by
a hash of the question.
Vectors are those of the installed sentence embedder, which knows English alone.

    python benchmarks/search.py              a few minutes; it says on stderr what it is at
    python benchmarks/search.py --check      exit code 1 when a target is missed
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console

from report import Table, markdown, show
from turnout.models.embed import find_embedder
from turnout.search import Index, IndexDocument, open_index

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

# The project's own promises: R@1 of the embedded index, and how far PostgreSQL may be below it.
TARGETS = {"en": 95.0, "es": 93.0, "de": 92.0}
BELOW = 4.0


class Score(NamedTuple):
    first: float  # percent of questions whose paragraph is the first hit
    five: float  # … among the first five
    guessed: float  # percent of questions whose language was told right
    search_ms: float  # processor time of this process, median
    add_ms: float  # … for a paragraph, vectors included


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 130)
    folder = options.data / "xquad"
    if not folder.exists():
        message = f"{folder} is not there; name the folder above it with --data DIR or TURNOUT_DATA"
        show(console, Table("XQuAD", ["skipped"], [[message]]))
        return 0
    embedder = find_embedder(options.embedder)
    scores: dict[tuple[str, str, bool], Score] = {}
    with places() as where:
        for kind, url in where.items():
            for lang in TARGETS:
                for vectors in (None, embedder) if embedder else (None,):
                    name = f"{lang}_{'vectors' if vectors else 'words'}"
                    print(f"{datetime.now():%H:%M:%S} {kind}, {name}", file=sys.stderr, flush=True)
                    with open_index(f"{url}/{name}.db" if kind == "SQLite" else url, name, embedder=vectors) as index:
                        scores[kind, lang, vectors is not None] = measure(index, folder, lang)
    tables = [render(scores, embedder is not None), verdict(checks := judge(scores))]
    for table in tables:
        show(console, table)
    if options.output:
        options.output.write_text("\n".join(["# Search\n", *map(markdown, tables)]), encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search: how often a question finds its paragraph.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data",
        help="folder that holds xquad/ (default: $TURNOUT_DATA, else ../shared/data)",
    )
    parser.add_argument(
        "--embedder", type=Path, metavar="DIR", help="the sentence embedder (default: the installed one)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def places() -> Iterator[dict[str, str]]:
    """Where indexes can be made: a folder, and a PostgreSQL if its wheel is installed."""
    from postgres_server import PostgresServer, wheel

    with contextlib.ExitStack() as stack:
        found = {"SQLite": stack.enter_context(tempfile.TemporaryDirectory())}
        if (package := wheel()) is not None:
            server = stack.enter_context(PostgresServer(package))
            server.start()
            found["PostgreSQL"] = stack.enter_context(server.database())
        yield found


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def measure(index: Index, folder: Path, lang: str) -> Score:
    paragraphs = read(folder / f"paragraphs_{lang}.jsonl")
    began = time.process_time()
    index.upsert(IndexDocument(row["id"], row["text"]) for row in paragraphs)
    added = (time.process_time() - began) / len(paragraphs)
    first = five = guessed = 0
    times = []
    questions = read(folder / f"questions_{lang}.jsonl")
    for row in questions:
        began = time.process_time()
        found = index.search(row["question"], limit=5)
        times.append(time.process_time() - began)
        ids = [hit.id for hit in found.hits]
        first += ids[:1] == [row["paragraph"]]
        five += row["paragraph"] in ids
        guessed += found.lang == lang
    share = 100 / len(questions)
    return Score(first * share, five * share, guessed * share, median(times) * 1e3, added * 1e3)


def render(scores: dict[tuple[str, str, bool], Score], embedded: bool) -> Table:
    rows = [
        [f"{kind}, {lang}, {'words and vectors' if vectors else 'words'}", *(f"{value:.1f}" for value in score)]
        for (kind, lang, vectors), score in scores.items()
    ]
    note = "Percent of 1,190 questions a language; processor time of this process, without the server's."
    note += "" if embedded else " No sentence embedder is installed: words alone."
    return Table("XQuAD", ["index", "R@1", "R@5", "language", "search ms", "add ms"], rows, note)


def judge(scores: dict[tuple[str, str, bool], Score]) -> list[Check]:
    checks = []
    for (kind, lang, vectors), score in scores.items():
        if vectors:
            words = scores[kind, lang, False]
            target = f"{kind}, {lang}: with vectors no lower than by words alone"
            checks.append(Check(target, f"{score.first:.1f} against {words.first:.1f}", score.first >= words.first))
        else:
            aim = TARGETS[lang] - (BELOW if kind == "PostgreSQL" else 0.0)
            checks.append(Check(f"{kind}, {lang}: R@1 at least {aim:g}", f"{score.first:.1f}", score.first >= aim))
    return checks


def verdict(checks: Sequence[Check]) -> Table:
    rows = [[check.target, check.measured, "met" if check.met else "FAIL"] for check in checks]
    return Table("Targets", ["target", "measured", ""], rows)


if __name__ == "__main__":
    sys.exit(main())
