"""The tables of `turnout.toml` that are no profile's: read alike, every mistake at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import pytest
from msgspec import Meta, Struct

from turnout.config.server import ServerSettings, server_settings
from turnout.config.settings import read_settings
from turnout.core.errors import ConfigError


class Lamp(Struct, frozen=True, forbid_unknown_fields=True):
    colour: str = "white"
    watts: Annotated[int, Meta(ge=1)] = 5


class Case(NamedTuple):
    id: str
    text: str
    found: tuple[str, ...]


MISTAKES = [
    Case("a-key", "[lamp]\ncolor = 'red'\n", ("turnout.toml:2 lamp.color: unknown key, did you mean 'colour'?",)),
    Case("a-value", "[lamp]\nwatts = 0\n", ("turnout.toml:2 lamp.watts: 0 is below 1, the least it may be",)),
    Case("no-table", "lamp = 3\n", ("turnout.toml:1 lamp: must be a table, found 3",)),
    Case("its-name", "[lanp]\nwatts = 3\n", ("turnout.toml:1 lanp: no such table, did you mean 'lamp'?",)),
    Case(
        "all-at-once",
        "[lamps]\ncolour = 'red'\n[lamp]\nwatts = 0\ncolour = 7\n",
        (
            "turnout.toml:1 lamps: no such table, did you mean 'lamp'?",
            "turnout.toml:4 lamp.watts: 0 is below 1, the least it may be",
            "turnout.toml:5 lamp.colour: must be a string, found 7",
        ),
    ),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_every_mistake_has_its_line(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(case.text)
    with pytest.raises(ConfigError) as refused:
        read_settings("lamp", Lamp, file)
    assert tuple(map(str, refused.value.problems)) == case.found


@pytest.mark.parametrize("text", ["", "[lanp]\nsize = 3\n", "[tiers]\nwatts = 3\n"])
def test_without_a_table_of_its_name_everything_is_as_by_default(tmp_path: Path, text: str) -> None:
    """A table that is nearly called so and speaks of other things may be a profile's."""
    file = tmp_path / "turnout.toml"
    file.write_text(text)
    assert read_settings("lamp", Lamp, file) == Lamp() == read_settings("lamp", Lamp, "")


def test_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text("[lamp]\nwatts = 7\n[tiers]\n")
    assert read_settings("lamp", Lamp, file) == Lamp(watts=7)


def test_more_is_checked_on_request(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text("[lamp]\nwatts = 7\n")
    with pytest.raises(ConfigError, match=r"turnout\.toml:2 lamp\.watts: too bright: 7"):
        read_settings("lamp", Lamp, file, lambda table: [(("lamp", "watts"), f"too bright: {table['watts']}")])


def test_a_misspelt_table_of_the_server_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text("[sever]\nport = 80\n")
    with pytest.raises(ConfigError, match=r"sever: no such table, did you mean 'server'\?"):
        server_settings(file)
    assert server_settings("") == ServerSettings()
