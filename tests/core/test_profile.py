"""What a caller's ceiling allows is worked out in one place."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from turnout.core.errors import QueryError, UnknownRoute
from turnout.testing import make_profile

ROUTES = ("low", "middle", "high")
ORDERED = make_profile(routes=ROUTES, ordered=True)
PLAIN = make_profile(routes=ROUTES)


def test_routes_up_to_a_ceiling() -> None:
    assert [ORDERED.routes_up_to(route) for route in ROUTES] == [ROUTES[:1], ROUTES[:2], ROUTES]
    with pytest.raises(UnknownRoute, match="ceiling 'highest'"):
        ORDERED.routes_up_to("highest")
    with pytest.raises(QueryError, match="have no order"):
        PLAIN.routes_up_to("low")


class Lower(NamedTuple):
    asked: str | None
    granted: str | None
    binds: str | None


@pytest.mark.parametrize(
    "case",
    [
        Lower(None, None, None),
        Lower("middle", None, "middle"),
        Lower(None, "middle", "middle"),
        Lower("high", "middle", "middle"),
        Lower("low", "middle", "low"),
        Lower("middle", "middle", "middle"),
        # What the caller asks for is refused where it is used, whatever its key may have.
        Lower("unknown", "middle", "unknown"),
        # A key's ceiling in another profile's words binds nothing here.
        Lower("high", "unknown", "high"),
    ],
    ids=str,
)
def test_the_lower_ceiling_binds(case: Lower) -> None:
    assert ORDERED.lower_ceiling(case.asked, case.granted) == case.binds
    assert PLAIN.lower_ceiling(case.asked, case.granted) == case.asked
