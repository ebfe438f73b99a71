"""Phrases that tell routes apart, found in a few examples of each.

A phrase is a folded word, or two that stand side by side; words that every question has (`STOP`) are no phrase on their
own. It is ranked by its smoothed log-odds: how much likelier it is in an example of this route than in one of the
others, half an example added to each count so that none is zero. A *telling* phrase occurs in no example of another
route; a *leaning* one does, but less. Everything is counted and sorted, nothing is drawn: the same examples give the
same phrases.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from turnout.text.fold import fold

# Telling phrases each example should have where it can: one may be chance, three are its wording learnt by heart.
PER_EXAMPLE = 2
# A second phrase for each example is sought up to this many for a route: more are not read through.
MOST_TELLING, MOST_LEANING = 24, 6
# And a first one up to this many: a route that needs more is better learnt than listed.
MOST_COVERING = 200
# A leaning phrase is at least this much likelier here, in log-odds: a factor of e.
LEAST_ODDS = 1.0
# The usual prior of half an example.
PRIOR = 0.5
# Runs of stop words are the last resort for an example that has no other word: "who are you".
LONGEST_RUN = 4

_STOP = """
    a about after again all also am an and any are as at be because been before being both but by can cannot can't
    could did didn't do does doesn't doing don't down each else few for from get give go got had has have having he
    hello help her here hers hey hi him his how how's i i'd i'll i'm i've if in into is isn't it it's its just know let
    like make many me more most much must my need no nor not now of off on once one only or other our ours out over own
    please same shall she should so some such tell than thank thanks that that's the their them then there these they
    this those through to too two under until up us use very want was we well were what what's when where where's which
    while who who's whom why will with would yes you you'd your yours"""
STOP = frozenset(_STOP.split())

_words = re.compile(r"[^\W_]+(?:'[^\W_]+)*").finditer


class RouteExample(NamedTuple):
    text: str
    route: str


class Proposal(NamedTuple):
    telling: tuple[str, ...]
    leaning: tuple[str, ...]


class Features(NamedTuple):
    """The phrases of one example."""

    plain: frozenset[str]
    runs: frozenset[str]
    """Of stop words only."""


def propose(examples: Sequence[RouteExample], routes: Iterable[str]) -> dict[str, Proposal]:
    """For each route what to look for; nothing where its examples have no words of their own."""
    seen = [(example.route, read_features(example.text)) for example in examples]
    counts: dict[str, Counter[str]] = {route: Counter() for route in routes}
    for route, features in seen:
        counts[route].update(features.plain | features.runs)
    sizes = Counter(route for route, _ in seen)
    return {route: _propose(route, seen, counts, sizes) for route in counts}


def read_features(text: str) -> Features:
    folded = fold(text).text
    found = [(match.group(), match.start(), match.end()) for match in _words(folded)]
    plain = {word for word, _, _ in found if word not in STOP and len(word) > 1 and not word.isdigit()}
    runs: set[str] = set()
    for length in range(2, LONGEST_RUN + 1):
        for start in range(len(found) - length + 1):
            piece = found[start : start + length]
            gaps = [folded[end:begin] for (_, _, end), (_, begin, _) in pairwise(piece)]
            if any(gap.strip(" ") for gap in gaps):
                continue
            phrase = " ".join(word for word, _, _ in piece)
            if all(word in STOP for word, _, _ in piece):
                runs.add(phrase)
            elif length == 2:
                plain.add(phrase)
    return Features(frozenset(plain), frozenset(runs))


def log_odds(here: int, size: int, there: int, rest: int) -> float:
    """How much likelier a phrase is in `here` of `size` examples than in `there` of the `rest`."""
    return math.log((here + PRIOR) / (size - here + PRIOR)) - math.log((there + PRIOR) / (rest - there + PRIOR))


def _propose(
    route: str, seen: Sequence[tuple[str, Features]], counts: Mapping[str, Counter[str]], sizes: Counter[str]
) -> Proposal:
    own = counts[route]
    others: Counter[str] = Counter()
    for name, counted in counts.items():
        if name != route:
            others.update(counted)
    size, rest = sizes[route], sizes.total() - sizes[route]
    odds = {phrase: log_odds(count, size, others[phrase], rest) for phrase, count in own.items()}

    def rank(phrase: str) -> tuple[float, int, int, str]:
        """Likeliest first; then one word before two, and the longer word, which is as a rule the rarer one."""
        return -odds[phrase], phrase.count(" "), -len(phrase), phrase

    telling: dict[str, None] = {}
    examples = [features for name, features in seen if name == route]
    for wanted, most in ((1, MOST_COVERING), (PER_EXAMPLE, MOST_TELLING)):
        for features in examples:
            missing = wanted - len(features.plain & telling.keys())
            for phrase in sorted((phrase for phrase in features.plain if not others[phrase]), key=rank):
                if missing <= 0 or len(telling) >= most:
                    break
                if not _says_again(phrase, telling):
                    telling[phrase] = None
                    missing -= 1
            if wanted == 1 and missing == 1 and telling.keys().isdisjoint(features.runs):
                # The longest: two such words in a row are in every other question.
                runs = sorted((run for run in features.runs if not others[run]), key=lambda run: (-run.count(" "), run))
                telling.update(dict.fromkeys(runs[:1]))
    leaning = [
        phrase
        for phrase in sorted(own, key=rank)
        if others[phrase] and own[phrase] > 1 and odds[phrase] >= LEAST_ODDS and phrase not in STOP
    ]
    leaning = [phrase for phrase in leaning if not _says_again(phrase, telling) and not _is_run(phrase)]
    return Proposal(tuple(telling), tuple(leaning[:MOST_LEANING]))


def _says_again(phrase: str, chosen: Container[str]) -> bool:
    """Whether it is two words one of which is looked for already."""
    return phrase in chosen or any(word in chosen for word in phrase.split(" "))


def _is_run(phrase: str) -> bool:
    return all(word in STOP for word in phrase.split(" "))
