"""Words alone answer where that is as good as asking for the meaning, and nowhere else."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from small_student import MANY_THINGS, OUTSIDE, Words, keep, questions, teach, teach_staged
from turnout.layers.student_model import Abstention, Confidence, Scale
from turnout.learn.confidence import MOST_LOST, PRECISION, StageAnswers, Truth, choose_sure, fit_alone, serve
from turnout.learn.fit import fit

EMBEDDER = Words()
SCALES = Abstention(Scale(0.0, 1.0), Scale(0.0, 1.0), 0.25)
CURVE = Confidence(0.0, 1.0, 0.0, 1.0, 0.1)


def said(best: Any, stated: Any, knownness: Any = None) -> StageAnswers:
    stated = np.asarray(stated, float)
    return StageAnswers(np.asarray(best), stated, stated if knownness is None else np.asarray(knownness), SCALES, CURVE)


class Case(NamedTuple):
    id: str
    wrong: Any
    """Which rows the words alone get wrong, by their confidence; 1,000 from 0.5 to 1."""
    wrong_whole: Any
    outside: list[float]
    sure: float | None
    rows: int = 1_000


CASES = [
    Case("always right", lambda c: c < 0, lambda c: c < 0, [], 0.5),
    # Wrong below 0.7, and both alike: as many as leave 99.5 % of the rest right.
    Case("wrong at the bottom", lambda c: c < 0.7, lambda c: c < 0.7, [], 0.699),
    # What both heads would get right: one row of a thousand may be lost.
    Case("worse than both", lambda c: c < 0.7, lambda c: c < 0, [], 0.7),
    Case("one wrong at the top", lambda c: c > 0.9995, lambda c: c > 0.9995, [], 0.5),
    Case("wrong at the top", lambda c: c > 0.95, lambda c: c > 0.95, [], None),
    # A tenth of all questions is outside, and these four stand for them: none may be taken.
    Case("strangers", lambda c: c < 0, lambda c: c < 0, [0.2, 0.3, 0.61, 0.8], 0.8),
    Case("strangers below", lambda c: c < 0, lambda c: c < 0, [0.2, 0.3], 0.5),
    Case("too few to tell", lambda c: c < 0, lambda c: c < 0, [], None, rows=150),
    Case("just enough to tell", lambda c: c < 0, lambda c: c < 0, [], 0.5, rows=200),
]


def lay_out(case: Case) -> tuple[StageAnswers, StageAnswers, Truth]:
    stated = np.linspace(0.5, 1.0, case.rows)
    every = np.concatenate([stated, case.outside])
    label = np.zeros(case.rows, int)
    beyond = np.arange(case.rows, len(every))
    truth = Truth(label, np.ones(case.rows), np.arange(case.rows), beyond, 0.1)
    return said(case.wrong(every).astype(int), every), said(case.wrong_whole(every).astype(int), every), truth


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_from_where_on_words_are_enough(case: Case) -> None:
    alone, whole, truth = lay_out(case)
    found = choose_sure(alone, whole, truth)
    if case.sure is None:
        assert found is None
        # Its curves are kept, for where there is no embedder; beside one, it would have to be certain.
        assert fit_alone(alone, 1.0, whole, truth).sure == 1.0
        return
    assert found == pytest.approx(case.sure, abs=2e-3)
    share = truth.shares(len(alone.best))
    taken = alone.stated >= found
    right, would = truth.right(alone.best), truth.right(whole.best)
    assert share.sum() == pytest.approx(1.0)
    assert (share * right)[taken].sum() / share[taken].sum() >= PRECISION
    assert (share * would).sum() - (share * np.where(taken, right, would)).sum() <= MOST_LOST + 1e-9


def test_rows_of_one_confidence_are_taken_together() -> None:
    """Of 600 rows with the same confidence half are wrong: whichever come first, none of them is taken."""
    stated = np.array([0.9] * 600 + [0.95] * 600)
    best = np.array([0] * 300 + [1] * 300 + [0] * 600)
    truth = Truth(np.zeros(1_200, int), np.ones(1_200), np.arange(1_200), np.array([], int), 0.1)
    assert choose_sure(said(best, stated), said(best, stated), truth) == 0.95


def test_rows_count_by_their_weight() -> None:
    """Ten wrong rows in a thousand are too many; at a hundredth of the weight they are not."""
    stated = np.linspace(0.5, 1.0, 1_000)
    wrong = np.arange(1_000) >= 990
    for weight, found in ((1.0, None), (0.01, 0.5)):
        truth = Truth(np.zeros(1_000, int), np.where(wrong, weight, 1.0), np.arange(1_000), np.array([], int), 0.1)
        both = said(wrong.astype(int), stated)
        assert choose_sure(both, both, truth) == found


def test_knownness_compares() -> None:
    """Of the questions that words alone answer it is, on average and in spread, what both heads make of them."""
    draw = np.random.default_rng(1)
    label = np.zeros(1_000, int)
    truth = Truth(label, np.ones(1_000), np.arange(1_000), np.array([], int), 0.1)
    stated = np.linspace(0.5, 1.0, 1_000)
    alone = said((stated < 0.7).astype(int), stated, draw.normal(3.0, 0.5, 1_000))
    whole = said(label, stated - 0.1, draw.normal(-1.0, 2.0, 1_000))
    stage = fit_alone(alone, 0.5, whole, truth)
    assert stage.temperature == 0.5
    served, early = serve(alone, stage, whole)
    assert early.sum() == pytest.approx(600, abs=2)
    assert served.knownness[early].mean() == pytest.approx(whole.knownness[early].mean())
    assert served.knownness[early].std() == pytest.approx(whole.knownness[early].std())
    assert (served.knownness[~early] == whole.knownness[~early]).all()
    assert (served.stated == np.where(early, alone.stated, whole.stated)).all()
    assert (served.best != label).mean() <= MOST_LOST


def test_who_has_a_first_stage() -> None:
    """A student without vectors has one stage as it is; one of a hundred rows cannot know when it is sure: its first
    stage answers only where there is no embedder."""
    for fitted in (teach(), fit([*questions(things=MANY_THINGS), *OUTSIDE])):
        assert fitted.draft.alone is None
        assert not {"alone", "words_accuracy"} & fitted.draft.metrics.keys()
    few = teach(EMBEDDER)
    assert few.draft.alone is not None
    assert few.draft.alone.sure == 1.0
    assert few.draft.metrics["alone"] == 0.0
    staged = teach_staged()
    assert staged.draft.alone is not None
    assert staged.draft.alone.sure < 1.0
    assert 0.5 < staged.draft.metrics["alone"] <= 1.0
    assert staged.draft.metrics["words_accuracy"] > 0.95


def test_the_order_of_rows_is_nothing_to_it() -> None:
    rows = [*questions(things=MANY_THINGS), *OUTSIDE]
    assert fit(rows[::-1], embedder=EMBEDDER).draft.alone == teach_staged().draft.alone


def test_what_is_held_out_is_what_two_stages_say() -> None:
    fitted = teach_staged()
    assert fitted.draft.alone is not None
    sure = [held for held in fitted.held if held.confidence >= fitted.draft.alone.sure]
    assert len(sure) >= fitted.draft.metrics["alone"] * fitted.draft.metrics["rows"]
    assert all(held.label is not None for held in sure)
    rows = [*questions(things=MANY_THINGS), *OUTSIDE]
    trained = fitted.model()
    served = [trained.judge(text, EMBEDDER.embed([text])[0]) for text, _ in rows]
    # Serving has learnt from the rows, the folds had not: they agree in what they say, not in how surely.
    assert [held.said for held in fitted.held if held.label] == [
        one.label for one, (_, label) in zip(served, rows, strict=True) if label
    ]
    assert min(one.knownness for one in served if one.alone) > max(
        one.knownness for one, (_, label) in zip(served, rows, strict=True) if label is None
    )


def test_two_trainings_are_one_student(tmp_path: Any) -> None:
    again = fit([*questions(things=MANY_THINGS), *OUTSIDE], embedder=EMBEDDER)
    assert keep(tmp_path / "one", teach_staged()).digest == keep(tmp_path / "two", again).digest
    assert again.draft.alone is not None
    never = again._replace(draft=replace(again.draft, alone=replace(again.draft.alone, sure=1.0)))
    assert keep(tmp_path / "three", never).digest != keep(tmp_path / "two", again).digest
