"""Fits a student to labelled questions, and returns its answers to each question before it had seen it.

Strengths, mixture, temperature, the curves of confidence and when words alone are enough: all are chosen by
cross-validation, near duplicates never on both sides. The same rows and seed give the same student, in any order.
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

from .confidence import LIKELIEST, NEAR_WEIGHT_WORDS, Mix, Truth, fit_alone, fit_mix, judge_stage, serve
from .dataset import Example
from .metric import auroc, ece
from .registry import now
from .split import k_fold

Floats = npt.NDArray[Any]
Say = Callable[[str, float], None]
"""Called with the current step and how much of it is done, from 0 to 1."""
Which = Literal["words", "vector"]

OOS_LABELS = (None, "", "oos", "out_of_scope")
"""Labels of questions that belong to no route, unless a route has that name."""

# Five folds of two rows; fewer leave nothing to judge by.
FEWEST_ROWS = 10
# Above this many rows fits are slow and folds are large: three folds, and strengths are tried on one of them.
MANY_ROWS = 6_000
FEW_FOLDS = 3
# On CLINC150's validation rows: nearness counts as much as the logit (AUROC .990; alone .983 and .978).
NEAR_WEIGHT = 1.0
# The most vectors of known questions that are kept: five labels of 400 take a quarter of a millisecond, all take 6 MB.
BANK_ROWS, BANK_ROWS_PER_LABEL = 8_192, 400
# Weights of one or two steps of 127 change no answer and are a third of the file. With more than MOST_WEIGHTS a student
# would exceed a megabyte; there three or four steps change no answer either.
NOISE, MOST_WEIGHTS = 2, 400_000

# Strengths tried for each head, the weakest first; measured on CLINC150's validation rows, where words are best at
# 0.6 (93.7 %) and vectors at 10 (96.0 %), and a third or three times that costs up to half a point. Few rows need the
# lower, many the higher.
STRENGTHS: dict[Which, tuple[float, ...]] = {"words": (0.2, 0.6, 2.0), "vector": (3.0, 10.0, 30.0)}
# Compared with 1e-4, this costs no accuracy and takes a third of the time.
SVC_TOLERANCE = 1e-2
# The logistic regression of vectors usually converges in about 30 steps.
LR_STEPS = 300
# If no out-of-scope question is given, the labels are left out in turn, in this many groups, and their questions are
# out of scope for the rest. With fewer than three labels a group, too little of the task would be left.
LEFT_OUT_GROUPS, LEFT_OUT_LABELS = 3, 9
# With fewer labels, every tenth question is reversed and stands for text that is no language; few such texts are asked.
BACKWARDS, BACKWARDS_SHARE = 10, 0.02
# The score of a label that a fold has never seen.
UNSEEN = -100.0
# The positive levels of a signed byte.
LEVELS = 127
# A table has a byte for each bucket and label: 32 MB at most, in memory.
MOST_CELLS = 1 << 25
# CLINC150's 54,000 terms share 65,536 buckets, every third with another term. More than 2^20 buckets gain nothing.
LEAST_BUCKETS, MOST_BUCKETS = 1 << 14, 1 << 20
# Texts embedded in one call: large enough that the call costs little, small enough to show progress.
AT_ONCE = 256


class FitSettings(Struct, frozen=True, forbid_unknown_fields=True):
    terms: Terms | None = None
    """None for as many buckets as the number of labels allows."""
    bank_rows: Annotated[int, Meta(ge=1, le=BANK_ROWS)] = BANK_ROWS
    """The most known questions whose vectors are kept."""
    folds: Annotated[int, Meta(ge=2, le=20)] = 5
    oos_share: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.1
    """The expected share of out-of-scope questions, which confidence allows for if there are such rows."""


class HeldOutAnswer(NamedTuple):
    """The answer of a student to a question it had not seen."""

    row: int
    """The index of the row in the input."""
    label: str | None
    """The true label; None for a question outside every label."""
    said: str
    confidence: float
    knownness: float


class StudentFit(NamedTuple):
    """A student, ready to be written."""

    draft: StudentManifest
    """Its manifest, without the profile, the layer and the hash of the rows.

    Its metrics are out of fold: `accuracy`, `ece`, `rows`, `oos_auroc` if there are rows outside every label, and
    `alone`, the share of rows that words alone answer, if there are two stages. `ece` is slightly optimistic, because
    the four numbers of the confidence curve were fitted on the same rows."""
    arrays: Mapping[str, Floats]
    held: tuple[HeldOutAnswer, ...]
    """An answer for every row that could be judged; the only row of a label cannot."""
    remarks: tuple[str, ...]

    def model(self) -> StudentModel:
        """The student in memory, as read from disk."""
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
    """Fit a student to these rows: examples, or pairs of text and label.

    `labels` are the routes; a row with any other label is refused, and a route without a row is never chosen. Rows with
    a label in OOS_LABELS are outside every route and teach the student when to be unsure.
    """
    settings = settings or FitSettings()
    known, oos = _gather(rows, labels)
    counts = Counter(row.label for row in known)
    order = tuple(label for label in (labels or sorted(counts)) if counts[label])
    if len(order) < 2 or len(known) < FEWEST_ROWS:
        have = ", ".join(f"{label} {count}" for label, count in counts.most_common(5)) or "none"
        raise TooFewExamples(
            f"{len(known)} labelled questions of {len(order)} labels ({have}): a student needs at least {FEWEST_ROWS} "
            "of at least 2; label more of them: turnout feedback, or a file with text and label"
        )
    terms = settings.terms or choose_terms(len(order))
    leave_out = not oos and len(order) >= LEFT_OUT_LABELS
    outside = oos if oos or leave_out else [row._replace(folded=row.folded[::-1]) for row in known[::BACKWARDS]]
    every = (*known, *outside)
    texts = [row.folded for row in every]
    say("reading", 0.0)
    read = read_terms(texts, terms)
    # Corrections are few beside the rows a student ships with; where they are not, they need no help.
    corrected = np.array([at for at, row in enumerate(known) if row.by_person], np.int64)
    if 2 * len(corrected) > len(known):
        corrected = corrected[:0]
    reversed_read = read_terms([" ".join(reversed(known[at].folded.split())) for at in corrected], terms)
    learnt_terms = (read.terms[: len(known) + len(oos)].indices, reversed_read.terms.indices)
    buckets = np.unique(np.concatenate(learnt_terms))
    features: dict[Which, Any] = {"words": read.join(buckets)}
    if embedder is not None:
        features["vector"] = embed_texts([terms.cut(text)[:EMBEDDED_CHARACTERS] for text in texts], embedder, say)
    label = np.array([order.index(row.label) for row in known] + [len(order)] * len(outside))
    weight = np.array([row.weight for row in known] + [1.0] * len(outside))
    folds, remarks = _folds(known, settings, seed)
    fitting = _Fitting(
        features,
        read,
        label,
        weight,
        len(order),
        seed,
        folds,
        len(known),
        bool(oos),
        settings.bank_rows,
        corrected,
        reversed_read.join(buckets),
    )

    strengths = {which: fitting.choose_strength(which, say) for which in features}
    scores = {which: fitting.score(which, strengths[which], fitting.shares(), say) for which in features}
    judged = np.flatnonzero(fitting.judged())
    if not len(judged):
        raise TooFewExamples("every label has one question, or near copies of one: at least some need two that differ")
    judges = [(fitting.shares(), scores)]
    if leave_out:
        groups = fitting.leave_labels_out()
        judges.append((groups, {which: fitting.score(which, strengths[which], groups, say) for which in features}))
    beyond = np.arange(len(known), len(texts) + len(known) * leave_out)
    oos_share = settings.oos_share if oos or leave_out else min(BACKWARDS_SHARE, settings.oos_share)
    truth = Truth(label, weight, judged, beyond, oos_share)

    def mix_heads(vector: Floats | None) -> Mix:
        return fit_mix(scores["words"][judged], vector, label[judged], weight[judged])

    words = mix = mix_heads(None)
    known_share = np.concatenate([fitting.known_share(shares) for shares, _ in judges])
    logits = np.concatenate([words.of(scored["words"], None) for _, scored in judges])
    first = whole = served = judge_stage(logits, known_share, NEAR_WEIGHT_WORDS, truth)
    alone, metrics = None, {}
    if embedder is not None:
        mix = mix_heads(scores["vector"][judged])
        mixed = [(shares, mix.of(scored["words"], scored["vector"])) for shares, scored in judges]
        near = np.concatenate([fitting.near(logits, shares) for shares, logits in mixed])
        whole = judge_stage(np.concatenate([logits for _, logits in mixed]), near, NEAR_WEIGHT, truth)
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
    held_rows = np.concatenate([judged, beyond[: len(oos)]])
    if oos:
        metrics["oos_auroc"] = float(auroc(held_rows < len(known), served.knownness[held_rows]))
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
        oos_rows=len(oos),
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
        for i in sorted(held_rows, key=lambda i: every[i].at)
    )
    return StudentFit(draft, arrays, tuple(held), remarks)


def _gather(
    rows: Iterable[Example | tuple[str, str | None]], labels: Sequence[str] | None
) -> tuple[list[FitRow], list[FitRow]]:
    """The rows with a label and those outside every label, each sorted by their text."""
    known: list[FitRow] = []
    outside: list[FitRow] = []
    unknown: Counter[str] = Counter()
    for at, row in enumerate(rows):
        text, label, weight = (*row, 1.0) if isinstance(row, tuple) else (row.text, row.label, row.weight)
        by_person = not isinstance(row, tuple) and row.by == "human"
        folded = fold(text).text
        if not folded or weight <= 0:
            continue
        if label in OOS_LABELS and (label is None or label not in (labels or ())):
            outside.append(FitRow(folded, "", weight, at))
        elif labels is not None and label not in labels:
            unknown[str(label)] += 1
        else:
            known.append(FitRow(folded, str(label), weight, at, by_person))
    if unknown:
        name, count = unknown.most_common(1)[0]
        hint = suggest(name, labels or ()) or f" (routes: {', '.join(labels or ())})"
        raise LearnError(f"{unknown.total()} rows have a label that is not a route, {name!r} {count} times{hint}")
    return sorted(known), sorted(outside)


Folds = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def _folds(known: Sequence[FitRow], settings: FitSettings, seed: int) -> tuple[Folds, tuple[str, ...]]:
    count = settings.folds if len(known) <= MANY_ROWS else min(settings.folds, FEW_FOLDS)
    splits = k_fold([Example(row.folded, row.label) for row in known], folds=min(count, len(known)), seed=seed)
    folds = [(np.array(split.learn, np.int64), np.array(split.judge, np.int64)) for split in splits]
    # A fold of a tiny set may have a single label to learn from; it is left out.
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
        scores: Floats = np.asarray(features @ self.weights) + self.bias
        return scores


class _Fitting(NamedTuple):
    """The rows that the heads are fitted to. Rows outside every label come last; their label is `labels`."""

    features: Mapping[Which, Any]
    read: ReadTexts
    label: Floats
    weight: Floats
    labels: int
    """The number of labels."""
    seed: int
    folds: Folds
    known: int
    """The number of rows with a label."""
    learn_outside: bool
    """Whether rows outside every label are learnt from, as rows that no label may claim, or only judged."""
    bank_rows: int
    corrected: npt.NDArray[np.int64]
    """The rows that people labelled. Among thousands of others the word head fits such a row by small changes to its
    words, pairs of words and letters; the next question shares the words alone, and gets only a part of that. So these
    rows are learnt a second time with their words in reverse, which shares nothing but the words. A greater weight does
    not help: a row that is already right changes nothing."""
    reversed_words: Any
    """The reversed rows as the word head reads them. They are learnt and never judged."""

    def fit_head(self, which: Which, learn: Any, strength: float) -> Head:
        """Fit one head to these rows; a label without a row is never chosen."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        model: Any
        if which == "words":
            model = LinearSVC(C=strength, tol=SVC_TOLERANCE, random_state=self.seed)
        else:
            model = LogisticRegression(C=strength, max_iter=LR_STEPS)
        label, weight, features = self.label[learn], self.weight[learn], self.features[which][learn]
        if which == "words" and len(again := np.flatnonzero(np.isin(self.corrected, learn))):
            from scipy.sparse import vstack

            rows = self.corrected[again]
            features = vstack([features, self.reversed_words[again]], format="csr")
            label, weight = np.append(label, self.label[rows]), np.append(weight, self.weight[rows])
        with warnings.catch_warnings():
            # A fit that stops early is judged by the same folds as any other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Both losses are sums over rows, so the mean weight must be 1 or it would change the regularisation.
            model.fit(features, label, sample_weight=weight / weight.mean())
        weights, bias = model.coef_.T, model.intercept_
        if weights.shape[1] == 1:
            # A model of two labels has one column: half of it goes to each label.
            weights, bias = np.concatenate([-weights, weights], axis=1) / 2, np.concatenate([-bias, bias]) / 2
        own = model.classes_ < self.labels
        all_weights = np.zeros((weights.shape[0], self.labels))
        all_bias = np.full(self.labels, UNSEEN)
        all_weights[:, model.classes_[own]], all_bias[model.classes_[own]] = weights[:, own], bias[own]
        return Head(all_weights, all_bias)

    def choose_strength(self, which: Which, say: Say) -> float:
        """The strength with most held-out rows right; of equals the weakest."""
        say(f"choosing the {which} head", 0.0)
        tried = self.folds if self.known <= MANY_ROWS // FEW_FOLDS else self.folds[:1]
        rights: dict[float, int] = dict.fromkeys(STRENGTHS[which], 0)
        for strength in rights:
            for learn, judge in tried:
                scores = self.fit_head(which, learn, strength).score(self.features[which][judge])
                rights[strength] += int((scores.argmax(1) == self.label[judge]).sum())
        return max(rights, key=lambda strength: (rights[strength], -strength))

    def score(self, which: Which, strength: float, shares: Folds, say: Say) -> Floats:
        """The scores of each row by a head that has not seen it."""
        scores = np.zeros((max(int(own.max(initial=0)) for _, own in shares) + 1, self.labels))
        for at, (learn, own) in enumerate(shares):
            say(f"cross-validating the {which} head", at / len(shares))
            scores[own] = self.fit_head(which, learn, strength).score(self.features[which][own])
        return scores

    def leave_labels_out(self) -> Folds:
        """Groups of labels in turn: the rows of all other labels to learn from, and the group's own rows, which are
        then out of scope."""
        of_label = np.random.default_rng(self.seed).permutation(self.labels) % LEFT_OUT_GROUPS
        group = of_label[self.label[: self.known]]
        return [(np.flatnonzero(group != at), np.flatnonzero(group == at)) for at in range(LEFT_OUT_GROUPS)]

    def shares(self) -> Folds:
        """For each fold the rows to learn from and to judge; rows outside every label are divided among the folds."""
        beyond = np.arange(self.known, len(self.label))
        folds = len(self.folds)
        return [
            (
                np.concatenate([learn, beyond[beyond % folds != at]]) if self.learn_outside else learn,
                np.concatenate([judge, beyond[beyond % folds == at]]),
            )
            for at, (learn, judge) in enumerate(self.folds)
        ]

    def judged(self) -> npt.NDArray[np.bool_]:
        """Which rows with a label were judged by heads that know it."""
        judged = np.zeros(self.known, bool)
        for learn, judge in self.folds:
            judged[judge] = np.isin(self.label[judge], self.label[learn])
        return judged

    def near(self, logits: Floats, shares: Folds) -> Floats:
        """How near each judged row is to the rows its fold learnt from, as serving measures it."""
        near = np.zeros(len(logits))
        for learn, own in shares:
            bank, starts = self.bank(learn)
            for row in own:
                near[row] = nearness(bank, starts, logits[row], self.features["vector"][row], labels=LIKELIEST)
        return near

    def known_share(self, shares: Folds) -> Floats:
        """The share of a row's words and pairs that its fold has learnt."""
        words = self.read.known
        known = np.zeros(max(int(own.max(initial=0)) for _, own in shares) + 1)
        for learn, own in shares:
            seen = (np.bincount(words[learn[learn < self.known]].indices, minlength=words.shape[1]) > 0).astype(float)
            known[own] = (words[own] @ seen) / np.maximum(np.asarray(words[own].sum(axis=1)).ravel(), 1.0)
        return known

    def bank(self, learn: Floats) -> tuple[Floats, list[int]]:
        """The vectors of some known questions, label by label, and where each label begins."""
        most = min(BANK_ROWS_PER_LABEL, max(5, self.bank_rows // self.labels))
        chosen: list[Floats] = []
        starts = [0]
        for at in range(self.labels):
            rows = learn[self.label[learn] == at]
            # Rows are sorted by text, so evenly spaced ones cover all of them.
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)] if len(rows) > most else rows
            chosen.append(rows)
            starts.append(starts[-1] + len(rows))
        return self.features["vector"][np.concatenate(chosen)].astype(np.float16).astype(np.float32), starts

    def finish(
        self, strengths: Mapping[Which, float], buckets: Floats, terms: Terms, say: Say
    ) -> tuple[dict[str, Floats], float]:
        """The heads, fitted on every row, as they are stored: term weights as bytes, and the value of one step."""
        inside = np.arange(self.known)
        everything = np.arange(len(self.label)) if self.learn_outside else inside
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
        # In training a word counts 1; serving adds its weights WORD_COUNTS times.
        return arrays, step / WORD_COUNTS


class ReadTexts(NamedTuple):
    """The features of the word head, a row for each text."""

    terms: Any
    """The weight of each bucket's terms in the text."""
    known: Any
    """1 for the bucket of each of its words and pairs."""
    shape: Floats

    def join(self, buckets: Floats) -> Any:
        """The terms in these buckets, followed by the numbers of the shape."""
        from scipy.sparse import csr_matrix, hstack

        return hstack([self.terms[:, buckets], csr_matrix(self.shape)]).tocsr()


def choose_terms(labels: int) -> Terms:
    """As many buckets as fit in memory with this many labels."""
    buckets = MOST_BUCKETS
    while buckets > LEAST_BUCKETS and buckets * labels > MOST_CELLS:
        buckets //= 2
    return Terms(buckets=buckets)


def read_terms(folded: Sequence[str], terms: Terms) -> ReadTexts:
    """The features that serving reads, as matrices. A word counts 1, a run of letters in it less, and all are divided
    by the square root of the number of words."""
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
        scale = WORD_COUNTS * sqrt(len(words) or 1)
        for bucket, count in counts.items():
            counted.add(bucket, count / scale)
        counted.end_row()
        known.end_row()
        if tokens:
            shape[at] = measure_shape(text, len(tokens), len(words))
    return ReadTexts(counted.matrix(), known.matrix(), shape)


class _Sparse:
    """Builds a sparse matrix row by row."""

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
        matrix = csr_matrix(parts, shape=(len(self._ends) - 1, self._width))
        # Pairs come in the order of a set, which differs between processes, and so would the last digit of a sum.
        matrix.sum_duplicates()
        return matrix


def count_ngrams(folded: Sequence[str], ngrams: Ngrams, dtype: Any = np.float64) -> Any:
    """The n-grams of each text as a sparse matrix, with a column for each bucket."""
    counted = _Sparse(ngrams.buckets)
    for text in folded:
        for bucket, value in zip(*ngrams.of(text), strict=True):
            counted.add(bucket, value)
        counted.end_row()
    return counted.matrix().astype(dtype)


def embed_texts(folded: Sequence[str], embedder: Embeds, say: Say | None = None) -> Floats:
    """A vector for each text."""
    parts: list[Floats] = []
    for start in range(0, len(folded), AT_ONCE):
        asked = list(folded[start : start + AT_ONCE])
        part = np.asarray(embedder.embed(asked), np.float32)
        # A remote embedder knows its width only after its first answer.
        if part.shape != (len(asked), embedder.width) or not np.isfinite(part).all():
            raise LearnError(f"{embedder.name} gave vectors of shape {part.shape}, or such as are not finite")
        parts.append(part)
        if say is not None:
            say("embedding", min(1.0, (start + AT_ONCE) / len(folded)))
    return np.concatenate(parts)
