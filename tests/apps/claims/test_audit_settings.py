"""Where an audit may look: what the settings say, what is wrong with them, and a search over a real connection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from turnout import load
from turnout.apps.claims.research import FoundPage
from turnout.apps.claims.settings import AuditSettings, open_reach, read_audit_settings
from turnout.config.document import read
from turnout.core.errors import Broken, ConfigError, EgressRefused, NetError, TimedOut
from turnout.testing import Reply, ScriptedTransport

SEARCH = '[claims.audit]\nsearch = "http://127.0.0.1:8888/searx"\n'
RESULTS = b'{"results": [{"url": "https://a.example/", "title": "A <b>page</b>", "content": "so  it is"}]}'


def written(folder: Path, text: str) -> Path:
    file = folder / "turnout.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_settings_it_looks_nowhere(tmp_path: Path) -> None:
    reach = open_reach(written(tmp_path, ""))
    assert (reach.search, reach.read) == (None, None)


def test_what_is_written_is_read_and_the_profile_loads_with_it(tmp_path: Path) -> None:
    file = written(tmp_path, SEARCH + "public_web = true\nsearches = 2\n")
    assert read_audit_settings(read(file)) == AuditSettings("http://127.0.0.1:8888/searx", public_web=True, searches=2)
    load("claims", config=file)


class Mistake(NamedTuple):
    id: str
    text: str
    said: str


MISTAKES = [
    Mistake("unknown key", "[claims.audit]\nserach = 'x'\n", "did you mean 'search'"),
    Mistake("unknown table", "[claims.audti]\nsearch = 'x'\n", "did you mean 'audit'"),
    Mistake("wrong type", "[claims.audit]\npublic_web = 'yes'\n", "public_web"),
    Mistake("too many", "[claims.audit]\nsearches = 21\n", "searches"),
    Mistake("no address", "[claims.audit]\nsearch = 'searx'\n", "not an http or https address"),
    Mistake("a credential", "[claims.audit]\nsearch = 'http://me:pw@a.example'\n", "a credential does not belong"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_mistakes_are_told_with_their_line(mistake: Mistake, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        open_reach(written(tmp_path, mistake.text))
    assert mistake.said in str(told.value)
    assert "turnout.toml:" in str(told.value)
    assert "pw@" not in str(told.value)


class SearchedCase(NamedTuple):
    id: str
    answer: Reply | NetError
    found: list[FoundPage] | type[NetError]


SEARCHED = [
    SearchedCase("found", Reply(body=RESULTS), [FoundPage("https://a.example/", "A page", "so it is")]),
    SearchedCase("nothing", Reply(body=b'{"results": []}'), []),
    SearchedCase("a page", Reply(body=b"<html>"), Broken),
    SearchedCase("deep", Reply(body=b"[" * 100_000), Broken),
    SearchedCase("forbidden", Reply(status=403, body=b"no"), Broken),
    SearchedCase("late", TimedOut("late"), TimedOut),
    SearchedCase("elsewhere", EgressRefused("not there"), EgressRefused),
]


@pytest.mark.parametrize("searched", SEARCHED, ids=lambda searched: searched.id)
def test_a_search_finds_pages_or_says_what_went_wrong(searched: SearchedCase, tmp_path: Path) -> None:
    transport = ScriptedTransport([searched.answer])

    async def search() -> list[FoundPage]:
        reach = open_reach(written(tmp_path, SEARCH), transport=transport)
        assert reach.search is not None
        try:
            return list(await reach.search("a b"))
        finally:
            await reach.close()

    if isinstance(searched.found, list):
        assert asyncio.run(search()) == searched.found
    else:
        with pytest.raises(searched.found):
            asyncio.run(search())
    assert transport.requests[0].path == "/searx/search?q=a+b&format=json"
