"""Cards are kept whole, found by their claims, hidden for good, and linked to those that say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from apps.claims.a_card import card, form
from turnout.apps.claims.card import WHOLE, CardSource, ClaimType
from turnout.apps.claims.exchange import starter_cards
from turnout.apps.claims.gate import GUARD, ClaimGate
from turnout.apps.claims.library import CardRefused, ClaimLibrary, open_library
from turnout.runtime.runtime import Runtime
from turnout.search import open_index
from turnout.store import open_store


@pytest.mark.parametrize("field", [name for name in WHOLE if name != "id"])
def test_a_card_with_a_missing_field_is_refused_by_name(empty: ClaimLibrary, field: str) -> None:
    blank = " " if isinstance(getattr(card(), field), str) else ()
    with pytest.raises(CardRefused, match=f"lacks {field}"):
        empty.put(card(**{field: blank}))
    assert empty.count() == 0


def test_one_that_is_refused_keeps_all_out(empty: ClaimLibrary) -> None:
    with pytest.raises(CardRefused):
        empty.put_all([card("a"), card("b", deep_answer="")])
    assert empty.count() == 0
    empty.put_all([card("a"), card("b", "Cats bark.", limitations=())], imported=True)
    assert [one.id for one in empty.list()] == ["a", "b"]


def test_what_is_kept_comes_back(empty: ClaimLibrary) -> None:
    kept = empty.put(card())
    assert form(kept) == form(replace(card(), created_at=kept.created_at))
    assert form(empty.get("moon-cheese") or card("none")) == form(kept)
    assert empty.get("no-such-card") is None
    changed = empty.put(replace(kept, short_answer="Certainly not."))
    assert form(empty.get("moon-cheese") or card("none")) == form(changed)
    assert empty.count() == 1


def test_found_by_its_claim_until_it_is_hidden(empty: ClaimLibrary) -> None:
    empty.put(card())
    assert [one.card.id for one in empty.search("Is the moon made of cheese?")] == ["moon-cheese"]
    assert empty.set_visible("moon-cheese", False)
    assert list(empty.search("Is the moon made of cheese?", floor=False)) == []
    assert list(empty.list()) == []
    assert [one.id for one in empty.list(hidden=True)] == ["moon-cheese"]
    assert not empty.set_visible("no-such-card", False)


def test_what_is_hidden_is_nothing_to_a_tenant(empty: ClaimLibrary) -> None:
    empty.put(card())
    assert empty.of("acme").get("moon-cheese") is not None
    empty.set_visible("moon-cheese", False)
    assert empty.of("acme").get("moon-cheese") is None
    assert list(empty.of("acme").list(hidden=True)) == []
    assert empty.get("moon-cheese") is not None
    empty.set_visible("moon-cheese", True)
    assert [one.card.id for one in empty.of("acme").search("Is the moon made of cheese?")] == ["moon-cheese"]


def test_a_deleted_card_is_gone_and_its_twin_answers(empty: ClaimLibrary) -> None:
    empty.put_all([card("first"), card("second", "the Moon is made of cheese")])
    assert (empty.delete("first"), empty.delete("first")) == (True, False)
    assert [one.card.id for one in empty.search("Is the moon made of cheese?")] == ["second"]
    assert [one.id for one in empty.list(hidden=True)] == ["second"]


def test_only_what_was_verified_here_is_called_verified(empty: ClaimLibrary) -> None:
    source = CardSource("A book", url="https://a.example", url_status="verified", quote_status="verified")
    told = card(sources=(source, replace(source, citation="Another", quote_status="failed")))
    [foreign] = empty.put_all([told], imported=True)
    said = [(one.url_status, one.quote_status) for one in foreign.sources]
    assert said == [("imported", "imported"), ("imported", "failed")]
    empty.put(told)  # as an audit made here does
    [again] = empty.put_all([replace(told, short_answer="Certainly not.")], imported=True)
    assert again.sources == told.sources


def test_a_type_stands_for_those_that_ask_alike(starter: ClaimLibrary) -> None:
    found = starter.search("the flood", claim_type=ClaimType.SCIENTIFIC)
    assert {one.card.claim_type_category for one in found} <= {ClaimType.HISTORICAL, ClaimType.SCIENTIFIC}
    assert "flood-worldwide" in [one.card.id for one in found]
    assert "genesis-flood-text-means-local" in [one.card.id for one in starter.search("the flood")]


def test_twins_are_linked_and_one_of_them_is_found(empty: ClaimLibrary) -> None:
    first = empty.put(card("first"))
    second = empty.put(card("second", "the Moon is made of cheese"))
    assert (first.twin_of, second.twin_of) == ("", "first")
    assert [one.card.id for one in empty.search("Is the moon made of cheese?")] == ["first"]
    empty.set_visible("first", False)
    assert [one.card.id for one in empty.search("Is the moon made of cheese?")] == ["second"]


def test_what_contradicts_is_no_twin(empty: ClaimLibrary) -> None:
    empty.put(card("first"))
    assert empty.put(card("denied", "The Moon is not made of cheese.")).twin_of == ""
    assert empty.put(card("ethics", claim_type_category=ClaimType.ETHICS)).twin_of == ""


def test_what_a_killed_process_left_undone_is_indexed(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "log.db"), config="") as store:
        with ClaimLibrary(store.cards, open_index(tmp_path / "one.db")) as library:
            library.put(card())
        # Another machine has the store, and not the index.
        with ClaimLibrary(store.cards, open_index(tmp_path / "two.db")) as library:
            assert list(library.search("Is the moon made of cheese?")) == []
            assert library.catch_up() == 1
            assert [one.card.id for one in library.search("Is the moon made of cheese?")] == ["moon-cheese"]
            assert library.catch_up() == 0


def test_an_empty_library_has_the_starter_cards(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "log.db"), config="") as store:
        with open_library(Runtime(store, profile="claims", config="")) as library:
            assert {one.id for one in library.list()} == {one.id for one in starter_cards()}
            library.set_visible("flood-worldwide", False)
        with open_library(Runtime(store, profile="claims", config="")) as library:
            assert library.count() == len(starter_cards())
            assert not (library.get("flood-worldwide") or card()).visible


def test_a_gate_that_is_kept_is_used(empty: ClaimLibrary) -> None:
    shipped = empty.gate()
    assert shipped.embedder == "text"
    empty.keep_gate(ClaimGate("text", 0.9, 0.99, (0.0, 1.0, 1.0, 0.0, 0.0), 0.0, guard=GUARD))
    assert empty.gate().floor == 0.9
    empty.put(card())
    assert list(empty.search("cheese on the menu in Rome")) == []


def test_with_vectors_every_candidate_has_a_cosine(by_meaning: ClaimLibrary) -> None:
    found = by_meaning.search("Did a flood cover the entire planet?", floor=False)
    assert found[0].card.id == "flood-worldwide"
    assert all(one.similarity is not None and -1 <= one.similarity <= 1 for one in found)
    assert by_meaning.gate().embedder == (by_meaning.index.embedder or pytest.fail("none")).name


def test_starter_cards_are_whole_and_nothing_in_them_is_verified() -> None:
    cards = starter_cards()
    assert len(cards) >= 60
    assert {one.claim_type_category for one in cards} == set(ClaimType)
    assert {source.url_status for one in cards for source in one.sources} == {"unverified"}
    assert {source.quote_status for one in cards for source in one.sources} == {"unverified"}
