"""What the seed sets hold: rows by label and language, how many are left without near duplicates, and how far two who
labelled by the rubric (docs/rubrics) agree.

    python benchmarks/seeds.py
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from report import Table, show
from turnout.learn.dataset import Example
from turnout.learn.dedupe import collapse_near

SEEDS = Path(__file__).parent.parent / "src" / "turnout" / "profiles" / "seeds"


class SeedSet:
    def __init__(self, path: Path) -> None:
        self.name = path.stem
        with path.open(encoding="utf-8") as lines:
            self.rows = [json.loads(line) for line in lines]

    @property
    def twice(self) -> list[tuple[str, str]]:
        """Both labels of the rows that have two, of several sources the first."""
        pairs = [(row["label"], row["second"]) for row in self.rows if "second" in row]
        return [(one.split("+")[0], other.split("+")[0]) for one, other in pairs]

    def unique(self) -> int:
        return len(collapse_near([Example(row["text"], row["label"]) for row in self.rows]))

    def line(self) -> list[str]:
        labels = Counter(row["label"].split("+")[0] for row in self.rows)
        langs = Counter(row["lang"] for row in self.rows)
        return [
            self.name,
            f"{len(self.rows):,}",
            f"{self.unique():,}",
            ", ".join(f"{name} {count:,}" for name, count in labels.most_common()),
            ", ".join(f"{name} {count:,}" for name, count in langs.most_common()),
            f"{len(self.twice):,}",
            f"{kappa(self.twice):.3f}" if self.twice else "",
        ]


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Cohen's: agreement beyond what chance would give."""
    count = len(pairs)
    agreed = sum(one == other for one, other in pairs) / count
    ours, theirs = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(ours[label] * theirs[label] for label in ours) / count**2
    return (agreed - chance) / (1 - chance)


def main() -> None:
    columns = ["set", "rows", "unique", "labels", "languages", "labelled twice", "kappa"]
    found = [SeedSet(path).line() for path in sorted(SEEDS.glob("*.jsonl"))]
    show(Console(), Table("Seed sets", columns, found))


if __name__ == "__main__":
    main()
