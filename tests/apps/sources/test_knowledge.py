"""kiwix, news, web, http-json and files: what is searched for, what is found, and in which order."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from apps.sources.at_home import ARTICLES, BOOK, NOW, RESULTS, ask, opened
from turnout.apps.page import readable_text
from turnout.apps.sources.compat import compat_text_is_empty
from turnout.apps.sources.fetch import Site
from turnout.apps.sources.http_json import point
from turnout.apps.sources.kiwix import Kiwix
from turnout.apps.sources.news import choose, read_feed
from turnout.apps.sources.shelf import KiwixServer
from turnout.apps.sources.source import Cause, Empty, Failure, Passage, Source, SourceAnswer, SourceQuestion
from turnout.apps.sources.terms import fit, neighbours, search_terms
from turnout.apps.sources.web import Web
from turnout.core.errors import TimedOut
from turnout.net.client import Client
from turnout.net.egress import Egress, origin_of
from turnout.net.public import Page, PublicWeb
from turnout.search import Folder
from turnout.testing import Reply, ScriptedTransport
from turnout.testing.source import (
    Article,
    FeedDouble,
    FreshRssDouble,
    JsonDouble,
    KiwixDouble,
    SearxDouble,
    SourceDouble,
)
from turnout.testing.source.searx import WebResult
from turnout.text.page import read_html, read_xml


def run(
    double: SourceDouble, table: str, folder: Path, act: Callable[[Source], Awaitable[None]], timeout_s: float = 5.0
) -> None:
    async def main() -> None:
        async with double:
            text = f"[sources.it]\n{table.replace('URL', double.url)}\ntimeout_s = {timeout_s}\n"
            async with opened(folder, text) as sources:
                await act(sources.sources["it"])

    asyncio.run(main())


class Terms(NamedTuple):
    question: str
    terms: str
    lang: str = ""


TERMS = [
    Terms("What is a black hole?", "black hole"),
    Terms(
        "what's the deal with that whole mercury retrograde thing everyone keeps talking about", "mercury retrograde"
    ),
    Terms("Who founded Fox News?", "founded fox news"),
    Terms("¿En qué año murió Tesla?", "año murió tesla"),
    Terms("Wann wurde die Universität Straßburg gegründet?", "universität strassburg gegründet"),
    Terms("what is it", "what is it"),
    Terms("Is vitamin C good?", "vitamin good"),
    Terms("What happened in 1901", "happened 1901"),
    Terms("", ""),
]


@pytest.mark.parametrize("case", TERMS, ids=lambda case: case.question)
def test_search_terms(case: Terms) -> None:
    assert " ".join(search_terms(case.question, case.lang)) == case.terms


def test_fit_prefers_rare_words_and_finds_compounds() -> None:
    texts = ["the city of tesla", "a city", "südkalifornische küche", ""]
    assert max(range(4), key=lambda at: fit(["city", "tesla"], texts)[at]) == 0
    assert fit(["südkalifornien"], texts, "de")[2] > 0
    assert all(0 <= score <= 1 for score in fit(["city", "tesla"], texts))
    assert fit(["x"], []) == []
    assert neighbours(["black", "hole", "mass"], ["the hole is black", "black as a deep dark hole", ""]) == [
        0.5,
        0.0,
        0.0,
    ]
    assert neighbours(["one"], ["one"]) == [0.0]


class TestKiwix:
    @pytest.mark.parametrize("generation", ["old", "new"])
    def test_both_generations(self, generation: Literal["old", "new"], tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            result = await ask(source, "what is a black hole?")
            assert isinstance(result, SourceAnswer)
            best = result.passages[0]
            assert best.title == "Black hole"
            assert best.url.endswith("/content/tiny/Black_hole" if generation == "new" else "/tiny/Black_hole")
            assert "Menu" not in best.text
            assert "horizon" in best.text

        run(KiwixDouble({"tiny": BOOK}, generation), 'kind = "kiwix"\nurl = "URL"', tmp_path, act)

    def test_a_whole_question_would_find_nothing(self, tmp_path: Path) -> None:
        double = KiwixDouble({"tiny": BOOK})

        async def act(source: Source) -> None:
            assert isinstance(await ask(source, "how does the spring of a garage door work?"), SourceAnswer)
            assert isinstance(await ask(source, "how do submarines dive?"), Empty)

        run(double, 'kind = "kiwix"\nurl = "URL"', tmp_path, act)
        patterns = [path for _, path in double.requests if path.startswith("/search")]
        assert "pattern=spring+OR+garage+OR+door+OR+work" in patterns[0]

    def test_list_pages_come_last(self, tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            result = await ask(source, "mercury")
            assert isinstance(result, SourceAnswer)
            assert [one.title for one in result.passages] == ["Mercury (planet)", "List of planets"]

        run(KiwixDouble({"tiny": BOOK}), 'kind = "kiwix"\nurl = "URL"', tmp_path, act)

    def test_several_books(self, tmp_path: Path) -> None:
        double = KiwixDouble({"one": {"a": ("Otter", "An otter dives.")}, "two": {"b": ("Otters", "The otter swims.")}})

        async def act(source: Source) -> None:
            result = await ask(source, "otter")
            assert isinstance(result, SourceAnswer)
            assert [one.title for one in result.passages] == ["Otter", "Otters"]
            assert [one.score > 14 for one in result.passages] == [True, True]

        run(double, 'kind = "kiwix"\nurl = "URL"', tmp_path, act)

    def test_what_a_model_adds(self) -> None:
        """Other phrasings of one term, and the books; without a model, or one that fails, it does without."""
        double = KiwixDouble({"tiny": BOOK, "cars": {"x": ("Mercury (car)", "Mercury made cars.")}})

        async def model(instruction: str, text: str) -> str:
            return (
                "tiny\nunheard of" if text.startswith("Books:\n") else "- planet Mercury\nMercury in the solar system"
            )

        async def silent(*_: object) -> str:
            raise TimedOut("no answer")

        async def main() -> None:
            async with double:
                origin = origin_of(double.url)
                client = Client(Egress(frozenset((origin,))))
                site = Site("kiwix", client, origin)
                helped = await Kiwix(KiwixServer(site)).ask(SourceQuestion("mercury?", asks=model))
                alone = await Kiwix(KiwixServer(site)).ask(SourceQuestion("mercury?", asks=silent))
                await client.close()
            assert isinstance(helped, SourceAnswer)
            assert isinstance(alone, SourceAnswer)
            assert not any("/cars/" in one.url for one in helped.passages)
            assert any("/cars/" in one.url for one in alone.passages)

        asyncio.run(main())
        searches = [path for _, path in double.requests if path.startswith("/search")]
        assert "pattern=mercury+OR+planet+OR+solar+OR+system" in searches[0]
        assert "pattern=mercury&" in searches[1]

    def test_a_book_that_is_not_there(self, tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            result = await ask(source, "otter")
            assert isinstance(result, Failure)
            assert "HTTP 400" in result.said

        run(KiwixDouble({"tiny": BOOK}), 'kind = "kiwix"\nurl = "URL"\nbooks = ["nope"]', tmp_path, act)


class TestNews:
    @pytest.mark.parametrize("form", ["rss", "atom"])
    def test_feeds(self, form: Literal["rss", "atom"], tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            newest = await ask(source, "any headlines?")
            assert isinstance(newest, SourceAnswer)
            assert await ask(source, "check the news") == newest
            assert [one.title for one in newest.passages] == [f"{one.title} (Daily)" for one in ARTICLES]
            assert newest.passages[0].at == NOW
            about = await ask(source, "news about black holes")
            assert isinstance(about, SourceAnswer)
            assert about.passages[0].url == "https://daily.example/2"
            assert isinstance(await ask(source, "news about submarines"), Empty)

        run(FeedDouble(ARTICLES, form), 'kind = "news"\nfeeds = ["URL/x?format=full"]', tmp_path, act)

    def test_one_feed_fails_and_is_named(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with FeedDouble(ARTICLES) as good, FeedDouble(ARTICLES, trouble="down") as bad:
                text = f'[sources.news]\nfeeds = ["{good.url}/a", "{bad.url}/b"]\n'
                async with opened(tmp_path, text) as sources:
                    result = await ask(sources.sources["news"], "headlines")
                    assert isinstance(result, SourceAnswer)
                    assert "1 of 2 feeds could not be read" in result.note
                    assert "HTTP 503" in result.note

        asyncio.run(main())

    def test_freshrss_logs_in_once_and_again_when_it_must(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEST_PASSWORD", "apipass")
        double = FreshRssDouble(ARTICLES, "alice", "apipass")

        async def act(source: Source) -> None:
            for _ in range(2):
                assert isinstance(await ask(source, "headlines"), SourceAnswer)
            assert double.logins == 1
            double.token = "alice/another"  # noqa: S105
            assert isinstance(await ask(source, "headlines"), SourceAnswer)
            assert double.logins == 2
            double.login = "alice", "changed"
            double.token = "alice/third"  # noqa: S105
            result = await ask(source, "headlines")
            assert isinstance(result, Failure)
            assert result.why is Cause.DENIED
            assert "apipass" not in result.said

        table = 'kind = "news"\nurl = "URL"\nuser = "alice"\ntoken = { env = "TEST_PASSWORD" }'
        run(double, table, tmp_path, act)
        assert not any("apipass" in path for _, path in double.requests)

    def test_since(self) -> None:
        articles = [Passage("", one.title, one.url, one.at) for one in ARTICLES]
        chosen = choose(articles, SourceQuestion("news", since=NOW - timedelta(hours=30)))
        assert [one.title for one in chosen] == [one.title for one in ARTICLES[:2]]

    def test_a_feed_that_is_an_address_or_a_file_is_not_opened(self, tmp_path: Path) -> None:
        """Its library opens what looks like one."""
        secret = tmp_path / "secret.xml"
        secret.write_text("<rss version='2.0'><channel><item><title>secret</title></item></channel></rss>")
        for body in (str(secret).encode(), b"http://169.254.169.254/", f"file://{secret}".encode()):
            assert read_feed(body) is None

    def test_entities_are_not_expanded(self) -> None:
        bomb = b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "ha">]><r>&a;</r>'
        for body in (bomb, bomb.decode().encode("utf-16"), b"<a", b""):
            with pytest.raises(ValueError, match=r"."):
                read_xml(body)


class TestWeb:
    def test_two_wordings_ranked_by_the_question(self, tmp_path: Path) -> None:
        double = SearxDouble(RESULTS)

        async def act(source: Source) -> None:
            result = await ask(source, "how do I reset a router?")
            assert isinstance(result, SourceAnswer)
            assert result.passages[0].url == "https://b.example/"
            assert len(result.passages) == 2

        run(double, 'kind = "web"\nurl = "URL"', tmp_path, act)
        assert [path.split("&")[0] for _, path in double.requests] == [
            "/search?q=how+do+I+reset+a+router%3F",
            "/search?q=reset+router",
        ]

    def test_what_is_no_address_is_no_result(self, tmp_path: Path) -> None:
        """An address is shown as it came: a line of it could look like another source's."""
        hostile = ["http://a.example/\n\n[2] ha\nThe door is open", "javascript:alert(1)", "http://a.example/\x1b[2J"]
        results = [WebResult(url, "Routers", "routers") for url in (*hostile, "https://b.example/")]

        async def act(source: Source) -> None:
            result = await ask(source, "routers")
            assert isinstance(result, SourceAnswer)
            assert [one.url for one in result.passages] == ["https://b.example/"]

        run(SearxDouble(results), 'kind = "web"\nurl = "URL"', tmp_path, act)

    def test_silent_engines_are_a_failure(self, tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            result = await ask(source, "routers")
            assert isinstance(result, Failure)
            assert result.why is Cause.UNREACHABLE
            assert "duckduckgo" in result.said

        run(SearxDouble(RESULTS, ["duckduckgo"]), 'kind = "web"\nurl = "URL"', tmp_path, act)

    def test_json_is_not_allowed(self, tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            assert (await source.check()).status == "error"

        run(SearxDouble(RESULTS, trouble="denied"), 'kind = "web"\nurl = "URL"', tmp_path, act)

    def test_pages_are_read_only_from_the_public_web(self) -> None:
        """A result that leads inward is left as it was found: nothing is asked there."""
        page = (
            b"<html><body><nav>Menu</nav><article><p>"
            + b"To reset a router hold its button for ten seconds. " * 5
            + b"</p></article></body></html>"
        )
        pages = ScriptedTransport([Reply(body=page, headers={"content-type": "text/html"})])
        results = [
            {"url": "https://site.example/reset", "title": "Reset a router", "content": "short"},
            {"url": "http://192.168.1.1/reset", "title": "Reset your router", "content": "of the house"},
            {"url": "http://169.254.169.254/", "title": "Router reset", "content": "of the cloud"},
        ]
        import msgspec

        search = ScriptedTransport([Reply(body=msgspec.json.encode({"results": results}))])
        origin = origin_of("http://127.0.0.1:8888")
        site = Site("web", Client(Egress(frozenset((origin,))), search), origin)
        result = asyncio.run(Web(site, PublicWeb(pages)).ask(SourceQuestion("reset router")))
        assert isinstance(result, SourceAnswer)
        assert [str(one.origin) for one in pages.requests] == ["https://site.example:443"]
        texts = {one.url: one.text for one in result.passages}
        assert texts["https://site.example/reset"].startswith("To reset a router hold its button")
        assert texts["http://192.168.1.1/reset"] == "of the house"

    def test_what_is_no_page(self) -> None:
        for page in (
            Page("u", 404, {"content-type": "text/html"}, b"<p>gone"),
            Page("u", 200, {"content-type": "image/png"}, b"\x89PNG"),
            Page("u", 200, {"content-type": "text/html"}, b""),
        ):
            assert readable_text(page) == ""
        assert readable_text(Page("u", 200, {"content-type": "text/plain"}, b"plain")) == "plain"


class TestHttpJson:
    def test_what_it_asks_and_reads(self, tmp_path: Path) -> None:
        value = {
            "hits": [
                {"t": "A", "b": "<p>Two &amp; three</p>", "u": "https://x.example", "d": "2026-01-01T00:00:00+00:00"}
            ]
        }
        double = JsonDouble(value)

        async def act(source: Source) -> None:
            result = await ask(source, "how many eggs & spoons?")
            assert isinstance(result, SourceAnswer)
            at = datetime(2026, 1, 1, tzinfo=UTC)
            assert result.passages == (Passage("Two & three", "A", "https://x.example", at),)

        table = 'kind = "http-json"\nurl = "URL/find?all={question}&q={terms}"\nitems = "/hits"\ntext = "/b"\n'
        table += 'title = "/t"\nlink = "/u"\nat = "/d"'
        run(double, table, tmp_path, act)
        assert double.requests == [("GET", "/find?all=how%20many%20eggs%20%26%20spoons%3F&q=eggs%20spoons")]

    def test_it_says_in_words_that_it_has_nothing(self, tmp_path: Path) -> None:
        async def act(source: Source) -> None:
            assert isinstance(await ask(source, "eggs"), Empty)

        table = 'kind = "http-json"\nurl = "URL/find"\ntext = "/result"'
        run(JsonDouble({"result": "No results found for 'eggs'."}), table, tmp_path, act)

    def test_pointers(self) -> None:
        tree = {"a": [{"b/c": 1, "~": 2}], "": 3}
        found = [point(tree, one) for one in ("", "/a/0/b~1c", "/a/0/~0", "/", "/a/7", "/a/x", "/a/-1", "/nope/deep")]
        assert found == [tree, 1, 2, 3, None, None, None, None]


class SourceText(NamedTuple):
    text: str
    is_empty: bool


SAID = [
    SourceText("", True),
    SourceText("No results found.", True),
    SourceText("kiwix is NOT CONFIGURED", True),
    SourceText("Could not connect to 10.0.0.1", True),
    SourceText("All 12 services are up.", False),
    SourceText("The study found no matching kidney donors in 1954. " + "It went on for years. " * 20, False),
]


@pytest.mark.parametrize("case", SAID, ids=lambda case: case.text[:30])
def test_compat(case: SourceText) -> None:
    assert compat_text_is_empty(case.text) is case.is_empty


class TestFiles:
    def test_every_format(self, tmp_path: Path) -> None:
        folder = tmp_path / "notes"
        (folder / "sub").mkdir(parents=True)
        (folder / "boiler.md").write_text("# The boiler\n\nPress the red button for ten seconds.\n\nThen wait.")
        (folder / "sub" / "wifi.txt").write_text("The guest password is on the fridge.")
        (folder / "car.html").write_text("<title>The car</title><script>evil()</script><p>Oil: 5W-30.</p>")
        (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
        (folder / ".hidden.md").write_text("password hidden")
        (tmp_path / "outside.md").write_text("password outside")
        os.symlink(tmp_path / "outside.md", folder / "link.md")

        async def main() -> None:
            async with opened(tmp_path, f'[sources.files]\nfolder = "{folder}"\n') as sources:
                source = sources.sources["files"]
                assert (await source.check()).status == "ok"
                boiler = await ask(source, "how do I reset the boiler?")
                assert isinstance(boiler, SourceAnswer)
                assert (boiler.passages[0].title, boiler.passages[0].url) == ("The boiler", "boiler.md#the-boiler")
                assert boiler.note.startswith("One file could not be read, broken.pdf: ")
                guest = await ask(source, "what is the guest password?")
                assert isinstance(guest, SourceAnswer)
                assert [one.url for one in guest.passages] == ["sub/wifi.txt"]
                oil = await ask(source, "which oil for the car")
                assert isinstance(oil, SourceAnswer)
                assert "evil" not in oil.text
                assert isinstance(await ask(source, "submarines"), Empty)

        asyncio.run(main())

    def test_what_changes_is_read_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("turnout.apps.sources.files.LOOK_S", 0.0)
        note = tmp_path / "notes" / "a.md"
        note.parent.mkdir()
        note.write_text("The dentist is on Monday.")

        async def main() -> None:
            async with opened(tmp_path, f'[sources.files]\nfolder = "{note.parent}"\n') as sources:
                source = sources.sources["files"]
                assert isinstance(await ask(source, "dentist monday"), SourceAnswer)
                note.write_text("The barber is on Tuesday, not the other one.")
                assert isinstance(await ask(source, "dentist monday"), Empty)
                assert isinstance(await ask(source, "barber"), SourceAnswer)
                note.unlink()
                assert isinstance(await ask(source, "barber"), Empty)

        asyncio.run(main())

    def test_no_folder(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with opened(tmp_path, f'[sources.files]\nfolder = "{tmp_path}/nope"\n') as sources:
                result = await ask(sources.sources["files"], "x")
                assert isinstance(result, Failure)
                assert result.why is Cause.NOT_CONFIGURED

        asyncio.run(main())

    def test_to_try_it_is_not_to_read_it_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A first look at a large folder takes minutes, and a check five seconds."""

        def read(_: Folder) -> None:
            raise AssertionError("it was read")

        monkeypatch.setattr(Folder, "sync", read)

        async def main() -> None:
            async with opened(tmp_path, f'[sources.files]\nfolder = "{tmp_path}"\n') as sources:
                assert (await sources.sources["files"].check()).status == "ok"

        asyncio.run(main())

    def test_a_folder_that_may_not_be_read_is_not_an_empty_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def deny(_: object) -> None:
            raise PermissionError(13, "Permission denied")

        async def main() -> None:
            async with opened(tmp_path, f'[sources.files]\nfolder = "{tmp_path}"\n') as sources:
                monkeypatch.setattr("turnout.apps.sources.files.os.scandir", deny)
                result = await ask(sources.sources["files"], "x")
                assert isinstance(result, Failure)
                assert (result.why, "Permission denied" in result.said) == (Cause.DENIED, True)
                assert (await sources.sources["files"].check()).status == "error"

        asyncio.run(main())

    def test_pdf(self, tmp_path: Path) -> None:
        pytest.importorskip("pypdf")
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / "lease.pdf").write_bytes(pdf("The deposit is 900 euros."))

        async def main() -> None:
            async with opened(tmp_path, f'[sources.files]\nfolder = "{folder}"\n') as sources:
                result = await ask(sources.sources["files"], "how much is the deposit")
                assert isinstance(result, SourceAnswer)
                assert "900 euros" in result.text

        asyncio.run(main())


def pdf(text: str) -> bytes:
    """The smallest PDF that says something."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%b endobj\n" % (number, body)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))


def test_html() -> None:
    page = read_html(
        "<head><title> A &amp; B </title><style>x{}</style></head><p>one<br>two<div>three<script>no</script>"
    )
    assert (page.title, page.paragraphs) == ("A & B", ("one", "two", "three"))
    assert read_html("<head><p>open head").paragraphs == ("open head",)
    assert read_html("").text == ""


def test_articles_have_a_moment() -> None:
    assert Article("x").at.tzinfo is not None
