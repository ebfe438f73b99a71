"""Claims changed so that they say something else: negated, roles swapped, another number, date or name.

No model writes them: each change is a rule over the words, the same for every run. A claim has a change only where the
rule applies to it. Run as a program it prints some of each: `python benchmarks/claim_mutations.py CLAIMS.jsonl`.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|will|would|can|could|should|must|may|might|does|do|did)\b(?! not\b|n't)"
)
NEGATED = re.compile(
    r"\b(is|are|was|were|has|have|had|will|would|can|could|should|must|may|might|does|do|did) not\b|\bcannot\b"
)
# Verbs that Snopes' claims are told with, where there is no auxiliary.
VERB = re.compile(
    r"\b(shows?|depicts?|captures?|contains?|causes?|documents?|features?|says?|offers?|plans?|wants?|means?|prevents?"
    r"|said|announced|died|won|made|took|called|sent|wrote|refused|signed|posted|gave|found|became|killed|ordered)\b"
)
STEMS = {
    "said": "say",
    "died": "die",
    "won": "win",
    "made": "make",
    "took": "take",
    "sent": "send",
    "wrote": "write",
    "gave": "give",
    "found": "find",
    "became": "become",
}
MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
MONTH = re.compile(rf"\b({'|'.join(MONTHS)})\b(?=[ ,]|$)")
YEAR = re.compile(r"\b(1[5-9]\d\d|20[012]\d)\b(?!s)")
NUMBER = re.compile(r"(?<![\w.,#/-])\d{1,3}(?:,\d{3})+(?![\d.,]*\d)|(?<![\w.,#/-])\d+(?![\w/-]|[.,]\d)")
NAME = re.compile(r"[A-Z][a-zé]+(?: [A-Z][a-zé]+)*")


class MutatedClaim(NamedTuple):
    kind: str
    claim: str
    mutated: str


def find_names(claims: Sequence[str]) -> set[str]:
    """Words that are names: they have a capital wherever they stand."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for claim in claims:
        words = re.findall(r"[A-Za-zé]+", claim)
        small.update(word.lower() for word in words if word[0].islower())
        capital.update(word.lower() for word in words[1:] if word[0].isupper())
    return {word for word, count in capital.items() if count > 4 * small[word] and word.title() not in MONTHS}


def names_in(claim: str, names: set[str]) -> list[re.Match[str]]:
    return [found for found in NAME.finditer(claim) if all(word.lower() in names for word in found[0].split())]


def negate(claim: str, random_: random.Random) -> str | None:
    if found := NEGATED.search(claim):
        plain = "can" if found[0] == "cannot" else found[1]
        return claim[: found.start()] + plain + claim[found.end() :]
    if found := AUXILIARY.search(claim):
        return f"{claim[: found.end()]} not{claim[found.end() :]}"
    if found := VERB.search(claim):
        verb = found[0]
        past = verb in STEMS or verb.endswith("ed")
        stem = STEMS.get(verb) or (verb.removesuffix("d") if verb == "refused" else re.sub("(?:ed|s)$", "", verb))
        does = "did" if past else "does" if verb.endswith("s") else "do"
        return f"{claim[: found.start()]}{does} not {stem}{claim[found.end() :]}"
    lowered = claim[0].lower() + claim[1:]
    return f"{random_.choice(('It is not true that', 'It is false that'))} {lowered}"


def swap(claim: str, names: set[str]) -> str | None:
    """Two names change places, where a word that is none, and no small one, stands between them."""
    found = names_in(claim, names)
    for one, other in itertools.pairwise(found):
        between = claim[one.end() : other.start()]
        if one[0] != other[0] and re.search(
            r"(?<![\w'’-])[a-z]{4,}", re.sub(r"\b(?:with|from|into|their|that)\b", "", between)
        ):
            return claim[: one.start()] + other[0] + between + one[0] + claim[other.end() :]
    return None


def change_number(claim: str, random_: random.Random) -> str | None:
    plain = YEAR.sub(lambda found: "y" * len(found[0]), claim)
    dates = re.sub(rf"(?:{'|'.join(MONTHS)}) \d+|\d+ (?:{'|'.join(MONTHS)})", lambda found: "d" * len(found[0]), plain)
    found = NUMBER.search(dates)
    if found is None:
        return None
    value = int(found[0].replace(",", ""))
    other = random_.choice([value * 2, value * 3, value + 3, value + 7]) or 5
    written = f"{other:,}" if "," in found[0] else str(other)
    return claim[: found.start()] + written + claim[found.end() :]


def change_date(claim: str, random_: random.Random) -> str | None:
    if found := YEAR.search(claim):
        other = int(found[0]) + random_.choice([-20, -7, -3, -1, 1, 2, 5])
        return claim[: found.start()] + str(other) + claim[found.end() :]
    if found := MONTH.search(claim):
        month = random_.choice([month for month in MONTHS if month != found[0]])
        return claim[: found.start()] + month + claim[found.end() :]
    return None


def rename(claim: str, names: set[str], pool: Sequence[str], random_: random.Random) -> str | None:
    """One name becomes another that the claim does not have."""
    found = names_in(claim, names)
    if not found:
        return None
    one = random_.choice(found)
    words = {word.lower() for word in re.findall(r"[A-Za-zé]+", claim)}
    other = next(name for name in random_.sample(pool, 50) if not words & set(name.lower().split()))
    return claim[: one.start()] + other + claim[one.end() :]


def mutate(claims: Sequence[str], seed: int = 7) -> Iterator[MutatedClaim]:
    """Every change that a rule can make of every claim."""
    random_ = random.Random(seed)
    names = find_names(claims)
    pool = sorted({found[0] for claim in claims for found in names_in(claim, names) if len(found[0]) > 3})
    for claim in claims:
        made = {
            "negation": negate(claim, random_),
            "roles": swap(claim, names),
            "number": change_number(claim, random_),
            "date": change_date(claim, random_),
            "entity": rename(claim, names, pool, random_),
        }
        for kind, mutated in made.items():
            if mutated is not None and mutated != claim:
                yield MutatedClaim(kind, claim, mutated)


if __name__ == "__main__":
    rows = Path(sys.argv[1]).read_text(encoding="utf-8").split("\n")
    made = list(mutate([json.loads(row)["claim"] for row in rows if row]))
    print(Counter(one.kind for one in made))
    for one in random.Random(1).sample(made, 40):
        print(f"{one.kind:9} {one.claim}\n       -> {one.mutated}")
