"""What is remembered of long conversations: LoCoMo, the mean share of the evidence that is found."""

import gzip
import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from report import Table
from turnout.apps.study.memory import LOOKED, Memories, documents
from turnout.models.embed import find_embedder
from turnout.search import Index, open_index

from .target import Check, Part, missing, read_rows, told

FOUND = 10
# The project's promises, with the sentence embedder.
SESSION, TURN = 94.0, 70.0
KINDS = {1: "several turns", 2: "time", 3: "outside knowledge", 4: "one turn", 5: "not answerable"}


def measure(folder: Path, embedder: Path | None) -> Part:
    if not folder.exists():
        return missing(folder, "Memory")
    with gzip.open(folder / "sessions.jsonl.gz", "rt", encoding="utf-8") as file:
        sessions = [json.loads(line) for line in file.read().split("\n") if line]
    questions = [row for row in read_rows(folder / "questions.jsonl") if row["evidence"]]
    rows, best = [], (0.0, 0.0)
    installed = find_embedder(embedder)
    with tempfile.TemporaryDirectory() as place:
        for name, vectors in (("words", None), ("words and vectors", installed)):
            if name == "words and vectors" and vectors is None:
                continue
            with open_index(f"{place}/{name}.db", embedder=vectors) as index:
                began = time.perf_counter()
                turns = fill(index, sessions)
                built = time.perf_counter() - began
                best, by_kind = ask(Memories(index), questions, turns)
                rows.append([name, f"{best[0]:.1f}", f"{best[1]:.1f}", f"{built:.0f}", *by_kind])
    columns = [
        "index",
        f"session R@{FOUND}",
        f"turn R@{FOUND}",
        "built s",
        *(f"{kind}: turn" for kind in KINDS.values()),
    ]
    note = f"{len(questions):,} questions with evidence, {len(sessions)} sessions. Full text alone was 93.4 / 63.3."
    note += "" if installed else " No sentence embedder is installed: words alone."
    checks = [
        Check(f"LoCoMo session R@{FOUND} >= {SESSION:g}", f"{best[0]:.1f}", best[0] >= SESSION),
        Check(f"LoCoMo turn R@{FOUND} >= {TURN:g}", f"{best[1]:.1f}", best[1] >= TURN),
    ]
    return [Table("Memory: LoCoMo", columns, rows, note)], checks


def fill(index: Index, sessions: list[dict[str, Any]]) -> dict[str, str]:
    """Remember every session as one of a reader's; which turn each document is."""
    turns: dict[str, str] = {}
    made = []
    for session in sessions:
        said = [f"{turn['speaker']}: {turn['text']}{picture(turn)}" for turn in session["turns"]]
        found = list(documents(session["conversation"], str(session["session"]), session["when"], said))
        turns |= {document.id: turn["id"] for document, turn in zip(found, session["turns"], strict=True)}
        made += found
    index.upsert(made)
    return turns


def picture(turn: dict[str, Any]) -> str:
    return f" [{turn['image']}]" if turn.get("image") else ""


def ask(
    memories: Memories, questions: list[dict[str, Any]], turns: dict[str, str]
) -> tuple[tuple[float, float], list[str]]:
    """Percent of the evidence among the first sessions and turns, and the latter for each kind of question."""
    by_session, by_turn = [], defaultdict(list)
    for row in told("memory, questions", questions):
        reader, evidence = row["conversation"], set(row["evidence"])
        wanted = {turn[1:].partition(":")[0] for turn in evidence}
        hits = memories.search(reader, row["question"], LOOKED)
        sessions = set(list(dict.fromkeys(hit.id.split("/")[1] for hit in hits))[:FOUND])
        found = {turns[hit.id] for hit in hits[:FOUND]}
        by_session.append(len(wanted & sessions) / len(wanted))
        by_turn[row["category"]].append(len(evidence & found) / len(evidence))
    kinds = [f"{100 * mean(by_turn[kind]):.1f}" for kind in KINDS]
    return (100 * mean(by_session), 100 * mean([one for kind in KINDS for one in by_turn[kind]])), kinds
