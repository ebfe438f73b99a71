"""Does a question need the dear model? Learned tiers beside the rules, prompt length and a coin, by RouteLLM's rules.

MMLU and GSM8K with who answered right (weak: Mixtral 8x7B, strong: GPT-4 of November 2023), contaminated prompts left
out as RouteLLM does. APGR is the average performance gap recovered: the area under quality over the share of strong
calls, at the edges of ten bins of equal size; 0 is always-weak, 1 always-strong, a coin about one half.

Nothing is chosen on test rows: penalties, the mix of heads and all else come from cross-validation inside the training
rows. Draws are seeds 0 to 9 of NumPy's default generator, divisions into folds seeds 0 to 4 (GSM8K) and 0.

    python benchmarks/tiers.py              some ten minutes, most of it once for the vectors (kept in ~/.cache)
    python benchmarks/tiers.py --quick      a minute: three draws, no MMLU folds, no nine-model choice
    python benchmarks/tiers.py --check      exit code 1 when a target is missed
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

import turnout
from report import Table, markdown, show
from turnout.core.query import Query
from turnout.layers.artefact import Embedder
from turnout.layers.gain_model import GainModel
from turnout.learn.frontier import apgr, trace_calls
from turnout.learn.gain import GainFit, Inputs, fit_gains, read_inputs
from turnout.learn.outcome import Outcomes
from turnout.models.embed import find_embedder
from turnout.text.fold import fold as fold_text

ROOT = Path(__file__).parent.parent
CACHE = Path("~/.cache/turnout-bench").expanduser()

# The project's own promises.
MMLU_FEW, MMLU_FOLDS, GSM8K_FOLDS = 0.60, 0.65, 0.63
LABELS, DRAWS, QUICK_DRAWS, FOLDS, COINS = 1500, 10, 3, 5, 10
# GSM8K is small: one division into folds moves its APGR by a point or two.
GSM8K_SEEDS = 5
BATCH = 256
# Three limits that leave out one row in 200 each.
MOST_OWN = 0.02
SMALL_TALK = ("hi", "hello there", "thanks!", "good morning", "how are you?", "ok", "yes please", "bye", "hola", "你好")
ELSEWHERE = (
    ("CLINC150", "clinc150/full_train.jsonl", "text"),
    ("Banking77", "banking77/train.jsonl", "text"),
    ("Arena-Hard", "prompts/arena_hard_v0.1.jsonl", "prompt"),
)
PRINTED = ("random", "prompt length", "tiers rules", "n-grams + shape", "+ vectors")


class Set(NamedTuple):
    name: str
    texts: list[str]
    folded: list[str]
    quality: np.ndarray  # a column for each tier, cheapest first
    tiers: tuple[str, ...]
    inputs: Inputs
    rules: np.ndarray  # what the rules of `tiers` say, as a number that rises with the tier
    costs: tuple[float, ...] | None = None


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


class Scores(NamedTuple):
    """For each contender the APGR and the share of strong calls for half and for 80 % of the gap, a row a run."""

    runs: dict[str, list[tuple[float, float, float]]]

    def mean(self, name: str) -> tuple[float, float, float]:
        half, most, calls = np.mean(self.runs[name], axis=0)
        return float(half), float(most), float(calls)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 130)
    if not (options.data / "routellm" / "mmlu.jsonl").exists():
        console.print(f"skipped: {options.data}/routellm is not there; name its folder with --data DIR or TURNOUT_DATA")
        return 0
    embedder = find_embedder(options.embedder)
    name = embedder.name if embedder is not None else "none: turnout-build-minilm builds it"
    console.print(f"embedder: {name}\n", highlight=False)
    tables: list[Table] = []
    checks: list[Check] = []

    def put(table: Table) -> None:
        tables.append(table)
        show(console, table)

    started = time.monotonic()
    gsm8k = load_pair(options.data, "gsm8k", embedder)
    mmlu = load_pair(options.data, "mmlu", embedder)
    best = "+ vectors" if embedder is not None else "n-grams + shape"

    draws = QUICK_DRAWS if options.quick else DRAWS
    few = run_draws(mmlu, draws, known(embedder))
    rest = len(mmlu.texts) - LABELS
    note = f"{LABELS:,} labels drawn {draws} times (seeds 0 to {draws - 1}), the other {rest:,} tested."
    put(render(f"MMLU, {LABELS:,} labels", few, note))
    checks.append(judge(f"MMLU with {LABELS:,} labels", few.mean(best)[0], MMLU_FEW))

    for one, seeds, target in ((gsm8k, GSM8K_SEEDS, GSM8K_FOLDS), (mmlu, 1, MMLU_FOLDS)):
        if options.quick and one is mmlu:
            continue
        found = run_folds(one, seeds, known(embedder))
        divided = f"divided {seeds} times (seeds 0 to {seeds - 1})" if seeds > 1 else "seed 0"
        note = f"{len(one.texts):,} prompts, {FOLDS} folds, {divided}: one curve over all held-out predictions."
        put(render(f"{one.name.upper()}, {FOLDS} folds", found, note))
        checks.append(judge(f"{one.name.upper()}, {FOLDS} folds", found.mean(best)[0], target))
    put(transfer(gsm8k, mmlu, known(embedder)))
    told, strange = pass_on(mmlu, gsm8k, options.data, embedder)
    put(told)
    checks += strange
    if not options.quick and (options.data / "llmrouter_uiuc" / "train.jsonl").exists():
        put(choose_of_nine(options.data, embedder))
    rows = [[check.target, check.measured, "ok" if check.met else "FAIL"] for check in checks]
    put(Table("Targets", ["target", "measured", ""], rows, f"{time.monotonic() - started:.0f} s in all."))
    if options.output:
        options.output.write_text("\n".join(["# Learned tiers\n", *map(markdown, tables)]), encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learned tiers by RouteLLM's own rules.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data",
        help="folder that holds routellm/ and llmrouter_uiuc/ (default: $TURNOUT_DATA, else ../shared/data)",
    )
    parser.add_argument("--embedder", type=Path, metavar="DIR", help="an embedder elsewhere than the installed one")
    parser.add_argument("--quick", action="store_true", help="fewer draws, no MMLU folds, no nine-model choice")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(arguments)
    options.data = Path(options.data)
    return options


def known(embedder) -> Embedder | None:
    return Embedder(embedder.name, embedder.width) if embedder is not None else None


# --- data


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def load_pair(data: Path, name: str, embedder) -> Set:
    rows = read_rows(data / "routellm" / f"{name}.jsonl")
    rows = [row for row in rows if not row["contaminated"]]
    quality = np.array([[row["weak_mixtral"], row["strong_gpt4"]] for row in rows], dtype=float)
    return prepare(name, [row["prompt"] for row in rows], quality, ("weak", "strong"), embedder)


def prepare(name: str, texts: list[str], quality: np.ndarray, tiers: tuple[str, ...], embedder, costs=None) -> Set:
    profile = turnout.load_profile("tiers", config="")
    signals = next(place.call for place in profile.layers if place.id == "signals")
    readings = [profile.read(Query(text)) for text in texts]
    said = [signals(reading) for reading in readings]
    # The tier first, the sum of the signals where tiers are equal.
    rules = np.array([10 * profile.routes.index(verdict.routes[0]) + verdict.scores["score"] for verdict in said])
    folded = [reading.folded for reading in readings]
    inputs = read_inputs(folded)
    if embedder is not None:
        inputs = inputs._replace(vector=cached_vectors(name, folded, embedder))
    return Set(name, texts, folded, quality, tiers, inputs, rules, costs)


def cached_vectors(name: str, folded: list[str], embedder) -> np.ndarray:
    told = hashlib.sha256("\0".join(folded).encode("utf-8", "replace")).hexdigest()[:8]
    path = CACHE / f"tiers-{name}-{told}-{embedder.name}.npy"
    if path.exists():
        return np.load(path, allow_pickle=False)
    inputs = [text[:2000] for text in folded]
    vectors = np.concatenate([embedder.embed(inputs[at : at + BATCH]) for at in range(0, len(inputs), BATCH)])
    CACHE.mkdir(parents=True, exist_ok=True)
    np.save(path, vectors)
    return vectors


# --- runs


def predict(one: Set, train: np.ndarray, test: np.ndarray, embedder: Embedder | None) -> dict[str, np.ndarray]:
    """Expected gains of every tier on the test rows, by each setting, from the training rows alone."""
    unknown = np.full((len(train), len(one.tiers)), np.nan)
    outcomes = Outcomes(tuple(one.texts[at] for at in train), one.tiers, one.quality[train], unknown)
    costs = dict(zip(one.tiers, one.costs, strict=True)) if one.costs else None
    return expect(fit_gains(outcomes, some(one.inputs, train), embedder=embedder, costs=costs, seed=0), one, test)


def some(inputs: Inputs, rows: np.ndarray) -> Inputs:
    vector = inputs.vector[rows] if inputs.vector is not None else None
    return Inputs(inputs.keys[rows], inputs.ngram[rows], inputs.shape[rows], vector)


def expect(fitted: GainFit, one: Set, rows: np.ndarray) -> dict[str, np.ndarray]:
    """What each setting expects of every tier on these rows, as it would be served."""
    model = GainModel(fitted.draft, fitted.weights)
    found = {"n-grams + shape": np.array([model.weigh(one.folded[at]).gains for at in rows])}
    if fitted.vector is not None:
        found["+ vectors"] = np.array([model.weigh(one.folded[at], one.inputs.vector[at]).gains for at in rows])
    return found


def calls_for(kept: float, shares: np.ndarray, means: np.ndarray, weak: float, strong: float) -> float:
    """The share of strong calls at which so much of the gap is recovered, between points on a straight line."""
    recovered = (means - weak) / (strong - weak)
    # Quality may fall between two points by chance; the first crossing counts.
    return float(np.interp(kept, np.maximum.accumulate(recovered), shares))


def score(one: Set, rows: np.ndarray, scores: dict[str, np.ndarray]) -> dict[str, tuple[float, float, float]]:
    weak, strong = one.quality[rows, 0], one.quality[rows, 1]
    found = {}
    for name, value in scores.items():
        shares, means = trace_calls(value, weak, strong)
        calls = [calls_for(kept, shares, means, weak.mean(), strong.mean()) for kept in (0.5, 0.8)]
        found[name] = (apgr(value, weak, strong), *calls)
    return found


def baselines(one: Set, rows: np.ndarray) -> dict[str, tuple[float, float, float]]:
    coins = [score(one, rows, {"": np.random.default_rng(seed).random(len(rows))})[""] for seed in range(COINS)]
    lengths = np.array([len(one.texts[at]) for at in rows], dtype=float)
    told = score(one, rows, {"prompt length": lengths, "tiers rules": one.rules[rows]})
    return {"random": tuple(map(float, np.mean(coins, axis=0))), **told}


def run_draws(one: Set, draws: int, embedder: Embedder | None) -> Scores:
    runs: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(one.texts))
        train, test = np.sort(order[:LABELS]), np.sort(order[LABELS:])
        gains = {name: found[:, 1] for name, found in predict(one, train, test, embedder).items()}
        for name, found in {**baselines(one, test), **score(one, test, gains)}.items():
            runs.setdefault(name, []).append(found)
    return Scores(runs)


def run_folds(one: Set, seeds: int, embedder: Embedder | None) -> Scores:
    """Every prompt predicted by a fit without its fold; one curve over all of them, once for each division."""
    rows = np.arange(len(one.texts))
    runs: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(seeds):
        folds = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
        gains: dict[str, np.ndarray] = {}
        for fold in range(FOLDS):
            train, test = rows[folds != fold], rows[folds == fold]
            for name, found in predict(one, train, test, embedder).items():
                gains.setdefault(name, np.zeros(len(rows)))[test] = found[:, 1]
        for name, found in {**baselines(one, rows), **score(one, rows, gains)}.items():
            runs.setdefault(name, []).append(found)
    return Scores(runs)


def transfer(one: Set, other: Set, embedder: Embedder | None) -> Table:
    """Trained on one set and tested on the other: what words tell does not carry over."""
    rows = []
    for source, target in ((one, other), (other, one)):
        train = np.arange(len(source.texts))
        if len(train) > 3000:
            train = np.sort(np.random.default_rng(0).choice(train, 3000, replace=False))
        test = np.arange(len(target.texts))
        found = score(target, test, {n: g[:, 1] for n, g in predict_across(source, train, target, embedder).items()})
        rows += [[f"{source.name} to {target.name}", name, f"{value[0]:.3f}"] for name, value in found.items()]
    note = "Information: outcomes of other questions do not help. Train on your own."
    return Table("Trained elsewhere", ["from, to", "heads", "APGR"], rows, note)


def predict_across(source: Set, train: np.ndarray, target: Set, embedder: Embedder | None) -> dict[str, np.ndarray]:
    unknown = np.full((len(train), 2), np.nan)
    outcomes = Outcomes(tuple(source.texts[at] for at in train), source.tiers, source.quality[train], unknown)
    fitted = fit_gains(outcomes, some(source.inputs, train), embedder=embedder, seed=0)
    return expect(fitted, target, np.arange(len(target.texts)))


def pass_on(one: Set, other: Set, data: Path, embedder) -> tuple[Table, list[Check]]:
    """How much of other kinds of text is passed on, and how much of its own kind, held out."""
    order = np.random.default_rng(0).permutation(len(one.texts))
    train, test = np.sort(order[:LABELS]), np.sort(order[LABELS : 2 * LABELS])
    unknown = np.full((len(train), 2), np.nan)
    outcomes = Outcomes(tuple(one.texts[at] for at in train), one.tiers, one.quality[train], unknown)
    fitted = fit_gains(outcomes, some(one.inputs, train), embedder=known(embedder), seed=0)
    model = GainModel(fitted.draft, fitted.weights)
    sets = {f"{one.name}, not seen": [one.folded[at] for at in test], other.name: other.folded}
    sets["small talk"] = list(SMALL_TALK)
    for name, path, field in ELSEWHERE:
        if (data / path).exists():
            sets[name] = [fold_text(row[field]).text for row in read_rows(data / path)[:LABELS]]
    rows, shares = [], {}
    for name, folded in sets.items():
        vectors = cached_vectors(f"unlike-{name.replace(' ', '-')}", list(folded), embedder) if embedder else None
        found = [model.is_unlike(text, vectors[at] if vectors is not None else None) for at, text in enumerate(folded)]
        shares[name] = float(np.mean(found))
        rows.append([name, f"{len(folded):,}", f"{shares[name]:.1%}"])
    own = shares[f"{one.name}, not seen"]
    checks = [
        Check(f"{one.name.upper()}: at most {MOST_OWN:.0%} of its own kind passed on", f"{own:.1%}", own <= MOST_OWN),
        Check("small talk: all passed on", f"{shares['small talk']:.0%}", shares["small talk"] == 1.0),
    ]
    note = f"Trained on {LABELS:,} prompts of {one.name.upper()}. What is unlike them goes to the next layer."
    return Table("Passed on", ["prompts", "how many", "passed on"], rows, note), checks


def choose_of_nine(data: Path, embedder) -> Table:
    """Which of nine models: the one expected to answer best, whatever it costs, and at two budgets."""
    rows = read_rows(data / "llmrouter_uiuc" / "train.jsonl")
    listed = read_rows(data / "llmrouter_uiuc" / "llm_candidates.jsonl")
    prices = {row["name"]: row["input_price"] + row["output_price"] for row in listed}
    models = tuple(sorted(rows[0]["scores"], key=lambda name: (prices[name], name)))
    quality = np.array([[row["scores"][model] for model in models] for row in rows], dtype=float)
    costs = tuple(float(prices[model]) for model in models)
    nine = prepare("llmrouter", [row["question"] for row in rows], quality, models, embedder, costs)
    folds = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    every = np.arange(len(rows))
    single = np.zeros(len(rows), dtype=int)
    chosen: dict[str, np.ndarray] = {}
    for fold in range(FOLDS):
        train, test = every[folds != fold], every[folds == fold]
        single[test] = int(np.argmax(quality[train].mean(axis=0)))
        for name, gains in predict(nine, train, test, known(embedder)).items():
            chosen.setdefault(name, np.zeros(len(rows), dtype=int))[test] = np.argmax(gains, axis=1)

    def told(name: str, picked: np.ndarray) -> list[str]:
        got, cost = quality[every, picked].mean(), np.array(costs)[picked].mean()
        return [name, f"{100 * got:.1f}", f"{cost:.2f}"]

    lines = [told("best single model", single), *(told(f"ours, {name}", picked) for name, picked in chosen.items())]
    lines.append(told("the best, known beforehand", np.argmax(quality, axis=1)))
    note = f"{len(rows):,} questions of 14 tasks, {FOLDS} folds (seed 0). Information."
    return Table("One of nine models", ["chosen by", "quality", "$ a million tokens, in + out"], lines, note)


# --- tables


def render(title: str, scores: Scores, note: str) -> Table:
    rows = []
    for name in PRINTED:
        if name in scores.runs:
            value, half, most = scores.mean(name)
            runs = [run[0] for run in scores.runs[name]]
            spread = f"{min(runs):.3f} to {max(runs):.3f}" if len(runs) > 1 else ""
            rows.append([name, f"{value:.3f}", spread, f"{half:.0%}", f"{most:.0%}"])
    return Table(title, ["by", "APGR", "runs", "calls for 50 %", "calls for 80 %"], rows, note)


def judge(name: str, value: float, least: float) -> Check:
    return Check(f"{name}: APGR at least {least:.2f}", f"{value:.3f}", value >= least)


if __name__ == "__main__":
    sys.exit(main())
