"""A student: how it judges a text, by two linear heads, with one probability and one measure of knownness.

Where it has vectors it judges in two stages: by the words alone, and only if those leave it less sure than training
found to be enough, by words and vector together. Making a vector takes twenty times as long as all the rest. Judging is
NumPy alone, and a function of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from msgspec import Meta, Struct

from turnout.core.errors import ArtefactUnreadable

from .artefact import (
    LARGEST,
    MOST_LABELS,
    WEIGHTS,
    Count,
    Expected,
    Finite,
    Manifest,
    Positive,
    Share,
    read_artefact,
)

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# The least that others may add up to: e to the power of -30, of which float32 still knows six digits.
LEAST = 1e-13
# With no more labels than this, what NumPy takes to be called is longer than the arithmetic.
FEW = 8


class Scale(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a measure of questions that were known lies: how far a new one is from that is counted in `spread`s."""

    mean: Finite
    spread: Positive

    def of(self, value: float) -> float:
        return (value - self.mean) / self.spread


# So many spreads below the average nearness no question was found that had anything to do with the training: it is
# noise, or another language's letters. Whatever label its length makes likely, even odds are the most that is said.
# Where all training questions are alike, spreads are tiny: then a third less than the average is wanted as well.
STRANGE, STRANGE_SHARE = -6.0, 0.67


class Abstention(Struct, frozen=True, forbid_unknown_fields=True):
    """How a question is told from those that were not learnt: by its best logit and by how near known questions are."""

    logit: Scale
    near: Scale
    near_weight: Annotated[float, Meta(ge=0.0, le=100.0)]
    """What nearness counts for beside the logit."""
    nearest: Annotated[int, Meta(ge=1, le=100)] = 5
    """Over how many known questions the nearness is a mean. Without vectors it is the share of known n-grams."""
    labels: Annotated[int, Meta(ge=1, le=MOST_LABELS)] = 5
    """Among how many of the likeliest labels they are looked for."""


class Confidence(Struct, frozen=True, forbid_unknown_fields=True):
    """The probability that the best label is right: a logistic curve of three measures."""

    bias: Finite
    logit: Finite
    near: Finite
    margin: Finite
    """Weight of the best label's lead: its log-odds against all others together."""
    oos_share: Share
    """The share of questions outside every label that it was fitted for."""


class Alone(Struct, frozen=True, forbid_unknown_fields=True):
    """How the n-gram head judges by itself, and from where on that is enough."""

    temperature: Positive
    abstention: Abstention
    confidence: Confidence
    known: Scale
    """Brings its knownness to that of the two heads together, so that the two compare."""
    sure: Share
    """The least confidence with which it answers; below, the vector is asked for."""


# A field that is not there is not written: the digest of a student without it is what it was before there was one.
class StudentManifest(Manifest, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    KIND: ClassVar[str] = "a student"

    labels: Annotated[tuple[str, ...], Meta(min_length=2, max_length=MOST_LABELS)]
    mix: Share
    """The n-gram head's share of a logit; the rest is the vector head's."""
    temperature: Positive
    abstention: Abstention
    confidence: Confidence
    metrics: Mapping[str, float]
    oos_rows: Count
    alone: Alone | None = None
    """The first of two stages; None: every question is judged by all there is."""

    def contradictions(self) -> list[str]:
        found = []
        if len(set(self.labels)) < len(self.labels):
            found.append("a label stands in it twice")
        if self.alone is not None and (self.embedder is None or self.mix <= 0):
            found.append("a stage for words alone is for a student of words and vectors")
        return found

    def arrays(self) -> Expected:
        labels = len(self.labels)
        expected: Expected = {
            "ngram_rows": ("uint32", ("rows",)),
            "ngram_weights": ("int8", ("rows", labels)),
            "ngram_scales": ("float32", ("rows",)),
            "ngram_bias": ("float32", (labels,)),
        }
        if self.embedder is None:
            return expected
        return {
            **expected,
            "vector_weights": ("float16", (self.embedder.width, labels)),
            "vector_bias": ("float32", (labels,)),
            "bank": ("float16", ("known", self.embedder.width)),
            "bank_starts": ("uint32", (labels + 1,)),
        }

    def faults_of(self, arrays: Mapping[str, Array]) -> list[str]:
        import numpy as np

        problems = []
        rows = arrays["ngram_rows"].astype(np.int64)
        if len(rows) and (int(rows.max()) >= self.ngrams.buckets or (np.diff(rows) <= 0).any()):
            problems.append(f"ngram_rows are not rising numbers under {self.ngrams.buckets}")
        if self.embedder is not None:
            starts = arrays["bank_starts"].astype(np.int64)
            if starts[0] != 0 or starts[-1] != len(arrays["bank"]) or (np.diff(starts) < 0).any():
                problems.append("bank_starts do not divide the bank among the labels")
        return problems


class StudentAnswer(NamedTuple):
    """What a student says of one text."""

    label: str
    confidence: float
    """The probability that the label is right, out-of-scope questions counted."""
    knownness: float
    """How much it is like what was learnt, 0 for the average known question; the higher, the more."""
    probabilities: Array | list[float]
    """Of each label, should one of them be right; a list where labels are few."""
    best: int
    second: int
    near: float
    """Mean cosine to the nearest known questions; where no vector was looked at, the share of its known n-grams."""
    logit: float
    lead: float
    alone: bool = False
    """Whether the words were enough, and no vector was looked at."""


class NgramScores(NamedTuple):
    """What the n-gram head makes of a text, before anything is made of that."""

    part: Array
    """Its part of the logits, in the mixture's measure, without the bias."""
    known: float
    """The share of n-grams that it knows."""


class StudentModel:
    """An artefact in memory. Never changes; any number of threads may use it."""

    def __init__(self, manifest: StudentManifest, arrays: Mapping[str, Array]) -> None:
        import numpy as np

        self.manifest = manifest
        self.labels = manifest.labels
        self.ngrams = manifest.ngrams
        self.embedder = manifest.embedder
        self._np = np
        rows = arrays["ngram_rows"]
        # One row more than there are: where every n-gram that was never seen leads, and nothing stands.
        # As narrow as it can be: a decision looks at some hundred places of it, and memory is what that costs.
        narrow = np.uint16 if len(rows) < 1 << 16 else np.int32
        self._row = np.full(manifest.ngrams.buckets, len(rows), narrow)
        self._row[rows] = np.arange(len(rows), dtype=narrow)
        share = manifest.mix / manifest.temperature
        self._weights = np.concatenate([arrays["ngram_weights"], np.zeros((1, len(self.labels)), np.int8)])
        scales = np.concatenate([arrays["ngram_scales"], np.zeros(1, np.float32)]) * np.float32(share)
        self._scales: Array | None = np.ascontiguousarray(scales)
        self._few = len(self.labels) <= FEW
        if self._few:
            # Ready to be added up: four bytes a weight instead of one.
            self._weights, self._scales = self._weights.astype(np.float32) * scales[:, None], None
        self._unknown = len(rows)
        rest = (1.0 - manifest.mix) / manifest.temperature
        self._bias = self._ngram_bias = (arrays["ngram_bias"] * share).astype(np.float32)
        # From the mixture's measure to that of the n-gram head by itself.
        self._by_itself = np.float32(1.0 if manifest.alone is None else 1.0 / (share * manifest.alone.temperature))
        self._vector_weights: Array | None = None
        if manifest.embedder is not None:
            self._vector_weights = np.ascontiguousarray(arrays["vector_weights"].astype(np.float32) * np.float32(rest))
            self._bias = self._bias + (arrays["vector_bias"] * rest).astype(np.float32)
            self._bank = arrays["bank"].astype(np.float32)
            self._starts = [int(start) for start in arrays["bank_starts"]]

    def largest(self) -> float:
        """The largest number a logit is added up from; infinite where one is no number."""
        np = self._np
        used = (self._weights, self._scales, self._bias, self._ngram_bias, self._vector_weights, self._by_itself)
        most = [float(np.abs(of).max(initial=0)) for of in used if of is not None and of.dtype != np.int8]
        return max(most) if np.isfinite(most).all() else float("inf")

    def judge(self, folded: str, vector: Array | None = None) -> StudentAnswer:
        """What this student makes of a folded text. One of vectors looks at this vector where words are not enough."""
        heard = self.hear(folded)
        judged = self.judge_alone(heard)
        return self.judge_whole(heard, vector) if judged is None else judged

    def hear(self, folded: str) -> NgramScores:
        """Both stages begin with this."""
        np = self._np
        buckets, values = self.ngrams.of(folded)
        if not buckets:
            return NgramScores(np.zeros(len(self.labels), np.float32), 0.0)
        rows = self._row[np.array(buckets, np.intp)]
        given = np.array(values, np.float32)
        known = float((given * given) @ (rows < self._unknown).astype(np.float32))
        if self._scales is None:
            return NgramScores(given @ self._weights[rows], known)
        return NgramScores((given * self._scales[rows]) @ self._weights[rows].astype(np.float32), known)

    def judge_alone(self, heard: NgramScores) -> StudentAnswer | None:
        """By the words alone; None where that is not sure enough, or this student has no such stage."""
        alone = self.manifest.alone
        if alone is None:
            return None
        logits = (heard.part + self._ngram_bias) * self._by_itself
        judged = self._decide(logits, heard.known, alone.abstention, alone.confidence)
        if judged.confidence < alone.sure:
            return None
        return judged._replace(knownness=alone.known.of(judged.knownness), alone=True)

    def judge_whole(self, heard: NgramScores, vector: Array | None) -> StudentAnswer:
        """By all there is."""
        logits, near = heard.part + self._bias, heard.known
        abstention = self.manifest.abstention
        if self._vector_weights is not None:
            if vector is None:
                raise ValueError(f"this student needs a vector of {self.embedder} for this text")
            vector = self._np.asarray(vector, self._np.float32)
            logits = logits + vector @ self._vector_weights
            near = nearness(self._bank, self._starts, logits, vector, abstention.labels, abstention.nearest)
        return self._decide(logits, near, abstention, self.manifest.confidence)

    def _decide(self, logits: Array, near: float, abstention: Abstention, confidence: Confidence) -> StudentAnswer:
        weighed = _weigh_few(logits.tolist()) if self._few else _weigh(self._np, logits)
        best, second, logit, probabilities, others = weighed
        # Where the best is so far ahead that the others add up to nothing, a float has no more to say either.
        lead = -log(max(others, LEAST))
        z_logit, z_near = abstention.logit.of(logit), abstention.near.of(near)
        knownness = z_logit + abstention.near_weight * z_near
        odds = confidence.bias + confidence.logit * z_logit + confidence.near * z_near + confidence.margin * lead
        if z_near < STRANGE and near < STRANGE_SHARE * abstention.near.mean:
            odds = min(odds, 0.0)
        return StudentAnswer(
            self.labels[best], sigmoid(odds), knownness, probabilities, best, second, near, logit, lead
        )

    def pushes(self, folded: str, best: int, second: int, *, alone: bool = False) -> list[tuple[str, float]]:
        """How much each word, by itself and by the n-grams in and around it, speaks for one label against another."""
        np = self._np
        buckets, values = self.ngrams.of(folded)
        if not buckets:
            return []
        rows = self._row[np.array(buckets, np.intp)]
        apart = self._weights[rows, best].astype(np.float32) - self._weights[rows, second].astype(np.float32)
        each = np.array(values, np.float32) * apart
        if self._scales is not None:
            each = each * self._scales[rows]
        if alone:
            each = each * self._by_itself
        told = dict(zip(buckets, each.tolist(), strict=True))
        return self.ngrams.share_out(folded, told)

    def lean(self, best: int, second: int, *, alone: bool = False) -> float:
        """How much speaks for one label against another before a word is read."""
        bias = self._ngram_bias * self._by_itself if alone else self._bias
        return float(bias[best] - bias[second])

    def vector_push(self, vector: Array, best: int, second: int) -> float:
        """The same for what the vector head makes of the whole."""
        if self._vector_weights is None:
            return 0.0
        return float(vector @ (self._vector_weights[:, best] - self._vector_weights[:, second]))


LabelRanking = tuple[int, int, float, "Array | list[float]", float]
"""Logits made comparable: the best, the second, the best one's logit, the probabilities, and what all the others are
together where the best is 1."""


def _weigh(np: Any, logits: Array) -> LabelRanking:
    best = int(logits.argmax())
    logit = float(logits[best])
    raised = np.exp(logits - logit)
    probabilities = raised / raised.sum()
    raised[best] = 0.0
    return best, int(raised.argmax()), logit, probabilities, float(raised.sum())


def _weigh_few(logits: list[float]) -> LabelRanking:
    """The same. To call NumPy takes longer than this."""
    logit = max(logits)
    best = logits.index(logit)
    raised = [exp(one - logit) for one in logits]
    whole = sum(raised)
    probabilities = [one / whole for one in raised]
    raised[best] = 0.0
    return best, raised.index(max(raised)), logit, probabilities, sum(raised)


def nearness(bank: Array, starts: Sequence[int], logits: Array, vector: Array, labels: int, nearest: int = 5) -> float:
    """Mean cosine to the nearest known questions of the likeliest labels.

    Only theirs are looked at: what a question is near to is nearly always there, and it is a fraction of the work.
    """
    import numpy as np

    few = labels < len(logits)
    likeliest = np.argpartition(-logits, labels)[:labels].tolist() if few else range(len(logits))
    cosines = np.concatenate([bank[starts[at] : starts[at + 1]] @ vector for at in likeliest])
    count = min(nearest, len(cosines))
    return float(np.partition(cosines, len(cosines) - count)[-count:].mean()) if count else 0.0


def sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + exp(-odds)) if odds > -700.0 else 0.0


def read_student(folder: Path) -> StudentModel:
    """The student in a folder; an ArtefactUnreadable that says what is wrong with it."""
    import numpy as np

    manifest, arrays = read_artefact(folder, StudentManifest)
    with np.errstate(all="ignore"):
        model = StudentModel(manifest, arrays)
    if model.largest() > LARGEST:
        raise ArtefactUnreadable(folder / WEIGHTS, f"with its temperature, a weight is beyond {LARGEST:g}")
    return model
