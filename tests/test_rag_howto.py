"""The page on one's own RAG says what LangChain and LlamaIndex really do: its programs are run where they are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "put-turnout-in-front-of-your-rag.md"
BLOCK = re.compile(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = ["main answers from 1 passages", "conversational answers from 0 passages"]


class Case(NamedTuple):
    file: str
    package: str
    install: str


CASES = [
    Case("with_langchain.py", "langchain_core", "pip install langchain-core"),
    Case("with_llamaindex.py", "llama_index.core", "pip install llama-index-core"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.package)
def test_the_program_runs(tmp_path: Path, case: Case) -> None:
    found = subprocess.run([sys.executable, "-c", f"import {case.package}"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"needs {case.package}: {case.install}")
    program = tmp_path / case.file
    program.write_text(dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))[case.file], encoding="utf-8")
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.stdout.splitlines() == SAID, ran.stderr
