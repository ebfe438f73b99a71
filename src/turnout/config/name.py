"""The names of shipped profiles: the one that is meant where none is named, and the new names of those that had others.

An old name stands for the profile it has become wherever one is named: by a caller, in `extends`, as a table of the
settings, on the shelf of trained models, in the rights of a key and in the log. Using an old name prints the new one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

DEFAULT_PROFILE = "tiers"
"""It takes any text and answers what most people ask of a router first: which model."""

RENAMED = {
    "study-local": "study",
    "tiers-local": "tiers",
    "tiers-learned": "tiers",
    "tiers-substring": "tiers-seed",
}
"""Old names, and the one each has now."""


class OldNameWarning(FutureWarning):
    """A profile was named as it was called before."""


def current_name(name: str) -> str:
    """What a shipped profile is called now; any other name as it is."""
    return RENAMED.get(name, name)


def old_names(name: str) -> tuple[str, ...]:
    """What a shipped profile was called before."""
    return tuple(old for old, new in RENAMED.items() if new == name)


def old_name_notice(name: str) -> str:
    return f"the profile {name!r} is now {current_name(name)!r}: use that name"


def warn_of(notices: Iterable[str], stacklevel: int) -> None:
    """Warn of old names; `stacklevel` as in `warnings.warn`, seen from the caller of this function."""
    for said in notices:
        warnings.warn(said, OldNameWarning, stacklevel=stacklevel + 1)
