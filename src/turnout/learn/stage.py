"""What a student says of rows it has not seen, and from where on its words alone are enough to say it.

A vector takes longer than all the rest of a judgement, and for most questions it changes nothing. The n-gram head
answers alone where, on rows that neither head had seen and with questions outside every label in the share one expects
of them, its answers are as good as those of both heads together: next to nothing is lost, and next to none is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout.layers.student_model import Abstention, Alone, Confidence, Scale

from .confidence import LEAST_SPREAD, Measures, fit_confidence, leads, measure_scale, state_confidence

Floats = npt.NDArray[Any]

# On CLINC150's validation rows 68 % of the questions are answered alone with it: accuracy 96.7 % (always both heads:
# 96.8), coverage at 98 % precision 92.1 % (92.4), AUROC .990 (.988). At .99 they are 75 %, coverage is 91.5 % and AUROC
# .986; at .997 they are 58 %, and nothing is lost.
PRECISION = 0.995
# What of all answers may turn from right to wrong: one in a thousand. CLINC150's rows lose a third of that.
MOST_LOST = 0.001
# Without vectors nearness is the share of known n-grams, a weaker sign than the logit: a quarter is best on CLINC150's
# validation rows (AUROC .972; without it .965, with all of it .961).
NEAR_WEIGHT_NGRAMS = 0.25
# Nearest questions are looked for under the five likeliest labels: AUROC .9898, under all of them .9901.
LIKELIEST = 5


class Truth(NamedTuple):
    """The rows a student is judged by: those with a label, then those outside every label."""

    label: Floats
    """Of the rows with a label."""
    weight: Floats
    judged: Floats
    """Which of those were judged by heads that know their label."""
    beyond: Floats
    """Which rows are outside every label."""
    oos_share: float

    def right(self, best: Floats) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(best), bool)
        found[self.judged] = best[self.judged] == self.label[self.judged]
        return found

    def shares(self, count: int) -> Floats:
        """What each row counts for, 1 in all, rows outside every label as much as `oos_share` says."""
        outside = self.oos_share if len(self.beyond) else 0.0
        found = np.zeros(count)
        own = self.weight[self.judged]
        found[self.judged] = own / own.sum() * (1.0 - outside)
        found[self.beyond] = outside / max(len(self.beyond), 1)
        return found


class StageAnswers(NamedTuple):
    """What is said of every row, and by which curves."""

    best: Floats
    stated: Floats
    knownness: Floats
    abstention: Abstention
    confidence: Confidence


def say_of_each(logits: Floats, near: Floats, near_weight: float, truth: Truth) -> StageAnswers:
    """Fit the curves of one way to judge, and judge by them."""
    best, top, judged = logits.argmax(axis=1), logits.max(axis=1), truth.judged
    scales = measure_scale(top[judged]), measure_scale(near[judged])
    measures = Measures(
        (top - scales[0].mean) / scales[0].spread, (near - scales[1].mean) / scales[1].spread, leads(logits)
    )
    curve = fit_confidence(
        measures.pick(judged),
        truth.right(best)[judged],
        truth.weight[judged],
        measures.pick(truth.beyond),
        truth.oos_share,
    )
    knownness = measures.logit + near_weight * measures.near
    return StageAnswers(
        best, state_confidence(curve, measures), knownness, Abstention(*scales, near_weight, labels=LIKELIEST), curve
    )


def choose_sure(alone: StageAnswers, whole: StageAnswers, truth: Truth) -> float | None:
    """The least confidence with which the n-gram head may answer alone; None where it never may.

    Of those it answers PRECISION must be right, one more of each kind counted than there were, so that fewer than about
    two hundred rows prove nothing; and of all rows no more than MOST_LOST may be right with both heads and wrong so.
    """
    share = truth.shares(len(alone.best))
    right, would = truth.right(alone.best), truth.right(whole.best)
    order = np.argsort(-alone.stated, kind="stable")
    order = order[share[order] > 0]
    one = 1.0 / len(order)
    taken, hit = np.cumsum(share[order]), np.cumsum((share * right)[order])
    lost = np.cumsum((share * (would.astype(float) - right))[order])
    good = ((hit + one) / (taken + 2 * one) >= PRECISION) & (lost <= MOST_LOST)
    # Rows of one confidence are taken together or not at all.
    stated = alone.stated[order]
    good[:-1] &= stated[:-1] > stated[1:]
    found = np.flatnonzero(good)
    return float(stated[found[-1]]) if len(found) else None


def fit_alone(alone: StageAnswers, temperature: float, whole: StageAnswers, truth: Truth) -> Alone | None:
    """The first stage of a student that has two; None where the n-gram head is never sure enough."""
    sure = choose_sure(alone, whole, truth)
    if sure is None:
        return None
    taken = truth.judged[alone.stated[truth.judged] >= sure]
    own, other = alone.knownness[taken], whole.knownness[taken]
    # The questions it answers are as known, on average and in spread, as both heads together find the same ones.
    spread = max(float(own.std()), LEAST_SPREAD) / max(float(other.std()), LEAST_SPREAD)
    known = Scale(float(own.mean()) - float(other.mean()) * spread, spread)
    return Alone(temperature, alone.abstention, alone.confidence, known, sure)


def serve(alone: StageAnswers, stage: Alone, whole: StageAnswers) -> tuple[StageAnswers, npt.NDArray[np.bool_]]:
    """What the two stages say together, and where the first one said it."""
    early = alone.stated >= stage.sure
    knownness = (alone.knownness - stage.known.mean) / stage.known.spread
    return whole._replace(
        best=np.where(early, alone.best, whole.best),
        stated=np.where(early, alone.stated, whole.stated),
        knownness=np.where(early, knownness, whole.knownness),
    ), early
