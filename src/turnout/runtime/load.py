"""Loads profiles with the models and the embedder that the settings name or that are installed.

The command line and programs that embed Turnout load profiles here. If a trained model should serve but cannot run, a
warning says why and what to do. Models and embedders are imported only when needed: most profiles do without.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from turnout.config import load as files
from turnout.config.champion import IdleModelWarning, absent_models, idle_models
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError
from turnout.core.model import Asks
from turnout.core.profile import Profile
from turnout.core.router import Router

if TYPE_CHECKING:
    from turnout.models.ask import Models

EMBEDDER_SLOT = "embedder"
EmbedderChoice = Literal["auto", "none", "minilm", "remote"]


def load_profile(
    profile: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] | None = None,
    models: Asks | None = None,
    embedder: Embeds | None = None,
    local: bool = False,
) -> Profile:
    """A profile with this embedder, else with the configured or installed one; `local` excludes embedders on servers.

    An embedder is looked for only if a trained model needs one or answers better with one. The warning about a model
    that cannot run points to the caller of the function that called this one.
    """
    loaded = files.load_profile(profile, config=config, models=models, embedder=embedder)
    wanted = bool(absent_models(loaded)) or any(place.call is not None and place.call.lacks for place in loaded.layers)
    if embedder is None and wanted and (embedder := open_embedder(config, local=local)) is not None:
        loaded = files.load_profile(profile, config=config, models=models, embedder=embedder)
    for warning in idle_models(loaded):
        warnings.warn(warning, IdleModelWarning, stacklevel=3)
    return loaded


def open_embedder(config: str | os.PathLike[str] | None, *, local: bool = False) -> Embeds | None:
    """The embedder that the settings name, if it can be used; else the installed one, if there is one."""
    from turnout.models.embed import find_embedder
    from turnout.models.slot import load_slots

    slots = None if local else load_slots(config)
    if slots is not None and slots.find(EMBEDDER_SLOT) is not None:
        try:
            from turnout.models.remote import choose_embedder
        except ImportError:  # the packages of the extra `serve` are not installed
            return find_embedder()
        return choose_embedder(slots)
    return find_embedder()


def open_models(config: str | os.PathLike[str] | None) -> Models | None:
    """The client of the configured models, if one can classify and its packages are installed; else None."""
    from turnout.models.slot import load_slots

    slots = load_slots(config)
    if slots.classifier is None:
        return None
    try:
        from turnout.models.ask import Models
        from turnout.net.client import Client
    except ImportError:  # the packages of the extra `serve` are not installed
        return None
    return Models(slots, Client(slots.egress))


def learn_router(
    examples: Mapping[str, Sequence[str]], embedder: Embeds | Literal["auto", "none"], **options: Any
) -> Router:
    """A router trained on examples, with this embedder or the installed one."""
    vectors = embedder_for_training(embedder, None) if isinstance(embedder, str) else embedder
    try:
        from turnout.learn import begin
    except ImportError as error:
        raise LearnError(f"learning from examples needs {error.name}: pip install 'turnout[learn]'") from None
    return begin.learn_router(examples, embedder=vectors, **options)


def embedder_for_training(choice: EmbedderChoice, config: str | None) -> Embeds | None:
    """The embedder to train with, by its name in a call or on the command line."""
    from turnout.models.embed import find_embedder
    from turnout.models.slot import load_slots

    if choice == "none":
        return None
    if choice != "remote":
        installed = find_embedder()
        if installed is None and choice == "minilm":
            raise LearnError("no embedder is installed here: turnout-build-minilm, or --embedder none")
        return installed
    try:
        from turnout.models.remote import remote_embedder
    except ImportError as error:
        raise LearnError(f"asking a server for vectors needs {error.name}: pip install 'turnout[serve]'") from None
    remote = remote_embedder(load_slots(config))
    if remote is None:
        raise LearnError("no server makes vectors: turnout models set embedder PROVIDER/MODEL, or --embedder minilm")
    return remote
