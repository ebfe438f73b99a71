"""The gates for exact matches that ship: fitted on the questions of the tests that the guard was developed on.

Golden questions with a card say what must be admitted; those without, and the near misses, what must not. Half of the
golden questions are held out and not read here. A question that repeats a wording of its card needs no gate, and one
that the guard, its type or a doubt refuses gets none: the gate is fitted for the rest, and the bound is on all.

    python scripts/fit_claim_gates.py            print the gates, for words alone and for the embedder that is installed
    python scripts/fit_claim_gates.py --write    and ship them (apps/claims/gates.json)
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import msgspec

from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.gate import TEXT_ALONE, ClaimGate
from turnout.apps.claims.library import ClaimLibrary
from turnout.apps.claims.local import form_of, refuses
from turnout.apps.claims.match import LabelledQuestion, fit_observed, observe, share_found
from turnout.apps.claims.wording import bare, repeats
from turnout.core.embed import Embeds
from turnout.models.embed import find_embedder
from turnout.search import open_index
from turnout.store import open_store

ROOT = Path(__file__).parent.parent
CORPORA = [ROOT / "tests" / "corpora" / name for name in ("claims_golden.jsonl", "claims_near.jsonl")]
GATES = ROOT / "src" / "turnout" / "apps" / "claims" / "gates.json"
# Near misses over one's own cards must match in less than 2 % of cases: stricter than for questions about anything.
BOUND = 0.02


def read_rows() -> list[LabelledQuestion]:
    rows = [json.loads(line) for file in CORPORA for line in file.read_text(encoding="utf-8").split("\n") if line]
    asked = [row for row in rows if row["half"] == "developed" and row["lang"] == "en"]
    return [
        LabelledQuestion(bare(row["question"]), row["card"] if row["mode"] == "exact_match" else None)
        for row in asked
        if row["mode"] != "contextual" and form_of(row["question"]) == "claim"
    ]


def fit(embedder: Embeds | None) -> tuple[ClaimGate, float, float]:
    """The gate, and of what is left to it the share that finds its card and the share that finds another."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"{folder}/log.db", config="") as store,
        ClaimLibrary(store.cards, open_index(f"{folder}/index.db", embedder=embedder)) as library,
    ):
        library.put_all(starter_cards())
        cards = {card.id: card for card in library.list()}
        rows = [one for one in read_rows() if one.card is None or not repeats(one.question, cards[one.card], "en")]
        seen = [observe(library, one, refuses) for one in rows]
    gate = fit_observed(seen, TEXT_ALONE if embedder is None else embedder.name, bound=BOUND)
    return gate, *share_found(gate, seen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="ship them; needs the embedder")
    options = parser.parse_args()
    found = find_embedder()
    if options.write and found is None:
        print("no embedder is installed: make embedder first")
        return 1
    gates = []
    for embedder in (None, *([found] if found is not None else [])):
        gate, right, wrong = fit(embedder)
        gates.append(gate)
        print(f"{gate.embedder}: threshold {gate.threshold:.3f}, weights {[round(one, 2) for one in gate.weights]}")
        print(
            f"  of {gate.fitted_on} questions without a card {wrong:.1%} admitted; {right:.1%} of the rest find theirs"
        )
    if options.write:
        GATES.write_text(json.dumps(msgspec.to_builtins(gates), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
