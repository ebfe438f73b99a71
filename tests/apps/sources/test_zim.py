"""ZIM files without a server: written with libzim's own writer, asked as any other source."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from apps.sources.at_home import BOOK, ask, opened
from turnout.apps.sources.source import Cause, Empty, Failure, Source, SourceAnswer

writer: Any = pytest.importorskip("libzim.writer", reason="needs libzim: pip install 'turnout[zim]'")

TWIN = {"car": ("Mercury (car)", "Mercury made cars in Detroit."), "eel": ("Eel", "An eel is a long fish.")}


def write(file: Path, pages: Mapping[str, tuple[str, str]], *, indexed: bool = True) -> Path:
    """A book of these pages."""

    class WrittenPage(writer.Item):  # type: ignore[misc]
        def __init__(self, path: str, title: str, text: str) -> None:
            super().__init__()
            self.path, self.title, self.text = path, title, text

        def get_path(self) -> str:
            return self.path

        def get_title(self) -> str:
            return self.title

        def get_mimetype(self) -> str:
            return "text/html"

        def get_contentprovider(self) -> Any:
            html = f"<html><head><title>{self.title}</title></head><body><h1>{self.title}</h1><p>{self.text}</p></body>"
            return writer.StringProvider(f"{html}</html>")

        def get_hints(self) -> dict[Any, bool]:
            return {writer.Hint.FRONT_ARTICLE: True}

    with writer.Creator(file).config_indexing(indexed, "eng") as book:
        for path, (title, text) in pages.items():
            book.add_item(WrittenPage(path, title, text))
        book.set_mainpath(next(iter(pages)))
    return file


def run(folder: Path, said: str, act: Callable[[Source], Awaitable[None]]) -> None:
    async def main() -> None:
        async with opened(folder, f'[sources.wiki]\nkind = "kiwix"\n{said}\n') as sources:
            await act(sources.sources["wiki"])

    asyncio.run(main())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    write(folder / "tiny.zim", BOOK)
    write(folder / "other.zim", TWIN)
    write(folder / "bare.zim", TWIN, indexed=False)
    (folder / "torn.zim").write_bytes((folder / "tiny.zim").read_bytes()[:1000])
    (folder / "text.zim").write_text("no book")
    return folder


@pytest.fixture
def shelf(library: Path, tmp_path: Path) -> Path:
    """The books, beside the settings."""
    for file in library.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


def test_a_question_finds_its_page(shelf: Path) -> None:
    async def act(source: Source) -> None:
        assert (await source.check()).status == "ok"
        # No page has all of its terms, and this libzim knows no "or".
        result = await ask(source, "how heavy is the spring that a garage door hangs on?")
        assert isinstance(result, SourceAnswer)
        assert result.passages[0].title == "Garage door"
        assert result.passages[0].url.startswith("tiny.zim/")
        assert result.passages[0].text in result.text
        assert isinstance(await ask(source, "what is a quasiperiodic zeugma?"), Empty)

    run(shelf, 'zim = ["tiny.zim"]', act)


def test_pages_of_one_title_are_all_read(shelf: Path) -> None:
    """Chapters are often called alike: each is a page of its own, and its text decides."""
    chapters = ("The harbour freezes in winter.", "The harbour smokes eels.", "The harbour has a bridge of oak.")
    write(shelf / "chapters.zim", {f"c{at}": ("Chapter", text) for at, text in enumerate(chapters)})

    async def act(source: Source) -> None:
        for number, question in enumerate(("harbour freezes", "harbour eels", "harbour bridge")):
            result = await ask(source, question)
            assert isinstance(result, SourceAnswer)
            assert chapters[number] in result.passages[0].text

    run(shelf, 'zim = ["chapters.zim"]', act)


def test_every_book_is_searched_or_those_that_are_named(shelf: Path) -> None:
    async def both(source: Source) -> None:
        result = await ask(source, "mercury")
        assert isinstance(result, SourceAnswer)
        assert {one.url.partition("/")[0] for one in result.passages} == {"tiny.zim", "other.zim"}

    async def one(source: Source) -> None:
        result = await ask(source, "mercury")
        assert isinstance(result, SourceAnswer)
        assert {each.url.partition("/")[0] for each in result.passages} == {"other.zim"}

    run(shelf, 'zim = ["tiny.zim", "other.zim"]', both)
    run(shelf, 'zim = ["tiny.zim", "other.zim"]\nbooks = ["other"]', one)


@pytest.mark.parametrize(
    ("said", "why", "told"),
    [
        ('zim = ["gone.zim"]', Cause.NOT_CONFIGURED, "there is no file"),
        ('zim = ["text.zim"]', Cause.MALFORMED, "is it a whole ZIM file?"),
        ('zim = ["torn.zim"]', Cause.MALFORMED, "is it a whole ZIM file?"),
        ('zim = ["bare.zim"]', Cause.MALFORMED, "without a full-text index"),
        ('zim = ["tiny.zim"]\nbooks = ["nope"]', Cause.NOT_CONFIGURED, "there are tiny"),
    ],
)
def test_what_cannot_be_read(said: str, why: Cause, told: str, shelf: Path) -> None:
    async def act(source: Source) -> None:
        result = await ask(source, "mercury")
        assert isinstance(result, Failure)
        assert result.why is why
        assert told in result.said

    run(shelf, said, act)


def test_many_ask_at_once(shelf: Path) -> None:
    async def act(source: Source) -> None:
        results = await asyncio.gather(*(ask(source, "mercury planet") for _ in range(30)))
        assert len({str(one) for one in results}) == 1
        assert isinstance(results[0], SourceAnswer)

    run(shelf, 'zim = ["tiny.zim", "other.zim"]', act)


def test_without_libzim(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libzim.reader", None)

    async def act(source: Source) -> None:
        assert (await source.check()).status == "not_configured"
        result = await ask(source, "mercury")
        assert isinstance(result, Failure)
        assert "pip install 'turnout[zim]'" in result.said

    run(shelf, 'zim = ["tiny.zim"]', act)
