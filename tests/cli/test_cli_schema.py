"""`turnout schema`: one JSON document, to stdout or a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnout.config.schema import profile_schema

Run = Callable[..., Any]


def test_printed(run: Run) -> None:
    ran = run("schema")
    assert ran.code == 0
    assert json.loads(ran.out) == profile_schema()
    assert run("schema", "-o", "-").out == ran.out
    assert run("schema").out == ran.out, "the same every time"


def test_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("schema", "-o", "profile.schema.json")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "#:schema ./profile.schema.json"
    assert json.loads(Path("profile.schema.json").read_text()) == profile_schema()


def test_refused(run: Run) -> None:
    ran = run("schema", "-o", "/no/such/folder/x.json")
    assert ran.code == 2
    assert "/no/such/folder/x.json: No such file" in ran.err
