"""Labelled questions in, a student out, with what it said of each question while it had not seen it.

Everything that is chosen (strengths, mixture, temperature, the curves of confidence, when words alone are enough) is
chosen by cross-validation on the rows that are given, near duplicates never on both sides. The same rows and seed give
the same student, in whatever order the rows come.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

import turnout
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError, TooFewExamples, suggest
from turnout.layers.artefact import FORMAT, Embedder
from turnout.layers.student_model import EMBEDDED_CHARACTERS, StudentManifest, StudentModel, make_student, nearness
from turnout.layers.term_head import SHAPE_NUMBERS, WORD_COUNTS, ZERO, Terms, measure_shape, tokenize
from turnout.text.fold import fold
from turnout.text.ngram import Ngrams

from .confidence import LIKELIEST, NEAR_WEIGHT_WORDS, Truth, fit_alone, fit_mix, say_of_each, serve
from .dataset import Example
from .metric import auroc, ece
from .registry import now
from .split import k_fold

OOS_LABELS = (None, "", "oos", "out_of_scope")
"""Labels of questions that belong to no route, but for a route of that name."""

# Five folds of two rows: below that there is nothing left to judge by.
FEWEST_ROWS = 10
# Above this many rows every fit is long and every fold is large: three folds, and strengths tried on one of them.
MANY_ROWS = 6_000
FEW_FOLDS = 3
# On CLINC150's validation rows: nearness counts as much as the logit (AUROC .990; alone .983 and .978).
NEAR_WEIGHT = 1.0
# Of known questions so many vectors are kept: five labels of 400 are a quarter of a millisecond, all are 6 MB.
BANK_ROWS, BANK_ROWS_PER_LABEL = 8_192, 400
# Weights of one or two steps of 127 change no answer, and a third of the file is theirs. Of a large set three or four
# change none either: with more weights than these a student would be larger than a megabyte.
NOISE, MOST_WEIGHTS = 2, 400_000

Which = Literal["words", "vector"]
# Strengths tried for each head, the weakest first; measured on CLINC150's validation rows, where words are best at
# 0.6 (93.7 %) and vectors at 10 (96.0 %), and a third or three times that costs up to half a point. Few rows want the
# lower, many the higher.
STRENGTHS: dict[Which, tuple[float, ...]] = {"words": (0.2, 0.6, 2.0), "vector": (3.0, 10.0, 30.0)}
# A hundredth costs no accuracy beside 1e-4 and a third of the time.
SVC_TOLERANCE = 1e-2
# Vectors' logistic regression is there after about 30 steps; 300 is for the rows that are not.
LR_STEPS = 300
# Where no question outside every label is given, labels are left out in turn, in so many groups, and their own
# questions are strangers to the rest. With fewer than three labels a group, what is left is another task.
LEFT_OUT_GROUPS, LEFT_OUT_LABELS = 3, 9
# With fewer labels every tenth question, read backwards, stands for what is not even language; little of that is asked.
BACKWARDS, BACKWARDS_SHARE = 10, 0.02
# What a label scores that a fold has never seen: out of the question.
UNSEEN = -100.0
# Levels of a signed byte, both signs alike.
LEVELS = 127


# A table has a byte for each bucket and label: 32 MB at most, in memory.
MOST_CELLS = 1 << 25
# 54,000 different terms of CLINC150 in 65,536 buckets: every third shares one. More than 2^20 buckets gain nothing.
LEAST_BUCKETS, MOST_BUCKETS = 1 << 14, 1 << 20


class FitSettings(Struct, frozen=True, forbid_unknown_fields=True):
    terms: Terms | None = None
    """None: as many buckets as the number of labels allows."""
    bank_rows: Annotated[int, Meta(ge=1, le=BANK_ROWS)] = BANK_ROWS
    """Of how many known questions the vector is kept at most."""
    folds: Annotated[int, Meta(ge=2, le=20)] = 5
    oos_share: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.1
    """The share of questions outside every label that confidence is to allow for, where there are rows of such."""


class HeldOutAnswer(NamedTuple):
    """What was said of a question by a student that had not seen it."""

    row: int
    """Which of the rows, as they were given."""
    label: str | None
    """What is true; None: outside every label."""
    said: str
    confidence: float
    knownness: float


class StudentFit(NamedTuple):
    """A student, ready to be written."""

    draft: StudentManifest
    """Its manifest, but for which profile and layer it is for and which rows it comes from.

    Its metrics are out of fold: `accuracy`, `ece`, `rows`, `oos_auroc` where there are rows outside every label, and
    `alone`, the share of the rows that words alone answer, where there are two stages. The four numbers of the curve of
    confidence were fitted on the same rows; `ece` is that much too good."""
    arrays: Mapping[str, Floats]
    held: tuple[HeldOutAnswer, ...]
    """Every row that could be judged; a row that is the only one of its label cannot."""
    remarks: tuple[str, ...]

    def model(self) -> StudentModel:
        """The student in memory, as it would be read from disk."""
        return make_student(self.draft, self.arrays)


class FitRow(NamedTuple):
    folded: str
    label: str
    weight: float
    at: int
    by_person: bool = False


def fit(
    rows: Iterable[Example | tuple[str, str | None]],
    *,
    labels: Sequence[str] | None = None,
    embedder: Embeds | None = None,
    seed: int = 0,
    settings: FitSettings | None = None,
    say: Say = lambda _what, _done: None,
) -> StudentFit:
    """A student of these rows: examples, or pairs of text and label.

    `labels` are the routes there are; a row with another is refused, a route without a row is never chosen. Rows whose
    label is in OOS_LABELS are questions outside every route: they teach when to be unsure.
    """
    settings = settings or FitSettings()
    known, told = _gather(rows, labels)
    counts = Counter(row.label for row in known)
    order = tuple(label for label in (labels or sorted(counts)) if counts[label])
    if len(order) < 2 or len(known) < FEWEST_ROWS:
        have = ", ".join(f"{label} {count}" for label, count in counts.most_common(5)) or "none"
        raise TooFewExamples(
            f"{len(known)} labelled questions of {len(order)} labels ({have}): a student needs at least {FEWEST_ROWS} "
            "of at least 2; label more of them: turnout feedback, or a file with text and label"
        )
    terms = settings.terms or choose_terms(len(order))
    leave_out = not told and len(order) >= LEFT_OUT_LABELS
    outside = told if told or leave_out else [row._replace(folded=row.folded[::-1]) for row in known[::BACKWARDS]]
    every = (*known, *outside)
    texts = [row.folded for row in every]
    say("reading", 0.0)
    read = read_terms(texts, terms)
    people = [at for at, row in enumerate(known) if row.by_person]
    corrected = np.array(people if 2 * len(people) <= len(known) else [], np.int64)
    turned = read_terms([" ".join(reversed(known[at].folded.split())) for at in corrected], terms)
    buckets = np.unique(np.concatenate([read.terms[: len(known) + len(told)].indices, turned.terms.indices]))
    features: dict[Which, Any] = {"words": read.join(buckets)}
    if embedder is not None:
        features["vector"] = embed_texts([terms.cut(text)[:EMBEDDED_CHARACTERS] for text in texts], embedder, say)
    label = np.array([order.index(row.label) for row in known])
    weight = np.array([row.weight for row in known])
    folds, remarks = _folds(known, settings, seed)
    fitting = _Fitting(
        features,
        read,
        label,
        weight,
        len(order),
        seed,
        folds,
        len(outside),
        bool(told),
        settings.bank_rows,
        corrected,
        turned.join(buckets),
    )

    strengths = {which: fitting.choose_strength(which, say) for which in features}
    scores = {which: fitting.score(which, strengths[which], fitting.shares(), say) for which in features}
    judged = np.flatnonzero(fitting.judged())
    if not len(judged):
        raise TooFewExamples("every label has one question, or near copies of one: at least some need two that differ")
    by_words, by_vector = scores["words"], scores.get("vector")
    mix = fit_mix(by_words[judged], None if by_vector is None else by_vector[judged], label[judged], weight[judged])
    judges = [(fitting.shares(), scores)]
    if leave_out:
        groups = fitting.leave_labels_out()
        judges.append((groups, {which: fitting.score(which, strengths[which], groups, say) for which in features}))
    beyond = np.arange(len(known), len(texts) + len(known) * leave_out)
    oos_share = settings.oos_share if told or leave_out else min(BACKWARDS_SHARE, settings.oos_share)
    truth = Truth(label, weight, judged, beyond, oos_share)
    known_share = np.concatenate([fitting.known_share(shares) for shares, _ in judges])
    alone, metrics = None, {}
    if by_vector is None:
        logits = np.concatenate([mix.of(found["words"], None) for _, found in judges])
        whole = served = say_of_each(logits, known_share, NEAR_WEIGHT_WORDS, truth)
    else:
        mixed = [(shares, mix.of(found["words"], found["vector"])) for shares, found in judges]
        near = np.concatenate([fitting.near(logits, shares) for shares, logits in mixed])
        whole = served = say_of_each(np.concatenate([logits for _, logits in mixed]), near, NEAR_WEIGHT, truth)
        words = fit_mix(by_words[judged], None, label[judged], weight[judged])
        logits = np.concatenate([words.of(found["words"], None) for _, found in judges])
        first = say_of_each(logits, known_share, NEAR_WEIGHT_WORDS, truth)
        alone = fit_alone(first, words.temperature, whole, truth)
        served, early = serve(first, alone, whole)
        metrics["alone"] = float(early[judged].mean())
        metrics["words_accuracy"] = float(truth.right(first.best)[judged].mean())
    right = truth.right(served.best)[judged]
    metrics |= {
        "accuracy": float(right.mean()),
        "ece": float(ece(right, served.stated[judged])),
        "rows": float(len(judged)),
    }
    given = beyond[: len(told)]
    if len(given):
        rows_of = np.concatenate([judged, given])
        metrics["oos_auroc"] = float(auroc(np.arange(len(rows_of)) < len(judged), served.knownness[rows_of]))
    arrays, step = fitting.finish(strengths, buckets, terms, say)
    draft = StudentManifest(
        format=FORMAT,
        profile="",
        layer="student",
        labels=order,
        terms=terms,
        embedder=Embedder(embedder.name, embedder.width) if embedder is not None else None,
        mix=mix.share,
        temperature=mix.temperature,
        abstention=whole.abstention,
        confidence=whole.confidence,
        metrics=metrics,
        counts={name: counts[name] for name in order},
        oos_rows=len(told),
        data_hash="",
        profile_hash="",
        seed=seed,
        created=now(),
        turnout=turnout.__version__,
        files={},
        alone=alone,
        step=step,
    )
    held = (
        HeldOutAnswer(
            every[i].at,
            known[i].label if i < len(known) else None,
            order[served.best[i]],
            float(served.stated[i]),
            float(served.knownness[i]),
        )
        for i in sorted((*judged, *given), key=lambda i: every[i].at)
    )
    return StudentFit(draft, arrays, tuple(held), remarks)


def _gather(
    rows: Iterable[Example | tuple[str, str | None]], labels: Sequence[str] | None
) -> tuple[list[FitRow], list[FitRow]]:
    """The rows with a label and those outside every label, each in an order of their own content's."""
    known: list[FitRow] = []
    outside: list[FitRow] = []
    strange: Counter[str] = Counter()
    for at, row in enumerate(rows):
        text, label, weight = (*row, 1.0) if isinstance(row, tuple) else (row.text, row.label, row.weight)
        by_person = not isinstance(row, tuple) and row.by == "human"
        folded = fold(text).text
        if not folded or weight <= 0:
            continue
        if label in OOS_LABELS and (label is None or label not in (labels or ())):
            outside.append(FitRow(folded, "", weight, at))
        elif labels is not None and label not in labels:
            strange[str(label)] += 1
        else:
            known.append(FitRow(folded, str(label), weight, at, by_person))
    if strange:
        name, count = strange.most_common(1)[0]
        hint = suggest(name, labels or ()) or f" (routes: {', '.join(labels or ())})"
        raise LearnError(f"{strange.total()} rows have a label that is no route, {name!r} {count} times{hint}")
    return sorted(known), sorted(outside)


Folds = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def _folds(known: Sequence[FitRow], settings: FitSettings, seed: int) -> tuple[Folds, tuple[str, ...]]:
    count = settings.folds if len(known) <= MANY_ROWS else min(settings.folds, FEW_FOLDS)
    splits = k_fold([Example(row.folded, row.label) for row in known], folds=min(count, len(known)), seed=seed)
    folds = [(np.array(split.learn, np.int64), np.array(split.judge, np.int64)) for split in splits]
    # A fold must have two labels to learn; one that has not, in a tiny set, judges nothing.
    usable = [(learn, judge) for learn, judge in folds if len({known[i].label for i in learn}) > 1 and len(judge)]
    if not usable:
        raise TooFewExamples("no fold has two labels to learn from: more questions that differ are needed")
    return usable, splits[0].remarks


class Head(NamedTuple):
    """A linear head, kept as a plain matrix and served without scikit-learn."""

    weights: Floats
    """(features, labels)"""
    bias: Floats

    def score(self, features: Any) -> Floats:
        found: Floats = np.asarray(features @ self.weights) + self.bias
        return found


class _Fitting(NamedTuple):
    """What the heads are fitted to. Rows outside every label come last, and are judged only."""

    features: Mapping[Which, Any]
    read: ReadTexts
    label: Floats
    weight: Floats
    labels: int
    seed: int
    folds: Folds
    outside: int
    learn_outside: bool
    """Whether the rows outside every label are learnt from as well, as rows that none of the labels may claim."""
    bank_rows: int
    corrected: npt.NDArray[np.int64]
    """The rows that people labelled, where they are fewer than the others. A head that has a row's words, pairs and
    letters needs little of each to get it right; half of a correction is in the order of its words, which the next
    question does not share. So its words are learnt once more without that order. A greater weight does not do it: a
    row that is right already pulls no further."""
    turned: Any
    """Those rows with their words backwards, as the word head reads them. They are learnt, and never judged."""

    def fit_head(self, which: Which, learn: Any, strength: float) -> Head:
        """One head; a label without a row is never chosen."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        model: Any
        if which == "words":
            model = LinearSVC(C=strength, tol=SVC_TOLERANCE, random_state=self.seed)
        else:
            model = LogisticRegression(C=strength, max_iter=LR_STEPS)
        inside = learn < len(self.label)
        label = np.where(inside, self.label[np.where(inside, learn, 0)], self.labels)
        weight = np.where(inside, self.weight[np.where(inside, learn, 0)], 1.0)
        features = self.features[which][learn]
        if which == "words" and len(turned := np.flatnonzero(np.isin(self.corrected, learn))):
            from scipy.sparse import vstack

            again = self.corrected[turned]
            features = vstack([features, self.turned[turned]], format="csr")
            label, weight = np.append(label, self.label[again]), np.append(weight, self.weight[again])
        with warnings.catch_warnings():
            # A fit that stops early is judged by the same folds as any other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Sums in both go by the size of the set; so must what they are weighed against, or weights of one half
            # would count.
            model.fit(features, label, sample_weight=weight / weight.mean())
        found, bias = model.coef_.T, model.intercept_
        if found.shape[1] == 1:
            # Two labels are one line: half of it for each.
            found, bias = np.concatenate([-found, found], axis=1) / 2, np.concatenate([-bias, bias]) / 2
        own = model.classes_ < self.labels
        whole = np.zeros((found.shape[0], self.labels))
        edge = np.full(self.labels, UNSEEN)
        whole[:, model.classes_[own]], edge[model.classes_[own]] = found[:, own], bias[own]
        return Head(whole, edge)

    def choose_strength(self, which: Which, say: Say) -> float:
        """Of the strengths that are tried the one that gets most of the held-out rows right; the weakest of equals."""
        say(f"choosing the {which} head", 0.0)
        tried = self.folds if len(self.label) <= MANY_ROWS // FEW_FOLDS else self.folds[:1]
        rights: dict[float, int] = dict.fromkeys(STRENGTHS[which], 0)
        for strength in rights:
            for learn, judge in tried:
                scores = self.fit_head(which, learn, strength).score(self.features[which][judge])
                rights[strength] += int((scores.argmax(1) == self.label[judge]).sum())
        return max(rights, key=lambda strength: (rights[strength], -strength))

    def score(self, which: Which, strength: float, shares: Folds, say: Say) -> Floats:
        """What heads that have not seen a row score it."""
        scores = np.zeros((max(int(own.max(initial=0)) for _, own in shares) + 1, self.labels))
        for at, (learn, own) in enumerate(shares):
            say(f"cross-validating the {which} head", at / len(shares))
            scores[own] = self.fit_head(which, learn, strength).score(self.features[which][own])
        return scores

    def leave_labels_out(self) -> Folds:
        """Some labels in turn: the rows of all others to learn from, and those rows, which are then outside."""
        group = np.random.default_rng(self.seed).permutation(self.labels) % LEFT_OUT_GROUPS
        return [
            (np.flatnonzero(group[self.label] != at), np.flatnonzero(group[self.label] == at))
            for at in range(LEFT_OUT_GROUPS)
        ]

    def shares(self) -> Folds:
        """For each fold the rows it learns from and all that it judges; rows outside every label are shared out."""
        beyond = len(self.label) + np.arange(self.outside)
        folds = len(self.folds)
        return [
            (
                np.concatenate([learn, beyond[beyond % folds != at]]) if self.learn_outside else learn,
                np.concatenate([judge, beyond[beyond % folds == at]]),
            )
            for at, (learn, judge) in enumerate(self.folds)
        ]

    def inside(self, learn: Floats) -> Floats:
        """Of these rows those with a label."""
        found: Floats = learn[learn < len(self.label)]
        return found

    def everything(self) -> Floats:
        """All rows that are learnt from."""
        return np.arange(len(self.label) + self.outside * self.learn_outside)

    def judged(self) -> npt.NDArray[np.bool_]:
        """Which rows were judged by heads that know their label."""
        found = np.zeros(len(self.label), bool)
        for learn, judge in self.folds:
            found[judge] = np.isin(self.label[judge], self.label[learn])
        return found

    def near(self, logits: Floats, shares: Folds) -> Floats:
        """How near the vectors a fold learnt from are to those it judged, as serving measures it."""
        near = np.zeros(len(logits))
        for learn, own in shares:
            bank, starts = self.bank(self.inside(learn))
            for row in own:
                near[row] = nearness(bank, starts, logits[row], self.features["vector"][row], labels=LIKELIEST)
        return near

    def known_share(self, shares: Folds) -> Floats:
        """The share of a row's words and pairs that its fold has learnt."""
        words = self.read.known
        found = np.zeros(max(int(own.max(initial=0)) for _, own in shares) + 1)
        for learn, own in shares:
            seen = (np.bincount(words[self.inside(learn)].indices, minlength=words.shape[1]) > 0).astype(float)
            found[own] = (words[own] @ seen) / np.maximum(np.asarray(words[own].sum(axis=1)).ravel(), 1.0)
        return found

    def bank(self, learn: Floats) -> tuple[Floats, list[int]]:
        """Vectors of some known questions, label by label, and where each label's begin."""
        most = min(BANK_ROWS_PER_LABEL, max(5, self.bank_rows // self.labels))
        chosen: list[Floats] = []
        starts = [0]
        for at in range(self.labels):
            rows = learn[self.label[learn] == at]
            # Rows stand in the order of their texts: evenly spaced ones are no one corner of them.
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)] if len(rows) > most else rows
            chosen.append(rows)
            starts.append(starts[-1] + len(rows))
        return self.features["vector"][np.concatenate(chosen)].astype(np.float16).astype(np.float32), starts

    def finish(
        self, strengths: Mapping[Which, float], buckets: Floats, terms: Terms, say: Say
    ) -> tuple[dict[str, Floats], float]:
        """The heads, fitted on every row, as they are kept: a term's weights as bytes, and what a step is worth."""
        everything, inside = self.everything(), np.arange(len(self.label))
        say("fitting", 0.0)
        head = self.fit_head("words", everything, strengths["words"])
        weights = head.weights[: len(buckets)]
        step = float(np.abs(weights).max(initial=0)) / LEVELS or 1.0
        table = np.full((terms.buckets, self.labels + 1), ZERO, np.uint8)
        steps = np.rint(weights / step).astype(np.int16)
        noise = NOISE
        while np.count_nonzero(np.abs(steps) > noise) > MOST_WEIGHTS:
            noise += 1
        table[buckets, 1:] = np.where(np.abs(steps) <= noise, 0, steps) + ZERO
        table[:, 0] = 0
        table[np.unique(self.read.known[inside].indices), 0] = 1
        arrays: dict[str, Floats] = {
            "table": table,
            "shape": head.weights[len(buckets) :].astype(np.float32),
            "bias": head.bias.astype(np.float32),
        }
        if "vector" in self.features:
            say("fitting", 0.5)
            head = self.fit_head("vector", everything, strengths["vector"])
            bank, starts = self.bank(inside)
            arrays |= {
                "vector_weights": head.weights.astype(np.float16),
                "vector_bias": head.bias.astype(np.float32),
                "bank": bank.astype(np.float16),
                "bank_starts": np.array(starts, np.uint32),
            }
        say("fitting", 1.0)
        # In training a word counts 1; in the table it is looked up so many times.
        return arrays, step / WORD_COUNTS


Floats = npt.NDArray[Any]
Say = Callable[[str, float], None]
"""Hears what is being done, and how much of it is done, from 0 to 1."""

# Enough texts at once that asking costs little beside the work, few enough that progress is seen.
AT_ONCE = 256


class ReadTexts(NamedTuple):
    """What the word head reads of each text, a row for each."""

    terms: Any
    """How much of each bucket's term there is in it."""
    known: Any
    """1 for the bucket of each of its words and pairs."""
    shape: Floats

    def join(self, buckets: Floats) -> Any:
        """The terms in these buckets, and then the numbers of the shape."""
        from scipy.sparse import csr_matrix, hstack

        return hstack([self.terms[:, buckets], csr_matrix(self.shape)]).tocsr()


def choose_terms(labels: int) -> Terms:
    """As many buckets as there can be with so many labels."""
    buckets = MOST_BUCKETS
    while buckets > LEAST_BUCKETS and buckets * labels > MOST_CELLS:
        buckets //= 2
    return Terms(buckets=buckets)


def read_terms(folded: Sequence[str], terms: Terms) -> ReadTexts:
    """The same that serving reads, as matrices: a word counts 1, a run of letters in it a part of that, and the whole
    is divided by the root of how many words there are."""
    kept: dict[str, tuple[int, list[int]]] = {}
    counted, known = _Sparse(terms.buckets), _Sparse(terms.buckets)
    shape = np.zeros((len(folded), SHAPE_NUMBERS))
    for at, text in enumerate(map(terms.cut, folded)):
        tokens = tokenize(text)
        words = {word: kept.get(word) or kept.setdefault(word, terms.of_word(word)) for word in tokens}
        counts: Counter[int] = Counter()
        for _, letters in words.values():
            counts.update(letters)
        buckets = [words[token][0] for token in tokens]
        pairs = terms.of_pairs(buckets, [*map(terms.before, buckets)]) if tokens else ()
        for bucket in (*(own for own, _ in words.values()), *pairs):
            counts[bucket] += WORD_COUNTS
            known.add(bucket, 1.0)
        whole = WORD_COUNTS * sqrt(len(words) or 1)
        for bucket, count in counts.items():
            counted.add(bucket, count / whole)
        counted.end_row()
        known.end_row()
        if tokens:
            shape[at] = measure_shape(text, len(tokens), len(words))
    return ReadTexts(counted.matrix(), known.matrix(), shape)


class _Sparse:
    """A sparse matrix, row by row."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._ends, self._columns, self._values = [0], list[int](), list[float]()

    def add(self, column: int, value: float) -> None:
        self._columns.append(column)
        self._values.append(value)

    def end_row(self) -> None:
        self._ends.append(len(self._columns))

    def matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        parts = (np.array(self._values), np.array(self._columns, np.int32), np.array(self._ends, np.int32))
        made = csr_matrix(parts, shape=(len(self._ends) - 1, self._width))
        # Words come in a set's order, which differs from process to process: so would the last digit of a sum.
        made.sum_duplicates()
        return made


def count_ngrams(folded: Sequence[str], ngrams: Ngrams, dtype: Any = np.float64) -> Any:
    """A sparse matrix, a row for each text and a column for each bucket."""
    counted = _Sparse(ngrams.buckets)
    for text in folded:
        for bucket, value in zip(*ngrams.of(text), strict=True):
            counted.add(bucket, value)
        counted.end_row()
    return counted.matrix().astype(dtype)


def embed_texts(folded: Sequence[str], embedder: Embeds, say: Say | None = None) -> Floats:
    """A vector for each text."""
    found: list[Floats] = []
    for start in range(0, len(folded), AT_ONCE):
        asked = list(folded[start : start + AT_ONCE])
        part = np.asarray(embedder.embed(asked), np.float32)
        # An embedder elsewhere knows its width once it has answered.
        if part.shape != (len(asked), embedder.width) or not np.isfinite(part).all():
            raise LearnError(f"{embedder.name} gave vectors of shape {part.shape}, or such as are not finite")
        found.append(part)
        if say is not None:
            say("embedding", min(1.0, (start + AT_ONCE) / len(folded)))
    return np.concatenate(found)
