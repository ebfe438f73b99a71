"""The table `[learn]` of `turnout.toml`: when to train a student again, and what a challenger must pass to serve."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, Struct

from turnout.core.policy import Count, Positive, Share

from .settings import read_settings

Level = Annotated[float, Meta(ge=0.5, le=0.9999)]


class LearnSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The table `[learn]`."""

    retrain_sessions: Positive = 500
    """After this many new sessions since the champion was trained, a training is due."""
    retrain_corrections: Count = 50
    """After this many corrections by people, a training is due as well; 0: never."""
    auto_promote: bool = False
    """Whether `turnout train` promotes a challenger that passes every check."""
    min_accuracy: Share = 0.90
    """The cross-validated accuracy a challenger needs; its lower bound may be `max_loss` below that."""
    confidence: Level = 0.95
    """The confidence level of every bound."""
    # With 200 held-out questions, no smaller loss can be shown at 95 % confidence, even if both models always agree.
    max_loss: Share = 0.03
    """The largest share of the held-out questions that a challenger may lose to the champion."""
    max_label_loss: Share = 0.10
    """As `max_loss`, for the recall of each label: fewer questions, so a wider margin."""
    shadow_decisions: Count = 1_000
    """How many logged questions a challenger must have decided beside the champion."""
    max_quarantined: Share = 0.05
    """The share of the training rows that may be quarantined as suspicious."""
    max_trigger_effect: Share = 0.01
    """How many more held-out questions a suspicious word may move to another route than it does for the champion."""
    keep_models: Positive = 10
    """How many challengers are kept besides the champion and earlier champions."""


def learn_settings(config: str | os.PathLike[str] | None = None) -> LearnSettings:
    """The user's settings for learning."""
    return read_settings("learn", LearnSettings, config)
