"""The breaker, beside a model of it that is small enough to be believed: ages instead of a clock, values instead of
fields. Every state the model can reach is reached, and every event is tried in each of them."""

import itertools
import random
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.net.circuit import Breaker, BreakerSettings


class Clock:
    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class Model(NamedTuple):
    """All that matters of a breaker's past."""

    settings: BreakerSettings
    in_a_row: int = 0
    recent: tuple[tuple[float, bool], ...] = ()
    """Age, and whether it failed."""
    opened: int = 0
    open_age: float | None = None
    probe_age: float | None = None

    @property
    def state(self) -> str:
        if self.open_age is None:
            return "closed"
        wait = min(self.opened * self.settings.open_s, self.settings.open_at_most_s)
        return "open" if self.open_age < wait else "half-open"

    @property
    def allows(self) -> bool:
        waiting = self.probe_age is not None and self.probe_age < self.settings.open_s
        return self.state == "closed" or (self.state == "half-open" and not waiting)

    def after(self, event: str) -> "Model":
        if event.startswith("tick"):
            return self.older(float(event[4:]))
        if event == "allow":
            return self._replace(probe_age=0.0) if self.allows and self.state == "half-open" else self
        if event == "forgive":
            return self._replace(probe_age=None)
        failed = event.endswith("fail")
        if self.state == "closed":
            return self.noted(failed)
        if self.probe_age is None or event.startswith("late"):
            return self
        return self.tripped() if failed else Model(self.settings)

    def older(self, by: float) -> "Model":
        settings = self.settings
        recent = tuple((age + by, failed) for age, failed in self.recent if age + by <= settings.window_s)
        # Beyond these ages nothing changes any more: capped, so that there are finitely many states.
        open_age = None if self.open_age is None else min(self.open_age + by, settings.open_at_most_s)
        probe_age = None if self.probe_age is None else min(self.probe_age + by, settings.open_s)
        return self._replace(recent=recent, open_age=open_age, probe_age=probe_age)

    def noted(self, failed: bool) -> "Model":
        settings = self.settings
        new = self._replace(in_a_row=self.in_a_row + 1 if failed else 0, recent=(*self.recent, (0.0, failed)))
        failures = sum(failed for _, failed in new.recent)
        often = len(new.recent) >= settings.at_least and failures / len(new.recent) >= settings.share
        return new.tripped() if failed and (new.in_a_row >= settings.in_a_row or often) else new

    def tripped(self) -> "Model":
        settings = self.settings
        most = -(-settings.open_at_most_s // settings.open_s)
        return Model(settings, opened=min(self.opened + 1, int(most)), open_age=0.0)


def follow(settings: BreakerSettings, events: Iterable[str], start: float = 0.0) -> None:
    """Both through the same events; they must agree on everything that can be seen, at every step."""
    clock = Clock(start)
    breaker, model = Breaker(settings, clock), Model(settings)
    for number, event in enumerate(events):
        if event == "allow":
            assert breaker.allows() == model.allows, (number, event)
        elif event.endswith("succeed"):
            breaker.succeeded(probe=event == "succeed")
        elif event.endswith("fail"):
            breaker.failed(probe=event == "fail")
        elif event == "forgive":
            breaker.forgive()
        else:
            clock.at += float(event[4:])
        model = model.after(event)
        assert breaker.state == model.state, (number, event)


SMALL = BreakerSettings(in_a_row=3, share=0.5, at_least=4, window_s=8.0, open_s=8.0, open_at_most_s=20.0)
EVENTS = ("allow", "succeed", "fail", "forgive", "tick4")
# The ends of requests that are not the probe.
LATE = ("late succeed", "late fail")


class TestEveryState:
    def test_every_sequence_of_seven_events(self) -> None:
        """And so every shorter one: they must agree at every step."""
        for events in itertools.product(EVENTS, repeat=7):
            follow(SMALL, events)

    def test_every_event_in_every_state_that_can_be_reached(self) -> None:
        """Breadth first over the model's states, each by the shortest way there, until there are no new ones."""
        begin = Model(SMALL)
        ways: dict[Model, tuple[str, ...]] = {begin: ()}
        queue = deque([begin])
        edges = 0
        while queue:
            model = queue.popleft()
            for event in (*EVENTS, *LATE):
                follow(SMALL, (*ways[model], event, "allow"))
                edges += 1
                new = model.after(event)
                # Successes without end are a window without end: one more than is needed to matter twice over.
                if new not in ways and len(new.recent) <= 2 * SMALL.at_least:
                    ways[new] = (*ways[model], event)
                    queue.append(new)
        assert {model.state for model in ways} == {"closed", "open", "half-open"}
        assert {model.opened for model in ways} == {0, 1, 2, 3}
        assert any(model.probe_age is not None and model.state == "half-open" for model in ways)
        assert edges == len(ways) * len((*EVENTS, *LATE))
        assert len(ways) > 1000

    @pytest.mark.parametrize("seed", range(40))
    def test_long_walks_with_the_real_numbers(self, seed: int) -> None:
        rng = random.Random(seed)
        weights = (4, rng.randint(1, 6), rng.randint(1, 6), 1, 1, 1, 3, 1)
        events = ("allow", "succeed", "fail", "forgive", *LATE, "tick0.5", "tick30")
        follow(BreakerSettings(), rng.choices(events, weights, k=3000), start=rng.choice((0.0, -5.0, 1e9)))


def tripped(clock: Clock, times: int = 1) -> Breaker:
    """Opened as often, just now."""
    breaker = Breaker(now=clock)
    for _ in range(5):
        breaker.failed()
    for opened in range(1, times):
        clock.at += min(30 * opened, 300)
        assert breaker.allows()
        breaker.failed(probe=True)
    assert breaker.state == "open"
    return breaker


class TestOpening:
    def test_five_in_a_row(self) -> None:
        breaker = Breaker(now=Clock())
        for _ in range(4):
            breaker.failed()
        assert (breaker.state, breaker.allows()) == ("closed", True)
        breaker.failed()
        assert (breaker.state, breaker.allows()) == ("open", False)

    def test_a_success_begins_the_count_anew(self) -> None:
        breaker = Breaker(now=Clock())
        for ok in "ffffsffff":
            breaker.succeeded() if ok == "s" else breaker.failed()
        assert breaker.state == "closed"

    def test_five_in_a_row_need_not_be_close_together(self) -> None:
        clock = Clock()
        breaker = Breaker(now=clock)
        for _ in range(5):
            clock.at += 3600
            breaker.failed()
        assert breaker.state == "open"

    @pytest.mark.parametrize(
        ("ends", "state"),
        [
            ("sf" * 10, "open"),
            ("sf" * 9 + "ss", "closed"),
            ("sf" * 9 + "f", "closed"),  # 10 of 19: too few to say
            ("ssf" * 10, "closed"),
            ("s" * 11 + "sf" * 9, "closed"),
            ("s" * 10 + "ffffs" * 2 + "ff", "closed"),  # 10 of 22
            ("s" * 8 + "ffffs" * 2 + "ff", "open"),  # 10 of 20
            ("s" * 100 + "ffffs" * 33, "open"),
        ],
    )
    def test_half_of_at_least_twenty(self, ends: str, state: str) -> None:
        breaker = Breaker(now=Clock())
        for end in ends:
            breaker.succeeded() if end == "s" else breaker.failed()
        assert breaker.state == state

    @pytest.mark.parametrize(("pause", "state"), [(0.5, "open"), (0.53, "closed"), (1.0, "closed")])
    def test_within_ten_seconds(self, pause: float, state: str) -> None:
        clock = Clock()
        breaker = Breaker(now=clock)
        for number in range(200):
            breaker.failed() if number % 2 else breaker.succeeded()
            clock.at += pause
            if breaker.state == "open":
                break
        assert breaker.state == state

    def test_what_is_remembered_does_not_grow(self) -> None:
        clock = Clock()
        breaker = Breaker(now=clock)
        for _ in range(10_000):
            breaker.succeeded()
            clock.at += 1
        assert len(breaker._recent) <= 11


class TestWaiting:
    def test_thirty_seconds_times_how_often_it_has_opened_up_to_three_hundred(self) -> None:
        clock = Clock()
        breaker = tripped(clock)
        for expected in (30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300):
            clock.at += expected - 0.001
            assert (breaker.state, breaker.allows()) == ("open", False)
            clock.at += 0.002
            assert breaker.state == "half-open"
            assert breaker.allows()
            breaker.failed(probe=True)

    def test_a_probe_that_succeeds_closes_it_and_forgets(self) -> None:
        clock = Clock()
        breaker = tripped(clock, times=4)
        clock.at += 120
        assert breaker.allows()
        breaker.succeeded(probe=True)
        assert (breaker.state, breaker.allows()) == ("closed", True)
        for _ in range(4):
            breaker.failed()
        assert breaker.state == "closed"
        breaker.failed()
        clock.at += 30
        assert breaker.state == "half-open"

    def test_half_open_lets_one_through(self) -> None:
        clock = Clock()
        breaker = tripped(clock)
        clock.at += 30
        assert [breaker.allows() for _ in range(1000)] == [True] + [False] * 999

    def test_even_when_the_clock_stands_at_zero(self) -> None:
        clock = Clock(-30.0)
        breaker = tripped(clock)
        clock.at = 0.0
        assert [breaker.allows() for _ in range(3)] == [True, False, False]

    def test_a_probe_nobody_reports_on_makes_way_for_another(self) -> None:
        clock = Clock()
        breaker = tripped(clock)
        clock.at += 30
        assert breaker.allows()
        clock.at += 29.9
        assert not breaker.allows()
        clock.at += 0.2
        assert [breaker.allows(), breaker.allows()] == [True, False]

    def test_a_probe_whose_caller_left_makes_way_at_once(self) -> None:
        clock = Clock()
        breaker = tripped(clock)
        clock.at += 30
        assert breaker.allows()
        breaker.forgive()
        assert [breaker.allows(), breaker.allows()] == [True, False]

    def test_those_who_began_before_it_opened_change_nothing(self) -> None:
        """A hundred were under way; half of them succeed after all, the others time out when it is half open."""
        clock = Clock()
        breaker = tripped(clock)
        for _ in range(50):
            breaker.succeeded()
            assert breaker.state == "open"
        clock.at += 30
        for _ in range(50):
            breaker.failed()
            assert breaker.state == "half-open"
        assert breaker.allows()
        for report in (breaker.failed, breaker.succeeded):
            report()
            assert (breaker.state, breaker.allows()) == ("half-open", False), "only the probe counts"
        breaker.succeeded(probe=True)
        assert breaker.state == "closed"

    def test_flapping(self) -> None:
        """A provider that answers its probe and then nothing: 5 failures and 30 s, again and again."""
        clock = Clock()
        breaker = Breaker(now=clock)
        sent = 0
        for second in range(3600):
            clock.at = float(second)
            for _ in range(10):
                if breaker.allows():
                    sent += 1
                    breaker.succeeded(probe=True) if breaker.state == "half-open" else breaker.failed()
        # Of 36,000 requests: five, then six every thirty seconds.
        assert sent <= 6 * 3600 / 30

    def test_down_for_an_hour(self) -> None:
        clock = Clock()
        breaker = Breaker(now=clock)
        sent = 0
        for second in range(3600):
            clock.at = float(second)
            for _ in range(10):
                if breaker.allows():
                    sent += 1
                    breaker.failed(probe=True)
        assert sent <= 5 + 9 + 3600 / 300


HOUR = 3600.0


class TestClock:
    @pytest.mark.parametrize("jump", [HOUR, -HOUR, 0.0])
    def test_a_jump_never_makes_it_wait_longer(self, jump: float) -> None:
        clock = Clock(10 * HOUR)
        breaker = tripped(clock, times=3)
        clock.at += jump + 90
        assert breaker.state == "half-open"
        assert breaker.allows()
        clock.at += jump + 30
        assert breaker.allows()

    def test_a_jump_back_forgets_what_was_counted_rather_than_keeping_it_for_an_hour(self) -> None:
        clock = Clock(10 * HOUR)
        breaker = Breaker(now=clock)
        for end in "sf" * 9:
            breaker.succeeded() if end == "s" else breaker.failed()
        clock.at -= HOUR
        breaker.succeeded()
        breaker.failed()
        assert breaker.state == "closed"
        for _ in range(1000):
            clock.at += 1
            breaker.succeeded()
        assert len(breaker._recent) <= 11

    @given(
        st.lists(
            st.one_of(
                st.sampled_from(("allow", "succeed", "fail", "forgive")),
                st.floats(-HOUR, HOUR, allow_nan=False),
                st.floats(0, 40, allow_nan=False),
            ),
            max_size=60,
        )
    )
    def test_whatever_happens_it_is_not_shut_for_ever(self, events: list[str | float]) -> None:
        clock = Clock()
        breaker = Breaker(now=clock)
        for event in events:
            if isinstance(event, float):
                clock.at += event
            else:
                {
                    "allow": breaker.allows,
                    "succeed": partial(breaker.succeeded, probe=True),
                    "fail": partial(breaker.failed, probe=True),
                    "forgive": breaker.forgive,
                }[event]()
            assert (breaker.state == "closed") <= breaker.allows()
        # Nobody reports anything any more: the longest wait, and one lost probe.
        clock.at += 330
        assert breaker.allows()
