"""Claims: which questions get the card that answers them, and which do not.

- What the specification says must hold, and golden questions over the starter cards. On half of them the guard, the
  cards' other wordings and the local decision were developed, and on the near misses beside them; the other half was
  not read. Each with the local decision and with a model's (`claims_model.py`).
- The claims of Snopes with the tweets that were checked against them, each asked with its card in the library and as if
  it were not there; and these claims changed by `claim_mutations.py`, which must not match what they were made from.
- Speed; quotations and audits (`claims_audit.py`).

Data is in the folder that TURNOUT_DATA names; without it those sections are left out, and said so.

    python benchmarks/claims.py                      all sections, ten to fifteen minutes; how far it is, on stderr
    python benchmarks/claims.py --only golden speed  some of them
    python benchmarks/claims.py --check              exit code 1 when a target is missed
"""

import argparse
import asyncio
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import claims_audit
from claim_mutations import mutate
from claims_model import judged, timed_chat
from report import Table, markdown, show
from turnout.apps.claims.card import Card, CardConfidence, ClaimType, ClaimVerdict
from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.library import ClaimLibrary
from turnout.apps.claims.local import decide_locally
from turnout.apps.claims.match import LabelledQuestion, ObservedMatch, fit_observed, observe, share_found
from turnout.apps.claims.polarity import contradicts
from turnout.learn.bound import p_of_many
from turnout.models.embed import find_embedder
from turnout.search import open_index
from turnout.store import open_store

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "corpora" / "claims_golden.jsonl"
NEAR = ROOT / "tests" / "corpora" / "claims_near.jsonl"
SEED = 16
SPLITS = 200
BOUND = 0.05
# The threshold that the application this one follows has, for comparison.
PLAIN = 0.92
# The speed of a search is told by questions as people ask them: Snopes' titles that end with a question mark.
TIMED = 300


class Check(NamedTuple):
    promise: str
    measured: str
    kept: bool


Section = tuple[list[Table], list[Check]]


class KeptVectors:
    """An embedder that remembers: what Snopes says is embedded once, and kept in a file if there is a folder for it."""

    def __init__(self, inner: Any, folder: str | None) -> None:
        self.inner, self.name, self.width = inner, inner.name, inner.width
        self.file = Path(folder) / f"{inner.name}.npz" if folder else None
        self.known: dict[str, Any] = {}
        if self.file and self.file.exists():
            stored = np.load(self.file)
            self.known = dict(zip(stored["keys"].tolist(), stored["rows"], strict=True))

    def embed(self, texts: Sequence[str], /) -> Any:
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in texts]
        for key, text in zip(keys, texts, strict=True):
            if key not in self.known:
                self.known[key] = self.inner.embed([text])[0]
        return np.array([self.known[key] for key in keys], np.float32)

    def keep(self) -> None:
        if self.file:
            np.savez(self.file, keys=np.array(list(self.known)), rows=np.array(list(self.known.values())))


@contextmanager
def library_of(cards: Sequence[Card], embedder: Any, *, imported: bool = False) -> Iterator[ClaimLibrary]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"{folder}/log.db", config="") as store,
        ClaimLibrary(store.cards, open_index(f"{folder}/index.db", embedder=embedder)) as library,
    ):
        library.put_all(cards, imported=imported)
        yield library


# --- what must hold, and the golden questions

MARK, FLOOD = "matthew-copied-mark", "flood-worldwide"
MUST: list[tuple[str, str, tuple[str, ...]]] = [
    ("Did Matthew copy Mark?", "exact_match", ()),
    ("Couldn't divine inspiration explain it instead?", "novel_claim", (MARK,)),
    ("Did the Council of Nicaea add books to the Bible?", "novel_claim", ()),
    ("Does Isaiah 53 predict Jesus?", "novel_claim", ()),
    ("How does this relate to the flood?", "contextual", (MARK,)),
    ("What's the difference between a worldwide flood and a local flood in Genesis?", "contextual", ()),
    ("Why do people believe that vaccines cause autism?", "contextual", ()),
    ("Could God have hidden the flood evidence?", "novel_claim", ()),
    ("Which is more likely?", "contextual", (FLOOD, MARK)),
    ("Did the flood happen?", "exact_match", ()),
    ("Did Mark copy Matthew?", "novel_claim", ()),
    ("Can you put that more simply?", "contextual", (MARK,)),
    ("Can you put that more simply?", "contextual", ()),
]


def golden(embedder: Any) -> Section:
    rows = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").split("\n") if line]
    near_misses = [json.loads(line) for line in NEAR.read_text(encoding="utf-8").split("\n") if line]
    tables, checks = [], []
    for name, one in (("with the embedder", embedder), ("words alone", None)):
        if name == "with the embedder" and one is None:
            continue
        right: Counter[tuple[str, str]] = Counter()
        asked: Counter[tuple[str, str]] = Counter()
        wrong: Counter[str] = Counter()
        near: Counter[str] = Counter()
        reasoned = 0
        with library_of(starter_cards(), one) as library:
            held = sum(decide_locally(question, library, shown).mode == mode for question, mode, shown in MUST)
            for row in (*rows, *near_misses):
                decision = decide_locally(row["question"], library)
                reasoned += bool(decision.reasons and all(decision.reasons))
                half = row["half"] if row in rows else "more near misses"
                mode = row["mode"]
                key = (half, mode if row["lang"] == "en" else "other languages")
                asked[key] += 1
                is_right = decision.mode == mode and (mode != "exact_match" or decision.cards == (row["card"],))
                right[key] += is_right
                if mode != "exact_match":
                    near[half] += 1
                    wrong[half] += decision.mode == "exact_match"
            english = [row for row in rows if row["lang"] == "en"]
            lost, passed, told = judged(english, library)
        kinds = ("exact_match", "contextual", "novel_claim", "other languages")
        halves = ("developed", "held_out", "more near misses")
        cells = [
            [half, *(f"{right[half, kind]}/{asked[half, kind]}" for kind in kinds), f"{wrong[half]}/{near[half]}"]
            for half in halves
        ]
        count = sum(row["mode"] == "exact_match" for row in english)
        note = (
            f"{len(rows) + len(near_misses)} questions. With a model that is right, {count - lost} of {count} English "
            f"questions get their card; of one that calls all of them exact, the guard lets {passed} of "
            f"{len(english) - count} others pass. Of the developed half, some wordings of the cards are near copies."
        )
        tables.append(Table(f"Golden questions, {name}", ["half", *kinds, "false exact"], cells, note))
        found = sum(right[half, "exact_match"] for half in halves)
        total = len(rows) + len(near_misses)
        checks += [
            Check(f"{name}: the rows of the specification hold", f"{held}/{len(MUST)}", held == len(MUST)),
            *(
                Check(
                    f"golden, {name}: false exact on near misses under 2 % ({half})",
                    percent(wrong[half], near[half]),
                    wrong[half] < 0.02 * near[half],
                )
                for half in halves
            ),
            Check(
                f"golden, a model that calls all exact, {name}: false exact under 2 %",
                percent(passed, len(english) - count),
                passed < 0.02 * (len(english) - count),
            ),
            Check(
                f"golden, {name}: English questions that get their card, {'70' if one else '55'} %",
                percent(found, count),
                found >= (0.7 if one else 0.55) * count,
            ),
            Check(
                f"golden, {name}: a reason on every decision",
                percent(reasoned + told, total + len(english)),
                reasoned + told == total + len(english),
            ),
        ]
    return tables, checks


# --- Snopes


def snopes(embedder: Any) -> Section:
    claims, pairs = read_data("known_lies/snopes_claims.jsonl"), read_data("known_lies/snopes_pairs.jsonl")
    if not claims or embedder is None:
        return left_out("Snopes", "its data" if embedder else "the embedder")
    cards = [make_card(f"{at:05}", row["claim"]) for at, row in enumerate(claims)]
    first = found = plain = plain_wrong = 0
    seen: list[ObservedMatch] = []
    with library_of(cards, embedder, imported=True) as library:
        kept = {card.claim_text: card.twin_of or card.id for card in library.list()}
        twins = len(cards) - len(set(kept.values()))
        for pair in pairs:
            ids = [one.card.id for one in library.search(pair["tweet"], floor=False)]
            gold = kept[pair["claim"]]
            first += ids[:1] == [gold]
            found += gold in ids
            seen.append(observe(library, LabelledQuestion(pair["tweet"], gold)))
            one = seen[-1]
            plain += one.right is not None and (one.right.similarity or 0.0) >= PLAIN
            plain_wrong += one.wrong is not None and (one.wrong.similarity or 0.0) >= PLAIN
    alone, guarded = at_bound(seen, guarded=False), at_bound(seen, guarded=True)
    gate = fit_observed(seen, "snopes", guarded=True)
    proven, wrong = share_found(gate, seen)
    held, halves = split_halves(seen)
    rows = [
        ["R@1", percent(first, len(pairs))],
        ["R@5", percent(found, len(pairs))],
        ["gate at 5 % false exact: true matches found", f"{100 * alone:.1f} %"],
        ["gate and guard at 5 % false exact", f"{100 * guarded:.1f} %"],
        [f"plain cosine {PLAIN}", f"{percent(plain, len(pairs))} ({percent(plain_wrong, len(pairs))} false)"],
        ["gate and guard, fitted for 5 % at 95 %", f"{100 * proven:.1f} % ({100 * wrong:.1f} % false)"],
        ["half splits whose test rate is not significantly above 5 %", percent(held, SPLITS)],
        ["mean found on the other half", f"{100 * halves:.1f} %"],
    ]
    note = f"{len(cards):,} claims, {twins} of them linked as twins first; {len(pairs)} tweets, no split to tune on."
    checks = [
        Check("Snopes: R@1 at least 84 %", rows[0][1], first >= 0.84 * len(pairs)),
        Check("Snopes: R@5 at least 93 %", rows[1][1], found >= 0.93 * len(pairs)),
        Check("Snopes: gate at 5 % false exact finds at least 62 %", rows[2][1], alone >= 0.62),
        Check("Snopes: gate and guard find at least 48 %", rows[3][1], guarded >= 0.48),
        Check("Snopes: the bound holds in at least 95 % of half splits", rows[6][1], held >= 0.95 * SPLITS),
    ]
    return [Table("Snopes, local", ["measure", "value"], rows, note)], checks


def at_bound(seen: Sequence[ObservedMatch], *, guarded: bool) -> float:
    """The share found where exactly the bound of those without a card is admitted."""
    gate = fit_observed(seen, "snopes", guarded=guarded)
    wrong = sorted(
        (gate.score(one.wrong) for one in seen if one.wrong and not (guarded and one.wrong_refused)), reverse=True
    )
    allowed = int(BOUND * len(seen))
    least = wrong[allowed] if allowed < len(wrong) else 0.0
    hits = (
        one.right is not None and gate.score(one.right) > least and not (guarded and one.right_refused) for one in seen
    )
    return sum(hits) / len(seen)


def split_halves(seen: Sequence[ObservedMatch]) -> tuple[int, float]:
    rng = random.Random(SEED)
    held, shares = 0, []
    for _ in range(SPLITS):
        order = rng.sample(range(len(seen)), len(seen))
        half = len(seen) // 2
        gate = fit_observed([seen[at] for at in order[:half]], "snopes")
        test = [seen[at] for at in order[half:]]
        found, wrong = share_found(gate, test)
        held += p_of_many(round(wrong * len(test)), len(test), BOUND) > 1 - 0.95
        shares.append(found)
    return held, statistics.mean(shares)


# --- polarity


def polarity(_: Any) -> Section:
    claims = read_data("known_lies/snopes_claims.jsonl")
    if not claims:
        return left_out("Polarity", "its data")
    made, missed = Counter[str](), Counter[str]()
    for one in mutate([row["claim"] for row in claims]):
        made[one.kind] += 1
        missed[one.kind] += contradicts(one.mutated, one.claim) is None
    titles = [row for row in claims if row["title"].rstrip().endswith("?")]
    passed = sum(contradicts(row["title"], row["claim"]) is None for row in titles)
    rows = [[kind, f"{made[kind]:,}", percent(missed[kind], made[kind])] for kind in made]
    rows.append(["all", f"{made.total():,}", percent(missed.total(), made.total())])
    rows.append(["question titles that pass", f"{len(titles):,}", percent(passed, len(titles))])
    note = "Changed claims that the guard lets pass, were the gate to admit every one."
    checks = [
        Check("polarity: changed claims that match, at most 1 %", rows[-2][2], missed.total() <= 0.01 * made.total()),
        Check("polarity: question titles pass, at least 90 %", rows[-1][2], passed >= 0.9 * len(titles)),
    ]
    return [Table("Polarity, all Snopes claims", ["change", "number", "passes"], rows, note)], checks


# --- speed


def speed(embedder: Any) -> Section:
    """Mode 1 and a search at 10,000 cards, the embedder's own time included."""
    claims = read_data("known_lies/snopes_claims.jsonl")
    if not claims:
        return left_out("Speed", "its data")
    questions = [row["title"] for row in claims if row["title"].rstrip().endswith("?")][:: len(claims) // TIMED]
    cards = [make_card(f"{at:05}", row["claim"]) for at, row in enumerate(claims[:10_000])]
    real = embedder.inner if isinstance(embedder, KeptVectors) else embedder
    with library_of(cards, embedder, imported=True) as library:
        library.index.embedder = real
        search = timed(library.search, questions)
        decide = timed(lambda question: decide_locally(question, library), questions)
    rows = [
        ["search", f"{statistics.median(search):.1f}", f"{np.percentile(search, 95):.1f}"],
        ["mode 1 (decide locally)", f"{statistics.median(decide):.1f}", f"{np.percentile(decide, 95):.1f}"],
    ]
    checks = [
        Check("speed: search p50 under 10 ms", f"{rows[0][1]} ms", statistics.median(search) < 10),
        Check("speed: mode 1 under 50 ms (p95)", f"{rows[1][2]} ms", float(np.percentile(decide, 95)) < 50),
    ]
    for mode, limit_s in (("exact_match", 2.0), ("contextual", 10.0)):
        took = timed_chat()[mode]
        rows.append([f"{mode}, a model of 300 ms a call (slowest of five)", f"{1000 * took:.0f}", ""])
        checks.append(Check(f"speed: {mode} with a model under {limit_s:.0f} s", f"{took:.2f} s", took < limit_s))
    note = f"{len(cards):,} cards, {len(questions)} questions, one thread."
    return [Table("Speed, milliseconds", ["what", "p50", "p95"], rows, note)], checks


def timed(do: Callable[[str], object], questions: Sequence[str]) -> list[float]:
    do(questions[0])
    elapsed = []
    for question in questions:
        start = time.perf_counter()
        do(question)
        elapsed.append((time.perf_counter() - start) * 1e3)
    return elapsed


# --- quotations and audits


def audit(_: Any) -> Section:
    """What `claims_audit.py` measures."""
    folder = Path(os.environ.get("TURNOUT_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "averitec").is_dir():
        return left_out("Audits", "its data")
    targets: list[claims_audit.Target] = []
    tables = [
        asyncio.run(claims_audit.quotes(folder / "fool_me_twice", targets)),
        asyncio.run(claims_audit.audits(folder / "averitec" / "dev.jsonl.gz", None, targets)),
        asyncio.run(claims_audit.listeners(targets)),
    ]
    checks = [
        Check(f"{one.name} {'at most' if one.most else 'at least'} {one.limit:g}", f"{one.value:g}", one.holds)
        for one in targets
    ]
    return tables, checks


SECTIONS: dict[str, Callable[[Any], Section]] = {
    "golden": golden,
    "snopes": snopes,
    "polarity": polarity,
    "speed": speed,
    "audit": audit,
}


def make_card(ident: str, claim: str) -> Card:
    return Card(ident, claim, ClaimType.HISTORICAL, ClaimVerdict.FALSE, "-", "-", CardConfidence.LOW)


def read_data(name: str) -> list[dict[str, Any]]:
    file = Path(os.environ.get("TURNOUT_DATA", ROOT.parent / "shared" / "data")) / name
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def left_out(name: str, what: str) -> Section:
    return [Table(f"{name}: left out", ["why"], [[f"{what} is not here (TURNOUT_DATA, make embedder)"]])], []


def percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %" if total else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--check", action="store_true", help="exit code 1 when a target is missed")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there as well")
    parser.add_argument("--vectors", metavar="DIR", help="keep the vectors of texts there, for the next run")
    options = parser.parse_args()
    inner = find_embedder()
    embedder = None if inner is None else KeptVectors(inner, options.vectors)
    console, checks, written = Console(), [], []
    for at, name in enumerate(options.only, 1):
        print(f"{time.strftime('%H:%M:%S')} {at} of {len(options.only)}: {name}", file=sys.stderr, flush=True)
        tables, found = SECTIONS[name](embedder)
        checks += found
        for table in tables:
            show(console, table)
            written.append(markdown(table))
        if embedder is not None:
            embedder.keep()
    rows = [[one.promise, one.measured, "kept" if one.kept else "FAIL"] for one in checks]
    show(console, Table("Targets", ["promise", "measured", ""], rows))
    if options.markdown:
        Path(options.markdown).write_text("\n".join(written), encoding="utf-8")
    return int(options.check and not all(one.kept for one in checks))


if __name__ == "__main__":
    sys.exit(main())
