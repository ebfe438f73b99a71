"""A decision is found by as much of its id as is its own, and by nothing that only looks like an id."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from old_rows import backdate, ms
from stored_decisions import ask
from turnout.core.errors import StoreError, UnknownDecision
from turnout.store import Store

FIRST, SECOND, THIRD = "01M7F33XHH8CEE41X26YFA6X02", "01M7F33XHH8CEE41X26YFB6X02", "01M7F99AAA8CEE41X26YZZZZ77"


class Piece(NamedTuple):
    id: str
    piece: str
    found: str | None
    said: str = ""


PIECES = [
    Piece("whole", FIRST, FIRST),
    Piece("last", "last", THIRD),
    Piece("beginning", "01M7F99", THIRD),
    Piece("beginning, long", FIRST[:22], FIRST),
    Piece("ending", "FA6X02", FIRST),
    Piece("ending, lower case", "fb6x02", SECOND),
    Piece("ending, long", SECOND[2:], SECOND),
    Piece("several beginnings", "01M7F33X", None, "is the beginning of several ids: write more of it"),
    Piece("several endings", "6X02", None, "is the ending of several ids: write more of it"),
    Piece("too short", "X02", None, "no decision 'X02'"),
    Piece("middle", "CEE41", None, "no decision"),
    Piece("percent", "%6X0%", None, "no decision"),
    Piece("underscores", "__6X02", None, "no decision"),
    Piece("quote", "'6X02", None, "no decision"),
    Piece("nul", "6X0\0", None, "no decision"),
    Piece("other digits", "６Ｘ０２", None, "no decision"),
]


@pytest.mark.parametrize("case", PIECES, ids=lambda case: case.id)
def test_a_piece_of_an_id(case: Piece, store: Store) -> None:
    for ident in (FIRST, SECOND, THIRD):
        backdate(store, ask(), ms("2026-11-01"), id=ident)
    backdate(store, ask(tenant="acme"), ms("2026-11-01"), id="01M7F00000000000000000A6X1")
    if case.found is not None:
        assert store.records().get(case.piece).id == case.found
        return
    with pytest.raises(StoreError, match=case.said):
        store.records().get(case.piece)


def test_another_tenant_s_id_is_nobody_s(store: Store) -> None:
    backdate(store, ask(tenant="acme"), ms("2026-11-01"), id=FIRST)
    for piece in (FIRST, FIRST[:12], FIRST[-8:], "last"):
        with pytest.raises(UnknownDecision):
            store.records().get(piece)
        assert store.records("acme").get(piece).id == FIRST
