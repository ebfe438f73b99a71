"""For all tests: what has been imported when they begin stays, so the garbage collector need not look at it again and
again. A collection in the middle of a test that takes the time would otherwise cost as much as what it measures."""

import gc


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
