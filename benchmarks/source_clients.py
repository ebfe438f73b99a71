"""The clients of sources on labelled data: passages found behind the real kiwix-serve and in ZIM files without it,
answers about whole homes.

XQuAD, en/es/de: 240 paragraphs a language as the pages of a book, 1,190 questions; a hit is the right page first.
ha_questions: 17 homes behind a double of Home Assistant; an answer is right if it holds one of the expected words, a
request is if the thing it is about is named. The data are read from their folder and are no part of Turnout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from apps.sources.real import HAS_KIWIX, kiwix_serve, write_zim  # noqa: E402 - the real server, as the tests start it
from report import Table, show  # noqa: E402
from turnout.apps.sources.settings import open_sources  # noqa: E402
from turnout.apps.sources.source import SourceAnswer, SourceQuestion  # noqa: E402
from turnout.testing.source import HomeDouble  # noqa: E402

LANGUAGES = {"en": "eng", "es": "spa", "de": "deu"}
# The targets: R@1 in per cent, answers of twelve, and the share of requests whose thing is named.
FOUND = {"en": 94.0, "es": 90.0, "de": 89.0}
ANSWERED, NAMED = 11, 0.9


Begin = Callable[[str], None]
"""Told what is measured next."""


class Check(NamedTuple):
    what: str
    figure: float
    target: float | None
    """None: it is only told."""

    @property
    def met(self) -> bool:
        return self.target is None or self.figure >= self.target

    @property
    def wanted(self) -> str:
        return "no target" if self.target is None else f"at least {self.target:g}"


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


async def found_first(data: Path, place: str, language: str, folder: Path) -> float:
    """`place`: where the book is, as the settings say it."""
    file = folder / f"{language}.toml"
    file.write_text(f'[sources.kiwix]\n{place}\nbooks = ["x{language}"]\n', encoding="utf-8")
    sources = open_sources(file)
    questions = rows(data / "xquad" / f"questions_{language}.jsonl")
    right = 0
    for row in questions:
        result = await sources.sources["kiwix"].ask(SourceQuestion(row["question"], language))
        right += isinstance(result, SourceAnswer) and result.passages[0].url.endswith(f"/p{row['paragraph']}.html")
    await sources.close()
    return 100 * right / len(questions)


def measure_kiwix(data: Path, begin: Begin) -> list[Check]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        books = []
        for language, code in LANGUAGES.items():
            paragraphs = rows(data / "xquad" / f"paragraphs_{language}.jsonl")
            # One title for all: the set has none, and a number in it would be taken for one in a question.
            pages = {f"p{row['id']}": ("Paragraph", row["text"]) for row in paragraphs}
            books.append(write_zim(folder, f"x{language}", pages, code))
        checks = []
        with kiwix_serve(folder, *books) as url:
            for language, target in FOUND.items():
                begin(f"kiwix-serve, {language}")
                first = asyncio.run(found_first(data, f'url = "{url}"', language, folder))
                checks.append(Check(f"kiwix-serve, R@1 {language}", first, target))
        if find_spec("libzim") is None:
            return checks
        for language, book in zip(FOUND, books, strict=True):
            begin(f"ZIM file, {language}")
            first = asyncio.run(found_first(data, f'zim = ["{book}"]', language, folder))
            checks.append(Check(f"ZIM file without a server, R@1 {language}", first, None))
        return checks


def states(home: dict[str, Any], setup: dict[str, Any]) -> list[dict[str, Any]]:
    """A home of the data set as Home Assistant tells it."""
    told = []
    for entity in home["entities"]:
        said = setup.get(entity["id"], {})
        more: dict[str, Any] = {**entity["attributes"], **said.get("attributes", {}), "friendly_name": entity["name"]}
        state, domain = said.get("state", entity["state"]), entity["id"].partition(".")[0]
        for ours, theirs in (
            ("unit_of_measurement", "native_unit_of_measurement"),
            ("temperature", "native_temperature" if domain == "weather" else "target_temperature"),
            ("temperature_unit", "native_temperature_unit"),
        ):
            if theirs in more:
                more[ours] = more[theirs]
        match domain:
            case "weather":
                state = more.get("condition")
            case "climate":
                state = more.get("hvac_mode")
            case "sensor" if "native_value" in more:
                state = str(more["native_value"])
            case "cover" | "valve" if not isinstance(state, str):
                state = "open" if state else "closed"
            case "light" if state is None:
                state = "on" if more.get("brightness") else "off"
            case _ if isinstance(state, bool):
                state = "on" if state else "off"
            case _:
                pass
        told.append({"entity_id": entity["id"], "state": str(state or "unknown"), "attributes": more})
    return told


async def ask_home(home: dict[str, Any], row: dict[str, Any], folder: Path) -> tuple[str, int]:
    """What is said, and how often something was switched."""
    areas = {name.lower().replace(" ", "_"): name for name in home["areas"]}
    placed = {one["id"]: one["area"] for one in home["entities"] if one["area"]}
    async with HomeDouble(states(home, row["setup"]), areas, placed) as double:
        file = folder / "ha.toml"
        file.write_text(f'[sources.ha]\nurl = "{double.url}"\ntoken = {{ env = "TURNOUT_BENCH" }}\n', encoding="utf-8")
        sources = open_sources(file)
        result = await sources.sources["ha"].ask(SourceQuestion(row["question"]))
        await sources.close()
        return result.text if isinstance(result, SourceAnswer) else "", double.switched


def measure_homes(data: Path) -> list[Check]:
    os.environ["TURNOUT_BENCH"] = "token"
    homes = {home["home"]: home for home in rows(data / "ha_questions" / "homes.jsonl")}
    answered = named = requests = switched = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(data / "ha_questions" / "questions.jsonl"):
            home = homes[row["home"]]
            text, touched = asyncio.run(ask_home(home, row, Path(folder)))
            switched += touched
            if wanted := row.get("expect_any_of"):
                is_right = any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE) for one in wanted)
                answered += is_right and "calendar.personal" not in row["entities"]
            else:
                names = {one["name"] for one in home["entities"] if one["id"] in row["entities"]}
                requests += 1
                named += any(f"{name}:" in text for name in names)
    return [
        Check("homes, answers right of 12 without calendars", answered, ANSWERED),
        Check(f"homes, of {requests} requests the thing is named", named / requests, NAMED),
        Check("homes, nothing switched", float(-switched), 0.0),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    default = Path(os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, metavar="DIR", default=default, help="folder of xquad and ha_questions")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    if not (options.data / "xquad").exists():
        console.print(f"skipped: {options.data}/xquad is not there; name its folder with --data DIR", markup=False)
        return 0
    checks = measure(options.data, lambda what: print(what, file=sys.stderr, flush=True))
    show(console, render(checks))
    return 1 if options.check and not all(one.met for one in checks) else 0


def measure(data: Path, begin: Begin) -> list[Check]:
    begin("homes")
    checks = measure_homes(data)
    if HAS_KIWIX:
        return checks + measure_kiwix(data, begin)
    begin("skipped: no kiwix-serve; make real installs it")
    return checks


def render(checks: Sequence[Check]) -> Table:
    lines = [[one.what, f"{one.figure:.4g}", one.wanted, "ok" if one.met else "FAIL"] for one in checks]
    return Table("Clients of sources", ["what", "figure", "target", ""], lines)


if __name__ == "__main__":
    sys.exit(main())
