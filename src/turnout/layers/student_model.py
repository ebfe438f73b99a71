"""A student in memory: two linear heads judge a text, with one probability and one measure of knownness.

A student with vectors judges in two stages: by the words alone, and only if it is not sure enough, by words and vector
together. Making a vector takes twenty times as long as the rest. Without an embedder the words decide, with curves of
their own. Vectors, many labels, and students of the first version, which count hashed n-grams, need NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from turnout.core.errors import ArtefactUnreadable
from turnout.text.ngram import Ngrams

from .artefact import (
    MOST_LABELS,
    WEIGHTS,
    Count,
    Expected,
    Finite,
    Manifest,
    Positive,
    Share,
    check_floats,
    read_manifest,
    read_packed,
    read_weights,
    unpack_arrays,
)
from .ngram_head import NgramHead
from .term_head import FEW, SHAPE_NUMBERS, TermHead, Terms, WordResult

if TYPE_CHECKING:
    from .npz import Array
    from .term_head import Scores

# The least sum of the other labels, about e to the power of -30, so that its logarithm is finite.
LEAST = 1e-13
# Characters of a text that are embedded: an embedder reads no more than some hundred words.
EMBEDDED_CHARACTERS = 512


class Scale(Struct, frozen=True, forbid_unknown_fields=True):
    """The mean and spread of a measure over known questions."""

    mean: Finite
    spread: Positive

    def of(self, value: float) -> float:
        return (value - self.mean) / self.spread

    def is_below(self, value: float, spreads: float) -> bool:
        """Whether a value is far below the mean, both in spreads and in proportion."""
        return self.of(value) < spreads and value < STRANGE_SHARE * self.mean


AS_IT_IS = Scale(0.0, 1.0)
NEITHER = "some of its terms are neither learnt nor not"

# A text this many spreads below the average nearness is noise or another script, and gets even odds at most, whatever
# label its length makes likely. If all training questions are alike, spreads are tiny, so it must also be a third below
# the average.
STRANGE, STRANGE_SHARE = -6.0, 0.67
# The same for the share of known words and pairs: one question in forty has so few, and noise has fewer.
STRANGE_WORDS = -2.0
# With few training rows most pairs are unknown, so a text with this share of known words is not strange. With thousands
# of rows most words are known, and only the pairs matter.
FAMILIAR_WORDS, FEW_ROWS = 0.7, 1_000


class Abstention(Struct, frozen=True, forbid_unknown_fields=True):
    """How known a question is, by its best logit and by the nearness of known questions."""

    logit: Scale
    near: Scale
    near_weight: Annotated[float, Meta(ge=0.0, le=100.0)]
    """The weight of nearness beside the logit."""
    nearest: Annotated[int, Meta(ge=1, le=100)] = 5
    """Nearness is the mean over this many known questions. Without vectors it is the share of known n-grams."""
    labels: Annotated[int, Meta(ge=1, le=MOST_LABELS)] = 5
    """How many of the likeliest labels are searched for them."""


class Confidence(Struct, frozen=True, forbid_unknown_fields=True):
    """The probability that the best label is right: a logistic curve of three measures."""

    bias: Finite
    logit: Finite
    near: Finite
    margin: Finite
    """The weight of the best label's lead: its log-odds against all others together."""
    oos_share: Share
    """The share of out-of-scope questions that it was fitted for."""


class WordStage(Struct, frozen=True, forbid_unknown_fields=True):
    """The first stage: the word head alone."""

    temperature: Positive
    abstention: Abstention
    confidence: Confidence
    known: Scale
    """Scales its knownness to that of both heads together, so that the two are comparable."""
    sure: Share
    """The least confidence with which it answers; below it, the vector is needed."""


# Omitting defaults keeps the digests of older students valid when fields are added.
class StudentManifest(Manifest, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    KIND: ClassVar[str] = "a student"

    ngrams: Ngrams | None = None
    """Read by students of the first version."""
    terms: Terms | None = None
    """Read by all others."""
    step: Positive = 1.0
    """The value of one step of a term's weight."""
    labels: Annotated[tuple[str, ...], Meta(min_length=2, max_length=MOST_LABELS)]
    mix: Share
    """The word head's share of a logit; the rest is the vector head's."""
    temperature: Positive
    abstention: Abstention
    confidence: Confidence
    metrics: Mapping[str, float]
    oos_rows: Count
    alone: WordStage | None = None
    """The first of two stages; None if there is only one."""

    def contradictions(self) -> list[str]:
        problems = []
        if len(set(self.labels)) < len(self.labels):
            problems.append("a label stands in it twice")
        if (self.ngrams is None) == (self.terms is None):
            problems.append("a student reads either terms or, in the first version, n-grams")
        if self.alone is not None and (self.embedder is None or self.mix <= 0):
            problems.append("a stage for words alone is for a student of words and vectors")
        if self.alone is None and self.terms is not None and self.embedder is not None:
            problems.append("a student of terms and vectors has a stage for words alone")
        return problems

    def arrays(self) -> Expected:
        labels = len(self.labels)
        expected: dict[str, tuple[str, tuple[int | str, ...]]] = (
            {
                "table": ("uint8", (self.terms.buckets, labels + 1)),
                "shape": ("float32", (SHAPE_NUMBERS, labels)),
                "bias": ("float32", (labels,)),
            }
            if self.terms is not None
            else {
                "ngram_rows": ("uint32", ("rows",)),
                "ngram_weights": ("int8", ("rows", labels)),
                "ngram_scales": ("float32", ("rows",)),
                "ngram_bias": ("float32", (labels,)),
            }
        )
        if self.embedder is not None:
            expected |= {
                "vector_weights": ("float16", (self.embedder.width, labels)),
                "vector_bias": ("float32", (labels,)),
                "bank": ("float16", ("known_rows", self.embedder.width)),
                "bank_starts": ("uint32", (labels + 1,)),
            }
        return expected

    def faults_of(self, arrays: Mapping[str, Array]) -> list[str]:
        import numpy as np

        problems = []
        if self.terms is not None and int(arrays["table"][:, 0].max()) > 1:
            problems.append(NEITHER)
        if self.ngrams is not None:
            rows = arrays["ngram_rows"].astype(np.int64)
            if len(rows) and (int(rows.max()) >= self.ngrams.buckets or (np.diff(rows) <= 0).any()):
                problems.append(f"ngram_rows are not rising numbers under {self.ngrams.buckets}")
        if self.embedder is not None:
            starts = arrays["bank_starts"].astype(np.int64)
            if starts[0] != 0 or starts[-1] != len(arrays["bank"]) or (np.diff(starts) < 0).any():
                problems.append("bank_starts do not divide the bank among the labels")
        return problems


class StudentAnswer(Struct, frozen=True, gc=False):
    """A student's answer to one text."""

    label: str
    confidence: float
    """The probability that the label is right, allowing for out-of-scope questions."""
    knownness: float
    """How similar the text is to the training rows; 0 for the average known question, higher is more similar."""
    probabilities: Array | list[float]
    """The probability of each label, if one of them is right; a list if there are few labels."""
    best: int
    second: int
    near: float
    """The mean cosine to the nearest known questions; without a vector, the share of known words and pairs."""
    alone: bool = False
    """Whether the words were enough, and no vector was used."""


class StudentModel:
    """An artefact in memory. It never changes, and any number of threads may use it."""

    def __init__(self, manifest: StudentManifest, head: TermHead | NgramHead, vectors: VectorHead | None) -> None:
        self.manifest = manifest
        self.labels = manifest.labels
        self._head = head
        self.hear = head.hear
        """Read the words of a folded text, or of this many characters of it; both stages begin with this."""
        self._vectors = vectors
        self._few = len(manifest.labels) <= FEW
        self._learnt_little = sum(manifest.counts.values()) < FEW_ROWS
        self._first = manifest.alone
        """The stage of words alone: the first or only one."""
        if vectors is None and (manifest.terms is None or manifest.alone is None):
            self._first = WordStage(manifest.temperature, manifest.abstention, manifest.confidence, AS_IT_IS, 0.0)

    def judge(self, folded: str, vector: Array | None = None) -> StudentAnswer:
        """Judge a folded text. A student of vectors uses this vector if the words are not enough."""
        return self.judge_heard(self.hear(folded), vector)

    def judge_heard(self, heard: WordResult, vector: Array | None) -> StudentAnswer:
        """Judge in both stages."""
        judged = self.judge_alone(heard)
        return self.judge_whole(heard, vector) if judged is None else judged

    def judge_alone(self, heard: WordResult) -> StudentAnswer | None:
        """Judge by the words alone; None if that is not sure enough."""
        stage = self._first
        if stage is None:
            return None
        logits = _scale(heard.scores, stage.temperature)
        judged = self._decide(logits, heard.known, stage, strange=self._is_strange(heard, stage.abstention))
        if self._vectors is None:
            return judged
        if judged.confidence < stage.sure:
            return None
        return replace(judged, knownness=stage.known.of(judged.knownness), alone=True)

    def judge_whole(self, heard: WordResult, vector: Array | None) -> StudentAnswer:
        """Judge by words and vector."""
        if vector is None or self._vectors is None:
            raise ValueError(f"this student needs a vector of {self.manifest.embedder} for this text")
        manifest = self.manifest
        pushed = self._vectors.score(vector)
        logits = mix(heard.scores, pushed, manifest.mix, manifest.temperature)
        near = self._vectors.near(logits, vector, manifest.abstention)
        strange = manifest.abstention.near.is_below(near, STRANGE)
        if manifest.terms is not None and manifest.alone is not None:
            strange |= self._is_strange(heard, manifest.alone.abstention)
        return self._decide(logits.tolist() if self._few else logits, near, manifest, strange=strange)

    def _is_strange(self, heard: WordResult, abstention: Abstention) -> bool:
        """Whether a text's words have next to nothing in common with the training rows."""
        if self.manifest.terms is None:
            return abstention.near.is_below(heard.known, STRANGE)
        familiar = heard.words >= FAMILIAR_WORDS and self._learnt_little
        return not familiar and abstention.near.is_below(heard.known, STRANGE_WORDS)

    def _decide(
        self, logits: Scores, near: float, curves: WordStage | StudentManifest, *, strange: bool
    ) -> StudentAnswer:
        best, second, logit, probabilities, others = _weigh_few(logits) if isinstance(logits, list) else _weigh(logits)
        lead = -log(max(others, LEAST))
        abstention, confidence = curves.abstention, curves.confidence
        z_logit, z_near = abstention.logit.of(logit), abstention.near.of(near)
        knownness = z_logit + abstention.near_weight * z_near
        odds = confidence.bias + confidence.logit * z_logit + confidence.near * z_near + confidence.margin * lead
        if strange:
            odds = min(odds, 0.0)
        return StudentAnswer(self.labels[best], sigmoid(odds), knownness, probabilities, best, second, near)

    def _measure(self, *, alone: bool) -> float:
        """The weight of the word head's scores in a logit."""
        if self._first is not None and (alone or self._vectors is None):
            return 1.0 / self._first.temperature
        return self.manifest.mix / self.manifest.temperature

    def pushes(self, text: str, best: int, second: int, *, alone: bool = False) -> list[tuple[str, float]]:
        """How much each word, by itself, by its letters and by its neighbours, speaks for one label against another."""
        worth = self._measure(alone=alone)
        return [(word, push * worth) for word, push in self._head.pushes(text, best, second)]

    def lean(self, text: str, best: int, second: int, *, alone: bool = False) -> float:
        """How much speaks for one label against another independently of the words."""
        lean = self._head.lean(text, best, second) * self._measure(alone=alone)
        if self._vectors is not None and not alone:
            bias = self._vectors.bias
            lean += float(bias[best] - bias[second]) * (1.0 - self.manifest.mix) / self.manifest.temperature
        return lean

    def vector_push(self, vector: Array, best: int, second: int) -> float:
        """How much the vector speaks for one label against another."""
        if self._vectors is None:
            return 0.0
        apart = self._vectors.weights[:, best] - self._vectors.weights[:, second]
        return float(vector @ apart) * (1.0 - self.manifest.mix) / self.manifest.temperature


class VectorHead:
    """The weights of vectors, and the vectors of some training rows."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        import numpy as np

        self.weights = np.ascontiguousarray(arrays["vector_weights"].astype(np.float32))
        self.bias = arrays["vector_bias"]
        self._bank = arrays["bank"].astype(np.float32)
        self._starts = [int(start) for start in arrays["bank_starts"]]

    def score(self, vector: Array) -> Array:
        found: Array = vector @ self.weights + self.bias
        return found

    def near(self, logits: Array, vector: Array, abstention: Abstention) -> float:
        return nearness(self._bank, self._starts, logits, vector, abstention.labels, abstention.nearest)


def _scale(scores: Scores, temperature: float) -> Scores:
    if isinstance(scores, list):
        return [score / temperature for score in scores]
    # In float32 a large weight divided by a small temperature could overflow.
    found: Array = scores.astype("float64") / temperature
    return found


def mix(scores: Scores, pushed: Array, share: float, temperature: float) -> Array:
    """The logits of the two heads together."""
    import numpy as np

    found: Array = (np.asarray(scores, np.float64) * share + pushed.astype(np.float64) * (1.0 - share)) / temperature
    return found


LabelRanking = tuple[int, int, float, "Array | list[float]", float]
"""The best label, the second, the best one's logit, the probabilities, and the sum of the others if the best is 1."""


def _weigh(logits: Array) -> LabelRanking:
    import numpy as np

    best = int(logits.argmax())
    logit = float(logits[best])
    raised = np.exp(logits - logit)
    probabilities = raised / raised.sum()
    raised[best] = 0.0
    return best, int(raised.argmax()), logit, probabilities, float(raised.sum())


def _weigh_few(logits: list[float]) -> LabelRanking:
    """The same in plain Python, which is faster for few labels."""
    logit = max(logits)
    best = logits.index(logit)
    raised = [exp(one - logit) for one in logits]
    whole = sum(raised)
    probabilities = [one / whole for one in raised]
    raised[best] = 0.0
    return best, raised.index(max(raised)), logit, probabilities, sum(raised)


def nearness(bank: Array, starts: Sequence[int], logits: Array, vector: Array, labels: int, nearest: int = 5) -> float:
    """The mean cosine to the nearest known questions of the likeliest labels.

    Searching only these labels nearly always finds the nearest questions, in a fraction of the time.
    """
    import numpy as np

    few = labels < len(logits)
    likeliest = np.argpartition(-logits, labels)[:labels].tolist() if few else range(len(logits))
    return mean_largest(np.concatenate([bank[starts[at] : starts[at + 1]] @ vector for at in likeliest]), nearest)


def mean_largest(cosines: Array, most: int) -> float:
    """The mean of this many of the largest; 0 if there are none."""
    import numpy as np

    count = min(most, len(cosines))
    return float(np.partition(cosines, len(cosines) - count)[-count:].mean()) if count else 0.0


def sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + exp(-odds)) if odds > -700.0 else 0.0


def make_student(manifest: StudentManifest, arrays: Mapping[str, Array]) -> StudentModel:
    """The student with these arrays, as read from disk."""
    if manifest.terms is None:
        head: TermHead | NgramHead = NgramHead(manifest.ngrams or Ngrams(), len(manifest.labels), arrays)
    else:
        shape, bias = arrays["shape"].ravel().tolist(), arrays["bias"].tolist()
        head = _term_head(manifest, arrays["table"].tobytes(), shape, bias)
    return StudentModel(manifest, head, VectorHead(arrays) if manifest.embedder is not None else None)


# Students kept in memory: a process serves a handful, and builds routers with them again and again, as on a reload.
RECENT = 8
_recent: dict[tuple[str, str, bool], StudentModel] = {}


def read_student(folder: Path, *, vectors: bool = True) -> StudentModel:
    """The student in a folder; raises ArtefactUnreadable. Without `vectors` it judges by words alone, and with few
    labels needs no NumPy. The same files give the same object, which never changes."""
    manifest = read_manifest(folder, StudentManifest)
    raw = read_packed(folder, manifest)
    # The digest covers the weights and all of the manifest but its date.
    key = (manifest.digest, manifest.created, vectors)
    student = _recent.get(key)
    if student is None:
        student = _unpack_student(folder, manifest, raw, vectors=vectors)
        for oldest in list(_recent)[: len(_recent) - RECENT + 1]:
            _recent.pop(oldest, None)
        _recent[key] = student
    return student


def _unpack_student(folder: Path, manifest: StudentManifest, raw: bytes, *, vectors: bool) -> StudentModel:
    packed = read_weights(folder, manifest, raw)
    if manifest.terms is None or (vectors and manifest.embedder is not None):
        return make_student(manifest, unpack_arrays(folder, manifest, packed))
    shape, bias = packed["shape"].floats(), packed["bias"].floats()
    for problem in (*check_floats("shape", shape), *check_floats("bias", bias)):
        raise ArtefactUnreadable(folder / WEIGHTS, problem)
    table = packed["table"].octets()
    learnt = table[:: len(manifest.labels) + 1]
    if learnt.count(0) + learnt.count(1) < len(learnt):
        raise ArtefactUnreadable(folder / WEIGHTS, NEITHER)
    return StudentModel(manifest, _term_head(manifest, table, shape, bias), None)


def _term_head(manifest: StudentManifest, table: bytes, shape: Sequence[float], bias: Sequence[float]) -> TermHead:
    return TermHead(manifest.terms or Terms(), len(manifest.labels), manifest.step, table, shape, bias)
