"""Turns scores into calibrated probabilities, fitted on rows that the scores have not seen.

The two heads are mixed so that held-out rows become likeliest. The confidence in the best label is a logistic curve of
three measures (its logit, the nearness of known questions, its lead). Each measure can only raise the confidence, and
questions outside every label are weighted to their expected share.

A vector takes longer than the rest of a judgement, and for most questions it changes nothing. The word head answers
alone where its answers to unseen rows are as good as those of both heads together: almost none is wrong, and almost
none would be right only with the vector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout.layers.student_model import LEAST, Abstention, Confidence, Scale, WordStage

Floats = npt.NDArray[Any]

# Penalty on the squares of the curve's slopes. It keeps them finite where the measures separate right from wrong
# perfectly, and is too small to matter elsewhere.
RIDGE = 1e-3
# The largest slope for a measure of spread 1; anything steeper is a step.
STEEPEST = 20.0
# Temperatures outside this range do not occur in practice; a fit at its edge is useless.
HOTTEST, COLDEST = 20.0, 0.02
# The spread of a measure that never varies, so that any other value is far away.
LEAST_SPREAD = 1e-6
# On CLINC150's validation rows 68 % of the questions are answered alone with it: accuracy 96.7 % (always both heads:
# 96.8), coverage at 98 % precision 92.1 % (92.4), AUROC .990 (.988). At .99 they are 75 %, coverage is 91.5 % and AUROC
# .986; at .997 they are 58 %, and nothing is lost.
PRECISION = 0.995
# The share of all answers that may turn from right to wrong: one in a thousand. CLINC150's rows lose a third of that.
MOST_LOST = 0.001
# Without vectors nearness is the share of known words, a weaker sign than the logit: a quarter is best on CLINC150's
# validation rows (AUROC .972; without it .965, with all of it .961).
NEAR_WEIGHT_WORDS = 0.25
# The nearest questions are searched under the five likeliest labels: AUROC .9898; under all labels it is .9901.
LIKELIEST = 5


class Mix(NamedTuple):
    """How the scores of the two heads become logits."""

    share: float
    """The word head's share."""
    temperature: float

    def of(self, words: Floats, vector: Floats | None) -> Floats:
        mixed = words if vector is None else self.share * words + (1.0 - self.share) * vector
        logits: Floats = mixed / self.temperature
        return logits


def fit_mix(words: Floats, vector: Floats | None, label: Floats, weight: Floats) -> Mix:
    """The mix under which the true labels of these rows are likeliest."""
    from scipy.optimize import minimize

    heads = [words] if vector is None else [words, vector]
    rows = np.arange(len(label))
    total = weight.sum()

    def surprise(log_slopes: Floats) -> tuple[float, Floats]:
        slopes = np.exp(log_slopes)
        logits = sum(slope * head for slope, head in zip(slopes, heads, strict=True))
        logits = logits - logits.max(axis=1, keepdims=True)
        raised = np.exp(logits)
        chances = raised / raised.sum(axis=1, keepdims=True)
        loss = -(weight * np.log(np.maximum(chances[rows, label], 1e-12))).sum() / total
        gradient = [(weight * ((chances * head).sum(axis=1) - head[rows, label])).sum() / total for head in heads]
        return float(loss), np.array(gradient) * slopes

    # Both heads start with the same spread, so that larger scores are no advantage.
    start = np.log([2.0 / max(float(head.std(axis=1).mean()), 1e-6) for head in heads])
    limits = [(np.log(1e-3), np.log(1e3))] * len(heads)
    slopes = np.exp(minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=limits).x)
    total_slope = float(slopes.sum())
    return Mix(float(slopes[0] / total_slope), float(np.clip(1.0 / total_slope, COLDEST, HOTTEST)))


def measure_scale(values: Floats) -> Scale:
    return Scale(float(values.mean()), max(float(values.std()), LEAST_SPREAD))


class Measures(NamedTuple):
    """The three measures of each answer that its confidence is computed from."""

    logit: Floats
    near: Floats
    lead: Floats

    def stacked(self) -> Floats:
        return np.stack([self.logit, self.near, self.lead], axis=1)

    def pick(self, at: Floats) -> Measures:
        return Measures(self.logit[at], self.near[at], self.lead[at])


def leads(logits: Floats) -> Floats:
    """How far each row's best logit is ahead of all others together: the log-odds of the best label."""
    ordered = np.sort(logits, axis=1)
    others = ordered[:, :-1]
    rest = others[:, -1] + np.log(np.exp(others - others[:, -1:]).sum(axis=1))
    ahead: Floats = np.minimum(ordered[:, -1] - rest, -np.log(LEAST))
    return ahead


def fit_confidence(
    scope: Measures, right: Floats, weight: Floats, outside: Measures | None, oos_share: float
) -> Confidence:
    """Fit the curve from measures (logit and nearness in their scales) to the chance that an answer is right.

    `outside` are the measures of questions outside every label, where every answer is wrong.
    """
    from scipy.optimize import minimize

    measures = scope.stacked()
    weight = weight / weight.sum()
    share = 0.0
    # Platt's targets: with n right answers the chance is at most (n + 1) / (n + 2), so no finite set gives certainty.
    hits, misses = float(right.sum()), float((~right).sum())
    target = np.where(right, (hits + 1) / (hits + 2), 1 / (misses + 2))
    if outside is not None and len(outside.logit) and oos_share > 0:
        share = oos_share
        count = len(outside.logit)
        measures = np.concatenate([measures, outside.stacked()])
        target = np.concatenate([target, np.full(count, 1 / (count + 2))])
        weight = np.concatenate([weight * (1 - share), np.full(count, share / count)])
    centre, spread = measures.mean(axis=0), np.maximum(measures.std(axis=0), LEAST_SPREAD)
    scaled = (measures - centre) / spread

    def surprise(curve: Floats) -> tuple[float, Floats]:
        odds = curve[0] + scaled @ curve[1:]
        loss = (weight * (np.logaddexp(0.0, odds) - target * odds)).sum() + RIDGE * (curve[1:] ** 2).sum()
        off = weight * (1.0 / (1.0 + np.exp(-odds)) - target)
        return float(loss), np.concatenate([[off.sum()], scaled.T @ off + 2 * RIDGE * curve[1:]])

    limits = [(-STEEPEST, STEEPEST)] + [(0.0, STEEPEST)] * 3
    start = np.array([1.0, 0.5, 0.5, 0.5])
    curve = minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=limits).x
    slopes = curve[1:] / spread
    bias = float(curve[0] - (slopes * centre).sum())
    return Confidence(bias, float(slopes[0]), float(slopes[1]), float(slopes[2]), share)


def state_confidence(curve: Confidence, measures: Measures) -> Floats:
    """The confidence in each answer, as serving computes it."""
    odds = curve.bias + curve.logit * measures.logit + curve.near * measures.near + curve.margin * measures.lead
    stated: Floats = 1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0)))
    return stated


class Truth(NamedTuple):
    """The rows a student is judged by: those with a label, then those outside every label."""

    label: Floats
    """The labels of the rows that have one."""
    weight: Floats
    judged: Floats
    """The indices of labelled rows that were judged by heads that know their label."""
    beyond: Floats
    """The indices of rows outside every label."""
    oos_share: float

    def right(self, best: Floats) -> npt.NDArray[np.bool_]:
        right = np.zeros(len(best), bool)
        right[self.judged] = best[self.judged] == self.label[self.judged]
        return right

    def shares(self, count: int) -> Floats:
        """The weight of each row; all add up to 1, rows outside every label to `oos_share`."""
        outside = self.oos_share if len(self.beyond) else 0.0
        shares = np.zeros(count)
        own = self.weight[self.judged]
        shares[self.judged] = own / own.sum() * (1.0 - outside)
        shares[self.beyond] = outside / max(len(self.beyond), 1)
        return shares


class StageAnswers(NamedTuple):
    """The answers to every row, and the curves they were computed with."""

    best: Floats
    stated: Floats
    knownness: Floats
    abstention: Abstention
    confidence: Confidence


def judge_stage(logits: Floats, near: Floats, near_weight: float, truth: Truth) -> StageAnswers:
    """Fit the curves of one stage, and judge every row by them."""
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
    """The least confidence with which the word head may answer alone; None if it never may.

    PRECISION of its answers must be right, with one right and one wrong answer added, so that fewer than about two
    hundred rows are never enough. And no more than MOST_LOST of all rows may be right only with both heads.
    """
    share = truth.shares(len(alone.best))
    right, would = truth.right(alone.best), truth.right(whole.best)
    order = np.argsort(-alone.stated, kind="stable")
    order = order[share[order] > 0]
    one = 1.0 / len(order)
    taken, hit = np.cumsum(share[order]), np.cumsum((share * right)[order])
    lost = np.cumsum((share * (would.astype(float) - right))[order])
    good = ((hit + one) / (taken + 2 * one) >= PRECISION) & (lost <= MOST_LOST)
    # Rows of equal confidence are taken together or not at all.
    stated = alone.stated[order]
    good[:-1] &= stated[:-1] > stated[1:]
    ends = np.flatnonzero(good)
    return float(stated[ends[-1]]) if len(ends) else None


def fit_alone(alone: StageAnswers, temperature: float, whole: StageAnswers, truth: Truth) -> WordStage:
    """The first stage of a student with two. If the word head is never sure enough, it needs a confidence of 1."""
    sure = choose_sure(alone, whole, truth)
    taken = truth.judged if sure is None else truth.judged[alone.stated[truth.judged] >= sure]
    own, other = alone.knownness[taken], whole.knownness[taken]
    # Scaled so that the knownness of the questions it answers has the mean and spread that both heads together give.
    spread = max(float(own.std()), LEAST_SPREAD) / max(float(other.std()), LEAST_SPREAD)
    known = Scale(float(own.mean()) - float(other.mean()) * spread, spread)
    return WordStage(temperature, alone.abstention, alone.confidence, known, 1.0 if sure is None else sure)


def serve(alone: StageAnswers, stage: WordStage, whole: StageAnswers) -> tuple[StageAnswers, npt.NDArray[np.bool_]]:
    """The answers of the two stages together, and which of them the first stage gave."""
    early = alone.stated >= stage.sure
    knownness = (alone.knownness - stage.known.mean) / stage.known.spread
    return whole._replace(
        best=np.where(early, alone.best, whole.best),
        stated=np.where(early, alone.stated, whole.stated),
        knownness=np.where(early, knownness, whole.knownness),
    ), early
