"""Granian's threads wait for the event loop; those of Python and of the process before it do not."""

import _thread
import os
import sys
import threading

import pytest

from turnout.web import serve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a policy")


def test_only_threads_that_python_does_not_know_wait() -> None:
    ids: list[int] = []
    started, done = threading.Semaphore(0), threading.Event()

    def work() -> None:
        ids.append(threading.get_native_id())
        started.release()
        done.wait()

    _thread.start_new_thread(work, ())
    started.acquire()
    own = set(os.listdir(serve.THREADS))
    known = threading.Thread(target=work)
    known.start()
    started.acquire()
    _thread.start_new_thread(work, ())
    started.acquire()
    try:
        serve._step_back(own)
        assert [os.sched_getscheduler(one) for one in ids] == [os.SCHED_OTHER, os.SCHED_OTHER, os.SCHED_BATCH]
        assert os.sched_getscheduler(0) == os.SCHED_OTHER
    finally:
        done.set()
        known.join()
