"""The real embedder, built once in a run of the tests, for whoever needs one."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from build_minilm import PIP, build, find_weights
from turnout.models.embed import embedder_folder, read_manifest

needs_weights = pytest.mark.skipif(find_weights() is None, reason=f"needs MiniLM's weights: {PIP}")


def built_minilm(factory: pytest.TempPathFactory) -> Path:
    """Its folder, which every process of this run shares: look, do not touch."""
    if find_weights() is None:
        pytest.skip(f"needs MiniLM's weights: {PIP}")
    root = factory.getbasetemp()
    # Workers of xdist have a folder each, side by side.
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "minilm"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read_manifest(folder) is None:
            build(folder=folder)
    return folder


def place(folder: Path) -> Path:
    """The same where commands look for it, which belongs to the test."""
    target = embedder_folder()
    target.mkdir(parents=True)
    for file in folder.iterdir():
        os.link(file, target / file.name)
    return target
