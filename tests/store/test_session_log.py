"""What happens in sessions: numbered without a gap whoever writes, kept once, kept apart, and forgotten in time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from turnout.store import Store
from turnout.store.session_log import SessionLog, open_session_log

WRITERS, EACH = 4, 25


def test_writers_of_several_processes_leave_no_gap(opened: Callable[..., Store]) -> None:
    logs = [open_session_log(opened()) for _ in range(WRITERS)]

    def write(log: SessionLog, writer: int) -> None:
        for number in range(EACH):
            log.append("", "s", b'"%d"' % writer, f"{writer} {number}")
            log.append("", "s", b'"again"', f"{writer} {number}")

    threads = [threading.Thread(target=write, args=(log, writer)) for writer, log in enumerate(logs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        rows = log.after("", "s", 0)
        assert [row.sequence for row in rows] == list(range(1, WRITERS * EACH + 1))
        assert "again" not in {row.body for row in rows}
        assert log.after("", "s", WRITERS * EACH - 2, 1)[0].sequence == WRITERS * EACH - 1
        log.close()


def test_tenants_and_sessions_are_apart(store: Store) -> None:
    log = open_session_log(store)
    for tenant, session in (("a", "s"), ("b", "s"), ("a", "t"), ("a", "\0\ud800" + "x" * 500)):
        assert log.append(tenant, session, b"{}").sequence == 1
        assert [row.sequence for row in log.after(tenant, session, 0)] == [1]
    assert log.after("c", "s", 0) == []
    log.close()


def test_what_is_old_is_forgotten_and_numbers_go_on(store: Store) -> None:
    log = open_session_log(store)
    log.append("", "s", b"{}")
    assert log.forget(days=1) == 0
    assert log.forget(days=-1) == 1
    assert log.after("", "s", 0) == []
    assert log.append("", "s", b"{}").sequence == 2
    log.close()
