"""The documentation assistant: what reaches a model, how often the right page is found, and what is refused.

Manual pages: NL2Bash's questions over the tldr pages; the weight of vectors was set on one half of them (by the hash of
the command line), the other half is what is checked. The Python documentation: Debian's python3.11-doc, with questions
of our own (`benchmarks/docs/`): how often a labelled page is found, and which questions are refused; the line was
fitted to one half of them (by the hash of the question). Vectors are those of the installed sentence embedder.

    python benchmarks/assistants_docs.py --work DIR    about twenty minutes; with the same DIR again, a few
    python benchmarks/assistants_docs.py --check       exit code 1 when a target is missed
    python benchmarks/assistants_docs.py --write       write anew what reaches a model: look at the difference
"""

import argparse
import asyncio
import contextlib
import gzip
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console

from report import Table, markdown, show
from study.target import Check, tell_files, told
from turnout.apps.assist.app import LEAST, Action, AssistApp, follow_policy
from turnout.apps.assist.event import NO_CONTEXT, AskContext
from turnout.apps.assist.library import LOOK_S, Libraries, open_libraries
from turnout.apps.assist.retrieve import VECTORS, relevance, retrieve, topic_of
from turnout.apps.assist.routes import last_of
from turnout.apps.caller import Budget, Caller
from turnout.core.decision import Decision
from turnout.core.embed import Embeds
from turnout.core.query import Query
from turnout.models.embed import find_embedder
from turnout.runtime.runtime import Runtime
from turnout.search import Filters, Results
from turnout.search.fuse import LEVEL
from turnout.store import Store, open_store
from turnout.testing import Reply, ScriptedProvider

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent / "docs"
GOLDEN = HERE / "golden"
PACKAGE = "python3.11-doc"
# What of it is read: what a programmer asks, and not the history of releases, nor the indexes of names.
READ = ("library", "tutorial", "howto", "reference", "faq", "using", "glossary.html")
CALLER = Caller("", "", frozenset(("ask",)), Budget())


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 130)
    with contextlib.ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        tables, checks = measure(work, options)
    tables.append(verdict(checks))
    for table in tables:
        show(console, table)
    if options.output:
        options.output.write_text("\n".join(["# Documentation\n", *map(markdown, tables)]), encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The documentation assistant.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data",
        help="folder that holds nl2bash_tldr/ (default: $TURNOUT_DATA, else ../shared/data)",
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep indexes here; the next run reads what changed")
    parser.add_argument("--only", metavar="PART", action="append", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--write", action="store_true", help="write what reaches a model anew")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


def measure(work: Path, options: argparse.Namespace) -> tuple[list[Table], list[Check]]:
    tables: list[Table] = []
    checks: list[Check] = []
    if not options.only:
        read_both(work, options.data)
    for name in options.only or PARTS:
        found, held = PARTS[name](work, options)
        tables += found
        checks += held
    return tables, checks


Part = tuple[list[Table], list[Check]]


# --- what reaches a model


class Asked(NamedTuple):
    route: str
    query: str
    context: AskContext


CONTEXT = AskContext(
    selected_text="client.get(url)",
    editor_content="import client\n\nclient.get(url)\n",
    extra_context='{"used": "80 %", "plan": "pro"}',
    user_info='{"name": "Ada"}',
)
GOLDEN_ASKED = (
    Asked("RETRIEVAL", "How often is a request retried?", CONTEXT),
    Asked("CODE_GENERATION", "Write a call that is retried twice", CONTEXT),
    Asked("CONVERSATIONAL", "Say that again, shorter", CONTEXT),
    Asked("PLATFORM", "How much of my quota is left?", CONTEXT),
)
CLIENT = {
    "1.0": "# Client\n\n## Retries\n\nA request is retried three times. Set retries to change that.\n",
    "2.0": "# Client\n\n## Retries\n\nA request is retried five times. Set max_retries to change that.\n",
}


class Bot(NamedTuple):
    app: AssistApp
    store: Store
    main: ScriptedProvider
    small: ScriptedProvider
    log: Path

    async def ask(self, query: str, context: AskContext = NO_CONTEXT, declared: str | None = None) -> Any:
        asked = Query(query, session="golden", declared=declared)
        decision = await self.app.decide(asked, CALLER, context)
        return await last_of(self.app.act(decision, asked, CALLER, context))


@contextlib.asynccontextmanager
async def assisting(folder: Path, plan: Callable[[Decision], Action] = follow_policy) -> AsyncIterator[Bot]:
    async with ScriptedProvider(Reply("Five times.")) as big, ScriptedProvider(Reply("Well.")) as small:
        slots = {"main": big, "conversational": small}
        file = folder / "turnout.toml"
        file.write_text(
            "\n".join(
                f'[models.{name}]\nmodel = "x/{name}"\nbase_url = "{one.base_url}"' for name, one in slots.items()
            ),
            encoding="utf-8",
        )
        store = open_store(str(folder / "log.db"), config=str(file), text="full")
        runtime = Runtime(store, profile="assist", config=str(file))
        libraries = open_libraries(folder / "client.db")
        for version, text in CLIENT.items():
            place = folder / f"client-{version}"
            place.mkdir(exist_ok=True)
            (place / "client.md").write_text(text, encoding="utf-8")
            libraries.ingest(place, "client", version)
        app = AssistApp(runtime, libraries, plan=plan, fence=lambda: "===== fence =====", least=0.0)
        try:
            yield Bot(app, store, big, small, folder / "log.db")
        finally:
            await runtime.close()


def golden(work: Path, options: argparse.Namespace) -> Part:
    """For each type, the request as it comes in, byte for byte."""

    async def collect() -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            async with assisting(Path(folder)) as bot:
                await bot.ask("How often is a request retried?")
                bot.store.flush(10.0)
                found = {}
                for one in GOLDEN_ASKED:
                    await bot.ask(one.query, one.context, one.route)
                    provider = bot.main if one.route in ("RETRIEVAL", "CODE_GENERATION") else bot.small
                    found[one.route] = provider.requests[-1].raw
                    bot.store.flush(10.0)
                return found

    rows, same = [], 0
    for route, raw in asyncio.run(collect()).items():
        path = GOLDEN / f"{route.lower()}.json"
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        equal = path.is_file() and path.read_bytes() == raw
        same += equal
        messages = json.loads(raw)["messages"]
        rows.append([route, f"{len(raw):,}", " ".join(one["role"] for one in messages), "same" if equal else "FAIL"])
    note = "Against benchmarks/docs/golden/, with a selection, an open file, data of the platform and an earlier turn."
    table = Table("What reaches a model", ["type", "bytes", "messages", ""], rows, note)
    return [table], [Check("each type's request as its golden file has it", f"{same} of 4", same == 4)]


def violations(work: Path, options: argparse.Namespace) -> Part:
    """Programs that do not do what their policy says."""
    planted = (
        ("RC-04", "How much of my quota is left?", lambda one: Action(True, follow_policy(one).slot)),
        ("RC-05b", "How much of my quota is left?", lambda one: Action(False, "main")),
        ("RC-05", "How often is a request retried?", lambda one: Action(True, "conversational")),
        ("", "How much of my quota is left?", follow_policy),
        ("", "How often is a request retried?", follow_policy),
    )

    async def run(folder: Path, plan: Callable[[Decision], Action], query: str) -> tuple[str, Path]:
        async with assisting(folder, plan) as bot:
            found = await bot.ask(query)
            bot.store.flush(10.0)
            broken = {row.rule for row in bot.store.records("").breaches(decision=found.decision_id)}
            return " ".join(sorted(broken)), bot.log

    rows, caught = [], 0
    for rule, query, plan in planted:
        with tempfile.TemporaryDirectory() as folder:
            stored, log = asyncio.run(run(Path(folder), plan, query))
            command = [sys.executable, "-m", "turnout.cli", "contract", "report", "--json", "--db", str(log)]
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            shown = " ".join(one["rule"] for one in json.loads(said)["rules"] if one["violations"])
        caught += stored == shown == rule
        rows.append([query, rule or "none", stored or "none", shown or "none"])
    table = Table("Violations injected on purpose", ["question", "planted", "stored", "turnout contract"], rows)
    return [table], [Check("violations are caught, stored and shown, and no others", f"{caught} of 5", caught == 5)]


# --- manual pages

# The half of a split that nothing was set on.
OTHER = 1


def halves(key: str) -> int:
    return hashlib.sha256(key.encode()).digest()[0] % 2


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in raw.decode().split("\n") if line]


def libraries_of(work: Path, name: str) -> Libraries:
    return open_libraries(work / f"{name}.db", find_embedder())


def write_tldr(work: Path, data: Path) -> Path:
    folder = work / "tldr"
    if not folder.is_dir():
        for row in read_jsonl(data / "docs.jsonl.gz"):
            path = folder / f"{row['id']}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(row["text"], encoding="utf-8")
    return folder


def read_both(work: Path, data: Path) -> None:
    """Read manual pages and the Python documentation at the same time: an embedder works on one core, and takes most of
    the time there is."""
    both = [multiprocessing.Process(target=read, args=(work, data)) for read in (read_manual, read_python)]
    for process in both:
        process.start()
    for process in both:
        process.join()


def read_manual(work: Path, data: Path) -> None:
    if (data / "nl2bash_tldr").exists():
        with contextlib.closing((libraries := libraries_of(work, "tldr")).index):
            folder, tell = write_tldr(work, data / "nl2bash_tldr"), tell_files("manual pages")
            libraries.ingest(folder, "tldr", follow=True, progress=tell)


def read_python(work: Path, data: Path) -> None:
    if (folder := fetch_python(work)) is not None:
        with contextlib.closing((libraries := libraries_of(work, "python")).index):
            libraries.ingest(folder, "python", "3.11", progress=tell_files("the Python documentation"))


def manual(work: Path, options: argparse.Namespace) -> Part:
    data = options.data / "nl2bash_tldr"
    if not data.exists():
        said = f"{data} is not there; name the folder above it with --data DIR or TURNOUT_DATA"
        return [Table("Manual pages", ["skipped"], [[said]])], []
    libraries = libraries_of(work, "tldr")
    with contextlib.closing(libraries.index):
        began = time.monotonic()
        tell = tell_files("manual pages")
        found, changes, _ = libraries.ingest(write_tldr(work, data), "tldr", follow=True, progress=tell)
        took = time.monotonic() - began
        # The half that was tuned on is for tuning: where targets are checked it is not asked.
        questions = [
            row for row in read_jsonl(data / "questions.jsonl") if not options.check or halves(row["line"]) == OTHER
        ]
        hits: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
        for row in told("manual pages, questions", questions):
            half = "other" if halves(row["line"]) == OTHER else "tuned"
            for label, files in orders(libraries, row["question"]).items():
                found_at = [file.removesuffix(".md") in row["pages"] for file in files]
                for which in (half, "all"):
                    hits.setdefault((label, which), []).append((any(found_at[:1]), any(found_at)))
        figures = {key: [100 * sum(one[at] for one in said) / len(said) for at in (0, 1)] for key, said in hits.items()}
        rows = []
        for label in MODES:
            pairs = [figures.get((label, half)) for half in ("tuned", "other", "all")]
            rows.append([label, *(f"{value:.1f}" if pair else "–" for pair in pairs for value in pair or (0.0, 0.0))])
    first, eight = figures["fused", "other"]
    note = f"{len(questions):,} questions, {found.sections:,} pages; read in {took:.0f} s ({changes.added:,} new)."
    columns = ["", "tuned on: hit@1", "hit@8", "other half: hit@1", "hit@8", "all: hit@1", "hit@8"]
    checks = [
        Check("manual pages, the half not tuned on: hit@1 at least 25", f"{first:.1f}", first >= 25),
        Check("manual pages, the half not tuned on: hit@8 at least 55", f"{eight:.1f}", eight >= 55),
    ]
    return [Table("Manual pages: NL2Bash over tldr", columns, rows, note)], checks


# The weight of vectors. A very large one leaves the order to them.
MODES = {"full text": 0.0, "vectors": 1e6, "fused": VECTORS}


def orders(libraries: Libraries, question: str) -> dict[str, list[str]]:
    """The files of the first eight hits in each mode, of one search: every hit knows its rank in either list."""
    hits = search(libraries, question, VECTORS, limit=50).hits
    found = {}
    for label, weight in MODES.items():
        scored = [
            (sum((weight if vote.by == "vectors" else 1.0) / (LEVEL + vote.rank) for vote in hit.votes), hit)
            for hit in hits
            if weight or hit.votes[0].by == "text"
        ]
        first = sorted(scored, key=lambda pair: (-pair[0], pair[1].id))[:8]
        found[label] = [hit.attributes["file"][0] for _, hit in first]
    return found


def search(libraries: Libraries, question: str, weight: float, limit: int = 8) -> Results:
    """As `retrieve` does, with another weight; at 0 the vectors have no say."""
    index = libraries.index
    embedder = index.embedder
    if not weight:
        index.embedder = None
    try:
        filters = Filters({"edition": [one.name for one in libraries.choose(question).editions]})
        return index.search(topic_of(question), filters=filters, limit=limit, vectors=weight)
    finally:
        index.embedder = embedder


# --- the Python documentation


class Labelled(NamedTuple):
    question: str
    pages: tuple[str, ...]
    kind: str


def read_questions() -> list[Labelled]:
    found = []
    for kind in ("python", "off", "near"):
        for line in (HERE / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                question, _, pages = line.partition(" | ")
                found.append(Labelled(question, tuple(pages.split()), kind))
    return found


def fetch_python(work: Path) -> Path | None:
    """The pages, of the installed package or of one that is unpacked beside the indexes."""
    folder = work / "python"
    if folder.is_dir():
        return folder
    html = Path("/usr/share/doc/python3.11/html")
    if not (html / "library").is_dir() and shutil.which("apt-get") and shutil.which("dpkg"):
        place = work / "package"
        place.mkdir(exist_ok=True)
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            quiet: dict[str, Any] = {"cwd": place, "capture_output": True}
            subprocess.run(["apt-get", "download", PACKAGE], check=True, **quiet)
            package = next(place.glob("*.deb"))
            subprocess.run(["dpkg", "-x", str(package), str(place)], check=True, **quiet)
        html = place / "usr/share/doc/python3.11/html"
    if not (html / "library").is_dir():
        return None
    folder.mkdir()
    for name in READ:
        copy = shutil.copytree if (html / name).is_dir() else shutil.copy
        copy(html / name, folder / name)
    return folder


def python_docs(work: Path, options: argparse.Namespace) -> Part:
    folder = fetch_python(work)
    if folder is None:
        said = f"there is no {PACKAGE}: apt-get install {PACKAGE}"
        return [Table("The Python documentation", ["skipped"], [[said]])], []
    libraries = libraries_of(work, "python")
    questions = read_questions()
    with contextlib.closing(libraries.index):
        edition, _, _ = libraries.ingest(folder, "python", "3.11", progress=tell_files("the Python documentation"))
        asked = [one for one in questions if one.kind == "python"]
        times: list[float] = []
        hits: dict[str, list[tuple[bool, bool]]] = {}
        for one in told("the Python documentation, questions", asked):
            began = time.process_time()
            ordered = orders(libraries, one.question)
            times.append(time.process_time() - began)
            for label, files in ordered.items():
                found_at = [file in one.pages for file in files]
                hits.setdefault(label, []).append((any(found_at[:1]), any(found_at)))
        rows = [
            [label, *(f"{100 * sum(pair[at] for pair in said) / len(said):.1f}" for at in (0, 1))]
            for label, said in hits.items()
        ]
        note = f"{len(asked)} questions, {edition.files} pages, {edition.sections:,} sections; "
        note += f"{median(times) * 1e3:.0f} ms of processor time a search, median."
        table = Table("The Python documentation", ["", "hit@1", "hit@8"], rows, note)
        refused, checks = refusals(libraries, questions)
    return [table, refused], checks


def refusals(libraries: Libraries, questions: Sequence[Labelled]) -> tuple[Table, list[Check]]:
    counts: dict[tuple[str, str, str], list[bool]] = {}
    for one in told("refusals", questions):
        for label, weight in (("with vectors", VECTORS), ("words alone", 0.0)):
            refused = relevance(search(libraries, one.question, weight)) < LEAST
            for half in ("all", "other") if halves(one.question) else ("all", "fitted"):
                counts.setdefault((label, one.kind, half), []).append(refused)
    share = {key: 100 * sum(said) / len(said) for key, said in counts.items()}
    wanted = {"python": ("answered", 95.0), "off": ("off its subject refused", 95.0), "near": ("near it refused", 70.0)}
    rows, checks = [], []
    for kind, (said, least) in wanted.items():
        row = [said]
        for label in ("with vectors", "words alone"):
            for half in ("fitted", "other", "all"):
                value = share[label, kind, half]
                value = 100 - value if kind == "python" else value
                row.append(f"{value:.1f}")
                if label == "with vectors" and half == "other":
                    checks.append(
                        Check(
                            f"Python, the half not fitted to: {said}, at least {least:g} %",
                            f"{value:.1f}",
                            value >= least,
                        )
                    )
        rows.append(row)
    columns = ["", "vectors: fitted to", "other half", "all", "words: fitted to", "other half", "all"]
    return Table(
        "Refusals", columns, rows, "Percent. 132 answerable questions, 60 off the subject, 70 near it."
    ), checks


# --- versions, changes, memory


def versions(work: Path, options: argparse.Namespace) -> Part:
    """Two versions of the same pages, which differ in what they say of themselves."""
    folder = fetch_python(work)
    if folder is None:
        return [], []
    pages = ("json", "csv", "shutil", "random", "itertools", "functools", "heapq", "datetime", "logging", "re")
    right = total = 0
    with tempfile.TemporaryDirectory() as place:
        libraries = open_libraries(Path(place) / "versions.db")
        with contextlib.closing(libraries.index):
            for version in ("3.10", "3.11"):
                copy = Path(place) / version
                copy.mkdir()
                for page in pages:
                    text = (folder / "library" / f"{page}.html").read_text(encoding="utf-8")
                    (copy / f"{page}.html").write_text(text.replace("3.11", version), encoding="utf-8")
                libraries.ingest(copy, "python", version)
            asked = [
                one.question for one in read_questions() if any(f"library/{page}.html" in one.pages for page in pages)
            ]
            for question in asked:
                plain = question.rstrip("?")
                for text, named, wanted in (
                    (question, "", "3.11"),
                    (question, "3.10", "3.10"),
                    (f"{plain} in Python 3.10?", "", "3.10"),
                    (f"In python 3.11, {plain}?", "", "3.11"),
                    (f"{plain} (v3.10)?", "", "3.10"),
                ):
                    choice = libraries.choose(text, "", named)
                    found = retrieve(libraries, choice.without_names(text), choice.editions)
                    total += 1
                    right += bool(found.passages) and {one.version for one in found.passages} == {wanted}
    said = f"{right} of {total}"
    table = Table("Two versions", ["questions", "cited in the right version"], [[str(total), said]])
    return [table], [Check("two versions: the right one is always cited", said, right == total)]


class Counting(Embeds):
    """The embedder, and how many texts it was given."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.texts = inner, 0

    @property
    def name(self) -> str:
        return str(self.inner.name)

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += len(texts)
        return self.inner.embed(texts)


def changes(work: Path, options: argparse.Namespace) -> Part:
    """One paragraph of one page among all manual pages is changed, and looked for."""
    data = options.data / "nl2bash_tldr"
    if not data.exists():
        return [], []
    folder = write_tldr(work, data)
    libraries = libraries_of(work, "tldr")
    with contextlib.closing(libraries.index):
        libraries.ingest(folder, "tldr", follow=True)
        counting = Counting(find_embedder())
        libraries.index.embedder = counting if counting.inner is not None else None
        page = folder / "common" / "tar.md"
        before = page.read_text(encoding="utf-8")
        took, cpu, embedded = [], [], []
        try:
            for number in range(5):
                time.sleep(LOOK_S)
                word = f"quokka{number}"
                counting.texts = 0
                page.write_text(
                    before.replace("> Archiving utility", f"> Archiving utility of the {word}"), encoding="utf-8"
                )
                began, worked = time.monotonic(), time.process_time()
                choice = libraries.choose(word)
                found = retrieve(libraries, f"archives of the {word}", choice.editions)
                took.append(time.monotonic() - began)
                cpu.append(time.process_time() - worked)
                embedded.append(max(0, counting.texts - 1))
                if not any(word in one.text for one in found.passages):
                    took[-1] = 99.0
        finally:
            page.write_text(before, encoding="utf-8")
            libraries.ingest(folder, "tldr", follow=True)
    said = f"{max(took):.2f} s at most"
    note = f"Of {len(took)} changes to one of 6,642 files. Windows embedded anew: {max(embedded)} at most."
    rows = [
        ["searchable after s", f"{median(took):.2f}", f"{max(took):.2f}"],
        ["processor time s", f"{median(cpu):.2f}", f"{max(cpu):.2f}"],
    ]
    table = Table("A changed paragraph", ["", "median", "at most"], rows, note)
    held = [Check("a changed paragraph is searchable in less than 1 s", said, max(took) < 1.0)]
    held.append(
        Check("only changed chunks are embedded anew (at most 8 windows)", str(max(embedded)), max(embedded) <= 8)
    )
    return [table], held


CHILD = """
import sys
from pathlib import Path
from turnout.apps.assist.library import open_libraries
from turnout.apps.assist.retrieve import retrieve
from turnout.models.embed import find_embedder
libraries = open_libraries(Path(sys.argv[1]), find_embedder())
editions = libraries.editions()
for question in ("find large files", "extract an archive", "list processes") * 5:
    retrieve(libraries, question, editions)
passages = libraries.index.search("files").passages
# Not ru_maxrss: that of a child begins with the size of the process that started it.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(passages, int(peak.split()[1]) // 1024)
"""


def memory(work: Path, options: argparse.Namespace) -> Part:
    """What a process holds that searches all manual pages, some 11,000 chunks."""
    data = options.data / "nl2bash_tldr"
    if not data.exists():
        return [], []
    libraries = libraries_of(work, "tldr")
    with contextlib.closing(libraries.index):
        libraries.ingest(write_tldr(work, data), "tldr", follow=True)
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(work / "tldr.db")], capture_output=True, text=True, check=True
    )
    passages, megabytes = map(int, ran.stdout.split())
    table = Table("Memory", ["chunks", "largest resident MB"], [[f"{passages:,}", str(megabytes)]])
    met = passages >= 10_000 and megabytes <= 300
    return [table], [Check("at most 300 MB with 10,000 chunks", f"{megabytes} MB with {passages:,}", met)]


PARTS: dict[str, Callable[[Path, argparse.Namespace], Part]] = {
    "golden": golden,
    "violations": violations,
    "manual": manual,
    "python": python_docs,
    "versions": versions,
    "changes": changes,
    "memory": memory,
}


def verdict(checks: Sequence[Check]) -> Table:
    rows = [[check.target, check.measured, "met" if check.met else "FAIL"] for check in checks]
    return Table("Targets", ["target", "measured", ""], rows)


if __name__ == "__main__":
    sys.exit(main())
