"""What a router refuses before any layer is asked, and that the refusal names the value, the limit and what to do."""

from typing import Any, NamedTuple

import pytest

from turnout import Query, QueryError, QueryTooLarge, Turn, TurnoutError, UnknownRoute, load
from turnout.core.query import MAX_CHARACTERS
from turnout.layers.declared import DeclaredConfig, DeclaredLayer
from turnout.testing import PassLayer, ScriptedLayer, make_reading, make_router, place

ROUTES = ("cheap", "middle", "dear")
BIGGEST = "x" * MAX_CHARACTERS


class Size(NamedTuple):
    id: str
    query: Query
    fits: bool


SIZES = [
    Size("at the limit", Query(BIGGEST), True),
    Size("one more", Query(BIGGEST + "x"), False),
    Size("turns at the limit", Query(turns=(Turn("user", BIGGEST),)), True),
    Size("turns, one more", Query(turns=(Turn("user", BIGGEST[1:]), Turn("assistant", "ab"))), False),
    Size("text and turns together", Query("x", (Turn("user", BIGGEST),)), False),
    Size("wide characters count once", Query("🙂" * (MAX_CHARACTERS // 4)), True),
]


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case.id)
def test_the_longest_text_a_decision_is_promised_for(case: Size) -> None:
    router = make_router([PassLayer()])
    if case.fits:
        assert router.accept(case.query) is case.query
    else:
        with pytest.raises(QueryTooLarge) as caught:
            router.accept(case.query)
        for part in (f"{MAX_CHARACTERS + 1:,}", f"{MAX_CHARACTERS:,}", "shorten it, or send parts"):
            assert part in str(caught.value)


def test_too_large_is_refused_by_both_drivers_before_any_layer() -> None:
    layer = ScriptedLayer([None])
    router = make_router([layer])
    with pytest.raises(QueryTooLarge):
        router.route_sync(BIGGEST + "x")
    coroutine = router.route(BIGGEST + "x")
    with pytest.raises(QueryTooLarge):
        coroutine.send(None)
    assert layer.calls == []


def declared(**config: Any) -> Any:
    return place(DeclaredLayer(DeclaredConfig(**config), ROUTES), "declared", who="D")


class RefusedCase(NamedTuple):
    id: str
    query: Query
    layers: list[Any]
    error: type[QueryError]
    parts: tuple[str, ...]


REFUSED = [
    RefusedCase(
        "unknown declared",
        Query("x", declared="deer"),
        [declared()],
        UnknownRoute,
        ("declared route 'deer'", "did you mean 'dear'?", "cheap, middle, dear"),
    ),
    RefusedCase(
        "nothing near", Query("x", declared="qqq"), [declared()], UnknownRoute, ("'qqq'", "cheap, middle, dear")
    ),
    RefusedCase("empty", Query("x", declared=""), [declared()], UnknownRoute, ("declared route ''",)),
    RefusedCase(
        "unknown ceiling",
        Query("x", ceiling="Middle"),
        [PassLayer()],
        UnknownRoute,
        ("ceiling 'Middle'", "did you mean 'middle'?", "cheap, middle, dear"),
    ),
    RefusedCase(
        "nobody to declare to",
        Query("x", declared="cheap"),
        [PassLayer()],
        QueryError,
        ("'testing'", "declared.v1"),
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_query_the_profile_cannot_honour_is_refused(case: RefusedCase) -> None:
    router = make_router(case.layers, ROUTES, ordered=True)
    with pytest.raises(case.error) as caught:
        router.route_sync(case.query)
    assert isinstance(caught.value, TurnoutError)
    for part in case.parts:
        assert part in str(caught.value)


def test_a_declared_route_nobody_takes_is_named_in_the_refusal() -> None:
    with pytest.raises(QueryError, match="'cheap'"):
        make_router([PassLayer()], ROUTES).route_sync(Query("x", declared="cheap"))


def test_a_ceiling_needs_ordered_routes() -> None:
    """A limit on spending that is silently ignored is worse than a refusal."""
    with pytest.raises(QueryError, match="ordered"):
        make_router([PassLayer()], ROUTES).route_sync(Query("x", ceiling="cheap"))


def test_a_profile_may_classify_instead_of_refusing() -> None:
    layers = [declared(unknown="classify"), place(PassLayer())]
    assert make_router(layers, ROUTES).route_sync(Query("x", declared="gpt-9")).by == "fallback"


def test_a_string_is_a_query() -> None:
    assert make_router().route_sync("x") == make_router().route_sync(Query("x"))


def test_a_query_is_kept_as_given() -> None:
    query = Query("  Define\u200b “x” ", session="s", tenant="t", attachments=("a.png",))
    assert load("study", config="").route_sync(query).query is query


def test_queries_are_values() -> None:
    assert Query("x", (Turn("user", "y"),)) == Query("x", (Turn("user", "y"),))
    assert len({Query("x"), Query("x"), Query("y")}) == 2
    with pytest.raises(AttributeError):
        Query("x").text = "y"  # type: ignore[misc]


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\x00\x01", "\u3164"], ids=ascii)
def test_blank_means_nothing_to_read(text: str) -> None:
    assert make_reading(text).blank


@pytest.mark.parametrize("text", ["a", "?", "。", "\U0001f642", "\ud800"], ids=ascii)
def test_anything_visible_is_not_blank(text: str) -> None:
    assert not make_reading(text).blank
