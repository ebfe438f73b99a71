"""The assistants: what they send, where sentences end, what is saved and regretted, what is remembered.

Study is measured here, documentation in `assistants_docs.py`. Public data is only measured with (LoCoMo: all of it;
EWT and GSD: test splits; the golden rules of pragmatic_segmenter: all). The session of 300 questions is
`study/questions.txt`, labelled before it was run.

    python benchmarks/assistants.py                       some five minutes; with a sentence embedder, better memory
    python benchmarks/assistants.py --check               exit code 1 when a target is missed
    python benchmarks/assistants.py --only sentences      one part: requests, sentences, session, memory, docs
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from report import Table, markdown, show

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

from study import memory, sentences, session  # noqa: E402 - what they import of the tests has to be found first
from study.target import Check, Part, own_home  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 130)
    tables: list[Table] = []
    checks: list[Check] = []
    for name, measure in parts(options).items():
        if options.only in (None, name):
            began = time.monotonic()
            made, judged = measure()
            print(f"{name}: done in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            tables += made
            checks += judged
            for table in made:
                show(console, table)
    rows = [[check.target, check.measured, "met" if check.met else "FAIL"] for check in checks]
    tables.append(Table("Targets", ["target", "measured", ""], rows))
    show(console, tables[-1])
    if options.output:
        options.output.write_text("\n".join(["# Assistants\n", *map(markdown, tables)]), encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parts(options: argparse.Namespace) -> dict[str, Callable[[], Part]]:
    """Each part by its name; those of documentation if they are there."""
    found: dict[str, Callable[[], Part]] = {
        "requests": requests,
        "sentences": lambda: sentences.measure(options.data / "sentence_rules"),
        "session": lambda: session.measure(Path(__file__).parent / "study" / "questions.txt"),
        "memory": lambda: memory.measure(options.data / "locomo", options.embedder),
    }
    found["docs"] = lambda: measure_docs(options.data, options.work, ["--check"] if options.check else [])
    return found


def measure_docs(data: Path, kept: Path | None, arguments: list[str]) -> Part:
    """The documentation assistant, with indexes that are made anew unless they are kept."""
    import assistants_docs

    with tempfile.TemporaryDirectory() as folder:
        work = kept or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        return assistants_docs.measure(work, assistants_docs.parse(["--data", str(data), *arguments]))


def requests() -> Part:
    """What reaches a recording upstream for each route, in both wire formats."""
    from apps.study.golden import WIRES, golden_file, record

    rows, same = [], 0
    with tempfile.TemporaryDirectory() as folder, own_home(folder):
        for wire in WIRES:
            for route, (raw, reads) in asyncio.run(record(Path(folder), wire)).items():
                is_same = raw == golden_file(route, wire).read_bytes()
                same += is_same
                rows.append([f"{route}, {wire}", f"{len(raw):,}", str(reads), "the same" if is_same else "FAIL: other"])
    table = Table("What reaches the model", ["route and format", "bytes", "image read", "golden file"], rows)
    aim = "every request as its golden file, byte for byte"
    return [table], [Check(aim, f"{same} of {len(rows)}", same == len(rows))]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The assistants, measured.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data",
        help="folder that holds sentence_rules/ and locomo/ (default: $TURNOUT_DATA, else ../shared/data)",
    )
    parser.add_argument(
        "--embedder", type=Path, metavar="DIR", help="the sentence embedder (default: the installed one)"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the indexes of documentation here")
    parser.add_argument("--only", metavar="PART", help="requests, sentences, session, memory or docs")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
