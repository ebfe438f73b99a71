"""The table `[learn]` of `turnout.toml`: when a student is trained again, and what a challenger must show to serve."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, Struct

from .model import Share
from .settings import read_settings

Count = Annotated[int, Meta(ge=0)]
Level = Annotated[float, Meta(ge=0.5, le=0.9999)]


class LearnSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The table `[learn]`."""

    retrain_sessions: Annotated[int, Meta(ge=1)] = 500
    """So many new sessions since the champion was trained make a training due."""
    retrain_corrections: Count = 50
    """So many corrections by people make one due as well; 0: they never do."""
    auto_promote: bool = False
    """Whether `turnout train` lets a challenger serve that passes every check, without being told to."""
    min_accuracy: Share = 0.90
    """The cross-validated accuracy a challenger needs; its lower bound may be `max_loss` below that."""
    confidence: Level = 0.95
    """How sure every bound is."""
    # Three points: at 95 % confidence 200 held-out questions show no less, even where both answer all of them alike.
    max_loss: Share = 0.03
    """A challenger must be shown to lose no more than this share of the held-out questions to the champion."""
    max_label_loss: Share = 0.10
    """As `max_loss`, for the recall of each label: fewer questions, so a wider margin."""
    shadow_decisions: Count = 1_000
    """Logged questions a challenger must have decided beside the champion."""
    max_quarantined: Share = 0.05
    """The share of the training rows that may be set aside as suspicious."""
    max_trigger_effect: Share = 0.01
    """How much a suspicious word, put into held-out questions, may move the route compared with the champion."""
    keep_models: Annotated[int, Meta(ge=1)] = 10
    """Challengers kept on the shelf beside the champion and those before it."""


def learn_settings(config: str | os.PathLike[str] | None = None) -> LearnSettings:
    """The user's settings for learning."""
    return read_settings("learn", LearnSettings, config)
