"""Ask: the plan before anybody is asked, who answered, and nothing that a source says is markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from clean_environment import clear_environment
from console.conftest import OWN
from secured_server import call
from serving import RunningServer, serving
from turnout.console.console import Console

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    clear_environment(monkeypatch, tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "boiler.md").write_text(f"# Boiler {HOSTILE}\n\nThe boiler was serviced in May {HOSTILE}.\n")
    text = f'[server]\nlag_s = 60.0\n[sources.files]\nfolder = "{notes}"\n'
    with serving(tmp_path, text, pages=Console) as served:
        yield served


def parts(served: RunningServer, **fields: str) -> list[dict[str, str]]:
    got = call(served.url, "POST", "/ask/run", urlencode(fields).encode(), headers=OWN)
    assert got.headers["content-type"] == "text/event-stream", got
    lines = [line for line in got.body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines]


def test_a_question_shows_its_plan_and_who_answered(asked: RunningServer) -> None:
    page = call(asked.url, "GET", "/ask").body.decode()
    assert "<option>files</option>" in page
    found = parts(asked, q="when was the boiler serviced?", source="files")
    assert found[0]["into"] == "plan"
    assert "files" in found[0]["html"]
    assert any(one["into"] == "state-0-files" and "answered" in one["html"] for one in found)
    assert any(one["into"] == "sections" and "serviced in May" in one["html"] for one in found)
    assert found[-1]["into"] == "ended"
    assert not any(HOSTILE in one["html"] for one in found if one.get("how") != "text")


def test_what_is_wrong_is_a_sentence(asked: RunningServer) -> None:
    blank = call(asked.url, "POST", "/ask/run", b"q=+", headers={**OWN, "hx-request": "true"})
    assert blank.status == 422
    assert b"blank" in blank.body
    unknown = call(asked.url, "POST", "/ask/run", b"q=a&source=%3Cb%3E", headers={**OWN, "hx-request": "true"})
    assert unknown.status == 422
    assert b"<b>" not in unknown.body
    assert call(asked.url, "POST", "/ask/run", b"q=a").status == 403
