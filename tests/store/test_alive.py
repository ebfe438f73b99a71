"""Which workers are there: a lock each, which the system ends with them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from child import running
from turnout.store import Store
from turnout.store.alive import Workers, workers_of

CHILD = """
import sys, time
from turnout.store import open_store
from turnout.store.alive import workers_of
workers = workers_of(open_store(sys.argv[1], config=""))
workers.join("child")
print("in", flush=True)
time.sleep(60)
"""


@pytest.fixture
def made(opened: Callable[..., Store]) -> Iterator[Callable[[], Workers]]:
    with contextlib.ExitStack() as stack:

        def make() -> Workers:
            workers = workers_of(opened())
            stack.callback(workers.close)
            return workers

        yield make


def test_who_is_there_is_not_gone(made: Callable[[], Workers]) -> None:
    one, other = made(), made()
    one.join("one")
    one.join("one")
    with other.gone("one") as is_gone:
        assert not is_gone
    with other.gone("never there") as is_gone:
        assert is_gone
        with one.gone("never there") as as_well:
            assert not as_well, "two would both take over"
    one.close()
    with other.gone("one") as is_gone:
        assert is_gone


def test_who_is_killed_is_gone_at_once(made: Callable[[], Workers], store_url: str) -> None:
    workers = made()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with running([sys.executable, "-c", CHILD, store_url], stdout=-1, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        with workers.gone("child") as is_gone:
            assert not is_gone
        process.kill()
        process.wait()
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with workers.gone("child") as is_gone:
                if is_gone:
                    return
            time.sleep(0.02)
    pytest.fail("a worker that was killed is still there")


def test_one_at_a_time(made: Callable[[], Workers]) -> None:
    inside, most = [0], [0]

    def work(workers: Workers) -> None:
        with workers.alone():
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            inside[0] -= 1

    threads = [threading.Thread(target=work, args=(made(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
