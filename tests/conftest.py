"""For all tests.

What has been imported when they begin stays, so the garbage collector need not look at it again and again: a collection
in the middle of a test that takes the time would otherwise cost as much as what it measures. And a shell that runs them
in its background has told them to ignore Ctrl-C, which the processes they start must not.

NumPy's libraries start a thread for each core, which wait for one another by spinning. With a worker on every core that
makes training ten times slower; the threads are read once, when NumPy is imported.

What a property is tried on takes as long as it takes: how fast something is, tests of its own say.

Of cases that are alike, `make test` tries one in a few, in turn through all that they are made of, and what takes long
and is tested in the small elsewhere it leaves out; `make soak`, which sets TURNOUT_LONG, tries all of them.

Settings, models and logs of the user who runs the tests are not theirs: each process of them begins in an empty folder.

Thousands of small databases are made, each flushed to its disk: in memory, where there is room, that takes no time.
"""

import gc
import os
import shutil
import signal
import tempfile
from collections import Counter

import pytest
from hypothesis import settings

MEMORY = "/dev/shm"  # noqa: S108 - pytest makes a folder of its own in it
# A run leaves 0.3 GB behind, and has twice as much while it goes on.
ROOM = 4 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
FOLDER = tempfile.mkdtemp(prefix="turnout-tests-")
for name in ("TURNOUT_CONFIG", "TURNOUT_DB", "TURNOUT_PEPPER", "TURNOUT_PROFILE"):
    os.environ.pop(name, None)
os.environ["XDG_CONFIG_HOME"] = f"{FOLDER}/config"
os.environ["XDG_DATA_HOME"] = f"{FOLDER}/data"
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")


settings.register_profile("turnout", deadline=None, max_examples=int(os.environ.get("TURNOUT_EXAMPLES", "50")))
settings.load_profile("turnout")


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "TURNOUT_LONG" in os.environ:
        return
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        if item.get_closest_marker("long"):
            left.append(item)
            continue
        mark = item.get_closest_marker("alike")
        one_in = mark.args[0] if mark else 1
        function = item.nodeid.partition("[")[0]
        at = seen[function]
        seen[function] += 1
        # The step grows by one each round, lest it meet the same one of three profiles or three APIs every time.
        (left if (at + at // one_in) % one_in else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_unconfigure() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
