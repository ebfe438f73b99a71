"""Gates with a bound: in made-up worlds, where the true error is known, the promise is kept as often as it says.

The same test must fail for a method that makes no such promise, or it would show nothing.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.learn.bound import p_of_few
from turnout.learn.gate import CLOSED, Gates, LayerAnswers, choose_gates, count, lay_path, share

LIMIT, DELTA, WORLDS = 0.05, 0.1, 60
# P(Bin(60, 0.1) > 12) is 0.6 %.
MOST_BROKEN = 12


def world(seed: int, rows: int, layers: int = 2) -> list[LayerAnswers]:
    """Layers whose confidence tells something of the truth, each in its own way; some pass, a few are decisive."""
    shape = np.random.default_rng([seed, 1])
    sharpness, bias, passing = (
        shape.uniform(0.02, 0.25, layers),
        shape.uniform(0.6, 1.6, layers),
        shape.uniform(0, 0.4, layers),
    )
    rough = shape.integers(0, 2, layers)
    draw = np.random.default_rng([seed, rows, 2])
    hard = draw.beta(0.25, 1.5, rows)
    found = []
    for place in range(layers):
        chance = np.clip(1 - hard * bias[place], 0, 1)
        right = draw.random(rows) < chance
        sure = np.clip(chance**2 + draw.normal(0, sharpness[place], rows), 0, 1)
        if rough[place]:
            sure = np.round(sure, 1)  # ties by the hundred
        decisive = draw.random(rows) < 0.02
        sure = np.where(draw.random(rows) < passing[place], np.nan, sure)
        sure[decisive] = 1.0
        found.append(LayerAnswers(f"layer-{place}", sure, right, decisive))
    return found


def bounded(sample: Sequence[LayerAnswers], seed: int) -> Gates | None:
    return choose_gates(sample, max_error=LIMIT, delta=DELTA, seed=seed).gates


def hindsight(sample: Sequence[LayerAnswers], seed: int) -> Gates | None:
    """Deliberately wrong: the boldest gates whose error on the sample they were chosen on keeps the limit."""
    good = [
        gates
        for gates in lay_path(sample, range(len(sample)))
        if (seen := count(sample, gates)).decided and seen.error <= LIMIT
    ]
    return good[-1] if good else None


def untested(sample: Sequence[LayerAnswers], seed: int) -> Gates | None:
    """Deliberately wrong: every point of the path is tested at the full level, on the rows that laid it."""
    good = []
    for gates in lay_path(sample, range(len(sample))):
        seen = count(sample, gates)
        if p_of_few(seen.wrong, seen.decided, LIMIT) <= DELTA:
            good.append(gates)
    return good[-1] if good else None


def broken(choose: Callable[[Sequence[LayerAnswers], int], Gates | None], rows: int) -> tuple[int, int, float]:
    """Worlds in which the true error is above the limit; worlds in which gates were chosen; what they decide."""
    over = chosen = 0
    decided = 0.0
    for seed in range(WORLDS):
        layers = 1 + seed % 3
        gates = choose(world(seed, rows, layers), seed)
        if gates is not None:
            truth = count(world(seed, 60_000, layers), gates)
            chosen += 1
            over += truth.error > LIMIT
            decided += truth.coverage
    return over, chosen, decided / WORLDS


def test_the_promise_is_kept_in_worlds_whose_truth_is_known() -> None:
    over, chosen, decided = broken(bounded, 1200)
    assert over <= MOST_BROKEN, f"broken in {over} of {WORLDS} worlds"
    assert chosen >= 30, "a promise that is never made is kept easily"
    assert decided > 0.25


def test_a_method_without_a_bound_fails_the_same_test() -> None:
    over, _, _ = broken(hindsight, 1200)
    assert over > MOST_BROKEN, f"broken in only {over} of {WORLDS} worlds: the test shows nothing"


FLAT = 80
# P(Bin(80, 0.1) > 16) is 0.2 %.
MOST_PROVEN = 16


def proven_flat(choose: Callable[[Sequence[LayerAnswers], int], Gates | None]) -> int:
    """Worlds in which every answer is as bad as the limit and a little worse: whatever is proven there is wrong."""
    proven = 0
    for seed in range(FLAT):
        draw = np.random.default_rng(seed)
        layer = LayerAnswers("flat", draw.random(400), draw.random(400) >= LIMIT * 1.02, np.zeros(400, bool))
        proven += choose([layer], seed) is not None
    return proven


@pytest.mark.long
def test_where_no_gate_helps_hardly_anything_is_proven() -> None:
    assert proven_flat(bounded) <= MOST_PROVEN


def test_there_testing_every_gate_on_the_rows_that_chose_it_proves_too_much() -> None:
    assert proven_flat(untested) > MOST_PROVEN


def certain(rows: int, wrong: int = 0, sure: float = 0.9) -> LayerAnswers:
    right = np.ones(rows, bool)
    right[:wrong] = False
    return LayerAnswers("one", np.full(rows, sure), right, np.zeros(rows, bool))


@given(st.integers(0, 10_000), st.sampled_from([300, 900]), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_what_a_choice_says_of_itself_is_true(seed: int, rows: int, layers: int) -> None:
    sample = world(seed, rows, layers)
    choice = choose_gates(sample, max_error=LIMIT, delta=DELTA, seed=seed)
    previous = (CLOSED,) * layers
    for point in choice.path:
        assert all(now <= then for now, then in zip(point.gates, previous, strict=True)), "a path only opens"
        previous = point.gates
    decided = [point.tested.decided for point in choice.path]
    assert decided == sorted(decided)
    proven = [place for place, point in enumerate(choice.path) if point.proven]
    assert proven == list(range(choice.start, choice.start + len(proven)))
    assert sum(one.decided for one in choice.shares) == choice.tested.decided
    assert sum(one.wrong for one in choice.shares) == choice.tested.wrong
    if choice.gates is None:
        assert proven == []
        assert choice.ceiling > LIMIT
    else:
        assert choice.gates == choice.path[proven[-1]].gates
        assert choice.ceiling <= LIMIT
        assert choice.tested.rows == rows - round(rows * 0.2)
        # What is proven is what will be written: the gates survive their decimals.
        assert all(gate == CLOSED or round(gate, 6) == gate for gate in choice.gates)
    again = choose_gates(sample, max_error=LIMIT, delta=DELTA, seed=seed)
    assert (again.gates, again.tested) == (choice.gates, choice.tested)


@pytest.mark.parametrize("seed", range(5))
def test_asking_less_never_decides_less(seed: int) -> None:
    """With the same start a laxer limit proves at least as much; a start may move, so on the whole."""
    sample = world(seed, 4000)
    decided = []
    for limit in (0.02, 0.05, 0.1, 0.2):
        choice = choose_gates(sample, max_error=limit, delta=DELTA, seed=seed)
        decided.append(choice.tested.decided if choice.gates is not None else 0)
    assert decided == sorted(decided)


def test_ties_pass_or_stay_together() -> None:
    """A thousand answers of one confidence, three in ten wrong: no gate can take only the right ones."""
    draw = np.random.default_rng(0)
    right = draw.random(1000) < 0.7
    tied = LayerAnswers("tied", np.full(1000, 0.8), right, np.zeros(1000, bool))
    choice = choose_gates([tied], max_error=LIMIT, delta=DELTA)
    assert choice.gates is None
    assert {point.tested.decided for point in choice.path} == {0, choice.path[-1].tested.decided}
    assert choice.rows_needed is None
    assert choice.least_error == pytest.approx(1 - right.mean())
    sure = LayerAnswers("sure", np.where(right, 0.9, 0.8), right, np.zeros(1000, bool))
    chosen = choose_gates([sure], max_error=LIMIT, delta=DELTA)
    assert chosen.gates is not None
    assert 0.8 < chosen.gates[0] <= 0.9 or chosen.tested.error <= LIMIT


def test_small_samples_say_what_is_missing() -> None:
    # Four fifths of 180 test: 144 answers without an error prove no 2 % (149 would).
    choice = choose_gates([certain(180)], max_error=0.02, delta=0.05)
    assert choice.gates is None
    # Of 186 a fifth is 37.
    assert choice.rows_needed == 186
    assert choose_gates([certain(185)], max_error=0.02, delta=0.05).gates is None
    enough = choose_gates([certain(186)], max_error=0.02, delta=0.05)
    assert enough.gates is not None
    assert enough.tested.coverage == 1.0


def rising(draw: np.random.Generator, rows: int) -> list[LayerAnswers]:
    """A layer that is right the more often the surer it is, up to 99.9 %."""
    confidence = draw.random(rows)
    right = draw.random(rows) < 1 / (1 + np.exp(1.0 - 8.0 * confidence))
    return [LayerAnswers("rising", confidence, right, np.zeros(rows, bool))]


@pytest.mark.long
def test_as_many_rows_as_it_asks_for_mostly_do() -> None:
    """The hint of samples that failed, tried: told by the luckiest point of the path, one in six sufficed."""
    draw = np.random.default_rng(1)
    proved: list[bool] = []
    asked = 0
    for seed in range(30):
        choice = choose_gates(rising(draw, 400), max_error=0.02, delta=0.05, seed=seed)
        if choice.gates is None and choice.rows_needed is not None:
            assert choice.rows_needed > 400
            asked += 1
            for again in range(2):
                sample = rising(draw, choice.rows_needed)
                proved.append(choose_gates(sample, max_error=0.02, delta=0.05, seed=again).gates is not None)
    assert asked >= 10
    assert np.mean(proved) > 0.4


def test_errors_near_the_limit_need_no_number() -> None:
    """More questions may help or not: what is seen is below the limit where testing would not begin."""
    draw = np.random.default_rng(5)
    for _ in range(40):
        rows = int(draw.integers(5, 60))
        layer = LayerAnswers("any", draw.random(rows), draw.random(rows) < 0.9, np.zeros(rows, bool))
        choice = choose_gates([layer], max_error=0.02, delta=0.05)
        assert choice.gates is None
        assert choice.rows_needed is None or choice.rows_needed > rows


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_next_to_nothing(rows: int) -> None:
    choice = choose_gates([certain(rows)], max_error=0.02, delta=0.05)
    assert choice.gates is None
    assert choice.ceiling > 0.02
    assert choose_gates([], max_error=0.02, delta=0.05).gates is None


def test_decisive_answers_count_and_have_no_gate() -> None:
    rows = 1000
    rules = LayerAnswers(
        "rules", np.where(np.arange(rows) % 2, 1.0, np.nan), np.arange(rows) % 20 != 1, np.arange(rows) % 2 == 1
    )
    assert not rules.gated
    choice = choose_gates([rules], max_error=0.2, delta=0.05)
    assert choice.gates == (CLOSED,), "nothing to choose, and yet proven"
    assert choice.gated == ()
    assert choice.tested.error == pytest.approx(0.1, abs=0.03)
    assert choose_gates([rules], max_error=0.05, delta=0.05).gates is None, "one in ten wrong"
    # A good layer behind it dilutes the error that is promised for all of them together.
    good = LayerAnswers("good", np.full(rows, 0.9), np.ones(rows, bool), np.zeros(rows, bool))
    both = choose_gates([rules, good], max_error=0.08, delta=0.05)
    assert both.gates is not None
    assert both.gates[0] == CLOSED
    assert both.gates[1] <= 0.9


def test_gates_are_chosen_together() -> None:
    """The first layer is right about its own half and wrong about the other, at the same confidence: it stays shut
    where the second knows better, and opens where it adds."""
    rows = 3000
    mine = np.arange(rows) % 2 == 0
    nothing = np.zeros(rows, bool)
    early = LayerAnswers("early", np.where(mine, 0.9, 0.6), mine.copy(), nothing)
    late = LayerAnswers("late", np.where(mine, np.nan, 0.7), np.ones(rows, bool), nothing)
    choice = choose_gates([early, late], max_error=0.02, delta=0.05)
    assert choice.gates is not None
    assert choice.tested.coverage == 1.0
    assert 0.6 < choice.gates[0] <= 0.9
    assert choice.gates[1] <= 0.7
    assert {one.id: one.wrong for one in choice.shares} == {"early": 0, "late": 0}


def test_who_decides_is_the_first_whose_gate_lets_it() -> None:
    nothing = np.zeros(3, bool)
    first = LayerAnswers("first", np.array([0.9, 0.4, np.nan]), np.array([False, True, True]), nothing)
    second = LayerAnswers("second", np.array([0.9, 0.9, 0.2]), np.array([True, False, True]), nothing)
    assert [(one.decided, one.wrong) for one in share([first, second], (0.5, 0.5))] == [(1, 1), (1, 1)]
    assert count([first, second], (0.5, 0.5)).decided == 2
    assert count([first, second], (CLOSED, 0.9)).wrong == 1
    assert count([first, second], (0.4, 0.2)).wrong == 1


@pytest.mark.parametrize(("limit", "delta"), [(0.0, 0.05), (1.0, 0.05), (0.02, 0.0), (0.02, 1.0), (float("nan"), 0.05)])
def test_what_cannot_be_asked_is_refused(limit: float, delta: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        choose_gates([certain(10)], max_error=limit, delta=delta)
