"""Decision ids: unique across threads, forks and processes, 26 Crockford characters, in the order they were made."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from turnout.core.decision import new_id

CROCKFORD = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def decode(text: str) -> int:
    number = 0
    for character in text:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(character)
    return number


def test_it_is_26_characters_of_crockfords_alphabet() -> None:
    for _ in range(1000):
        one = new_id()
        assert len(one) == 26
        assert set(one) <= CROCKFORD
        assert decode(one) < 2**128


def test_the_first_ten_characters_are_the_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    stamp = decode(new_id()[:10])
    after = time.time_ns() // 1_000_000
    assert before <= stamp <= after


def test_ids_sort_in_the_order_they_were_made() -> None:
    ids = [new_id() for _ in range(50_000)]
    assert len(set(ids)) == 50_000
    assert ids == sorted(ids)


def test_ids_made_apart_in_time_sort_by_time() -> None:
    early = new_id()
    time.sleep(0.003)
    assert new_id() > early


def test_threads_do_not_share_ids() -> None:
    start = threading.Barrier(8)

    def make() -> list[str]:
        start.wait()
        return [new_id() for _ in range(5000)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = [future.result() for future in [pool.submit(make) for _ in range(8)]]
    finally:
        sys.setswitchinterval(interval)
    ids = [one for part in made for one in part]
    assert len(set(ids)) == len(ids) == 40_000
    assert {len(one) for one in ids} == {26}


def test_a_fresh_process_has_its_own() -> None:
    code = "from turnout.core.decision import new_id; print(new_id())"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    tails = {run.stdout.strip()[10:20] for run in runs} | {new_id()[10:20]}
    assert len(tails) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_does_not_repeat_its_parent() -> None:
    """In a fresh interpreter: pytest's own has threads, and forking those warns."""
    code = """
import os, sys
from turnout.core.decision import new_id
new_id()
children = []
for _ in range(3):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.write(theirs, "\\n".join(new_id() for _ in range(1000)).encode())
        os._exit(0)
    os.close(theirs)
    children.append(ours)
ids = [new_id() for _ in range(1000)]
for ours in children:
    found = b""
    while chunk := os.read(ours, 65536):
        found += chunk
    ids += found.decode().split()
assert len(ids) == len(set(ids)) == 4000, (len(ids), len(set(ids)))
assert len({one[10:] for one in ids}) == 4000
print("unique")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("unique", "")
