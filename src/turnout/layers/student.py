"""`student.v1`: a classifier trained on labelled questions, between the rules and the language model.

The model is chosen when the profile is built: the folder in its table, the digest that pins it, else the champion. The
profile's hash covers the model's digest, so every decision shows which student made it, and a new student makes a new
profile. The layer reads the folded text, up to a limit, and never the history. The embedder is asked only if the words
leave the student unsure.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from turnout.core.embed import Embeds
from turnout.core.errors import ConfigError, Problem, suggest
from turnout.core.layer import Cost, Layer, MissingLayer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict

from .artefact import read_manifest
from .check import check_trained_routes
from .student_model import EMBEDDED_CHARACTERS, StudentAnswer, StudentManifest, StudentModel, read_student
from .term_head import FEW

if TYPE_CHECKING:
    from .npz import Array

# Scores kept in a decision: more than a reader looks at, few enough that a decision of 150 routes stays short.
SCORES_KEPT = FEW
# Words named for a label, and against it.
WORDS_SHOWN = 4
# Words below this part of the strongest word are not named.
WORTH_NAMING = 0.1
# The length of a word in a reason, an ellipsis included.
WORD_CHARACTERS = 32


class ShortTexts(Struct, frozen=True, forbid_unknown_fields=True):
    """Stricter limits for short texts."""

    characters: Annotated[int, Meta(ge=1)]
    """The longest folded text that counts as short."""
    least: Mapping[str, Annotated[float, Meta(ge=0.0, le=1.0)]]
    """Replaces `least` for these routes."""


class StudentConfig(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    model: str | None = None
    """The folder of a student, instead of the champion; a relative path starts from the profile's folder."""
    artefact: str | None = None
    """The digest that the student must have. A built profile always names it."""
    characters: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    """How many characters of the folded text are read, if fewer than the student was trained on."""
    longest: Annotated[int, Meta(ge=1)] | None = None
    """Longer texts are left to the later layers, because the part that is read says too little about the whole."""
    least: Mapping[str, Annotated[float, Meta(ge=0.0, le=1.0)]] = {}
    """The least probability at which a route is chosen, for routes where errors are costly; below it, the next is."""
    short: ShortTexts | None = None
    """Stricter limits for short texts judged by words alone, where a single word may decide."""


class Student(Layer):
    """Judges a text by an artefact, on this machine."""

    cost: Cost | None = "cpu"

    def __init__(
        self,
        trained: StudentModel,
        embedder: Embeds | None = None,
        config: StudentConfig = StudentConfig(),  # noqa: B008 - it never changes
    ) -> None:
        self.config = config
        self.trained = trained
        self.labels = trained.labels
        self.staged = embedder is not None and trained.manifest.alone is not None
        self.embedder = embedder
        self.artefact = trained.manifest.digest
        trained_with = trained.manifest.embedder
        self.lacks = trained_with.name if trained_with is not None and embedder is None else ""

    def __call__(self, reading: Reading) -> Verdict | None:
        if not self._takes(reading.folded):
            return None
        trained = self.trained
        heard = trained.hear(reading.folded, self.config.characters)
        judged, vector = trained.judge_alone(heard), None
        if judged is None:
            vector = None if self.embedder is None else self.embedder.embed((heard.text[:EMBEDDED_CHARACTERS],))[0]
            judged = trained.judge_whole(heard, vector)
        return self._verdict(heard.text, judged, vector)

    def _takes(self, folded: str) -> bool:
        """Whether the text is neither empty nor too long."""
        longest = self.config.longest
        return bool(folded) and (longest is None or len(folded) <= longest)

    def _verdict(self, text: str, judged: StudentAnswer, vector: Array | None) -> Verdict:
        trained = self.trained
        chances: Any = judged.probabilities
        labels = trained.labels
        if chances[judged.best] < self._least_for(judged.label, text, by_words=vector is None):
            best, second = judged.second, judged.best
            confidence = min(float(chances[best]), judged.confidence)
            judged = replace(judged, label=labels[best], best=best, second=second, confidence=confidence)
        margin = float(chances[judged.best]) - float(chances[judged.second])
        if len(labels) > SCORES_KEPT:
            kept = chances.argsort()[: -SCORES_KEPT - 1 : -1].tolist()
            scores = {labels[at]: float(chances[at]) for at in kept}
        else:
            scores = dict(zip(labels, chances, strict=True))
        meaning = 0.0 if vector is None else trained.vector_push(vector, judged.best, judged.second)
        evidence = (text, judged.best, judged.second, judged.knownness, judged.near, meaning, judged.alone)
        return Verdict((judged.label,), judged.confidence, max(margin, 0.0), scores, (), evidence, calibrated=True)

    def _least_for(self, label: str, text: str, *, by_words: bool) -> float:
        """The least probability at which a route is chosen for this text."""
        short = self.config.short
        if by_words and short is not None and len(text) <= short.characters and label in short.least:
            return short.least[label]
        return self.config.least.get(label, 0.0)

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        evidence: tuple[Any, ...] = verdict.evidence
        text, best, second, knownness, near, meaning, alone = evidence
        one, other = self.labels[best], self.labels[second]
        label = f"the student says {one} ({verdict.confidence:.2f} sure to be right), not {other}"
        reasons = [Reason("student.label", label)]
        if verdict.scores[other] > verdict.scores[one]:
            least = self._least_for(other, text, by_words=alone or self.embedder is None)
            likelier = f"{other} is likelier ({verdict.scores[other]:.2f}), and is said from {least:.2f} on"
            reasons.append(Reason("student.least", likelier))
        if self.staged:
            reasons.append(WORDS_ENOUGH if alone else WORDS_NOT_ENOUGH)
        if self.embedder is not None and not alone:
            speaks = f"the meaning of the whole speaks for {one if meaning >= 0 else other} ({abs(meaning):.1f})"
            reasons.append(Reason("student.meaning", speaks))
        if knownness < UNLIKE:
            reasons.append(self._known(knownness, near, alone))
        return tuple(reasons)

    def elaborate(self, verdict: Verdict) -> tuple[Reason, ...]:
        """The words that spoke for the label and for the next one, and how well the student knows such questions, if
        `explain` has not said it. Finding the words takes longer than judging."""
        evidence: tuple[Any, ...] = verdict.evidence
        text, best, second, knownness, near, _, alone = evidence
        shared = self.trained.pushes(text, best, second, alone=alone)
        pushed, pulled = _strongest(shared, self.trained.lean(text, best, second, alone=alone))
        sides = (("student.for", best, pushed), ("student.against", second, pulled))
        reasons = tuple(Reason(code, f"for {self.labels[at]}: {words}") for code, at, words in sides if words)
        return reasons if knownness < UNLIKE else (*reasons, self._known(knownness, near, alone))

    def _known(self, knownness: float, near: float, alone: bool) -> Reason:
        if alone or self.embedder is None:
            read = "word parts" if self.trained.manifest.terms is None else "words and pairs of words"
            how = f"{near:.0%} of its {read} were learnt"
        else:
            how = f"cosine {near:.2f} to the nearest questions it learnt from"
        like = "unlike" if knownness < UNLIKE else "like"
        return Reason("student.known", f"{like} what it knows ({knownness:+.1f}): {how}")


WORDS_ENOUGH = Reason("student.stage", "sure by its words alone: its meaning was not looked at")
WORDS_NOT_ENOUGH = Reason("student.stage", "not sure enough by its words alone: its meaning was looked at")
# One in forty known questions is two spreads below the average, for both measures together.
UNLIKE = -2.0


class RemoteStudent(Student):
    """A student whose vectors come from a server; a needed one is awaited until the profile's deadline."""

    cost: Cost | None = "network"

    async def __call__(self, reading: Reading) -> Verdict | None:  # type: ignore[override]
        if not self._takes(reading.folded):
            return None
        heard = self.trained.hear(reading.folded, self.config.characters)
        judged = self.trained.judge_alone(heard)
        if judged is not None:
            return self._verdict(heard.text, judged, None)
        (vector,) = await self.embedder.fetch((heard.text[:EMBEDDED_CHARACTERS],))  # type: ignore[union-attr]
        return self._verdict(heard.text, self.trained.judge_whole(heard, vector), vector)


@kind("student.v1", cost="cpu", who="E")
def student(config: StudentConfig, supplies: Supplies) -> Student | MissingLayer:
    folder = find_folder(config, supplies)
    if folder is None:
        pinned = f" of digest {config.artefact}" if config.artefact else ""
        return MissingLayer(f"no trained student{pinned} (turnout train -p {supplies.profile or 'NAME'})")
    manifest = read_manifest(folder, StudentManifest)
    if config.artefact and manifest.digest != config.artefact:
        return MissingLayer(
            f"the student in {folder} is {manifest.digest}, not {config.artefact} (turnout student promote)"
        )
    check_trained_routes(folder, manifest.labels, supplies)
    for route in (*config.least, *(config.short.least if config.short is not None else ())):
        if route not in supplies.routes:
            why = f"least: there is no route {route!r}{suggest(route, supplies.routes)}"
            raise ConfigError([Problem(supplies.profile or "profile", why)])
    by_words = manifest.terms is not None and len(manifest.labels) <= FEW
    if not by_words and find_spec("numpy") is None:
        return MissingLayer(
            "this student is served with NumPy, which is not installed (pip install 'turnout[student]')"
        )
    needed, embedder = manifest.embedder, supplies.embedder
    # A remote embedder knows its width only after its first answer.
    fits = (
        needed is not None
        and embedder is not None
        and embedder.name == needed.name
        and embedder.width in (0, needed.width)
    )
    if needed is not None and not fits and manifest.terms is None:
        if embedder is None:
            return MissingLayer(
                f"it was trained with the embedder {needed.name}, and none is here (turnout-build-minilm)"
            )
        return MissingLayer(
            f"it was trained with the embedder {needed.name}, here is {embedder.name}: their vectors do not "
            f"compare (turnout-build-minilm, or turnout train -p {supplies.profile or 'NAME'})"
        )
    build: type[Student] = RemoteStudent if fits and hasattr(embedder, "fetch") else Student
    return build(read_student(folder, vectors=fits), embedder if fits else None, config)


def find_folder(config: Any, supplies: Supplies) -> Path | None:
    """The folder of the artefact: the one in the layer's table, else the champion's; None if there is none."""
    if config.model is not None:
        folder = Path(os.path.expanduser(config.model))
        if not folder.is_absolute() and supplies.beside is not None:
            folder = supplies.beside / folder
        return folder
    return None if supplies.find_student is None else supplies.find_student(config.artefact)


def _strongest(shared: list[tuple[str, float]], lean: float) -> tuple[str, str]:
    """The words that speak most for one label and for the other, each as a text."""
    named = [(f"“{_short(word)}”", push) for word, push in shared] + [("what is usual", lean)]
    most = max(abs(push) for _, push in named)
    worth = [(word, push) for word, push in named if abs(push) >= max(most * WORTH_NAMING, 1e-6)]
    worth.sort(key=lambda pair: (-abs(pair[1]), pair[0]))
    sides = ([pair for pair in worth if pair[1] > 0], [pair for pair in worth if pair[1] < 0])
    listed = [", ".join(f"{word} {abs(push):.1f}" for word, push in side[:WORDS_SHOWN]) for side in sides]
    return listed[0], listed[1]


def _short(word: str) -> str:
    # Some foldings can leave half of a surrogate pair, which cannot be written.
    word = word.encode("utf-8", "replace").decode()
    return word if len(word) <= WORD_CHARACTERS else f"{word[: WORD_CHARACTERS - 1]}…"
