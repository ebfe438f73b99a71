"""Three values: true, false, and not known. What is not known spoils a conclusion only where it could change it."""

from __future__ import annotations

from collections.abc import Iterable

Judged = bool | None


def any_of(values: Iterable[Judged]) -> Judged:
    told = list(values)
    return True if True in told else None if None in told or not told else False


def all_of(values: Iterable[Judged]) -> Judged:
    told = list(values)
    return False if False in told else None if None in told or not told else True


def negate(value: Judged) -> Judged:
    return None if value is None else not value
