"""What the agents are told is in the documentation, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnout.apps.claims.agent import AGENTS, OUTPUTS, agents, schema_of
from turnout.apps.claims.audit import DATA
from turnout.models.slot import AUDITORS

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "how-a-claim-is-audited.md"


@pytest.mark.parametrize("name", AGENTS)
def test_every_prompt_is_documented(name: str) -> None:
    agent, page = agents()[name], PAGE.read_text(encoding="utf-8")
    section = page.split(f"### {name}\n")[1].split("\n### ")[0]
    assert agent.prompt.strip() in section
    for said in (agent.slot, f"{agent.temperature:g}", f"{agent.max_tokens:,}", f"{agent.timeout_s:g} s"):
        assert said in section
    assert all(f"`{field}`" in section for field in OUTPUTS[name].__struct_fields__)
    assert DATA in " ".join(page.replace("\n> ", " ").split())


@pytest.mark.parametrize("name", AGENTS)
def test_every_field_is_asked_for_and_no_other(name: str) -> None:
    schema = schema_of(name)
    assert schema["required"] == list(OUTPUTS[name].__struct_fields__)
    assert schema["additionalProperties"] is False
    assert "$ref" not in str(schema)


def test_every_agent_has_a_slot_that_main_stands_in_for() -> None:
    assert AUDITORS == AGENTS
    assert [agents()[name].slot for name in AGENTS] == [f"claims_{name}" for name in AGENTS]
