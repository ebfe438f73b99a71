"""The page on one's own RAG says what LangChain and LlamaIndex really do: its programs run where they are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
LIBRARIES = ROOT / ".real" / "rag"
PAGE = ROOT / "docs" / "how-to" / "put-turnout-in-front-of-your-rag.md"
BLOCK = re.compile(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = ["main answers from 1 passages", "conversational answers from 0 passages"]


class Case(NamedTuple):
    file: str
    package: str


CASES = [
    Case("with_langchain.py", "langchain_core"),
    Case("with_llamaindex.py", "llama_index.core"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.package)
def test_the_program_runs(tmp_path: Path, case: Case) -> None:
    paths = os.pathsep.join((str(LIBRARIES), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    more: dict[str, Any] = {"capture_output": True, "text": True, "cwd": tmp_path}
    more["env"] = {**os.environ, "PYTHONPATH": paths}
    if not LIBRARIES.joinpath(*case.package.split(".")).is_dir():
        pytest.skip(f"needs {case.package}: scripts/install_real_sources.sh installs it")
    program = tmp_path / case.file
    program.write_text(dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))[case.file], encoding="utf-8")
    ran = subprocess.run([sys.executable, str(program)], check=False, **more)
    assert ran.stdout.splitlines() == SAID, ran.stderr
