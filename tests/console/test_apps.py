"""The applications on their pages: what is decided, sent, cited and kept, and nothing that anybody says is markup."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from console.conftest import OWN
from secured_server import call
from serving import RunningServer

HOSTILE = "<script>alert(1)</script>"
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 64


def parts(
    served: RunningServer, path: str, body: bytes, kind: str = "application/x-www-form-urlencoded"
) -> list[dict[str, str]]:
    got = call(served.url, "POST", path, body, headers={**OWN, "content-type": kind}, timeout=60.0)
    assert got.headers["content-type"] == "text/event-stream", got
    return [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: ")]


def markup(found: list[dict[str, str]]) -> str:
    return "".join(one["html"] for one in found if one.get("how") != "text")


def said(found: list[dict[str, str]]) -> str:
    return "".join(one["html"] for one in found if one.get("how") == "text")


def test_study_shows_what_was_sent(served: RunningServer) -> None:
    assert b"What was sent" in call(served.url, "GET", "/study").body
    fields = {"question": f"What is photosynthesis? {HOSTILE}", "session": "s"}
    form = b"".join(
        b'--x\r\ncontent-disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), value.encode())
        for name, value in fields.items()
    )
    form += b'--x\r\ncontent-disposition: form-data; name="image"; filename="p.png"\r\n\r\n' + PNG + b"\r\n--x--\r\n"
    found = parts(served, "/study/run", form, "multipart/form-data; boundary=x")
    assert "No page</b>left out" in markup(found)
    assert "left out" in markup(found)
    assert "demonstration model" in said(found)
    assert HOSTILE not in markup(found)
    assert "Look at the page" in markup(found)


def test_docs_show_their_passages(served: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"No documentation yet" in call(served.url, "GET", "/docs").body
    found = parts(served, "/docs/run", urlencode({"q": "How do I configure the retry policy?"}).encode())
    assert "There are no documents yet" in said(found)
    assert "no documents" in markup(found)
    blank = call(served.url, "POST", "/docs/run", b"q=", headers={**OWN, "hx-request": "true"})
    assert blank.status == 422


def test_chat_shows_a_card_and_why(served: RunningServer) -> None:
    page = call(served.url, "GET", "/chat").body.decode()
    assert 'name="history" value="[]"' in page
    found = parts(served, "/chat/run", urlencode({"q": "Did Matthew copy Mark?", "session": "chat-1"}).encode())
    assert found[0]["into"] == "conversation"
    assert "Routing decision" in markup(found)
    assert any(one["into"] == "conversation-state" and "Did Matthew copy Mark?" in one["html"] for one in found)
    assert any(one["into"] == "state" and "Searching existing claims" in one["html"] for one in found)
    decision = markup(found).partition("/chat/judge/")[2].partition('"')[0]
    assert served.store.flush(10.0)
    judged = call(served.url, "POST", f"/chat/judge/{decision}", b"right=0", headers=OWN)
    assert judged.status == 200
    assert served.store.records().feedback(decision)[0].verdict == "wrong"
    unread = call(served.url, "POST", "/chat/run", b"q=a&history=%7B", headers={**OWN, "hx-request": "true"})
    assert unread.status == 422


def test_an_audit_is_followed_agent_by_agent(served: RunningServer) -> None:
    asked = {"q": f"Do penguins secretly run the stock market? {HOSTILE}", "session": "chat-2"}
    found = parts(served, "/chat/run", urlencode(asked).encode())
    assert "demonstration model" in markup(found)
    assert "Topic finder" in markup(found)
    assert HOSTILE not in markup(found)
