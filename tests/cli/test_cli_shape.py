"""Bars, gauges and rulers at their limits."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from turnout.cli.draw.screen import Glyphs
from turnout.cli.draw.shape import bar, gauge, ruler, signed_bar

G = Glyphs()


class Case(NamedTuple):
    id: str
    share: float
    text: str


BARS = [
    Case("nothing", 0.0, ""),
    Case("half-a-cell", 0.125, "▌"),
    Case("half", 0.5, "██"),
    Case("all", 1.0, "████"),
    Case("more-than-all", 7.0, "████"),
    Case("less-than-nothing", -1.0, ""),
]


@pytest.mark.parametrize("case", BARS, ids=lambda case: case.id)
def test_bar(case: Case) -> None:
    assert bar(case.share, 4, G, "").plain == case.text


SIGNED = [
    Case("below", -1.0, "████│"),
    Case("half-below", -0.375, "  ▐█│"),
    Case("above", 0.5, "    │██"),
    Case("a-trace-is-seen", 0.0001, "    │▌"),
    Case("too-much", 9.0, "    │████"),
]


@pytest.mark.parametrize("case", SIGNED, ids=lambda case: case.id)
def test_signed_bar(case: Case) -> None:
    assert signed_bar(case.share, 4, 4, G, ("", "")).plain == case.text


class Gauge(NamedTuple):
    id: str
    found: float
    needed: float
    text: str


GAUGES = [
    Gauge("short", 0.5, 0.8, "━━━━━╌╌╌┃╌"),
    Gauge("enough", 0.9, 0.5, "━━━━━┃━━━╌"),
    Gauge("nothing-needed", 0.3, 0.0, "┃━━╌╌╌╌╌╌╌"),
    Gauge("everything-needed", 1.0, 1.0, "━━━━━━━━━┃"),
    Gauge("beyond", 3.0, 0.5, "━━━━━┃━━━━"),
]


@pytest.mark.parametrize("case", GAUGES, ids=lambda case: case.id)
def test_gauge(case: Gauge) -> None:
    assert gauge(case.found, case.needed, 10, G, "").plain == case.text


@given(
    value=st.floats(-5, 5),
    edges=st.lists(st.floats(-1, 1).map(lambda x: round(x, 2)), min_size=1, max_size=5, unique=True).map(sorted),
    width=st.integers(30, 90),
)
def test_ruler_puts_the_value_into_its_band(value: float, edges: list[float], width: int) -> None:
    names = [f"R{number}" for number in range(len(edges) + 1)]
    above, line, below = (text.plain for text in ruler(value, edges, names, "R0", width=width, glyphs=G, style=""))
    assert cell_len(line) == width
    assert cell_len(above.rstrip()) <= width
    places = [number for number, sign in enumerate(line) if sign == "┼"]
    assert len(places) == len(edges)
    assert sum(line.index("●") > place for place in places) == sum(value >= edge for edge in edges)
    assert cell_len(below) <= width
    assert f"{edges[0]:.2f}" in below


def test_ruler_shortens_names_that_do_not_fit() -> None:
    above = ruler(
        0.5, [0.0, 0.01, 1.0], ["first", "squeezed", "third", "fourth"], "third", width=40, glyphs=G, style=""
    )
    assert "third" in above[0].plain
    assert "squeezed" not in above[0].plain
