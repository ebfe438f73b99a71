"""`student.v1`: a classifier trained on labelled questions, between the rules and the language model.

Which one serves is decided when the profile is built: the folder its table names, the one its digest pins, else the
champion. The profile's hash covers its digest, so that every decision can say which student made it, and a new student
is a new profile, swapped whole. The layer reads the folded text, up to a limit, and never the history. The embedder is
asked only about texts whose words leave the student unsure.
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
from turnout.core.layer import Absent, Cost, Layer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict

from .artefact import MANIFEST, read_manifest
from .student_model import EMBEDDED_CHARACTERS, StudentAnswer, StudentManifest, StudentModel, read_student
from .term_head import FEW

if TYPE_CHECKING:
    from .npz import Array

# Losers that a decision keeps: more than a reader looks at, few enough that a decision of 150 routes stays short.
SCORES_KEPT = FEW
# Words named for a label, and against it.
WORDS_SHOWN = 4
# What weighs less than this part of the strongest word is not worth a name.
WORTH_NAMING = 0.1
# A word in a reason: as long as the n-grams read of one, an ellipsis included.
WORD_CHARACTERS = 32


class ShortTexts(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of a verdict on a text that says little."""

    characters: Annotated[int, Meta(ge=1)]
    """Of the folded text, at most."""
    least: Mapping[str, Annotated[float, Meta(ge=0.0, le=1.0)]]
    """As `least`, for these routes instead of it."""


class StudentConfig(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    model: str | None = None
    """The folder of a student, instead of the champion; a relative one is looked for beside the profile."""
    artefact: str | None = None
    """The digest of the one student that will do. A profile that has been built names it."""
    characters: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    """How much of the folded text is read, where that is to be less than the student was trained on."""
    longest: Annotated[int, Meta(ge=1)] | None = None
    """Texts of more characters are left to the layers behind: what is read of them says too little of the whole."""
    least: Mapping[str, Annotated[float, Meta(ge=0.0, le=1.0)]] = {}
    """The least probability with which a route is said, where to be wrong costs most; below, the next likely one is."""
    short: ShortTexts | None = None
    """Where one word may decide a text, since words are all that is looked at, more is asked of it."""


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
        """Whether there is something to read, and not too much."""
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
        meant = 0.0 if vector is None else trained.vector_push(vector, judged.best, judged.second)
        evidence = (text, judged.best, judged.second, judged.knownness, judged.near, meant, judged.alone)
        return Verdict((judged.label,), judged.confidence, max(margin, 0.0), scores, (), evidence, calibrated=True)

    def _least_for(self, label: str, text: str, *, by_words: bool) -> float:
        """The least probability with which a route is said of this text; its meaning is not one word's."""
        short = self.config.short
        if by_words and short is not None and len(text) <= short.characters and label in short.least:
            return short.least[label]
        return self.config.least.get(label, 0.0)

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        evidence: tuple[Any, ...] = verdict.evidence
        text, best, second, knownness, near, meant, alone = evidence
        one, other = self.labels[best], self.labels[second]
        label = f"the student says {one} ({verdict.confidence:.2f} sure to be right), not {other}"
        reasons: tuple[Reason, ...] = (Reason("student.label", label),)
        if verdict.scores[other] > verdict.scores[one]:
            least = self._least_for(other, text, by_words=alone or self.embedder is None)
            said = f"{other} is likelier ({verdict.scores[other]:.2f}), and is said from {least:.2f} on"
            reasons += (Reason("student.least", said),)
        if self.staged:
            reasons += (WORDS_ENOUGH if alone else WORDS_NOT_ENOUGH,)
        if self.embedder is not None and not alone:
            said = f"the meaning of the whole speaks for {one if meant >= 0 else other} ({abs(meant):.1f})"
            reasons += (Reason("student.meaning", said),)
        if knownness < UNLIKE:
            reasons += (self._known(knownness, near, alone),)
        return reasons

    def elaborate(self, verdict: Verdict) -> tuple[Reason, ...]:
        """How well it knows such questions, where that is no news, and the words that spoke for the label and for the
        next one: finding them takes longer than judging."""
        evidence: tuple[Any, ...] = verdict.evidence
        text, best, second, knownness, near, _, alone = evidence
        shared = self.trained.pushes(text, best, second, alone=alone)
        pushed, pulled = _strongest(shared, self.trained.lean(text, best, second, alone=alone))
        told = (("student.for", best, pushed), ("student.against", second, pulled))
        spoke = tuple(Reason(code, f"for {self.labels[at]}: {words}") for code, at, words in told if words)
        return spoke if knownness < UNLIKE else (*spoke, self._known(knownness, near, alone))

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
# Two spreads below the average known question, for both measures together, lie one in forty of them.
UNLIKE = -2.0


class RemoteStudent(Student):
    """The same where vectors come from a server: where one is needed it is awaited, as long as the profile allows."""

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
def student(config: StudentConfig, supplies: Supplies) -> Student | Absent:
    folder = find_folder(config, supplies)
    if folder is None:
        pinned = f" of digest {config.artefact}" if config.artefact else ""
        return Absent(f"no trained student{pinned} (turnout train -p {supplies.profile or 'NAME'})")
    manifest = read_manifest(folder, StudentManifest)
    if config.artefact and manifest.digest != config.artefact:
        return Absent(f"the student in {folder} is {manifest.digest}, not {config.artefact} (turnout student promote)")
    unknown = [label for label in manifest.labels if label not in supplies.routes]
    if unknown:
        said = (
            f"this student was trained for other routes: {', '.join(map(repr, unknown[:3]))} "
            f"{'is' if len(unknown) == 1 else 'are'} not of this profile ({', '.join(supplies.routes)}): "
            f"turnout train -p {supplies.profile or 'NAME'}"
        )
        raise ConfigError([Problem(str(folder / MANIFEST), said)])
    for route in (*config.least, *(config.short.least if config.short is not None else ())):
        if route not in supplies.routes:
            said = f"least: there is no route {route!r}{suggest(route, supplies.routes)}"
            raise ConfigError([Problem(supplies.profile or "profile", said)])
    by_words = manifest.terms is not None and len(manifest.labels) <= FEW
    if not by_words and find_spec("numpy") is None:
        return Absent("this student is served with NumPy, which is not installed (pip install 'turnout[student]')")
    needed, embedder = manifest.embedder, supplies.embedder
    # A remote embedder knows its width once it has answered.
    fits = (
        needed is not None
        and embedder is not None
        and embedder.name == needed.name
        and embedder.width in (0, needed.width)
    )
    if needed is not None and not fits and manifest.terms is None:
        if embedder is None:
            return Absent(f"it was trained with the embedder {needed.name}, and none is here (turnout-build-minilm)")
        return Absent(
            f"it was trained with the embedder {needed.name}, here is {embedder.name}: their vectors do not "
            f"compare (turnout-build-minilm, or turnout train -p {supplies.profile or 'NAME'})"
        )
    build: type[Student] = RemoteStudent if fits and hasattr(embedder, "fetch") else Student
    return build(read_student(folder, vectors=fits), embedder if fits else None, config)


def find_folder(config: Any, supplies: Supplies) -> Path | None:
    """Where the artefact is: as the table says, else as the house finds it."""
    if config.model is not None:
        folder = Path(os.path.expanduser(config.model))
        if not folder.is_absolute() and supplies.beside is not None:
            folder = supplies.beside / folder
        return folder
    return None if supplies.find_student is None else supplies.find_student(config.artefact)


def _strongest(shared: list[tuple[str, float]], lean: float) -> tuple[str, str]:
    """The words that speak most for one side, and for the other, as a list for people."""
    named = [(f"“{_short(word)}”", push) for word, push in shared] + [("what is usual", lean)]
    most = max(abs(push) for _, push in named)
    worth = [(word, push) for word, push in named if abs(push) >= max(most * WORTH_NAMING, 1e-6)]
    worth.sort(key=lambda pair: (-abs(pair[1]), pair[0]))
    sides = ([pair for pair in worth if pair[1] > 0], [pair for pair in worth if pair[1] < 0])
    told = [", ".join(f"{word} {abs(push):.1f}" for word, push in side[:WORDS_SHOWN]) for side in sides]
    return told[0], told[1]


def _short(word: str) -> str:
    # A profile that does not fold to whole characters may read half of one; no reason is written with it.
    word = word.encode("utf-8", "replace").decode()
    return word if len(word) <= WORD_CHARACTERS else f"{word[: WORD_CHARACTERS - 1]}…"
