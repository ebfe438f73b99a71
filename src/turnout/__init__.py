"""Turnout decides what happens next with every question that reaches an LLM application, and says why.

>>> import turnout
>>> decision = turnout.load("study").route_sync("Define entropy")
>>> decision.route, decision.policy.max_sentences
('standalone_definition', 2)
"""

from __future__ import annotations

from .config.load import load, load_profile
from .config.load import shipped as profile_names
from .config.reload import LiveRouter, Reloaded
from .core.contract import Violation
from .core.decision import Decision, Step
from .core.errors import (
    ConfigError,
    Problem,
    QueryError,
    QueryTooLarge,
    ReplayMismatch,
    TurnoutError,
    UnknownProfile,
    UnknownRoute,
)
from .core.layer import Layer
from .core.policy import Policy
from .core.profile import Profile
from .core.query import Query, Reading, Turn
from .core.registry import Supplies, kind
from .core.router import Counterfactual, Router
from .core.verdict import Gate, Reason, Verdict

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "Counterfactual",
    "Decision",
    "Gate",
    "Layer",
    "LiveRouter",
    "Policy",
    "Problem",
    "Profile",
    "Query",
    "QueryError",
    "QueryTooLarge",
    "Reading",
    "Reason",
    "Reloaded",
    "ReplayMismatch",
    "Router",
    "Step",
    "Supplies",
    "Turn",
    "TurnoutError",
    "UnknownProfile",
    "UnknownRoute",
    "Verdict",
    "Violation",
    "kind",
    "load",
    "load_profile",
    "profile_names",
]
