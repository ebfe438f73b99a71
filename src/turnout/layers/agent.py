"""`agent.v1`: an agent decides, a model with tools. The application that has the tools supplies the agent; without the
application the layer is absent."""

from __future__ import annotations

from msgspec import Struct

from turnout.core.layer import MissingLayer
from turnout.core.registry import kind


class AgentConfig(Struct, frozen=True, forbid_unknown_fields=True):
    slot: str = "classifier"
    """The model slot to ask."""


@kind("agent.v1", cost="network", who="A", by_app=True)
def agent(config: AgentConfig) -> MissingLayer:
    return MissingLayer("an agent decides where its tools are: in the application, not from the profile alone")
