"""The retry budget: a bound that holds at every moment, whatever becomes of those it counts."""

import asyncio
import heapq
import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.net.circuit import RetryBudget
from turnout.net.deadline import Deadline


@given(
    st.floats(0, 1, allow_nan=False),
    st.integers(0, 5),
    st.lists(st.tuples(st.sampled_from(("request", "retry", "end")), st.integers(0, 50)), max_size=200),
)
def test_never_beyond_the_share_or_the_floor(share: float, floor: int, events: list[tuple[str, int]]) -> None:
    """Retries are granted within the bound; requests that end afterwards may lower it, and then nothing is granted."""
    budget = RetryBudget(share, floor)
    under_way: list[ExitStack] = []
    for event, which in events:
        if event == "request":
            stack = ExitStack()
            stack.enter_context(budget)
            under_way.append(stack)
        elif event == "retry" and under_way:
            before = budget.retrying
            granted = under_way[which % len(under_way)].enter_context(budget.retry())
            assert budget.retrying == before + granted
            if granted:
                assert budget.retrying <= max(floor, share * budget.active)
            else:
                assert before >= max(floor, int(share * (budget.active - before)))
        elif event == "end" and under_way:
            under_way.pop(which % len(under_way)).close()
    for stack in under_way:
        stack.close()
    assert (budget.active, budget.retrying) == (0, 0)


def test_the_numbers() -> None:
    """Three when few are under way; one for five others when many are."""
    for active, most in ((1, 3), (10, 3), (22, 3), (23, 4), (59, 10), (60, 10), (599, 100)):
        budget = RetryBudget()
        with ExitStack() as stack:
            for _ in range(active):
                stack.enter_context(budget)
            granted = sum(stack.enter_context(budget.retry()) for _ in range(active + 5))
        assert granted == most, active
        assert budget.refused == active + 5 - most


def test_a_refusal_counts_nothing() -> None:
    budget = RetryBudget(floor=0)
    with budget, budget.retry() as allowed:
        assert not allowed
        assert (budget.retrying, budget.refused) == (0, 1)
    assert (budget.active, budget.retrying) == (0, 0)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("floor", [0, 3])
def test_given_back_when_something_is_raised(error: type[BaseException], floor: int) -> None:
    budget = RetryBudget(floor=floor)
    with pytest.raises(error), budget, budget.retry():
        raise error
    assert (budget.active, budget.retrying) == (0, 0)


def test_given_back_when_cancelled() -> None:
    async def main() -> None:
        budget = RetryBudget()

        async def one() -> None:
            with budget, budget.retry():
                await asyncio.sleep(3600)

        tasks = [asyncio.create_task(one()) for _ in range(50)]
        await asyncio.sleep(0)
        assert budget.active == 50
        assert budget.retrying == 8
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (budget.active, budget.retrying) == (0, 0)

    asyncio.run(main())


def attempts_per_request(workers: int, attempt_s: float, retry_s: float) -> float:
    """Everything fails: so many callers, each beginning anew when it has failed. Times are means, and vary."""
    budget = RetryBudget()
    rng = random.Random(workers)
    requests = attempts = 0

    def caller() -> Iterator[float]:
        nonlocal requests, attempts
        while True:
            with budget:
                requests += 1
                attempts += 1
                yield attempt_s * rng.uniform(0.5, 1.5)
                with budget.retry() as allowed:
                    if allowed:
                        attempts += 1
                        yield retry_s * rng.uniform(0.5, 1.5)

    order = itertools.count()
    queue = [(number / workers, next(order), caller()) for number in range(workers)]
    while attempts < workers * 200:
        now, _, one = heapq.heappop(queue)
        heapq.heappush(queue, (now + next(one), next(order), one))
    return attempts / requests


@pytest.mark.parametrize("workers", [30, 100, 500])
@pytest.mark.parametrize("retry_s", [1.0, 1.5, 5.0])
def test_when_everything_fails_a_fifth_more_is_sent(workers: int, retry_s: float) -> None:
    """F4: a retry, with the pause before it, takes as long as the first attempt or longer."""
    assert attempts_per_request(workers, 1.0, retry_s) <= 1.2


def test_a_deadline_does_not_move() -> None:
    deadline = Deadline.after(60)
    assert 59 < deadline.left <= 60
    assert deadline.within(5) == 5
    assert 59 < deadline.within(600) <= 60
    assert deadline.at == Deadline(deadline.at).at


@pytest.mark.parametrize("seconds", [0, -1, -1e9])
def test_nothing_is_left_of_a_deadline_that_has_passed(seconds: float) -> None:
    deadline = Deadline.after(seconds)
    assert deadline.left == 0
    assert deadline.within(5) == 0
