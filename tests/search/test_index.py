"""The index, the same in both databases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from embedding import WordEmbeds
from turnout.core.errors import StoreError
from turnout.search import Changes, Filters, Index, IndexDocument
from turnout.search.index import PASSAGE

DOCUMENTS = (
    IndexDocument("boiler", "The boiler was serviced in May.", title="House", attributes={"tag": ["home", "heat"]}),
    IndexDocument("cats", "Cats sleep for most of the day.", attributes={"tag": "animals"}),
    IndexDocument("heizung", "Die Heizung wurde im Mai von einem Techniker gewartet."),
    IndexDocument("wasser", "Der Wasserstoffantrieb ist für Busse und für die Bahn gedacht."),
    IndexDocument("gato", "El gato duerme en la ventana de la cocina, ¿no?"),
    IndexDocument("tokyo", "东京是日本的首都，人口众多。"),
    IndexDocument("kyoto", "京都は日本の古い都でした。"),
)


class Case(NamedTuple):
    id: str
    query: str
    first: str
    lang: str = ""


CASES = (
    Case("a word", "boiler", "boiler"),
    Case("a question", "when was the boiler serviced?", "boiler"),
    Case("another inflection", "do cats like sleeping", "cats"),
    Case("by the title", "house", "boiler"),
    Case("German, inflected", "Wer wartet die Heizungen?", "heizung"),
    Case("Spanish, without accents", "donde duermen los gatos", "gato"),
    Case("Chinese", "日本首都", "tokyo"),
    Case("Japanese", "古い都", "kyoto"),
    Case("function words alone", "the", "boiler"),
    Case("operators are words", 'boiler" OR NEAR( -cats* AND', "boiler"),
    Case("the language is given", "Techniker", "heizung", "de"),
    Case("invisible characters", "boi\u200bler", "boiler"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_is_found(case: Case, filled: Index) -> None:
    hits = filled.search(case.query, lang=case.lang).hits
    assert hits
    assert hits[0].id == case.first
    assert hits[0].votes[0].by == "text"
    assert 0 < hits[0].coverage <= 1


@pytest.fixture
def filled(index: Index) -> Index:
    assert index.upsert(DOCUMENTS) == Changes(added=len(DOCUMENTS))
    return index


@pytest.mark.parametrize("query", ["", " ", "?!", "qwertyuiop", "\ud800", "\0"])
def test_nothing_is_a_result(query: str, filled: Index) -> None:
    assert filled.search(query).hits == ()


def test_an_empty_index_has_nothing(index: Index) -> None:
    assert index.search("boiler").hits == ()
    assert index.count() == 0


class FilteredCase(NamedTuple):
    id: str
    filters: Filters
    found: set[str]


def on(day: int) -> datetime:
    return datetime(2026, 5, day, tzinfo=UTC)


FILTERED = (
    FilteredCase("none", Filters(), {"a", "b", "c"}),
    FilteredCase("a value", Filters({"kind": "card"}), {"a", "b"}),
    FilteredCase("any of the values", Filters({"kind": ["card", "page"]}), {"a", "b", "c"}),
    FilteredCase("one of its values", Filters({"tag": "x"}), {"a", "c"}),
    FilteredCase("all of the names", Filters({"kind": "card", "tag": "x"}), {"a"}),
    FilteredCase("a value nobody has", Filters({"kind": "'); drop table documents"}), set()),
    FilteredCase("a language", Filters(langs=["de"]), {"c"}),
    FilteredCase("since", Filters(since=on(2)), {"b", "c"}),
    FilteredCase("until", Filters(until=on(2)), {"a"}),
)


@pytest.mark.parametrize("vectors", [False, True], ids=["words", "vectors"])
@pytest.mark.parametrize("case", FILTERED, ids=lambda case: case.id)
def test_filters(case: FilteredCase, vectors: bool, opened: Callable[..., Index]) -> None:
    index = opened(embedder=WordEmbeds() if vectors else None, knows=("en", "de"))
    index.upsert(
        (
            IndexDocument(
                "a", "solar power", lang="en", attributes={"kind": "card", "tag": ["x", "y"]}, updated_at=on(1)
            ),
            IndexDocument("b", "solar power", lang="en", attributes={"kind": "card"}, updated_at=on(2)),
            IndexDocument("c", "solar power", lang="de", attributes={"kind": "page", "tag": "x"}, updated_at=on(3)),
        )
    )
    assert {hit.id for hit in index.search("solar power", lang="en", filters=case.filters).hits} == case.found


def test_only_what_changed_is_written(filled: Index) -> None:
    assert filled.upsert(DOCUMENTS) == Changes(unchanged=len(DOCUMENTS))
    newer = IndexDocument("boiler", "The pump was replaced.", title="House")
    assert filled.upsert([newer, IndexDocument("new", "Something else.")]) == Changes(added=1, changed=1)
    assert filled.search("boiler").hits == ()
    assert filled.search("pump").hits[0].id == "boiler"
    assert filled.search("pump", filters=Filters({"tag": "home"})).hits == ()
    assert filled.count() == len(DOCUMENTS) + 1


def test_a_touched_document_has_its_new_time(index: Index) -> None:
    index.upsert([IndexDocument("a", "solar power", updated_at=on(1))])
    assert index.upsert([IndexDocument("a", "solar power", updated_at=on(2))]) == Changes(unchanged=1)
    assert index.search("solar").hits[0].updated_at == on(2)


def test_what_is_deleted_is_not_found(filled: Index) -> None:
    assert filled.delete(["boiler", "nobody"]) == 1
    assert filled.search("boiler").hits == ()
    assert "boiler" not in filled.ids()


def test_a_long_document_is_cited_to_the_character(index: Index) -> None:
    text = "".join(f"Sentence {n} speaks of nothing much at all.\n\n" for n in range(200))
    text += "The treasure lies under the old oak. " + "Nothing follows. " * 100
    index.upsert([IndexDocument("long", text), IndexDocument("short", "An oak is a tree.")])
    hit = index.search("where is the treasure?").hits[0]
    assert hit.id == "long"
    assert len(hit.text) <= PASSAGE
    assert text[hit.start : hit.start + len(hit.text)] == hit.text
    assert "treasure" in hit.text


def test_a_long_document_does_not_crowd_out_others(index: Index) -> None:
    index.upsert([IndexDocument("long", ("Oak trees grow slowly. " * 50 + "\n\n") * 80)])
    index.upsert([IndexDocument(f"note {n}", f"An oak in garden {n}.") for n in range(5)])
    assert len(index.search("oak", limit=6).hits) == 6


def test_a_hostile_question_is_bounded(filled: Index) -> None:
    for unit in ("boiler ", "日本", "é\u0301 ", "a" * 50 + " ", '" OR ', "\u0301"):
        began = time.process_time()
        filled.search(unit * (1_000_000 // len(unit)))
        assert time.process_time() - began < 1.0
    distinct = " ".join(f"word{n}" for n in range(150_000))
    assert len(filled.search(distinct).words) <= 32


def test_text_that_no_database_takes(index: Index) -> None:
    index.upsert([IndexDocument("a", "solar\0 \ud800 power", title="\0")])
    assert index.search("power").hits[0].start == 0


# --- vectors


class English(WordEmbeds):
    """Thinks that a pet is a cat, in English; in other languages it is wrong."""

    def embed(self, texts: Sequence[str], /) -> Any:
        return super().embed([text.lower().replace("pet", "cats") for text in texts])


def test_vectors_find_what_words_do_not(opened: Callable[..., Index]) -> None:
    index = opened(embedder=English())
    index.upsert(DOCUMENTS)
    found = index.search("is there a pet", lang="en")
    assert found.vectors == "voted"
    assert found.hits[0].id == "cats"
    assert [vote.by for vote in found.hits[0].votes] == ["vectors"]
    both = index.search("cats", lang="en").hits[0]
    assert [vote.by for vote in both.votes] == ["text", "vectors"]


@pytest.mark.parametrize("query", [case.query for case in CASES])
def test_an_embedder_has_no_vote_in_other_languages(query: str, opened: Callable[..., Index]) -> None:
    plain, vectors = opened("plain"), opened("vectors", embedder=English(), knows=("en",))
    for index in (plain, vectors):
        index.upsert(DOCUMENTS)
    for lang in ("de", "es", "zh"):
        found = vectors.search(query, lang=lang)
        assert found.vectors == "other language"
        assert found.hits == plain.search(query, lang=lang).hits


def test_vectors_follow_the_documents(opened: Callable[..., Index]) -> None:
    index = opened()
    index.upsert(DOCUMENTS[:2])
    later = opened(embedder=English())
    assert later.search("pet", lang="en").vectors == "no vectors"
    assert later.fill_vectors() == 2
    assert later.fill_vectors() == 0
    assert later.search("pet", lang="en").hits[0].id == "cats"
    later.upsert([IndexDocument("dogs", "A pet shop.", lang="en")])
    assert {hit.id for hit in later.search("pet", lang="en").hits[:2]} == {"cats", "dogs"}
    later.delete(["cats"])
    assert "cats" not in {hit.id for hit in later.search("pet", lang="en").hits}


def test_an_index_has_windows_of_its_size(opened: Callable[..., Index]) -> None:
    """Of each its own vector; those of another size are made anew and not compared with."""
    text = "A pet sleeps by the fire. " + "Nothing else happens here. " * 8
    narrow = opened(embedder=English(), window=60)
    narrow.upsert([IndexDocument("fire", text, lang="en")])
    near = dict(narrow.nearest("pet"))["fire"]
    wide = opened(embedder=English(), window=900)
    assert wide.nearest("pet") == []
    assert wide.search("pet", lang="en").vectors == "no vectors"
    assert wide.fill_vectors() == 1
    assert dict(wide.nearest("pet"))["fire"] < near
    with pytest.raises(ValueError, match="window=0: a vector is of at least 1"):
        opened(embedder=English(), window=0)


def test_what_a_question_is_made_with_finds_nothing(index: Index) -> None:
    """Unless there is nothing else in it."""
    index.upsert(
        [
            IndexDocument("fair", "Die Messe fand statt, und statt Eintritt gab es Spenden.", lang="de"),
            IndexDocument("demo", "Marconi zeigte den Funk 1897 auf einer Wiese bei Bath.", lang="de"),
        ]
    )
    assert index.search("Wann fand die Vorführung von Marconi statt?", lang="de").hits[0].id == "demo"
    assert index.search("fand statt", lang="de").hits[0].id == "fair"


# --- many at once, and ends


def test_two_indexes_know_nothing_of_each_other(url: str, opened: Callable[..., Index]) -> None:
    if url.startswith("sqlite"):
        pytest.skip("a file holds one index")
    one, other = opened("one"), opened("other")
    one.upsert(DOCUMENTS)
    assert other.count() == 0
    assert other.search("boiler").hits == ()


def test_searching_goes_on_while_one_writes(opened: Callable[..., Index]) -> None:
    reader, writer = opened(), opened()
    writer.upsert(DOCUMENTS)
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                assert reader.search("boiler").hits[0].id == "boiler"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(20):
        writer.upsert([IndexDocument(f"more {n}", f"Something about number {n}.")])
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_batch_that_fails_leaves_nothing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.upsert(DOCUMENTS[:1])
    put = index._put

    def fail(changes: Any, document: IndexDocument) -> bool | None:
        if document.id == "b":
            raise StoreError("full")
        return put(changes, document)

    monkeypatch.setattr(index, "_put", fail)
    with pytest.raises(StoreError):
        index.upsert([IndexDocument("a", "solar"), IndexDocument("b", "power")])
    assert index.search("solar").hits == ()
    assert index.count() == 1


def test_an_index_of_another_analysis_is_read_anew(
    opened: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().upsert(DOCUMENTS)
    monkeypatch.setattr("turnout.search.index.version", lambda: "2")
    monkeypatch.setattr("turnout.search.index.stem", lambda word, lang: f"x{word}")
    opened()
    monkeypatch.undo()
    assert opened().search("boilers").hits[0].id == "boiler"


def test_a_name_that_no_schema_has(url: str, opened: Callable[..., Index]) -> None:
    if url.startswith("sqlite"):
        pytest.skip("a file has its own name")
    with pytest.raises(ValueError, match="is not a name of an index"):
        opened('x"; drop schema public')
