"""The locks agree: what serves in a checkout is what was tested, to the hash, and comes from no particular index."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = ("base", "dev", "homeassistant", "minilm", "rag", "serve", "uv")
PIN = re.compile(r"^([a-z0-9][\w.-]*)==([^\s;]+)", re.MULTILINE)


def read_lock(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")


def pins(name: str) -> set[tuple[str, ...]]:
    return set(PIN.findall(read_lock(name)))


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_a_hash_and_no_index_is_named(name: str) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", read_lock(name))
    assert [block.split(maxsplit=1)[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert not re.search(r"://|--(?:extra-)?index-url|--find-links", read_lock(name))


@pytest.mark.parametrize("name", ["base", "serve"])
def test_a_smaller_set_is_part_of_what_the_tests_run_with(name: str) -> None:
    assert pins(name)
    assert pins(name) <= pins("dev")


def test_serving_needs_no_test_tools() -> None:
    """And has what the extras `serve` and `student` ask for, but for the event loop that is only faster."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["serve"], *extras["student"]]
    served = {name for name, _ in pins("serve")}
    assert {re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in wanted} - served == {"uvloop"}
    assert served.isdisjoint({"mypy", "onnxruntime", "openai", "pyarrow", "pytest", "ruff", "scikit-learn", "scipy"})
