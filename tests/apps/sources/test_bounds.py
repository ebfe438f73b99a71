"""What a server may send: time linear in it, little of it kept, and one bad address loses no good answer."""

import asyncio
from pathlib import Path

import pytest

from apps.sources.asked import SourcesDouble, scripted
from timing import is_within
from turnout.apps.caller import Budget, Caller
from turnout.apps.sources import app as app_module
from turnout.apps.sources.app import LONGEST, SourcesApp
from turnout.apps.sources.ask import AskRequest
from turnout.apps.sources.plan import make_plan
from turnout.apps.sources.terms import fit
from turnout.core.errors import Refused
from turnout.core.query import Query
from turnout.runtime.runtime import Runtime
from turnout.text.page import plain, read_html

# A term, a text that has it inflected, and one that does not.
INFLECTED = {
    "en": ("flies", "A fly sat there.", "A flag hung there."),
    "de": ("häuser", "Das Haus ist alt.", "Die Hose ist alt."),
    "es": ("canciones", "La canción es antigua.", "La cancha es antigua."),
    "fr": ("journaux", "Le journal est là.", "La fleur est là."),
}


@pytest.mark.parametrize("lang", INFLECTED)
def test_a_word_is_found_by_the_stem_the_index_has(lang: str) -> None:
    term, has, has_not = INFLECTED[lang]
    found, missed = fit((term,), [has, has_not], lang)
    assert found > 0
    assert missed == 0


HOSTILE = {
    "tags in tags": "<a " * 40_000,
    "unclosed": "<p>" + "x <" * 40_000,
    "skipped elements": "<nav>" * 40_000 + "</p>" * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_takes_no_longer_than_it_is(name: str) -> None:
    assert is_within(0.5, lambda: read_html(HOSTILE[name]))
    assert is_within(0.05, lambda: plain(HOSTILE[name]))


def test_a_snippet_is_read() -> None:
    assert plain("one <b>two</b>\n&amp; three") == "one two & three"
    assert read_html("<p>2 < 3 and <b>4</b></p>").paragraphs == ("2 < 3 and 4",)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SourcesApp:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(app_module, "open_sources", lambda config: SourcesDouble(scripted(files="F.")))
    return SourcesApp(Runtime(profile="sources", config=""))


@pytest.mark.parametrize(("text", "status"), [("", 422), ("  ", 422), ("x" * (LONGEST + 1), 413)])
def test_what_no_source_is_asked(app: SourcesApp, text: str, status: int) -> None:
    async def scenario() -> None:
        with pytest.raises(Refused) as refused:
            await app.decide(AskRequest(Query(text)), Caller("", "", frozenset(("ask",)), Budget()))
        assert refused.value.status == status

    asyncio.run(scenario())


def test_files_are_asked_where_the_source_that_is_meant_is_not_there(app: SourcesApp) -> None:
    async def scenario() -> None:
        asked = AskRequest(Query("Is the garage door open?"))
        decision = await app.decide(asked, Caller("", "", frozenset(("ask",)), Budget()))
        [part] = app.plan(decision, asked.query).parts
        assert [(one.name, one.fallback, one.configured) for one in part.sources] == [("ha", "files", False)]
        [part] = make_plan(decision, asked.query.text, {"home"}, {"ha": "home"}).parts
        assert [(one.name, one.fallback, one.configured) for one in part.sources] == [("home", "", True)]

    asyncio.run(scenario())
