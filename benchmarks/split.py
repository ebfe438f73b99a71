"""How well compound questions are taken apart, beside a split at every "and" and comma.

Joined questions (MixSNIPS, MixATIS: how many intents) measure what is found; single questions (CLINC150, Banking77)
measure what is cut that should not be. MixSNIPS and the single questions were looked at while the rules were written,
MixATIS was not. No trigger phrases are given: what is measured is grammar alone. Beside it the plans of `sources`,
whose keywords and student make more cuts possible, the one between two question marks among them.

    python benchmarks/split.py              a few seconds
    python benchmarks/split.py --check      exit code 1 when a target is missed
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console

import turnout
from report import Table, markdown, show
from turnout.core.query import Query
from turnout.text.condition import read_condition
from turnout.text.split import split

ROOT = Path(__file__).parent.parent

# The project's own promises.
COUNT_ACCURACY = 95.0
FALSE_SPLITS = 0.7
HOSTILE_MS = 200.0
HOSTILE_CHARACTERS = 1_000_000
HOSTILE_CALLS = 3
ROUNDS = 3

HOSTILE = (
    "and ",
    ", ",
    "if ",
    " y ",
    "also ",
    "a and ",
    "x, ",
    "find x and ",
    "call Ann and ",
    "if a, b and ",
    "é and ",
)

Splitter = Callable[[str], list[str]]


class Corpus(NamedTuple):
    name: str
    path: str
    joined: bool  # rows say how many intents they join; else each is a single question
    target: bool  # it has a target; else it is only reported


CORPORA = (
    Corpus("MixSNIPS dev", "mixsnips/MixSNIPS_clean_dev.jsonl", joined=True, target=True),
    Corpus("MixATIS dev", "mixsnips/MixATIS_clean_dev.jsonl", joined=True, target=False),
    Corpus("CLINC150 train", "clinc150/full_train.jsonl", joined=False, target=True),
    Corpus("Banking77 train", "banking77/train.jsonl", joined=False, target=True),
)


class Question(NamedTuple):
    text: str
    parts: int


class Score(NamedTuple):
    right: float  # percent with the right number of parts
    few: float
    many: float
    microseconds: float  # processor time, the median round's mean


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


def naive(text: str) -> list[str]:
    """Every "and" and comma cuts; a single word is no part."""
    pieces = re.split(r"\s*(?:,|\band\b)\s*(?:(?:and|then|also)\b\s*)*", text)
    return [piece for piece in pieces if len(piece.split()) > 1]


def planned() -> Splitter:
    """The parts that the shipped profile `sources` plans, from its keywords and whatever else it decides by."""
    profile = turnout.load_profile("sources", config="")
    plan = profile.split
    assert plan is not None
    return lambda text: [part.query.text for part in plan(profile.read(Query(text)))] or [text]


CONTENDERS: dict[str, Splitter] = {"turnout": split, "turnout, sources": planned(), "and / comma": naive}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # A pipe has no width of its own; the widest table has this one.
    console = Console(width=None if sys.stdout.isatty() else 130)
    tables: list[Table] = []
    checks: list[Check] = []
    for corpus in CORPORA:
        source = options.data / corpus.path
        if not source.exists():
            message = f"{source} is not there; name its folder with --data DIR or TURNOUT_DATA"
            tables.append(Table(corpus.name, ["skipped"], [[message]]))
            continue
        questions = load(source, corpus)
        scores = {name: measure(splitter, questions) for name, splitter in CONTENDERS.items()}
        tables.append(render(corpus, questions, scores))
        checks += judge(corpus, "turnout", scores)
        if not corpus.joined:
            checks += judge(corpus, "turnout, sources", scores)
    hostile, limits = attack()
    checks += limits
    tables += [hostile, verdict(checks)]
    for table in tables:
        show(console, table)
    if options.output:
        options.output.write_text("\n".join(["# Compound questions\n", *map(markdown, tables)]), encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compound questions: what is found, and what is cut wrongly.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data",
        help="folder that holds mixsnips/, clinc150/ and banking77/ (default: $TURNOUT_DATA, else ../shared/data)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


def load(source: Path, corpus: Corpus) -> list[Question]:
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    return [Question(row["text"], len(row["intents"]) if corpus.joined else 1) for row in rows]


def measure(splitter: Splitter, questions: Sequence[Question], *, rounds: int = ROUNDS) -> Score:
    counts = [len(splitter(question.text)) or 1 for question in questions]
    off = [count - question.parts for count, question in zip(counts, questions, strict=True)]
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for question in questions:
            splitter(question.text)
        times.append((time.process_time() - start) / len(questions))

    def share(count: int) -> float:
        return 100 * count / len(questions)

    return Score(
        right=share(off.count(0)),
        few=share(sum(one < 0 for one in off)),
        many=share(sum(one > 0 for one in off)),
        microseconds=median(times) * 1e6,
    )


def render(corpus: Corpus, questions: Sequence[Question], scores: dict[str, Score]) -> Table:
    rows = [
        [name, f"{score.right:.1f}", f"{score.few:.1f}", f"{score.many:.1f}", f"{score.microseconds:.1f}"]
        for name, score in scores.items()
    ]
    kind = "joined questions, by the number of intents" if corpus.joined else "single questions"
    note = f"{len(questions):,} {kind}. Percent; processor time a question."
    return Table(corpus.name, ["rule", "right count", "too few", "too many", "microseconds"], rows, note)


def judge(corpus: Corpus, name: str, scores: dict[str, Score]) -> list[Check]:
    if not corpus.target:
        return []
    score = scores[name]
    if corpus.joined:
        target = f"{corpus.name}: the right count for at least {COUNT_ACCURACY:g} %"
        return [Check(target, f"{score.right:.1f} %", score.right >= COUNT_ACCURACY)]
    target = f"{corpus.name}, {name}: at most {FALSE_SPLITS:g} % cut wrongly"
    return [Check(target, f"{score.many:.2f} %", score.many <= FALSE_SPLITS)]


def attack() -> tuple[Table, list[Check]]:
    """The worst call on a megabyte of one hostile unit."""
    rows = []
    worst = 0.0
    for unit in HOSTILE:
        text = unit * (HOSTILE_CHARACTERS // len(unit))
        times = [worst_ms(split, text), worst_ms(read_condition, text), worst_ms(read_condition, f"if a, {text}")]
        worst = max(worst, *times)
        rows.append([repr(unit), *(f"{one:.1f}" for one in times)])
    note = f"Worst of {HOSTILE_CALLS} calls on {HOSTILE_CHARACTERS:,} characters."
    table = Table("Hostile input, milliseconds", ["unit", "split", "condition", "consequence"], rows, note)
    target = f"a hostile megabyte: under {HOSTILE_MS:g} ms"
    return table, [Check(target, f"{worst:.1f} ms", worst < HOSTILE_MS)]


def worst_ms(work: Callable[[str], object], text: str) -> float:
    times = []
    for _ in range(HOSTILE_CALLS):
        start = time.perf_counter()
        work(text)
        times.append(time.perf_counter() - start)
    return max(times) * 1e3


def verdict(checks: Sequence[Check]) -> Table:
    rows = [[check.target, check.measured, "pass" if check.met else "FAIL"] for check in checks]
    measured = any(corpus.name in check.target for check in checks for corpus in CORPORA)
    note = "" if measured else "Without data only the time was measured."
    return Table("Targets", ["target", "measured", ""], rows, note)


if __name__ == "__main__":
    sys.exit(main())
