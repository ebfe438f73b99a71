"""Fit the weights of `turnout.text.followup` and write them into `followup.toml`.

    python scripts/fit_followup.py          about a minute; needs turnout[learn]

Learnt from rows written for Turnout alone: the conversations in `seeds/conversations/followup.jsonl` but for those
marked `test`, the rows of the seed sets that have a turn before them (follow-ups) and those that have none (questions
that stand alone: their history is other questions, those that share words with them where there are any). Rows in which
a rule finds a word that points are left out: there the rules decide. The cut was chosen by cross-validation over the
conversations.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from turnout.text import followup
from turnout.text.reference import find_reference

ROOT = Path(__file__).parent.parent
TOML = ROOT / "src" / "turnout" / "text" / "followup.toml"
LANGUAGES = ("en", "es", "de", "fr", "zh", "ja")

# What a row of each kind counts. Conversations were written for this, the others were not; long questions that stand
# alone teach little. Halving or doubling one of them moves the recall at 97 % precision by a point or two.
CONVERSATION, FOLLOW_UP, SHORT, LONG = 8.0, 2.0, 0.6, 0.1
PENALTY = 0.1
# Held-out recall is 84 % at .2, with a precision of 96.7 %; 80 % at .6, with 97.7 %; 75 % at 1, with 98.4 %.
CUT = 0.6
# Shapes of seed rows that nobody says in a conversation, or only there.
STRANGE = frozenset(["code", "log", "agent", "tool", "wrapped", "article", "long", "follow-up", "followup", "multi"])
# Words that so many questions share say nothing of their subject.
COMMON = 60

MADE = "# By scripts/fit_followup.py: the weight of each feature. A sum of 0 or more needs the history."


class Row(NamedTuple):
    text: str
    history: Sequence[str]
    needs: bool
    weight: float


def main() -> None:
    rows = [row for row in (*conversations(), *follow_ups(), *questions()) if not find_reference(row.text)]
    measured = list(map(measure, rows))
    names = sorted({name for found in measured for name in found})
    matrix = np.array([[found.get(name, 0.0) for name in names] for found in measured])
    needs, weights = [row.needs for row in rows], [row.weight for row in rows]
    fitted = LogisticRegression(C=PENALTY, solver="liblinear", max_iter=3000).fit(matrix, needs, sample_weight=weights)
    found = dict(zip(names, fitted.coef_[0], strict=True))
    found["always"] += float(fitted.intercept_[0]) - CUT
    lines = [f'"{name}" = {value:.3f}' for name, value in found.items()]
    head = re.sub(r"\n\[weights\]\n.*", "", TOML.read_text("utf-8"), flags=re.DOTALL).rstrip()
    TOML.write_text("\n".join([head, "", "[weights]", MADE, *lines, ""]), "utf-8")
    print(f"{len(rows):,} rows, {sum(needs):,} of them follow-ups; {len(names)} weights")


def measure(row: Row) -> dict[str, float]:
    return followup.measure(row.text, row.history, past=find_reference(row.text, broad=True) is not None)


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in (ROOT / "seeds" / f"{name}.jsonl").read_text("utf-8").splitlines()]


def conversations() -> list[Row]:
    rows = [row for row in read("conversations/followup") if row["half"] != "test"]
    return [Row(row["text"], row["before"], row["needs"], CONVERSATION) for row in rows]


def follow_ups() -> list[Row]:
    rows = [row for name in ("tiers", "sources", "study", "claims") for row in read(name)]
    return [
        Row(row["text"], [row["before"]], True, FOLLOW_UP)
        for row in rows
        # What a tool printed is no question.
        if row.get("before")
        and row["lang"] in LANGUAGES
        and len(row["text"]) <= 120
        and set("{[\n:|").isdisjoint(row["text"])
    ]


def questions() -> list[Row]:
    chance = random.Random(0)  # noqa: S311 - the same again is the point
    by_language: dict[str, list[str]] = defaultdict(list)
    for row in (*read("tiers"), *read("sources")):
        text = row["text"]
        if row["lang"] not in LANGUAGES or row.get("before") or row["shape"] in STRANGE:
            continue
        if len(text) < 300 and "\n" not in text:
            by_language[row["lang"]].append(text)
    return [row for texts in by_language.values() for row in with_histories(texts, chance)]


def with_histories(texts: list[str], chance: random.Random) -> list[Row]:
    named = [followup.find_names(text) for text in texts]
    having: dict[str, list[int]] = defaultdict(list)
    for at, names in enumerate(named):
        for name in names:
            having[name].append(at)
    rows = []
    for at, text in enumerate(texts):
        telling = [having[name] for name in sorted(named[at]) if len(having[name]) < COMMON]
        shared = Counter(other for others in telling for other in others if other != at)
        near = [texts[other] for other, _ in shared.most_common(2)]
        alone = chance.random() < 0.4 or not near
        short = len(text.split()) <= 6 and len(text) <= 40
        rows.append(Row(text, [chance.choice(texts)] if alone else near, False, SHORT if short else LONG))
    return rows


if __name__ == "__main__":
    main()
