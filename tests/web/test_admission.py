"""How many requests are let in: as many as there is room for, and room follows how late the event loop is."""

import asyncio

import pytest

from turnout.core.errors import Refused
from turnout.web.admission import LEAST, MOMENT, Admission


def admission(limit: int = 100, waiting: int = 0, lag_s: float = 0.01) -> Admission:
    return Admission(limit, waiting, wait_s=0.05, lag_s=lag_s)


def look(room: Admission, late_s: float, times: int) -> None:
    """Measure so many wake-ups, each of them so late."""
    for _ in range(times):
        room.measure(late_s)


def test_a_single_client_is_let_in_however_busy_the_machine() -> None:
    room = admission()
    look(room, 3.0, 50)
    assert room.lag > 1.0
    assert not room.is_full
    asyncio.run(room.__aenter__())
    assert room.active == 1


def test_room_shrinks_to_what_one_core_does_and_grows_back() -> None:
    room = admission()
    room.active = 90
    look(room, 0.2, 5)
    assert room.is_full
    assert room.room < 60
    look(room, 0.2, 50)
    assert room.room == LEAST
    room.active = LEAST - 1
    assert not room.is_full
    look(room, 0.0, 10)
    assert LEAST < room.room < 100
    look(room, 0.0, 100)
    assert room.room == 100


@pytest.mark.parametrize(("late_s", "left"), [(0.011, 91), (0.015, 67), (0.03, 50), (3.0, 50)])
def test_room_shrinks_by_how_late_the_loop_is(late_s: float, left: int) -> None:
    room = admission()
    room.active, room.lag = 100, late_s
    look(room, late_s, 1)
    assert round(room.room) == left


def test_one_pause_is_no_overload() -> None:
    room = admission()
    room.active = 90
    look(room, 0.09, 1)
    assert room.room == 100
    look(room, 0.0, 3)
    assert room.lag < 0.01


def test_few_are_allowed_where_the_settings_say_few() -> None:
    room = admission(limit=2)
    room.active = 2
    look(room, 1.0, 50)
    assert room.room == 2
    assert room.is_full


def test_there_is_no_queue_while_the_loop_is_behind() -> None:
    async def main() -> None:
        room = admission(limit=60, waiting=10)
        for _ in range(60):
            await room.__aenter__()
        assert not room.is_full, "there is a queue"
        look(room, 0.5, 20)
        with pytest.raises(Refused) as refused:
            await room.__aenter__()
        assert refused.value.status == 503
        assert refused.value.retry_after_s is not None
        assert "60 requests are under way" in str(refused.value)

    asyncio.run(main())


def test_it_measures_the_loop_it_runs_on() -> None:
    import time

    async def main() -> None:
        room = admission()
        watching = asyncio.create_task(room.watch(0.001))
        for _ in range(20):
            await asyncio.sleep(0.001)
            time.sleep(0.06)
        assert room.lag >= 0.02
        await asyncio.sleep(0.05)
        watching.cancel()

    asyncio.run(main())


def test_it_looks_less_often_while_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async def looks(busy: int) -> int:
        room, seen = admission(), list[float]()
        room.active = busy
        monkeypatch.setattr(room, "measure", seen.append)
        watching = asyncio.create_task(room.watch(0.005))
        await asyncio.sleep(0.25)
        watching.cancel()
        return len(seen)

    # A busy machine looks less often, never more.
    assert asyncio.run(looks(busy=0)) <= 10
    assert asyncio.run(looks(busy=1)) > 10


def test_it_counts_as_refusing_until_a_moment_after_the_last_refusal() -> None:
    room, heard = admission(), list[bool]()
    room.on_refusing = heard.append
    look(room, 3.0, 50)
    assert not heard, "a busy machine alone is no reason to refuse"
    room.refused += 1
    look(room, 0.0, 1)
    assert heard == [True]
    look(room, 0.0, MOMENT - 1)
    assert heard == [True]
    look(room, 0.0, 1)
    assert heard == [True, False], "the callback is called once for each change"
