"""A command as a process of its own, for as long as a test looks at it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Ends with the block, however that ends: a test that fails does not wait for what it was to stop."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()
