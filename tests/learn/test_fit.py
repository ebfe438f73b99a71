"""A student is a function of its rows and seed, and its confidence means what it says."""

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from small_student import LABELS, OUTSIDE, Words, keep, questions, teach
from turnout.core.errors import LearnError, TooFewExamples
from turnout.learn.confidence import Measures, fit_confidence, fit_mix, state_confidence
from turnout.learn.dataset import By, Example
from turnout.learn.fit import FitSettings, StudentFit, fit
from turnout.learn.metric import ece
from turnout.text.fold import fold

EMBEDDER = Words()
PLAIN, MIXED = teach(), teach(EMBEDDER)


@pytest.mark.parametrize("embedder", [None, EMBEDDER], ids=["n-grams", "vectors"])
def test_the_order_of_rows_is_nothing(embedder: Words | None, tmp_path: Path) -> None:
    rows = [*questions(), *OUTSIDE]
    shuffled = random.Random(3).sample(rows, len(rows))
    one, other = (keep(tmp_path / str(at), fit(given, embedder=embedder)) for at, given in enumerate((rows, shuffled)))
    assert one == other
    assert fit(shuffled[:-3], embedder=embedder).arrays.keys() == fit(rows, embedder=embedder).arrays.keys()


def test_other_rows_are_another_student(tmp_path: Path) -> None:
    one = keep(tmp_path / "one", PLAIN)
    other = keep(tmp_path / "other", fit([*questions()[:-1], *OUTSIDE]))
    assert one.digest != other.digest


@pytest.mark.parametrize("fitted", [PLAIN, MIXED], ids=["n-grams", "vectors"])
def test_it_learns(fitted: StudentFit) -> None:
    assert fitted.draft.metrics["accuracy"] > 0.95
    assert fitted.draft.metrics["oos_auroc"] > 0.95
    assert fitted.draft.labels == tuple(sorted(LABELS))
    assert fitted.draft.counts == {"first": 40, "second": 40, "third": 30}
    assert fitted.draft.oos_rows == len(OUTSIDE)
    trained = fitted.model()
    for text, label in (("where is my sofa", "first"), ("refund my sofa", "second"), ("write code", "third")):
        vector = EMBEDDER.embed([text])[0] if fitted.draft.embedder else None
        assert trained.judge(text, vector).label == label


@pytest.mark.parametrize("fitted", [PLAIN, MIXED], ids=["n-grams", "vectors"])
def test_what_is_held_out_is_reported_for_the_rows_as_given(fitted: StudentFit) -> None:
    rows = [*questions(), *OUTSIDE]
    assert [held.row for held in fitted.held] == list(range(len(rows)))
    assert [held.label for held in fitted.held] == [label for _, label in rows]
    assert all(0 <= held.confidence <= 1 for held in fitted.held)
    inside = [held.confidence for held in fitted.held if held.label is not None]
    outside = [held.confidence for held in fitted.held if held.label is None]
    assert np.mean(inside) > np.mean(outside) + 0.2


def test_serving_says_what_fitting_said() -> None:
    """Measures of rows outside every label come from folds; of the rest of the world they come from serving."""
    trained = MIXED.model()
    far = [trained.judge(text, EMBEDDER.embed([text])[0]).knownness for text, _ in OUTSIDE]
    near = [trained.judge(text, EMBEDDER.embed([text])[0]).knownness for text, _ in questions()]
    assert max(far) < np.mean(near)


def test_what_people_correct_is_learnt_without_the_order_of_its_words() -> None:
    subjects, asked = (
        ("zorbex", "quillon", "vantreel", "mirpod"),
        ("flanter the {} grosk", "{} veldup", "brintel {} to me"),
    )
    usual = [Example(f"please tell me about {word} {at}", "a", "seed") for at in range(20) for word in ("rain", "tea")]
    usual += [Example(f"how do i paint {word} {at}", "b", "seed") for at in range(20) for word in ("walls", "doors")]

    def chance(by: By) -> float:
        rows = [Example(text.format(subject), "b", by) for subject in subjects for text in asked]
        return float(fit([*usual, *rows]).model().judge("about grosk veldup brintel").probabilities[1])

    assert chance("human") > chance("seed")


def test_examples_weigh() -> None:
    texts = [f"{word} {i}" for i, word in enumerate(("alpha", "beta") * 12)]
    rows = [Example(text, "a" if "alpha" in text else "b") for text in texts]
    doubted = [Example("gamma thing", "a", weight=0.01), Example("gamma thing", "b", weight=1.0)]
    assert fit([*rows, *doubted]).model().judge("gamma thing").label == "b"
    assert fit([*rows, *(row.__class__(row.text, row.label) for row in doubted)]).model().labels == ("a", "b")


class Small(NamedTuple):
    id: str
    rows: list[tuple[str, str | None]]
    said: str


SMALL = [
    Small("nothing", [], "0 labelled questions of 0 labels"),
    Small("one label", [(f"question {i}", "a") for i in range(30)], "30 labelled questions of 1 labels"),
    Small("nine rows", [(f"question {i}", "ab"[i % 2]) for i in range(9)], "9 labelled questions of 2 labels"),
    Small("only blanks", [(" ", "ab"[i % 2]) for i in range(30)], "0 labelled questions"),
    Small("only outside", [(f"question {i}", "oos") for i in range(30)], "0 labelled questions"),
    Small("copies of two", [("where", "a"), ("refund", "b")] * 20, "more questions that differ are needed"),
]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.id)
def test_too_few(case: Small) -> None:
    with pytest.raises(TooFewExamples, match=case.said):
        fit(case.rows)


def test_labels_that_are_no_routes() -> None:
    with pytest.raises(LearnError, match="'secnd' 1 times, did you mean 'second'"):
        fit([*questions(), ("what", "secnd")], labels=LABELS)
    assert fit(questions(), labels=("third", "unused", "first", "second")).draft.labels == ("third", "first", "second")


def test_oos_may_be_a_route() -> None:
    rows = [(text, "oos" if label == "first" else label) for text, label in questions()]
    assert fit(rows, labels=("oos", "second", "third")).draft.counts["oos"] == 40
    assert fit(rows).draft.oos_rows == 40


def test_a_label_with_one_question() -> None:
    fitted = fit([*questions(), ("sing me a song", "alone")])
    assert "alone" in fitted.draft.labels
    assert len(fitted.held) == len(questions())
    assert fitted.model().judge("sing me a song").label == "alone"


@pytest.mark.parametrize(("labels", "each"), [(2, 5), (60, 5)])
@pytest.mark.parametrize("embedder", [None, EMBEDDER], ids=["n-grams", "vectors"])
def test_few_of_each(labels: int, each: int, embedder: Words | None) -> None:
    words = [f"{chr(97 + i % 26)}{chr(97 + i // 26)}wort" for i in range(labels)]
    rows = [
        (f"{word} number {'xyzuv'[i]} of {word}{word}", f"label{at}")
        for at, word in enumerate(words)
        for i in range(each)
    ]
    fitted = fit(rows, embedder=embedder, settings=FitSettings(folds=3))
    assert len(fitted.draft.labels) == labels
    assert fitted.draft.metrics["accuracy"] > 0.8
    trained = fitted.model()
    said = trained.judge(f"{words[1]} number", EMBEDDER.embed([f"{words[1]} number"])[0] if embedder else None)
    assert 0 <= said.confidence <= 1


def test_hostile_rows() -> None:
    hostile = ["\ud800\ud800", "\0" * 50, "a" * 200_000, "💥" * 300, "\u202e\u200b", "ﷺ" * 40, "\n\n\n", "' or 1=1 --"]
    rows = [*questions(), *((text, LABELS[at % 3]) for at, text in enumerate(hostile))]
    trained = fit(rows).model()
    for text in hostile:
        assert 0 <= trained.judge(fold(text).text).confidence <= 1


def test_bad_vectors_are_refused() -> None:
    class BrokenEmbedder(Words):
        def embed(self, texts: object, /) -> object:
            return super().embed(texts) * np.nan  # type: ignore[arg-type]

    with pytest.raises(LearnError, match="not finite"):
        fit(questions(), embedder=BrokenEmbedder())


# --- calibration, on numbers whose truth is known


def test_confidence_is_the_chance_it_states() -> None:
    draw = np.random.default_rng(5)
    logit, near, lead = draw.normal(size=(3, 20_000))
    chance = 1 / (1 + np.exp(-(0.5 + 1.5 * logit + 0.5 * near + 0.0 * lead)))
    right = draw.random(20_000) < chance
    measures = Measures(logit, near, lead)
    curve = fit_confidence(measures, right, np.ones(20_000), None, 0.1)
    assert curve.oos_share == 0.0
    assert (curve.logit, curve.near, curve.margin) == pytest.approx((1.5, 0.5, 0.0), abs=0.1)
    assert ece(right, state_confidence(curve, measures)) < 0.02


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_confidence_allows_for_questions_outside(share: float) -> None:
    """Of a mixture with that share of strangers the stated confidence is the share that is right."""
    draw = np.random.default_rng(6)
    scope = Measures(*draw.normal(1.0, 1.0, size=(3, 5_000)))
    right = draw.random(5_000) < 0.9
    outside = Measures(*draw.normal(-1.0, 1.0, size=(3, 400)))
    curve = fit_confidence(scope, right, np.ones(5_000), outside, share)
    strangers = state_confidence(curve, Measures(*draw.normal(-1.0, 1.0, size=(3, 5_000))))
    stated = (1 - share) * state_confidence(curve, scope).mean() + share * strangers.mean()
    assert stated == pytest.approx(0.9 * (1 - share), abs=0.03)


def test_nobody_is_made_certain() -> None:
    measures = Measures(*np.random.default_rng(7).normal(size=(3, 40)))
    curve = fit_confidence(measures, np.ones(40, bool), np.ones(40), None, 0.0)
    stated = state_confidence(curve, measures)
    assert (stated > 0.8).all()
    assert (stated < 0.999).all()


def test_a_measure_never_lowers_confidence() -> None:
    draw = np.random.default_rng(8)
    logit, near, lead = draw.normal(size=(3, 2_000))
    right = draw.random(2_000) < 1 / (1 + np.exp(2 * logit))
    curve = fit_confidence(Measures(logit, near, lead), right, np.ones(2_000), None, 0.0)
    assert min(curve.logit, curve.near, curve.margin) >= 0.0


def test_the_mixture_follows_the_better_head() -> None:
    draw = np.random.default_rng(9)
    label = draw.integers(0, 4, 3_000)
    told = np.eye(4)[label] * 3
    good, noise = told + draw.normal(size=told.shape), draw.normal(size=told.shape)
    assert fit_mix(good, noise, label, np.ones(3_000)).share > 0.9
    assert fit_mix(noise, good, label, np.ones(3_000)).share < 0.1
    alone = fit_mix(good, None, label, np.ones(3_000))
    assert alone.share == 1.0
    # Noise of spread 1 around 3 is a likelihood ratio of e to the power of 3 times the difference.
    assert alone.temperature == pytest.approx(1 / 3, rel=0.1)
