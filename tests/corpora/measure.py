"""How the shipped profiles do on their own measured cases: how often they are right, how often a model would be asked.

Run as a script it shows both and what is taken for what; with `--write` it records the baseline that the tests hold.
"""

import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import turnout
from turnout.config.cases import Case, Result, read_cases, run_cases
from turnout.config.load import shipped_file

BASELINE = Path(__file__).with_name("baseline.json")


class Score(NamedTuple):
    rows: int
    right: int
    asked: int
    """Rows no local layer was sure of: a model would be asked, or the fallback or a held verdict used."""
    right_alone: int
    """Right ones among the rows that were decided locally."""
    confusion: Counter[tuple[str, str]]
    """(wanted, got) to how often."""

    @property
    def accuracy(self) -> float:
        return points(self.right, self.rows)

    @property
    def asked_share(self) -> float:
        return points(self.asked, self.rows)

    @property
    def alone_accuracy(self) -> float:
        return points(self.right_alone, self.rows - self.asked)


def points(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


@cache
def router(profile: str) -> turnout.Router:
    """Without the user's own settings, so that everybody measures the same profile."""
    return turnout.load(profile, config="")


def case_file(profile: str) -> Path | None:
    named = router(profile).profile.resolved.get("cases")
    return shipped_file(profile).parent / named if named else None


@cache
def cases(profile: str) -> tuple[Case, ...]:
    file = case_file(profile)
    return tuple(read_cases(file)) if file is not None else ()


def profiles() -> list[str]:
    """Shipped profiles that name a file of cases."""
    return [profile for profile in turnout.profile_names() if case_file(profile) is not None]


def measured(profile: str) -> list[Case]:
    return [case for case in cases(profile) if not case.must]


def measure(profile: str) -> Score:
    results = list(run_cases(router(profile), measured(profile)))
    alone = [result for result in results if not _is_asked(result)]
    return Score(
        rows=len(results),
        right=sum(map(_is_right, results)),
        asked=len(results) - len(alone),
        right_alone=sum(map(_is_right, alone)),
        confusion=Counter((result.case.route, result.decision.route) for result in results),
    )


def _is_right(result: Result) -> bool:
    """A measured row claims a route, or all of them."""
    return not result.misses


def _is_asked(result: Result) -> bool:
    who, how = result.decision.outcome
    return who == "F" or how == "h"


def render(profile: str, score: Score) -> str:
    routes = router(profile).profile.routes
    width = max(map(len, routes))
    lines = [
        f"{profile}: {score.accuracy:.2f} % of {score.rows} right; {score.asked_share:.2f} % would ask a model, "
        f"{score.alone_accuracy:.2f} % of the others right",
        f"  {'wanted, got':{width}}  {'  '.join(f'{route:>9.9}' for route in routes)}",
    ]
    for wanted in routes:
        counts = "  ".join(f"{score.confusion[wanted, got]:>9}" for got in routes)
        lines.append(f"  {wanted:{width}}  {counts}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    scores = {profile: measure(profile) for profile in profiles() if measured(profile)}
    for profile, score in scores.items():
        print(render(profile, score), end="\n\n")
    if "--write" in arguments:
        baseline = {
            profile: {"rows": score.rows, "accuracy": score.accuracy, "asked_share": score.asked_share}
            for profile, score in scores.items()
        }
        BASELINE.write_text(json.dumps(baseline, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
