"""`turnout sources`: what there is and could be, whether it answers, and how one is added; the file stays otherwise."""

import asyncio
import json
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.conftest import Run
from turnout.apps.sources import health
from turnout.testing.source import KumaDouble

SETTINGS = """\
# mine
[store]
durability = "strict"  # why not

[sources.uptime]
url = "%s"  # in the cellar
"""


@pytest.fixture
def kuma() -> Iterator[KumaDouble]:
    """In a thread of its own: a command has its own loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    double = KumaDouble({"Plex": 1})
    do(double.__aenter__())
    yield double
    do(double.stop())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        file = tmp_path / "turnout" / "turnout.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return written


def words(text: str) -> str:
    return " ".join(text.split())


class TestList:
    def test_what_could_be(self, run: Run) -> None:
        ran = run("sources")
        assert (ran.code, ran.err) == (0, "")
        assert "kiwix · not configured turnout sources add kiwix --url URL" in words(ran.out)
        assert run("sources", "list").out == ran.out

    def test_what_is_and_that_nobody_is_asked(
        self, run: Run, settings: Callable[[str], Path], kuma: KumaDouble
    ) -> None:
        settings(SETTINGS % kuma.url + '[sources.ha]\nurl = "http://127.0.0.1:1"\ntoken = { env = "NO_TOKEN" }\n')
        out = words(run("sources", "list").out)
        assert "uptime · configured" in out
        assert "ha · not configured ha has no token: $NO_TOKEN is missing or empty" in out
        rows = json.loads(run("sources", "list", "--json").out)
        assert [row["source"] for row in rows if row["status"] == "configured"] == ["uptime"]
        assert {"kiwix", "news", "files"} <= {row["source"] for row in rows if row["status"] == "not_configured"}
        assert kuma.requests == []


class TestTry:
    def test_one_that_answers(self, run: Run, settings: Callable[[str], Path], kuma: KumaDouble) -> None:
        settings(SETTINGS % kuma.url)
        ran = run("sources", "test")
        assert (ran.code, "uptime ✓ ok" in words(ran.out)) == (0, True)
        assert "kiwix" not in ran.out
        kuma.trouble = "down"
        ran = run("sources", "test", "uptime")
        assert (ran.code, "uptime ✕ error" in words(ran.out), "503" in ran.out) == (1, True, True)

    def test_one_that_hangs_is_not_waited_for(
        self, run: Run, settings: Callable[[str], Path], kuma: KumaDouble, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(health, "CHECK_S", 0.2)
        settings(SETTINGS % kuma.url)
        kuma.trouble = "hung"
        (row,) = json.loads((ran := run("sources", "test", "--json")).out)
        assert (ran.code, row["status"], row["said"]) == (
            1,
            "error",
            "no answer within 0.2 s: is it busy or hung? try again",
        )

    def test_one_without_its_token_fails(self, run: Run, settings: Callable[[str], Path]) -> None:
        settings('[sources.ha]\nurl = "http://127.0.0.1:1"\ntoken = { env = "NO_TOKEN" }\n')
        ran = run("sources", "test")
        assert (ran.code, "$NO_TOKEN" in ran.out) == (1, True)

    def test_there_is_none(self, run: Run) -> None:
        ran = run("sources", "test")
        assert (ran.code, "turnout sources list" in ran.out) == (0, True)

    def test_one_that_is_not_there(self, run: Run, settings: Callable[[str], Path]) -> None:
        settings('[sources.wiki]\nkind = "kiwix"\nurl = "http://127.0.0.1:1"\n')
        assert "did you mean 'wiki'?" in run("sources", "test", "wikki").err
        ran = run("sources", "test", "news")
        assert (ran.code, "turnout sources add news --url FEED" in ran.err) == (2, True)


class Add(NamedTuple):
    id: str
    argv: tuple[str, ...]
    entry: dict[str, object]


ADDED = [
    Add("kiwix", ("kiwix", "--url", "http://192.168.1.5:8080"), {"url": "http://192.168.1.5:8080"}),
    Add(
        "by kind", ("wiki", "--kind", "kiwix", "--url", "http://[::1]:80"), {"kind": "kiwix", "url": "http://[::1]:80"}
    ),
    Add("its own kind", ("web", "--kind", "web", "--url", "https://x.example"), {"url": "https://x.example"}),
    Add("a feed", ("news", "--url", "https://x.example/rss"), {"feeds": ["https://x.example/rss"]}),
    Add(
        "FreshRSS",
        ("news", "--url", "https://x.example", "--user", "al", "--token-env", "RSS"),
        {"url": "https://x.example", "user": "al", "token": {"env": "RSS"}},
    ),
    Add("a place", ("forecast", "--place", 'Köln "Mitte"'), {"place": 'Köln "Mitte"'}),
    Add(
        "a home",
        ("ha", "--url", "http://ha.local:8123", "--private", "--token-env", "HA"),
        {"url": "http://ha.local:8123", "token": {"env": "HA"}, "private": True},
    ),
    Add("nothing to say", ("changes",), {}),
]


@pytest.mark.parametrize("case", ADDED, ids=lambda case: case.id)
def test_added_and_the_rest_stays(case: Add, run: Run, settings: Callable[[str], Path]) -> None:
    before = SETTINGS % "http://127.0.0.1:3001"
    file = settings(before)
    ran = run("sources", "add", *case.argv)
    assert (ran.code, ran.err) == (0, "")
    assert f"turnout sources test {case.argv[0]}" in ran.out
    text = file.read_text(encoding="utf-8")
    assert text.startswith(before)
    assert tomllib.loads(text)["sources"][case.argv[0]] == case.entry
    assert f"{case.argv[0]} · " in words(run("sources", "list").out)


def test_a_first_source_makes_the_file_and_a_folder_is_a_whole_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    assert run("sources", "add", "files", "--folder", "notes").code == 0
    text = (tmp_path / "turnout" / "turnout.toml").read_text(encoding="utf-8")
    assert text == f'[sources.files]\nfolder = "{tmp_path}/notes"\n'
    own = str(tmp_path / "own.toml")
    ran = run("sources", "add", "files", "--folder", "notes", "--config", own)
    assert f"turnout sources test files --config {own}" in ran.out


def test_a_missing_token_is_told(run: Run) -> None:
    ran = run("sources", "add", "uptime", "--url", "https://x.example", "--token-env", "KUMA_KEY")
    assert (ran.code, "set $KUMA_KEY" in ran.out) == (0, True)


class Bad(NamedTuple):
    id: str
    argv: tuple[str, ...]
    said: tuple[str, ...]
    settings: str = "a = 1\n"


REFUSED = [
    Bad("no such kind", ("wiki", "--kind", "kiwxi"), ("'kiwxi'", "did you mean 'kiwix'?", "http-json, files")),
    Bad("a name that is no kind", ("wiki", "--url", "http://127.0.0.1"), ("'wiki'", "say --kind")),
    Bad("a name of two words", ("my wiki", "--kind", "kiwix", "--url", "http://127.0.0.1"), ("letters, digits",)),
    Bad("a taken name", ("fusion", "--kind", "kiwix", "--url", "http://127.0.0.1"), ("my-fusion",)),
    Bad("lacks its url", ("wiki", "--kind", "kiwix"), ("turnout sources add wiki --kind kiwix --url URL",)),
    Bad("lacks its token", ("ha", "--url", "https://x.example"), ("ha needs --token-env",)),
    Bad("lacks a user", ("news", "--url", "https://x.example", "--token-env", "X"), ("needs user",)),
    Bad("another kind's key", ("kiwix", "--url", "http://127.0.0.1", "--place", "Bonn"), ("kiwix.place: unknown key",)),
    Bad("no url", ("kiwix", "--url", "kiwix.local"), ("sources.kiwix", "kiwix.local")),
    Bad("no folder", ("files", "--folder", "/no/such"), ("'/no/such'", "make it first")),
    Bad("no variable", ("ha", "--url", "https://x.example", "--token-env", "a b"), ("letters, digits and _",)),
    Bad("a token", ("ha", "--url", "https://x.example", "--token-env", "sk-ant-api03-abcdefghij"), ("a key is { env",)),
    Bad("a token in the open", ("ha", "--url", "http://x.example", "--token-env", "X"), ("unencrypted", "use https")),
    Bad("too much to say", ("x", "--kind", "http-json", "--url", "https://x.example"), ("[sources.x]",)),
    Bad("there already", ("web", "--url", "http://127.0.0.1"), ("turnout.toml:1", "already"), "[sources.web]\nx = 1\n"),
    Bad("inline", ("web", "--url", "http://127.0.0.1"), ("cannot add to", "add web there"), "sources = {}\n"),
    Bad("no table", ("web", "--url", "http://127.0.0.1"), ("cannot add to",), "sources = 1\n"),
    Bad("no TOML", ("web", "--url", "http://127.0.0.1"), ("turnout.toml:1",), "[oh\n"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused_and_nothing_changes(case: Bad, run: Run, settings: Callable[[str], Path]) -> None:
    file = settings(case.settings)
    ran = run("sources", "add", *case.argv)
    assert (ran.code, ran.out) == (2, "")
    assert [said for said in case.said if said not in ran.err] == [], ran.err
    assert "sk-ant" not in ran.err
    assert file.read_text(encoding="utf-8") == case.settings
    assert list(file.parent.iterdir()) == [file]
