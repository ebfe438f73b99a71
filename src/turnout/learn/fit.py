"""Labelled questions in, a student out, with what it said of each question while it had not seen it.

Everything that is chosen (strengths, mixture, temperature, the curves of confidence, when words alone are enough) is
chosen by cross-validation on the rows that are given, near duplicates never on both sides. The same rows and seed give
the same student, in whatever order the rows come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

import turnout
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError, TooFewExamples, suggest
from turnout.layers.artefact import FORMAT, Embedder
from turnout.layers.student_model import Abstention, Alone, Confidence, StudentManifest, StudentModel, nearness
from turnout.text.fold import fold
from turnout.text.ngram import Ngrams

from .artefact import now
from .confidence import Mix, fit_mix
from .dataset import Example
from .feature import Floats, Say, count_ngrams, embed_texts
from .head import Head, Which, choose_strength, fit_head, to_bytes
from .metric import auroc, ece
from .split import k_fold
from .stage import LIKELIEST, NEAR_WEIGHT_NGRAMS, StageAnswers, Truth, fit_alone, say_of_each, serve

OOS_LABELS = (None, "", "oos", "out_of_scope")
"""Labels of questions that belong to no route, unless a route is called so."""

# Five folds of two rows: below that there is nothing left to judge by.
FEWEST_ROWS = 10
# Above this many rows every fit is long and every fold is large: three folds, and strengths tried on one of them.
MANY_ROWS = 6_000
FEW_FOLDS = 3
# On CLINC150's validation rows: nearness counts as much as the logit (AUROC .990; alone .983 and .978).
NEAR_WEIGHT = 1.0
# Of known questions so many vectors are kept: five labels of 400 are a quarter of a millisecond, all are 6 MB.
BANK_ROWS, BANK_ROWS_PER_LABEL = 8_192, 400


class FitSettings(Struct, frozen=True, forbid_unknown_fields=True):
    # 54,000 different n-grams of CLINC150 in 65,536 buckets: every third shares one. Only those in use are kept.
    ngrams: Ngrams = Ngrams(buckets=1 << 18)
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

    labels: tuple[str, ...]
    ngrams: Ngrams
    embedder: Embedder | None
    mix: Mix
    abstention: Abstention
    confidence: Confidence
    alone: Alone | None
    """The first of two stages, of a student with vectors whose words alone are often enough."""
    arrays: Mapping[str, Floats]
    counts: Mapping[str, int]
    oos_rows: int
    seed: int
    metrics: Mapping[str, float]
    """Out of fold: `accuracy`, `ece`, `rows`, `oos_auroc` where there are rows outside every label, `alone`: the share
    of the rows that words alone answer, where there are two stages.

    The four numbers of the curve of confidence were fitted on the same rows; `ece` is that much too good."""
    held: tuple[HeldOutAnswer, ...]
    """Every row that could be judged; a row that is the only one of its label cannot."""
    remarks: tuple[str, ...]

    def manifest(
        self,
        *,
        profile: str = "",
        layer: str = "student",
        data_hash: str = "",
        profile_hash: str = "",
        metrics: Mapping[str, float] | None = None,
        created: str | None = None,
    ) -> StudentManifest:
        """What its artefact says of it; `metrics` come on top of the cross-validated ones."""
        return StudentManifest(
            format=FORMAT,
            profile=profile,
            layer=layer,
            labels=self.labels,
            ngrams=self.ngrams,
            embedder=self.embedder,
            mix=self.mix.share,
            temperature=self.mix.temperature,
            abstention=self.abstention,
            confidence=self.confidence,
            metrics={**self.metrics, **(metrics or {})},
            counts=self.counts,
            oos_rows=self.oos_rows,
            data_hash=data_hash,
            profile_hash=profile_hash,
            seed=self.seed,
            created=created or now(),
            turnout=turnout.__version__,
            files={},
            alone=self.alone,
        )

    def model(self) -> StudentModel:
        """The student in memory, as it would be read from disk."""
        return StudentModel(self.manifest(), self.arrays)


class FitRow(NamedTuple):
    folded: str
    label: str
    weight: float
    at: int


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
    known, outside = _gather(rows, labels)
    counts = Counter(row.label for row in known)
    order = tuple(label for label in (labels or sorted(counts)) if counts[label])
    if len(order) < 2 or len(known) < FEWEST_ROWS:
        have = ", ".join(f"{label} {count}" for label, count in counts.most_common(5)) or "none"
        raise TooFewExamples(
            f"{len(known)} labelled questions of {len(order)} labels ({have}): a student needs at least {FEWEST_ROWS} "
            "of at least 2; label more of them: turnout feedback, or a file with text and label"
        )
    ngrams = settings.ngrams
    every = (*known, *outside)
    texts = [row.folded for row in every]
    counted = count_ngrams(texts, ngrams)
    buckets = np.unique(counted[: len(known)].indices)
    vectors = embed_texts(_cut(texts, ngrams), embedder, say) if embedder is not None else None
    label = np.array([order.index(row.label) for row in known])
    weight = np.array([row.weight for row in known])
    fitting = _TrainingMatrices(counted[:, buckets].tocsr(), vectors, label, weight, len(order), seed)

    folds, remarks = _folds(known, settings, seed)
    held = fitting.hold_out(folds, len(outside), say)
    mix = held.mix
    judged = np.flatnonzero(held.judged[: len(known)])
    if not len(judged):
        raise TooFewExamples("every label has one question, or near copies of one: at least some need two that differ")
    beyond = np.arange(len(known), len(texts))
    truth = Truth(label, weight, judged, beyond, settings.oos_share)
    logits = mix.of(held.ngram, held.vector)
    near_weight = NEAR_WEIGHT if vectors is not None else NEAR_WEIGHT_NGRAMS
    whole = served = say_of_each(logits, held.near(logits, fitting, folds), near_weight, truth)
    alone = None
    metrics = {}
    if vectors is not None:
        alone, served, early = _stage(held, whole, truth, fitting, folds)
        if alone is not None:
            metrics["alone"] = float(early[judged].mean())
    right = truth.right(served.best)[judged]
    metrics |= {
        "accuracy": float(right.mean()),
        "ece": float(ece(right, served.stated[judged])),
        "rows": float(len(judged)),
    }
    if len(beyond):
        rows_of = np.concatenate([judged, beyond])
        metrics["oos_auroc"] = float(auroc(np.arange(len(rows_of)) < len(judged), served.knownness[rows_of]))
    arrays = fitting.finish(held.strengths, buckets, say)
    return StudentFit(
        order,
        ngrams,
        Embedder(embedder.name, embedder.width) if embedder is not None else None,
        mix,
        whole.abstention,
        whole.confidence,
        alone,
        arrays,
        {name: counts[name] for name in order},
        len(outside),
        seed,
        metrics,
        tuple(
            HeldOutAnswer(
                every[i].at,
                known[i].label if i < len(known) else None,
                order[served.best[i]],
                float(served.stated[i]),
                float(served.knownness[i]),
            )
            for i in sorted((*judged, *beyond), key=lambda i: every[i].at)
        ),
        tuple(remarks),
    )


def _stage(
    held: _FoldScores, whole: StageAnswers, truth: Truth, fitting: _TrainingMatrices, folds: Folds
) -> tuple[Alone | None, StageAnswers, npt.NDArray[np.bool_]]:
    """The stage of words alone, if it is worth having; what is said with it, and where it was enough."""
    own = truth.judged
    mix = fit_mix(held.ngram[own], None, truth.label[own], truth.weight[own])
    by_words = say_of_each(mix.of(held.ngram, None), held.known_share(fitting, folds), NEAR_WEIGHT_NGRAMS, truth)
    stage = fit_alone(by_words, mix.temperature, whole, truth)
    if stage is None:
        return None, whole, np.zeros(len(whole.best), bool)
    return stage, *serve(by_words, stage, whole)


def _cut(texts: Sequence[str], ngrams: Ngrams) -> list[str]:
    """What of each text is embedded, when fitting as when serving."""
    return [text[: ngrams.characters] for text in texts]


def _gather(
    rows: Iterable[Example | tuple[str, str | None]], labels: Sequence[str] | None
) -> tuple[list[FitRow], list[FitRow]]:
    """The rows with a label and those outside every label, each in an order of their own content's."""
    known: list[FitRow] = []
    outside: list[FitRow] = []
    strange: Counter[str] = Counter()
    for at, row in enumerate(rows):
        text, label, weight = (*row, 1.0) if isinstance(row, tuple) else (row.text, row.label, row.weight)
        folded = fold(text).text
        if not folded or weight <= 0:
            continue
        if label in OOS_LABELS and (label is None or label not in (labels or ())):
            outside.append(FitRow(folded, "", weight, at))
        elif labels is not None and label not in labels:
            strange[str(label)] += 1
        else:
            known.append(FitRow(folded, str(label), weight, at))
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


class _FoldScores(NamedTuple):
    """Scores of every row by heads that have not seen it; rows outside every label come last."""

    ngram: Floats
    vector: Floats | None
    judged: npt.NDArray[np.bool_]
    """Whether it was judged by heads that know its label."""
    by: npt.NDArray[np.int64]
    """Which fold judged it."""
    mix: Mix
    strengths: Mapping[Which, float]

    def near(self, logits: Floats, fitting: _TrainingMatrices, folds: Folds) -> Floats:
        """How near the rows a fold learnt from are to those it judged, as serving measures it."""
        if fitting.vectors is None:
            return self.known_share(fitting, folds)
        near = np.zeros(len(logits))
        for at, (learn, _) in enumerate(folds):
            bank, starts = fitting.bank(learn)
            for row in np.flatnonzero(self.by == at):
                near[row] = nearness(bank, starts, logits[row], fitting.vectors[row], labels=LIKELIEST)
        return near

    def known_share(self, fitting: _TrainingMatrices, folds: Folds) -> Floats:
        """The share of a row's n-grams that its fold has learnt."""
        squares = fitting.counted.multiply(fitting.counted).tocsr()
        found = np.zeros(squares.shape[0])
        for at, (learn, _) in enumerate(folds):
            seen = (np.bincount(fitting.counted[learn].indices, minlength=squares.shape[1]) > 0).astype(float)
            judged = np.flatnonzero(self.by == at)
            found[judged] = squares[judged] @ seen
        return found


class _TrainingMatrices(NamedTuple):
    """The matrices of one training."""

    counted: Any
    vectors: Floats | None
    label: Floats
    weight: Floats
    labels: int
    seed: int

    def _features(self) -> dict[Which, Any]:
        found: dict[Which, Any] = {"ngram": self.counted}
        if self.vectors is not None:
            found["vector"] = self.vectors
        return found

    def hold_out(self, folds: Folds, outside: int, say: Say) -> _FoldScores:
        known = len(self.label)
        tried = folds if known <= MANY_ROWS // FEW_FOLDS else folds[:1]
        scores: dict[Which, Floats] = {}
        strengths: dict[Which, float] = {}
        judged = np.zeros(known, bool)
        by = np.full(known + outside, -1)
        by[known:] = np.arange(outside) % len(folds)
        for at, (learn, judge) in enumerate(folds):
            by[judge] = at
            judged[judge] = np.isin(self.label[judge], self.label[learn])
        for which, features in self._features().items():
            say(f"choosing the {which} head", 0.0)
            strengths[which] = choose_strength(
                which, features[:known], self.label, self.labels, tried, weight=self.weight, seed=self.seed
            )
            scores[which] = np.zeros((known + outside, self.labels))
            for at, (learn, _) in enumerate(folds):
                say(f"cross-validating the {which} head", at / len(folds))
                own = np.flatnonzero(by == at)
                head = self._head(which, learn, strengths[which])
                scores[which][own] = head.score(features[own])
        own = np.flatnonzero(judged)
        vector = scores.get("vector")
        mix = fit_mix(
            scores["ngram"][own], vector[own] if vector is not None else None, self.label[own], self.weight[own]
        )
        return _FoldScores(scores["ngram"], vector, judged, by, mix, strengths)

    def _head(self, which: Which, learn: Any, strength: float) -> Head:
        features = self._features()[which]
        return fit_head(
            which,
            features[learn],
            self.label[learn],
            self.labels,
            strength=strength,
            weight=self.weight[learn],
            seed=self.seed,
        )

    def bank(self, learn: Floats) -> tuple[Floats, list[int]]:
        """Vectors of some known questions, label by label, and where each label's begin."""
        if self.vectors is None:
            raise LearnError("there are no vectors to keep")
        most = min(BANK_ROWS_PER_LABEL, max(5, BANK_ROWS // self.labels))
        chosen: list[Floats] = []
        starts = [0]
        for at in range(self.labels):
            rows = learn[self.label[learn] == at]
            # Rows stand in the order of their texts: evenly spaced ones are no one corner of them.
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)] if len(rows) > most else rows
            chosen.append(rows)
            starts.append(starts[-1] + len(rows))
        return self.vectors[np.concatenate(chosen)].astype(np.float16).astype(np.float32), starts

    def finish(self, strengths: Mapping[Which, float], buckets: Floats, say: Say) -> dict[str, Floats]:
        """The heads, fitted on every row, as they are kept."""
        everything = np.arange(len(self.label))
        say("fitting", 0.0)
        head = self._head("ngram", everything, strengths["ngram"])
        weights, scales = to_bytes(head.weights)
        arrays: dict[str, Floats] = {
            "ngram_rows": buckets.astype(np.uint32),
            "ngram_weights": weights,
            "ngram_scales": scales,
            "ngram_bias": head.bias.astype(np.float32),
        }
        if self.vectors is not None:
            say("fitting", 0.5)
            head = self._head("vector", everything, strengths["vector"])
            bank, starts = self.bank(everything)
            arrays |= {
                "vector_weights": head.weights.astype(np.float16),
                "vector_bias": head.bias.astype(np.float32),
                "bank": bank.astype(np.float16),
                "bank_starts": np.array(starts, np.uint32),
            }
        say("fitting", 1.0)
        return arrays
