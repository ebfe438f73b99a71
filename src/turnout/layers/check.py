"""Checks that several kinds of layer share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from turnout.core.errors import ConfigError, Problem, suggest
from turnout.core.registry import Supplies

from .artefact import MANIFEST


def unknown(
    where: str, used: Iterable[str], known: Iterable[str], what: str = "is not a route"
) -> Iterator[tuple[str, str]]:
    """A fault for each used name that is not known."""
    known = set(known)
    for name in used:
        if name not in known:
            yield where, f"{name!r} {what}{suggest(name, known)}"


def check_trained_routes(folder: Path, trained: Sequence[str], supplies: Supplies, option: str = "") -> None:
    """Refuse a model that was trained for routes the profile does not have; `option` is one of `turnout train`."""
    foreign = [route for route in trained if route not in supplies.routes]
    if foreign:
        why = (
            f"it was trained for other routes: {', '.join(map(repr, foreign[:3]))} "
            f"{'is' if len(foreign) == 1 else 'are'} not of this profile ({', '.join(supplies.routes)}): "
            f"turnout train -p {supplies.profile or 'NAME'}{option}"
        )
        raise ConfigError([Problem(str(folder / MANIFEST), why)])
