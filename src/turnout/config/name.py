"""The names of shipped profiles: the default one, and the current names of renamed ones.

An old name still works everywhere: for callers, in `extends`, in the settings, in the folders of trained models, in the
rights of a key and in the log. Using one prints the new name.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

DEFAULT_PROFILE = "tiers"
"""Used where no profile is named: it takes any text and chooses a model, the most common use of a router."""

RENAMED = {
    "study-local": "study",
    "tiers-local": "tiers",
    "tiers-learned": "tiers",
    "tiers-substring": "tiers-seed",
}
"""Old names and the current ones."""


class OldNameWarning(FutureWarning):
    """A profile was named by an old name."""


def current_name(name: str) -> str:
    """The current name of a shipped profile; any other name unchanged."""
    return RENAMED.get(name, name)


def old_names(name: str) -> tuple[str, ...]:
    """The earlier names of a shipped profile."""
    return tuple(old for old, new in RENAMED.items() if new == name)


def old_name_notice(name: str) -> str:
    return f"the profile {name!r} is now {current_name(name)!r}: use that name"


def warn_of(notices: Iterable[str], stacklevel: int) -> None:
    """Warn about old names; `stacklevel` as in `warnings.warn`, counted from the caller of this function."""
    for notice in notices:
        warnings.warn(notice, OldNameWarning, stacklevel=stacklevel + 1)
