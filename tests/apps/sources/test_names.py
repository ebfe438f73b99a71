"""Names of the home and of services: when they decide, and when they are said by accident."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from turnout import Router, load_profile
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.choose import choosing
from turnout.apps.sources.home import Home, Thing, names_of
from turnout.testing.scripted_source import ScriptedSource

HOME = ["Grandma's Lamp", "Joseph", "Gas", "Back Door", "Solar production", "Phone", "Outside Temperature"]


class Case(NamedTuple):
    text: str
    by: str


CASES = [
    Case("is grandma's lamp on", "names"),
    Case("what is the amount of energy from solar production?", "names"),
    Case("where is Joseph", "names"),
    Case("is the back door open?", "names"),
    Case("joseph?", "names"),
    Case("is the phone charging", "names"),
    Case("how much battery does the phone have left", "names"),
    Case("turn on the phone", "names"),
    Case("what is the outside temperature", "names"),
    Case("i can't find my phone", ""),
    Case("please disconnect from my phone", ""),
    Case("my name is joseph", ""),
    Case("i am joseph", ""),
    Case("who was Joseph Haydn's teacher", ""),
    Case("how does a back door in a cipher work", ""),
    Case("which gas makes up most of the air", ""),
]


@cache
def router() -> Router:
    sources = {"ha": ScriptedSource("ha", ["On."], words=HOME), "kiwix": ScriptedSource("kiwix", ["."])}
    return choosing(Router(load_profile("sources", config="")), sources, Cache("choice", 1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_a_name_decides_where_it_is_no_accident(case: Case) -> None:
    decision = router().route_sync(case.text)
    assert (decision.by == "names") == bool(case.by)
    assert ("ha" in decision.routes) == bool(case.by)


def test_places_are_not_the_homes_own() -> None:
    things = (Thing("weather.london", ("London",), "rainy"), Thing("light.hall", ("Hall", "Entrance"), "on"))
    assert names_of(Home(things)) == ("Hall", "Entrance")
