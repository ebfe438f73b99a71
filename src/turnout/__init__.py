"""Turnout decides what happens next with every question that reaches an LLM application, and says why.

>>> import turnout
>>> decision = turnout.load("study").route_sync("Define entropy")
>>> decision.route, decision.policy.max_sentences
('standalone_definition', 2)
"""

from __future__ import annotations

import os as _os
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from typing import Literal as _Literal

from .config.load import shipped as profile_names
from .config.reload import LiveRouter, Reloaded
from .core.contract import Violation
from .core.decision import Decision, Step
from .core.embed import Embeds as _Embeds
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
from .core.model import Asks as _Asks
from .core.policy import Policy
from .core.profile import Profile
from .core.query import Query, Reading, Turn
from .core.registry import Supplies, kind
from .core.router import Counterfactual, Router
from .core.verdict import Gate, Reason, Verdict

__version__ = "0.1.0"


def load(
    profile: str | _os.PathLike[str],
    *,
    config: str | _os.PathLike[str] | None = None,
    models: _Asks | None = None,
    embedder: _Embeds | None = None,
) -> Router:
    """The router of a profile: a shipped name (`study`) or the path of a TOML file.

    `config` is the settings file to use instead of the user's own; an empty string uses none. `models` asks language
    models; without it, layers that need one pass. `embedder` turns texts into vectors; by default it is the one that
    the settings name or that is installed. Warns if a trained model that should serve cannot run.
    """
    from .runtime import load as runtime

    return Router(runtime.load_profile(profile, config=config, models=models, embedder=embedder))


def load_profile(
    profile: str | _os.PathLike[str],
    *,
    config: str | _os.PathLike[str] | None = None,
    models: _Asks | None = None,
    embedder: _Embeds | None = None,
) -> Profile:
    """The profile alone; arguments as for `load`."""
    from .runtime import load as runtime

    return runtime.load_profile(profile, config=config, models=models, embedder=embedder)


def _from_examples(
    examples: _Mapping[str, _Sequence[str]],
    *,
    fallback: str | None = None,
    policies: _Mapping[str, Policy | _Mapping[str, object]] | None = None,
    embedder: _Embeds | _Literal["auto", "none"] = "auto",
    gate: float | None = None,
    name: str = "examples",
    seed: int = 0,
) -> Router:
    """A router trained in memory on example texts of each route: `{"refund": ["…", "…"], "parcel": ["…"]}`.

    A question it is less sure about than `gate` goes to `fallback`: one of the routes or a new one, by default `other`.
    Texts under `oos` belong to none of the routes. `policies` says what each route means. `embedder` compares meanings
    as well as words: by default the one that is installed; `none` uses words alone. Needs `turnout[learn]`.
    """
    from .runtime import load as runtime

    return runtime.learn_router(
        examples, embedder, fallback=fallback, policies=policies, gate=gate, name=name, seed=seed
    )


Router.from_examples = staticmethod(_from_examples)

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
