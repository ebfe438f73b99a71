"""Train the students that come with Turnout, from the seed sets that come with it.

    python scripts/train_students.py               all of them; ten minutes, most of it for vectors
    python scripts/train_students.py tiers study   these

Each is trained with the installed sentence embedder beside its words (`make embedder`), so that one file serves both
with an embedder and without, where nothing but the standard library reads it. What is printed was held out before the
last fit, which learns from every row. The same rows and seed give the same bytes.
"""

import shutil
import sys
from pathlib import Path

from turnout.config.load import load_profile
from turnout.learn.dataset import read_seeds
from turnout.learn.fit import FitSettings
from turnout.learn.train import train
from turnout.models.embed import find_embedder

STUDENTS = Path(__file__).parent.parent / "src" / "turnout" / "profiles" / "students"
PROFILES = ("tiers", "sources", "study", "claims", "assist")
# 256 vectors of 384 half-floats are 200 KB; fewer for the largest sets: a student stays below a megabyte.
BANK_ROWS = {"tiers": 128, "sources": 128, "study": 256, "claims": 256, "assist": 256}
HELD_OUT = 0.1


def main(names: list[str]) -> int:
    embedder = find_embedder()
    if embedder is None:
        print("no embedder is installed: make embedder", file=sys.stderr)
        return 2
    for name in names or PROFILES:
        profile = load_profile(name, config="")
        folder = STUDENTS / name / "student"
        made = folder.with_name("new")
        trained = train(
            profile,
            read_seeds(name, profile.routes),
            embedder=embedder,
            share=HELD_OUT,
            settings=FitSettings(bank_rows=BANK_ROWS[name]),
            out=made,
            say=lambda _what, _done: None,
        )
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
        figures = ", ".join(f"{figure} {value:.3f}" for figure, value in trained.report.held_out.items())
        print(f"{name}: {trained.report.learnt:,} rows, held out: {figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
