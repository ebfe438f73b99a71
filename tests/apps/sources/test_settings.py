"""The tables of the settings: what is wrong is said at once, with its line and the word that was meant."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from apps.sources.at_home import opened
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.desk import Desk
from turnout.apps.sources.health import check_all
from turnout.apps.sources.settings import open_sources
from turnout.apps.sources.source import Cause, Failure, SourceQuestion
from turnout.apps.sources.tables import KINDS
from turnout.core.errors import ConfigError


class Case(NamedTuple):
    id: str
    text: str
    said: str


WRONG = [
    Case(
        "unknown key", '[sources.kiwix]\nurl = "http://127.0.0.1:1"\nbook = ["x"]', "turnout.toml:3 sources.kiwix.book"
    ),
    Case("meant", '[sources.kiwix]\nurl = "http://127.0.0.1:1"\nbook = ["x"]', "did you mean 'books'?"),
    Case("unknown kind", '[sources.wiki]\nkind = "kiwx"\nurl = "http://127.0.0.1:1"', "did you mean 'kiwix'?"),
    Case("kind by name", '[sources.kiwx]\nurl = "http://127.0.0.1:1"', "turnout.toml:1 sources.kiwx: kind 'kiwx'"),
    Case("missing url", "[sources.web]\npages = 2", "'url' is missing"),
    Case("no place of books", "[sources.kiwix]\nbooks = []", "needs url (kiwix-serve) or zim (a list of ZIM files)"),
    Case("two places of books", '[sources.kiwix]\nurl = "http://127.0.0.1:1"\nzim = ["a.zim"]', "one of the two"),
    Case("missing token", '[sources.ha]\nurl = "http://127.0.0.1:1"', "'token' is missing"),
    Case(
        "literal token",
        '[sources.ha]\nurl = "http://127.0.0.1:1"\ntoken = "eyJhbGciOi.secret"',
        "a token does not belong",
    ),
    Case("misspelt table", '[source.kiwix]\nurl = "http://127.0.0.1:1"', "no such table, did you mean 'sources'?"),
    Case("not a table", 'sources = ["kiwix"]', "must be a table of sources"),
    Case("a source that is none", 'sources.kiwix = "http://127.0.0.1"', "must be a table"),
    Case("wrong type", '[sources.web]\nurl = "http://127.0.0.1:1"\npages = "3"', "must be a whole number"),
    Case("out of range", '[sources.web]\nurl = "http://127.0.0.1:1"\npages = 99', "99 is above 10"),
    Case("units", '[sources.forecast]\nplace = "Berlin"\nunits = "imperail"', "did you mean 'imperial'?"),
    Case("no place", "[sources.forecast]", "'place' is missing"),
    Case("latitude", "[sources.forecast]\nplace = { latitude = 99, longitude = 0 }", "99 is above 90"),
    Case("not an address", '[sources.kiwix]\nurl = "kiwix.local"', "not an http or https address"),
    Case("a password in it", '[sources.kiwix]\nurl = "http://me:hunter2@kiwix.local"', "a credential does not belong"),
    Case("metadata", '[sources.kiwix]\nurl = "http://169.254.169.254/"\nprivate = true', "metadata address: never"),
    Case(
        "token in the open",
        '[sources.ha]\nurl = "http://ha.example"\ntoken = { env = "TEST_TOKEN" }',
        "unencrypted: use https",
    ),
    Case("neither env nor file", '[sources.ha]\nurl = "http://127.0.0.1:1"\ntoken = {}', 'a key is { env = "NAME" }'),
    Case("no feeds", "[sources.news]", "needs url (FreshRSS) or feeds"),
    Case("no user", '[sources.news]\nurl = "http://127.0.0.1:1"', "needs user and token"),
    Case("watch", '[sources.changes]\nwatch = ["ha"]', "there is no source 'ha'"),
    Case("pointer", '[sources.x]\nkind = "http-json"\nurl = "http://127.0.0.1:1"\ntext = "body"', "is no JSON pointer"),
    Case("status page", '[sources.uptime]\nurl = "http://127.0.0.1:1"\npage = "a/../b"', "is not a name"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_wrong(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_TOKEN", "token")
    file = tmp_path / "turnout.toml"
    file.write_text(case.text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        open_sources(file)
    assert case.said in str(raised.value)
    assert not any(secret in str(raised.value) for secret in ("eyJ", "hunter2"))


def test_all_at_once(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text('[sources.kiwix]\nurl = 3\n[sources.web]\nurls = "x"\n[sources.nope]\n', encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        open_sources(file)
    assert len(raised.value.problems) == 4


SEVERAL = """
[sources.auto]
kind = "files"
folder = "x"
[sources.kiwix]
url = "kiwix.local"
book = ["x"]
[sources.forecast]
place = "Berlin"
url = "ftp://x"
geocoding = "nowhere"
[sources.news]
feeds = ["http://127.0.0.1:1", "daily"]
[sources.meter]
kind = "http-json"
url = "meter"
text = "body"
items = "list"
[sources.changes]
watch = ["forecats", "news", "uptme"]
[sources.ha]
url = "http://127.0.0.1:1"
token = {}
"""
# The line of each mistake, and what it is about.
MISTAKES = {
    2: "sources.auto: means something else",
    6: "sources.kiwix.url: 'kiwix.local' is not",
    7: "sources.kiwix.book: unknown key, did you mean 'books'?",
    10: "sources.forecast.url: 'ftp",
    11: "sources.forecast.geocoding: 'nowhere' is not",
    13: "sources.news.feeds[1]: 'daily' is not",
    16: "sources.meter.url: 'meter' is not",
    17: "sources.meter.text: 'body' is no JSON pointer",
    18: "sources.meter.items: 'list' is no JSON pointer",
    20: "sources.changes.watch[0]: there is no source 'forecats', did you mean 'forecast'?",
    23: "sources.ha.token: a key is",
}


def test_every_mistake_at_once_with_the_line_of_its_key(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(SEVERAL, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        open_sources(file)
    told = [str(problem) for problem in raised.value.problems]
    expected = [*MISTAKES.items(), (20, "sources.changes.watch[2]: there is no source 'uptme'")]
    assert sorted(told) == sorted(
        next((one for one in told if one.startswith(f"turnout.toml:{line} {said}")), f"{line} {said}")
        for line, said in expected
    )


ALL = """
[sources.kiwix]
url = "http://192.168.1.5:8080/kiwix/"
books = ["wikipedia"]
[sources.news]
feeds = ["https://daily.example/rss?format=full", "https://other.example/atom.xml"]
[sources.web]
url = "http://searx.lan:8888"
private = true
public_web = true
[sources.forecast]
place = { latitude = 52.5, longitude = 13.4, name = "home" }
units = "imperial"
[sources.ha]
url = "http://homeassistant.local:8123"
private = true
token = { env = "TEST_TOKEN" }
[sources.uptime]
url = "https://status.example"
page = "home"
[sources.changes]
watch = ["ha", "uptime"]
[sources.recipes]
kind = "http-json"
url = "https://recipes.example/api?q={terms}"
text = "/text"
[sources.files]
folder = "~/notes"
"""


def test_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_TOKEN", "token")

    async def main() -> None:
        async with opened(tmp_path, ALL) as sources:
            names = ["kiwix", "news", "web", "forecast", "ha", "uptime", "changes", "recipes", "files"]
            assert sources.configured == list(sources.sources) == names
            assert all(source.name == name and source.description for name, source in sources.sources.items())
            hosts = {origin.host: origin.private for origin in sources._client.egress.origins}
            assert hosts == {
                "192.168.1.5": True,
                "daily.example": False,
                "other.example": False,
                "searx.lan": True,
                "api.open-meteo.com": False,
                "geocoding-api.open-meteo.com": False,
                "homeassistant.local": True,
                "status.example": False,
                "recipes.example": False,
            }

    asyncio.run(main())
    assert len(KINDS) == 9


def test_not_configured(tmp_path: Path) -> None:
    async def main() -> None:
        text = '[sources.ha]\nurl = "http://127.0.0.1:1"\ntoken = { env = "TURNOUT_TEST_UNSET" }\n'
        async with opened(tmp_path, text) as sources:
            assert sources.configured == []
            desk, health = Desk(sources.sources, Cache("result", 1)), await check_all(("kiwix",), sources.sources)
            for name, message in (("ha", "$TURNOUT_TEST_UNSET is missing"), ("kiwix", "add [sources.kiwix]")):
                result, _ = await desk.ask(name, SourceQuestion("anything"))
                assert isinstance(result, Failure)
                assert result.why is Cause.NOT_CONFIGURED
                assert message in result.said
                assert health[name].status == "not_configured"

    asyncio.run(main())


def test_no_settings_at_all(tmp_path: Path) -> None:
    async def main() -> None:
        sources = open_sources("")
        assert sources.configured == []
        await sources.close()

    asyncio.run(main())
