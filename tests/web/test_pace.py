"""Under load Granian's threads wait for the event loop; with few requests they do not."""

import asyncio
import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from turnout.web import serve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a policy")


def test_the_other_threads_wait_while_many_requests_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_paced(monkeypatch))


async def _paced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "PACE_S", 0.001)
    server: Any = SimpleNamespace(admission=SimpleNamespace(active=0))
    own, done = serve._threads(), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    pace = asyncio.create_task(serve._pace(server, own))
    try:
        few, many = (1, os.SCHED_OTHER), (serve.BUSY, os.SCHED_BATCH)
        for active, policy in (few, many, few):
            server.admission.active = active
            await asyncio.sleep(0.1)
            assert os.sched_getscheduler(thread.native_id or 0) == policy
            assert os.sched_getscheduler(0) == os.SCHED_OTHER
    finally:
        pace.cancel()
        done.set()
        thread.join()
