"""The place of an agent in a profile: a model with tools that decides. Its tools are an application's, which puts the
agent in its place; a profile alone passes it by, and says so."""

from __future__ import annotations

from msgspec import Struct

from turnout.core.layer import Absent
from turnout.core.registry import kind


class AgentConfig(Struct, frozen=True, forbid_unknown_fields=True):
    slot: str = "classifier"
    """The slot that is asked."""


@kind("agent.v1", cost="network", who="A", by_app=True)
def agent(config: AgentConfig) -> Absent:
    return Absent("an agent decides where its tools are: in the application, not from the profile alone")
