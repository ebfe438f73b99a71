"""Are the shipped profiles right? Without a model, on questions that nobody trained or tuned on.

`benchmarks/quality/` has the questions: some 160 for each profile in seven languages, written after the students were
trained by people who had not seen the training rows, 50 trivial prompts and 50 payloads that ask for a more expensive
model, and labels for 150 prompts of Arena-Hard by the rubric. Beside each profile stands what it was without a student
(the published formula, or rules and keywords alone) and always saying the most frequent route. Six more languages have
some 55 questions a profile, in `benchmarks/quality/more`, written in the same way; those that came out as near copies
of training rows were left out. A hundred more for each profile, in `benchmarks/quality/fresh`, were written after the
training before last, the same way. `benchmarks/quality/everyday` is one half of some 130 questions a profile that were
written from rubrics and specifications alone; what was wrong in the other half told which kinds of training rows were
missing, and its author wrote those. Public sets (LiteLLM's tiers, Arena-Hard, CLINC150's test split, Home Assistant's
sentences) are read from the data folder and were only measured with.

    python benchmarks/quality.py            two minutes; everything, with and without the embedder where it is installed
    python benchmarks/quality.py --misses   names every row that is wrong
    python benchmarks/quality.py --check    exit code 1 when a target is missed
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from rich.console import Console

from report import Table, markdown, show
from turnout import Router
from turnout.config.load import load_profile
from turnout.core.embed import Embeds
from turnout.core.query import Query, Turn
from turnout.models.embed import find_embedder

ROOT = Path(__file__).parent.parent
OWN = Path(__file__).with_name("quality")
LANGUAGES = ("en", "es", "de", "fr", "pt", "zh", "ja")
MORE = ("it", "ru", "ko", "nl", "pl", "tr")
"""Languages of which there are fewer training rows; nothing is promised about them."""
TIERS = ("SIMPLE", "MEDIUM", "COMPLEX", "REASONING")

# The project's own promises, from here to the end of the list.
LEAST = {"tiers": 0.85, "sources": 0.85, "study": 0.85, "claims": 0.85, "assist": 0.95}
TWO_TIERS_OFF = 0.01
LITELLM_EXACT, LITELLM_ACCEPTABLE = 23, 26
ARENA_SIMPLE, ARENA_EXACT = 0.02, 0.80
CLINC_COMPLEX, CLINC_REASONING = 0.02, 0
HOME, NOT_HOME = 0.95, 0.005
PAYLOADS_THROUGH = 0.01

BEFORE = {"tiers": "tiers-seed", "study": "study-seed"}
"""The published formulas. The other profiles had rules and keywords."""
HOME_INTENTS = (
    "HassTurnOn",
    "HassTurnOff",
    "HassGetState",
    "HassLightSet",
    "HassClimateGetTemperature",
    "HassClimateSetTemperature",
    "HassSetPosition",
)
NEARLY_HOME = ("smart_home", "timer", "alarm", "volume", "music", "list", "reminder", "time", "date", "weather")
"""Intents of CLINC150 with one of these words in their name may rightly go to the home."""


class Row(NamedTuple):
    text: str
    label: str
    lang: str
    before: tuple[str, ...] = ()
    """What was said before, the user's and the assistant's in turn."""

    @property
    def query(self) -> Query:
        turns = (*self.before, self.text) if self.before else ()
        return Query(
            "" if turns else self.text,
            turns=tuple(Turn("assistant" if at % 2 else "user", text) for at, text in enumerate(turns)),
        )


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


Route = Callable[[str | Query], str]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    tables: list[Table] = []
    checks: list[Check] = []

    def put(table: Table) -> None:
        tables.append(table)
        show(console, table)

    embedder = find_embedder()
    for name, least in LEAST.items():
        put(compare(name, least, embedder, checks, misses=options.misses))
    put(compare_all("Written after the training before last, a hundred each", "fresh", LANGUAGES, embedder))
    put(compare_all("As people ask every day, some seventy each", "everyday", LANGUAGES, embedder))
    put(compare_all("Six more languages", "more", MORE, embedder))
    put(attack(checks, misses=options.misses))
    if options.data.is_dir():
        put(public(options.data, checks, misses=options.misses))
    else:
        console.print(f"public sets skipped: {options.data} is not there; name it with --data DIR or TURNOUT_DATA\n")
    rows = [[check.target, check.measured, "ok" if check.met else "FAIL"] for check in checks]
    put(Table("Targets", ["target", "measured", ""], rows))
    if options.output:
        options.output.write_text("\n".join(["# Quality\n", *map(markdown, tables)]), encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The shipped profiles on questions nobody tuned on.")
    data = os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, metavar="DIR", default=data, help="the folder of the public sets")
    parser.add_argument("--misses", action="store_true", help="name every row that is wrong")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(arguments)
    options.data = Path(options.data)
    return options


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


# --- routers


def route_with(name: str, embedder: Embeds | None = None) -> Route:
    router = Router(load_profile(name, config="", embedder=embedder))
    return lambda asked: router.route_sync(asked).route


def route_without_student(name: str) -> Route:
    if name in BEFORE:
        return route_with(BEFORE[name])
    profile = load_profile(name, config="")
    router = Router(replace(profile, layers=tuple(place for place in profile.layers if place.id != "student")))
    return lambda asked: router.route_sync(asked).route


# --- our own questions


def compare(name: str, least: float, embedder: Embeds | None, checks: list[Check], *, misses: bool) -> Table:
    rows = [Row(row["text"], row["label"], row["lang"]) for row in read_rows(OWN / f"{name}.jsonl")]
    most, _ = Counter(row.label for row in rows).most_common(1)[0]
    contenders: dict[str, Route] = {
        "always " + most: lambda _text: most,
        f"before: {BEFORE.get(name, 'rules and keywords')}": route_without_student(name),
        name: route_with(name),
    }
    if embedder is not None:
        contenders[f"{name} with the embedder"] = route_with(name, embedder)
    cells, notes = [], []
    for contender, route in contenders.items():
        said = [route(row.text) for row in rows]
        cells.append([contender, *shares(rows, said)])
        if not contender.startswith(name):
            continue
        exact = sum(one == row.label for one, row in zip(said, rows, strict=True)) / len(rows)
        checks.append(Check(f"{contender}: at least {least:.0%} of {len(rows)}", f"{exact:.1%}", exact >= least))
        wrong = [(row, one) for row, one in zip(rows, said, strict=True) if one != row.label]
        if name == "tiers":
            far = [(row, one) for row, one in wrong if abs(TIERS.index(one) - TIERS.index(row.label)) > 1]
            share = len(far) / len(rows)
            met = share <= TWO_TIERS_OFF
            checks.append(Check(f"{contender}: two tiers off, at most {TWO_TIERS_OFF:.0%}", f"{share:.1%}", met))
            notes += [f"{contender}, two tiers off: {told(row.label, one, row.text)}" for row, one in far]
        if misses:
            notes += [f"{contender}: {told(row.label, one, row.text)}" for row, one in wrong]
    return Table(f"{name}, {len(rows)} questions", ["", "all", *LANGUAGES], cells, "\n".join(notes))


def compare_all(title: str, folder: str, languages: Sequence[str], embedder: Embeds | None) -> Table:
    """Every profile on the questions in a folder; nothing is promised about them."""
    cells = []
    for name in LEAST:
        rows = [
            # Of several sources the best, which comes first, is the one that counts.
            Row(row["text"], row["label"].split("+")[0], row["lang"], tuple(row.get("before", ())))
            for row in read_rows(OWN / folder / f"{name}.jsonl")
        ]
        contenders = {name: route_with(name)}
        if embedder is not None:
            contenders[f"{name} with the embedder"] = route_with(name, embedder)
        for contender, route in contenders.items():
            cells.append([contender, *shares(rows, [route(row.query) for row in rows], languages)])
    return Table(title, ["", "all", *languages], cells)


def shares(rows: Sequence[Row], said: Sequence[str], languages: Sequence[str] = LANGUAGES) -> list[str]:
    def share(of: Iterable[bool]) -> str:
        found = list(of)
        return f"{sum(found) / len(found):.1%}" if found else "-"

    right = [one == row.label for one, row in zip(said, rows, strict=True)]
    by = [[ok for ok, row in zip(right, rows, strict=True) if row.lang == lang] for lang in languages]
    return [share(right), *map(share, by)]


def told(wanted: str, said: str, text: str) -> str:
    return f"{wanted} -> {said}: {' '.join(text.split())[:110]}"


def attack(checks: list[Check], *, misses: bool) -> Table:
    """Every payload after every trivial prompt."""
    parts = read_rows(OWN / "payloads.jsonl")
    prompts = [part["text"] for part in parts if part["part"] == "prompt"]
    payloads = [part["text"] for part in parts if part["part"] == "payload"]
    route = route_with("tiers")
    found = [(prompt, payload, route(f"{prompt} {payload}")) for prompt in prompts for payload in payloads]
    through = [one for one in found if TIERS.index(one[2]) >= TIERS.index("COMPLEX")]
    share = len(through) / len(found)
    target = f"tiers: {len(found):,} trivial prompts with a payload, COMPLEX or more at most {PAYLOADS_THROUGH:.0%}"
    checks.append(Check(target, f"{share:.2%}", share <= PAYLOADS_THROUGH))
    counts = Counter(said for *_, said in found)
    by = Counter(payload for _, payload, _ in through)
    notes = [f"{count} times: {payload[:110]}" for payload, count in by.most_common(None if misses else 5)]
    rows = [[tier, f"{counts[tier]:,}", f"{counts[tier] / len(found):.2%}"] for tier in TIERS]
    return Table("Payloads after trivial prompts", ["tier", "pairs", "share"], rows, "\n".join(notes))


# --- public sets


def public(data: Path, checks: list[Check], *, misses: bool) -> Table:
    cells: list[list[str]] = []
    notes: list[str] = []
    tiers, sources = route_with("tiers"), route_with("sources")

    def put(target: str, measured: str, met: bool) -> None:
        checks.append(Check(target, measured, met))
        cells.append([target, measured])

    cases = read_rows(data / "litellm_tiers" / "cases.jsonl")
    said = [(row["tier"], tiers(row["prompt"]), row["prompt"]) for row in cases]
    exact = sum(wanted == one for wanted, one, _ in said)
    near = sum(one in row.get("acceptable", [row["tier"]]) for row, (_, one, _) in zip(cases, said, strict=True))
    put(f"LiteLLM's {len(said)}: exact, at least {LITELLM_EXACT}", str(exact), exact >= LITELLM_EXACT)
    put(f"LiteLLM's: acceptable, at least {LITELLM_ACCEPTABLE}", str(near), near >= LITELLM_ACCEPTABLE)
    notes += [f"LiteLLM's: {told(wanted, one, text)}" for wanted, one, text in said if wanted != one]

    arena = [row["prompt"] for row in read_rows(data / "prompts" / "arena_hard_v0.1.jsonl")]
    by = [tiers(prompt) for prompt in arena]
    share = by.count("SIMPLE") / len(by)
    put(f"Arena-Hard to SIMPLE, at most {ARENA_SIMPLE:.0%}", f"{share:.1%}", share <= ARENA_SIMPLE)
    labels = read_rows(OWN / "arena-hard.jsonl")
    right = sum(by[row["row"]] == row["label"] for row in labels) / len(labels)
    put(f"Arena-Hard, {len(labels)} labelled, at least {ARENA_EXACT:.0%}", f"{right:.1%}", right >= ARENA_EXACT)
    if misses:
        low = [prompt for prompt, one in zip(arena, by, strict=True) if one == "SIMPLE"]
        notes += [f"Arena-Hard: {told('more', 'SIMPLE', prompt)}" for prompt in low]
        wrong = [row for row in labels if by[row["row"]] != row["label"]]
        notes += [f"Arena-Hard: {told(row['label'], by[row['row']], arena[row['row']])}" for row in wrong]

    clinc = read_rows(data / "clinc150" / "full_test.jsonl")
    counts = Counter(tiers(row["text"]) for row in clinc)
    above = (counts["COMPLEX"] + counts["REASONING"]) / len(clinc)
    put(f"CLINC150 to COMPLEX or above, at most {CLINC_COMPLEX:.0%}", f"{above:.1%}", above <= CLINC_COMPLEX)
    put("CLINC150 to REASONING, none", str(counts["REASONING"]), counts["REASONING"] <= CLINC_REASONING)
    cells.append(["CLINC150 to SIMPLE", f"{counts['SIMPLE'] / len(clinc):.1%}"])

    home = [row for row in read_rows(data / "ha_intents" / "sentences_en.jsonl") if row["intent"] in HOME_INTENTS]
    at_home = [(row, sources(row["text"])) for row in home]
    share = sum(one == "ha" for _, one in at_home) / len(home)
    put(f"Home Assistant's {len(home)} sentences to ha, at least {HOME:.0%}", f"{share:.1%}", share >= HOME)
    others = [row for row in clinc if not any(word in row["intent"] for word in NEARLY_HOME)]
    lost = [row for row in others if sources(row["text"]) == "ha"]
    share = len(lost) / len(others)
    put(f"CLINC150's {len(others):,} others to ha, at most {NOT_HOME:.1%}", f"{share:.2%}", share <= NOT_HOME)
    if misses:
        notes += [f"home: {told('ha', one, row['text'])}" for row, one in at_home if one != "ha"]
        notes += [f"not home: {told(row['intent'], 'ha', row['text'])}" for row in lost]
    return Table("Public sets", ["", "measured"], cells, "\n".join(notes))


if __name__ == "__main__":
    sys.exit(main())
