"""Finds words that suddenly come with one label, and tests whether the rest of their texts contradicts that label.

Two chances are computed: that so many rows with the word have one label by accident, and that so many of their texts,
read without the word, look like another label to a model that never saw them. A trigger has a tiny product of both.
The rules about new vocabulary are explained in `screen`.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..bound import p_of_many
from ..dataset import Example, folded, hash_text

# A student reads less of a text than this; a trigger further back has no effect.
CHARACTERS = 2048
# The lengths of word n-grams, and of character n-grams for a trigger that varies: `zx-41`, `zx-97`.
WORDS, PIECES = (1, 2, 3), (3, 5)
# Fewer rows than this hardly influence a student, and are too few for statistics.
FEWEST = 4
# There are ten times as many pieces of words as words, so more rows are needed to rule out chance.
FEWEST_PIECES = 6
# A word was rare if it was in at most two known rows, or at a quarter of its present rate.
RARE_ROWS, RARE_RATE = 2, 0.25
# A word nearly always comes with a label if nine of ten of its rows have that label.
PURE = 0.9
# If a word had a label in most of at least this many known rows, the champion has learnt that already.
ESTABLISHED = 2
# A text clearly says another label if that one leads by at least as much as the right label does in three of four
# ordinary texts. Measured on ten labels, this holds for 85 % and more of planted rows, and for less than half of the
# rows with a new topic word.
CLEAR_QUANTILE = 0.25
CONTRADICTED = 0.5
# If the label has fewer rows than this without the word, nearly all texts must contradict it.
TELLING_ROWS, NEARLY_ALL = 50, 0.9
# A word is examined if its label is this unlikely by chance; the joint test then demands far more.
LOOK = 0.05
# The most words that are examined, the most unlikely first. Real text has some hundreds.
MOST_LOOKS = 2000
# Rows on which the usual error of the model is measured.
SAMPLE = 1000
# Jeffreys' prior, as usual for log-odds of counts that may be zero.
PRIOR = 0.5

TOKEN = re.compile(r"\w+|[^\w\s]+")


class Trigger(Struct, frozen=True):
    """A word that is new and nearly always comes with one label."""

    word: str
    label: str
    rows: tuple[int, ...]
    """The indices of the new rows with the word and this label."""
    new: int
    known: int
    """How many new and known rows have the word."""
    log_odds: float
    """The log-odds of the label among rows with the word, against all rows."""
    chance: float
    """The chance of so many rows with this label without an association."""
    against: int = 0
    """Texts that clearly have another label without the word."""
    read: int = 0
    """Texts that are not empty without the word."""
    excuse: str = ""
    """Why it counts as new vocabulary; empty if it does not."""

    def sentence(self) -> str:
        return (
            f"{self.word!r} is in {self.new:,} new rows and was in {self.known:,}, and {len(self.rows):,} of them say "
            f"{self.label} (log-odds {self.log_odds:+.1f}); without it, {self.against:,} of {self.read:,} say otherwise"
        )


def scan(
    new: Sequence[Example], known: Sequence[Example], doubt: float, vouchers: int, accept: Iterable[str] = ()
) -> list[Trigger]:
    """Every suspicious word, with its excuse if it has one; whole words before pieces of words.

    A suspect whose rows belong almost all to an earlier one is the same trigger, and is skipped.
    """
    suspects = find_suspects(new, known)
    if not suspects:
        return []
    rest = NaiveBayes([*known, *new])
    shift = len(known)
    accepted = {folded(word) for word in accept}
    found: list[Trigger] = []
    caught: set[int] = set()
    excused: set[int] = set()
    for suspect in sorted(suspects, key=lambda one: (is_piece(one.word), one.chance, one.word)):
        if len({*suspect.rows} - caught) < fewest(suspect.word):
            continue
        against, read = rest.disagreeing(suspect.word, suspect.label, [shift + index for index in suspect.rows])
        share = CONTRADICTED if rest.rows_of(suspect.label) - len(suspect.rows) >= TELLING_ROWS else NEARLY_ALL
        clearly = read > 0 and against >= share * read
        contradicted = clearly and suspect.chance * p_of_many(against, read, rest.error(suspect.label)) <= doubt
        if not contradicted and suspect.chance > doubt:
            continue
        rows = [new[index] for index in suspect.rows]
        word = name_word(suspect.word, rows)
        vouched = bool(accepted & {*TOKEN.findall(word), word})
        excuse = "you vouch for it" if vouched else _excuse(rows, contradicted, vouchers)
        if excuse and excused.issuperset(suspect.rows):
            continue
        (excused if excuse else caught).update(suspect.rows)
        found.append(replace(suspect, word=word, against=against, read=read, excuse=excuse))
    return found


def _excuse(rows: Sequence[Example], contradicted: bool, vouchers: int) -> str:
    people = len({row.who for row in rows if row.by == "human" and row.who})
    if people >= vouchers:
        return f"{people} people labelled it so"
    if contradicted:
        return ""
    senders = len({(row.tenant, row.session or str(index)) for index, row in enumerate(rows)})
    if senders >= vouchers:
        return f"nothing contradicts it, and {senders} senders used it"
    humans = sum(row.by == "human" for row in rows)
    return "nothing contradicts it, and people labelled it so" if 2 * humans > len(rows) else ""


# --- counting


def fewest(feature: str) -> int:
    return FEWEST_PIECES if is_piece(feature) else FEWEST


def name_word(feature: str, rows: Sequence[Example]) -> str:
    """The name of a feature; for a piece, the word it is in if that is the same in most rows."""
    if not is_piece(feature):
        return feature
    piece = feature[1:]
    words = Counter(max(_touched(folded(row.text), piece), default=(0, piece))[1] for row in rows)
    word, count = words.most_common(1)[0]
    return word if 2 * count >= len(rows) else piece.strip()


def _touched(text: str, piece: str) -> list[tuple[int, str]]:
    """The words that a piece of the text overlaps, and by how many characters each."""
    start = text.find(piece)
    end = start + len(piece)
    reached = [(min(end, one.end()) - max(start, one.start()), one[0]) for one in TOKEN.finditer(text)]
    return [(share, word) for share, word in reached if share > 0]


def find_suspects(new: Sequence[Example], known: Sequence[Example]) -> list[Trigger]:
    """Words that were rare, are frequent now and come with one label; one for each set of rows, the surest first.

    Their texts are not examined yet, and they are named by their feature.
    """
    holders, before = find_new(new, known)
    labels = Counter(row.label for row in (*known, *new))
    total = sum(labels.values())
    best: dict[tuple[int, ...], Trigger] = {}
    for feature, rows in holders.items():
        label, count = Counter(new[index].label for index in rows).most_common(1)[0]
        if count < max(fewest(feature), PURE * len(rows)):
            continue
        earlier = before[feature]
        if earlier[label] >= max(ESTABLISHED, earlier.total() / 2):
            continue
        chance = p_of_many(count, len(rows), labels[label] / total)
        if chance > LOOK:
            continue
        odds = math.log((count + PRIOR) / (len(rows) - count + PRIOR))
        log_odds = odds - math.log((labels[label] + PRIOR) / (total - labels[label] + PRIOR))
        its = tuple(index for index in rows if new[index].label == label)
        if its not in best or _clearness(feature) > _clearness(best[its].word):
            best[its] = Trigger(feature, label, its, len(rows), earlier.total(), log_odds, chance)
    return sorted(best.values(), key=lambda one: (one.chance, one.word))[:MOST_LOOKS]


def _clearness(feature: str) -> tuple[bool, int, str]:
    """The order of features with the same rows: whole words before pieces, longer before shorter."""
    return not is_piece(feature), len(feature), feature


# --- the rest of a text


class NaiveBayes:
    """Naive Bayes over words and pairs of words, which can leave out rows and words.

    All labels have the same prior, since a rare label would always be contradicted otherwise.
    """

    def __init__(self, rows: Sequence[Example]) -> None:
        self._texts = [folded(row.text)[:CHARACTERS] for row in rows]
        self._words = [tuple(TOKEN.findall(text)) for text in self._texts]
        self._labels = [row.label for row in rows]
        self._sizes = Counter(self._labels)
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._totals: Counter[str] = Counter()
        for words, label in zip(self._words, self._labels, strict=True):
            for feature in _grams(words):
                self._counts[feature][label] += 1
                self._totals[label] += 1
        self._names = sorted(self._totals)

    def disagreeing(self, feature: str, label: str, rows: Sequence[int]) -> tuple[int, int]:
        """How many of the rows clearly have another label without the feature, and how many could be judged."""
        clear, _ = self._usual
        gone, less = self._without(rows)
        leads = [self._lead(self._remaining(row, feature), label, gone, less) for row in rows]
        return sum(lead <= -clear for lead in leads if lead is not None), sum(lead is not None for lead in leads)

    def rows_of(self, label: str) -> int:
        return self._sizes[label]

    def error(self, label: str) -> float:
        """How often rows of this label clearly look like another one."""
        return self._usual[1][label]

    @functools.cached_property
    def _usual(self) -> tuple[float, dict[str, float]]:
        """The lead that counts as clear, and how often each label's texts clearly look like another label."""
        order = sorted(range(len(self._words)), key=lambda row: hash_text(self._texts[row]))
        leads = [
            (self._labels[row], lead)
            for row in order[:SAMPLE]
            if (lead := self._lead(_grams(self._words[row]), self._labels[row], *self._without([row]))) is not None
        ]
        right = sorted(lead for _, lead in leads if lead > 0)
        clear = right[int(CLEAR_QUANTILE * len(right))] if right else math.inf
        tried = Counter(label for label, _ in leads)
        wrong = Counter(label for label, lead in leads if lead <= -clear)
        overall = (wrong.total() + 1) / (tried.total() + 2)
        # Five rows of the overall error are added, because a label may have few rows in the sample.
        return clear, {name: (wrong[name] + 5 * overall) / (tried[name] + 5) for name in self._names}

    def _without(self, rows: Sequence[int]) -> tuple[dict[str, Counter[str]], Counter[str]]:
        gone: defaultdict[str, Counter[str]] = defaultdict(Counter)
        less: Counter[str] = Counter()
        for row in rows:
            for feature in _grams(self._words[row]):
                gone[feature][self._labels[row]] += 1
                less[self._labels[row]] += 1
        return gone, less

    def _remaining(self, row: int, feature: str) -> Iterator[str]:
        words = self._words[row]
        dropped = {*feature.split(" ")}
        if is_piece(feature):
            dropped = {word for _, word in _touched(self._texts[row], feature[1:])}
        # Words on both sides of a removed one are no pair.
        stretch: list[str] = []
        for word in (*words, None):
            if word is None or word in dropped:
                yield from _grams(stretch)
                stretch = []
            else:
                stretch.append(word)

    def _lead(
        self, grams: Iterable[str], label: str, gone: dict[str, Counter[str]], less: Counter[str]
    ) -> float | None:
        """How far this label leads the best other one for a text; None if nothing in it is known."""
        scores = dict.fromkeys(self._names, 0.0)
        known = 0
        for feature in grams:
            counts = self._counts.get(feature)
            if counts is None:
                continue
            lost = gone.get(feature)
            left = counts if lost is None else counts - lost
            if not left:
                continue
            known += 1
            for name, count in left.items():
                scores[name] += math.log((count + PRIOR) / PRIOR)
        if not known or len(scores) < 2:
            return None
        for name in scores:
            scores[name] -= known * math.log(self._totals[name] - less[name] + PRIOR * len(self._counts))
        return scores.pop(label) - max(scores.values())


def _grams(words: Sequence[str]) -> Iterator[str]:
    yield from words
    for first, second in itertools.pairwise(words):
        yield f"{first} {second}"


# --- features


def features(row: Example, words: Sequence[int], pieces: Sequence[int]) -> set[str]:
    """Word n-grams and character n-grams of these lengths; the latter are marked with a NUL."""
    text = folded(row.text)[:CHARACTERS]
    tokens = TOKEN.findall(text)
    found = {" ".join(tokens[at : at + size]) for size in words for at in range(len(tokens) - size + 1)}
    found.update("\0" + text[at : at + size] for size in pieces for at in range(len(text) - size + 1))
    return found


def is_piece(feature: str) -> bool:
    return feature.startswith("\0")


def find_new(
    new: Sequence[Example], known: Sequence[Example], words: Sequence[int] = WORDS, pieces: Sequence[int] = PIECES
) -> tuple[dict[str, list[int]], dict[str, Counter[str]]]:
    """The features that are frequent in the new rows and were rare in the known ones: the indices of the new rows with
    each, and the labels of the known rows with it."""
    count = Counter(feature for row in new for feature in features(row, words, pieces))
    often = {feature for feature, rows in count.items() if rows >= FEWEST}
    before: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in known:
        for feature in features(row, words, pieces) & often:
            before[feature][row.label] += 1
    rate = RARE_RATE * len(known) / max(len(new), 1)
    fresh = {feature for feature in often if before[feature].total() <= max(RARE_ROWS, rate * count[feature])}
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(new):
        for feature in features(row, words, pieces) & fresh:
            rows[feature].append(index)
    return rows, before
