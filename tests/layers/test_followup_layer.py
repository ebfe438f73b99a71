"""`followup.v1`: a question that leans on what was said before gets a route that sends it along."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from turnout import Query, load
from turnout.config.load import load_profile
from turnout.core.errors import ConfigError
from turnout.core.query import Turn

BEFORE = (Turn("user", "What is Noether's theorem?"), Turn("assistant", "Every symmetry has a conserved quantity."))
STANDALONE, CONTEXTUAL = "standalone_definition", "general_contextual"


class Case(NamedTuple):
    id: str
    text: str
    route: str
    turns: tuple[Turn, ...] = BEFORE
    declared: str | None = None


CASES = [
    Case("pronoun", "Who discovered it?", CONTEXTUAL),
    Case("no-turns", "Define homeostasis", STANDALONE, ()),
    Case("names-its-subject", "Define photosynthesis in one sentence", STANDALONE),
    Case("declared", "Who discovered it?", STANDALONE, declared="standalone"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_follow_up_is_never_alone(case: Case) -> None:
    asked = Query("" if case.turns else case.text, (*case.turns, Turn("user", case.text)) if case.turns else ())
    asked = Query(asked.text, asked.turns, declared=case.declared)
    decision = load("study", config="").route_sync(asked)
    assert decision.route == case.route
    is_changed = any(reason.code == "followup.context" for reason in decision.remarks)
    assert is_changed == (case.route == CONTEXTUAL)


def test_a_route_that_does_not_exist_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "study-seed"\nname = "mine"\n[[adjust]]\nkind = "followup.v1"\n'
        'instead_of = "standalone_definition"\nroute = "general_context"\n'
    )
    with pytest.raises(ConfigError, match="'general_context' is not a route, did you mean 'general_contextual'"):
        load_profile(file, config="")
